"""One partition in FAISS: a bare flat index, with our own account of which row is whose.

FAISS's own wrappers for item ids remove in time that grows with the index, or cannot remove at all; here the
last row moves into the gap. A search is as long as the memory that it reads, so it looks into a copy in half precision
first, and into the rows themselves only where that copy cannot tell which are the nearest: what is found is the same.
Searches share a lock and mutations hold it alone. This is the only module that imports faiss, and it never writes or
reads FAISS's file format, which loads damaged files without a word.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Protocol, cast

import faiss
import numpy as np
import numpy.typing as npt

from projections.index import Allowed, Neighbour, Vector, Vectors
from projections.index.locking import SharedLock
from projections.index.ranking import SLACK, best, lengths, usable

_OVER_FETCH = 24
_WIDENING = 8  # so many times more are fetched at once where a filter leaves few, or a scan costs least

# How far half precision lies from a number: relatively, and where the number is too small for that. None beyond _HALF.
_HALF_EPS, _HALF_TINY, _HALF_MAX = 2.0**-11, 2.0**-25, 6e4


class _Codes(Protocol):
    """The part of FAISS's flat indexes that is used here; their stubs also speak of packages that are not installed."""

    ntotal: int
    code_size: int
    codes: Any  # Any: a C++ vector of bytes, of which only resize(bytes) and data() are called

    def search(self, x: Vectors, k: int, /) -> tuple[Vectors, npt.NDArray[np.int64]]: ...


class _Rows:
    """The rows of one FAISS index, which hold their numbers as they are: of `kind`, one after the other."""

    def __init__(self, index: object, dimension: int, kind: type[np.float16] | type[np.float32]) -> None:
        self._index = cast(_Codes, index)
        self._dimension = dimension
        self._kind = kind

    def search(self, query: Vector, fetch: int) -> tuple[list[int], float]:
        """Return the best `fetch` rows by this index's own scores, and the least of these scores."""
        # libgomp counts threads for each calling thread apart, so that one call at import would not do.
        faiss.omp_set_num_threads(1)
        scores, found = self._index.search(query[np.newaxis], fetch)
        return found[0].tolist(), float(scores[0, -1])

    def view(self) -> npt.NDArray[Any]:  # Any: of `kind`
        """Return FAISS's own memory as an array; valid only until the next `resize`."""
        held = self._index.ntotal
        if not held:
            return np.empty((0, self._dimension), dtype=self._kind)
        untyped: Any = faiss  # Any: the stubs do not know rev_swig_ptr
        raw = untyped.rev_swig_ptr(self._index.codes.data(), held * self._index.code_size)
        return raw.view(self._kind).reshape(held, self._dimension)

    def resize(self, held: int) -> None:
        """Have so many rows; new ones hold nothing yet."""
        self._index.codes.resize(held * self._index.code_size)
        self._index.ntotal = held


class FaissIndex:
    """A VectorIndex over flat indexes: exact, about 2.3 kB for each vector of 384, O(1) removal."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        metric, half = faiss.METRIC_INNER_PRODUCT, faiss.ScalarQuantizer.QT_fp16
        self._whole = _Rows(faiss.IndexFlatIP(dimension), dimension, np.float32)
        self._half = _Rows(faiss.IndexScalarQuantizer(dimension, half, metric), dimension, np.float16)
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
                self._overwrite([row], self._whole.view()[-1:].copy())
                self._items[row] = last
                self._row_of[last] = row
            self._resize(len(self._items))
            return True

    def search(self, vector: Vector, k: int, *, allowed: Allowed | None = None) -> list[Neighbour]:
        """Return the best `k` allowed items; fetches more until no unseen row could be among them."""
        query = usable(vector, shape=(self.dimension,))
        with self._lock.shared():
            return self._search(query, k, allowed and cache(allowed)) if k > 0 and self._items else []

    def rows_of(self, items: Iterable[str]) -> dict[str, Vector]:
        """Return a copy of the vectors of those that are held."""
        with self._lock.shared():
            places = {item: self._row_of[item] for item in items if item in self._row_of}
            return dict(zip(places, self._whole.view()[list(places.values())], strict=True)) if places else {}

    def dump(self) -> tuple[list[str], Vectors]:
        """Return a copy of everything held."""
        with self._lock.shared():
            return list(self._items), self._whole.view().copy()

    def items(self) -> list[str]:
        """Return the items held."""
        with self._lock.shared():
            return list(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: object) -> bool:
        return item in self._row_of

    def _search(self, query: Vector, k: int, allowed: Allowed | None) -> list[Neighbour]:
        held = len(self._items)
        first = fetch = min(held, k + _OVER_FETCH)
        rows = self._half if self._length_max < _HALF_MAX else self._whole
        while True:
            found, floor = self._nearest(rows, query, fetch, k, allowed)
            if fetch == held or _settled(found, k, floor):
                return found
            if rows is self._half and len(found) == k and fetch > first:
                rows = self._whole  # they lie nearer to each other than the copy can tell
            else:  # one text very often, or a filter that leaves few
                fetch = min(held, fetch * (_WIDENING if rows is self._half or len(found) * 4 < k else 2))

    def _nearest(
        self, rows: _Rows, query: Vector, fetch: int, k: int, allowed: Allowed | None
    ) -> tuple[list[Neighbour], float]:
        """Return the best `k` of the first `fetch` of some rows, and the most that another one can score."""
        candidates, least = rows.search(query, fetch)
        passed = [row for row in candidates if allowed is None or allowed(self._items[row])]
        neighbours = best([self._items[row] for row in passed], self._whole.view()[passed], query, k)
        slack = SLACK * self._length_max
        if rows is self._half:
            slack += _HALF_EPS * self._length_max + _HALF_TINY * math.sqrt(self.dimension)
        return neighbours, least + slack * math.sqrt(query @ query)

    def _overwrite(self, rows: Sequence[int], vectors: Vectors) -> None:
        if rows:
            with np.errstate(over="ignore"):  # beyond half precision: then that copy is not asked
                self._half.view()[rows] = vectors
            self._whole.view()[rows] = vectors

    def _append(self, items: list[str], vectors: Vectors) -> None:
        first = len(self._items)
        self._resize(first + len(items))
        self._overwrite(range(first, first + len(items)), vectors)
        self._row_of |= {item: row for row, item in enumerate(items, start=first)}
        self._items += items

    def _resize(self, held: int) -> None:
        for rows in (self._whole, self._half):
            rows.resize(held)


def _settled(found: list[Neighbour], k: int, floor: float) -> bool:
    """Report whether rows that FAISS left out, none scored above `floor`, must be worse than these."""
    return len(found) == k and found[-1].score > floor
