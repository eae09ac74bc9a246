"""What a search is remembered by."""

from typing import Any

from gateway.shapes.replies.base import Reply
from gateway.shapes.replies.searches import Excluded


class TraceSummary(Reply, frozen=True, kw_only=True):
    """One retrieval in a line: who asked what, for which session, turn and run, and how many were chosen and left out.

    `kind` is dispatch where the answer went into a run, else search; `about` says what was searched, memories or
    corrections. `query` is None where it repeats a text that was forgotten since.
    """

    trace_id: str
    kind: str
    at: str
    actor: str
    session: str | None
    turn: int | None
    run: str | None
    query: str | None
    hits: int
    excluded: int
    empty_reason: str | None
    position: int
    about: str = "memories"


class TraceList(Reply, frozen=True, kw_only=True):
    """Traces, newest first. `next_cursor` goes on with the older ones; `warnings` name those that are not sound."""

    items: tuple[TraceSummary, ...]
    next_cursor: str | None
    truncated: bool
    warnings: tuple[str, ...]
    position: int
    incarnation: int


class TracedHit(Reply, frozen=True, kw_only=True):
    """A revision that a retrieval chose, at its rank, and why."""

    rank: int
    memory_id: str
    revision_id: str
    score: float
    why: str


class TracedCorrection(Reply, frozen=True, kw_only=True):
    """A correction that a retrieval chose, at its rank, or that was near and left out, without one; and why."""

    rank: int | None
    correction_id: str
    score: float
    why: str


class SearchTrace(Reply, frozen=True, kw_only=True):
    """What one retrieval saw, chose and left out; of texts only the question.

    `filters` is what was asked for beside it; `embedder` None where only words were compared. `position` is the
    ledger's at the time. `excluded` are the nearest of the `excluded_total` that were left out; `withheld` counts those
    of both that the actor does not see. An event that rests on the trace names its `digest`.

    A trace that is `about` corrections has `corrections` and `excluded_corrections` in place of `hits` and `excluded`.
    """

    trace_id: str
    digest: str
    kind: str
    at: str
    actor: str
    project: str
    scope: dict[str, str]
    session: str | None
    turn: int | None
    run: str | None
    query: str | None
    k: int
    filters: dict[str, Any]  # Any: JSON, by the request's names
    valid_at: str
    at_position: int | None
    embedder: str | None
    hits: tuple[TracedHit, ...]
    excluded: tuple[Excluded, ...]
    excluded_total: int
    withheld: int
    warnings: tuple[str, ...]
    empty_reason: str | None
    position: int
    incarnation: int
    about: str = "memories"
    corrections: tuple[TracedCorrection, ...] = ()
    excluded_corrections: tuple[TracedCorrection, ...] = ()


class TraceVerdict(Reply, frozen=True, kw_only=True):
    """What one retrieval made of a revision or a correction: `outcome` is chosen, excluded or not_seen.

    `reason` says why.
    """

    trace_id: str
    kind: str
    at: str
    position: int
    outcome: str
    rank: int | None
    score: float | None
    reason: str
