"""Corrections as they are read, found, counted and rendered."""

from gateway.shapes.replies.base import Reply
from gateway.shapes.replies.past import AuditEntry, Change
from gateway.shapes.replies.traces import TraceVerdict


class CorrectionList(Reply, frozen=True, kw_only=True):
    """A page of corrections as they stood at `position`, oldest first; else as `MemoryList`."""

    items: tuple["Correction", ...]
    next_cursor: str | None
    truncated: bool
    position: int
    incarnation: int


class Correction(Reply, frozen=True, kw_only=True):
    """What an agent put out, what was right, and why, as it stands at the position of the answer.

    `corrected_value` is empty where the field should be empty. Of one that was `erased` both values are None, and so is
    whatever else it said. Of one that is `forgotten`, since the revision that it is about was, or what came of that,
    values, reason, input and tags are not told. `memory` is the revision that it is about, if any.
    `state` is unconfirmed (an agent reported it), active, superseded or revoked.
    """

    correction_id: str
    state: str
    agent: str
    field: str | None
    entity_key: str | None
    original_value: str | None
    corrected_value: str | None
    reason: str | None
    original_input: str | None
    tags: tuple[str, ...]
    run: str | None
    session: str | None
    user: str | None
    visibility: str
    memory: str | None
    origin: str
    created_at: str
    superseded_by: str | None
    contradiction: str
    stream_version: int
    position: int
    erased: bool = False
    forgotten: bool = False


class ExplainedCorrection(Correction, frozen=True, kw_only=True):
    """A correction with the story of it: who recorded, confirmed, superseded or revoked it, when, and why.

    `at_position` is the position of the past that it was asked for, None for the present. `in_trace` is what one
    retrieval made of it, if one was named.
    """

    audit: tuple[AuditEntry, ...]
    at_position: int | None = None
    in_trace: TraceVerdict | None = None


class PatchedCorrection(Correction, frozen=True, kw_only=True):
    """A correction, and what it says otherwise than the one `compared_with`, which it took the place of, by field.

    The first of a chain has none: both are None.
    """

    compared_with: str | None
    patch: dict[str, Change] | None


class CorrectionHistory(Reply, frozen=True, kw_only=True):
    """The corrections that took each other's place, oldest first."""

    correction_id: str
    items: tuple[Correction, ...]
    position: int
    incarnation: int


class CorrectionHit(Correction, frozen=True, kw_only=True):
    """A correction that was found near, and that the ledger confirmed. `score` is the cosine, −1 to 1."""

    rank: int
    score: float
    why: str


class CorrectionSearch(Reply, frozen=True, kw_only=True):
    """What a search for corrections found. `empty_reason` is None if there are hits.

    `trace_id` names what was recorded of it, None where nothing could be.
    """

    hits: tuple[CorrectionHit, ...]
    warnings: tuple[str, ...]
    empty_reason: str | None
    position: int
    incarnation: int
    trace_id: str | None = None


class Rendered(Reply, frozen=True, kw_only=True):
    """A block for a prompt, and what is in it; `truncated` says that something did not fit its budget.

    `text` is empty if nothing was found, or if it `failed`, which then is the error's code: a run goes on without it.
    `trace_ids` name what was recorded of its searches: that for corrections first, then that for learnings.
    """

    text: str
    correction_ids: tuple[str, ...]
    memory_ids: tuple[str, ...]
    truncated: bool
    warnings: tuple[str, ...]
    failed: str | None
    trace_ids: tuple[str, ...] = ()


class CorrectionStats(Reply, frozen=True, kw_only=True):
    """How many corrections there are, the most frequent first; what was not asked for is None.

    One without an entity key or a field is counted only in `total`. A period is YYYY-MM-DD, YYYY-MM or YYYY, in UTC.
    """

    total: int
    by_entity_key: dict[str, int]
    by_field: dict[str, int]
    by_agent: dict[str, int] | None = None
    by_period: dict[str, int] | None = None


class EvalCase(Reply, frozen=True, kw_only=True):
    """One regression case: given `input`, what an agent puts out should contain `expected`."""

    input: str
    expected: str
    field: str | None
    correction_id: str
