"""Many texts and an embedder that fails on some: which ones those are, told from an embedder that answers nobody.

A text that fails is poison only while another one passes. If nothing passes, it is the embedder, and no text's fault:
that is raised, and what waits goes on waiting.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ledger.errors import CorrigendaError, failure
from projections.deadline import TOO_SLOW
from projections.embedders import Vectors
from projections.embedders.patience import at_most

PROBE = "is anybody there?"
AGAIN_S = 15.0  # how long a text that failed already may take, with others or alone, while the embedder answers others

Embed = Callable[[Sequence[str]], Vectors]  # one row a text, all of them usable, else EMBEDDER_UNAVAILABLE


class Tried(NamedTuple):
    """What came of texts, by the keyed digests of their contents: a vector, or the code of a failure."""

    vectors: Mapping[str, Vectors]
    failed: Mapping[str, str]


def embed_each(embed: Embed, texts: Mapping[str, str], *, again: bool = False) -> Tried:
    """Embed texts together, and where that fails in ever smaller parts, until only those are left that fail alone.

    After the first failure, and with `again` from the first text on, none is waited for longer than fifteen seconds: an
    embedder that hangs on a text would else hang for each part with it. Raises EMBEDDER_UNAVAILABLE if the embedder
    fails on a plain text, too, or did not answer in time.
    """
    vectors: dict[str, Vectors] = {}
    failed: dict[str, str] = {}
    waiting, is_there = [list(texts)], False
    while waiting:
        part = waiting.pop()
        try:
            with at_most(AGAIN_S if again else None):
                vectors |= zip(part, embed([texts[content] for content in part]), strict=True)
            is_there = True
        except Exception as error:  # an embedder may be anybody's, and fail with anything
            again = True
            if not is_there:
                _probe(embed, error)
                is_there = True
            if _reason(error) == TOO_SLOW:
                raise
            if len(part) == 1:
                failed[part[0]] = _code(error)
            else:
                half = len(part) // 2
                waiting += [part[half:], part[:half]]
    return Tried(vectors, failed)


def _probe(embed: Embed, cause: Exception) -> None:
    """Raise unless the embedder answers to a plain text."""
    if _reason(cause) == TOO_SLOW:
        raise cause
    try:
        embed([PROBE])
    except CorrigendaError:
        raise
    except Exception as error:  # as above
        raise failure(
            "EMBEDDER_UNAVAILABLE",
            f"The embedder was expected to answer, and fails on every text ({type(error).__name__}). What waits for it "
            "stays in the outbox; check the embedder, then try again.",
            reason=type(error).__name__,
        ) from error


def _reason(error: Exception) -> str | None:
    return error.details.get("reason") if isinstance(error, CorrigendaError) else type(error).__name__


def _code(error: Exception) -> str:
    """Return what is noted of a failure: never a message, which may hold the text."""
    code = error.code if isinstance(error, CorrigendaError) else "EMBEDDER_UNAVAILABLE"
    reason = _reason(error)
    return code if reason is None else f"{code}: {reason}"
