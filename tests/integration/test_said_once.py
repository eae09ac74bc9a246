"""What the front door promises of acts in Python: what they return, what they inherit, and what they do not take."""

from collections.abc import Callable
from typing import Any

import pytest

from corrigenda import ConflictError
from gateway.service import Gateway
from tests.house import last_position, refused, written
from tests.integration.conftest import Here
from tests.integration.planting import hold


def test_a_bare_text_has_no_reason(gateway: Gateway, ledger_url: str) -> None:
    """RC-03: given a correction by its text alone, then no reason is recorded; one that is given is, word for word."""
    gateway.remember("the gate is green", memory_id="m")
    bare, reasoned = gateway.correct("m", "the gate is red"), gateway.correct("m", "the gate is blue", reason=" seen ")

    told = [(gateway.show_event(done.position).payload or {})["reason"] for done in (bare, reasoned)]
    assert told == [None, " seen "]
    assert [entry.reason for entry in gateway.explain("m").audit] == [None, None, " seen "]


@pytest.mark.parametrize("given", [{"kind": "task"}, {"tags": ["t"]}, {"memory_id": "n"}, {"signal": "correct"}])
def test_a_correction_takes_a_text_and_no_more(gateway: Gateway, ledger_url: str, given: dict[str, Any]) -> None:
    """RC-04, RC-39: given a kind, tags or anything unknown beside the text, then nothing is corrected."""
    gateway.remember("a", memory_id="m")
    before = last_position(ledger_url)
    with pytest.raises(TypeError, match=next(iter(given))):
        gateway.correct("m", "b", **given)
    assert last_position(ledger_url) == before


CONFLICTS: dict[str, Callable[[Gateway], object]] = {
    "MEMORY_ALREADY_SUPERSEDED": lambda gateway: gateway.correct(gateway.history("m").items[0].revision_id, "c"),
    "STALE_REVISION": lambda gateway: gateway.correct("m", "c", if_revision=1),
    "MEMORY_DELETED": lambda gateway: gateway.correct(gateway.history("gone").items[0].revision_id, "c"),
    "STALE_PREDECESSOR": lambda gateway: gateway.remember("d", memory_id="m"),
}


@pytest.mark.parametrize("code", CONFLICTS)
def test_only_a_request_in_flight_says_when_to_come_again(gateway: Gateway, code: str) -> None:
    """RC-38: given a conflict that waiting does not end, then its error has a code and no time to try again."""
    gateway.remember("a", memory_id="m")
    gateway.correct("m", "b")
    gateway.remember("x", memory_id="gone")
    gateway.retire("gone")

    with refused(code) as refusal:
        CONFLICTS[code](gateway)

    assert isinstance(refusal.error, ConflictError)
    assert (refusal.error.retry_after_ms, refusal.error.retriable) == (None, False)


def test_sources_are_attribution_and_no_proof(gateway: Gateway) -> None:
    """LM-15: given named sources, then they are shown as that, and it is unverified and without evidence."""
    gateway.remember("the gate is green", memory_id="m", sources=["guide p. 3", "mail"])

    shown = gateway.show("m")
    assert (shown.provenance["sources"], shown.evidence, shown.trust) == (["guide p. 3", "mail"], (), "unverified")
    assert gateway.search("gate", min_trust="verified").hits == ()
    (hit,) = gateway.search("gate").hits
    assert "unverified" in hit.why and hit.provenance["sources"] == ["guide p. 3", "mail"]


def test_what_is_held_is_counted_and_not_served(gateway: Gateway) -> None:
    """LM-03: given a text that waits, then no search serves it, and the status counts it as processing."""
    gateway.remember("the gate is green", memory_id="m")
    held = hold(gateway, "m", "the gate is red")
    alone = gateway.remember("the gate is blue", hold=True)

    assert [hit.content for hit in gateway.search("gate red blue", k=9).hits] == ["the gate is green"]
    assert gateway.status().memories == {"active": 1, "processing": 2}
    gateway.publish(held)
    gateway.publish(alone.revision_id or "")
    assert {hit.content for hit in gateway.search("gate", k=9).hits} == {"the gate is red", "the gate is blue"}


def test_a_receipt_names_revision_and_state(open_here: Here) -> None:
    """LM-37: given each act of a review, then its receipt has the revision and the state that it left it in."""
    gateway, bo = open_here(), open_here(actor="human:bo")
    first = gateway.remember("a", memory_id="m")
    held = hold(gateway, "m", "b")
    made = [
        first,
        gateway.contest(first.revision_id or "", held),
        gateway.promote(held),
        bo.admit(held, reason="seen"),
        gateway.revoke(held, reason="no"),
        gateway.restore(held),
        gateway.retire(held),
        gateway.forget(held),
    ]
    told = [(done.revision_id == held, done.state, done.trust) for done in made]
    assert told == [
        (False, "active", "unverified"),
        (False, "conflicted", "unverified"),
        (True, "active", "unverified"),
        (True, "active", "verified"),
        (True, "active", "revoked"),
        (True, "active", "verified"),
        (True, "retired", "verified"),
        (True, "forgotten", "verified"),
    ]
    third = gateway.remember("c", memory_id="o").revision_id or ""
    turned = gateway.reject_revision(hold(gateway, "o", "d"))
    assert (turned.state, gateway.show(turned.revision_id or "").state) == ("rejected", "rejected")
    assert gateway.link("o", gateway.remember("n").memory_id or "").state is None
    assert (gateway.show(third).state, gateway.correct(third, "e").state) == ("active", "active")


def test_nothing_waits_for_a_review_that_nobody_makes(open_here: Here, ledger_url: str) -> None:
    """LM-01, LM-40: given no act of a review at all, then what is captured, published and corrected is found."""
    ana, scout = open_here(), open_here(actor="agent:scout")
    scout.remember("the gate is green", memory_id="m")
    waiting = scout.remember("the lamp is off", hold=True)
    ana.publish(waiting.revision_id or "")
    ana.correct("m", "the gate is red")

    assert {hit.content for hit in scout.search("gate lamp", k=9).hits} == {"the gate is red", "the lamp is off"}
    reviews = {"revision.contested.v1", "revision.promoted.v1", "revision.rejected.v1", "revision.admitted.v1"}
    assert not reviews & {event.type for event in written(ledger_url)}
