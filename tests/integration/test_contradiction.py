"""A person's correction retires what machines learned and nobody vouched for, where it says nearly the same."""

from gateway.replies import Receipt
from gateway.service import Gateway
from tests.house import types, written

LEARNED = "chargeCode THC DTHC vendor x labels it so"
SAID = {"field": "chargeCode", "original_value": "THC", "corrected_value": "DTHC", "reason": "vendor x labels it so"}


def learn(gateway: Gateway, text: str = LEARNED, **given: object) -> str:
    """Remember a machine's learning for Uma, or as it is given otherwise, and return the revision."""
    wanted = {"kind": "learning", "origin": "llm_extracted", "user": "uma", **given}
    return gateway.remember(text, **wanted).revision_id or ""  # pyright: ignore[reportArgumentType] - as remember takes


def correct(gateway: Gateway, **given: object) -> Receipt:
    """Record the correction of agent ap's charge code, seen by Uma."""
    wanted = {"agent": "ap", "user": "uma", **SAID, **given}
    return gateway.record_correction(**wanted)  # pyright: ignore[reportArgumentType] - as record_correction takes


def states(gateway: Gateway, *revisions: str) -> list[str]:
    """Return the state of each revision."""
    return [gateway.show(revision).state for revision in revisions]


def similarity(ledger_url: str) -> str:
    """Return how near the last invalidated learning was, as its event says."""
    events = [event for event in written(ledger_url) if event.type == "learning.invalidated.v1"]
    return str(events[-1].seq)


def test_a_correction_retires_the_learnings_that_it_contradicts(gateway: Gateway, ledger_url: str) -> None:
    """AG-33, AG-54: given two near learnings, when a person corrects, each is retired by an event of its own."""
    first, second = learn(gateway), learn(gateway, LEARNED + " always")
    far = learn(gateway, "invoices are paid within thirty days")

    receipt = correct(gateway)

    assert receipt.invalidated == (first, second)
    assert states(gateway, first, second, far) == ["retired", "retired", "active"]
    assert [hit.revision_id for hit in gateway.search("chargeCode THC", user="uma").hits] == [far]
    last = [event for event in written(ledger_url) if event.op == receipt.trace_id]
    assert types(last)[-3:] == ["correction.recorded", "learning.invalidated", "learning.invalidated"]
    assert last[-3].facts["contradiction"] == "done"
    assert {event.facts["correction"] for event in last[-2:]} == {receipt.correction_id}
    assert gateway.explain(first).audit[-1].type == "learning.invalidated.v1"
