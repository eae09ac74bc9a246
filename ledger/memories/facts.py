"""What can have happened to a lineage: the halves of its events that stay (EVENTS.md, FORMAT.md §3.2)."""

from ledger.message import Edge, Facts, Move, Position, ScopeIds, Standing


class MemoryRemembered(Facts, frozen=True, kw_only=True):
    """A revision without a predecessor became the head."""

    content: str
    edges: tuple[Edge, ...]
    kind: str
    moves: tuple[Move, ...]
    origin: str
    scope: ScopeIds
    standing: Standing
    supports: tuple[str, ...]
    visibility: str


class RevisionCorrected(Facts, frozen=True, kw_only=True):
    """A revision was replaced, in its own lineage, by one whose meaning is right."""

    content: str
    edges: tuple[Edge, ...]
    kind: str
    moves: tuple[Move, ...]
    origin: str
    scope: ScopeIds
    standing: Standing
    supports: tuple[str, ...]
    trace: str | None
    visibility: str


class MemoryRetired(Facts, frozen=True, kw_only=True):
    """Knowledge was withdrawn. `cause` is person, prune, correction or import."""

    cause: str
    moves: tuple[Move, ...]
    standing: Standing


class MemoryRestored(Facts, frozen=True, kw_only=True):
    """A withdrawal was undone; `undoes` is its position."""

    moves: tuple[Move, ...]
    standing: Standing
    undoes: Position


class RevisionRevoked(Facts, frozen=True, kw_only=True):
    """Trust in a revision was withdrawn."""

    moves: tuple[Move, ...]
    standing: Standing


class LineageLinked(Facts, frozen=True, kw_only=True):
    """One lineage supersedes another. Written to both; only the one with role `newer` is projected."""

    edges: tuple[Edge, ...]
    role: str
    standing: Standing


class LineageUnlinked(Facts, frozen=True, kw_only=True):
    """A link was withdrawn. Written to both, as when it was stated."""

    edges: tuple[Edge, ...]
    role: str
    standing: Standing


class RevisionPublished(Facts, frozen=True, kw_only=True):
    """A held revision became active. The edge `proposes` is withdrawn, and `supersedes` stated, where it had one."""

    edges: tuple[Edge, ...]
    moves: tuple[Move, ...]
    standing: Standing


class RevisionSuperseded(Facts, frozen=True, kw_only=True):
    """A revision was replaced by revisions of other lineages (merge, split)."""

    edges: tuple[Edge, ...]
    moves: tuple[Move, ...]
    standing: Standing


class MetadataPatched(Facts, frozen=True, kw_only=True):
    """A revision's metadata had always been wrong; `since` is the position of what it replaces."""

    revision: str
    since: Position
    standing: Standing


class MemoryForgotten(Facts, frozen=True, kw_only=True):
    """A revision was withdrawn from view. `cause` is person, prune, correction or import."""

    cause: str
    moves: tuple[Move, ...]
    standing: Standing


class RevisionContested(Facts, frozen=True, kw_only=True):
    """Two revisions of one lineage contradict each other; neither holds until one is promoted."""

    edges: tuple[Edge, ...]
    moves: tuple[Move, ...]
    standing: Standing


class RevisionPromoted(Facts, frozen=True, kw_only=True):
    """A contested revision became active; its partners were rejected, and the head, if it had one, superseded."""

    edges: tuple[Edge, ...]
    moves: tuple[Move, ...]
    standing: Standing


class RevisionRejected(Facts, frozen=True, kw_only=True):
    """A held or contested revision was rejected."""

    edges: tuple[Edge, ...]
    moves: tuple[Move, ...]
    standing: Standing


class RevisionAdmitted(Facts, frozen=True, kw_only=True):
    """Somebody vouched for a revision: it is verified."""

    moves: tuple[Move, ...]
    standing: Standing


class LearningInvalidated(Facts, frozen=True, kw_only=True):
    """An unverified learning was retired because the correction named here contradicts it."""

    correction: str
    moves: tuple[Move, ...]
    standing: Standing


class PayloadErased(Facts, frozen=True, kw_only=True):
    """Payloads were destroyed: those at `positions`, in this stream or another. Their revisions end as `erased`."""

    erasure: str
    moves: tuple[Move, ...]
    positions: tuple[Position, ...]
    standing: Standing


Birth = MemoryRemembered | RevisionCorrected

LineageFacts = (
    MemoryRemembered
    | RevisionCorrected
    | RevisionPublished
    | RevisionSuperseded
    | MetadataPatched
    | MemoryForgotten
    | MemoryRetired
    | MemoryRestored
    | RevisionContested
    | RevisionPromoted
    | RevisionRejected
    | RevisionAdmitted
    | RevisionRevoked
    | LearningInvalidated
    | LineageLinked
    | LineageUnlinked
    | PayloadErased
)
