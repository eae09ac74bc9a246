"""The one way to score candidates and put them in order, whatever found them.

FAISS adds in single precision, in an order that changes with batch and threads, and gives ties in any order.
So its scores choose candidates only: here each row is scored alone, in double precision, and ties go to the
lesser item. Two indexes with the same rows then answer the same list.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ledger.errors import refuse
from projections.index import Neighbour, Vector, Vectors

NORM_MIN = 1e-6

# How far a single-precision inner product may lie from the true one, per unit of both lengths; 1e-7 is usual.
SLACK = 1e-5


def usable(vectors: npt.ArrayLike, *, shape: tuple[int, ...]) -> Vectors:
    """Return `vectors` as contiguous float32 of `shape`; INDEX_UNAVAILABLE says what else they are."""
    array = np.ascontiguousarray(vectors, dtype=np.float32)
    if array.shape != shape:
        _refuse("wrong_dimension", expected=list(shape), found=list(array.shape))
    found = lengths(array)
    if not np.all(np.isfinite(found)):
        _refuse("non_finite")
    if np.any(found < NORM_MIN):
        _refuse("zero_norm")
    return array


def lengths(vectors: Vectors) -> Vectors:
    """Return the length of each vector; one beyond float32 is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.sqrt(np.einsum("...i,...i->...", vectors, vectors))  # in a third of the time of linalg.norm


def best(items: Sequence[str], rows: Vectors, vector: Vector, k: int) -> list[Neighbour]:
    """Return the best `k` of `items`, whose vectors are `rows`, shape (len(items), dimension): best first."""
    # Row by row and not a matrix product: a product's order of addition depends on how many rows there are.
    scores = (rows.astype(np.float64) * vector.astype(np.float64)).sum(axis=1).tolist()
    ranked = sorted(map(Neighbour, items, scores), key=precedence)
    return ranked[:k]


def precedence(neighbour: Neighbour) -> tuple[float, str]:
    """Return the sort key of a neighbour: higher scores first, then items in code point order."""
    return (-neighbour.score, neighbour.item)


def _refuse(reason: str, **details: list[int]) -> None:
    refuse(
        "INDEX_UNAVAILABLE",
        "Finite vectors of the index's dimension and of a length above zero were expected; "
        f"{reason.replace('_', ' ')} was found. "
        "Nothing was changed; make the vectors again with the embedder that is configured.",
        reason=reason,
        **details,
    )
