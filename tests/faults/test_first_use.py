"""First use: however many come at once, and whoever is killed, one ledger with one pair of keys; looking makes none."""

import contextlib
import fcntl
import stat
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import corrigenda
from gateway.bootstrap import open_bare, open_gateway
from gateway.embedded import attach
from gateway.upkeep.bare import BareGateway
from ledger.errors import CorrigendaError
from ledger.keys import make_ledger_key
from migrations import LATEST
from tests.faults.ledger_hands import Document, as_later, assert_in_order, kill, race, read_ledger, rows, run, tree
from tests.roles import as_owner, as_writer

KEYS = ["ledger.key", "signing.pem"]
EMPTY = {"tenant": 0, "head": 0, "event": 0, "payload": 0, "outbox": 0, "embedding": 0, "revision": 0, "directory": 0}


@pytest.fixture(autouse=True)
def nobodys_settings(no_settings: None) -> None:
    """No test here may depend on the settings of whoever runs it."""


@pytest.fixture
def empty(database_url: str, home: Path) -> Document:
    """The arguments that open a database in which there is nothing at all."""
    return {"database_url": database_url, "home": str(home), "project": "first", "embedder": "none"}


@pytest.fixture
def migrated(ledger_url: str, home: Path) -> Document:
    """The arguments that open a database of this version, without a ledger."""
    return {"database_url": ledger_url, "home": str(home), "project": "first", "embedder": "none"}


def keys_of(where: Document) -> dict[str, bytes]:
    """Return what lies in the home's folder for keys, whatever it is called."""
    folder = Path(where["home"]) / "keys"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def assert_one_of_everything(where: Document) -> str:
    """Fail unless there are one tenant, one ledger of one event, and its two keys; return the ledger's id."""
    told = read_ledger(where)
    assert told.types == {"ledger.opened": 1}
    assert rows(where) == EMPTY | {"tenant": 1, "head": 1, "event": 1, "payload": 1}
    assert sorted(keys_of(where)) == KEYS
    for name in KEYS:
        assert stat.S_IMODE((Path(where["home"]) / "keys" / name).stat().st_mode) == 0o600
    return told.ledger


# ---------------------------------------------------------------- at once


def test_twenty_cold_starts_make_one_of_everything(fresh_home: Path, tmp_path: Path) -> None:
    """Four processes open a home five times each, all at once, where nothing was: one cluster, ledger, key, event 0."""
    where = {"home": str(fresh_home), "project": "first", "embedder": "none"}
    ended = race("visit", where, tmp_path / "gate", 4, threads=5, linger_s=0.1)
    found = [answer for one in ended for answer in one.answers]
    assert len(found) == 20
    assert {(answer["size"], answer["chain"]) for answer in found} == {(1, "ok")}
    assert len({(answer["id"], answer["head"]) for answer in found}) == 1
    with attach(fresh_home, create=False) as server:
        assert assert_one_of_everything({**where, "database_url": server.dsn}) == found[0]["id"]


def test_many_first_uses_of_a_database_make_one_ledger(migrated: Document, tmp_path: Path) -> None:
    """Six processes open the same database for the first time, all at once."""
    ended = race("visit", migrated, tmp_path / "gate", 6, linger_s=0.3)
    assert len({answer["id"] for one in ended for answer in one.answers}) == 1
    assert_one_of_everything(migrated)


def test_many_initialisations_make_one_schema_and_one_ledger(empty: Document, tmp_path: Path) -> None:
    """Four processes run `db init` on an empty database, all at once, and say the same of what was made."""
    ended = race("init", empty, tmp_path / "gate", 4, linger_s=0.3)
    answers = [as_later(one.answers[0]) for one in ended]
    assert answers == [answers[0]] * 4
    assert answers[0]["revision"] == LATEST
    assert assert_one_of_everything(empty) == answers[0]["ledger"]


# ---------------------------------------------------------------- killed


@pytest.mark.parametrize(
    ("moment", "left"),
    [
        ("before the ledger key", []),
        ("after the ledger key", ["ledger.key"]),
        ("after both keys", KEYS),
        ("before event 0 is committed", KEYS),
    ],
)
def test_a_key_that_a_crash_left_is_used_next_time(migrated: Document, moment: str, left: list[str]) -> None:
    """Killed before the commit there is no ledger; the next first use makes it with the keys that were made then."""
    kill("visit", migrated, moment)
    before = keys_of(migrated)
    assert (sorted(before), rows(migrated)) == (left, EMPTY)
    run("visit", migrated)
    assert_one_of_everything(migrated)
    assert keys_of(migrated) == keys_of(migrated) | before


def test_a_ledger_that_was_made_unreported_is_found_next_time(migrated: Document) -> None:
    """Killed after the commit the ledger is there, and the next process opens it and makes nothing."""
    kill("visit", migrated, "after event 0 is committed")
    before = assert_one_of_everything(migrated), keys_of(migrated)
    run("visit", migrated)
    assert (assert_one_of_everything(migrated), keys_of(migrated)) == before


@pytest.mark.parametrize("name", KEYS)
def test_what_a_killed_first_use_left_is_swept(migrated: Document, name: str) -> None:
    """Killed while a key file was written: the half-written one is gone after the next use, a living writer's is not,
    and nothing else is touched.
    """
    folder = Path(migrated["home"]) / "keys"
    kill("visit", migrated, "before a key file is in place", nth=1 + KEYS.index(name))
    (left,) = [one for one in keys_of(migrated) if one.startswith(f".{name}-")]
    others = [folder / f".{name}-notours", folder / f"{name}.bak", folder / f".{name}-{'a' * 16}.txt"]
    for other in others:
        other.write_text("kept")
    living = folder / f".{name}-{'b' * 16}"
    with living.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        run("visit", migrated)
        assert not (folder / left).exists()
        assert living.exists() and all(other.exists() for other in others)
    run("visit", migrated)
    assert not living.exists()
    for other in others:
        other.unlink()
    assert_one_of_everything(migrated)


# ---------------------------------------------------------------- a key that is missing, foreign or open


@pytest.fixture
def elsewhere(migrated: Document, tmp_path: Path) -> Document:
    """A database that holds a ledger, and another home, which is empty."""
    run("visit", migrated)
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    return {**migrated, "home": str(other)}


def test_a_ledger_without_its_key_is_not_opened_and_no_key_is_made(elsewhere: Document) -> None:
    """A home without the key: LEDGER_UNVERIFIED with exit 15, whoever asks, and not a file more."""
    before = rows(elsewhere)
    for _ in range(2):
        with pytest.raises(corrigenda.IntegrityError) as refused:
            corrigenda.open(elsewhere["database_url"], home=elsewhere["home"], project="first", embedder="none")
        assert (refused.value.code, refused.value.exit_code) == ("LEDGER_UNVERIFIED", 15)
        assert "CORRIGENDA_LEDGER_KEY_FILE" in refused.value.message
    with pytest.raises(corrigenda.IntegrityError), bare(elsewhere, create=True) as opened:
        opened.init()
    with bare(elsewhere, create=False) as opened:
        report = opened.verify()
        assert (report.ok, report.exit_code) == (False, 15)
        assert opened.status().ledger["chain"] == "unverified"
    assert tree(Path(elsewhere["home"])) == {}
    assert rows(elsewhere) == before


def foreign(key: Path) -> None:
    """Make a key of its own."""
    make_ledger_key(key)


def open_to_others(key: Path) -> None:
    """Make a key that everybody may read."""
    make_ledger_key(key)
    key.chmod(0o644)


def not_a_key(key: Path) -> None:
    """Make a file that is no key."""
    key.write_bytes(b"{}")
    key.chmod(0o600)


@pytest.mark.parametrize("make", [foreign, open_to_others, not_a_key])
def test_a_key_that_is_not_this_ledgers_opens_nothing(elsewhere: Document, make: Callable[[Path], None]) -> None:
    """A foreign, open or broken key file: LEDGER_UNVERIFIED, nothing stored, and the file as it was."""
    folder = Path(elsewhere["home"]) / "keys"
    folder.mkdir(mode=0o700)
    make(folder / "ledger.key")
    before = tree(Path(elsewhere["home"])), rows(elsewhere)
    with pytest.raises(corrigenda.IntegrityError) as refused:
        open_gateway(**elsewhere)
    assert refused.value.code == "LEDGER_UNVERIFIED"
    assert str(folder / "ledger.key") in refused.value.message
    assert (tree(Path(elsewhere["home"])), rows(elsewhere)) == before


# ---------------------------------------------------------------- only looking


LOOKS: dict[str, Callable[[BareGateway], object]] = {
    "db url": BareGateway.database_url,
    "db current": BareGateway.schema_current,
    "db check": BareGateway.schema_check,
    "doctor": BareGateway.doctor,
    "verify": BareGateway.verify,
}


def bare(where: Document, *, create: bool) -> BareGateway:
    """Open what does not walk the chain."""
    return open_bare(database_url=where.get("database_url"), home=where["home"], project="first", create=create)


@pytest.mark.parametrize("verb", LOOKS)
@pytest.mark.parametrize("exists", [True, False])
def test_looking_at_an_empty_home_makes_nothing(fresh_home: Path, verb: str, exists: bool) -> None:
    """`db url`, `db check`, `db current`, `doctor` and `verify` make no home, no cluster, no key; what is missing
    is said.
    """
    if exists:
        fresh_home.mkdir(mode=0o700)
    before = tree(fresh_home.parent)
    with bare({"home": str(fresh_home)}, create=False) as opened:
        if verb == "doctor":
            assert not all(check[1] for check in opened.doctor())
        else:
            with pytest.raises(corrigenda.UnavailableError) as refused:
                LOOKS[verb](opened)
            assert "corrigenda db init" in refused.value.message
    assert tree(fresh_home.parent) == before


@pytest.mark.parametrize("verb", LOOKS)
def test_looking_at_an_empty_database_makes_nothing(empty: Document, verb: str) -> None:
    """On an external database that is empty, too, looking makes neither schema nor keys."""
    with bare(empty, create=False) as opened, contextlib.suppress(CorrigendaError):
        LOOKS[verb](opened)
    assert schemas_of(empty) == set()
    assert tree(Path(empty["home"])) == {}


@pytest.mark.parametrize("verb", LOOKS)
def test_looking_at_a_database_without_a_ledger_makes_none(migrated: Document, verb: str) -> None:
    """Where the schema is there and no ledger, looking makes none: `verify` says so (NOT_CONFIGURED)."""
    with bare(migrated, create=False) as opened:
        if verb == "verify":
            with pytest.raises(corrigenda.NotFoundError) as refused:
                LOOKS[verb](opened)
            assert refused.value.code == "NOT_CONFIGURED"
        else:
            LOOKS[verb](opened)
    assert rows(migrated) == EMPTY
    assert tree(Path(migrated["home"])) == {}


# ---------------------------------------------------------------- an external database of another shape


def schemas_of(where: Document) -> set[str]:
    """Return which schemas of ours a database has."""
    with psycopg.connect(as_owner(where["database_url"])) as connection:
        found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname = 'corrigenda'")
        return {name for (name,) in found}


def at_version(where: Document, version: str) -> None:
    """Make a database look as if it had another version's schema."""
    with psycopg.connect(as_owner(where["database_url"])) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS corrigenda")
        connection.execute("CREATE TABLE IF NOT EXISTS corrigenda.alembic_version (version_num text PRIMARY KEY)")
        connection.execute("DELETE FROM corrigenda.alembic_version")
        connection.execute("INSERT INTO corrigenda.alembic_version VALUES (%s)", [version])


def refused_to_open(where: Document) -> corrigenda.CorrigendaError:
    """Return what opening the ledger is refused with; nothing may have been made."""
    with pytest.raises(corrigenda.UnavailableError) as refused:
        open_gateway(**where)
    assert (refused.value.code, refused.value.exit_code) == ("SCHEMA_MISMATCH", 7)
    assert tree(Path(where["home"])) == {}
    return refused.value


def test_an_empty_database_is_refused_and_left_empty(empty: Document) -> None:
    """An external database is not made ready unasked: SCHEMA_MISMATCH names `corrigenda db init`."""
    error = refused_to_open(empty)
    assert "corrigenda db init" in error.message
    assert (error.details["expected"], error.details["found"]) == (LATEST, None)
    assert schemas_of(empty) == set()
    with bare(empty, create=False) as opened:
        assert opened.schema_current() is None


def test_an_older_schema_is_refused(empty: Document) -> None:
    """SCHEMA_MISMATCH names `corrigenda db migrate` and both versions."""
    at_version(empty, "0000")
    error = refused_to_open(empty)
    assert "corrigenda db migrate" in error.message
    assert (error.details["expected"], error.details["found"]) == (LATEST, "0000")


@pytest.mark.parametrize("act", ["open", "migrate", "init"])
def test_a_newer_schema_is_refused_by_every_act(migrated: Document, act: str) -> None:
    """What a later version has made is neither used nor changed."""
    at_version(migrated, "9999")
    error = refused_to_open(migrated)
    assert "db migrate" not in error.message and "db init" not in error.message
    if act != "open":
        with pytest.raises(corrigenda.UnavailableError) as refused, bare(migrated, create=True) as opened:
            opened.migrate() if act == "migrate" else opened.init()
        assert refused.value.code == "SCHEMA_MISMATCH"
    assert rows(migrated) == EMPTY


def test_init_makes_everything_once(empty: Document) -> None:
    """`db init` a second time changes nothing and says the same, but for what comes next; the ledger then opens."""
    with bare(empty, create=True) as opened:
        first = opened.init()
        second = opened.init()
    assert first.keys() - second.keys() == {"next", "sql"}
    with bare(empty, create=True) as opened:
        assert opened.init() == second == {name: first[name] for name in second}
        assert opened.migrate() == {"before": LATEST, "revision": LATEST}
    assert first["origin"] == f"corrigenda.invalid/{first['ledger']}"
    assert assert_one_of_everything(empty) == first["ledger"]
    served = {**empty, "database_url": as_writer(empty["database_url"])}
    with open_gateway(**served) as gateway:
        gateway.remember("the first one")
    assert_in_order({**served, "actor": "human:x"})


def test_an_origin_is_for_life(empty: Document) -> None:
    """The origin of the first `db init` stays: the same again is accepted, another is INVALID_INPUT."""
    with bare(empty, create=True) as opened:
        assert opened.init(origin="ledger.example.org/main")["origin"] == "ledger.example.org/main"
        assert opened.init(origin="ledger.example.org/main") == opened.init()
        with pytest.raises(corrigenda.InvalidInputError) as refused:
            opened.init(origin="ledger.example.org/other")
        assert refused.value.code == "INVALID_INPUT"
    assert_one_of_everything(empty)


def test_opening_makes_no_other_tenant(migrated: Document) -> None:
    """First use makes the tenant `local` and no other: NOT_CONFIGURED says how it is made, and nothing is."""
    with pytest.raises(corrigenda.NotFoundError) as refused:
        open_gateway(**migrated, tenant="acme")
    assert refused.value.code == "NOT_CONFIGURED"
    assert "`corrigenda db init --tenant acme`" in refused.value.message
    assert rows(migrated) == EMPTY
    assert tree(Path(migrated["home"])) == {}


def test_a_database_that_does_not_answer_is_unavailable(home: Path) -> None:
    """UNAVAILABLE, retriable, exit 7, and nothing made."""
    url = make_conninfo(host=str(home), dbname="nowhere")
    with pytest.raises(corrigenda.UnavailableError) as refused:
        open_gateway(database_url=url, home=home, project="first")
    assert (refused.value.code, refused.value.exit_code, refused.value.retriable) == ("UNAVAILABLE", 7, True)
    assert tree(home) == {}


def test_a_plain_open_does_not_load_alembic(migrated: Document) -> None:
    """The schema is checked by one SELECT: neither Alembic nor SQLAlchemy is imported, on first use neither."""
    for _ in range(2):
        loaded = run("modules", migrated).answers[0]["modules"]
        assert "psycopg" in loaded
        assert [name for name in loaded if name.partition(".")[0] in ("alembic", "sqlalchemy")] == []
