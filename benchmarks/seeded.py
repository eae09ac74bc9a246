"""Vectors that no model made: each text's own, from a seed, so that an index can be filled by the hundred thousand.

They say nothing of quality. What is measured with them is time and memory, for which any vectors will do.
"""

import hashlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from projections import embedders
from projections.embedders import Vectors
from projections.index import Vector

DIMENSION = 384
SIGNATURE = f"provider=benchmark;model=seeded;dimension={DIMENSION}"


class Seeded:
    """An embedder whose vectors cost next to nothing. `calls` counts how many texts it was asked for.

    One that is `closed` answers only what it was `asked` to know beforehand, and raises for every other text.
    """

    def __init__(self, *, asked: Sequence[str] = (), closed: bool = False) -> None:
        self.signature = SIGNATURE
        self.dimension = DIMENSION
        self.calls = 0
        self._known = {text: vector_of(text) for text in asked}
        self._closed = closed

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text; RuntimeError if this embedder is closed and does not know one."""
        self.calls += len(texts)
        return np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(len(texts), DIMENSION)

    def _vector(self, text: str) -> Vector:
        known = self._known.get(text)
        if known is not None:
            return known
        if self._closed:
            raise RuntimeError("the embedder was asked for a text whose vector is stored")
        return vector_of(text)


def vector_of(text: str) -> Vector:
    """Return the unit vector that belongs to a text, always the same one."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return unit_vectors(1, np.random.default_rng(seed))[0]


def unit_vectors(count: int, generator: np.random.Generator) -> Vectors:
    """Return that many unit vectors in random directions."""
    rows = generator.standard_normal((count, DIMENSION), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@contextmanager
def as_embedder(embedder: Seeded) -> Generator[None]:
    """Let every gateway that is opened meanwhile in this process have this embedder, whatever it asks for."""
    # Settings name embedders that make vectors of what texts mean; there is no name for one that does not, on purpose.
    with patch.object(embedders, "load", lambda *_, **__: embedder):
        yield
