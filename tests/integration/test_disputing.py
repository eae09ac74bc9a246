"""Contradictions inside a memory, from the statement to the end, and who may state and end them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from corrigenda import ConflictError, Receipt
from gateway.service import Gateway
from tests.appends import DEADLINE_S
from tests.house import last_position, refused, types, written
from tests.integration.conftest import Here
from tests.integration.planting import hold

ROUNDS = 100


def revision(receipt: Receipt) -> str:
    """Return the revision that a receipt names."""
    assert receipt.revision_id is not None
    return receipt.revision_id


def states(gateway: Gateway, memory: str = "m") -> list[str]:
    """Return the states of a memory's revisions in version order."""
    return [item.state for item in gateway.history(memory).items]


@pytest.fixture
def pair(gateway: Gateway) -> tuple[str, str]:
    """Return r1, which is the head of the memory m, and r2, which is held, both of them about the crane."""
    first = revision(gateway.remember("the crane lifts ten tonnes", memory_id="m"))
    return first, hold(gateway, "m", "the crane lifts twelve tonnes")


def test_a_contradiction_from_end_to_end(gateway: Gateway, pair: tuple[str, str], ledger_url: str) -> None:
    """Contested, both are gone from search; promoted, r2 is there and r1 rejected.

    LM-23, LM-29, LM-42, by a person.
    """
    first, second = pair
    before = last_position(ledger_url)

    done = gateway.contest(first, second, reason="both cannot be")
    assert (done.revision_id, states(gateway), gateway.explain("m").head) == (first, ["conflicted"] * 2, None)
    assert gateway.search("crane lifts tonnes").hits == ()

    won = gateway.promote(second, reason="measured")

    assert (won.revision_id, states(gateway), gateway.explain("m").head) == (second, ["rejected", "active"], second)
    assert [hit.revision_id for hit in gateway.search("crane lifts tonnes").hits] == [second]
    assert types(written(ledger_url, above=before)) == ["revision.contested", "revision.promoted"]
    story = gateway.explain("m").audit
    assert [move["revision"] for entry in story[-2:] for move in entry.moves] == [second, first, first, second]
    assert [entry.at for entry in story] == sorted(entry.at for entry in story)


def test_a_promotion_over_a_head(gateway: Gateway, pair: tuple[str, str]) -> None:
    """LM-30, LM-31, LM-32 (by a person): the head that is replaced has to be named, and is superseded by the winner."""
    first, second = pair
    gateway.contest(first, second)
    for expected in (first, "m"):
        with refused("EXPECTED_ACTIVE_MISMATCH"):
            gateway.promote(second, expected_active=expected)
    third = revision(gateway.remember("the crane is sold", memory_id="m"))
    for wrong in (None, first):
        with refused("EXPECTED_ACTIVE_MISMATCH") as refusal:
            gateway.promote(second, expected_active=wrong)
        assert refusal.details["head"] == third
    assert states(gateway) == ["conflicted", "conflicted", "active"]

    won = gateway.promote(second, expected_active="m")

    assert (won.revision_id, won.superseded) == (second, (third,))
    assert states(gateway) == ["rejected", "active", "superseded"]
    assert gateway.show(third).superseded_by == (second,)


def test_what_is_rejected_stays(gateway: Gateway, pair: tuple[str, str], ledger_url: str) -> None:
    """Nothing is deleted, and what cannot be rejected is left as it was.

    LM-18, LM-19, LM-20, LM-21, LM-39, by a person.
    """
    first, second = pair
    with refused("INVALID_INPUT") as refusal:
        gateway.reject_revision("m")
    assert "correct" in refusal.error.message and "contest" in refusal.error.message

    gateway.reject_revision(second, idempotency_key="k", reason="hearsay")

    assert states(gateway) == ["active", "rejected"]
    assert gateway.show(second).content == "the crane lifts twelve tonnes"
    before = last_position(ledger_url)
    assert gateway.reject_revision(second, idempotency_key="k", reason="hearsay").replayed
    with refused("INVALID_TRANSITION"):
        gateway.reject_revision(second)
    gateway.correct("m", "the crane lifts eleven tonnes")
    with refused("INVALID_TRANSITION"):
        gateway.reject_revision(first)
    assert last_position(ledger_url) == before + 1


def test_a_rejected_partner_leaves_the_other_waiting(gateway: Gateway, pair: tuple[str, str]) -> None:
    """LM-18 (by a person): given r1 and r2 contested, when r1 is rejected, r2 is conflicted, and can be promoted."""
    first, second = pair
    gateway.contest(first, second)

    gateway.reject_revision(first)

    assert states(gateway) == ["rejected", "conflicted"]
    assert gateway.promote(second).revision_id == second


def test_what_cannot_contradict_each_other(open_here: Here, pair: tuple[str, str], ledger_url: str) -> None:
    """Itself, another memory's, another kind's and another project's, and nobody's.

    LM-24, LM-25, LM-35, by a person.
    """
    gateway = open_here()
    first, _ = pair
    other = revision(gateway.remember("another memory", kind="decision"))
    foreign = revision(open_here(project="borea").remember("another project"))
    before = last_position(ledger_url)

    for one, two, code in (
        (first, first, "INVALID_INPUT"),
        (first, other, "INVALID_INPUT"),
        (first, "m", "INVALID_INPUT"),
        (first, foreign, "MEMORY_NOT_FOUND"),
        (foreign, first, "MEMORY_NOT_FOUND"),
        (first, "rev_01J9ZKAAAAAAAAAAAAAAAAAAAA", "MEMORY_NOT_FOUND"),
        (first, "", "VALIDATION_FAILED"),
    ):
        with refused(code):
            gateway.contest(one, two)
    with refused("INVALID_INPUT"):
        open_here(project=None).contest(first, foreign)
    assert last_position(ledger_url) == before


def test_a_contest_is_done_once_under_a_key(gateway: Gateway, pair: tuple[str, str], ledger_url: str) -> None:
    """RC-41: given a contest with a key, when it is sent again, then it is told again; without it, NO_CHANGE."""
    done = gateway.contest(*pair, idempotency_key="k")
    before = last_position(ledger_url)

    assert gateway.contest(*pair, idempotency_key="k").position == done.position
    with refused("NO_CHANGE"):
        gateway.contest(*pair)
    assert last_position(ledger_url) == before


def test_an_agent_does_not_contest_what_people_say(open_here: Here, pair: tuple[str, str], ledger_url: str) -> None:
    """LM-23: given a person's head, or a verified one, an agent's contest lacks `correct`; its own kind's it may."""
    agent, person = open_here(actor="agent:scout"), open_here()
    agent.remember("the mast is red", memory_id="mast")
    held = hold(person, "mast", "the mast is blue")
    before = last_position(ledger_url)

    with refused("FORBIDDEN_ACTOR") as refusal:
        agent.contest(pair[1], pair[0])
    assert refusal.details == {"permission": "correct"}
    assert last_position(ledger_url) == before
    person.admit("mast", reason="I see it")
    with refused("FORBIDDEN_ACTOR"):
        agent.contest("mast", held)

    person.correct("mast", "the mast is green")
    agent.remember("the hull is red", memory_id="hull")
    assert agent.contest("hull", hold(person, "hull", "the hull is blue")).outcome == "stored"
    with refused("FORBIDDEN_ACTOR") as refusal:
        agent.promote(held)
    assert refusal.details == {"permission": "decide"}


# ---------------------------------------------------------------- at once


def at_once(*acts: "Sequence[object]") -> list[object]:
    """Do two acts, (function, arguments…), at the same moment; return what each answered or was refused with."""
    gate = Barrier(len(acts))

    def act(call: "Sequence[object]") -> object:
        function, *given = call
        assert callable(function)
        gate.wait(DEADLINE_S)
        try:
            return function(*given)
        except ConflictError as error:
            return error

    with ThreadPoolExecutor(len(acts)) as pool:
        return [future.result(DEADLINE_S) for future in [pool.submit(act, call) for call in acts]]


def test_of_two_corrections_at_once_one_wins_each_time(open_here: Here) -> None:
    """RC-13, LM-43: in each of 100 rounds two corrections of one head have one winner, and the loser is told which."""
    ana, bo = open_here(embedder="none"), open_here(embedder="none", actor="human:bo")
    head = revision(ana.remember("round 0", memory_id="m"))
    for number in range(1, ROUNDS + 1):
        answers = at_once((ana.correct, head, f"ana {number}"), (bo.correct, head, f"bo {number}"))

        (winner,) = [answer for answer in answers if isinstance(answer, Receipt)]
        (loser,) = [answer for answer in answers if isinstance(answer, ConflictError)]
        assert loser.code == "MEMORY_ALREADY_SUPERSEDED"
        assert loser.details["superseded_by"] == [winner.revision_id] == [loser.details["head"]]
        head = revision(winner)
    items = ana.history("m").items
    assert [item.version for item in items] == [*range(1, ROUNDS + 2)]
    assert [item.state for item in items] == ["superseded"] * ROUNDS + ["active"]


def test_of_two_promotions_at_once_one_wins(open_here: Here) -> None:
    """LM-33 (by people): given r1 and r2 contested, when both are promoted at once, then one is the head."""
    ana, bo = open_here(), open_here(actor="human:bo")
    for number in range(5):
        first = revision(ana.remember("one", memory_id=f"m{number}"))
        second = hold(ana, f"m{number}", "two")
        ana.contest(first, second)

        answers = at_once((ana.promote, first), (bo.promote, second))

        (winner,) = [answer for answer in answers if isinstance(answer, Receipt)]
        (loser,) = [answer for answer in answers if isinstance(answer, ConflictError)]
        assert loser.code in ("INVALID_TRANSITION", "EXPECTED_ACTIVE_MISMATCH")
        assert ana.explain(f"m{number}").head == winner.revision_id
        assert sorted(states(ana, f"m{number}")) == ["active", "rejected"]


def test_each_act_of_a_review_takes_its_own_arguments(gateway: Gateway, pair: tuple[str, str], ledger_url: str) -> None:
    """LM-27, LM-28 (by a person): no contest without the other, no other and no expected head where none belongs."""
    first, second = pair
    acts: Any = gateway  # Any: arguments that no act takes
    before = last_position(ledger_url)
    with refused("VALIDATION_FAILED"):
        acts.contest(first, None)
    for wrong in (
        lambda: acts.contest(first),
        lambda: acts.contest(first, second, expected_active=first),
        lambda: acts.reject_revision(second, expected_active=first),
        lambda: acts.reject_revision(second, first),
        lambda: acts.promote(second, first),
        lambda: acts.admit(second, first, reason="r"),
    ):
        with pytest.raises(TypeError):
            wrong()
    assert last_position(ledger_url) == before
