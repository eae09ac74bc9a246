"""Evidence: bytes, or a mention of bytes that lie elsewhere, by their BLAKE3 hash; once per project.

Its stream is the keyed digest of project and hash, so adding the same evidence twice meets the first time.
"""

from collections.abc import Sequence

from ledger.decider import Command, Decider, State
from ledger.message import Count, Event, Facts, Payload


class AddEvidence(Command, frozen=True, kw_only=True):
    """Keep evidence. `size` is in bytes, 0 where they lie elsewhere."""

    external: bool
    media_type: str | None
    size: int
    text: "EvidenceText"


class EvidenceAdded(Facts, frozen=True, kw_only=True):
    """Evidence was kept, or mentioned if `external`."""

    external: bool
    media_type: str | None
    size: Count


class EvidenceText(Payload, frozen=True, kw_only=True):
    """The public hash, and what the caller calls it."""

    hash: str
    name: str | None
    uri: str | None


class EvidenceState(State, frozen=True, kw_only=True):
    """One object of evidence; `added` is None before it was kept."""

    added: EvidenceAdded | None = None
    position: int | None = None


def decide(state: EvidenceState, command: Command) -> Sequence[Event]:
    """Return the event of a command; what is there already makes none. Bytes may follow their mention."""
    match command:
        case AddEvidence():
            held = state.added
            if held is not None and (command.external or not held.external):
                return ()
            facts = EvidenceAdded(external=command.external, media_type=command.media_type, size=command.size)
            return (Event(facts=facts, payload=command.text, position=command.first),)
        case _:
            raise TypeError(f"evidence knows no {type(command).__name__}")


def evolve(state: EvidenceState, event: Event) -> EvidenceState:
    """Return the evidence after an event."""
    match event.facts:
        case EvidenceAdded() as added:
            return EvidenceState(version=state.version + 1, added=added, position=event.position)
        case _:
            raise TypeError(f"evidence knows no {type(event.facts).__name__}")


EVIDENCE: Decider[Command, Event, EvidenceState] = Decider(EvidenceState(), decide, evolve)
