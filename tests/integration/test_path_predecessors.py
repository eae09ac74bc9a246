"""A text that takes the place of a head: named as its predecessor, held first, by whoever may, and searched for."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from corrigenda import CorrigendaError, Receipt
from gateway.service import Gateway
from tests.house import last_position, refused, types, written
from tests.integration.conftest import Here


def test_a_text_replaces_the_head_that_it_names(gateway: Gateway, ledger_url: str) -> None:
    """LM-16: given a head, when a text names it as predecessor, it is the head of the same memory, by one event."""
    first = gateway.remember("the pump is red", memory_id="pump", kind="procedure", user="ana", visibility="user")
    before = last_position(ledger_url)

    second = gateway.remember("the pump is blue", predecessor="pump", kind="procedure", reason="painted")

    assert types(written(ledger_url, above=before)) == ["revision.corrected"]
    assert (second.memory_id, second.superseded) == ("pump", (first.revision_id,))
    head = gateway.show("pump")
    assert (head.revision_id, head.version, head.supersedes) == (second.revision_id, 2, (first.revision_id,))
    assert (head.visibility, head.scope) == ("user", {"project": "atlas", "user": "ana"}), "nothing is widened unasked"
    assert [hit.content for hit in gateway.search("pump", user="ana").hits] == ["the pump is blue"]


def test_a_visibility_of_its_own_needs_its_segment(gateway: Gateway) -> None:
    """Given a user's memory, when its successor names an agent only, INVALID_INPUT; with a visibility too, it is so."""
    gateway.remember("red", memory_id="pump", user="ana", visibility="user")

    with refused("INVALID_INPUT"):
        gateway.remember("blue", predecessor="pump", agent="scout")

    gateway.remember("blue", predecessor="pump", agent="scout", visibility="agent")
    assert gateway.show("pump").scope == {"project": "atlas", "agent": "scout"}


def test_a_stale_predecessor_changes_nothing(open_here: Here, ledger_url: str) -> None:
    """LM-17: given A → B by another process, when a text names A, then STALE_PREDECESSOR names B, and B stays."""
    here, there = open_here(), open_here()
    first = here.remember("one", memory_id="m")
    second = there.correct("m", "two")
    before = last_position(ledger_url)

    with refused("STALE_PREDECESSOR") as refusal:
        here.remember("three", memory_id="m", predecessor=first.revision_id)

    assert refusal.details["head"] == second.revision_id
    assert (last_position(ledger_url), here.show("m").revision_id) == (before, second.revision_id)


def test_a_predecessor_is_of_the_memory_that_is_named(gateway: Gateway) -> None:
    """Given two memories, when the head of one is named for the other, or for a new one, then INVALID_INPUT."""
    gateway.remember("one", memory_id="m")
    gateway.remember("two", memory_id="n")
    for memory in ("n", "new"):
        with refused("INVALID_INPUT"):
            gateway.remember("three", memory_id=memory, predecessor="m")


@pytest.mark.parametrize("hold", [False, True])
def test_an_agent_replaces_only_its_own_unverified_head(open_here: Here, ledger_url: str, hold: bool) -> None:
    """LM-16, XC-10: given its own head and those of others, an agent replaces its own; the rest needs `correct`."""
    scout = open_here(actor="agent:scout")
    open_here().remember("by a person", memory_id="person")
    open_here(actor="agent:other").remember("by another agent", memory_id="other")
    scout.remember("by itself", memory_id="own")
    before = last_position(ledger_url)

    for memory in ("person", "other"):
        with refused("FORBIDDEN_ACTOR") as refusal:
            scout.remember("another text", predecessor=memory, hold=hold)
        assert refusal.details["permission"] == "correct"
    assert last_position(ledger_url) == before

    assert scout.remember("another text", predecessor="own", hold=hold).outcome == "stored"


def test_an_agent_does_not_replace_what_a_person_wrote_over_its_text(open_here: Here) -> None:
    """Given an agent's memory that a person corrected, when the agent names that head, then FORBIDDEN_ACTOR."""
    scout = open_here(actor="agent:scout")
    scout.remember("by itself", memory_id="own")
    open_here().correct("own", "by a person")

    with refused("FORBIDDEN_ACTOR"):
        scout.remember("again by itself", predecessor="own")


def test_an_agent_claims_no_human_origin(open_here: Here, ledger_url: str) -> None:
    """XC-10: given an agent, when it holds a text as a person's, then FORBIDDEN_ACTOR, and nothing is stored."""
    open_here().remember("something")
    before = last_position(ledger_url)

    with refused("FORBIDDEN_ACTOR"):
        open_here(actor="agent:scout").remember("one", hold=True, origin="human")

    assert last_position(ledger_url) == before


def test_a_held_text_waits_and_is_published(gateway: Gateway, ledger_url: str) -> None:
    """LM-16: given a held successor, search serves the head until it is published, and then the successor alone."""
    first = gateway.remember("the pump is red", memory_id="pump")
    second = gateway.remember("the pump is blue", memory_id="pump", predecessor="pump", hold=True)
    assert (second.superseded, gateway.show(second.revision_id or "").state) == ((), "processing")
    assert [hit.content for hit in gateway.search("the pump is blue").hits] == ["the pump is red"]
    before = last_position(ledger_url)

    published = gateway.publish("pump", reason="seen")

    assert types(written(ledger_url, above=before)) == ["revision.published"]
    assert (published.revision_id, published.superseded) == (second.revision_id, (first.revision_id,))
    (hit,) = gateway.search("the pump is red").hits
    assert (hit.content, hit.version, hit.supersedes) == ("the pump is blue", 2, (first.revision_id,))
    old = gateway.explain(first.revision_id or "")
    assert old.superseded_at == old.valid_to == gateway.events(after=before).__next__().at
    assert old.provenance["supersededBy"] == second.revision_id


def test_a_memory_stands_for_the_one_text_that_it_holds(gateway: Gateway) -> None:
    """Given none, one and two held texts, when the memory is published by name, then only one is unambiguous."""
    gateway.remember("one", memory_id="m")
    with refused("INVALID_TRANSITION"):
        gateway.publish("m")
    two = [gateway.remember(text, predecessor="m", hold=True).revision_id for text in ("two", "three")]
    with refused("INVALID_TRANSITION") as refusal:
        gateway.publish("m")
    assert all(revision in refusal.error.message for revision in two if revision)
    assert gateway.publish(two[1] or "").revision_id == two[1]


def test_a_head_that_another_process_moved_is_not_replaced(open_here: Here, ledger_url: str) -> None:
    """LM-17, LM-22: given a held text whose head another process corrects, when it is published here, then STALE."""
    here, there = open_here(), open_here()
    here.remember("one", memory_id="m")
    held = here.remember("two", predecessor="m", hold=True)
    third = there.correct("m", "three")
    before = last_position(ledger_url)

    with refused("STALE_PREDECESSOR") as refusal:
        here.publish(held.revision_id or "")

    assert refusal.details["head"] == third.revision_id
    assert last_position(ledger_url) == before


def test_publishing_needs_the_permission_to_correct(open_here: Here) -> None:
    """given an agent's held text, the agent may not publish it; a person may, and once."""
    scout = open_here(actor="agent:scout")
    held = scout.remember("one", memory_id="m", hold=True)
    assert scout.search("one").empty_reason is not None

    with refused("FORBIDDEN_ACTOR"):
        scout.publish("m")

    first = open_here().publish(held.revision_id or "", idempotency_key="k")
    again = open_here().publish(held.revision_id or "", idempotency_key="k")
    assert (first.replayed, again.replayed, again.revision_id) == (False, True, held.revision_id)
    assert [hit.content for hit in scout.search("one").hits] == ["one"]


def test_a_text_is_published_or_rejected_never_both(open_here: Here) -> None:
    """LM-22: given a held text that is rejected while it is published, one of the two is refused, and it stays so."""
    here, there = open_here(), open_here(actor="human:bea")
    gate = threading.Barrier(2)

    def decide(act: Callable[[str], Receipt], revision: str) -> str:
        gate.wait(30)
        try:
            return act(revision).events[-1].type
        except CorrigendaError as error:
            return error.code

    with ThreadPoolExecutor(2) as pool:
        for number in range(10):
            first = here.remember(f"text {number}", memory_id=f"m{number}").revision_id
            held = here.remember(f"other {number}", predecessor=f"m{number}", hold=True).revision_id or ""
            told = sorted(pool.map(decide, [here.publish, there.reject_revision], [held, held]))
            state = here.show(held).state
            published, rejected = (
                ["INVALID_INPUT", "revision.published.v1"],
                ["INVALID_TRANSITION", "revision.rejected.v1"],
            )
            assert (state, told) in (("active", published), ("rejected", rejected))
            assert here.show(f"m{number}").revision_id == (held if state == "active" else first)
