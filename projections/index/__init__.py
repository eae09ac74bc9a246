"""What an index of vectors promises: the nearest items of one partition, and nothing of what they are worth.

An index may say "near", never "true" and never "current": what it names is a neighbour, and only the ledger's
standing makes a hit of it. Every kind of index answers the same question with the same list, score for score,
because candidates are always scored again from the stored rows (`projections.index.ranking`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]
Vectors = npt.NDArray[np.float32]
Allowed = Callable[[str], bool]


class Neighbour(msgspec.Struct, frozen=True):
    """An item whose vector is near to the one asked for. `score` is the inner product, at most about 1."""

    item: str
    score: float


class VectorIndex(Protocol):
    """One partition: items, each with one vector of the partition's dimension. Safe to share between threads.

    Vectors are expected to have unit length; scores are cosines only then. A vector that is not finite, has
    no length or has another dimension is refused with INDEX_UNAVAILABLE (details `reason`: `non_finite`,
    `zero_norm`, `wrong_dimension`), and nothing is changed.
    """

    @property
    def dimension(self) -> int:
        """Return the length of every vector held here."""
        ...

    def put(self, item: str, vector: Vector) -> None:
        """Hold `vector` for `item`, in place of the one that it had."""
        ...

    def put_many(self, items: Sequence[str], vectors: Vectors) -> None:
        """Hold row n of `vectors` for item n, all or none; an item named twice keeps its last row."""
        ...

    def remove(self, item: str) -> bool:
        """Let go of `item`, and report whether it was held; as quick in a big index as in a small one."""
        ...

    def search(self, vector: Vector, k: int, *, allowed: Allowed | None = None) -> list[Neighbour]:
        """Return the best `k` items, best first, equal scores by item; fewer if fewer are held and allowed.

        `allowed` is asked about candidates only, in no order, and must not call the index.
        """
        ...

    def rows_of(self, items: Iterable[str]) -> dict[str, Vector]:
        """Return a copy of the vector of each of these items that is held."""
        ...

    def dump(self) -> tuple[list[str], Vectors]:
        """Return a copy of all items and their vectors, shape (n, dimension), as they are at one moment."""
        ...

    def items(self) -> list[str]:
        """Return the items held, in no order."""
        ...

    def __len__(self) -> int: ...

    def __contains__(self, item: object) -> bool: ...
