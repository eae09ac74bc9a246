"""A neighbour is not a hit: whatever the index still says, only what the ledger confirms now is served."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import corrigenda
from gateway.service import Gateway
from projections import embedders
from projections.relay import Drained, Relay
from tests.house import WORDS, assert_house_in_order, last_position, refused, rows, tamper
from tests.integration.conftest import Here
from tests.integration.planting import hold, invalidate


@pytest.fixture
def freeze_index(open_here: Here) -> Iterator[Callable[[], None]]:
    """Return what stops every index of this process where it is: what is withdrawn then stays among the neighbours."""

    def drain(self: Relay, *_: object, **__: object) -> Drained:
        return Drained(0, 0, self.pending())

    with pytest.MonkeyPatch.context() as patch:
        yield lambda: patch.setattr(Relay, "drain", drain)


def contents(gateway: Gateway, query: str, **asked: Any) -> list[str | None]:
    """Return what a search serves, best first."""
    return [hit.content for hit in gateway.search(query, **asked).hits]


def test_a_hit_says_what_it_is_and_why(gateway: Gateway) -> None:
    """LM-02: given an active memory, when it is found, then it is called unverified, ranked, scored and explained."""
    receipt = gateway.remember("the gate closes at ten", tags=["gate"])
    gateway.remember("breakfast is at eight")

    found = gateway.search("when does the gate close", k=1)

    (hit,) = found.hits
    assert (hit.rank, hit.trust, hit.state, hit.revision_id) == (1, "unverified", "active", receipt.revision_id)
    assert 0 < hit.score <= 1
    assert "unverified" in hit.why and str(found.position) in hit.why
    assert (found.empty_reason, found.position, found.incarnation) == (None, receipt.position + 1, 1)
    stored = gateway.show(receipt.revision_id or "")
    assert {name: getattr(hit, name) for name in stored.__struct_fields__} == {
        name: getattr(stored, name) for name in stored.__struct_fields__
    }


def test_a_superseded_text_is_not_served_even_if_only_it_matches(gateway: Gateway) -> None:
    """RC-05: given A → B, when the query has A's words only, then B is what is found, never A."""
    first = gateway.remember("zanzibar ferry leaves at noon")
    second = gateway.correct(first.revision_id or "", "boat departs 13:00")

    assert [hit.revision_id for hit in gateway.search("zanzibar ferry noon").hits] == [second.revision_id]


@pytest.mark.parametrize("act", ["retire", "revoke"])
def test_what_was_withdrawn_is_not_served_until_it_is_restored(gateway: Gateway, act: str) -> None:
    """XC-08, RC-30: given A, when it is retired or revoked, the next search is without it until it is restored."""
    first = gateway.remember("the bridge is open")
    assert contents(gateway, "bridge") == ["the bridge is open"]

    getattr(gateway, act)(first.revision_id, reason="flood")
    assert contents(gateway, "bridge") == []

    gateway.restore(first.revision_id or "")
    assert contents(gateway, "bridge") == ["the bridge is open"]


WITHDRAWALS: dict[str, Callable[[Gateway], object]] = {
    "correct": lambda gateway: gateway.correct("m", "the bridge is shut"),
    "merge": lambda gateway: gateway.supersede(["m", gateway.remember("n").revision_id or ""], ["the bridge is shut"]),
    "split": lambda gateway: gateway.supersede(["m"], ["the bridge is shut", "the bridge is old"]),
    "publish": lambda gateway: gateway.publish(hold(gateway, "m", "the bridge is shut")),
    "contest": lambda gateway: gateway.contest("m", hold(gateway, "m", "the bridge is shut")),
    "forget": lambda gateway: gateway.forget("m"),
    "retire": lambda gateway: gateway.retire("m"),
    "revoke": lambda gateway: gateway.revoke("m", reason="flood"),
    "invalidate": lambda gateway: invalidate(gateway, "m"),
}


@pytest.mark.parametrize("act", WITHDRAWALS)
def test_an_index_that_lags_serves_nothing_that_the_ledger_withdrew(
    gateway: Gateway, freeze_index: Callable[[], None], act: str
) -> None:
    """XC-08, OH-25: given a vector that the index still holds, when its memory was withdrawn, then it is refused."""
    gateway.remember("the bridge is open", memory_id="m")
    assert contents(gateway, "bridge") == ["the bridge is open"]
    freeze_index()

    WITHDRAWALS[act](gateway)

    found = gateway.search("bridge")
    assert found.hits == ()
    assert found.empty_reason in ("filtered", "headless")
    assert found.warnings[0].startswith("index_pending:")


def test_a_read_model_edited_back_to_active_resurrects_nothing(
    gateway: Gateway, open_here: Here, ledger_url: str, freeze_index: Callable[[], None]
) -> None:
    """OH-22, XC-08: given a revoked memory in the index, when its row is edited back to active, it is not served."""
    first = gateway.remember("the bridge is open")
    assert gateway.search("bridge").hits
    freeze_index()
    gateway.revoke(first.revision_id or "", reason="flood")

    change = "UPDATE corrigenda.revision SET state = 'active', trust = %s WHERE revision = %s"
    tamper(ledger_url, (change, ["unverified", first.revision_id]))

    assert gateway.search("bridge").hits == ()
    assert open_here().search("bridge").hits == ()
    assert gateway.show(first.revision_id or "").trust == "revoked"
    tamper(ledger_url, (change, ["revoked", first.revision_id]))


def test_an_index_entry_that_the_ledger_does_not_know_is_dropped(
    gateway: Gateway, freeze_index: Callable[[], None]
) -> None:
    """OH-21, OH-22: given index entries of no lineage, or of another's revision, then they are dropped."""
    first, second = gateway.remember("the bridge is open"), gateway.remember("the ferry sails")
    gateway.search("bridge")
    freeze_index()
    index: Any = gateway._relay.replica  # Any: planting in the replica what no event put there
    (space,) = set(index.items().values())
    for item in (f"{first.memory_id}/{second.revision_id}", "mem_01J9ZKAAAAAAAAAAAAAAAAAAAA/rev_X", "nonsense"):
        index.put(space, item, WORDS.embed(["the bridge is open"])[0])

    assert contents(gateway, "the bridge is open", k=9) == ["the bridge is open", "the ferry sails"]
    for item in index.items().keys() - {f"{made.memory_id}/{made.revision_id}" for made in (first, second)}:
        index.remove(item)


def test_an_index_entry_in_the_wrong_place_is_shown_to_nobody(
    gateway: Gateway, freeze_index: Callable[[], None]
) -> None:
    """OH-21, AG-12: given an agent's note among the project's entries, when the project searches, it is not shown."""
    own = gateway.remember("the safe code", agent="a", visibility="agent")
    gateway.remember("the safe is green")
    gateway.search("safe", agent="a")
    freeze_index()
    index: Any = gateway._relay.replica  # Any: moving in the replica what no event moved
    item = f"{own.memory_id}/{own.revision_id}"
    places = index.items()
    (elsewhere,) = set(places.values()) - {places[item]}
    index.put(elsewhere, item, WORDS.embed(["the safe code"])[0])

    assert contents(gateway, "the safe code") == ["the safe is green"]
    index.put(places[item], item, WORDS.embed(["the safe code"])[0])
    assert contents(gateway, "the safe code", agent="a", k=1) == ["the safe code"]


@pytest.mark.parametrize(("dead", "live"), [(60, 10), pytest.param(1_000, 1, marks=pytest.mark.soak)])
def test_dead_neighbours_cost_no_slots(
    gateway: Gateway, freeze_index: Callable[[], None], dead: int, live: int
) -> None:
    """OH-24, AG-17: given many revoked items nearer than the live ones, when k = 10, then these are served."""
    near = [gateway.remember("fire alarm", tags=[f"dead {n}"]) for n in range(dead)]
    for n in range(live):
        gateway.remember(f"fire alarm drill on day {n}")
    gateway.search("fire alarm")
    freeze_index()
    for receipt in near:
        gateway.revoke(receipt.revision_id or "", reason="false alarm")

    served = contents(gateway, "fire alarm", k=10)

    assert sorted(str(content) for content in served) == [f"fire alarm drill on day {n}" for n in range(live)]


def test_equal_scores_are_each_served_once(gateway: Gateway) -> None:
    """OH-24: given 40 memories of one text, of which few have the tag, when they are asked for, each comes once."""
    for n in range(40):
        gateway.remember("the same words", tags=["rare"] if n % 13 == 0 else ["common"])

    hits = gateway.search("the same words", k=40).hits
    assert len({hit.revision_id for hit in hits}) == 40
    rare = gateway.search("the same words", k=4, tags=["rare"]).hits
    assert len({hit.revision_id for hit in rare}) == 4
    assert [hit.rank for hit in rare] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["exact", "faiss"])
@pytest.mark.parametrize("others", [30, pytest.param(1_000, marks=pytest.mark.soak)])
def test_the_exact_words_of_what_was_superseded_find_it_nowhere(
    open_here: Here, monkeypatch: pytest.MonkeyPatch, kind: str, others: int
) -> None:
    """RC-05: given A → B among distractors, A's exact text finds never A, before and after the outbox drains."""
    monkeypatch.setenv("CORRIGENDA_INDEX", kind)
    gateway = open_here()
    text = "zanzibar ferry leaves at noon"
    first = gateway.remember(text).revision_id or ""
    for n in range(others):
        gateway.remember(f"distractor {n}: a ferry leaves at noon")
    assert contents(gateway, text, k=10)[0] == text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Relay, "drain", lambda self, *_, **__: Drained(0, 0, self.pending()))
        second = gateway.correct(first, "boat departs 13:00").revision_id
        before = gateway.search(text, k=10)
        assert any(warning.startswith("index_pending:") for warning in before.warnings)
    after = gateway.search(text, k=10)

    for found in (before, after):
        assert len(found.hits) == 10
        assert first not in {hit.revision_id for hit in found.hits}
    everything = {hit.revision_id for hit in gateway.search(text, k=others + 2).hits}
    assert (first in everything, second in everything) == (False, True)


READERS: list[tuple[dict[str, str], set[str]]] = [
    ({}, {"global", "tenant", "project"}),
    ({"agent": "a"}, {"global", "tenant", "project", "agent"}),
    ({"user": "u"}, {"global", "tenant", "project", "user"}),
    ({"session": "s"}, {"global", "tenant", "project", "session"}),
    ({"agent": "a", "user": "u", "session": "s"}, {"global", "tenant", "project", "agent", "user", "session"}),
    ({"agent": "u", "user": "a", "session": "a"}, {"global", "tenant", "project"}),
    ({"agent": "A", "user": "u ", "session": "ss"}, {"global", "tenant", "project"}),
]


def test_each_reader_sees_what_its_segments_share(open_here: Here) -> None:
    """AG-12, AG-13, AG-14, AG-16: given one memory of each visibility, each reader sees those that its ids share."""
    gateway = open_here()
    for visibility in ("global", "tenant", "project", "agent", "user", "session"):
        gateway.remember(f"note {visibility}", visibility=visibility, agent="a", user="u", session="s")

    def seen(by: Gateway, reader: dict[str, str]) -> set[str]:
        return {hit.visibility for hit in by.search("note", k=9, **reader).hits}  # pyright: ignore[reportArgumentType] - varied

    for reader, visible in READERS:
        assert seen(gateway, reader) == visible, reader
    everybody = {"agent": "a", "user": "u", "session": "s"}
    assert seen(open_here(project="never-written"), everybody) == {"global", "tenant"}
    other = open_here(project="borea")
    other.remember("note of borea", agent="a", user="u", session="s")
    assert seen(other, everybody) == {"global", "tenant", "project"}


def test_a_learning_is_its_users_unless_said_otherwise(gateway: Gateway) -> None:
    """AG-13, C-11: given a learning without a visibility, then only its user finds it; without a user it is refused."""
    gateway.remember("prefers tea", kind="learning", user="u")

    assert contents(gateway, "tea") == []
    assert contents(gateway, "tea", user="u") == ["prefers tea"]
    with refused("VALIDATION_FAILED"):
        gateway.remember("prefers tea", kind="learning")


def test_kinds_and_tags_narrow_and_still_fill_k(gateway: Gateway) -> None:
    """OH-24: given many near memories of another kind or tag, when few match, then those are what is served."""
    for _ in range(30):
        gateway.remember("the bus runs", tags=["x"])
    gateway.remember("the bus runs on Sunday maybe", kind="decision", tags=["x", "y"])
    gateway.remember("the bus runs on Monday maybe", kind="fact", tags=["y"])

    assert contents(gateway, "the bus runs", kinds=["decision"]) == ["the bus runs on Sunday maybe"]
    assert len(contents(gateway, "the bus runs", tags=["y"])) == 2
    assert contents(gateway, "the bus runs", tags=["x", "y"]) == ["the bus runs on Sunday maybe"]
    assert contents(gateway, "the bus runs", tags=["y"], kinds=["fact"]) == ["the bus runs on Monday maybe"]


def test_each_empty_answer_has_its_reason(open_here: Here) -> None:
    """LM-38: given nothing yet, nothing that passes, no embedder, or only withdrawn ones, the reason is its own."""
    gateway = open_here()
    assert gateway.search("a").empty_reason == "nothing_indexed"
    first = gateway.remember("a")

    assert gateway.search("a").empty_reason is None
    assert gateway.search("a", kinds=["task"]).empty_reason == "filtered"
    assert gateway.search("a", min_trust="verified").hits == ()
    assert open_here(embedder="none").search("b").empty_reason == "no_embedder"
    gateway.retire(first.revision_id or "")
    assert gateway.search("a").empty_reason in ("nothing_indexed", "headless")


FLIP_ENVELOPE = (
    "UPDATE corrigenda.event SET envelope = set_byte(envelope, 20, get_byte(envelope, 20) # 1) WHERE seq = %s"
)
FLIP_PAYLOAD = "UPDATE corrigenda.payload SET body = set_byte(body, 20, get_byte(body, 20) # 1) WHERE seq = %s"


@pytest.mark.parametrize(("flip", "check"), [(FLIP_ENVELOPE, "chain"), (FLIP_PAYLOAD, "payloads")])
def test_a_tampered_memory_is_dropped_and_named(open_here: Here, ledger_url: str, flip: str, check: str) -> None:
    """OH-45, OH-21: given one byte of a memory changed under a running process, the others are served, it is named."""
    gateway = open_here()
    broken = gateway.remember("the mill grinds rye")
    gateway.remember("the mill grinds oats")
    assert len(gateway.search("mill").hits) == 2
    open_here.broken = True

    tamper(ledger_url, (flip, [broken.position]))

    found = gateway.search("mill")
    assert [hit.content for hit in found.hits] == ["the mill grinds oats"]
    assert found.warnings == (f"INTEGRITY_BROKEN@{broken.position}",)
    with refused("INTEGRITY_BROKEN") as refusal:
        gateway.show(broken.revision_id or "")
    assert refusal.details["position"] == broken.position
    assert refusal.details["check"] in (check, "canonical")
    tamper(ledger_url, (flip, [broken.position]))
    assert len(gateway.search("mill").hits) == 2
    open_here.broken = False


def test_an_edited_stored_vector_is_not_used(open_here: Here, ledger_url: str) -> None:
    """OH-21: given a stored vector that was swapped for another text's, when an index is built anew, it is not used."""
    gateway = open_here()
    gateway.remember("apple pie")
    gateway.remember("motor oil")
    gateway.search("apple")
    (apple,), (motor,) = rows(ledger_url, "SELECT content FROM corrigenda.embedding ORDER BY vector")
    swap = (
        "UPDATE corrigenda.embedding SET vector = (SELECT vector FROM corrigenda.embedding WHERE content = %s)"
        " WHERE content = %s"
    )
    tamper(ledger_url, (swap, [motor, apple]))

    assert contents(open_here(), "apple pie", k=1) == ["apple pie"]
    assert contents(open_here(), "motor oil", k=1) == ["motor oil"]


def test_a_position_ahead_is_waited_for(open_here: Here, ledger_url: str) -> None:
    """Given a position that another process is about to reach, when it is asked for, the answer is at least there."""
    reader, writer = open_here(), open_here()
    reader.remember("a")
    ahead = last_position(ledger_url) + 1
    late = threading.Timer(0.3, lambda: writer.remember("b"))
    late.start()

    found = reader.search("b", min_position=f"1.{ahead}")
    late.join()

    assert found.position >= ahead
    assert "b" in [hit.content for hit in found.hits]


def test_whoever_waits_for_a_position_keeps_nobody_from_reaching_it(gateway: Gateway, ledger_url: str) -> None:
    """Given a reader that waits, when another thread of its process writes, then it has waited for that."""
    gateway.remember("a")
    ahead = str(last_position(ledger_url) + 1)
    late = threading.Timer(0.3, lambda: gateway.remember("b"))
    late.start()

    assert gateway.history(gateway.search("a").hits[0].memory_id, min_position=ahead).position >= int(ahead)
    late.join()


def test_a_position_that_never_comes_is_unavailable(gateway: Gateway, ledger_url: str) -> None:
    """Given a position far ahead, when it is asked for, then UNAVAILABLE, naming where the ledger is."""
    gateway.remember("a")

    with refused("UNAVAILABLE") as refusal:
        gateway.search("a", min_position="99999")

    assert refusal.details["position"] == last_position(ledger_url)
    assert refusal.error.retriable


@pytest.mark.parametrize("position", ["2.1", "0.1", "-1", "1.", ".1", "x", "", "1.2.3", "1 ", "٣", "9" * 17])
def test_a_position_of_another_life_or_form_is_refused(gateway: Gateway, position: str) -> None:
    """Given a position of another incarnation, or none at all, then VALIDATION_FAILED."""
    gateway.remember("a")

    with refused("VALIDATION_FAILED"):
        gateway.search("a", min_position=position)


def test_the_built_in_embedder_finds_by_meaning(ledger_url: str, home: Path) -> None:
    """RC-05: given the model that is shipped, when a stale answer is corrected, the same question answers right."""
    builtin = embedders.load("builtin")
    assert builtin is not None
    with corrigenda.open(ledger_url, home=home, project="atlas", actor="human:ana") as gateway:
        stale = gateway.remember("The customer lives in Berlin.")
        gateway.remember("Invoices are sent on the first of each month.")
        question = "In which city is the client's home?"
        assert contents(gateway, question, k=1) == ["The customer lives in Berlin."]

        gateway.correct(stale.revision_id or "", "The customer lives in Hamburg.")
        assert contents(gateway, question, k=1) == ["The customer lives in Hamburg."]
        gateway.revoke(stale.memory_id or "", reason="never verified")
        assert contents(gateway, question, k=1) == ["Invoices are sent on the first of each month."]
    assert_house_in_order(ledger_url, home, embedder=builtin)


def test_nobody_is_said_to_have_withdrawn_what_the_index_has_lost(gateway: Gateway) -> None:
    """Given a head that the replica lost while it was in use, then a search does not say that it was withdrawn."""
    gateway.remember("the office is in Berlin")
    assert contents(gateway, "office") == ["the office is in Berlin"]
    index = gateway.index.replica
    assert index is not None
    for item in index.items():
        index.remove(item)
    found = gateway.search("office")
    assert (found.hits, found.empty_reason) == ((), "no_match")
