"""Revisions that wait, and events that a test puts into a ledger by a decision of its own."""

from collections.abc import Callable, Sequence
from typing import Any

from gateway.service import Gateway
from ledger.decider import Decider
from ledger.memories import (
    LINEAGE,
    Command,
    Contradiction,
    LearningInvalidated,
    LineageState,
)
from ledger.message import HEADLESS, Event, Move, Values


def plant(gateway: Gateway, memory: str, make: Callable[[LineageState, int], Event]) -> None:
    """Store the event that `make` makes of a memory's state and the event's position."""
    writer: Any = gateway._writer  # Any: what no act of the gateway does
    lineage = gateway._references.lineage(memory)

    def decide(state: LineageState, command: Command) -> Sequence[Event]:
        return [make(state, command.first)]

    decider = Decider(LineageState(), decide, LINEAGE.evolve)
    with writer.hold() as (held, page):
        append = page.begin(actor="human:ana")
        append.decide_on(decider, lineage, Command())
        held.store([page.close(append)])


def hold(gateway: Gateway, memory: str, content: str) -> str:
    """Let an agent's text wait in a memory, for the place of its head if it has one, and return its revision."""
    told = gateway.explain(memory)
    done = gateway.remember(
        content, memory_id=told.memory_id, kind=told.kind, origin="agent", predecessor=told.head, hold=True
    )
    assert done.revision_id is not None
    return done.revision_id


def invalidate(gateway: Gateway, memory: str) -> None:
    """Let an event say that a correction contradicts a memory's head."""

    def make(state: LineageState, position: int) -> Event:
        old = state.revisions[state.head or ""]
        gone = Values("retired", old.values.trust, old.values.floor)
        move = Move(after=gone, before=old.values, revision=old.revision, since=old.since, version=old.version)
        facts = LearningInvalidated(correction="cor_01J9ZKAAAAAAAAAAAAAAAAAAAA", moves=(move,), standing=HEADLESS)
        said = Contradiction(correction_hash="b3:", learning_hash="b3:", reason=None, similarity="0.9")
        return Event(facts=facts, payload=said, position=position)

    plant(gateway, memory, make)
