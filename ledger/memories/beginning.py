"""How a text enters a lineage: remembered, corrected, superseded from elsewhere, published after it was held."""

from ledger.errors import refuse
from ledger.memories.commands import Correct, Publish, Remember, Supersede
from ledger.memories.facts import MemoryRemembered, RevisionCorrected
from ledger.memories.rules import live, moved, next_version, standing
from ledger.memories.state import FRESH, LineageState, RevisionState
from ledger.message import Edge, Event, Move, Values


def remember(state: LineageState, command: Remember) -> Event:
    if state.head is not None:
        refuse(
            "STALE_PREDECESSOR",
            "A new revision without a predecessor was to begin this memory anew, and the memory has a head. Correct "
            "that head instead (`corrigenda memories correct`).",
            head=state.head,
        )
    if state.latest is not None:
        _check_continuity(state.revisions[state.latest], command)
    born = Move(after=FRESH, before=None, revision=command.revision, since=None, version=next_version(state))
    facts = MemoryRemembered(
        content=command.content,
        edges=(),
        kind=command.kind,
        moves=(born,),
        origin=command.origin,
        scope=command.scope,
        standing=standing(command.revision, command.first, command.first, FRESH),
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


def correct(state: LineageState, command: Correct) -> Event:
    old = live(state, command.revision, "corrected")
    if old.content == command.content:
        refuse("NO_CHANGE", "The correction says what the memory says already; nothing was stored.")
    superseded = moved(old, Values("superseded", old.values.trust, old.values.floor))
    born = Move(after=FRESH, before=None, revision=command.successor, since=None, version=next_version(state))
    facts = RevisionCorrected(
        content=command.content,
        edges=(Edge("supersedes", command.successor, command.revision, None),),
        kind=old.kind,
        moves=(superseded, born),
        origin=command.origin,
        scope=old.scope,
        standing=standing(command.successor, command.first, command.first, FRESH),
        supports=(),
        trace=None,
        visibility=old.visibility,
    )
    return Event(facts=facts, payload=command.text, position=command.first)


def supersede(state: LineageState, command: Supersede) -> Event:
    """End a revision whose successors are in other lineages."""
    raise NotImplementedError


def publish(state: LineageState, command: Publish) -> Event:
    """Let a held revision become active, in place of the head that it was held to replace."""
    raise NotImplementedError
