"""Questions at the edge: odd ones, small partitions, strangers in the index, and a ledger that moves meanwhile."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from gateway.searching.pace import CALM_S, FEW, REST_S, SLICE_S, Pace
from gateway.service import Gateway
from ledger.limits import CONTENT_CHARS_MAX
from ledger.verified import Ahead, Recorded, VerifiedLedger
from projections.relay import Drained, Relay
from tests.house import WORDS, refused
from tests.integration.conftest import Here


@pytest.mark.parametrize("query", ["", " \n\t", "a" * 100_000])
def test_a_question_of_nothing_or_beyond_all_bounds_is_refused(gateway: Gateway, query: str) -> None:
    """Given a query that is empty, blank or longer than any text may be, then VALIDATION_FAILED names it."""
    gateway.remember("the ferry sails")

    with refused("VALIDATION_FAILED") as refusal:
        gateway.search(query)

    assert [fault["field"] for fault in refusal.details["fields"]] == ["query"]


def test_a_question_as_long_as_a_text_may_be_is_answered(gateway: Gateway) -> None:
    """Given a query as long as a memory's text may be, then it is answered like any other."""
    gateway.remember("the ferry sails")

    assert len(gateway.search("ferry " * (CONTENT_CHARS_MAX // 6)).hits) == 1


@pytest.mark.parametrize("query", ["Où est le bac ?", "渡し船はいつ出ますか", "متى تبحر العبارة؟", "🛳️"])
def test_a_question_in_another_language_is_answered(gateway: Gateway, query: str) -> None:
    """Given a query of which no word is known, then the nearest there is comes, however far away, and no error."""
    gateway.remember("the ferry sails")

    (hit,) = gateway.search(query).hits

    assert hit.content == "the ferry sails" and -1 <= hit.score <= 1


def test_filters_that_nothing_passes_say_so(gateway: Gateway) -> None:
    """OH-24: given near memories that a filter leaves out, one and all, then `filtered` is the reason."""
    for n in range(40):
        gateway.remember(f"the ferry sails on day {n}")

    asked: list[dict[str, Any]] = [
        {"tags": ["never"]}, {"kinds": ["task"]}, {"min_confidence": "0.9"}, {"min_trust": "verified"},
    ]  # fmt: skip
    for filters in asked:
        found = gateway.search("ferry", **filters)
        assert (found.hits, found.empty_reason) == ((), "filtered"), filters


@pytest.mark.parametrize("kind", ["exact", "faiss"])
def test_a_partition_of_one_item_is_searched(open_here: Here, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Given an only memory, when far more are asked for, then it is the answer; once revoked, there is none."""
    monkeypatch.setenv("CORRIGENDA_INDEX", kind)
    gateway = open_here()
    only = gateway.remember("the ferry sails")

    assert [hit.revision_id for hit in gateway.search("ferry", k=10_000).hits] == [only.revision_id]
    gateway.revoke(only.revision_id or "", reason="it does not")
    assert gateway.search("ferry").empty_reason == "headless"


def test_fifty_strangers_that_are_nearer_take_nobodys_place(open_here: Here) -> None:
    """OH-24, OH-32: given 50 entries of no event of ours in the partition, all nearer, then the only own one is found.

    And fifty memories of another project, of the very words asked for, are not even neighbours.
    """
    gateway, other = open_here(), open_here(project="borea")
    for n in range(50):
        other.remember("when does the ferry sail", tags=[f"{n}"])
    own = gateway.remember("the ferry leaves at noon")
    gateway.search("ferry")
    index: Any = gateway._relay.replica  # Any: planting in the replica what no event put there
    space = index.partition_of(f"{own.memory_id}/{own.revision_id}")
    strangers = [f"mem_01J9ZKAAAAAAAAAAAAAAAAAA{n:02d}/rev_01J9ZKAAAAAAAAAAAAAAAAAA{n:02d}" for n in range(50)]
    for item in strangers:
        index.put(space, item, WORDS.embed(["when does the ferry sail"])[0])

    (hit,) = gateway.search("when does the ferry sail", k=1, why=True).hits
    assert hit.revision_id == own.revision_id
    assert gateway.search("when does the ferry sail", k=1, why=True).excluded == ()

    gateway.revoke(own.revision_id or "", reason="strike")
    assert gateway.search("when does the ferry sail").empty_reason == "headless"
    for item in strangers:
        index.remove(item)


def test_an_answer_is_not_older_than_its_newest_hit(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a memory that another process mends after the search caught up, its hit's version is in the position."""
    gateway, other = open_here(), open_here()
    made = gateway.remember("the ferry sails")
    gateway.search("ferry")
    near = Relay.neighbours
    mended: list[int] = []

    def meanwhile(self: Relay, *args: Any, **more: Any) -> Any:
        if not mended:
            mended.append(other.patch(made.revision_id or "", tags=["harbour"]).position)
        return near(self, *args, **more)

    monkeypatch.setattr(Relay, "neighbours", meanwhile)
    found = gateway.search("ferry")

    (hit,) = found.hits
    assert (hit.stream_version, hit.tags) == (2, ("harbour",))
    assert found.position >= mended[0]
    assert f"at position {found.position}" in hit.why


def test_all_hits_of_an_answer_are_true_at_its_position(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """XC-08: given a hit that another process revokes while the next ones are looked at, then it is not served."""
    gateway, other = open_here(), open_here()
    first = gateway.remember("the ferry sails at noon")
    second = gateway.remember("the ferry sails at noon daily")
    gateway.remember("the ferry")
    gateway.search("ferry")
    last_at = VerifiedLedger.last_at
    looks: list[int] = []

    def meanwhile(
        self: VerifiedLedger, streams: Collection[str], ahead: Ahead | None = None
    ) -> tuple[int, Mapping[str, Recorded]]:
        looks.append(1)
        if len(looks) == 2:
            looks.append(other.revoke(first.revision_id or "", reason="strike").position)
        return last_at(self, streams, ahead)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Relay, "drain", lambda self, *_, **__: _nothing(self))
        gateway.revoke(second.revision_id or "", reason="closed")
        patch.setattr(VerifiedLedger, "last_at", meanwhile)
        found = gateway.search("the ferry sails at noon", k=2)

    assert len(looks) > 2, "one look was enough, so nothing was tested"
    assert [hit.content for hit in found.hits] == ["the ferry"]
    assert found.position >= looks[2]


def test_what_others_write_all_the_time_is_left_to_a_later_search(open_here: Here) -> None:
    """Given more new memories of another process than a few, just after a search carried, then it says that they wait.

    What this process wrote, and what lies below a position that is asked for, is found at once.
    """
    gateway, other = open_here(), open_here()
    gateway.remember("a beginning")
    gateway._pace = gateway._retrieval._pace = pace = Pace(clock=lambda: 0.0)  # it rests for ever
    with pace.carrying():
        gateway.search("a beginning")
    made = [other.remember(f"the ferry sails on day {n}") for n in range(FEW + 2)]

    late = gateway.search("the ferry sails on day 3", k=20)
    assert f"index_pending:{len(made)}" in late.warnings
    assert [hit.content for hit in late.hits] == ["a beginning"]

    whole = gateway.search("the ferry sails on day 3", k=20, min_position=f"1.{made[-1].position}")
    assert (len(whole.hits), whole.warnings) == (FEW + 3, ())
    more = [other.remember(f"the bus leaves on day {n}") for n in range(FEW + 2)]
    gateway.remember("the train is mine")
    assert len(gateway.search("on day", k=50).hits) == FEW + 4 + len(more)


def test_a_pace_rests_as_long_as_it_carried() -> None:
    """Given two seconds of carrying, then for two more a search may leave much for later, but never what it owes."""
    now = [0.0]
    pace = Pace(clock=lambda: now[0])
    assert not pace.may_wait(head=100, carried=0, owed=-1)
    with pace.carrying():
        now[0] = 2.0

    now[0] = 3.9
    assert pace.may_wait(head=100, carried=0, owed=-1)
    assert not pace.may_wait(head=100, carried=0, owed=1)
    assert not pace.may_wait(head=FEW, carried=0, owed=-1)
    now[0] = 4.0
    assert not pace.may_wait(head=100, carried=0, owed=-1)
    with pace.carrying():
        pass
    assert pace.may_wait(head=100, carried=0, owed=-1)
    now[0] = 4.0 + REST_S
    assert not pace.may_wait(head=100, carried=0, owed=-1)


def test_a_pace_carries_in_slices_while_others_write_on_and_on() -> None:
    """Given a rest that ended a moment ago, then a slice is carried; after a calm, and at first, all there is."""
    now = [0.0]
    pace = Pace(clock=lambda: now[0])
    assert pace.slice_s is None
    with pace.carrying():
        pass
    now[0] = REST_S + CALM_S / 2
    assert pace.slice_s == SLICE_S
    now[0] = REST_S + CALM_S
    assert pace.slice_s is None


def test_what_others_write_on_and_on_is_carried_in_slices(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given more pages than there is time for, then a search carries one and says what waits.

    One that owes something, and one after a calm, carries all.
    """
    gateway, other, now = open_here(), open_here(), [0.0]
    gateway.remember("a beginning")
    gateway._pace = gateway._retrieval._pace = Pace(clock=lambda: now[0])
    with gateway._pace.carrying():
        gateway.search("a beginning")
    monkeypatch.setattr("gateway.searching.pace.SLICE_S", -1.0)
    monkeypatch.setattr("projections.relay.PAGE_ROWS", 4)

    def written(pause_s: float, *, owes: bool = False) -> tuple[int, list[str]]:
        made = [other.remember(f"the ferry sails on day {now[0]} at {n}") for n in range(FEW + 2)]
        now[0] += pause_s
        found = gateway.search("the ferry sails on day", k=50, min_position=f"1.{made[-1].position}" if owes else None)
        return len(found.hits), [one for one in found.warnings if one.startswith("index_pending")]

    # Of a full page the last row is left: it may be of an event of which more comes.
    assert written(REST_S) == (1 + 3, [f"index_pending:{FEW + 2 - 3}"])
    assert written(REST_S, owes=True) == (1 + 2 * (FEW + 2), [])
    assert written(REST_S + CALM_S) == (1 + 3 * (FEW + 2), [])


def test_status_tells_of_the_index_that_is_searched(open_here: Here) -> None:
    """Given effects that the open index holds and no generation does, then status counts none of them as pending."""
    gateway = open_here()
    gateway.remember("the ferry sails")
    assert gateway.status().index_pending == 1

    gateway.search("ferry")
    held = gateway.status()

    assert (held.index_pending, held.index["items"]) == (0, 1)
    assert held.index["cursor"] == held.ledger["size"] - 1
    gateway.index.frozen = True
    gateway.remember("the bus leaves")
    assert gateway.status().index_pending == 1
    gateway.index.frozen = False


def _nothing(relay: Relay) -> Drained:
    return Drained(0, 0, relay.pending())
