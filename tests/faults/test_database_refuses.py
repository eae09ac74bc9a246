"""Databases that lack a table, take no writes, or stand in the way: a clear error each time, and nothing lost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import corrigenda
from gateway.bootstrap import open_bare, open_gateway
from gateway.service import Gateway
from tests.faults.children import Counting
from tests.faults.ledger_hands import Document, assert_in_order, rows, tree
from tests.roles import as_owner

TABLES = ("tenant", "head", "event", "payload", "outbox", "embedding", "revision", "directory")
WORKS: dict[str, Callable[[Gateway], object]] = {
    "open": lambda gateway: None,
    "remember": lambda gateway: gateway.remember("another"),
    "correct": lambda gateway: gateway.correct("m", "the bridge is shut"),
    "search": lambda gateway: gateway.search("bridge"),
    "show": lambda gateway: gateway.show("m"),
    "recover": lambda gateway: gateway.recover(),
}


def act(where: Document, name: str) -> str:
    """Do one act on a ledger that is opened for it; return the code of what it was refused with, or `done`."""
    try:
        with open_gateway(**where) as gateway:
            WORKS[name](gateway)
    except corrigenda.CorrigendaError as error:
        assert "\n" not in error.message
        return error.code
    return "done"


def look(where: Document) -> dict[str, str]:
    """Look at a ledger in every way that makes nothing; return what came of each."""
    found: dict[str, str] = {}
    with open_bare(database_url=where["database_url"], home=where["home"], create=False) as bare:
        looks: dict[str, Callable[[], object]] = {
            "verify": bare.verify, "status": bare.status, "log": lambda: list(bare.log()), "doctor": bare.doctor,
        }  # fmt: skip
        for name, one in looks.items():
            try:
                one()
                found[name] = "done"
            except corrigenda.CorrigendaError as error:
                found[name] = error.code
    return found


@contextmanager
def without(where: Document, table: str) -> Iterator[None]:
    """Take a table away for as long as the block runs."""
    with psycopg.connect(as_owner(where["database_url"]), autocommit=True) as connection:
        connection.execute(f"ALTER TABLE corrigenda.{table} RENAME TO taken_away".encode())
    try:
        yield
    finally:
        with psycopg.connect(as_owner(where["database_url"]), autocommit=True) as connection:
            connection.execute(f"ALTER TABLE corrigenda.taken_away RENAME TO {table}".encode())


@contextmanager
def read_only(where: Document) -> Iterator[None]:
    """Let new sessions of the database begin read-only transactions."""
    with psycopg.connect(as_owner(where["database_url"]), autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        try:
            yield
        finally:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())


@pytest.fixture
def written(where: Document, counting: Counting) -> Document:
    """Return the arguments that open a ledger with one memory, `m`."""
    with open_gateway(**where) as gateway:
        gateway.remember("the bridge is open", memory_id="m")
    return where


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_is_missing_is_told(written: Document, table: str) -> None:
    """Given a table that was taken away, then no act ends in an error that is not the registry's, and when the table
    is back, everything that was acknowledged is there and the next write is stored.
    """
    before = rows(written)["event"]
    stored = 0
    with without(written, table):
        for name in WORKS:
            code = act(written, name)
            assert code in ("done", "SCHEMA_MISMATCH", "INTEGRITY_BROKEN"), f"{name}: {code}"
            stored += name in ("remember", "correct") and code == "done"
        assert set(look(written).values()) <= {"done", "SCHEMA_MISMATCH", "INTEGRITY_BROKEN"}
    if table in ("head", "event", "payload", "tenant", "outbox", "revision"):
        assert (stored, rows(written)["event"]) == (0, before)
    assert act(written, "remember") == "done"
    assert_in_order({**written, "actor": "human:x"})


def test_a_database_without_writes_is_read(written: Document) -> None:
    """Given default_transaction_read_only, as on a standby, then reading works, a write is UNAVAILABLE and retriable,
    and nothing is stored of it.
    """
    before = rows(written)
    with read_only(written):
        found = {name: act(written, name) for name in WORKS}
        assert set(look(written).values()) == {"done"}
        with pytest.raises(corrigenda.UnavailableError) as refused, open_gateway(**written) as gateway:
            gateway.remember("another")
        assert refused.value.retriable and "takes no writes" in refused.value.message
    assert found == dict.fromkeys(WORKS, "done") | {"remember": "UNAVAILABLE", "correct": "UNAVAILABLE"}
    assert rows(written) == before
    assert act(written, "remember") == "done"
    assert_in_order({**written, "actor": "human:x"})


def test_a_first_use_without_writes_makes_no_key(where: Document) -> None:
    """Given a migrated database that takes no writes, then first use is UNAVAILABLE, and no key file is left behind."""
    with read_only(where):
        with pytest.raises(corrigenda.UnavailableError) as refused:
            open_gateway(**{**where, "embedder": "none"})
        assert (refused.value.code, refused.value.exit_code) == ("UNAVAILABLE", 7)
        with open_bare(database_url=where["database_url"], home=where["home"]) as bare:
            with pytest.raises(corrigenda.UnavailableError) as refused:
                bare.init()
            assert refused.value.code == "UNAVAILABLE"
    assert tree(Path(where["home"])) == {}
    assert sum(rows(where).values()) == 0


def test_a_schema_that_stands_in_the_way_is_told(database_url: str, home: Path) -> None:
    """Given a table of ours without the row that says its version, `db init` is SCHEMA_MISMATCH, nothing changed."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA corrigenda")
        connection.execute("CREATE TABLE corrigenda.tenant (mine text)")
    with open_bare(database_url=database_url, home=home) as bare, pytest.raises(corrigenda.UnavailableError) as refused:
        bare.init()
    assert refused.value.code == "SCHEMA_MISMATCH"
    with psycopg.connect(database_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'corrigenda'").fetchall()
        assert tables == [("tenant",)]
    assert tree(home) == {}
