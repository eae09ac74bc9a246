"""Wherever a process that embeds the index anew is killed: the former index serves, and the next run ends it."""

from pathlib import Path

import pytest

from gateway.bootstrap import open_gateway
from projections import embedders
from projections.embedders import Embedder
from tests.faults.children import COUNTING, OTHER, Counting, Other
from tests.faults.ledger_hands import Document, kill, race
from tests.house import assert_house_in_order, refused

TEXTS = ["the harbour closes at nine", "gulls nest on the north pier", "the ferry leaves from quay seven"]
MOMENTS = {
    "before the embedding": len(TEXTS),
    "after the embedding": 0,
    "before the rename": 0,
    "after the rename": 0,
}


@pytest.fixture
def others(where: Document, monkeypatch: pytest.MonkeyPatch) -> tuple[Document, Document, Other]:
    """A ledger whose index the first embedder built: how it is opened with it and with the other, and that one."""
    first, other = Counting(), Other()
    known: dict[str, Embedder] = {COUNTING: first, OTHER: other}
    monkeypatch.setattr(embedders, "load", lambda name: known[name])
    with open_gateway(**where) as gateway:
        for text in TEXTS:
            gateway.remember(text)
    return where, {**where, "embedder": OTHER}, other


def nearest(where: Document, query: str) -> str | None:
    with open_gateway(**where) as gateway:
        return gateway.search(query, k=1).hits[0].content


@pytest.mark.parametrize(("moment", "left"), MOMENTS.items(), ids=MOMENTS.keys())
def test_a_killed_run_is_ended_by_the_next(others: tuple[Document, Document, Other], moment: str, left: int) -> None:
    """Nothing whose vector was stored is embedded again, and the index that is in place at the end is whole."""
    first, second, other = others
    assert kill("reembed", second, moment).answers == []
    assert nearest(first, "gulls") == TEXTS[1]
    with open_gateway(**second, replay=False) as gateway:
        done = gateway.reembed()
        assert (done.items, done.embedded) == (len(TEXTS), left)
    assert len(other.embedded) == left
    assert nearest(second, "gulls") == TEXTS[1]
    with refused("INDEX_UNAVAILABLE"):
        nearest(first, "gulls")
    assert_house_in_order(first["database_url"], Path(first["home"]), embedder=other)


def test_a_swap_that_nobody_was_told_of_serves_already(others: tuple[Document, Document, Other]) -> None:
    """Killed after the rename, the new generation is found by the configured embedder, with nothing embedded."""
    first, second, other = others
    kill("reembed", second, "after the rename")
    assert nearest(second, "ferry quay") == TEXTS[2]
    assert set(other.embedded) == {"ferry quay"}
    assert_house_in_order(first["database_url"], Path(first["home"]), embedder=other)


def test_two_runs_at_once_do_no_harm(others: tuple[Document, Document, Other]) -> None:
    """Both end well, and one whole index is in place."""
    first, second, other = others
    ended = race("reembed", second, Path(first["home"]).with_name("gate"), 2)
    assert [one.answers[0]["items"] for one in ended] == [len(TEXTS)] * 2
    assert nearest(second, "gulls") == TEXTS[1]
    assert_house_in_order(first["database_url"], Path(first["home"]), embedder=other)
