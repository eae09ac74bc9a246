"""What a read asks of the database: as little as can be, and nothing that stays behind when it fails."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gateway.bootstrap import open_bare
from gateway.searching.pace import FEW, Pace
from gateway.service import Gateway
from ledger import wire
from ledger.errors import CorrigendaError
from ledger.flush import Flush
from ledger.store import Write
from tests.house import tamper
from tests.integration.conftest import Here
from tests.roles import as_owner


@pytest.mark.parametrize("k", [1, 10])
def test_a_search_asks_once_however_many_hits(gateway: Gateway, monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """Given a quiet ledger whose names are known, then a search asks for the head and its hits in one round trip."""
    for n in range(12):
        gateway.remember(f"the ferry sails on day {n}")
    gateway.search("ferry", k=k)
    asked = _asked(monkeypatch)

    assert len(gateway.search("ferry", k=k).hits) == k

    assert len(asked) == 1


def test_a_search_asks_once_while_others_write(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given more new memories of another process than a few, then a search that leaves them says how many, all at once.

    They are told by the same round trip as the head and the hits.
    """
    gateway, other = open_here(), open_here()
    for n in range(12):
        gateway.remember(f"the ferry sails on day {n}")
    gateway._pace = gateway._retrieval._pace = pace = Pace(clock=lambda: 0.0)  # it rests for ever
    with pace.carrying():
        gateway.search("ferry", k=10)
    for n in range(FEW + 2):
        other.remember(f"the bus leaves on day {n}")
    asked = _asked(monkeypatch)

    found = gateway.search("ferry", k=10)

    assert (len(found.hits), len(asked)) == (10, 1)
    assert found.warnings == (f"contradictions_pending: {FEW + 2}", f"index_pending:{FEW + 2}")


def _asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return a list to which each round trip from now on adds its queries."""
    asked: list[list[str]] = []
    run = Flush.run

    def counted(self: Flush, writes: Sequence[Write], meanwhile: Callable[[], None] | None = None) -> Any:
        asked.append([write.query for write in writes])
        return run(self, writes, meanwhile)

    monkeypatch.setattr(Flush, "run", counted)
    return asked


def test_a_query_that_fails_leaves_the_connection_as_it_was(gateway: Gateway) -> None:
    """Given a typed query of a table that is not there, then it is told what is wrong, and the next one is answered."""
    store = gateway._ledger.store

    with pytest.raises(CorrigendaError) as caught:
        store.query("SELECT seq FROM corrigenda.nothing WHERE ledger = %(ledger)s::text", {})

    assert caught.value.code == "SCHEMA_MISMATCH"
    assert store.database.is_connected
    assert store.head().seq >= 0


def test_a_transaction_that_is_rolled_back_takes_no_prepared_query_along(gateway: Gateway) -> None:
    """Given queries of the driver's that were used often, when a transaction fails, then the next look is answered."""
    store = gateway._ledger.store
    for _ in range(10):
        store.query("SELECT count(*) FROM corrigenda.event WHERE ledger = %(ledger)s", {})
    gateway.search("ferry")

    with pytest.raises(RuntimeError), store.transaction():
        raise RuntimeError

    assert store.head().seq >= 0
    gateway.search("ferry")


def test_what_is_read_at_once_sees_its_own_ledger_only(open_here: Here, ledger_url: str) -> None:
    """G11: given another tenant in the same database, then a typed query that names no ledger shows our rows alone."""
    ours = open_here()
    with open_bare(database_url=as_owner(ledger_url), home=open_here.home, tenant="borea") as bare:
        bare.init()
    theirs = open_here(tenant="borea")
    ours.remember("ours")
    theirs.remember("theirs")

    found = ours._ledger.store.query("SELECT DISTINCT ledger FROM corrigenda.event", {})

    assert found == [(ours._ledger.store.ledger,)]


def test_a_head_below_its_last_event_is_noticed_in_one_look(open_here: Here, ledger_url: str) -> None:
    """G8: given an event above the head that no append stored, when it is followed, then INTEGRITY_BROKEN names it."""
    gateway = open_here()
    last = gateway.remember("the ferry sails").position
    copied = """INSERT INTO corrigenda.event (ledger, seq, stream, stream_seq, envelope, hash, seal)
        SELECT ledger, seq + 1, stream, 99, envelope, hash, seal FROM corrigenda.event WHERE seq = %s"""
    tamper(ledger_url, (copied, [last]))

    with pytest.raises(CorrigendaError) as caught:
        gateway.search("ferry")
    assert (caught.value.code, caught.value.details["position"]) == ("INTEGRITY_BROKEN", last + 1)
    tamper(ledger_url, ("DELETE FROM corrigenda.event WHERE seq = %s", [last + 1]))


def test_a_column_of_another_type_is_refused_not_guessed(gateway: Gateway) -> None:
    """Given a typed query whose answer is of a type that is not decoded here, then ValueError, and no wrong value."""
    assert not wire.is_typed("SELECT %(one)s")
    with pytest.raises(ValueError, match="unknown type"):
        gateway._ledger.store.query("SELECT 1.5::numeric", {})
