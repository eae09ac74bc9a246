"""The embedded server's roles: made with the cluster, mended in one that is older, by however many at once."""

import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

import corrigenda
import migrations
from gateway.bootstrap import open_bare, open_gateway
from gateway.embedded import TIME_OUTS, WRITER, Server, attach, stop
from gateway.upkeep import tidying
from ledger.clock import system_clock
from ledger.store import Database, Store
from migrations import LATEST
from tests.faults.embedded_home import until
from tests.faults.ledger_hands import ROOT, SLOW_S
from tests.house import assert_house_in_order, refused, rows

TABLES = ("tenant", "head", "event", "payload", "outbox", "embedding", "revision", "directory")
ROLES = ("corrigenda_writer", "corrigenda_maintainer", "corrigenda_eraser")


@pytest.fixture(autouse=True)
def nobodys_settings(no_settings: None) -> None:
    """No test here may depend on the settings of whoever runs it."""


def as_before_roles(server: Server) -> None:
    """Make a cluster what the first version left: tables without walls, and no role but the owner."""
    with psycopg.connect(server.owner_dsn, autocommit=True) as owner:
        owner.execute("ALTER SCHEMA corrigenda RENAME TO newer")
    latest, migrations.LATEST = migrations.LATEST, "0001"
    try:
        migrations.upgrade(server.owner_dsn)
    finally:
        migrations.LATEST = latest
    with psycopg.connect(server.owner_dsn, autocommit=True) as owner:
        for table in TABLES:
            found = owner.execute(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_schema = 'corrigenda' AND table_name = %s",
                [table],
            )
            columns = sql.SQL(", ").join(sql.Identifier(name) for (name,) in found)
            copying = sql.SQL("INSERT INTO corrigenda.{0} ({1}) SELECT {1} FROM newer.{0}")
            owner.execute(copying.format(sql.Identifier(table), columns))
        owner.execute("UPDATE corrigenda.head SET projector = 1")
        owner.execute("DROP SCHEMA newer CASCADE")
        for role in ROLES:
            owner.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
            owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


@pytest.fixture
def older(fresh_home: Path) -> Path:
    """A home with a ledger, as the version before the roles left it: its server stopped, its ident map shorter."""
    with corrigenda.open(home=fresh_home, project="p", embedder="none") as ledger:
        ledger.remember("the office is in Berlin", memory_id="office")
    with attach(fresh_home, create=False) as server:
        as_before_roles(server)
        identities = server.place.state / "pg_ident.conf"
    stop(fresh_home)
    kept = [line for line in identities.read_text().splitlines() if line.endswith(" corrigenda")]
    identities.write_text("\n".join(kept) + "\n")
    return fresh_home


def test_a_ledger_is_used_as_its_writer(fresh_home: Path) -> None:
    """Whoever opens a home logs in as corrigenda_writer, with time-outs that are the role's own; `db url` has both."""
    with corrigenda.open(home=fresh_home, project="p", embedder="none") as ledger:
        ledger.remember("the office is in Berlin")
        with open_bare(home=fresh_home, create=False) as bare:
            urls = bare.database_url(role="writer"), bare.database_url(role="owner")
            assert bare.database_url() == urls[1]
    users: list[str] = []
    for url in urls:
        with psycopg.connect(url) as connection:
            users.append(connection.info.user)
            found = dict(connection.execute("SELECT name, setting || coalesce(unit, '') FROM pg_settings").fetchall())
            if connection.info.user == WRITER:
                assert {name: found[name] for name in TIME_OUTS} == {
                    "lock_timeout": "5000ms",
                    "statement_timeout": "300000ms",
                    "idle_in_transaction_session_timeout": "60000ms",
                }
    assert users == [WRITER, "corrigenda"]


def test_a_home_is_swept_when_it_is_opened(fresh_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a trace of years ago, when a home is opened to be used, then it is gone; who only looks removes nothing."""
    monkeypatch.setattr(tidying, "BUDGET_S", 60.0)
    long_ago = system_clock() - timedelta(days=800)
    with open_gateway(home=fresh_home, project="p", embedder="none", clock=lambda: long_ago) as ledger:
        ledger.remember("the office is in Berlin")
        ledger.search("office")
    with open_gateway(home=fresh_home, project="p", embedder="none", replay=False) as ledger:
        assert len(ledger.list_traces().items) == 1
    with open_gateway(home=fresh_home, project="p", embedder="none") as ledger:
        assert ledger.list_traces().items == ()


def test_a_setting_that_somebody_chose_for_the_writer_stays(fresh_home: Path) -> None:
    """Attaching again sets what is missing and leaves what is there."""
    with attach(fresh_home) as server:
        with psycopg.connect(server.owner_dsn, autocommit=True) as owner:
            owner.execute("ALTER ROLE corrigenda_writer SET lock_timeout = '2s'")
            owner.execute("ALTER ROLE corrigenda_writer RESET statement_timeout")
        with attach(fresh_home), psycopg.connect(server.dsn) as writer:
            assert writer.execute("SHOW lock_timeout").fetchone() == ("2s",)
            assert writer.execute("SHOW statement_timeout").fetchone() == ("5min",)


def test_a_home_from_before_the_roles_opens(older: Path) -> None:
    """Its roles are made, its schema brought to this version, and what it held is served, as the writer."""
    with corrigenda.open(home=older, project="p", embedder="none") as ledger:
        assert ledger.history("office").items[0].content == "the office is in Berlin"
        ledger.correct("office", "the office is in Hamburg")
    with attach(older, create=False) as server:
        assert_house_in_order(server.dsn, older)
        with psycopg.connect(server.dsn) as writer, pytest.raises(psycopg.errors.InsufficientPrivilege):
            writer.execute("DELETE FROM corrigenda.event")


def test_looking_at_a_home_from_before_the_roles_changes_no_table(older: Path) -> None:
    """Without leave to make anything an older schema is SCHEMA_MISMATCH; `db migrate` mends it, and says what next."""
    with open_bare(home=older, create=False) as bare:
        assert bare.schema_current() == "0001"
        for look in (bare.schema_check, bare.status, bare.verify):
            with refused("SCHEMA_MISMATCH") as refusal:
                look()
            assert "corrigenda db migrate" in refusal.error.message
    with refused("SCHEMA_MISMATCH"):
        open_gateway(home=older, project="p", embedder="none", create=False)
    with open_bare(home=older) as bare:
        done = bare.migrate()
    assert (done["before"], done["revision"]) == ("0001", LATEST)
    assert "corrigenda projections rebuild" in done["next"]
    with open_bare(home=older, create=False) as bare:
        assert bare.verify().ok


def test_many_databases_of_a_cluster_migrate_at_once(fresh_home: Path) -> None:
    """The roles are the cluster's: four databases that make them at the same moment all come to their end."""
    with attach(fresh_home) as server:
        with psycopg.connect(server.owner_dsn, autocommit=True) as owner:
            owner.execute("DROP ROLE corrigenda_writer")
            for number in range(4):
                owner.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(f"at_once_{number}")))
        urls = [make_conninfo(server.owner_dsn, dbname=f"at_once_{number}") for number in range(4)]
        with psycopg.connect(server.owner_dsn) as other:
            other.execute("CREATE ROLE corrigenda_writer")  # whoever comes to it meanwhile waits for this to be decided
            program = "import sys, migrations; migrations.upgrade(sys.argv[1])"
            migrating = [subprocess.Popen([sys.executable, "-c", program, url], cwd=ROOT) for url in urls]
            asking = (
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND starts_with(datname, 'at_once_')"
            )
            assert until(lambda: len(rows(server.owner_dsn, asking)) == 4)
            other.rollback()
        assert [one.wait(SLOW_S) for one in migrating] == [0] * 4
        assert [rows(url, "SELECT version_num FROM corrigenda.alembic_version") for url in urls] == [[(LATEST,)]] * 4
        [(made,)] = rows(server.owner_dsn, "SELECT count(*) FROM pg_roles WHERE rolname = ANY(%s)", list(ROLES))
        assert made == 3


def test_who_may_not_make_roles_is_told_what_to_run(fresh_home: Path) -> None:
    """A database's owner without CREATEROLE, on a server without the roles: the SQL is in the error, and mends it."""
    with attach(fresh_home) as server:
        with psycopg.connect(server.owner_dsn, autocommit=True) as superuser:
            superuser.execute("CREATE ROLE plain")
            superuser.execute("CREATE DATABASE plain OWNER plain")
        url = make_conninfo(server.owner_dsn, dbname="plain", options="-c role=plain")
        with open_bare(database_url=url, home=fresh_home, project="p") as bare:
            with refused("FORBIDDEN_ACTOR") as refusal:
                bare.init()
            assert rows(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'corrigenda'") == []
            assert not (fresh_home / "keys").exists()
            making = refusal.details["sql"]
            assert making in refusal.error.message
            assert making == "CREATE ROLE corrigenda_maintainer NOLOGIN; CREATE ROLE corrigenda_eraser NOLOGIN"
            with psycopg.connect(server.owner_dsn, autocommit=True) as superuser:
                superuser.execute(making)
            assert bare.init()["revision"] == LATEST
            assert bare.verify().ok


def test_a_waiting_statement_gives_up(fresh_home: Path) -> None:
    """Given a head that is locked for longer than the role's time-out, then whoever waits for it is told so."""
    with corrigenda.open(home=fresh_home, project="p", embedder="none") as ledger, attach(fresh_home) as server:
        position = ledger.remember("the office is in Berlin").position
        with psycopg.connect(server.owner_dsn, autocommit=True) as owner:
            owner.execute("ALTER ROLE corrigenda_writer SET lock_timeout = '200ms'")
        [(name,)] = rows(server.owner_dsn, "SELECT ledger FROM corrigenda.head")
        with closing(psycopg.connect(server.owner_dsn)) as other, closing(Database(server.dsn)) as database:
            other.execute("SELECT 1 FROM corrigenda.head FOR UPDATE")
            with refused("UNAVAILABLE") as refusal:
                Store(database, name).head(lock=True)
            assert "lock timeout" in refusal.error.message and refusal.error.retriable
            other.rollback()
            assert Store(database, name).head(lock=True).seq == position
