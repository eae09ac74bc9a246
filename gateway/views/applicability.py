"""Whether a memory applies where it is asked for: its own conditions, held against what the asker says of the place.

A condition is about one named fact of the context, which has to be equal, or about a topic: a phrase that has to stand
in the question, word for word, whatever its case and punctuation. A fact that the asker does not name holds nowhere, so
a memory with conditions is never served by mistake. Pure: the same words give the same answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from gateway.views.words import words_of

CONTEXT_FIELDS = ("directory", "worktree", "projectId", "sessionId")


class Condition(Struct, frozen=True, kw_only=True):
    """One condition; `field` is None for a topic."""

    id: str
    kind: Literal["context", "topic"]
    value: str
    field: str | None = None


class Applies(Struct, frozen=True, kw_only=True):
    """The conditions of a memory, and whether all of them have to hold, or any."""

    match: Literal["all", "any"]
    conditions: tuple[Condition, ...]


class Verdict(NamedTuple):
    """Whether a memory applies, and why: in the words of the conditions' ids and fields, never of their values."""

    applicable: bool
    reason: str


def read(text: str | None) -> Applies | None:
    """Return the conditions that a revision's text holds as JSON; None if it holds none."""
    return None if text is None else msgspec.json.decode(text, type=Applies)


def document(text: str | None) -> dict[str, Any] | None:  # Any: JSON
    """Return JSON of a revision's text as an object."""
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])


def judge(applies: Applies | None, *, context: Mapping[str, str], query: str) -> Verdict:
    """Return whether a memory with these conditions applies in a context to a question, and why."""
    if applies is None:
        return Verdict(True, "it has no conditions")
    words = words_of(query)
    missed = [(one, why) for one in applies.conditions if (why := _missed(one, context, words)) is not None]
    if not missed:
        return Verdict(True, f"all {len(applies.conditions)} of its conditions hold")
    if applies.match == "any" and len(missed) < len(applies.conditions):
        held = next(one for one in applies.conditions if one not in [miss for miss, _ in missed])
        return Verdict(True, f"its condition {held.id} holds")
    first, why = missed[0]
    return Verdict(False, f"condition {first.id}: {why}" if applies.match == "all" else f"no condition holds: {why}")


def _missed(condition: Condition, context: Mapping[str, str], words: Sequence[str]) -> str | None:
    """Return why a condition does not hold; None if it does."""
    if condition.kind == "topic":
        return None if _stands_in(words_of(condition.value), words) else "its topic does not stand in the question"
    given = context.get(condition.field or "")
    if given is None:
        return f"context {condition.field} was not given"
    return None if given == condition.value else f"context {condition.field} is another"


def _stands_in(phrase: Sequence[str], words: Sequence[str]) -> bool:
    size = len(phrase)
    return size > 0 and any(words[at : at + size] == phrase for at in range(len(words) - size + 1))
