"""What each event makes of a lineage. History is never refused."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ledger.memories.facts import (
    Birth,
    LearningInvalidated,
    LineageFacts,
    LineageLinked,
    LineageUnlinked,
    MemoryForgotten,
    MemoryRemembered,
    MemoryRestored,
    MemoryRetired,
    MetadataPatched,
    PayloadErased,
    RevisionCorrected,
    RevisionRevoked,
)
from ledger.memories.state import LineageState, RevisionState, Withdrawal
from ledger.message import Edge, Event, Move

_WITHDRAWS: dict[type, str] = {
    MemoryForgotten: "forget",
    MemoryRetired: "retire",
    LearningInvalidated: "invalidate",
    RevisionRevoked: "revoke",
}

Pairs = Mapping[tuple[str, str], int]
Revisions = Mapping[str, RevisionState]


def evolve(state: LineageState, event: Event) -> LineageState:
    """Return the lineage after an event."""
    facts, position = event.facts, event.position
    if not isinstance(facts, LineageFacts):
        raise TypeError(f"{type(facts).__name__} is no event of a lineage")
    edges: Sequence[Edge] = getattr(facts, "edges", ())
    linked = edges if isinstance(facts, LineageLinked | LineageUnlinked) else ()
    return LineageState(
        version=state.version + 1,
        standing=facts.standing,
        latest=facts.moves[-1].revision if isinstance(facts, Birth) else state.latest,
        revisions=state.revisions if linked else _related(_touched(state.revisions, facts, event), edges),
        links=_pairs(state.links, linked, "supersedes", position),
        conflicts=_pairs(state.conflicts, edges, "conflicts", position),
    )


def born_revision(facts: Birth, position: int, subjects: tuple[str, ...] = ()) -> RevisionState:
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
        supersedes=tuple(edge.older for edge in _stated(facts.edges, "supersedes") if edge.newer == born.revision),
        proposes=next((edge.older for edge in _stated(facts.edges, "proposes")), None),
        subjects=subjects,
    )


def _touched(revisions: Revisions, facts: LineageFacts, event: Event) -> Revisions:
    """Return the revisions after the moves of an event, or after its patch."""
    position = event.position
    match facts:
        case LineageLinked() | LineageUnlinked():
            return revisions
        case MetadataPatched():
            return _changed(revisions, facts.revision, lambda old: {"meta_seq": position})
        case MemoryRemembered() | RevisionCorrected():
            born = born_revision(facts, position, event.subjects)
            return {**_moved(revisions, facts.moves[:-1], position), born.revision: born}
        case PayloadErased():  # there is nothing left that could be restored
            return _moved(revisions, facts.moves, position, lambda old: ())
        case MemoryRestored():
            return _moved(revisions, facts.moves, position, lambda old: old.withdrawals[:-1])
        case _:
            act = _WITHDRAWS.get(type(facts))
            if act is None:
                return _moved(revisions, facts.moves, position)
            return _moved(
                revisions, facts.moves, position, lambda old: (*old.withdrawals, Withdrawal(position, act, old.values))
            )


def _moved(
    revisions: Revisions,
    moves: Iterable[Move],
    position: int,
    withdrawals: Callable[[RevisionState], tuple[Withdrawal, ...]] = lambda old: old.withdrawals,
) -> Revisions:
    for move in moves:
        revisions = _changed(
            revisions,
            move.revision,
            lambda old, after=move.after: {"values": after, "since": position, "withdrawals": withdrawals(old)},
        )
    return revisions


def _related(revisions: Revisions, edges: Sequence[Edge]) -> Revisions:
    """Return the revisions with what they supersede and what supersedes them, the ends in other lineages included."""
    for edge in _stated(edges, "supersedes"):
        if edge.older in revisions:
            revisions = _changed(
                revisions, edge.older, lambda old, edge=edge: {"superseded_by": _with(old.superseded_by, edge.newer)}
            )
        if edge.newer in revisions:
            revisions = _changed(
                revisions, edge.newer, lambda old, edge=edge: {"supersedes": _with(old.supersedes, edge.older)}
            )
    for edge in edges:
        if edge.kind == "proposes" and edge.since is not None and edge.newer in revisions:
            revisions = _changed(revisions, edge.newer, lambda old: {"proposes": None})
    return revisions


def _changed(
    revisions: Revisions, revision: str, changes: Callable[[RevisionState], Mapping[str, object]]
) -> Revisions:
    old = revisions[revision]
    return {**revisions, revision: msgspec.structs.replace(old, **changes(old))}


def _pairs(known: Pairs, edges: Sequence[Edge], kind: str, position: int) -> Pairs:
    """Return the pairs of a kind that hold after edges were stated and withdrawn."""
    ours = [edge for edge in edges if edge.kind == kind]
    if not ours:
        return known
    gone = {(edge.newer, edge.older) for edge in ours if edge.since is not None}
    kept = {pair: since for pair, since in known.items() if pair not in gone}
    return kept | {(edge.newer, edge.older): position for edge in ours if edge.since is None}


def _stated(edges: Sequence[Edge], kind: str) -> list[Edge]:
    return [edge for edge in edges if edge.kind == kind and edge.since is None]


def _with(known: tuple[str, ...], one: str) -> tuple[str, ...]:
    return known if one in known else (*known, one)
