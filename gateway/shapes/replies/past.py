"""What was so, and what happened: acts, versions, differences."""

from typing import Any

import msgspec

from gateway.shapes.replies.base import Reply
from gateway.shapes.replies.lineages import LineageEdge
from gateway.shapes.replies.memories import Revision
from gateway.shapes.replies.traces import TraceVerdict


class AuditEntry(Reply, frozen=True, kw_only=True):
    """One event of a lineage as an auditor reads it.

    `retired_by` is the correction for which it retired a learning, `similarity` how near the two are: a cosine.
    `evidence` are the hashes of what somebody vouched with.
    """

    seq: int
    type: str
    at: str
    actor: str
    trace_id: str
    reason: str | None
    moves: tuple[dict[str, str | None], ...]  # revision, from_state, to_state, from_trust, to_trust
    patch: dict[str, Any] | None = None  # Any: of a patch the revision, and what changed of its metadata, before, after
    retired_by: str | None = None
    similarity: str | None = None
    evidence: tuple[str, ...] = ()


class Explanation(Revision, frozen=True, kw_only=True):
    """A revision with the story of its lineage: `head` is None while the lineage has no head.

    `at_position` is the position of the past that it was asked for, None for the present. `in_trace` is what one
    retrieval made of it, if one was named.
    """

    head: str | None
    root: str
    audit: tuple[AuditEntry, ...]
    at_position: int | None = None
    in_trace: TraceVerdict | None = None


class Change(Reply, frozen=True, kw_only=True, omit_defaults=True):
    """One field before and after. Of a content, `diff` holds the hunks of a unified diff, if both sides may be read."""

    before: Any  # Any: the field's own type
    after: Any  # Any: as above
    diff: str | None = None


class MetadataChange(Reply, frozen=True, kw_only=True):
    """One event that mended a revision's metadata: where, when, by whom and why, and what it changed."""

    seq: int
    at: str
    actor: str
    reason: str | None
    patch: dict[str, Change]


class PatchedRevision(Revision, frozen=True, kw_only=True):
    """A revision, and what it changed when it was recorded, field by field, of the revision `compared_with`.

    That is the one of its own memory that it superseded or was held to replace, else one of another memory, else the
    version before. The first has none: both are None. `patched` is what was mended of its own metadata since.
    """

    compared_with: str | None
    patch: dict[str, Change] | None
    patched: tuple[MetadataChange, ...]


class RevisionRef(Reply, frozen=True, kw_only=True):
    """Which revision is compared, and where it stands."""

    memory_id: str
    revision_id: str
    version: int
    state: str
    trust: str
    recorded_at: str
    position: int


class RevisionDiff(Reply, frozen=True, kw_only=True):
    """What differs between two revisions, field by field; nothing if they say the same."""

    before: RevisionRef
    after: RevisionRef
    patch: dict[str, Change]


class MemoryThen(Reply, frozen=True, kw_only=True):
    """A memory at a position: its head, or None, and the revision that stood for it: the head, else the latest."""

    head: str | None
    revision_id: str
    version: int
    state: str
    trust: str
    content: str | None


class MemoryDiff(Reply, frozen=True, kw_only=True):
    """What happened to one memory between two positions. `before` is None if it was begun in between.

    `acts` are its events' words in order, the first of a new memory `begun`; `linked` and `unlinked` are the links with
    other memories that hold at the second position and not at the first, and the other way round.
    """

    memory_id: str
    correction_id: None = None
    acts: tuple[str, ...]
    before: MemoryThen | None
    after: MemoryThen
    patch: dict[str, Change]
    linked: tuple["LineageEdge", ...]
    unlinked: tuple["LineageEdge", ...]


class CorrectionThen(Reply, frozen=True, kw_only=True):
    """A correction at a position: its state, and what it says; its values are None where they repeat what is forgotten.

    `memory` is the revision that it is about, `superseded_by` the correction that took its place by then.
    """

    state: str
    superseded_by: str | None
    agent: str
    field: str | None
    entity_key: str | None
    original_value: str | None
    corrected_value: str | None
    memory: str | None


class CorrectionDiff(Reply, frozen=True, kw_only=True):
    """What happened to one correction between two positions. `before` is None if it was recorded in between.

    `acts` are of recorded, confirmed, superseded and revoked, in order. The fields are those of `MemoryDiff`, so that
    the lines of a list have one form; what a correction says never changes, so `patch` is empty, as are its links.
    """

    memory_id: None = None
    correction_id: str
    acts: tuple[str, ...]
    before: CorrectionThen | None
    after: CorrectionThen
    patch: dict[str, Change] = msgspec.field(default_factory=dict[str, Change])
    linked: tuple["LineageEdge", ...] = ()
    unlinked: tuple["LineageEdge", ...] = ()


class History(Reply, frozen=True, kw_only=True):
    """Every revision of one memory, in version order."""

    memory_id: str
    items: tuple[Revision, ...]
    position: int
    incarnation: int
