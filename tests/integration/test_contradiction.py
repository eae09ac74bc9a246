"""A person's correction retires what machines learned and nobody vouched for, where it says nearly the same."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import corrigenda
from gateway.deciding.contradiction import Contradictions
from gateway.deciding.late_checks import LateChecks
from gateway.service import Gateway
from gateway.shapes.replies.writes import Receipt
from ledger.corrections import CorrectionText, query_text
from ledger.errors import failure
from projections import embedders
from tests.house import WORDS, Written, assert_house_in_order, rows, types, written
from tests.integration.conftest import Here

LEARNED = "chargeCode THC DTHC vendor x labels it so"
SAID = {"field": "chargeCode", "original_value": "THC", "corrected_value": "DTHC", "reason": "vendor x labels it so"}


def learn(gateway: Gateway, text: str = LEARNED, **given: object) -> str:
    """Remember a machine's learning for Uma, or as it is given otherwise, and return the revision."""
    wanted = {"kind": "learning", "origin": "llm_extracted", "user": "uma", **given}
    if wanted["origin"] == "llm_extracted" and wanted["kind"] == "learning":
        wanted |= {"quote": text, "conversation": f"Uma: {text}"}
    return gateway.remember(text, **wanted).revision_id or ""


def correct(gateway: Gateway, **given: object) -> Receipt:
    """Record the correction of agent ap's charge code, seen by Uma."""
    wanted = {"agent": "ap", "user": "uma", **SAID, **given}
    return gateway.record_correction(**wanted)


def states(gateway: Gateway, *revisions: str) -> list[str]:
    """Return the state of each revision."""
    return [gateway.show(revision).state for revision in revisions]


def invalidations(ledger_url: str) -> list[Written]:
    """Return the events by which learnings were invalidated."""
    return [event for event in written(ledger_url) if event.type == "learning.invalidated.v1"]


def nearness(embedder: embedders.Embedder, text: str) -> float:
    """Return how near a text is to the correction, as the events give it."""
    asked = query_text(
        CorrectionText(**SAID, entity_key=None, original_input=None, recorded_at=None, run=None, tags=())
    )
    one, other = embedder.embed([text, asked]).astype("float64")
    return round(float(one @ other), 6)


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


def test_the_threshold_divides_what_is_near(open_here: Here) -> None:
    """AG-52: given a threshold that is a learning's very similarity, it is taken; below it, by however little, not."""
    text = LEARNED + " always"
    gateway, near = open_here(), nearness(WORDS, text)
    print(f"similarity of the learning to the correction: {near:.6f}")
    learning = learn(gateway, text)
    gateway.set_policy({"corrections.contradiction_threshold": f"{near + 0.000001:.6f}"})
    assert correct(gateway).invalidated == ()
    gateway.set_policy({"corrections.contradiction_threshold": f"{near:.6f}"})
    assert correct(gateway, reason=SAID["reason"]).invalidated == (learning,)


def test_the_built_in_embedder_divides_at_the_default(ledger_url: str, home: Path) -> None:
    """AG-33, AG-52: at 0.85, by the model that is shipped, with learnings on both sides of it."""
    builtin = embedders.load("builtin")
    assert builtin is not None
    texts = (
        "chargeCode: THC should be DTHC, vendor x labels it so",
        "the chargeCode THC of vendor x is really DTHC, they label it so",
        "vendor x sends its invoices by post",
        "THC is a terminal handling charge",
    )
    expected = [nearness(builtin, text) >= 0.85 for text in texts]
    assert True in expected and False in expected
    with corrigenda.open(ledger_url, home=home, project="atlas", actor="human:ana") as gateway:
        learnings = [learn(gateway, text) for text in texts]
        taken = set(correct(gateway).invalidated or ())
        for text, learning in zip(texts, learnings, strict=True):
            print(f"{nearness(builtin, text):.6f} {'retired' if learning in taken else 'kept   '} {text}")
        assert [learning in taken for learning in learnings] == expected
    assert_house_in_order(ledger_url, home, embedder=builtin)


def test_what_people_said_and_other_scopes_are_untouched(open_here: Here) -> None:
    """AG-34, AG-35, AG-36, LM-44: only a machine's learning that the correction's own readers see is ever taken."""
    gateway, bot, elsewhere = open_here(), open_here(actor="agent:ap"), open_here(project="other")
    kept = [
        learn(gateway, origin="human"),
        learn(gateway, origin="import"),
        learn(gateway, user="vera"),
        learn(gateway, origin="agent", user=None, agent="another", visibility="agent"),
        learn(gateway, origin="agent", session="other", visibility="session"),
        learn(gateway, kind="fact"),
        learn(gateway),
        learn(elsewhere, origin="agent", visibility="project"),
    ]
    open_here(actor="human:bob").admit(kept[-2], reason="he has seen it")
    taken = [
        learn(bot, origin=None),
        learn(bot, origin="import"),
        learn(gateway, origin="agent", user=None, agent="ap", visibility="agent"),
        learn(gateway, origin="agent", visibility="project"),
        learn(elsewhere, origin="agent", visibility="tenant"),
    ]
    assert correct(gateway).invalidated == tuple(taken)
    gateway.search("anything")
    assert states(gateway, *kept[:-1]) == ["active"] * 7
    assert states(elsewhere, kept[-1]) == ["active"]


def test_correcting_a_memory_contradicts_nothing(gateway: Gateway) -> None:
    """LM-44: only a correction as a record does; what is near to a memory's new text stays."""
    learning = learn(gateway)
    memory = gateway.remember("chargeCode THC").revision_id or ""
    gateway.correct(memory, LEARNED)
    gateway.search("chargeCode")
    assert states(gateway, learning) == ["active"]


def test_a_correction_of_the_learning_itself_supersedes_it(gateway: Gateway, ledger_url: str) -> None:
    """AG-33: given the very learning as the memory to correct, it is corrected once, and others near are retired."""
    itself, other = learn(gateway), learn(gateway)
    receipt = correct(gateway, memory=itself)
    assert (receipt.superseded, receipt.invalidated) == ((itself,), (other,))
    assert states(gateway, itself, other, receipt.revision_id or "") == ["superseded", "retired", "active"]


def test_at_most_ten_are_taken(gateway: Gateway, ledger_url: str) -> None:
    """AG-39: of twelve that are near the nearest ten are retired, and the late check takes no more."""
    for number in range(12):
        learn(gateway, f"{LEARNED} w{number}")
    assert len(correct(gateway).invalidated or ()) == 10
    gateway.search("chargeCode", user="uma")
    assert len(invalidations(ledger_url)) == 10


def test_an_agents_report_contradicts_nothing_until_it_is_confirmed(open_here: Here, ledger_url: str) -> None:
    """AG-50: then a person's word stands behind it, and AG-33 applies."""
    gateway, bot = open_here(), open_here(actor="agent:ap")
    learning = learn(gateway)
    reported = correct(bot)
    gateway.search("chargeCode", user="uma")
    assert (reported.invalidated, reported.warnings, states(gateway, learning)) == ((), (), ["active"])
    assert gateway.confirm_correction(reported.correction_id or "").invalidated == (learning,)
    assert states(gateway, learning) == ["retired"]


def test_it_can_be_turned_off(open_here: Here, ledger_url: str) -> None:
    """AG-37: with the policy off nothing is taken, then or later, until somebody corrects with it on."""
    gateway = open_here()
    learning = learn(gateway)
    gateway.set_policy({"corrections.invalidate_contradicted": "false"})
    off = correct(gateway)
    assert (off.invalidated, off.warnings, gateway.show_correction(off.correction_id or "").contradiction) == (
        (),
        (),
        "off",
    )
    gateway.set_policy({"corrections.invalidate_contradicted": "true"})
    open_here().search("chargeCode", user="uma")
    assert states(gateway, learning) == ["active"]
    assert correct(gateway).invalidated == (learning,)


def test_a_dry_run_and_a_replay_tell_the_same(gateway: Gateway, ledger_url: str) -> None:
    """AG-11, AG-54: what would be retired is told and not done; a repeated request is told what was."""
    learning = learn(gateway)
    assert correct(gateway, dry_run=True).invalidated == (learning,)
    assert states(gateway, learning) == ["active"]
    first = correct(gateway, idempotency_key="k")
    again = correct(gateway, idempotency_key="k")
    assert (first.invalidated, again.invalidated, again.replayed) == ((learning,), (learning,), True)
    assert len(invalidations(ledger_url)) == 1


# ---------------------------------------------------------------- late


def test_without_an_embedder_the_check_waits_for_one(open_here: Here, ledger_url: str) -> None:
    """AG-38: the correction is stored, deferred and says so; the first process that can compare makes the check."""
    blind = open_here(embedder="none")
    learning = learn(blind)
    receipt = correct(blind)
    assert receipt.invalidated == () and receipt.warnings[0].startswith("contradiction: deferred")
    assert blind.show_correction(receipt.correction_id or "").contradiction == "deferred"
    assert states(blind, learning) == ["active"]

    assert [hit.revision_id for hit in open_here().search("chargeCode", user="uma").hits] == []
    (event,) = invalidations(ledger_url)
    assert (event.facts["correction"], states(blind, learning)) == (receipt.correction_id, ["retired"])


def test_what_is_not_compared_at_once_is_compared_later(
    open_here: Here, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AG-38: given more learnings without a vector than one check embeds, the rest is taken by the outbox's row."""
    monkeypatch.setattr("gateway.deciding.contradiction.EMBEDDED_MAX", 1)
    blind, gateway = open_here(embedder="none"), open_here()
    learnings = [learn(blind, f"{LEARNED} w{number}") for number in range(3)]
    receipt = correct(gateway)
    assert receipt.invalidated == (learnings[0],) and receipt.warnings[0].startswith("contradiction: deferred")
    gateway.search("chargeCode", user="uma")
    assert states(gateway, *learnings) == ["retired"] * 3
    assert {event.facts["correction"] for event in invalidations(ledger_url)} == {receipt.correction_id}


def test_an_embedder_that_fails_defers_the_check(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """AG-38: the correction is stored all the same."""
    learning = learn(gateway)

    def fail(*_: object) -> None:
        raise failure("EMBEDDER_UNAVAILABLE", "The model should answer, and it does not. Try again.")

    with monkeypatch.context() as patch:
        patch.setattr(Contradictions, "_question", fail)
        assert correct(gateway).invalidated == ()
    gateway.search("chargeCode", user="uma")
    assert states(gateway, learning) == ["retired"]


def test_what_is_learned_again_is_retired_again(open_here: Here, ledger_url: str) -> None:
    """AG-33: given equal content whose vector is stored already, a learning after the correction is found, once."""
    gateway = open_here()
    learn(gateway, user="vera")
    gateway.search("chargeCode", user="vera")
    correct(gateway)
    assert rows(ledger_url, "SELECT count(*) FROM corrigenda.embedding") == [(1,)]

    again = learn(gateway)
    assert gateway.search("chargeCode", user="uma").hits == ()
    assert states(gateway, again) == ["retired"]
    assert len(invalidations(ledger_url)) == 1


def test_what_has_ended_contradicts_nothing_any_more(gateway: Gateway) -> None:
    """AG-44: given a correction that was revoked, what is learned afterwards stays."""
    gateway.revoke_correction(correct(gateway).correction_id or "", reason="a misreading")
    learning = learn(gateway)
    gateway.search("chargeCode", user="uma")
    assert states(gateway, learning) == ["active"]


def test_a_restored_learning_is_not_taken_again(open_here: Here, ledger_url: str) -> None:
    """AG-33: neither by that correction nor by another that was there before; by one that comes later it is."""
    gateway = open_here()
    learning = learn(gateway)
    correct(gateway)
    correct(gateway)
    gateway.restore(learning, reason="it holds after all")
    assert [hit.revision_id for hit in gateway.search("chargeCode", user="uma").hits] == [learning]
    open_here.close()
    gateway = open_here()
    rows_before = len(invalidations(ledger_url))
    gateway.search("chargeCode", user="uma")
    assert (states(gateway, learning), rows_before) == (["active"], 1)
    assert correct(gateway).invalidated == (learning,)


def race(monkeypatch: pytest.MonkeyPatch, first: Callable[[], object], second: Callable[[], object]) -> None:
    """Let `second` happen after `first`, a correction, has looked for what it contradicts, and before it is stored."""
    looked, done = threading.Barrier(2, timeout=30), threading.Barrier(2, timeout=30)
    look = Contradictions.look

    def slow(self: Contradictions, *given: Any) -> Any:
        found = look(self, *given)
        if not looked.broken and threading.current_thread() is thread:
            looked.wait()
            done.wait()
            looked.abort()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Contradictions, "look", slow)
        thread = threading.Thread(target=first)
        thread.start()
        looked.wait()
        second()
        done.wait()
        thread.join(30)


def test_a_learning_and_a_correction_at_the_same_moment(
    open_here: Here, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AG-33: given a learning that is stored behind the correction's look, it is retired once, whoever carries it."""
    gateway, other = open_here(), open_here()
    learn(other, "invoices are paid", agent="ap")  # so that neither has a name to assign that the other assigns, too
    receipts: list[Receipt] = []
    race(monkeypatch, lambda: receipts.append(correct(gateway)), lambda: learn(other))
    assert receipts[0].invalidated == ()

    searches = [
        threading.Thread(target=lambda one=one: one.search("chargeCode", user="uma")) for one in (gateway, other)
    ]
    for thread in searches:
        thread.start()
    for thread in searches:
        thread.join()
    (event,) = invalidations(ledger_url)
    assert event.facts["correction"] == receipts[0].correction_id


def test_a_learning_that_changes_behind_the_look_is_left_alone(
    open_here: Here, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AG-33, D17: given a learning that is retired meanwhile, the correction is decided anew, and stored."""
    gateway, other = open_here(), open_here()
    learning = learn(gateway)
    receipts: list[Receipt] = []
    race(monkeypatch, lambda: receipts.append(correct(gateway)), lambda: other.retire(learning))
    assert receipts[0].invalidated == ()
    assert (states(gateway, learning), invalidations(ledger_url)) == (["retired"], [])


class KilledError(BaseException):
    """What ends a process of this test, at a place of its choosing."""


@pytest.mark.parametrize(("where", "happened"), [("_invalidate", 0), ("_keep", 1)])
def test_a_process_that_dies_leaves_the_check_to_the_next(
    open_here: Here, ledger_url: str, monkeypatch: pytest.MonkeyPatch, where: str, happened: int
) -> None:
    """AG-33, G9: killed between the vector and the check, or between the check and its mark: retired, and once."""
    gateway = open_here()
    correct(gateway)
    learning = learn(gateway)

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(LateChecks, where, die)
        with pytest.raises(KilledError):
            gateway.search("chargeCode", user="uma")
    assert len(invalidations(ledger_url)) == happened

    assert open_here().search("chargeCode", user="uma").hits == ()
    assert (len(invalidations(ledger_url)), states(gateway, learning)) == (1, ["retired"])
