"""Another embedder: refused by name until the index is built anew beside the live one, and never embedded twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.service import Gateway
from projections import embedders, relay
from projections.index import snapshot
from tests.endpoint import Body, Endpoint, Handler, good, serving
from tests.endpoint import status as answering
from tests.house import WORDS, assert_house_in_order, refused
from tests.integration.conftest import Here

OPENAI = {"embedder": "openai:words"}
SIGNATURE = "provider=openai;model=words;dimension=256;normalised=yes"
TEXTS = ["the harbour closes at nine", "gulls nest on the north pier", "the ferry leaves from quay seven"]


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with serving() as served:
        monkeypatch.setenv("CORRIGENDA_EMBEDDER_BASE_URL", served.url)
        yield served


@pytest.fixture
def begun(open_here: Here, endpoint: Endpoint) -> Here:
    """Return what opens a ledger of three memories, whose index the tests' own embedder built."""
    with open_here() as gateway:
        for text in TEXTS:
            gateway.remember(text)
    return open_here


@pytest.fixture
def in_order(begun: Here, endpoint: Endpoint, ledger_url: str, home: Path) -> Iterator[None]:
    """Look, at the end, whether the house is in order with the endpoint's embedder."""
    yield
    begun.close()
    begun.broken = True  # it was looked at here
    made = embedders.load("openai:words", base_url=endpoint.url)
    assert made is not None
    assert_house_in_order(ledger_url, home, embedder=made)


def found(gateway: Gateway, query: str) -> list[str | None]:
    return [hit.content for hit in gateway.search(query, k=1).hits]


def test_another_embedder_is_refused_by_both_names_and_nothing_is_lost(begun: Here, endpoint: Endpoint) -> None:
    """Given an index of one embedder, when another is configured, then searching is refused and remembering is not."""
    with begun(**OPENAI) as other:
        other.remember("the lighthouse is white")
        with refused("INDEX_UNAVAILABLE") as refusal:
            other.search("gulls")
        with refused("INDEX_UNAVAILABLE"):
            other.recover()
    assert refusal.details == {
        "reason": "signature", "built_by": WORDS.signature, "configured": SIGNATURE, "retriable": False,
    }  # fmt: skip
    assert "corrigenda index reembed" in refusal.error.message
    assert not set(endpoint.embedded) & set(TEXTS)
    assert found(begun(), "lighthouse") == ["the lighthouse is white"]


@pytest.mark.usefixtures("in_order")
def test_reembedding_puts_the_configured_embedders_index_in_place(begun: Here, endpoint: Endpoint) -> None:
    """Given such a refusal, when the index is embedded anew, then it serves, and only what stands was embedded."""
    with begun() as gateway:
        gateway.correct(gateway.search("gulls", k=1).hits[0].memory_id, "gulls nest on the south pier")
    seen: list[tuple[int, int]] = []
    with begun(**OPENAI) as gateway:
        done = gateway.reembed(progress=lambda carried, total: seen.append((carried, total)))
        assert found(gateway, "ferry quay") == [TEXTS[2]]
    assert (done.signature, done.signature_before) == (SIGNATURE, WORDS.signature)
    assert (done.items, done.embedded) == (3, 3)
    assert TEXTS[1] not in endpoint.embedded
    assert seen[-1][0] == seen[-1][1] > 0
    with begun(**OPENAI) as gateway:
        assert found(gateway, "gulls") == ["gulls nest on the south pier"]
    with refused("INDEX_UNAVAILABLE"):
        begun().search("gulls")


def test_going_back_embeds_nothing(begun: Here, endpoint: Endpoint) -> None:
    """Given an index that was embedded anew, when the former embedder's is wanted again, its vectors are there."""
    with begun(**OPENAI) as gateway:
        gateway.reembed()
    with begun() as gateway:
        done = gateway.reembed()
        assert (done.items, done.embedded, done.signature_before) == (3, 0, SIGNATURE)
        assert found(gateway, "gulls") == [TEXTS[1]]
    with begun(**OPENAI) as gateway:
        assert gateway.reembed().embedded == 0
    with begun() as gateway:
        gateway.reembed()


@pytest.mark.usefixtures("in_order")
def test_who_only_looks_needs_no_embedder_that_answers(begun: Here, endpoint: Endpoint) -> None:
    """Given an endpoint that is gone, when its index is verified or a recovery looked at, then both are as before."""
    with begun(**OPENAI) as gateway:
        gateway.reembed()
        before = gateway.verify_index()
    endpoint.always = answering(500)
    asked = len(endpoint.embedded)
    with begun.unreplayed(**OPENAI) as gateway:
        found = gateway.verify_index()
        assert (found.ok, found.digest, found.probed) == (True, before.digest, before.probed) and found.probed == 3
        assert gateway.probe_index()[0]
        done = gateway.recover(check_only=True)
        assert (done.ok, done.index["why"]) == (True, "waiting effects: 0")
        assert len(endpoint.embedded) - asked <= 8  # it was asked once, and not again for a while
    with begun.unreplayed(embedder="openai:another") as gateway, refused("EMBEDDER_UNAVAILABLE"):
        gateway.verify_index()
    endpoint.always = None


@pytest.mark.usefixtures("in_order")
def test_an_interrupted_run_goes_on_and_embeds_nothing_twice(
    begun: Here, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an endpoint that fails in the middle, the live index stays; the next run embeds only what is missing."""
    monkeypatch.setattr(relay, "PAGE_ROWS", 2)
    with begun(**OPENAI) as gateway:
        assert gateway.index.embedder is not None
        assert gateway.index.embedder.signature == SIGNATURE  # recognised, before the endpoint fails
        endpoint.faults = [good]
        endpoint.always = answering(400)
        with refused("EMBEDDER_UNAVAILABLE") as refusal:
            gateway.reembed()
    endpoint.always = None
    assert refusal.details["reason"] == "rejected"
    assert found(begun(), "gulls") == [TEXTS[1]]
    with begun(**OPENAI) as gateway:
        assert gateway.reembed().embedded == 2
    texts = [text for text in endpoint.embedded if text in TEXTS]
    assert sorted(texts) == sorted(TEXTS)


@pytest.mark.usefixtures("in_order")
def test_a_text_that_the_new_embedder_fails_on_is_parked_and_the_rest_serves(begun: Here, endpoint: Endpoint) -> None:
    """Given one text that the endpoint always refuses, the swap is made without it, and both are said."""

    def refuse_gulls(handler: Handler, body: Body) -> None:
        (answering(400) if TEXTS[1] in body["input"] else good)(handler, body)

    with begun(**OPENAI) as gateway:
        endpoint.always = refuse_gulls
        done = gateway.reembed()
        assert (done.items, done.parked) == (2, 1)
        assert found(gateway, "ferry quay") == [TEXTS[2]]
        assert gateway.status().outbox == {"pending": 0, "parked": 1}
        assert gateway.verify_index().ok
        endpoint.always = None
        assert gateway.retry_outbox([item.seq for item in gateway.outbox(parked=True).items]).ok
        assert found(gateway, "gulls") == [TEXTS[1]]


def test_what_waits_is_listed_while_the_embedder_is_out(begun: Here, endpoint: Endpoint) -> None:
    """Given an endpoint that answers nobody, what is parked and what waits is told, and claims can be recovered."""

    def refuse_one(handler: Handler, body: Body) -> None:
        (answering(400) if "seals" in str(body["input"]) else good)(handler, body)

    endpoint.always = refuse_one
    with begun(**OPENAI) as gateway:
        gateway.reembed()
        parked = gateway.remember("seals sleep on the sand").events[-1].seq
        gateway.recover()
    endpoint.always = answering(400)
    gateway = begun.unreplayed(**OPENAI)
    waiting = gateway.remember("the lighthouse is white").events[-1].seq
    listed = gateway.outbox()
    assert [(item.seq, item.state) for item in listed.items] == [(parked, "parked"), (waiting, "waiting")]
    assert (listed.pending, listed.parked) == (1, 1)
    done = gateway.recover(only=["claims"])
    assert (done.ok, done.parked, done.index["why"]) == (False, 1, "it was not asked for")
    begun.broken = True


@pytest.mark.usefixtures("in_order")
@pytest.mark.parametrize("renamed", [False, True], ids=["did not happen", "happened and was not reported"])
def test_a_swap_that_fails_is_made_by_the_next_run(begun: Here, monkeypatch: pytest.MonkeyPatch, renamed: bool) -> None:
    """Given a rename that fails, before or after it was done, the next run needs no embedding and ends in order."""
    real = snapshot.publish_directory

    def fail(written: Path, final: Path) -> None:
        if renamed:
            real(written, final)
        raise OSError(28, "No space left on device")

    with begun(**OPENAI) as gateway:
        monkeypatch.setattr(snapshot, "publish_directory", fail)
        with refused("INDEX_UNAVAILABLE") as refusal:
            gateway.reembed()
        assert refusal.details["reason"] == "unwritable"
        monkeypatch.setattr(snapshot, "publish_directory", real)
    assert found(begun(), "gulls") == [TEXTS[1]]
    with begun(**OPENAI) as gateway:
        assert gateway.reembed().embedded == 0
        assert found(gateway, "gulls") == [TEXTS[1]]


@pytest.mark.usefixtures("in_order")
def test_a_process_with_the_former_embedder_does_not_take_the_swap_back(begun: Here) -> None:
    """Given one that was open all the while, it serves what it holds, and keeps no generation over the new one."""
    former = begun()
    assert found(former, "gulls") == [TEXTS[1]]
    with begun(**OPENAI) as gateway:
        gateway.reembed()
    former.remember("the lighthouse is white")
    assert found(former, "lighthouse") == ["the lighthouse is white"]
    former.close()
    with begun(**OPENAI) as gateway:
        assert gateway.index.live_signature() == SIGNATURE
        assert found(gateway, "lighthouse") == ["the lighthouse is white"]


def test_what_was_written_while_it_is_built_is_in_it(begun: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a writer beside a run, what it writes and withdraws meanwhile is served as it stands."""
    monkeypatch.setattr(relay, "PAGE_ROWS", 1)
    writer = begun()
    gone = writer.search("harbour", k=1).hits[0].memory_id
    calls = [0]

    def write(carried: int, total: int) -> None:
        calls[0] += 1
        if calls[0] == 1:
            writer.retire(gone, reason="closed")
            writer.remember("the lighthouse is white")

    with begun(**OPENAI) as gateway:
        done = gateway.reembed(progress=write)
        assert done.items == 3
        assert found(gateway, "lighthouse") == ["the lighthouse is white"]
        assert TEXTS[0] not in [hit.content for hit in gateway.search("harbour", k=5).hits]
    writer.close()
    with begun() as gateway:
        gateway.reembed()


def test_reembedding_needs_the_permission_and_an_embedder(begun: Here) -> None:
    """An agent may not; without an embedder there is nothing to embed with. The live index stays."""
    with refused("FORBIDDEN_ACTOR") as refusal:
        begun(actor="agent:bot", **OPENAI).reembed()
    assert refusal.details["permission"] == "recover"
    with refused("EMBEDDER_UNAVAILABLE") as refusal:
        begun(embedder="none").reembed()
    assert refusal.details["reason"] == "none"
    assert found(begun(), "gulls") == [TEXTS[1]]
