"""Who may serve: a role that adds to ledgers and can do no more. Whoever makes, migrates or looks may be another."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import corrigenda
import migrations
from gateway.bootstrap import open_bare
from ledger.store import Database, Row
from migrations import LATEST
from tests.house import assert_house_in_order, refused, rows, tamper
from tests.roles import as_owner, as_role, as_writer, passing_role

Become = Callable[[str], None]


@pytest.fixture
def become(monkeypatch: pytest.MonkeyPatch) -> Become:
    """Return what makes the product's next sessions those of another role, as if that had logged in."""
    dial = vars(Database)["_dial"]

    def patched(name: str) -> None:
        def dialled(self: Database) -> psycopg.Connection[Row]:
            connection = dial(self)
            connection.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(name)))
            return connection

        monkeypatch.setattr(Database, "_dial", dialled)

    return patched


def refusal(url: str, home: Path) -> str:
    """Return the paragraph that a service is refused with; it has made nothing."""
    with refused("FORBIDDEN_ACTOR") as refusal:
        corrigenda.open(url, home=home, project="p", embedder="none").close()
    assert refusal.error.exit_code == 4
    assert list(home.iterdir()) == []
    return refusal.error.message


def test_a_superuser_does_not_serve(ledger_url: str, home: Path) -> None:
    """Whoever may change everything is refused, and told how the owner makes a role that may not."""
    told = refusal(as_owner(ledger_url), home)
    assert "is a superuser" in told and "IN ROLE corrigenda_writer" in told and "CORRIGENDA_DATABASE_URL" in told
    assert "SET lock_timeout = '5s'" in told
    assert rows(ledger_url, "SELECT * FROM corrigenda.tenant") == []


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ("BYPASSRLS IN ROLE corrigenda_writer", "BYPASSRLS"),
        ("SUPERUSER IN ROLE corrigenda_writer", "is a superuser"),
        ("NOLOGIN", "GRANT corrigenda_writer TO"),
    ],
)
def test_a_role_that_may_too_much_or_too_little_does_not_serve(
    ledger_url: str, home: Path, become: Become, attributes: str, told: str
) -> None:
    """BYPASSRLS and SUPERUSER are refused though the role is a writer, and so is a role that is none."""
    with passing_role(ledger_url, attributes) as name:  # pyright: ignore[reportArgumentType] - from a list of literals
        become(name)
        assert told in refusal(as_owner(ledger_url), home)


def test_a_member_of_a_superuser_does_not_serve(ledger_url: str, home: Path, become: Become) -> None:
    """What a role could make itself by SET ROLE counts as what it is."""
    with passing_role(ledger_url, "SUPERUSER") as strong, passing_role(ledger_url, "IN ROLE corrigenda_writer") as name:
        with psycopg.connect(as_owner(ledger_url)) as owner:
            owner.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(strong), sql.Identifier(name)))
        become(name)
        assert "is a superuser" in refusal(as_owner(ledger_url), home)


@pytest.mark.parametrize("member", [False, True])
def test_the_tables_owner_does_not_serve(database_url: str, home: Path, become: Become, member: bool) -> None:
    """The owner of the tables could switch the triggers off, and so could a member of the owner: both are refused."""
    with (
        passing_role(database_url, "IN ROLE corrigenda_writer") as deputy,
        passing_role(database_url, "IN ROLE corrigenda_writer") as name,
    ):
        with psycopg.connect(database_url) as superuser:
            granting = sql.SQL("GRANT CREATE ON DATABASE {} TO {}")
            superuser.execute(granting.format(sql.Identifier(superuser.info.dbname), sql.Identifier(name)))
            superuser.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(name), sql.Identifier(deputy)))
        migrations.upgrade(as_role(database_url, name))
        become(deputy if member else name)
        assert "owns the tables, or is a member of their owner" in refusal(database_url, home)


def test_a_login_role_of_ones_own_serves(ledger_url: str, home: Path, become: Become) -> None:
    """A member of corrigenda_writer makes the ledger on first use, writes to it, and reads what it wrote."""
    with passing_role(ledger_url, "IN ROLE corrigenda_writer") as name:
        become(name)
        with corrigenda.open(as_owner(ledger_url), home=home, project="p", embedder="none") as ledger:
            first = ledger.remember("the office is in Berlin")
            assert ledger.explain(first.revision_id or "").content == "the office is in Berlin"
        assert_house_in_order(as_owner(ledger_url), home)


def test_another_tenants_ledger_is_not_seen_and_still_counts(ledger_url: str, home: Path) -> None:
    """Where only another tenant has a ledger, a first use by a writer makes neither key nor ledger."""
    tamper(
        ledger_url,
        ("INSERT INTO corrigenda.tenant (name, ledger) VALUES ('acme', 'L')", []),
        ("INSERT INTO corrigenda.head VALUES ('L', 0, 'h', 1, 1, 1)", []),
    )
    with refused("NOT_CONFIGURED"):
        corrigenda.open(ledger_url, home=home, project="p", embedder="none").close()
    assert list(home.iterdir()) == []
    assert rows(ledger_url, "SELECT name FROM corrigenda.tenant") == [("acme",)]


# ---------------------------------------------------------------- making, migrating, looking


def test_an_owner_makes_what_a_writer_then_serves(database_url: str, home: Path) -> None:
    """`db init` with the owner's URL makes schema, roles and ledger, and says what comes next; then a writer opens."""
    with open_bare(database_url=database_url, home=home, project="p") as bare:
        made = bare.init()
        assert made["revision"] == LATEST
        assert made["sql"][0].startswith("CREATE ROLE corrigenda_app LOGIN")
        assert "next" in made and not {"next", "sql"} & bare.init().keys()
        assert bare.verify().ok
    writer = as_writer(database_url)
    with corrigenda.open(writer, home=home, project="p", embedder="none") as ledger:
        assert ledger.remember("the office is in Berlin").outcome == "stored"
    with open_bare(database_url=writer, home=home, project="p") as bare:
        again = bare.init()
    assert "next" not in again and again["ledger"] == made["ledger"]
    assert_house_in_order(writer, home)


def test_a_writer_cannot_make_the_schema(database_url: str, home: Path) -> None:
    """`db init` and `db migrate` need the owner, and say so; the database stays as it was."""
    with passing_role(database_url, "IN ROLE corrigenda_writer") as name:
        url = as_role(database_url, name)
        for act in ("init", "migrate"):
            with refused("FORBIDDEN_ACTOR") as refusal, open_bare(database_url=url, home=home, project="p") as bare:
                getattr(bare, act)()
            assert "owner's URL" in refusal.error.message
    assert rows(database_url, "SELECT 1 FROM pg_namespace WHERE nspname = 'corrigenda'") == []
    assert list(home.iterdir()) == []


def test_whoever_only_looks_may_be_anybody(ledger_url: str, home: Path) -> None:
    """Verify, status, log and raw bytes answer the writer and the owner alike: they only read."""
    with corrigenda.open(ledger_url, home=home, project="p", embedder="none") as ledger:
        position = ledger.remember("the office is in Berlin").position
    told = [_looked(url, home, position) for url in (ledger_url, as_owner(ledger_url))]
    assert told[0] == told[1]
    assert told[0][0] is True


def _looked(url: str, home: Path, position: int) -> tuple[object, ...]:
    with open_bare(database_url=url, home=home, create=False) as bare:
        return bare.verify().ok, bare.status(), list(bare.log()), bare.raw(position), bare.schema_current()


def test_a_stranger_is_told_what_to_ask_for(ledger_url: str, home: Path) -> None:
    """A role without any grant gets FORBIDDEN_ACTOR with the grant, not a message about tables."""
    with (
        passing_role(ledger_url, "NOLOGIN") as name,
        refused("FORBIDDEN_ACTOR") as refusal,
        open_bare(database_url=as_role(ledger_url, name), home=home, create=False) as bare,
    ):
        bare.verify()
    assert "permission denied for schema corrigenda" in refusal.error.message
    assert "GRANT corrigenda_writer TO" in refusal.error.message


def test_the_doctor_names_a_role_that_may_not_serve(ledger_url: str, home: Path) -> None:
    """The doctor may look as anybody, and says of the URL's role whether it may serve."""
    found: dict[str, tuple[bool, str]] = {}
    for who, url in (("writer", ledger_url), ("owner", as_owner(ledger_url))):
        with open_bare(database_url=url, home=home, create=False) as bare:
            found[who] = next((well, message) for name, well, message, _ in bare.doctor() if name == "role")
    assert found["writer"][0] is True
    assert found["owner"][0] is False and "is a superuser" in found["owner"][1]
