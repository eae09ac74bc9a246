"""A ledger that is gone is missed: nobody begins another in its place, and nobody is told that there never was one."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.bootstrap import open_bare
from gateway.upkeep.bare import BareGateway
from tests.conftest import fresh_database
from tests.house import refused, rows, tamper
from tests.integration.conftest import Here
from tests.roles import as_writer

TABLES = ("tenant", "head", "event", "payload", "outbox", "embedding", "revision", "directory")


@pytest.fixture
def ledger_url(server_url: str, migrated_template: str) -> Iterator[str]:
    """Return a database of the test's own."""
    with fresh_database(server_url, template=migrated_template) as url:
        yield as_writer(url)


def bare(here: Here) -> BareGateway:
    """Open the tables as they lie."""
    return open_bare(database_url=here.ledger_url, home=here.home, create=False)


@pytest.fixture
def emptied(open_here: Here) -> Here:
    """Return a home whose database was emptied by its owner."""
    open_here(embedder="none").remember("a")
    open_here.close()
    open_here.broken = True
    full = [name for name in TABLES if rows(open_here.ledger_url, f"SELECT 1 FROM corrigenda.{name} LIMIT 1")]  # noqa: S608 - from a list
    tamper(open_here.ledger_url, *((f"DELETE FROM corrigenda.{name}", []) for name in full))  # noqa: S608 - the same
    return open_here


ACTS: dict[str, Callable[[BareGateway], object]] = {
    "verify": lambda tables: tables.verify(),
    "status": lambda tables: tables.status(),
    "init": lambda tables: tables.init(),
}


@pytest.mark.parametrize("act", ACTS)
def test_an_emptied_database_is_not_begun_anew(emptied: Here, act: str) -> None:
    """OH-23: given an anchor and a database without any ledger, then INTEGRITY_BROKEN, exit 11, and nothing is made."""
    with refused("INTEGRITY_BROKEN"):
        emptied(embedder="none")
    with refused("INTEGRITY_BROKEN") as refusal, bare(emptied) as tables:
        ACTS[act](tables)
    assert (refusal.details["check"], refusal.error.exit_code) == ("anchor", 11)
    assert rows(emptied.ledger_url, "SELECT count(*) FROM corrigenda.head") == [(0,)]


def test_a_new_ledger_takes_an_explicit_act(emptied: Here) -> None:
    """Given that the anchor was moved away, then the next use begins a ledger."""
    shutil.move(emptied.home / "anchor", emptied.home / "anchor-that-was")
    assert emptied(embedder="none").remember("b").position == 3


def test_a_lost_server_is_not_made_anew(tmp_path: Path) -> None:
    """Given an anchor in a home that has no embedded server, then nothing is started in its place."""
    home = tmp_path / "home"
    (home / "anchor").mkdir(parents=True, mode=0o700)
    (home / "anchor" / "01JZ8Q0000000000000000000A.sqlite").write_bytes(b"kept")
    for create in (False, True):
        with refused("INTEGRITY_BROKEN") as refusal, open_bare(home=home, create=create) as tables:
            tables.status()
        assert refusal.error.exit_code == 11
    assert [path.name for path in home.iterdir()] == ["anchor"]


WRONG = {
    "another incarnation": ("UPDATE corrigenda.head SET incarnation = 2", "chain", 0),
    "another tenant's name": ("UPDATE corrigenda.tenant SET name = 'x'", "chain", 0),
    "a payload above the head": (
        "INSERT INTO corrigenda.payload SELECT ledger, seq + 1, salt, body FROM corrigenda.payload ORDER BY seq DESC "
        "LIMIT 1",
        "payloads",
        4,
    ),
    "an effect above the head": (
        "INSERT INTO corrigenda.outbox SELECT ledger, 999, revision, effect, lineage FROM corrigenda.outbox LIMIT 1",
        "payloads",
        4,
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_everybody_else_refuses_verify_finds(open_here: Here, what: str) -> None:
    """Given a row that stops service, then `verify` does not call the ledger well."""
    open_here(embedder="none").remember("a")
    open_here.close()
    open_here.broken = True
    statement, check, position = WRONG[what]
    with bare(open_here) as tables:
        assert tables.verify().ok
        tamper(open_here.ledger_url, (statement, []))
        report = tables.verify()
    assert (report.exit_code, report.checks[check].status) == (10, "failed")
    assert report.checks[check].first_bad_position == position
