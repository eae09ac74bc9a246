"""What a write did, or would do."""

from gateway.shapes.replies.base import Reply


class EventRef(Reply, frozen=True, kw_only=True):
    """One event of a receipt."""

    seq: int
    type: str


class Receipt(Reply, frozen=True, kw_only=True):
    """What one write did. `position` is that of the append's last event; `trace_id` names the append.

    `state` and `trust` are what the write left the revision with; None where it moved none.
    """

    outcome: str
    replayed: bool
    position: int
    incarnation: int
    events: tuple[EventRef, ...]
    trace_id: str
    warnings: tuple[str, ...] = ()
    memory_id: str | None = None
    revision_id: str | None = None
    superseded: tuple[str, ...] | None = None
    correction_id: str | None = None
    invalidated: tuple[str, ...] | None = None
    successors: tuple[str, ...] | None = None  # all that were brought into being, where that is more than one
    state: str | None = None
    trust: str | None = None


class RevisionReceipt(Receipt, frozen=True, kw_only=True):
    """The receipt of a write that is about one revision of a memory, and so has both."""

    memory_id: str = ""  # always given; a default, because the base has one
    revision_id: str = ""


class CorrectionReceipt(Receipt, frozen=True, kw_only=True):
    """The receipt of a write that is about a correction."""

    correction_id: str = ""  # always given; a default, because the base has one


class Impact(Reply, frozen=True, kw_only=True):
    """What a revocation would take with it: the records that would lose their trust, and the runs that used them."""

    revisions: tuple[str, ...]
    candidates: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()


class Pruned(Reply, frozen=True, kw_only=True):
    """What a pruning withdrew, or in a dry run would: revisions that held are retired, invalidated ones forgotten."""

    retired: tuple[str, ...]
    forgotten: tuple[str, ...]
    position: int
    incarnation: int
