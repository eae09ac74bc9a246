"""Opening where something is amiss: database, schema, key or home; nothing is made that was not there."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import corrigenda
from gateway.bootstrap import open_bare
from gateway.upkeep import checks
from ledger.store import Database
from tests.house import last_position, refused, rows, tamper
from tests.integration.conftest import Here

NOBODY = "host=127.0.0.1 port=1 dbname=none connect_timeout=2"


def test_a_database_that_does_not_answer_is_unavailable(home: Path) -> None:
    """OH-23: given a URL where no server listens, when it is opened, then UNAVAILABLE, retriable, and no file made."""
    with refused("UNAVAILABLE") as refusal:
        corrigenda.open(NOBODY, home=home, project="p")

    assert refusal.error.retriable and refusal.error.exit_code == 7
    assert "nothing was stored" in refusal.error.message
    assert list(home.iterdir()) == []


def test_an_empty_database_names_the_command_that_fills_it(database_url: str, home: Path) -> None:
    """Given an empty database, when it is opened, then SCHEMA_MISMATCH names `db init`, and nothing is made."""
    with refused("SCHEMA_MISMATCH") as refusal:
        corrigenda.open(database_url, home=home, project="p")

    assert "corrigenda db init" in refusal.error.message
    assert not refusal.error.retriable
    assert list(home.iterdir()) == []
    assert rows(database_url, "SELECT 1 FROM pg_namespace WHERE nspname = 'corrigenda'") == []


@pytest.mark.parametrize(("version", "mend"), [("0000", "corrigenda db migrate"), ("9999", "Install the version")])
def test_another_schema_names_what_mends_it(ledger_url: str, home: Path, version: str, mend: str) -> None:
    """Given a schema that is older or newer than the program, when it is opened, SCHEMA_MISMATCH says what mends it."""
    (current,) = rows(ledger_url, "SELECT version_num FROM corrigenda.alembic_version")[0]
    tamper(ledger_url, ("UPDATE corrigenda.alembic_version SET version_num = %s", [version]))
    try:
        with refused("SCHEMA_MISMATCH") as refusal:
            corrigenda.open(ledger_url, home=home, project="p")
    finally:
        tamper(ledger_url, ("UPDATE corrigenda.alembic_version SET version_num = %s", [current]))

    assert mend in refusal.error.message
    assert refusal.details["found"] == version
    assert list(home.iterdir()) == []


def _missing(key: Path) -> None:
    key.unlink()


def _world_readable(key: Path) -> None:
    key.chmod(0o644)


def _a_folder(key: Path) -> None:
    key.unlink()
    key.mkdir(mode=0o700)


def _cut(key: Path) -> None:
    key.write_bytes(key.read_bytes()[:40])


def _empty(key: Path) -> None:
    key.write_bytes(b"")


def _not_text(key: Path) -> None:
    key.write_bytes(b"\xff\xfe\x00" * 20)


def _foreign(key: Path) -> None:
    key.write_bytes(b'{"format":"corrigenda-ledger-key/1","naming":"%s=","seal":"%s="}\n' % (b"A" * 43, b"A" * 43))


@pytest.mark.parametrize("spoil", [_missing, _world_readable, _a_folder, _cut, _empty, _not_text, _foreign])
def test_without_its_key_a_ledger_is_not_opened(
    open_here: Here, ledger_url: str, home: Path, spoil: Callable[[Path], None]
) -> None:
    """OH-23: given a key that is missing, spoilt, foreign or readable by others, LEDGER_UNVERIFIED, no file made."""
    open_here().remember("a")
    open_here.close()
    key = home / "keys" / "ledger.key"
    kept = key.read_bytes()
    spoil(key)
    listed = sorted(os.listdir(home / "keys"))

    with refused("LEDGER_UNVERIFIED") as refusal:
        open_here()
    assert refusal.error.exit_code == 15
    assert refusal.details["file"] == str(key)
    assert sorted(os.listdir(home / "keys")) == listed
    with open_bare(database_url=ledger_url, home=home, create=False) as bare:
        assert bare.verify().exit_code == 15
        assert bare.status().ledger["chain"] == "unverified"
        assert len(list(bare.log())) == 4
        assert {name: well for name, well, _, _ in bare.doctor()}["key"] is False

    if key.is_dir():
        key.rmdir()
    key.write_bytes(kept)
    key.chmod(0o600)
    assert open_here().search("a").hits


def test_another_home_makes_no_second_key(open_here: Here, ledger_url: str, tmp_path: Path) -> None:
    """Given a database with a ledger and a home without its key, when it is opened, then no file is made there."""
    open_here().remember("a")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)

    with refused("LEDGER_UNVERIFIED"):
        corrigenda.open(ledger_url, home=elsewhere, project="p")

    assert list(elsewhere.iterdir()) == []


def test_a_home_that_is_a_file_is_unavailable(ledger_url: str, tmp_path: Path) -> None:
    """Given a home that cannot be a directory, when a ledger is first used, then UNAVAILABLE and no ledger is made."""
    file = tmp_path / "file"
    file.write_text("")

    with refused("UNAVAILABLE") as refusal:
        corrigenda.open(ledger_url, home=file / "home", project="p")

    assert "CORRIGENDA_HOME" in refusal.error.message
    assert rows(ledger_url, "SELECT 1 FROM corrigenda.tenant") == []


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable to root")
def test_a_home_that_cannot_be_written_is_unavailable(ledger_url: str, tmp_path: Path) -> None:
    """Given a home without write permission, when a ledger is first used, then UNAVAILABLE and no ledger is made."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)

    with refused("UNAVAILABLE"):
        corrigenda.open(ledger_url, home=closed, project="p")

    assert rows(ledger_url, "SELECT 1 FROM corrigenda.tenant") == []


def test_a_home_200_characters_deep_is_used(ledger_url: str, tmp_path: Path, words_embedder: None) -> None:
    """Given a home whose path is over 200 characters, when a ledger of an own database is used, then it works."""
    deep = tmp_path / ("d" * 100) / ("e" * 100)

    with corrigenda.open(ledger_url, home=deep, project="p") as gateway:
        gateway.remember("a")
        assert gateway.search("a").hits
    assert (deep / "keys" / "ledger.key").stat().st_mode & 0o777 == 0o600


def test_an_index_that_cannot_be_kept_loses_nothing(open_here: Here, home: Path) -> None:
    """OH-25: given a home whose index folder cannot be made, when a gateway is closed, its writes are kept."""
    gateway = open_here()
    gateway.remember("a")
    (home / "index").write_text("a file in the way")
    assert gateway.search("a").hits
    gateway.close()

    assert open_here().search("a").hits
    open_here.close()
    (home / "index").unlink()


def test_an_origin_is_for_life(open_here: Here, ledger_url: str, home: Path) -> None:
    """Given a ledger with its origin, when init names another, INVALID_INPUT tells which; its own, or none, is well."""
    open_here().remember("a")
    before = last_position(ledger_url)
    with open_bare(database_url=ledger_url, home=home) as bare:
        origin = bare.init()["origin"]
        assert bare.init(origin=origin)["origin"] == origin
        with refused("INVALID_INPUT") as refusal:
            bare.init(origin="example.org/mine")

    assert refusal.details == {"origin": origin}
    assert origin.startswith("corrigenda.invalid/")
    assert last_position(ledger_url) == before


def test_looking_makes_nothing(ledger_url: str, home: Path) -> None:
    """Given a migrated database without a ledger, when it is only looked at, NOT_CONFIGURED and nothing is made."""
    with open_bare(database_url=ledger_url, home=home, create=False) as bare:
        for look in (bare.verify, bare.status, lambda: list(bare.log()), lambda: bare.raw(0)):
            with refused("NOT_CONFIGURED"):
                look()
        assert {name: well for name, well, _, _ in bare.doctor()}["ledger"] is False

    assert list(home.iterdir()) == []
    assert rows(ledger_url, "SELECT 1 FROM corrigenda.tenant") == []


def test_an_unknown_embedder_is_named(ledger_url: str, home: Path) -> None:
    """Given an embedder that nobody knows, when a gateway is opened with it, then VALIDATION_FAILED lists the known."""
    with refused("VALIDATION_FAILED") as refusal:
        corrigenda.open(ledger_url, home=home, project="p", embedder="x").close()

    assert refusal.details["known"] == ["builtin", "openai:MODEL", "none"]


def test_doctor_calls_no_key_well_while_the_database_does_not_answer(home: Path) -> None:
    """A key that could not be held against the ledger is not well, whatever the file looks like."""
    url = "postgresql://nobody@127.0.0.1:1/none"
    with open_bare(database_url=url, home=home, create=False) as bare:
        found = {name: well for name, well, _, _ in bare.doctor()}
    assert (found["database"], found["key"]) == (False, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's embedded server needs an account")
@pytest.mark.parametrize(
    ("has_account", "embedded", "told"), [(False, True, True), (True, True, False), (False, False, False)]
)
def test_doctor_recommends_an_account_to_root(
    home: Path, monkeypatch: pytest.MonkeyPatch, has_account: bool, embedded: bool, told: bool
) -> None:
    """As root without the account `corrigenda`, `doctor` says how to make it; with it, or elsewhere, nothing."""
    real = checks.pwd.getpwnam

    def known(name: str) -> object:
        if name == "corrigenda" and not has_account:
            raise KeyError(name)
        return real("root" if name == "corrigenda" else name)

    monkeypatch.setattr(checks.pwd, "getpwnam", known)
    url = None if embedded else "postgresql://nobody@127.0.0.1:1/none"
    with open_bare(database_url=url, home=home, create=False) as bare:
        found = {name: (well, said) for name, well, said, _ in bare.doctor()}
    assert ("account" in found) is told
    if told:
        assert found["account"][0] and "useradd --system corrigenda" in found["account"][1]


def test_once_there_was_a_connection_nobody_says_that_nothing_was_stored(ledger_url: str) -> None:
    """Given a database that was reached and then is not any more, then a message leaves open what took effect."""
    database = Database(ledger_url)
    database.schema_version()
    database.close()
    database.url = NOBODY
    for one in (database, database.another()):
        with refused("UNAVAILABLE") as refusal, one.transaction():
            pass
        assert "is not known" in refusal.error.message and "nothing was stored" not in refusal.error.message
