"""Tombstones: what was forgotten is not learned again from the same source by a machine.

A tombstone's stream is the keyed digest of project, source and content, so its existence is looked up without a query.
It blocks while its last event is `set`; restoring the forgotten revision lifts it.
"""

from collections.abc import Sequence

from ledger.decider import Command, Decider, State
from ledger.errors import refuse
from ledger.message import Event, Facts


class SetTombstone(Command, frozen=True, kw_only=True):
    """Stop what a revision said from being learned again."""

    revision: str


class LiftTombstone(Command, frozen=True, kw_only=True):
    """Allow it again."""

    revision: str


class TombstoneSet(Facts, frozen=True, kw_only=True):
    """What the revision said is not learned again from this source."""

    revision: str


class TombstoneLifted(Facts, frozen=True, kw_only=True):
    """It may be learned again."""

    revision: str


class TombstoneState(State, frozen=True, kw_only=True):
    """`revision` is the one for which it stands, or None while nothing is blocked."""

    revision: str | None = None


def decide(state: TombstoneState, command: Command) -> Sequence[Event]:
    """Return the event of a command; one that changes nothing makes none."""
    match command:
        case SetTombstone():
            facts, changes = TombstoneSet(revision=command.revision), state.revision is None
        case LiftTombstone():
            facts, changes = TombstoneLifted(revision=command.revision), state.revision == command.revision
        case _:
            raise TypeError(f"{type(command).__name__} is no command of a tombstone")
    return [Event(facts=facts, payload=None, position=command.first)] if changes else []


def evolve(state: TombstoneState, event: Event) -> TombstoneState:
    """Return the tombstone after an event."""
    match event.facts:
        case TombstoneSet() as facts:
            return TombstoneState(version=state.version + 1, revision=facts.revision)
        case TombstoneLifted():
            return TombstoneState(version=state.version + 1)
        case _:
            raise TypeError(f"{type(event.facts).__name__} is no event of a tombstone")


def check_not_buried(state: TombstoneState) -> None:
    """Refuse to learn anew what was forgotten."""
    if state.revision is not None:
        refuse(
            "MEMORY_DELETED",
            "This text was forgotten, and neither an extraction nor an import brings it back from the same source. A "
            "person may remember it anew, or restore what was forgotten.",
            kind="forgotten",
        )


TOMBSTONE: Decider[Command, Event, TombstoneState] = Decider(TombstoneState(), decide, evolve)
