"""Stored vectors: sealed, replaced where they are not what was stored, and never of another model or no vector."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from gateway import bootstrap
from gateway.service import Gateway
from projections import relay
from projections.embedders import Vectors
from tests import endpoint as faults
from tests.endpoint import Endpoint, Fault, serving
from tests.house import WordsEmbedder, rows, tamper
from tests.integration.conftest import Here

OPENAI = {"embedder": "openai:words"}
VECTORS = "SELECT content, vector, seal FROM corrigenda.embedding ORDER BY content"
EDITS = {
    "a swapped vector": "UPDATE corrigenda.embedding e SET vector = (SELECT vector FROM corrigenda.embedding o"
    " WHERE o.content <> e.content LIMIT 1) WHERE content = %s",
    "a swapped row": "UPDATE corrigenda.embedding e SET (vector, seal) = (SELECT vector, seal FROM corrigenda.embedding"
    " o WHERE o.content <> e.content LIMIT 1) WHERE content = %s",
    "a flipped bit": "UPDATE corrigenda.embedding SET vector = set_bit(vector, 77, 1 - get_bit(vector, 77))"
    " WHERE content = %s",
    "a short vector": "UPDATE corrigenda.embedding SET vector = substring(vector FROM 1 FOR 8) WHERE content = %s",
    "another seal": "UPDATE corrigenda.embedding SET seal = set_bit(seal, 3, 1 - get_bit(seal, 3)) WHERE content = %s",
    "no seal": "UPDATE corrigenda.embedding SET seal = '' WHERE content = %s",
}


def found(gateway: Gateway, query: str) -> list[str | None]:
    return [hit.content for hit in gateway.search(query, k=1).hits]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edited_stored_vector_is_found_and_replaced(
    open_here: Here, ledger_url: str, edit: str, caplog: pytest.LogCaptureFixture
) -> None:
    """OH-21: given a stored vector that is not what was stored, when an index is built of it, it is replaced."""
    gateway = open_here()
    gateway.remember("apple pie")
    gateway.remember("motor oil")
    gateway.search("apple")
    before = rows(ledger_url, VECTORS)
    tamper(ledger_url, (edit, [before[0][0]]))
    assert rows(ledger_url, VECTORS) != before

    caplog.set_level(logging.WARNING, logger="projections.vectors")
    again = open_here()
    assert (found(again, "apple pie"), found(again, "motor oil")) == (["apple pie"], ["motor oil"])
    assert rows(ledger_url, VECTORS) == before
    assert [record.message for record in caplog.records] == ["vectors.not_sealed"]


def test_a_vector_that_another_process_replaced_first_stays_its(
    open_here: Here, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given two that find one edited vector, the second does not write over what the first has put there."""
    gateway = open_here()
    gateway.remember("apple pie")
    gateway.search("apple")
    before = rows(ledger_url, VECTORS)
    (content, vector, seal), embed = before[0], WordsEmbedder.embed
    tamper(ledger_url, ("UPDATE corrigenda.embedding SET seal = '' WHERE content = %s", [content]))

    def slowly(self: WordsEmbedder, texts: Sequence[str]) -> Vectors:
        if texts == ["apple pie"]:  # meanwhile the other process is done
            tamper(ledger_url, ("UPDATE corrigenda.embedding SET seal = %s WHERE content = %s", [seal, content]))
            return np.roll(embed(self, texts), 1, axis=1)
        return embed(self, texts)

    monkeypatch.setattr(WordsEmbedder, "embed", slowly)
    assert found(open_here(), "apple pie") == ["apple pie"]
    assert rows(ledger_url, VECTORS) == [(content, vector, seal)]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda found: found[:-1], "wrong_dimension"),
        (lambda found: found[:, :-1], "wrong_dimension"),
        (lambda found: found * np.nan, "non_finite"),
        (lambda found: found * 0, "zero_norm"),
    ],
    ids=["fewer", "shorter", "NaN", "zero"],
)
def test_what_an_embedder_spoils_is_neither_stored_nor_indexed(
    open_here: Here, ledger_url: str, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Vectors], Vectors], reason: str
) -> None:
    """D43: vectors that are none are refused by name, whoever made them; nothing is stored, and the text waits."""
    gateway, embed = open_here(), WordsEmbedder.embed
    gateway.remember("apple pie")
    gateway.search("apple")
    gateway.remember("banana bread")
    monkeypatch.setattr(WordsEmbedder, "embed", lambda self, texts: spoil(embed(self, texts)))
    answer = gateway.search("banana")  # by words, since no vector of the question can be had
    assert f"embedder_unavailable:{reason}" in answer.warnings
    assert [hit.content for hit in answer.hits] == ["banana bread"]
    assert len(rows(ledger_url, VECTORS)) == len(gateway.index) == 1
    monkeypatch.undo()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with serving() as served:
        monkeypatch.setenv("CORRIGENDA_EMBEDDER_BASE_URL", served.url)
        for module in (relay, bootstrap):
            monkeypatch.setattr(module, "INDEX_WAIT_S", 0.7)
        yield served


WAITING = {
    "hangs before": faults.hang,
    "hangs after": faults.hang_after,
    "breaks off": faults.amid,
    "fewer": faults.fewer,
    "NaN": faults.nan,
    "html": faults.page,
}


@pytest.mark.parametrize("fault", WAITING.values(), ids=WAITING.keys())
def test_remembering_does_not_fail_with_the_embedder(
    open_here: Here, endpoint: Endpoint, ledger_url: str, fault: Fault
) -> None:
    """Given an endpoint that misbehaves, what is remembered is acknowledged, waits, and is found once it behaves."""
    with open_here(**OPENAI) as gateway:
        gateway.remember("apple pie")
        gateway.search("apple")
        stored = rows(ledger_url, VECTORS)
        endpoint.always = fault
        began = time.monotonic()
        assert gateway.remember("banana bread").memory_id
        assert "full_text" in gateway.search("banana").warnings
    assert time.monotonic() - began < 6
    assert rows(ledger_url, VECTORS) == stored
    with open_here(**OPENAI) as gateway:  # an endpoint that does not answer keeps nobody from reading and writing
        assert gateway.remember("cherry cake").memory_id
    endpoint.always = None
    with open_here(**OPENAI) as gateway:
        assert found(gateway, "banana bread") == ["banana bread"]
        assert found(gateway, "cherry cake") == ["cherry cake"]
        assert gateway.index.look() == 0
    with open_here() as gateway:
        gateway.reembed()


def test_another_model_under_the_same_name_is_noticed(open_here: Here, endpoint: Endpoint, ledger_url: str) -> None:
    """D44: given an endpoint that answers with another model of the same dimension, none of its vectors is stored."""
    with open_here(**OPENAI) as gateway:
        gateway.remember("apple pie")
        gateway.search("apple")
    stored = rows(ledger_url, VECTORS)
    endpoint.always = faults.rows(lambda found: [row[::-1] for row in found])
    with open_here(**OPENAI) as gateway:
        gateway.remember("banana bread")
        assert "embedder_unavailable:other_model" in gateway.search("banana").warnings
    assert rows(ledger_url, VECTORS) == stored
    endpoint.always = faults.rows(lambda found: [[number * 1.001 for number in row] for row in found])
    with open_here(**OPENAI) as gateway:
        assert found(gateway, "banana bread") == ["banana bread"]
    with open_here() as gateway:
        gateway.reembed()


def test_a_sample_that_was_edited_recognises_nobody_wrongly(
    open_here: Here, endpoint: Endpoint, ledger_url: str
) -> None:
    """Given a sample's vector that was changed in the database, it counts for nothing and is replaced."""
    with open_here(**OPENAI) as gateway:
        assert gateway.index.embedder is not None
        assert gateway.index.embedder.signature
    stored = rows(ledger_url, VECTORS)
    assert len(stored) == 1
    tamper(ledger_url, ("UPDATE corrigenda.embedding SET vector = set_bit(vector, 1, 1 - get_bit(vector, 1))", []))
    with open_here(**OPENAI) as gateway:
        assert gateway.index.embedder is not None
        assert gateway.index.embedder.signature
    assert rows(ledger_url, VECTORS) == stored
