"""Memories: a lineage of revisions, of which at most one is the head.

Two axes, never mixed: *state* (active, superseded, retired) says what became of a revision, *trust* (unverified,
verified, revoked) how far it may be relied on. A lineage without a live revision is headless. Links say that one
lineage supersedes another, and touch neither's states.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

import msgspec
from msgspec import Struct

from ledger.decider import Decider
from ledger.errors import refuse
from ledger.message import HEADLESS, Edge, Event, Facts, Move, Payload, Position, Reason, ScopeIds, Standing, Values

FRESH = Values("active", "unverified", "verified")


# ---------------------------------------------------------------- commands


class Command(Struct, frozen=True, kw_only=True):
    """A wish. `first` is the place that its first event takes in the append: −1−i for the i-th."""

    first: int = -1
    reason: str | None = None


class Remember(Command, frozen=True, kw_only=True):
    """Begin a lineage, or give a headless one a new head. Everything but the text is already an id or an enum."""

    revision: str
    content: str
    kind: str
    origin: str
    scope: ScopeIds
    visibility: str
    text: "RevisionText"


class Correct(Command, frozen=True, kw_only=True):
    """Replace a revision by one whose meaning is right."""

    revision: str
    successor: str
    content: str
    origin: str
    text: "RevisionText"


class Retire(Command, frozen=True, kw_only=True):
    """Withdraw knowledge that no longer holds."""

    revision: str
    cause: str = "person"


class Revoke(Command, frozen=True, kw_only=True):
    """Withdraw trust, whatever the revision's state."""

    revision: str


class Restore(Command, frozen=True, kw_only=True):
    """Undo the latest retirement or revocation of a revision."""

    revision: str


class StateLink(Command, frozen=True, kw_only=True):
    """State that lineage `newer` supersedes lineage `older`; `role` is the part that this lineage plays."""

    newer: str
    older: str
    role: str


class WithdrawLink(StateLink, frozen=True, kw_only=True):
    """Withdraw a link that was stated."""


# ---------------------------------------------------------------- events


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


class Provenance(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a revision came from, in the caller's words: attribution, never proof."""

    run: str | None
    session: str | None
    sources: tuple[str, ...]


class RevisionText(Payload, frozen=True, kw_only=True):
    """Everything that a revision says. `applies` and `institutional` are JCS text, `recorded_at` an import's."""

    applies: str | None
    confidence: str | None
    content: str
    evidence: tuple[str, ...]
    institutional: str | None
    provenance: Provenance
    reason: str | None
    recorded_at: str | None
    review_by: str | None
    subjects: tuple[str, ...]
    tags: tuple[str, ...]
    valid_from: str | None
    valid_to: str | None

    @classmethod
    def plain(
        cls, content: str, *, reason: str | None = None, sources: tuple[str, ...] = (), valid_from: str | None = None
    ) -> "RevisionText":
        """Return what a revision says of which no more is known than this."""
        return cls(
            applies=None,
            confidence=None,
            content=content,
            evidence=(),
            institutional=None,
            provenance=Provenance(run=None, session=None, sources=sources),
            reason=reason,
            recorded_at=None,
            review_by=None,
            subjects=(),
            tags=(),
            valid_from=valid_from,
            valid_to=None,
        )


# ---------------------------------------------------------------- state


class Withdrawal(Struct, frozen=True):
    """A retirement or revocation that `restore` may undo: where it was, which act, and what stood before it."""

    position: int
    act: str
    before: Values


class RevisionState(Struct, frozen=True, kw_only=True):
    """One revision. `since` is where its present values began; `withdrawals` are not yet undone, oldest first."""

    revision: str
    version: int
    values: Values
    since: int
    content_seq: int
    meta_seq: int
    content: str
    kind: str
    origin: str
    scope: ScopeIds
    visibility: str
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    withdrawals: tuple[Withdrawal, ...] = ()


class LineageState(Struct, frozen=True, kw_only=True):
    """A whole lineage. `links` maps (newer, older) to the position, in this stream, that stated it."""

    version: int = 0
    standing: Standing = HEADLESS
    latest: str | None = None
    revisions: Mapping[str, RevisionState] = {}
    links: Mapping[tuple[str, str], int] = {}

    @property
    def head(self) -> str | None:
        """Return the live revision, or None while the lineage is headless."""
        return self.standing.head


# ---------------------------------------------------------------- decide


def decide(state: LineageState, command: Command) -> Sequence[Event]:
    """Return the events that a command makes of a lineage, or refuse it."""
    match command:
        case Remember():
            return [_remember(state, command)]
        case Correct():
            return [_correct(state, command)]
        case Retire():
            return [_retire(state, command)]
        case Revoke():
            return [_revoke(state, command)]
        case Restore():
            return [_restore(state, command)]
        case WithdrawLink():
            return [_withdraw_link(state, command)]
        case StateLink():
            return [_state_link(state, command)]
        case _:
            raise TypeError(f"{type(command).__name__} is no command of a lineage")


def _remember(state: LineageState, command: Remember) -> Event:
    if state.head is not None:
        refuse(
            "STALE_PREDECESSOR",
            "A new revision without a predecessor was to begin this memory anew, and the memory has a head. Correct "
            "that head instead (`corrigenda memories correct`).",
            head=state.head,
        )
    if state.latest is not None:
        _check_continuity(state.revisions[state.latest], command)
    born = Move(after=FRESH, before=None, revision=command.revision, since=None, version=_next_version(state))
    facts = MemoryRemembered(
        content=command.content,
        edges=(),
        kind=command.kind,
        moves=(born,),
        origin=command.origin,
        scope=command.scope,
        standing=_standing(command.revision, command.first, command.first, FRESH),
        supports=(),
        visibility=command.visibility,
    )
    return Event(facts=facts, payload=command.text, position=command.first)


def _check_continuity(latest: RevisionState, command: Remember) -> None:
    if (latest.kind, latest.scope.project) != (command.kind, command.scope.project):
        refuse(
            "INVALID_INPUT",
            f"A memory keeps its kind and project for life: this one is of kind {latest.kind}. Give that kind, or "
            "remember the text under another id.",
        )


def _correct(state: LineageState, command: Correct) -> Event:
    old = _live(state, command.revision, "corrected")
    if old.content == command.content:
        refuse("NO_CHANGE", "The correction says what the memory says already; nothing was stored.")
    superseded = _move(old, Values("superseded", old.values.trust, old.values.floor))
    born = Move(after=FRESH, before=None, revision=command.successor, since=None, version=_next_version(state))
    facts = RevisionCorrected(
        content=command.content,
        edges=(Edge("supersedes", command.successor, command.revision, None),),
        kind=old.kind,
        moves=(superseded, born),
        origin=command.origin,
        scope=old.scope,
        standing=_standing(command.successor, command.first, command.first, FRESH),
        supports=(),
        trace=None,
        visibility=old.visibility,
    )
    return Event(facts=facts, payload=command.text, position=command.first)


def _retire(state: LineageState, command: Retire) -> Event:
    old = _live(state, command.revision, "retired")
    moves = (_move(old, Values("retired", old.values.trust, old.values.floor)),)
    facts = MemoryRetired(cause=command.cause, moves=moves, standing=HEADLESS)
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def _revoke(state: LineageState, command: Revoke) -> Event:
    old = _known(state, command.revision)
    if old.values.trust == "revoked":
        refuse("MEMORY_REVOKED", "This revision is revoked already.", revision_id=command.revision)
    moves = (_move(old, Values(old.values.state, "revoked", old.values.floor)),)
    standing = HEADLESS if state.head == command.revision else state.standing
    return Event(
        facts=RevisionRevoked(moves=moves, standing=standing),
        payload=Reason(reason=command.reason),
        position=command.first,
    )


def _restore(state: LineageState, command: Restore) -> Event:
    old = _known(state, command.revision)
    if not old.withdrawals:
        refuse(
            "INVALID_TRANSITION",
            "Nothing was withdrawn of this revision, so there is nothing to restore.",
            state=old.values.state,
            allowed=_allowed(old),
        )
    undone = old.withdrawals[-1]
    back = Values(undone.before.state, undone.before.trust, old.values.floor)
    standing = state.standing
    if back.is_live:
        if state.head is not None:
            refuse(
                "EXPECTED_ACTIVE_MISMATCH",
                f"Restoring this revision would give its memory a second head beside {state.head}. Retire that first.",
                head=state.head,
            )
        standing = _standing(old.revision, old.content_seq, old.meta_seq, back)
    facts = MemoryRestored(moves=(_move(old, back),), standing=standing, undoes=undone.position)
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def _state_link(state: LineageState, command: StateLink) -> Event:
    if (command.newer, command.older) in state.links:
        refuse("NO_CHANGE", "This link is stated already; nothing was stored.")
    edge = Edge("supersedes", command.newer, command.older, None)
    facts = LineageLinked(edges=(edge,), role=command.role, standing=state.standing)
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def _withdraw_link(state: LineageState, command: WithdrawLink) -> Event:
    since = state.links.get((command.newer, command.older))
    if since is None:
        refuse("MEMORY_NOT_FOUND", "No such link is stated, so none can be withdrawn.")
    edge = Edge("supersedes", command.newer, command.older, since)
    facts = LineageUnlinked(edges=(edge,), role=command.role, standing=state.standing)
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def _known(state: LineageState, revision: str) -> RevisionState:
    found = state.revisions.get(revision)
    if found is None:
        refuse("MEMORY_NOT_FOUND", "There is no such revision in this memory. Look at its history.")
    return found


def _live(state: LineageState, revision: str, wish: str) -> RevisionState:
    """Return the revision if it is active and trusted, else refuse with what became of it."""
    found = _known(state, revision)
    match found.values.state:
        case "superseded":
            refuse(
                "MEMORY_ALREADY_SUPERSEDED",
                f"Only a head can be {wish}, and this revision was superseded by {', '.join(found.superseded_by)}. "
                f"Act on the memory's head ({state.head or 'it has none now'}) if that is still what you want.",
                superseded_by=list(found.superseded_by),
                head=state.head,
            )
        case "retired" | "forgotten" | "erased" as kind:
            refuse(
                "MEMORY_DELETED",
                f"Only a head can be {wish}, and this revision is {kind}. Restore it first, or remember the text anew.",
                kind=kind,
            )
        case "active":
            pass
        case other:
            refuse(
                "INVALID_TRANSITION",
                f"Only an active revision can be {wish}, and this one is {other}.",
                state=other,
                allowed=_allowed(found),
            )
    if found.values.trust == "revoked":
        refuse(
            "MEMORY_REVOKED",
            f"Only a trusted head can be {wish}, and this revision is revoked. Restore it first, or remember the "
            "right text under the same id.",
        )
    return found


def _allowed(revision: RevisionState) -> list[str]:
    """Return the acts that the revision's present values allow."""
    acts = ["correct", "retire"] if revision.values.is_live else []
    if revision.values.trust != "revoked":
        acts.append("revoke")
    return [*acts, "restore"] if revision.withdrawals else acts


def _move(old: RevisionState, after: Values) -> Move:
    return Move(after=after, before=old.values, revision=old.revision, since=old.since, version=old.version)


def _standing(head: str, content_seq: int, meta_seq: int, values: Values) -> Standing:
    return Standing(content_seq=content_seq, floor=values.floor, head=head, meta_seq=meta_seq, trust=values.trust)


def _next_version(state: LineageState) -> int:
    return len(state.revisions) + 1


# ---------------------------------------------------------------- evolve

LineageFacts = (
    MemoryRemembered
    | RevisionCorrected
    | MemoryRetired
    | MemoryRestored
    | RevisionRevoked
    | LineageLinked
    | LineageUnlinked
)


def evolve(state: LineageState, event: Event) -> LineageState:
    """Return the lineage after an event. History is never refused."""
    facts = _lineage_facts(event.facts)
    match facts:
        case MemoryRemembered() | RevisionCorrected():
            revisions = _born(state.revisions, facts, event.position)
            latest, links = facts.moves[-1].revision, state.links
        case MemoryRetired():
            revisions = _withdrawn(state.revisions, facts.moves, event.position, "retire")
            latest, links = state.latest, state.links
        case RevisionRevoked():
            revisions = _withdrawn(state.revisions, facts.moves, event.position, "revoke")
            latest, links = state.latest, state.links
        case MemoryRestored():
            revisions = _restored(state.revisions, facts.moves, event.position)
            latest, links = state.latest, state.links
        case LineageLinked():
            links = {**state.links, **{(edge.newer, edge.older): event.position for edge in facts.edges}}
            revisions, latest = state.revisions, state.latest
        case LineageUnlinked():
            gone = {(edge.newer, edge.older) for edge in facts.edges}
            links = {pair: position for pair, position in state.links.items() if pair not in gone}
            revisions, latest = state.revisions, state.latest
        case _:
            assert_never(facts)
    return LineageState(
        version=state.version + 1, standing=facts.standing, latest=latest, revisions=revisions, links=links
    )


def _lineage_facts(facts: Facts) -> LineageFacts:
    if not isinstance(facts, LineageFacts):
        raise TypeError(f"{type(facts).__name__} is no event of a lineage")
    return facts


def _born(
    revisions: Mapping[str, RevisionState], facts: MemoryRemembered | RevisionCorrected, position: int
) -> Mapping[str, RevisionState]:
    changed = dict(revisions)
    *demoted, born = facts.moves
    for move in demoted:
        changed[move.revision] = msgspec.structs.replace(
            changed[move.revision], values=move.after, since=position, superseded_by=(born.revision,)
        )
    changed[born.revision] = born_revision(facts, position)
    return changed


def born_revision(facts: MemoryRemembered | RevisionCorrected, position: int) -> RevisionState:
    """Return the revision that an event at `position` brought into being, as it stood then."""
    born = facts.moves[-1]
    return RevisionState(
        revision=born.revision,
        version=born.version,
        values=born.after,
        since=position,
        content_seq=position,
        meta_seq=position,
        content=facts.content,
        kind=facts.kind,
        origin=facts.origin,
        scope=facts.scope,
        visibility=facts.visibility,
        supersedes=tuple(edge.older for edge in facts.edges if edge.kind == "supersedes"),
    )


def _withdrawn(
    revisions: Mapping[str, RevisionState], moves: Sequence[Move], position: int, act: str
) -> Mapping[str, RevisionState]:
    changed = dict(revisions)
    for move in moves:
        old = changed[move.revision]
        undo = (*old.withdrawals, Withdrawal(position, act, old.values))
        changed[move.revision] = msgspec.structs.replace(old, values=move.after, since=position, withdrawals=undo)
    return changed


def _restored(
    revisions: Mapping[str, RevisionState], moves: Sequence[Move], position: int
) -> Mapping[str, RevisionState]:
    changed = dict(revisions)
    for move in moves:
        old = changed[move.revision]
        changed[move.revision] = msgspec.structs.replace(
            old, values=move.after, since=position, withdrawals=old.withdrawals[:-1]
        )
    return changed


LINEAGE: Decider[Command, Event, LineageState] = Decider(LineageState(), decide, evolve)
