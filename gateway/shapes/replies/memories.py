"""Memories, lists of them, and what they rest on."""

from typing import Any

from gateway.shapes.replies.base import Reply


class RevisionAct(Reply, frozen=True, kw_only=True):
    """What one event did to one revision. `from_state` is None if it brought it into being.

    `conflict_with` is what it was found to contradict, `expected_active` the head that it replaced when it won,
    `retired_by` the correction for which it was retired, `similarity` how near the two are: a cosine.
    """

    seq: int
    at: str
    action: str
    actor: str
    reason: str | None
    from_state: str | None
    to_state: str
    from_trust: str | None
    to_trust: str
    expected_active: str | None
    conflict_with: str | None
    retired_by: str | None = None
    similarity: str | None = None


class Revision(Reply, frozen=True, kw_only=True):
    """One version of a memory as it stands at the position of the answer.

    `memory_id` is the caller's name where one was given. `content` is None once it has been withdrawn from view.
    `recorded_at` and `superseded_at` are the ledger's time, `valid_from` and `valid_to` the world's. `retired_by` is
    the correction that a retired learning contradicted, `evidence` the hashes of what it rests on: its own, and that
    with which others vouched for it.
    """

    memory_id: str
    revision_id: str
    version: int
    state: str
    trust: str
    kind: str
    content: str | None
    tags: tuple[str, ...]
    scope: dict[str, str]
    visibility: str
    subjects: tuple[str, ...]
    stream_version: int
    origin: str
    confidence: str | None
    valid_from: str | None
    valid_to: str | None
    review_by: str | None
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]
    recorded_at: str
    superseded_at: str | None
    position: int
    content_hash: str | None
    applies: dict[str, Any] | None  # Any: the caller's own conditions, as JSON
    institutional: dict[str, Any] | None  # Any: as above
    provenance: dict[str, Any]  # Any: sources and run, and in `explain` the successor
    evidence: tuple[str, ...]
    depends_on: tuple[str, ...]
    retired_by: str | None = None


class ListedRevision(Revision, frozen=True, kw_only=True):
    """A revision in the list of one memory, with what happened to it, oldest first."""

    audit: tuple[RevisionAct, ...]


class MemoryList(Reply, frozen=True, kw_only=True):
    """A page of memories as they stood at `position`, oldest first.

    `next_cursor` gives the next page as of the same position, None on the last one; `truncated` says that the page ends
    before its limit because its texts were too long.
    """

    items: tuple[Revision, ...]
    next_cursor: str | None
    truncated: bool
    position: int
    incarnation: int


class Evidence(Reply, frozen=True, kw_only=True):
    """An object of evidence: `stored` says whether its bytes are kept here, else `uri` says where they lie.

    Of one that was `erased` neither are there, nor is its name.

    `size` is in bytes, 0 where they are not kept; `hash` is `b3:` and their BLAKE3 in hex. `added` is the position at
    which it was added, None if that was only tried.
    """

    hash: str
    size: int
    stored: bool
    media_type: str | None
    name: str | None
    uri: str | None
    added_at: str | None
    added: int | None
    position: int
    incarnation: int
    erased: bool = False


class PolicySetting(Reply, frozen=True, kw_only=True):
    """One setting: `value` is a text or a list of names, `of` is project or tenant. `default` says it was not set."""

    name: str
    value: str | tuple[str, ...]
    default: bool
    of: str


class Policy(Reply, frozen=True, kw_only=True):
    """Every setting of a project and its tenant."""

    items: tuple[PolicySetting, ...]
    position: int
    incarnation: int

    @property
    def values(self) -> dict[str, str | tuple[str, ...]]:
        """Return the values by their settings' names."""
        return {item.name: item.value for item in self.items}
