"""Corrections: what an agent put out, what was right, and why. A record of its own, with or without a memory.

`unconfirmed` (reported by an agent) becomes `active` when a person confirms it; either ends as `superseded` or
`revoked`. What a correction did to memories is in their own streams and is not undone with it.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ledger.decider import Command, Decider, State
from ledger.errors import refuse
from ledger.message import Event, Facts, Payload, Reason, ScopeIds

STATES = ("unconfirmed", "active", "superseded", "revoked")
STANDING_STATES = ("unconfirmed", "active")
DONE, OFF, DEFERRED = "done", "off", "deferred"  # what became of the check for learnings that are contradicted

# ---------------------------------------------------------------- commands


class Record(Command, frozen=True, kw_only=True):
    """Record a correction, `unconfirmed` or `active`. `revision` is the memory's revision that it is about, if any."""

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
    """End the correction in favour of another, which is recorded in the same append; `content` is that one's digest."""

    content: str
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


# ---------------------------------------------------------------- what it is found by


def query_text(text: CorrectionText) -> str:
    """Return what a correction asks of the learnings that it may contradict: field, both values, reason, line by line.

    What it does not say takes no line; a corrected value that is empty takes an empty one.
    """
    parts = (text.field, text.original_value, text.corrected_value, text.reason)
    return "\n".join(part for part in parts if part is not None)


def indexed_text(text: CorrectionText) -> str:
    """Return the text that a correction is found by: its entity key, then what `query_text` gives."""
    asked = query_text(text)
    return asked if text.entity_key is None else f"{text.entity_key}\n{asked}"


# ---------------------------------------------------------------- state


class CorrectionState(State, frozen=True, kw_only=True):
    """One correction. `state` is None before it was recorded, `position` is that of its record.

    `subjects` are the digests of the persons whom the memory that it is about concerns.
    """

    state: str | None = None
    recorded: CorrectionRecorded | None = None
    position: int | None = None
    superseded_by: str | None = None
    subjects: tuple[str, ...] = ()


_ALLOWED = {"unconfirmed": ["confirm", "supersede", "revoke"], "active": ["supersede", "revoke"]}


def decide(state: CorrectionState, command: Command) -> Sequence[Event]:
    """Return the events that a command makes of a correction, or refuse it."""
    match command:
        case Record():
            return [_record(state, command)]
        case Confirm():
            before = _standing(state, "confirmed", only="unconfirmed")
            facts = CorrectionConfirmed(
                after="active",
                before=before,
                contradiction=command.contradiction,
                standing=RecordStanding(state="active"),
            )
        case Replace():
            before = _standing(state, "superseded")
            _check_change(state, command)
            facts = CorrectionSuperseded(
                after="superseded",
                before=before,
                standing=RecordStanding(state="superseded"),
                successor=command.successor,
            )
        case Withdraw():
            before = _standing(state, "revoked")
            facts = CorrectionRevoked(after="revoked", before=before, standing=RecordStanding(state="revoked"))
        case _:
            raise TypeError(f"{type(command).__name__} is no command of a correction")
    return [Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)]


def _record(state: CorrectionState, command: Record) -> Event:
    if state.state is not None:
        refuse(
            "INVALID_TRANSITION",
            "A correction is recorded once, and this one is there already. Supersede it by the right one.",
            state=state.state,
            allowed=_ALLOWED.get(state.state, []),
        )
    facts = CorrectionRecorded(
        content=command.content,
        contradiction=command.contradiction,
        origin=command.origin,
        revision=command.revision,
        scope=command.scope,
        standing=RecordStanding(state=command.state),
        visibility=command.visibility,
    )
    return Event(facts=facts, payload=command.text, position=command.first)


def _standing(state: CorrectionState, wish: str, *, only: str | None = None) -> str:
    """Return the state of a correction that still stands, else refuse with what became of it."""
    if state.state is None:
        refuse("CORRECTION_NOT_FOUND", "There is no such correction. List them to see which there are.")
    if state.state not in STANDING_STATES or only not in (None, state.state):
        by = f" by {state.superseded_by}" if state.superseded_by else ""
        refuse(
            "INVALID_TRANSITION",
            f"Only a correction that is {only or 'unconfirmed or active'} can be {wish}, and this one is "
            f"{state.state}{by}.",
            state=state.state,
            allowed=_ALLOWED.get(state.state, []),
            **({"superseded_by": state.superseded_by} if state.superseded_by else {}),
        )
    return state.state


def _check_change(state: CorrectionState, command: Replace) -> None:
    if state.recorded is not None and state.recorded.content == command.content:
        refuse("NO_CHANGE", "The new correction says what this one says already; nothing was stored.")


def evolve(state: CorrectionState, event: Event) -> CorrectionState:
    """Return the correction after an event."""
    facts, version = event.facts, state.version + 1
    match facts:
        case CorrectionRecorded():
            return CorrectionState(
                version=version,
                state=facts.standing.state,
                recorded=facts,
                position=event.position,
                subjects=event.subjects,
            )
        case CorrectionSuperseded():
            return msgspec.structs.replace(
                state, version=version, state=facts.standing.state, superseded_by=facts.successor
            )
        case CorrectionConfirmed() | CorrectionRevoked():
            return msgspec.structs.replace(state, version=version, state=facts.standing.state)
        case _:
            raise TypeError(f"{type(facts).__name__} is no event of a correction")


CORRECTION: Decider[Command, Event, CorrectionState] = Decider(CorrectionState(), decide, evolve)
