"""Shared hands: a real PostgreSQL for a test run, an empty database for each test that asks for one.

`CORRIGENDA_TEST_DATABASE_URL` names a server that may make databases; without it the embedded server is started in a
temporary home and removed at the end.
"""

import os
import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import migrations
from tests.roles import as_writer

# How long an example takes says what else the machine is doing, and nothing of what is tested.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the connection string of a server, as a role that may make databases."""
    given = os.environ.get("CORRIGENDA_TEST_DATABASE_URL")
    if given:
        yield given
        return
    from gateway.embedded import attach, stop  # not needed, and not to be loaded, when a server is given

    home = tmp_path_factory.mktemp("server")
    home.chmod(0o700)
    with attach(home, grace_s=5.0) as server:
        yield server.owner_dsn
    stop(home, remove=True)


@pytest.fixture(scope="session")
def migrated_template(server_url: str) -> Iterator[str]:
    """Return the name of a migrated database from which others are copied: faster than migrating each."""
    with fresh_database(server_url) as url:
        migrations.upgrade(url)
        yield _name(url)


@pytest.fixture
def database_url(server_url: str) -> Iterator[str]:
    """Return the owner's connection string of an empty database of this test's own."""
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture
def ledger_url(server_url: str, migrated_template: str) -> Iterator[str]:
    """Return the writer's connection string of a migrated database of this test's own, without a ledger in it.

    `tests.roles.as_owner` makes the owner's of it.
    """
    with fresh_database(server_url, template=migrated_template) as url:
        yield as_writer(url)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return an empty home directory (0700) of this test's own."""
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return made


@contextmanager
def fresh_database(server_url: str, *, template: str = "template1") -> Generator[str]:
    """Make a database for as long as the block runs; whoever is still connected at its end is cut off."""
    name = f"corrigenda_test_{secrets.token_hex(6)}"
    making = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    dropping = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(making)
        try:
            yield make_conninfo(server_url, dbname=name)
        finally:
            connection.execute(dropping)


def _name(url: str) -> str:
    return str(conninfo_to_dict(url)["dbname"])
