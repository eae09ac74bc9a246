"""The oracle: every row compared, in NumPy, with nothing to go wrong. Other indexes are tested against it.

It is right before it is fast, and never used where an index must be big.
"""

import threading
from collections.abc import Iterable, Sequence

import numpy as np

from projections.index import Allowed, Neighbour, Vector, Vectors
from projections.index.ranking import best, usable


class ExactIndex:
    """A VectorIndex that keeps a dictionary and scans it."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._rows: dict[str, Vector] = {}
        self._lock = threading.Lock()

    def put(self, item: str, vector: Vector) -> None:
        """Hold a copy of `vector` for `item`."""
        self.put_many([item], np.asarray(vector)[np.newaxis])

    def put_many(self, items: Sequence[str], vectors: Vectors) -> None:
        """Hold a copy of each row for its item, all or none."""
        checked = usable(vectors, shape=(len(items), self.dimension)).copy()
        with self._lock:
            self._rows.update(zip(items, checked, strict=True))

    def remove(self, item: str) -> bool:
        """Let go of `item`; report whether it was held."""
        with self._lock:
            return self._rows.pop(item, None) is not None

    def search(self, vector: Vector, k: int, *, allowed: Allowed | None = None) -> list[Neighbour]:
        """Return the best `k` of all items that are allowed."""
        query = usable(vector, shape=(self.dimension,))
        items, rows = self.dump()
        kept = [n for n, item in enumerate(items) if allowed is None or allowed(item)]
        return best([items[n] for n in kept], rows[kept], query, max(k, 0))

    def rows_of(self, items: Iterable[str]) -> dict[str, Vector]:
        """Return a copy of the vectors of those that are held."""
        with self._lock:
            return {item: self._rows[item].copy() for item in items if item in self._rows}

    def dump(self) -> tuple[list[str], Vectors]:
        """Return a copy of everything held."""
        with self._lock:
            items = list(self._rows)
            rows = np.array([self._rows[item] for item in items], dtype=np.float32)
        return items, rows.reshape(len(items), self.dimension)

    def items(self) -> list[str]:
        """Return the items held."""
        with self._lock:
            return list(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, item: object) -> bool:
        return item in self._rows
