"""One partition in FAISS: a bare flat index, with our own account of which row is whose.

FAISS's own wrappers for item ids remove in time that grows with the index, or cannot remove at all; here the
last row moves into the gap. Searches share a lock and mutations hold it alone. This is the only module that
imports faiss, and it never writes or reads FAISS's file format, which loads damaged files without a word.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, cast

import faiss
import numpy as np
import numpy.typing as npt

from projections.index import Allowed, Neighbour, Vector, Vectors
from projections.index.locking import SharedLock
from projections.index.ranking import SLACK, best, lengths, usable

_OVER_FETCH = 8


class _Flat(Protocol):
    """The part of IndexFlatIP that is used here; its stubs also speak of packages that are not installed."""

    ntotal: int
    code_size: int
    codes: Any  # Any: a C++ vector of bytes, of which only resize(bytes) is called

    def add(self, x: Vectors, /) -> None: ...
    def search(self, x: Vectors, k: int, /) -> tuple[Vectors, npt.NDArray[np.int64]]: ...
    def get_xb(self) -> object: ...


class FaissIndex:
    """A VectorIndex over `IndexFlatIP`: exact, about 1.5 kB for each vector of 384, O(1) removal."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._flat = cast(_Flat, faiss.IndexFlatIP(dimension))
        self._items: list[str] = []
        self._row_of: dict[str, int] = {}
        self._length_max = 0.0
        self._lock = SharedLock()

    def put(self, item: str, vector: Vector) -> None:
        """Hold `vector` for `item`; O(1), but for FAISS's doubling of its memory now and then."""
        self.put_many([item], np.asarray(vector)[np.newaxis])

    def put_many(self, items: Sequence[str], vectors: Vectors) -> None:
        """Hold each row for its item, all or none; new rows go to FAISS in one call."""
        checked = usable(vectors, shape=(len(items), self.dimension))
        last = {item: row for row, item in enumerate(items)}
        longest = float(lengths(checked).max(initial=0.0))
        with self._lock.alone():
            self._length_max = max(self._length_max, longest)
            known = [item for item in last if item in self._row_of]
            fresh = [item for item in last if item not in self._row_of]
            self._overwrite([self._row_of[item] for item in known], checked[[last[item] for item in known]])
            self._append(fresh, checked[[last[item] for item in fresh]])

    def remove(self, item: str) -> bool:
        """Let go of `item` by moving the last row into its place; report whether it was held."""
        with self._lock.alone():
            row = self._row_of.pop(item, None)
            if row is None:
                return False
            last = self._items.pop()
            if last != item:
                self._overwrite([row], self._rows()[-1:].copy())
                self._items[row] = last
                self._row_of[last] = row
            self._shrink(len(self._items))
            return True

    def search(self, vector: Vector, k: int, *, allowed: Allowed | None = None) -> list[Neighbour]:
        """Return the best `k` allowed items; fetches more until no unseen row could be among them."""
        query = usable(vector, shape=(self.dimension,))
        with self._lock.shared():
            held = len(self._items)
            fetch = min(held, max(k, 0) + _OVER_FETCH)
            while k > 0 and held:
                found, floor = self._nearest(query, fetch, k, allowed)
                if fetch == held or _settled(found, k, floor):
                    return found
                fetch = min(held, fetch * 2)
            return []

    def rows_of(self, items: Iterable[str]) -> dict[str, Vector]:
        """Return a copy of the vectors of those that are held."""
        with self._lock.shared():
            places = {item: self._row_of[item] for item in items if item in self._row_of}
            return dict(zip(places, self._rows()[list(places.values())], strict=True)) if places else {}

    def dump(self) -> tuple[list[str], Vectors]:
        """Return a copy of everything held."""
        with self._lock.shared():
            return list(self._items), self._rows().copy()

    def items(self) -> list[str]:
        """Return the items held."""
        with self._lock.shared():
            return list(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: object) -> bool:
        return item in self._row_of

    def _nearest(self, query: Vector, fetch: int, k: int, allowed: Allowed | None) -> tuple[list[Neighbour], float]:
        """Return the best `k` of FAISS's first `fetch` rows, and the most that another row can score."""
        # libgomp counts threads for each calling thread apart, so that one call at import would not do.
        faiss.omp_set_num_threads(1)
        scores, found = self._flat.search(query[np.newaxis], fetch)
        candidates: list[int] = found[0].tolist()
        rows = [row for row in candidates if allowed is None or allowed(self._items[row])]
        neighbours = best([self._items[row] for row in rows], self._rows()[rows], query, k)
        slack = SLACK * self._length_max * float(np.linalg.norm(query))
        return neighbours, float(scores[0, -1]) + slack

    def _rows(self) -> Vectors:
        """Return FAISS's own memory as an array; valid only until the next append or shrink."""
        held = self._flat.ntotal
        if not held:
            return np.empty((0, self.dimension), dtype=np.float32)
        view: Any = faiss  # Any: the stubs do not know rev_swig_ptr
        return view.rev_swig_ptr(self._flat.get_xb(), held * self.dimension).reshape(held, self.dimension)

    def _overwrite(self, rows: list[int], vectors: Vectors) -> None:
        if rows:
            self._rows()[rows] = vectors

    def _append(self, items: list[str], vectors: Vectors) -> None:
        if items:
            self._flat.add(vectors)
            self._row_of |= {item: row for row, item in enumerate(items, start=len(self._items))}
            self._items += items

    def _shrink(self, held: int) -> None:
        self._flat.codes.resize(held * self._flat.code_size)
        self._flat.ntotal = held


def _settled(found: list[Neighbour], k: int, floor: float) -> bool:
    """Report whether rows that FAISS left out, none scored above `floor`, must be worse than these."""
    return len(found) == k and found[-1].score > floor
