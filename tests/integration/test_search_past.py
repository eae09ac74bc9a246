"""Search in the past: on the ledger's clock, on the world's, or on both; and never what was withdrawn from view."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ledger.limits
from gateway.searching import recollection
from gateway.service import Gateway
from ledger.errors import UnavailableError
from tests.house import WORDS, last_position, refused, rows, tamper
from tests.integration.conftest import Here

START = datetime(2026, 1, 1, tzinfo=UTC)


class Days:
    """A clock that a test moves: each look is a second later."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def day(self, number: int) -> None:
        """Begin that day."""
        self.now = START + timedelta(days=number)


def day(number: int) -> str:
    """Return noon of a day."""
    return f"{(START + timedelta(days=number, hours=12)).isoformat()}"


@pytest.fixture
def days() -> Days:
    """Return the clock of the gateway."""
    return Days()


@pytest.fixture
def dated(open_here: Here, days: Days) -> Gateway:
    """Return a gateway on that clock."""
    return open_here(clock=days)


def contents(gateway: Gateway, query: str, **asked: Any) -> list[str | None]:
    """Return what a search serves, best first."""
    return [hit.content for hit in gateway.search(query, **asked).hits]


def test_a_search_at_each_position_answers_as_it_answered_then(gateway: Gateway) -> None:
    """Given acts of many kinds, when each position is searched later, then it answers what the search said there."""
    told: dict[int, list[tuple[str, float]]] = {}

    def note(receipt: Any) -> Any:
        found = gateway.search("the ferry sails", k=9)
        told[receipt.position] = [(hit.revision_id, round(hit.score, 5)) for hit in found.hits]
        return receipt

    first = note(gateway.remember("the ferry sails at noon"))
    second = note(gateway.remember("the ferry sails on Sunday", user="u"))
    held = note(gateway.remember("the ferry sails never", hold=True))
    third = note(gateway.correct(first.revision_id, "the ferry sails at one"))
    note(gateway.patch(third.revision_id, tags=["sea"]))
    note(gateway.retire(second.revision_id))
    note(gateway.publish(held.revision_id))
    note(gateway.revoke(third.revision_id, reason="wrong"))
    note(gateway.restore(third.revision_id))
    note(gateway.restore(second.revision_id))
    note(gateway.supersede([second.revision_id, held.revision_id], ["the ferry sails daily"]))

    assert len({tuple(found) for found in told.values()}) > 6
    for position, hits in told.items():
        found = gateway.search("the ferry sails", k=9, at_position=position)
        assert [(hit.revision_id, round(hit.score, 5)) for hit in found.hits] == hits, position
        assert found.at_position == position


def test_a_hit_of_the_past_says_where_it_stands_now(dated: Gateway, days: Days) -> None:
    """G6: given a correction and a revocation since, then the hit is as it was, with its present state and trust."""
    first = dated.remember("user lives in Berlin", memory_id="home", tags=["old"])
    days.day(1)
    dated.patch(first.revision_id or "", tags=["new"])
    days.day(2)
    second = dated.correct(first.revision_id or "", "user lives in Hamburg")
    dated.revoke(second.revision_id or "", reason="guessed")

    (hit,) = dated.search("user lives", at_position=first.position, tags=["old"]).hits
    assert (hit.content, hit.tags, hit.state, hit.trust) == (
        "user lives in Berlin",
        ("old",),
        "superseded",
        "unverified",
    )
    assert (hit.superseded_by, hit.memory_id) == ((second.revision_id,), "home")
    assert hit.superseded_at is not None and "active and unverified at position" in hit.why
    (hit,) = dated.search("user lives", at_position=second.position).hits
    assert (hit.content, hit.state, hit.trust) == ("user lives in Hamburg", "active", "revoked")
    assert contents(dated, "user lives", at_position=second.position, tags=["old"]) == []
    assert contents(dated, "user lives", at_position=day(1)) == ["user lives in Berlin"]


@pytest.mark.parametrize("embedder", [None, "none"])
def test_why_nothing_stood_is_said_of_that_moment(open_here: Here, days: Days, embedder: str | None) -> None:
    """LM-38: given a memory retired and restored, then what stood is `nothing_indexed` before it, `headless` between.

    With an embedder and without; a memory that stands today changes nothing of that.
    """
    gateway = open_here(embedder=embedder, clock=days)
    days.day(1)
    made = gateway.remember("the mill grinds rye")
    gone = gateway.retire(made.revision_id or "")
    gateway.restore(made.revision_id or "")

    def why(position: int | str) -> tuple[str | None, int | None]:
        found = gateway.search("mill", at_position=position)
        return found.empty_reason, found.at_position

    before = made.events[0].seq - 1
    assert [why(before), why(gone.position), why(day(-1))] == [
        ("nothing_indexed", before),
        ("headless", gone.position),
        ("nothing_indexed", -1),
    ]
    assert contents(gateway, "mill", at_position=made.position) == ["the mill grinds rye"]


def test_what_held_at_a_time_is_found_whatever_superseded_it(dated: Gateway, days: Days) -> None:
    """Given a memory from March that was superseded in October, then it is what held between, and nothing before."""
    first = dated.remember("user lives in Berlin", valid_from="2026-03-01T00:00:00Z")
    days.day(300)
    dated.supersede([first.revision_id or ""], ["user lives in Hamburg"])
    dated.remember("user lives on a boat", valid_from="2026-06-01T00:00:00Z", valid_to="2026-06-15T00:00:00Z")

    def held(moment: str) -> list[str | None]:
        return contents(dated, "where user lives", as_of=moment)

    assert held("2026-02-28T23:59:59Z") == []
    assert held("2026-04-01T00:00:00Z") == ["user lives in Berlin"]
    assert sorted(map(str, held("2026-06-14T00:00:00Z"))) == ["user lives in Berlin", "user lives on a boat"]
    assert held("2026-06-15T00:00:00Z") == ["user lives in Berlin"]
    assert held(day(301)) == ["user lives in Hamburg"]


def test_of_several_successors_the_earliest_ends_what_held(dated: Gateway, days: Days) -> None:
    """Given a split whose parts hold from two times of their own, then the earlier one ends what was split."""
    first = dated.remember("the cat and the dog eat at six")
    days.day(1)
    made = dated.supersede([first.revision_id or ""], ["the cat eats at six", "the dog eats at seven"])
    for revision, since in zip(made.successors or (), ("2026-01-20T00:00:00Z", "2026-01-10T00:00:00Z"), strict=True):
        dated.patch(revision, valid_from=since)

    assert contents(dated, "eat", as_of="2026-01-09T00:00:00Z") == ["the cat and the dog eat at six"]
    assert contents(dated, "eat", as_of="2026-01-11T00:00:00Z") == ["the dog eats at seven"]


def test_what_was_retired_held_and_what_was_revoked_did_not(dated: Gateway, days: Days) -> None:
    """Given a retired, a revoked and a held memory, then as of then the retired one alone is found, and says so."""
    retired, revoked = dated.remember("the pool is warm"), dated.remember("the pool is cold")
    dated.remember("the pool is dry", hold=True)
    days.day(5)
    dated.retire(retired.revision_id or "")
    dated.revoke(revoked.revision_id or "", reason="no")

    found = dated.search("the pool", as_of=day(1), why=True)
    assert [(hit.content, hit.state) for hit in found.hits] == [("the pool is warm", "retired")]
    assert contents(dated, "the pool") == []


def test_both_clocks_answer_what_was_believed_then_of_another_time(dated: Gateway, days: Days) -> None:
    """Given that on day 9 somebody learnt of a move on day 2, then what held on day 5 depends on when it is asked."""
    first = dated.remember("user lives in Berlin")
    days.day(9)
    second = dated.correct(first.revision_id or "", "user lives in Hamburg")
    dated.patch(second.revision_id or "", valid_from=day(2))

    assert contents(dated, "user lives", as_of=day(5)) == ["user lives in Hamburg"]
    assert contents(dated, "user lives", as_of=day(5), at_position=first.position) == ["user lives in Berlin"]
    assert contents(dated, "user lives", as_of=day(5), at_position=day(8)) == ["user lives in Berlin"]
    assert contents(dated, "user lives", as_of=day(1)) == ["user lives in Berlin"]


def test_what_was_forgotten_since_is_not_served(gateway: Gateway) -> None:
    """G6: given a memory that stood, when it was forgotten since, then no search of the past shows it, or says more."""
    made = gateway.remember("the safe code is xylophone")
    gateway.forget(made.memory_id or "", reason="private")

    for asked in ({"at_position": made.position}, {"as_of": day(0)}):
        found = gateway.search("the safe code", **asked, why=True)  # pyright: ignore[reportArgumentType] - varied
        assert found.hits == () and "xylophone" not in str(found)


def test_others_see_no_more_of_the_past_than_of_the_present(open_here: Here) -> None:
    """AG-12, OH-35: given a user's note of the past and another project's, then they are shown to nobody else."""
    gateway, other = open_here(), open_here(project="borea")
    gateway.remember("the safe code of u", user="u", visibility="user")
    other.remember("the safe code of borea")
    gateway.remember("the safe code of all", visibility="tenant")
    here = str(gateway.search("safe").position)

    assert contents(gateway, "safe code", at_position=here) == ["the safe code of all"]
    assert len(contents(gateway, "safe code", at_position=here, user="u")) == 2
    assert sorted(map(str, contents(other, "safe code", at_position=here))) == [
        "the safe code of all",
        "the safe code of borea",
    ]


def test_only_so_many_vectors_are_made_for_one_search(
    open_here: Here, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given five texts that nobody embedded while they stood, then two are embedded a search, and it says so."""
    assert ledger.limits.EMBEDDED_PER_SEARCH_MAX == 256
    monkeypatch.setattr(recollection, "EMBEDDED_PER_SEARCH_MAX", 2)
    writer = open_here(embedder="none")
    firsts = [writer.remember(f"the ferry sails at {n}") for n in range(5)]
    for made in firsts:
        writer.correct(made.revision_id or "", f"the bus leaves at {made.position}")
    reader = open_here()

    pending: list[tuple[int, tuple[str, ...]]] = []
    for _ in range(3):
        found = reader.search("the ferry sails", k=9, at_position=firsts[-1].position)
        pending.append((len(found.hits), found.warnings))

    assert pending == [(2, ("vectors_pending:3",)), (4, ("vectors_pending:1",)), (5, ())]


def test_a_swapped_stored_vector_misleads_no_search_of_the_past(open_here: Here, ledger_url: str) -> None:
    """OH-21: given two stored vectors that were swapped, then a search of the past does not use them."""
    gateway = open_here()
    gateway.remember("apple pie")
    oil = gateway.remember("motor oil")
    gateway.search("apple")
    (apple,), (motor,) = rows(ledger_url, "SELECT content FROM corrigenda.embedding ORDER BY vector")
    swap = (
        "UPDATE corrigenda.embedding SET vector = (SELECT vector FROM corrigenda.embedding WHERE content = %s)"
        " WHERE content = %s"
    )
    tamper(ledger_url, (swap, [motor, apple]))

    assert contents(gateway, "apple pie", k=1, at_position=oil.position) == ["apple pie"]
    assert contents(gateway, "motor oil", k=1, at_position=oil.position) == ["motor oil"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE corrigenda.revision_state SET state = 'active', trust = 'unverified'",
        "UPDATE corrigenda.revision_state SET from_seq = 0 WHERE from_seq > 0",
        "UPDATE corrigenda.revision SET visibility = 'tenant'",
    ],
)
def test_edited_read_models_serve_nothing_that_did_not_stand(open_here: Here, ledger_url: str, change: str) -> None:
    """G8: given read models that say that more stood, or that all may see it, then it is not served for that."""
    gateway = open_here()
    gateway.remember("the safe is green")
    gateway.remember("the safe code", user="u", visibility="user")
    held = gateway.remember("the safe is open", hold=True)
    assert len(contents(gateway, "the safe", user="u")) == 2  # every text that is active has its vector now
    open_here.broken = True

    tamper(ledger_url, (change, []))

    assert contents(gateway, "the safe", at_position=held.position, k=9) == ["the safe is green"]


def test_a_tampered_event_of_the_past_is_dropped_and_named(open_here: Here, ledger_url: str) -> None:
    """OH-45: given one byte of a memory changed, then a search of the past serves the others and names it."""
    gateway = open_here()
    broken = gateway.remember("the mill grinds rye")
    gateway.remember("the mill grinds oats")
    here = gateway.search("mill").position
    open_here.broken = True
    flip = "UPDATE corrigenda.payload SET body = set_byte(body, 20, get_byte(body, 20) # 1) WHERE seq = %s"
    tamper(ledger_url, (flip, [broken.position]))

    found = gateway.search("mill", at_position=here)
    assert [hit.content for hit in found.hits] == ["the mill grinds oats"]
    assert found.warnings == (f"INTEGRITY_BROKEN@{broken.position}",)


def test_the_past_is_found_by_words_where_no_embedder_answers(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given no embedder, or one that fails, then the past is searched by words, labelled."""
    blind, gateway = open_here(embedder="none"), open_here()
    first = gateway.remember("the ferry sails at noon")
    gateway.correct(first.revision_id or "", "the bus leaves at one")

    def embed(self: object, texts: object) -> None:
        raise UnavailableError("EMBEDDER_UNAVAILABLE", "The model should answer, and it does not. Try again.")

    with monkeypatch.context() as patch:
        patch.setattr(type(WORDS), "embed", embed)
        for asked in (blind, gateway):
            found = asked.search("when sails the ferry", at_position=first.position)
            assert [hit.content for hit in found.hits] == ["the ferry sails at noon"]
            assert found.warnings[-1] == "full_text"
            assert asked.search("tram", at_position=first.position).empty_reason == "no_embedder"


def test_a_long_past_is_searched_from_its_newest_end(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given more revisions than are looked at, then the newest are, and the answer says so."""
    gateway = open_here(embedder="none")
    monkeypatch.setattr(recollection, "TEXTS_PER_SEARCH_MAX", 2)
    for n in range(3):
        gateway.remember(f"the ferry sails at {n}")

    found = gateway.search("ferry", k=9)
    assert len(found.hits) == 2
    assert found.warnings == ("full_text", "newest_only:2")
    assert "the ferry sails at 0" not in [hit.content for hit in found.hits]


def test_before_all_there_was_nothing(gateway: Gateway) -> None:
    """LM-38: given a time before the ledger, then there was nothing; what did not hold then was left out."""
    gateway.remember("the mill grinds rye")
    found = gateway.search("mill", at_position="2001-01-01T00:00:00Z")
    assert (found.hits, found.empty_reason, found.at_position) == ((), "nothing_indexed", -1)
    assert gateway.search("mill", as_of="2001-01-01T00:00:00Z").empty_reason == "filtered"
    assert gateway.search("mill", at_position=0, kinds=["task"]).hits == ()


BAD: list[tuple[str, Callable[[int], Any]]] = [
    ("EVENT_NOT_FOUND", lambda last: {"at_position": last + 1}),
    ("VALIDATION_FAILED", lambda last: {"at_position": "2026-01-01"}),
    ("VALIDATION_FAILED", lambda last: {"at_position": f"2.{last}"}),
    ("VALIDATION_FAILED", lambda last: {"as_of": "yesterday"}),
    ("VALIDATION_FAILED", lambda last: {"as_of": last}),
]


@pytest.mark.parametrize(("code", "asked"), BAD)
def test_no_moment_of_the_past(gateway: Gateway, ledger_url: str, code: str, asked: Callable[[int], Any]) -> None:
    """Given a position above the head, one of another incarnation, or what is no time with its zone, it is refused."""
    gateway.remember("a")
    with refused(code):
        gateway.search("a", **asked(last_position(ledger_url)))


@pytest.mark.parametrize("moment", [-1, "-1", "yesterday", "2026-01-01T00:00:00"])
def test_a_moment_that_is_none_is_called_what_the_caller_calls_it(
    gateway: Gateway, moment: Any, tmp_path: Path
) -> None:
    """Given what is no position and no time, when an act takes it, then its refusal has the act's word for it."""
    made = gateway.remember("a", memory_id="a")
    asking: dict[str, Callable[[], object]] = {
        "at": lambda: gateway.explain("a", at=moment),
        "at_position": lambda: gateway.search("a", at_position=moment),
        "first": lambda: gateway.diff_between(moment, made.position),
        "last": lambda: gateway.diff_between(0, moment),
    }
    exports = (gateway.export_ledger, gateway.export_corrections, partial(gateway.export_supersession, ["a"]))
    for field, ask in [*asking.items(), *(("as_of", partial(one, tmp_path / "x", as_of=moment)) for one in exports)]:
        with refused("VALIDATION_FAILED") as found:
            ask()
        assert [fault["field"] for fault in found.details["fields"]] == [field]
