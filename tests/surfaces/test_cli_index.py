"""The index from the command line: embedded anew by another embedder, and told about, over a real ledger."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_hands import corrigenda

from projections import embedders
from tests.endpoint import Endpoint, serving, status
from tests.house import assert_house_in_order

KEY = "sk-QX-4411-ZULU"
SIGNATURE = "provider=openai;model=words;dimension=256;normalised=yes"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, ledger_url: str, home: Path) -> Iterator[Endpoint]:
    """An endpoint with its key, over a ledger with two memories; afterwards the house is in order with it."""
    with serving() as served:
        names = {
            "HOME": str(home), "PROJECT": "ap", "EMBEDDER": "openai:words", "ACTOR": "human:ana",
            "DATABASE_URL": ledger_url, "EMBEDDER_BASE_URL": served.url, "EMBEDDER_API_KEY": KEY,
        }  # fmt: skip
        for name, value in names.items():
            monkeypatch.setenv(f"CORRIGENDA_{name}", value)
        answer("memories", "remember", "gulls nest on the north pier")
        answer("memories", "remember", "the ferry leaves from quay seven")
        yield served
        made = embedders.load("openai:words", base_url=served.url)
        assert made is not None
        assert_house_in_order(ledger_url, home, embedder=made)


def answer(*words: str, code: int = 0) -> dict[str, Any]:  # Any: JSON
    """The document that a command line answers with."""
    done = corrigenda("-o", "json", *words)
    assert done.code == code, done.err
    return json.loads(done.out if code == 0 else done.err)


def test_another_embedder_is_told_embedded_with_and_told_again(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 7 names both signatures and the command; that command's answer and the status name what is in place."""
    monkeypatch.setenv("CORRIGENDA_EMBEDDER", "openai:words?dimensions=256")  # the same vectors by a longer name
    assert answer("memories", "search", "gulls", "-k", "1")["hits"][0]["content"] == "gulls nest on the north pier"
    monkeypatch.setenv("CORRIGENDA_EMBEDDER", "openai:sentences")
    fault = answer("memories", "search", "gulls", code=7)
    other = SIGNATURE.replace("words", "sentences")
    assert (fault["code"], fault["retriable"]) == ("INDEX_UNAVAILABLE", False)
    assert (fault["details"]["built_by"], fault["details"]["configured"]) == (SIGNATURE, other)
    assert "corrigenda index reembed" in fault["message"]

    done = answer("index", "reembed")
    assert (done["signature"], done["signature_before"]) == (other, SIGNATURE)
    assert (done["items"], done["embedded"]) == (2, 2)
    assert answer("memories", "search", "gulls", "-k", "1")["hits"][0]["content"] == "gulls nest on the north pier"
    monkeypatch.setenv("CORRIGENDA_EMBEDDER", "openai:words")
    told = corrigenda("index", "reembed", "--progress").out
    assert "2 items in the index" in told and "0 texts embedded" in told and f"before: {other}" in told


def test_the_status_tells_partitions_embedder_and_lag(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the durable index holds by partition, who embedded it, and how many effects it is behind."""
    found = answer("index", "status")
    assert (found["engine"], found["embedder"], found["signature"]) == ("faiss", "openai:words", SIGNATURE)
    assert (found["items"], found["lag"]) == (2, 0)
    ((tier, namespace, items),) = [(one["tier"], one["namespace"], one["items"]) for one in found["partitions"]]
    assert (tier, namespace[0], items) == ("unverified", "project", 2)
    monkeypatch.setenv("CORRIGENDA_EMBEDDER", "none")
    answer("memories", "remember", "the lighthouse is white")
    behind = answer("index", "status")
    assert (behind["items"], behind["lag"], behind["cursor"]) == (2, 1, found["cursor"])
    text = corrigenda("index", "status").out
    assert SIGNATURE in text and "1 effect behind" in text
    monkeypatch.setenv("CORRIGENDA_EMBEDDER", "openai:words")
    answer("recover")


@pytest.mark.parametrize("damage", [b"[]", b'{"position": "x"}', b"\xff", b'{"position": 3}'])
def test_a_status_of_a_damaged_index_is_still_a_status(endpoint: Endpoint, home: Path, damage: bytes) -> None:
    """Files that are not what was written are told as they are, or not at all, and never end in a stack trace."""
    (manifest,) = home.glob("index/*/generation-*/manifest.json")
    manifest.write_bytes(damage)
    manifest.with_name("items.json").write_bytes(damage)
    assert answer("index", "status")["partitions"] == []
    assert answer("status")["index"]["items"] == 0
    answer("recover")


def test_an_endpoint_that_refuses_the_key_is_told_without_it(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words are compared instead, and that is said; neither the key nor what the endpoint quoted is, with -v."""
    endpoint.always = status(401)
    done = corrigenda("-v", "memories", "search", "gulls and nothing else")
    endpoint.always = None
    assert done.code == 0
    assert "embedder_unavailable:unauthorised" in done.err
    assert KEY not in done.err + done.out
    assert "gulls and nothing else" not in done.err
