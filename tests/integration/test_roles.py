"""What each database role may do to a ledger's tables, tried as that role: two walls, a grant and a trigger."""

from collections.abc import Iterator
from contextlib import closing
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

import migrations
from ledger.store import Database
from tests.house import rows
from tests.roles import as_owner, as_role, passing_role

OURS, THEIRS = "01J9ZKAAAAAAAAAAAAAAAAAAAA", "01J9ZKBBBBBBBBBBBBBBBBBBBB"
TENANTS = {OURS: "local", THEIRS: "acme"}
HISTORY = ("tenant", "event", "payload", "outbox", "evidence_object")
READ_MODELS = ("revision", "directory", "revision_state", "edge", "log_entry", "correction", "rebuild")
DERIVED = ("embedding", *READ_MODELS)
CARRYING = ("carried", "outbox_failure", "replica", "lease")
TABLES = (*HISTORY, "head", "trace", *CARRYING, *DERIVED)
LIVE = 2

COLUMNS: dict[str, LiteralString] = {
    "tenant": "(ledger, name) VALUES (%(ledger)s, %(tenant)s)",
    "head": "(ledger, seq, hash, incarnation, gen, projector) VALUES (%(ledger)s, 0, 'h', 1, 2, 1)",
    "event": "(ledger, seq, stream, stream_seq, envelope, hash, seal) VALUES (%(ledger)s, 0, 's', 0, 'e', 'h', 's')",
    "payload": "(ledger, seq, salt, body) VALUES (%(ledger)s, 0, 's', 'b')",
    "outbox": "(ledger, seq, revision, effect, lineage) VALUES (%(ledger)s, 0, 'r', 'put', 'l')",
    "embedding": "(ledger, content, signature, vector, seal) VALUES (%(ledger)s, 'c', 's', 'v', 's')",
    "revision": "(ledger, gen, revision, lineage, project, version, state, trust, floor, content_seq) VALUES"
    " (%(ledger)s, 2, 'r', 'l', 'p', 1, 'active', 'unverified', 'unverified', 0)",
    "directory": "(ledger, gen, id, seq) VALUES (%(ledger)s, 2, 'i', 0)",
    "revision_state": "(ledger, gen, revision, from_seq, lineage, state, trust, floor) VALUES"
    " (%(ledger)s, 2, 'r', 0, 'l', 'active', 'unverified', 'unverified')",
    "edge": "(ledger, gen, kind, newer, older, from_seq) VALUES (%(ledger)s, 2, 'supersedes', 'n', 'o', 0)",
    "log_entry": "(ledger, gen, seq, at, type, actor) VALUES (%(ledger)s, 2, 0, 'a', 't', 'w')",
    "correction": "(ledger, gen, correction, project, visibility, origin, state, content_seq) VALUES"
    " (%(ledger)s, 2, 'c', 'p', 'agent', 'human', 'active', 0)",
    "rebuild": "(ledger, gen, seq, projector) VALUES (%(ledger)s, 2, 0, 1)",
    "carried": "(ledger, task, seq) VALUES (%(ledger)s, 't', 0)",
    "outbox_failure": "(ledger, seq, revision, signature, state, attempts, code, at)"
    " VALUES (%(ledger)s, 0, 'r', 's', 'failing', 1, 'c', now())",
    "replica": "(ledger, id, incarnation, cursor, seen_at) VALUES (%(ledger)s, 'i', 1, 0, now())",
    "lease": "(ledger, target, owner, fence, cursor, expires_at) VALUES (%(ledger)s, 't', 'o', 1, 0, now())",
    "trace": "(ledger, trace, kind, project, revisions, digest, body) VALUES"
    " (%(ledger)s, 't', 'search', 'p', '{}', 'd', 'b')",
    "evidence_object": "(ledger, evidence, body) VALUES (%(ledger)s, 'e', 'b')",
}
MOVING = {table: "seq" for table in ("head", "carried", "directory", "log_entry", "rebuild")} | {
    "embedding": "seal",
    "revision": "version",
    "revision_state": "to_seq",
    "edge": "to_seq",
    "correction": "content_seq",
    "outbox_failure": "attempts",
    "replica": "cursor",
    "lease": "fence",
}
CHANGES: dict[str, LiteralString] = {
    "UPDATE": "UPDATE corrigenda.{} SET ledger = ledger",
    "DELETE": "DELETE FROM corrigenda.{}",
    "TRUNCATE": "TRUNCATE corrigenda.{}",
}
READING: LiteralString = "SELECT ledger FROM corrigenda.{} ORDER BY ledger"
INSERTING: LiteralString = "INSERT INTO corrigenda.{} "


@pytest.fixture
def two_ledgers(ledger_url: str) -> str:
    """Return the writer's connection string of a database in which two ledgers have one row in each table."""
    with psycopg.connect(as_owner(ledger_url)) as owner:
        for table, columns in COLUMNS.items():
            for ledger in TENANTS:
                owner.execute(inserting(table, columns), {"ledger": ledger, "tenant": TENANTS[ledger]})
    return ledger_url


@pytest.fixture
def plain_owner(database_url: str) -> Iterator[str]:
    """Return the connection string of a database that a role which is no superuser has migrated, and owns."""
    with passing_role(database_url, "NOSUPERUSER") as name:
        with psycopg.connect(database_url) as owner:
            granting = sql.SQL("GRANT CREATE ON DATABASE {} TO {}")
            owner.execute(granting.format(sql.Identifier(owner.info.dbname), sql.Identifier(name)))
        migrations.upgrade(as_role(database_url, name))
        yield as_role(database_url, name)


def inserting(table: str, columns: LiteralString) -> sql.Composed:
    """Return the statement that adds a row to a table."""
    return sql.SQL(INSERTING).format(sql.Identifier(table)) + sql.SQL(columns)


def see(connection: psycopg.Connection, ledger: str) -> None:
    """Name a ledger and its tenant for the rest of a transaction, as the product does."""
    connection.execute("SELECT set_config('corrigenda.ledger', %s, true)", [ledger])
    connection.execute("SELECT set_config('corrigenda.tenant', %s, true)", [TENANTS.get(ledger, "")])


def attempt(url: str, statement: sql.Composed, *, ledger: str = OURS, role: str | None = None) -> int:
    """Run a statement that sees one ledger, perhaps as another role; return how many rows it touched."""
    with psycopg.connect(url) as connection:
        if role is not None:
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        see(connection, ledger)
        return connection.execute(statement).rowcount


def change(act: str, table: str) -> sql.Composed:
    """Return the statement that does this to a table's rows."""
    return sql.SQL(CHANGES[act]).format(sql.Identifier(table))


def everything(url: str) -> list[list[tuple[str, ...]]]:
    """Return the ledger of each row of each table, as whoever sees everything."""
    return [rows(url, f"SELECT ledger FROM corrigenda.{table} ORDER BY ledger") for table in TABLES]  # noqa: S608 - from a list


# ---------------------------------------------------------------- changing what is stored


@pytest.mark.parametrize("act", CHANGES)
@pytest.mark.parametrize("table", [*HISTORY, "trace"])
def test_the_writer_is_granted_no_change_of_history(two_ledgers: str, table: str, act: str) -> None:
    """Whoever serves a ledger may neither change nor remove what it holds: there is no grant, before any trigger."""
    before = everything(two_ledgers)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=f"permission denied for table {table}"):
        attempt(two_ledgers, change(act, table))
    assert everything(two_ledgers) == before


@pytest.mark.parametrize("act", ["DELETE", "TRUNCATE"])
@pytest.mark.parametrize("table", ["head", *CARRYING, *DERIVED])
def test_the_writer_removes_nothing(two_ledgers: str, table: str, act: str) -> None:
    """Heads and read models are written over, and only the maintainer removes rows."""
    before = everything(two_ledgers)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=f"permission denied for table {table}"):
        attempt(two_ledgers, change(act, table))
    assert everything(two_ledgers) == before


@pytest.mark.parametrize("table", ["head", *CARRYING, *DERIVED])
def test_the_writer_writes_over_what_moves(two_ledgers: str, table: str) -> None:
    """A head, an embedding and a read model's row may be changed, in the ledger that was named."""
    assert attempt(two_ledgers, change("UPDATE", table)) == 1


@pytest.mark.parametrize("act", CHANGES)
@pytest.mark.parametrize("table", [*HISTORY, "head"])
def test_the_owner_is_refused_by_the_trigger(two_ledgers: str, table: str, act: str) -> None:
    """The tables' owner has every grant, a superuser sees every row, and both are refused; only heads may move."""
    before = everything(two_ledgers)
    if (table, act) == ("head", "UPDATE"):
        assert attempt(as_owner(two_ledgers), change(act, table)) == 2
    else:
        with pytest.raises(psycopg.errors.RestrictViolation, match=rf"{act} on corrigenda\.{table} is refused"):
            attempt(as_owner(two_ledgers), change(act, table))
    assert everything(two_ledgers) == before


def test_a_trace_is_never_changed(two_ledgers: str) -> None:
    """An event may name a trace's digest, so the owner is refused, too: it is removed, or stays as it is."""
    for act in ("UPDATE", "TRUNCATE"):
        with pytest.raises(psycopg.errors.RestrictViolation, match=rf"{act} on corrigenda\.trace is refused"):
            attempt(as_owner(two_ledgers), change(act, "trace"))


def test_a_change_that_would_hit_no_row_is_refused_too(two_ledgers: str) -> None:
    """The trigger stands before the statement: nobody learns from a count of 0 that it would have been allowed."""
    with pytest.raises(psycopg.errors.RestrictViolation):
        attempt(as_owner(two_ledgers), change("DELETE", "event") + sql.SQL(" WHERE false"))


# ---------------------------------------------------------------- the maintainer and the eraser


@pytest.mark.parametrize("act", ["INSERT", *CHANGES])
@pytest.mark.parametrize("table", ["event", "payload", "head"])
def test_the_maintainer_may_not_touch_the_truth(two_ledgers: str, table: str, act: str) -> None:
    """Who tidies up may neither add to events, payloads and heads, nor change or remove them."""
    before = everything(two_ledgers)
    statement = inserting(table, "DEFAULT VALUES") if act == "INSERT" else change(act, table)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=f"permission denied for table {table}"):
        attempt(as_owner(two_ledgers), statement, role="corrigenda_maintainer")
    assert everything(two_ledgers) == before


def test_the_maintainer_removes_old_outbox_rows_and_embeddings(two_ledgers: str) -> None:
    """What the index has taken up, vectors, and traces may go: in the ledger that was named."""
    for table in ("outbox", "embedding", "trace"):
        assert attempt(as_owner(two_ledgers), change("DELETE", table), role="corrigenda_maintainer") == 1
        assert rows(two_ledgers, f"SELECT ledger FROM corrigenda.{table}") == [(THEIRS,)]  # noqa: S608 - from a list


@pytest.mark.parametrize("table", READ_MODELS)
def test_the_maintainer_removes_retired_generations_only(two_ledgers: str, table: str) -> None:
    """A read model's generation can be removed once the head has left it, the live one and the next one cannot."""
    owner = as_owner(two_ledgers)
    for generation, removed in ((LIVE, 0), (LIVE + 1, 0), (LIVE - 1, 1)):
        with psycopg.connect(owner) as connection:
            moving = sql.SQL("UPDATE corrigenda.{} SET gen = %s").format(sql.Identifier(table))
            connection.execute(moving, [generation])
        assert attempt(owner, change("DELETE", table), role="corrigenda_maintainer") == removed


def test_the_eraser_destroys_payloads_and_no_event(two_ledgers: str) -> None:
    """An erasure takes a payload away and cannot touch the envelope that vouches for it."""
    owner = as_owner(two_ledgers)
    assert attempt(owner, change("DELETE", "payload"), role="corrigenda_eraser") == 1
    assert rows(two_ledgers, "SELECT ledger FROM corrigenda.payload") == [(THEIRS,)]
    for act in CHANGES:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            attempt(owner, change(act, "event"), role="corrigenda_eraser")
    for act in ("UPDATE", "TRUNCATE"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            attempt(owner, change(act, "payload"), role="corrigenda_eraser")


def test_erasing_is_done_on_purpose(two_ledgers: str) -> None:
    """A member of the eraser has its grants, and still deletes nothing before it has said SET ROLE."""
    with passing_role(two_ledgers, "IN ROLE corrigenda_eraser") as member:
        url = as_role(two_ledgers, member)
        with pytest.raises(psycopg.errors.RestrictViolation, match=r"DELETE on corrigenda\.payload is refused"):
            attempt(url, change("DELETE", "payload"))
        assert attempt(url, change("DELETE", "payload"), role="corrigenda_eraser") == 1


# ---------------------------------------------------------------- one ledger does not see another


@pytest.mark.parametrize("table", TABLES)
def test_the_writer_sees_the_ledger_that_it_named(two_ledgers: str, table: str) -> None:
    """RM-92: with two tenants' rows in a table, a transaction sees the one's that it named, and without a name none."""
    reading = sql.SQL(READING).format(sql.Identifier(table))
    for ledger, seen in ((OURS, [(OURS,)]), (THEIRS, [(THEIRS,)]), ("", []), ("01J9ZKCCCCCCCCCCCCCCCCCCCC", [])):
        with psycopg.connect(two_ledgers) as connection:
            see(connection, ledger)
            assert connection.execute(reading).fetchall() == seen
        with psycopg.connect(two_ledgers) as connection:
            assert connection.execute(reading).fetchall() == []


@pytest.mark.parametrize("table", TABLES)
def test_the_writer_adds_nothing_to_another_ledger(two_ledgers: str, table: str) -> None:
    """RM-92: a row for a ledger that was not named is refused, and so is moving a row into one."""
    before = everything(two_ledgers)
    row = {"ledger": "01J9ZKCCCCCCCCCCCCCCCCCCCC", "tenant": "another"}
    with psycopg.connect(two_ledgers) as connection:
        see(connection, OURS)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="violates row-level security policy"):
            connection.execute(inserting(table, COLUMNS[table]), row)
    if table in ("head", *CARRYING, *DERIVED):
        moving = sql.SQL("UPDATE corrigenda.{} SET ledger = 'another'").format(sql.Identifier(table))
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="violates row-level security policy"):
            attempt(two_ledgers, moving)
    assert everything(two_ledgers) == before


@pytest.mark.parametrize("table", ["head", *CARRYING, *DERIVED])
def test_the_writer_changes_nothing_of_another_ledger(two_ledgers: str, table: str) -> None:
    """RM-92: an UPDATE without a WHERE reaches the rows of the ledger that was named."""
    column = MOVING[table]
    value = "'x'" if table == "embedding" else "7"
    moving = sql.SQL("UPDATE corrigenda.{} SET {} = {}")
    done = attempt(two_ledgers, moving.format(sql.Identifier(table), sql.Identifier(column), sql.SQL(value)))
    assert done == 1
    found = rows(two_ledgers, f"SELECT ledger, {column} FROM corrigenda.{table} ORDER BY ledger")  # noqa: S608 - from a list
    assert found[0][1] != found[1][1]


def test_a_tenant_is_found_by_its_name_only(two_ledgers: str) -> None:
    """Whoever looks a tenant up learns of the one that it named; there is no list of the others."""
    with psycopg.connect(two_ledgers) as connection:
        for name, found in (("acme", [(THEIRS,)]), ("acm", []), ("%", []), ("", [])):
            connection.execute("SELECT set_config('corrigenda.tenant', %s, true)", [name])
            assert connection.execute("SELECT ledger FROM corrigenda.tenant").fetchall() == found


def test_an_owner_without_a_superusers_rights_is_no_exception(plain_owner: str) -> None:
    """RM-92: row-level security is FORCEd: the tables' owner, too, sees and writes the ledger that it named."""
    for ledger in TENANTS:
        with psycopg.connect(plain_owner) as connection:
            see(connection, ledger)
            for table, columns in COLUMNS.items():
                connection.execute(inserting(table, columns), {"ledger": ledger, "tenant": TENANTS[ledger]})
    for table in TABLES:
        reading = sql.SQL(READING).format(sql.Identifier(table))
        with psycopg.connect(plain_owner) as connection:
            assert connection.execute(reading).fetchall() == []
            see(connection, OURS)
            assert connection.execute(reading).fetchall() == [(OURS,)]
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="violates row-level security policy"):
                row = {"ledger": "01J9ZKCCCCCCCCCCCCCCCCCCCC", "tenant": "another"}
                connection.execute(inserting(table, COLUMNS[table]), row)
    for table in HISTORY:
        with pytest.raises(psycopg.errors.RestrictViolation):
            attempt(plain_owner, change("DELETE", table))


@pytest.mark.parametrize("gone", ["tenant", "tenant and head"])
def test_a_ledger_without_its_tenants_row_is_noticed_through_the_wall(plain_owner: str, gone: str) -> None:
    """The writer sees no foreign row, and is told whether any ledger is there, and any whose tenant's row is gone."""
    asking: LiteralString = "SELECT named, unnamed FROM corrigenda.any_ledger()"
    writer = as_role(plain_owner, "corrigenda_writer")
    assert rows(writer, asking) == [(False, False)]
    with psycopg.connect(plain_owner) as connection:
        for ledger in TENANTS:
            see(connection, ledger)
            for table in ("tenant", "head", "event"):
                row = {"ledger": ledger, "tenant": TENANTS[ledger]}
                connection.execute(inserting(table, COLUMNS[table]), row)
    assert rows(writer, asking) == [(True, False)]
    with psycopg.connect(plain_owner, autocommit=True) as connection:
        connection.execute("ALTER TABLE corrigenda.tenant DISABLE TRIGGER ALL, NO FORCE ROW LEVEL SECURITY")
        connection.execute("ALTER TABLE corrigenda.head DISABLE TRIGGER ALL, NO FORCE ROW LEVEL SECURITY")
        connection.execute("DELETE FROM corrigenda.tenant WHERE ledger = %s", [THEIRS])
        if gone == "tenant and head":
            connection.execute("DELETE FROM corrigenda.head WHERE ledger = %s", [THEIRS])
    assert rows(writer, asking) == [(True, True)]
    with psycopg.connect(writer) as connection:
        connection.execute(asking)
        assert connection.execute("SELECT count(*) FROM corrigenda.head").fetchone() == (0,)


# ---------------------------------------------------------------- what a transaction sees


def test_a_part_of_a_transaction_may_see_another_ledger(two_ledgers: str) -> None:
    """A nested transaction that names a ledger sees that one, and the rest of the outer one still its own."""
    asking: LiteralString = "SELECT current_setting('corrigenda.ledger', true)"
    with closing(Database(two_ledgers)) as database:
        with database.transaction(ledger=OURS) as connection:
            with database.transaction(ledger=THEIRS):
                assert connection.execute(asking).fetchall() == [(THEIRS,)]
                with database.transaction():
                    assert connection.execute(asking).fetchall() == [(THEIRS,)]
            assert connection.execute(asking).fetchall() == [(OURS,)]
            with pytest.raises(ZeroDivisionError), database.transaction(ledger=THEIRS):
                raise ZeroDivisionError
            assert connection.execute(asking).fetchall() == [(OURS,)]
        assert connection.execute(asking).fetchall() == [("",)]
        with database.transaction():
            assert connection.execute("SELECT count(*) FROM corrigenda.event").fetchall() == [(0,)]


def test_a_ledger_is_named_as_data(two_ledgers: str) -> None:
    """Whatever a ledger or tenant is called, it is a value in the statement that begins a transaction."""
    name = "x', true); SELECT set_config('corrigenda.ledger', '" + THEIRS
    with closing(Database(two_ledgers)) as database, database.transaction(ledger=name, tenant=name) as connection:
        assert connection.execute("SELECT current_setting('corrigenda.ledger')").fetchall() == [(name,)]
        assert connection.execute("SELECT count(*) FROM corrigenda.event").fetchall() == [(0,)]


def test_a_second_head_row_is_refused_to_the_writer(two_ledgers: str) -> None:
    """LM-43: a direct INSERT or UPDATE that makes a second live revision of a lineage is a unique violation."""
    second: LiteralString = (
        "INSERT INTO corrigenda.revision (ledger, gen, revision, lineage, project, version, state, trust, floor,"
        " content_seq) VALUES (%s, 2, 'r2', 'l', 'p', 2, %s, 'unverified', 'unverified', 0)"
    )
    with psycopg.connect(two_ledgers) as connection:
        see(connection, OURS)
        with pytest.raises(psycopg.errors.UniqueViolation, match="revision_head"), connection.transaction():
            connection.execute(second, [OURS, "active"])
        connection.execute(second, [OURS, "superseded"])
        with pytest.raises(psycopg.errors.UniqueViolation, match="revision_head"):
            connection.execute("UPDATE corrigenda.revision SET state = 'active'")


# ---------------------------------------------------------------- the catalogue

GRANTS = {
    "corrigenda_writer": {
        "SELECT": {"alembic_version", *TABLES},
        "INSERT": {*TABLES},
        "UPDATE": {"head", *CARRYING, *DERIVED},
    },
    "corrigenda_maintainer": {
        "SELECT": {"alembic_version", "head", "outbox", "carried", "replica", "trace", *DERIVED},
        "INSERT": {"carried"},
        "UPDATE": {"carried"},
        "DELETE": {"outbox", "replica", "trace", *DERIVED},
    },
    "corrigenda_eraser": {
        "SELECT": {"alembic_version", "head", "event", "payload", "embedding", "directory", "evidence_object", "trace"},
        "DELETE": {"payload", "embedding", "directory", "evidence_object", "trace"},
    },
}


def test_nobody_is_granted_more_than_is_listed(ledger_url: str) -> None:
    """Every grant on a table or column of the schema, but for its owner's, is one of the list above."""
    found: dict[str, dict[str, set[str]]] = {}
    granted = rows(
        ledger_url,
        "SELECT coalesce(r.rolname, 'PUBLIC'), c.relname, a.privilege_type FROM pg_class c"
        " LEFT JOIN pg_attribute t ON t.attrelid = c.oid AND t.attacl IS NOT NULL"
        " CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner)) || t.attacl) a"
        " LEFT JOIN pg_roles r ON r.oid = a.grantee"
        " WHERE c.relnamespace = 'corrigenda'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')"
        " AND a.grantee <> c.relowner",
    )
    for role, table, privilege in granted:
        found.setdefault(role, {}).setdefault(privilege, set()).add(table)
    assert found == GRANTS


def test_every_table_is_of_a_ledger_and_walled(ledger_url: str) -> None:
    """A primary key that begins with the ledger (the tenant's apart), and row-level security, enabled and FORCEd."""
    tables = rows(
        ledger_url,
        "SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, a.attname FROM pg_class c"
        " JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
        " WHERE c.relnamespace = 'corrigenda'::regnamespace AND c.relkind IN ('r', 'p')"
        " AND c.relname <> 'alembic_version'",
    )
    assert {table for table, *_ in tables} == set(TABLES)
    assert tables == [(table, True, True, "name" if table == "tenant" else "ledger") for table, *_ in tables]
    everything_there = rows(ledger_url, "SELECT tablename FROM pg_tables WHERE schemaname = 'corrigenda'")
    assert {table for (table,) in everything_there} == {*TABLES, "alembic_version"}


def test_every_policy_is_by_ledger(ledger_url: str) -> None:
    """Each table has the one policy by ledger; what else there is narrows it, or is the look for lost ledgers."""
    found = rows(
        ledger_url,
        "SELECT tablename, policyname, permissive, cmd, qual FROM pg_policies WHERE schemaname = 'corrigenda'"
        " AND policyname NOT IN ('census', 'of_name', 'first_use')",
    )
    by_ledger = "(ledger = NULLIF(current_setting('corrigenda.ledger'::text, true), ''::text))"
    open_ones = {(table, command, condition) for table, _, kind, command, condition in found if kind == "PERMISSIVE"}
    assert open_ones == {(table, "ALL", by_ledger) for table in TABLES if table != "tenant"}
    assert {name for _, name, kind, *_ in found if kind == "RESTRICTIVE"} == {"retired_only"}


def test_functions_are_not_for_everybody(ledger_url: str) -> None:
    """The one function that looks over the wall may be called by the writer, and by nobody else."""
    found = rows(
        ledger_url,
        "SELECT p.proname, coalesce(r.rolname, 'PUBLIC') FROM pg_proc p"
        " CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a"
        " LEFT JOIN pg_roles r ON r.oid = a.grantee"
        " WHERE p.pronamespace = 'corrigenda'::regnamespace AND a.grantee <> p.proowner",
    )
    assert found == [("any_ledger", "corrigenda_writer")]


def test_heads_are_vacuumed_eagerly(ledger_url: str) -> None:
    """The one row that every append changes leaves room beside it, and its old versions are swept soon."""
    [(options,)] = rows(ledger_url, "SELECT reloptions FROM pg_class WHERE oid = 'corrigenda.head'::regclass")
    assert {"fillfactor=10", "autovacuum_vacuum_scale_factor=0"} <= set(options)
