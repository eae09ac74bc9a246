"""What may answer a question: each filter, exactly, with the reason for what it leaves out. Pure.

A filter sees a revision as its verified events tell it, so what an index or a read model says changes no answer here.
Whether a reader may see a revision at all is no filter: what is invisible is not even named as left out.
"""

from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

from gateway.shapes.requests import SearchCorrectionsRequest, SearchRequest
from gateway.views import applicability
from ledger.memories import RevisionText
from ledger.message import ScopeIds, Values

TIERS = {"unverified": ("verified", "unverified"), "verified": ("verified",)}


class Question(Struct, frozen=True, kw_only=True):
    """A search as it is answered: the request, the reader's ids, and the facts of the place where it is asked.

    `valid_at` is the moment of the valid clock for which an answer has to hold. `position` is where the ledger is read
    as it stood, None for the present; `as_of` says that the valid clock was asked for by name.
    """

    request: SearchRequest
    scope: ScopeIds
    context: Mapping[str, str]
    valid_at: str
    position: int | None = None
    as_of: bool = False

    @property
    def is_of_past(self) -> bool:
        """Report whether another moment than the present was asked for, on either clock."""
        return self.as_of or self.position is not None


class CorrectionQuestion(Struct, frozen=True, kw_only=True):
    """A search for corrections as it is answered: of the request, what is None is as the policy says at `asked_at`."""

    request: SearchCorrectionsRequest
    scope: ScopeIds
    k: int
    min_score: float | None
    asked_at: str


class Interval(Struct, frozen=True):
    """When a revision holds in the world: from `start` on, up to before `end`; None is without a bound."""

    start: str | None
    end: str | None


def untrusted(values: Values, question: Question) -> str | None:
    """Return why a revision is not trusted enough; None if it is."""
    if "revoked" in (values.trust, values.floor):
        return "trust in it, or in what it rests on, is revoked"
    least = question.request.min_trust
    return None if values.trust in TIERS[least] else f"it is {values.trust}, and {least} was asked for"


def unfit(kind: str, text: RevisionText, holds: Interval, question: Question) -> str | None:
    """Return which filter of a question leaves a revision out, and why; None if it passes them all."""
    request = question.request
    if request.kinds and kind not in request.kinds:
        return f"its kind is {kind}"
    if not set(request.tags) <= set(text.tags):
        return "it lacks a tag that was asked for"
    return (
        _unsure(text.confidence, request.min_confidence)
        or _outside(holds, question.valid_at)
        or _elsewhere(text, question)
    )


def _unsure(confidence: str | None, least: str | None) -> str | None:
    if least is None:
        return None
    if confidence is None:
        return "it says no confidence"
    return None if Decimal(confidence) >= Decimal(least) else f"its confidence is {confidence}, below {least}"


def _outside(holds: Interval, moment: str) -> str | None:
    if holds.start is not None and moment < holds.start:
        return f"it holds only from {holds.start} on"
    if holds.end is not None and moment >= holds.end:
        return f"it held only until {holds.end}"
    return None


def _elsewhere(text: RevisionText, question: Question) -> str | None:
    verdict = applicability.judge(
        applicability.read(text.applies), context=question.context, query=question.request.query
    )
    return None if verdict.applicable else f"not applicable: {verdict.reason}"
