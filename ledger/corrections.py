"""Corrections: what an agent put out, what was right, and why. A record of its own, with or without a memory.

`unconfirmed` (reported by an agent) becomes `active` when a person confirms it; either ends as `superseded` or
`revoked`. What a correction did to memories is in their own streams and is not undone with it.
"""

from collections.abc import Sequence

from msgspec import Struct

from ledger.decider import Command, Decider, State
from ledger.message import Event, Facts, Payload, ScopeIds

# ---------------------------------------------------------------- commands


class Record(Command, frozen=True, kw_only=True):
    """Record a correction. `revision` is the memory's revision that it corrects, if it names one."""

    content: str
    contradiction: str
    origin: str
    revision: str | None
    scope: ScopeIds
    text: "CorrectionText"
    visibility: str
    state: str


class Confirm(Command, frozen=True, kw_only=True):
    """Vouch for what an agent reported."""

    contradiction: str


class Replace(Command, frozen=True, kw_only=True):
    """End the correction in favour of another."""

    successor: str


class Withdraw(Command, frozen=True, kw_only=True):
    """Revoke the correction."""


# ---------------------------------------------------------------- events


class RecordStanding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an event leaves behind for a record that has a state and nothing else."""

    state: str


class CorrectionRecorded(Facts, frozen=True, kw_only=True):
    """A correction was recorded. `content` is the keyed digest of the text that it is searched by."""

    content: str
    contradiction: str
    origin: str
    revision: str | None
    scope: ScopeIds
    standing: RecordStanding
    visibility: str


class CorrectionConfirmed(Facts, frozen=True, kw_only=True):
    """A person vouched for a correction that an agent had reported."""

    after: str
    before: str
    contradiction: str
    standing: RecordStanding


class CorrectionSuperseded(Facts, frozen=True, kw_only=True):
    """A correction was replaced by another."""

    after: str
    before: str
    standing: RecordStanding
    successor: str


class CorrectionRevoked(Facts, frozen=True, kw_only=True):
    """A correction was withdrawn."""

    after: str
    before: str
    standing: RecordStanding


class CorrectionText(Payload, frozen=True, kw_only=True):
    """Everything that a correction says; an empty `corrected_value` means that the field should be empty."""

    corrected_value: str
    entity_key: str | None
    field: str | None
    original_input: str | None
    original_value: str
    reason: str | None
    recorded_at: str | None
    run: str | None
    tags: tuple[str, ...]


# ---------------------------------------------------------------- state


class CorrectionState(State, frozen=True, kw_only=True):
    """One correction. `state` is None before it was recorded."""

    state: str | None = None
    recorded: CorrectionRecorded | None = None
    position: int | None = None
    superseded_by: str | None = None


def decide(state: CorrectionState, command: Command) -> Sequence[Event]:
    """Return the events that a command makes of a correction, or refuse it."""
    raise NotImplementedError


def evolve(state: CorrectionState, event: Event) -> CorrectionState:
    """Return the correction after an event."""
    raise NotImplementedError


CORRECTION: Decider[Command, Event, CorrectionState] = Decider(CorrectionState(), decide, evolve)
