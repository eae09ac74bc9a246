"""What turns a text into a vector, and the name that says exactly which vectors those are.

Two vectors may be compared only if one embedder made both, so an embedder's identity is one string: whoever
keeps a vector keeps that string beside it. This module never imports a model runtime before one is asked for,
because commands that do not search must start fast; and it lets no vector pass that would poison an index.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ledger.errors import failure, refuse

Vectors = npt.NDArray[np.float32]

BUILTIN = "builtin"
NONE = "none"
OPENAI = "openai:"
NAMES = (BUILTIN, f"{OPENAI}MODEL", NONE)
NORM_MIN = 1e-6


class Embedder(Protocol):
    """Makes vectors of one kind. Safe to share between threads."""

    @property
    def signature(self) -> str:
        """Return the identity of the vectors made here; equal strings mean comparable vectors."""
        ...

    @property
    def dimension(self) -> int:
        """Return the length of every vector made here."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (len(texts), dimension), rows of unit length, in the order of `texts`.

        Raises EMBEDDER_UNAVAILABLE if the model does not answer, or answers with what is not a vector.
        """
        ...


@runtime_checkable
class Sampled(Protocol):
    """An embedder that somebody else runs, who may put another model under the same name."""

    def sample(self) -> tuple[str, Vectors]:
        """Return a text that is always the same, and its vector. Raises EMBEDDER_UNAVAILABLE."""
        ...

    def may_sign(self, signature: str) -> bool:
        """Report whether a signature may be this embedder's, as far as that is known without asking it."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """An embedder that can also say how many tokens a text is, however long it is."""

    def count_tokens(self, text: str, /) -> int:
        """Return the number of tokens of a text, without those that mark its ends."""
        ...


def signature_of(
    *,
    provider: str,
    model: str,
    weights: str,
    vocabulary: str,
    dtype: str,
    dimension: int,
    pooling: str,
    normalised: bool,
    tokens_max: int,
) -> str:
    """Return the canonical signature. `weights`, `vocabulary`: SHA-256 in hex; 12 digits are kept."""
    parts = {
        "provider": provider,
        "model": model,
        "weights": weights[:12],
        "vocabulary": vocabulary[:12],
        "dtype": dtype,
        "dimension": dimension,
        "pooling": pooling,
        "normalised": "yes" if normalised else "no",
        "tokens_max": tokens_max,
    }
    return ";".join(f"{name}={value}" for name, value in parts.items())


def check_vectors(array: Vectors, n: int, dimension: int) -> Vectors:
    """Return `array` if it holds `n` usable vectors of `dimension`, else raise EMBEDDER_UNAVAILABLE.

    The error's `reason` is `wrong_dimension` (with the shapes `expected` and `found`), `non_finite` or
    `zero_norm` (with the `row` of the first such vector, counted from 0).
    """
    if array.shape != (n, dimension):
        _unusable("wrong_dimension", "the embedder", expected=[n, dimension], found=list(array.shape))
    with np.errstate(over="ignore"):  # a length beyond float32 is infinite, hence refused
        lengths = np.linalg.norm(array, axis=1)
    _check_rows("non_finite", np.isfinite(lengths))
    _check_rows("zero_norm", lengths >= NORM_MIN)
    return array


def load(name: str, *, base_url: str | None = None, api_key: Callable[[], str] | None = None) -> Embedder | None:
    """Return the embedder called `name`; `none` is None. An endpoint has a base URL, and perhaps needs a key.

    Raises VALIDATION_FAILED, EMBEDDER_UNAVAILABLE. An endpoint is not asked for anything before the first text.
    """
    if name == NONE:
        return None
    if name == BUILTIN:
        return _load_builtin()
    if name.startswith(OPENAI):
        # Imported here because its transport brings TLS and e-mail dates along.
        from projections.embedders.openai import openai_embedder

        return openai_embedder(name, base_url=base_url, key=api_key)
    return refuse(
        "VALIDATION_FAILED",
        f"An embedder is one of {', '.join(NAMES)}; {name!r} was asked for. Choose one of those.",
        field="embedder",
        known=list(NAMES),
    )


def _load_builtin() -> Embedder:
    # Imported here because the runtime costs a tenth of a second, and its session three more.
    try:
        from projections.embedders.minilm import MiniLM
    except ImportError as error:
        raise failure(
            "EMBEDDER_UNAVAILABLE",
            f"The packages of the built-in embedder were expected; {error.name} does not import. "
            "Reinstall corrigenda, or choose the embedder 'none'.",
            reason="package_missing",
            package=error.name,
        ) from error
    return MiniLM.load()


def _check_rows(reason: str, good: npt.ArrayLike) -> None:
    if not np.all(good):
        row = int(np.argmin(good))
        _unusable(reason, f"row {row} of the embedder's answer", row=row)


def _unusable(reason: str, where: str, **details: object) -> None:
    refuse(
        "EMBEDDER_UNAVAILABLE",
        f"Finite vectors of one dimension and of a length above zero were expected; {where} is {reason}. "
        "Nothing was stored; check the embedder's installation, then try again.",
        reason=reason,
        **details,
    )
