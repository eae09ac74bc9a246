"""What a search guesses before it reads the head, and what it has seen before, decides nothing."""

from collections.abc import Callable
from typing import LiteralString

import pytest

from gateway.searching.foresight import Foresight
from gateway.searching.pace import FEW, Pace
from gateway.service import Gateway
from ledger.errors import IntegrityError
from ledger.verified import Ahead
from tests.house import tamper
from tests.integration.conftest import Here

ASKED = "the ferry sails at noon"


@pytest.fixture
def warm(open_here: Here) -> Gateway:
    """A gateway that has answered the question before."""
    gateway = open_here()
    gateway.remember(ASKED, memory_id="ferry")
    gateway.remember("the ferry", memory_id="other")
    assert [hit.memory_id for hit in gateway.search(ASKED, k=2).hits] == ["ferry", "other"]
    return gateway


def _after_the_guess(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen between what the next search guesses and its look at the head."""
    look, acts = Foresight.look, iter([act])

    def looked(self: Foresight) -> Ahead | None:
        found = look(self)
        assert found is not None and found.positions, "nothing was guessed, so nothing is tested"
        next(acts, lambda: None)()
        return found

    monkeypatch.setattr(Foresight, "look", looked)


def test_what_is_withdrawn_after_the_guess_is_not_served(
    warm: Gateway, open_here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G6: given a hit that another process revokes before the head is read, then it is not served.

    The search carries nothing, and so guesses once.
    """
    other = open_here()
    warm._pace = warm._retrieval._pace = pace = Pace(clock=lambda: 0.0)  # it rests for ever
    with pace.carrying():
        warm.search(ASKED)

    def withdrawn() -> None:
        other.revoke("ferry", reason="strike")
        for n in range(FEW):
            other.remember(f"the bus leaves on day {n}")

    _after_the_guess(monkeypatch, withdrawn)

    assert [hit.memory_id for hit in warm.search(ASKED, k=2).hits] == ["other"]


def test_what_is_written_after_the_guess_is_found(
    warm: Gateway, open_here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a nearer memory that another process writes before the head is read, then it is found."""
    other = open_here()
    warm.revoke("ferry", reason="strike")
    warm.search(ASKED)
    _after_the_guess(monkeypatch, lambda: other.remember(ASKED, memory_id="again"))

    assert [hit.memory_id for hit in warm.search(ASKED, k=1).hits] == ["again"]


def test_a_memory_that_went_on_is_shown_as_it_is_now(
    warm: Gateway, open_here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given metadata that another process mends before the head is read, then the hit says what it is now."""
    other = open_here()
    _after_the_guess(monkeypatch, lambda: other.patch("ferry", tags=["late"]))

    (hit,) = warm.search(ASKED, k=1).hits

    assert (hit.tags, hit.stream_version) == (("late",), 2)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE corrigenda.event SET envelope = envelope || ' '::bytea WHERE seq = %s",
        "UPDATE corrigenda.event SET seal = sha256(seal) WHERE seq = %s",
        "UPDATE corrigenda.payload SET body = body || ' '::bytea WHERE seq = %s",
        "UPDATE corrigenda.payload SET salt = sha256(salt) WHERE seq = %s",
        "DELETE FROM corrigenda.payload WHERE seq = %s",
        "DELETE FROM corrigenda.event WHERE seq = %s",
    ],
)
def test_what_was_right_before_is_read_and_checked_again(
    warm: Gateway, open_here: Here, ledger_url: str, edit: LiteralString
) -> None:
    """G8: given an event that was served before and is edited now, then it is not served by a process that knew it."""
    (hit,) = warm.search(ASKED, k=1).hits
    open_here.broken = True
    tamper(ledger_url, (edit, [hit.position]))

    try:
        served = [one.memory_id for one in warm.search(ASKED, k=2).hits]
    except IntegrityError:
        served = []

    assert "ferry" not in served
