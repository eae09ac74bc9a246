"""The diff of a project names its corrections, too: what happened to each between two positions."""

from corrigenda import CorrectionDiff, MemoryDiff
from gateway.service import Gateway
from tests.integration.conftest import Here


def corrections(gateway: Gateway, first: int, last: int) -> dict[str, CorrectionDiff]:
    """Return what happened to the corrections, by their ids, in order."""
    found = gateway.diff_between(first, last)
    return {item.correction_id: item for item in found if isinstance(item, CorrectionDiff)}


def test_every_act_on_a_correction_is_named(open_here: Here) -> None:
    """Given corrections recorded, confirmed, superseded and revoked, each diff names those in between, in order."""
    person, agent = open_here(), open_here(actor="agent:bot")
    first = agent.record_correction(
        agent="bot", original_value="THC", corrected_value="DTHC", field="charge", entity_key="MSC"
    )
    one = first.correction_id or ""
    confirmed = person.confirm_correction(one)
    replaced = person.supersede_correction(one, corrected_value="OTHC")
    two = replaced.correction_id or ""
    revoked = person.revoke_correction(two, reason="no")
    start = first.position - len(first.events)

    whole = corrections(person, start, revoked.position)
    assert [(item.correction_id, item.acts, item.before) for item in whole.values()] == [
        (one, ("recorded", "confirmed", "superseded"), None), (two, ("recorded", "revoked"), None),
    ]  # fmt: skip
    assert (whole[one].after.state, whole[one].after.superseded_by, whole[two].after.state) == (
        "superseded", two, "revoked",
    )  # fmt: skip
    born = corrections(person, start, first.position)[one].after
    assert (born.state, born.original_value, born.corrected_value) == ("unconfirmed", "THC", "DTHC")
    assert (born.agent, born.field, born.entity_key, born.memory) == ("bot", "charge", "MSC", None)
    middle = corrections(person, first.position, confirmed.position)[one]
    assert middle.before is not None
    assert (middle.acts, middle.before.state, middle.after.state) == (("confirmed",), "unconfirmed", "active")
    last = corrections(person, replaced.position, revoked.position)
    assert [(item.correction_id, item.acts, item.after.corrected_value) for item in last.values()] == [
        (two, ("revoked",), "OTHC"),
    ]  # fmt: skip
    assert corrections(person, revoked.position, revoked.position) == {}


def test_memories_and_corrections_stand_in_the_order_of_their_events(gateway: Gateway) -> None:
    """Given a correction that corrects a memory between two others, then the diff has all in the ledger's order."""
    first = gateway.remember("a", memory_id="m")
    made = gateway.record_correction(agent="bot", original_value="a", corrected_value="b", memory="m")
    last = gateway.remember("c", memory_id="n")

    found = [*gateway.diff_between(first.position, last.position)]

    assert [item.memory_id or item.correction_id for item in found] == [made.correction_id, "m", "n"]
    assert [type(item) for item in found] == [CorrectionDiff, MemoryDiff, MemoryDiff]
    assert isinstance(found[0], CorrectionDiff) and found[0].after.memory == first.revision_id
    assert CorrectionDiff.__struct_fields__ == MemoryDiff.__struct_fields__


def test_a_diff_shows_no_correction_of_others(open_here: Here) -> None:
    """AG-12, LM-46: given corrections of another agent and project, then a reader's diff has none of them."""
    person = open_here()
    mine = person.record_correction(agent="bot", original_value="a", corrected_value="b")
    person.record_correction(agent="other", original_value="a", corrected_value="c")
    last = open_here(project="borea").record_correction(agent="bot", original_value="a", corrected_value="d")

    assert [*corrections(open_here(actor="agent:bot"), 0, last.position)] == [mine.correction_id]
    assert len(corrections(person, 0, last.position)) == 2
