"""The one PostgreSQL that everybody is measured on: durable, with a fresh database for each contender.

`CORRIGENDA_BENCH_DATABASE_URL` names a server whose role may make databases; without it the embedded server runs in a
temporary home. Nothing is tuned here, and a server that may lose what it acknowledged is refused.
"""

import os
import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from gateway.embedded import WRITER
from gateway.embedded.cluster import OWNER
from ledger.sql import load
from ledger.store import Database

QUERIES = load("benchmarks")
SETTINGS = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers")
LOGIN = "corrigenda_bench_writer"
_LOGIN, _PASSWORD = sql.Identifier(LOGIN), secrets.token_urlsafe()  # the login lives for one run
WAL_VIEW_SINCE = 180000  # from this version on the flushes of the log are counted in pg_stat_io


@contextmanager
def durable_server() -> Generator[str]:
    """Give the connection string of a server that keeps what it acknowledges, for as long as the block runs."""
    given = os.environ.get("CORRIGENDA_BENCH_DATABASE_URL")
    with _given(given) if given else _embedded() as url:
        Database(url).check_durability()
        yield url


@contextmanager
def _given(url: str) -> Generator[str]:
    try:
        yield url
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(_LOGIN))


@contextmanager
def _embedded() -> Generator[str]:
    from gateway.embedded import attach, stop  # needed only where no server is given

    with tempfile.TemporaryDirectory(prefix="corrigenda-bench-") as folder:
        home = Path(folder) / "server"
        home.mkdir(mode=0o700)
        with attach(home, grace_s=5.0) as server:
            yield server.owner_dsn
        stop(home, remove=True)


@contextmanager
def fresh_database(server_url: str) -> Generator[str]:
    """Make a database for as long as the block runs; whoever is still connected at its end is cut off."""
    name = f"corrigenda_bench_{secrets.token_hex(6)}"
    making, dropping = sql.SQL("CREATE DATABASE {}"), sql.SQL("DROP DATABASE {} WITH (FORCE)")
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(making.format(sql.Identifier(name)))
        try:
            yield make_conninfo(server_url, dbname=name)
        finally:
            connection.execute(dropping.format(sql.Identifier(name)))


def as_writer(url: str) -> str:
    """Return the connection string of a migrated database as a role that a service may have: it can only add.

    The embedded server knows such a role; on a server that was given, a login is made, and dropped at the end.
    """
    if conninfo_to_dict(url).get("user") == OWNER:
        return make_conninfo(url, user=WRITER)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(_LOGIN))
        making = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}")
        connection.execute(making.format(_LOGIN, _PASSWORD, sql.Identifier(WRITER)))
    return make_conninfo(url, user=LOGIN, password=_PASSWORD)


def settings(url: str) -> dict[str, str]:
    """Return the settings that the figures depend on."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(QUERIES["settings"], {"names": list(SETTINGS)}).fetchall()
    return {name: value for name, value in rows}


def wal_syncs(url: str) -> int:
    """Return how often clients' backends have flushed the log; a backend's count is complete once it has ended."""
    with psycopg.connect(url, autocommit=True) as connection:
        newer = connection.info.server_version >= WAL_VIEW_SINCE
        row = connection.execute(QUERIES["wal_syncs" if newer else "wal_syncs_before_18"]).fetchone()
    return int(row[0]) if row else 0


def rows_written(url: str) -> dict[str, int]:
    """Return how many rows were inserted or updated in each table of the database so far."""
    with psycopg.connect(url, autocommit=True) as connection:
        return dict(connection.execute(QUERIES["rows_written"]).fetchall())
