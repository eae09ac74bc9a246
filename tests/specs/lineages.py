"""Histories of one lineage that several specifications begin with; positions count from 0."""

from ledger.memories import LINEAGE, Admission, Admit, Command, LineageState, MemoryRemembered
from ledger.message import HEADLESS, Edge, Event, Move, Values
from tests.ledgers import SCOPE, text
from tests.specifications import Given, given, happened

A, B, C, D = "rev_a", "rev_b", "rev_c", "rev_d"
HELD = Values("processing", "unverified", "verified")


def history(*commands: Command) -> Given[Command, LineageState]:
    """Return the history that commands make of a lineage."""
    return given(LINEAGE, *commands)


def then(before: Given[Command, LineageState], *commands: Command) -> Given[Command, LineageState]:
    """Return a history that goes on with more commands."""
    for command in commands:
        before = happened(before, command)
    return before


def held(
    before: Given[Command, LineageState], revision: str, *, proposes: str | None = None
) -> Given[Command, LineageState]:
    """Return a history that goes on with a revision that waits to be published, perhaps in place of a head."""
    version = len(before.state.revisions) + 1
    facts = MemoryRemembered(
        content=revision,
        edges=() if proposes is None else (Edge("proposes", revision, proposes, None),),
        kind="fact",
        moves=(Move(after=HELD, before=None, revision=revision, since=None, version=version),),
        origin="human",
        scope=SCOPE,
        standing=before.state.standing if before.history else HEADLESS,
        supports=(),
        visibility="project",
    )
    event = Event(facts=facts, payload=text(revision), position=len(before.history))
    return Given(LINEAGE, (*before.history, event))


def admit(revision: str) -> Admit:
    """Return the wish to vouch for a revision."""
    return Admit(revision=revision, admission=Admission(evidence=(), reason="I looked"))
