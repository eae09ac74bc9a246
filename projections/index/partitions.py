"""Many partitions as one index: which partition holds an item, and the merge of what several of them answer.

An item is in one partition at most, so moving it is one act that no search sees half done. A partition's
key is opaque here: what it stands for (scope, trust, embedder) is the caller's affair.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from projections.index import Allowed, Neighbour, Vector, VectorIndex, Vectors
from projections.index.locking import SharedLock
from projections.index.ranking import precedence, usable

Contents = Mapping[str, tuple[Sequence[str], Vectors]]


class PartitionedIndex:
    """Partitions by key, made when first put into and dropped when empty. Safe to share between threads.

    Vectors are refused as a VectorIndex refuses them.
    """

    def __init__(self, dimension: int, make: Callable[[int], VectorIndex]) -> None:
        self.dimension = dimension
        self._make = make
        self._partitions: dict[str, VectorIndex] = {}
        self._partition_of: dict[str, str] = {}
        self._lock = SharedLock()
        self.edition = 0  # another one after each change: what was found in one edition is found in it again

    def put(self, partition: str, item: str, vector: Vector) -> None:
        """Hold `vector` for `item` in `partition`, and nowhere else."""
        self.put_many(partition, [item], np.asarray(vector)[np.newaxis])

    def put_many(self, partition: str, items: Sequence[str], vectors: Vectors) -> None:
        """Hold row n of `vectors` for item n in `partition`, and nowhere else, all or none."""
        with self._lock.alone():
            self.edition += 1
            held = self._partitions.get(partition)
            index = self._make(self.dimension) if held is None else held
            index.put_many(items, vectors)
            # Kept only now, because the put may refuse: nothing here is changed then.
            self._partitions[partition] = index
            for item in items:
                if self._partition_of.get(item, partition) != partition:
                    self._take_out(item)
                self._partition_of[item] = partition

    def remove(self, item: str) -> bool:
        """Let go of `item` wherever it is held; report whether it was."""
        with self._lock.alone():
            if item not in self._partition_of:
                return False
            self.edition += 1
            self._take_out(item)
            return True

    def search(
        self, partitions: Iterable[str], vector: Vector, k: int, *, allowed: Allowed | None = None
    ) -> list[Neighbour]:
        """Return the best `k` of the named partitions together, best first, equal scores by item.

        A partition that holds nothing is no error. `allowed` is as in VectorIndex.search.
        """
        with self._lock.shared():
            indexes = [self._partitions[key] for key in set(partitions) if key in self._partitions]
            if not indexes:  # else they look at the vector
                usable(vector, shape=(self.dimension,))
            found = [near for index in indexes for near in index.search(vector, k, allowed=allowed)]
        return sorted(found, key=precedence)[: max(k, 0)]

    def partition_of(self, item: str) -> str | None:
        """Return the key of the partition that holds `item`."""
        return self._partition_of.get(item)

    def items(self) -> dict[str, str]:
        """Return a copy of what is held: each item and its partition."""
        with self._lock.shared():
            return dict(self._partition_of)

    def entries(self, items: Iterable[str]) -> dict[str, tuple[str, Vector]]:
        """Return partition and vector, a copy, of each of these items that is held, as they are at one moment."""
        by_partition: dict[str, list[str]] = {}
        with self._lock.shared():
            for item in items:
                if item in self._partition_of:
                    by_partition.setdefault(self._partition_of[item], []).append(item)
            return {
                item: (key, row)
                for key, held in by_partition.items()
                for item, row in self._partitions[key].rows_of(held).items()
            }

    def dump(self) -> Contents:
        """Return a copy of everything held, at one moment, partitions in the order of their keys."""
        with self._lock.shared():
            return {key: self._partitions[key].dump() for key in sorted(self._partitions)}

    def restore(self, contents: Contents) -> None:
        """Hold exactly `contents` from now on, in place of what was held.

        Raises INDEX_UNAVAILABLE, with nothing changed, for a vector that is not usable; ValueError if an item
        is in two partitions.
        """
        partitions = {key: self._make(self.dimension) for key, (items, _) in contents.items() if items}
        partition_of: dict[str, str] = {}
        for key, index in partitions.items():
            items, vectors = contents[key]
            index.put_many(items, vectors)
            partition_of |= dict.fromkeys(items, key)
        if len(partition_of) != sum(map(len, partitions.values())):
            raise ValueError("an item belongs to one partition; the contents hold one in two")
        with self._lock.alone():
            self.edition += 1
            self._partitions, self._partition_of = partitions, partition_of

    def __len__(self) -> int:
        return len(self._partition_of)

    def __contains__(self, item: object) -> bool:
        return item in self._partition_of

    def _take_out(self, item: str) -> None:
        partition = self._partition_of.pop(item)
        index = self._partitions[partition]
        index.remove(item)
        if not len(index):
            del self._partitions[partition]
