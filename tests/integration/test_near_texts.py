"""Texts that are nearly or exactly the same: likeness alone moves nothing, and what ended does not stand in the way."""

import pytest

from gateway.service import Gateway
from tests.house import types, written
from tests.integration.conftest import Here
from tests.integration.test_pruning import LEARNED

NEAR = (
    "the bridge is open",
    "The bridge is open.",
    "the bridge is not open",
    "the bridge is never open",
    "bridge open",
)


def test_near_and_negated_texts_change_no_state(open_here: Here, ledger_url: str) -> None:
    """LM-44: given a person's fact and machines' learnings, when the like is remembered, then all stay as they are."""
    ana, scout = open_here(), open_here(actor="agent:scout")
    said = [ana.remember(NEAR[0]), scout.remember(NEAR[0], kind="learning", user="ana")]
    said.append(ana.remember(NEAR[0], **LEARNED))
    stood = [ana.show(one.revision_id or "") for one in said]
    for text in NEAR:
        ana.remember(text)
        scout.remember(text)
        scout.remember(text, kind="learning", user="ana")
        ana.remember(text, **LEARNED)
    ana.search("is the bridge open", user="ana")

    assert [ana.show(one.revision_id or "") for one in said] == stood
    assert set(types(written(ledger_url))) == {"ledger.opened", "name.assigned", "memory.remembered"}


@pytest.mark.parametrize("ending", ["retire", "forget", "revoke"])
def test_what_ended_does_not_keep_its_text_from_being_said_again(gateway: Gateway, ending: str) -> None:
    """D05: given a text that was withdrawn, when a person says the same, it is a new memory, and the old one stays."""
    old = gateway.remember("invoices need a PO", sources=["mail"])
    getattr(gateway, ending)(old.memory_id, reason="no longer")
    stood = gateway.show(old.revision_id or "")

    new = gateway.remember("invoices need a PO", sources=["mail"])

    assert (new.outcome, new.memory_id != old.memory_id) == ("stored", True)
    assert gateway.show(new.revision_id or "").state == "active"
    assert gateway.show(old.revision_id or "") == stood
    assert [hit.revision_id for hit in gateway.search("invoices need a PO").hits] == [new.revision_id]


def test_every_item_of_a_history_is_whole_and_in_order(gateway: Gateway) -> None:
    """D30: given acts alone and in one append, each has its actor, time, reason and the state before, in order."""
    for name in "mn":
        gateway.remember(f"text {name}", memory_id=name, reason="told")
    gateway.correct("m", "text m, mended", reason="a slip")
    gateway.supersede(["m", "n"], ["text m and n"], reason="one thing")
    gateway.revoke("m", reason="neither")

    stories = {name: gateway.explain(name).audit for name in "mn"}
    assert {name: [(entry.type.split(".")[1], entry.reason) for entry in story] for name, story in stories.items()} == {
        "m": [("remembered", "told"), ("corrected", "a slip"), ("corrected", "one thing"), ("revoked", "neither")],
        "n": [("remembered", "told"), ("superseded", "one thing")],
    }
    for story in stories.values():
        assert [entry.seq for entry in story] == sorted({entry.seq for entry in story})
        assert [entry.at for entry in story] == sorted(entry.at for entry in story)
        assert {entry.actor for entry in story} == {"human:ana"}
        (born,), *later = [entry.moves for entry in story]
        assert (born["from_state"], born["to_state"]) == (None, "active")
        for moves in later:
            assert moves[0]["from_state"] == "active" and all(move["to_state"] for move in moves)
