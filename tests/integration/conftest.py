"""Fixtures of the integration tests: gateways on a database of the test's own, and a house that is in order after."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import corrigenda
import migrations
from gateway.bootstrap import open_gateway
from gateway.service import Gateway
from projections import embedders
from projections.embedders import Embedder
from tests.appends import Appends, whole
from tests.conftest import fresh_database
from tests.faults.ledger_hands import Document, Told, read_ledger
from tests.house import WORDS, assert_house_in_order
from tests.ledgers import WrittenLedger
from tests.pep_histories import HISTORIES, History, available
from tests.roles import as_writer
from tests.tampering import Tampering, write_nine

PROJECT = "atlas"
ACTOR = "human:ana"


@pytest.fixture(scope="session")
def shared_url(server_url: str) -> Iterator[str]:
    """Return the owner's connection string of the one migrated database that these tests use after each other."""
    with fresh_database(server_url) as url:
        migrations.upgrade(url)
        yield url


@pytest.fixture
def ledger_url(shared_url: str) -> Iterator[str]:
    """Return the writer's connection string of a migrated database without a ledger: emptied, quicker than a new one.

    A test that changes the schema takes `database_url` instead.
    """
    yield as_writer(shared_url)
    with psycopg.connect(shared_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute("SET session_replication_role = replica")
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'corrigenda'").fetchall()
        for table in (name for (name,) in found if name != "alembic_version"):
            connection.execute(sql.SQL("DELETE FROM corrigenda.{}").format(sql.Identifier(table)))


class Here:
    """Opens gateways on one database and home. `broken` says that the test has damaged them on purpose."""

    def __init__(self, ledger_url: str, home: Path) -> None:
        self.ledger_url = ledger_url
        self.home = home
        self.broken = False
        self._opened: list[Gateway] = []

    def __call__(self, **settings: Any) -> Gateway:  # Any: what corrigenda.open takes
        """Return an open gateway, Ana's on the project atlas unless something else is asked for."""
        given = {"home": self.home, "project": PROJECT, "actor": ACTOR, **settings}
        opened = corrigenda.open(self.ledger_url, **given)
        self._opened.append(opened)
        return opened

    def unreplayed(self, **settings: Any) -> Gateway:  # Any: what open_gateway takes
        """Return the same, with what waits in the outbox left there."""
        given = {"project": PROJECT, "actor": ACTOR, **settings}
        opened = open_gateway(database_url=self.ledger_url, home=self.home, replay=False, **given)
        self._opened.append(opened)
        return opened

    def close(self) -> None:
        """Close what is still open."""
        for opened in self._opened:
            opened.close()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the settings of whoever runs the tests."""
    for name in [*os.environ]:
        if name.startswith(("CORRIGENDA_", "DATABASE_URL")) and not name.startswith("CORRIGENDA_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture
def words_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an embedder in place of the built-in one that needs no model; `none` stays none, an endpoint what it is."""
    real = embedders.load

    def load(name: str, **endpoint: Any) -> Embedder | None:  # Any: base URL and key
        if name.startswith(embedders.OPENAI):
            return real(name, **endpoint)
        return None if name == embedders.NONE else WORDS

    monkeypatch.setattr(embedders, "load", load)


@pytest.fixture
def open_here(ledger_url: str, home: Path, words_embedder: None) -> Iterator[Here]:
    """Return what opens gateways on this test's ledger; afterwards the house has to be in order."""
    here = Here(ledger_url, home)
    try:
        yield here
    finally:
        here.close()
    if not here.broken:
        assert_house_in_order(ledger_url, home)


@pytest.fixture
def gateway(open_here: Here) -> Gateway:
    """Return Ana's gateway on the project atlas."""
    return open_here()


@pytest.fixture
def written(ledger_url: str, home: Path) -> Iterator[WrittenLedger]:
    """Return a ledger of nine entries, as `write_nine` describes it."""
    with closing(WrittenLedger(ledger_url, home)) as ledger:
        write_nine(ledger)
        yield ledger


@pytest.fixture
def tampering(written: WrittenLedger, ledger_url: str) -> Tampering:
    """Return the owner's hands on that ledger."""
    return Tampering(written.ledger, ledger_url)


@pytest.fixture
def appends(ledger_url: str, home: Path, no_settings: None) -> Iterator[Appends]:
    """Return the committer of one process on a new ledger; what it leaves has to be whole."""
    with whole(ledger_url, home) as made:
        yield made


# ---------------------------------------------------------------- the PEP history, imported


@dataclass(frozen=True)
class Imported:
    """A ledger into which a history was imported."""

    history: History
    where: Document
    report: corrigenda.ImportReport
    told: Told


@pytest.fixture(params=HISTORIES, scope="session")
def history(request: pytest.FixtureRequest) -> History:
    """Each history in turn."""
    return available(request.param)


@pytest.fixture(scope="session")
def imported(
    history: History, server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Imported]:
    """A ledger with the whole history in it, which many tests read and none changes."""
    home = tmp_path_factory.mktemp("imported")
    with fresh_database(server_url, template=migrated_template) as url:
        where = {"database_url": as_writer(url), "home": str(home)}
        with opened(where) as gateway:
            report = gateway.import_peps(history.path)
        yield Imported(history, where, report, read_ledger(where))


def opened(where: Document, *, actor: str = "human:importer") -> Gateway:
    """Return a gateway without an embedder, for speed."""
    return corrigenda.open(**where, project="peps", actor=actor, embedder="none")
