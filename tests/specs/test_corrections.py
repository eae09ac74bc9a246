"""What a correction allows, sentence by sentence. Positions count from 0 in these histories, one event per command."""

import msgspec
import pytest

from ledger.corrections import (
    CORRECTION,
    Confirm,
    CorrectionConfirmed,
    CorrectionRecorded,
    CorrectionRevoked,
    CorrectionState,
    CorrectionSuperseded,
    CorrectionText,
    Record,
    RecordStanding,
    Replace,
    Withdraw,
    indexed_text,
    query_text,
)
from ledger.decider import Command
from ledger.memories import LINEAGE, LineageState
from ledger.message import Event, Reason
from tests.ledgers import SCOPE, remember
from tests.specifications import Given, given

TEXT = CorrectionText(
    corrected_value="DTHC",
    entity_key="MSC",
    field="chargeCode",
    original_input=None,
    original_value="THC",
    reason="MSC bills it apart",
    recorded_at=None,
    run=None,
    tags=(),
)
CONFIRM = Confirm(contradiction="deferred", reason="seen on the invoice")
REPLACE = Replace(content="c2", successor="cor_b", reason="a typing error")
WITHDRAW = Withdraw(reason="the invoice was wrong")


def record(state: str) -> Record:
    """Return the wish to record TEXT, in that state."""
    return Record(
        content="c1",
        contradiction="off",
        origin="human",
        revision=None,
        scope=SCOPE,
        text=TEXT,
        visibility="agent",
        state=state,
    )


def history(*commands: Command) -> Given[Command, CorrectionState]:
    """Return the history that commands make of a correction."""
    return given(CORRECTION, *commands)


NEW = history()
REPORTED = history(record("unconfirmed"))
ACTIVE = history(record("active"))
REPLACED = history(record("active"), REPLACE)
WITHDRAWN = history(record("active"), WITHDRAW)


@pytest.mark.parametrize("state", ["unconfirmed", "active"])
def test_a_correction_is_recorded_as_what_it_is_worth(state: str) -> None:
    """AG-50: it begins as active or as unconfirmed, with its text in the payload and its state in the facts."""

    def check(event: Event, after: CorrectionState) -> None:
        assert isinstance(event.facts, CorrectionRecorded)
        assert (event.facts.standing, event.payload) == (RecordStanding(state=state), TEXT)
        assert (after.state, after.recorded, after.position, after.version) == (state, event.facts, 0, 1)

    NEW.when(record(state)).then(check)


def test_a_correction_is_recorded_once() -> None:
    """A stream holds one record, whatever became of it."""
    ACTIVE.when(record("active")).refused("INVALID_TRANSITION", state="active", allowed=["supersede", "revoke"])


def test_confirming_makes_a_reported_correction_active() -> None:
    """AG-50: a person vouches for what an agent reported."""

    def check(event: Event, after: CorrectionState) -> None:
        facts = event.facts
        assert isinstance(facts, CorrectionConfirmed)
        assert (facts.before, facts.after, facts.contradiction) == ("unconfirmed", "active", "deferred")
        assert event.payload == Reason(reason="seen on the invoice")
        assert (after.state, after.position, after.version) == ("active", 0, 2)

    REPORTED.when(CONFIRM).then(check)


@pytest.mark.parametrize("before", [REPORTED, ACTIVE])
def test_superseding_ends_a_standing_correction(before: Given[Command, CorrectionState]) -> None:
    """Confirmed or not, it can be replaced, and names what replaced it."""

    def check(event: Event, after: CorrectionState) -> None:
        assert isinstance(event.facts, CorrectionSuperseded)
        assert (event.facts.before, event.facts.after) == (before.state.state, "superseded")
        assert (after.state, after.superseded_by) == ("superseded", "cor_b")

    before.when(REPLACE).then(check)


@pytest.mark.parametrize("before", [REPORTED, ACTIVE])
def test_revoking_ends_a_standing_correction(before: Given[Command, CorrectionState]) -> None:
    """AG-44: it is withdrawn, and its record stays where it was."""

    def check(event: Event, after: CorrectionState) -> None:
        assert isinstance(event.facts, CorrectionRevoked)
        assert (event.facts.before, event.facts.after) == (before.state.state, "revoked")
        assert (after.state, after.recorded, after.position) == ("revoked", before.state.recorded, 0)

    before.when(WITHDRAW).then(check)


@pytest.mark.parametrize("command", [CONFIRM, REPLACE, WITHDRAW])
def test_what_was_never_recorded_is_not_found(command: Command) -> None:
    """An id that no event knows is nobody's correction."""
    NEW.when(command).refused("CORRECTION_NOT_FOUND")


def test_only_a_reported_correction_is_confirmed() -> None:
    """An active one needs no confirmation, and the refusal says what it does allow."""
    ACTIVE.when(CONFIRM).refused("INVALID_TRANSITION", state="active", allowed=["supersede", "revoke"])


@pytest.mark.parametrize("command", [CONFIRM, REPLACE, WITHDRAW])
def test_a_replaced_correction_is_told_by_its_successor(command: Command) -> None:
    """Nothing is done to it any more, and the refusal names what stands in its place."""
    REPLACED.when(command).refused("INVALID_TRANSITION", state="superseded", allowed=[], superseded_by="cor_b")


@pytest.mark.parametrize("command", [CONFIRM, REPLACE, WITHDRAW])
def test_a_revoked_correction_stays_revoked(command: Command) -> None:
    """Neither confirming nor superseding brings it back."""
    WITHDRAWN.when(command).refused("INVALID_TRANSITION", state="revoked", allowed=[])


def test_superseding_by_the_same_text_changes_nothing() -> None:
    """A successor that says the same is no successor."""
    ACTIVE.when(msgspec.structs.replace(REPLACE, content="c1")).refused("NO_CHANGE")


def test_a_lineages_command_is_none_of_a_correction() -> None:
    """Wishes and events of another aggregate are a mistake in the program, not a refusal."""
    with pytest.raises(TypeError):
        NEW.when(remember("rev_a", "one")).then(lambda event, state: None)
    with pytest.raises(TypeError):
        CORRECTION.evolve(CorrectionState(), LINEAGE.decide(LineageState(), remember("rev_a", "one"))[0])


def test_the_text_that_is_searched_adds_the_entity() -> None:
    """DESIGN 4.2: field, both values and reason, line by line; the indexed text begins with the entity key."""
    assert query_text(TEXT) == "chargeCode\nTHC\nDTHC\nMSC bills it apart"
    assert indexed_text(TEXT) == f"MSC\n{query_text(TEXT)}"


def test_what_a_correction_does_not_say_takes_no_line() -> None:
    """A field that should be empty keeps its line, so that it is no deletion of the value before it."""
    bare = msgspec.structs.replace(TEXT, field=None, entity_key=None, reason=None, corrected_value="")
    assert (query_text(bare), indexed_text(bare)) == ("THC\n", "THC\n")
