"""Key files from the command line: made once, never overwritten, and each that cannot be used is told why."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_hands import corrigenda
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

SEAL, SIGNING = "ledger.key", "signing.pem"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, ledger_url: str, home: Path) -> Path:
    """Where the keys of a home lie; its database is migrated and holds no ledger."""
    names = {"HOME": str(home), "PROJECT": "ap", "EMBEDDER": "none", "ACTOR": "human:ana", "DATABASE_URL": ledger_url}
    for name, value in names.items():
        monkeypatch.setenv(f"CORRIGENDA_{name}", value)
    return home / "keys"


def generated() -> dict[str, bool]:
    """Which keys `keys generate` made."""
    done = corrigenda("-o", "json", "keys", "generate")
    assert done.code == 0, done.err
    return {item["purpose"]: item["made"] for item in json.loads(done.out)["items"]}


def fails(code: str, exit: int, *words: str) -> str:
    """The paragraph on stderr of a command line that ends like this, with nothing on stdout."""
    done = corrigenda(*words)
    assert (done.code, done.out) == (exit, ""), done.err
    assert done.err.startswith(f"error {code}: ") and done.err.count("\n") == 1
    return done.err


def contents(place: Path) -> dict[str, bytes]:
    """Return every file beside the keys, asides too."""
    return {path.name: path.read_bytes() for path in place.iterdir()} if place.exists() else {}


def test_keys_are_made_for_their_owner_only(place: Path) -> None:
    """Files 0600 in a directory 0700, two secrets that no second run changes, and none of them printed."""
    done = corrigenda("keys", "generate")
    assert done.code == 0 and str(place / SEAL) in done.out and str(place / SIGNING) in done.out
    made = contents(place)
    assert set(made) == {SEAL, SIGNING}
    assert {stat.S_IMODE((place / name).stat().st_mode) for name in made} == {0o600}
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert json.loads(made[SEAL])["seal"] not in done.out + done.err
    assert generated() == {"seal": False, "signing": False}
    assert contents(place) == made


def test_a_ledger_takes_the_keys_that_were_made_before(place: Path) -> None:
    """What was put into a safe place is what the ledger is made with."""
    assert generated() == {"seal": True, "signing": True}
    made = contents(place)
    assert corrigenda("db", "init").code == 0
    assert contents(place) == made
    listed = json.loads(corrigenda("-o", "json", "keys", "list").out)["items"]
    assert [(item["held"], item["why"]) for item in listed] == [("yes", None)] * 2
    assert generated() == {"seal": False, "signing": False}


def test_only_what_is_missing_is_made(place: Path) -> None:
    """A key that was brought along stays."""
    generated()
    made = contents(place)
    (place / SIGNING).unlink()
    assert generated() == {"seal": False, "signing": True}
    assert contents(place)[SEAL] == made[SEAL] and contents(place)[SIGNING] != made[SIGNING]


@pytest.mark.parametrize("name", [SEAL, SIGNING])
def test_no_key_is_made_for_a_ledger_that_is_there(place: Path, name: str) -> None:
    """A new key could check nothing of it, and would stand in the backup's way."""
    assert corrigenda("db", "init").code == 0
    (place / name).rename(place.parent / name)
    left = contents(place)
    said = fails("LEDGER_UNVERIFIED", 15, "keys", "generate")
    assert str(place / name) in said and "backup" in said
    assert contents(place) == left


def test_keys_before_there_is_any_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A home that is not there yet gets its keys, for its owner only, and no server."""
    monkeypatch.setenv("CORRIGENDA_HOME", str(tmp_path / "new" / "home"))
    for name in ("CORRIGENDA_DATABASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert generated() == {"seal": True, "signing": True}
    assert [path.name for path in (tmp_path / "new" / "home").iterdir()] == ["keys"]
    for path in (tmp_path / "new", tmp_path / "new" / "home", tmp_path / "new" / "home" / "keys"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_database_that_does_not_answer(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may hold a ledger, so nothing is made."""
    monkeypatch.setenv("CORRIGENDA_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    fails("UNAVAILABLE", 7, "keys", "generate")
    assert not place.exists()


def test_a_place_that_cannot_be_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the directory's way, a full disk: told, and nothing half is left."""
    place.write_text("mine")
    assert str(place) in fails("UNAVAILABLE", 7, "keys", "generate")
    assert place.read_text() == "mine"
    place.unlink()

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert os.strerror(28) in fails("UNAVAILABLE", 7, "keys", "generate")
    assert contents(place) == {}
    assert generated() == {"seal": True, "signing": True}


def test_another_process_was_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its key is the one that counts: ours, made in the same moment, is thrown away."""
    real, theirs = (
        os.link,
        b'{"format":"corrigenda-ledger-key/1","naming":"%s=","seal":"%s="}' % (b"A" * 43, b"B" * 42 + b"A"),
    )

    def late(aside: Path, path: Path) -> None:
        if path.name == SEAL:
            path.write_bytes(theirs)
            path.chmod(0o600)
        real(aside, path)

    monkeypatch.setattr(os, "link", late)
    assert corrigenda("keys", "generate").code == 0
    assert contents(place)[SEAL] == theirs and set(contents(place)) == {SEAL, SIGNING}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _world_readable(path: Path) -> None:
    path.chmod(0o644)


def _group_readable(path: Path) -> None:
    path.chmod(0o640)


def _a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "gone")


BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut": (_cut, "is not"),
    "empty": (_emptied, "is not"),
    "world": (_world_readable, "chmod 600"),
    "group": (_group_readable, "chmod 600"),
    "directory": (_a_directory, "directory"),
    "fifo": (_a_fifo, "regular file"),
    "dangling": (_dangling, "no such file"),
}


def _written(path: Path) -> tuple[int, ...]:
    """Return what tells whether a file was written to or put in place of another; reading it changes none of it."""
    seen = path.lstat()
    return seen.st_ino, seen.st_mode, seen.st_size, seen.st_mtime_ns


@pytest.mark.parametrize("name", [SEAL, SIGNING])
@pytest.mark.parametrize("bad", BAD)
def test_a_file_that_cannot_be_used_is_named_and_kept(place: Path, bad: str, name: str) -> None:
    """With what is wrong with it: by what makes keys, by what signs, and in the list, which answers all the same."""
    assert corrigenda("db", "init").code == 0
    spoil, why = BAD[bad]
    spoil(place / name)
    before = _written(place / name)
    for words in (("keys", "generate"), ("checkpoint", "sign")):
        said = fails("LEDGER_UNVERIFIED", 15, *words)
        assert str(place / name) in said and why in said, said
    items: list[dict[str, Any]] = json.loads(corrigenda("-o", "json", "keys", "list").out)["items"]
    listed = items[0 if name == SEAL else 1]
    assert listed["held"] == "no" and why in listed["why"]
    assert _written(place / name) == before


@pytest.mark.parametrize("name", [SEAL, SIGNING])
def test_a_file_that_may_not_be_read(place: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The system's own words are passed on."""
    assert corrigenda("db", "init").code == 0
    real = os.open

    def refusing(path: Any, *args: Any, **named: Any) -> int:  # Any: as the real one
        if str(path) == str(place / name):
            raise PermissionError(13, os.strerror(13))
        return real(path, *args, **named)

    monkeypatch.setattr(os, "open", refusing)
    for words in (("keys", "generate"), ("checkpoint", "sign")):
        assert os.strerror(13) in fails("LEDGER_UNVERIFIED", 15, *words)


def test_a_signing_key_of_another_kind(place: Path) -> None:
    """A PEM file that holds a private key, and not an Ed25519 one."""
    assert corrigenda("db", "init").code == 0
    other = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (place / SIGNING).write_bytes(other)
    assert "Ed25519" in fails("LEDGER_UNVERIFIED", 15, "checkpoint", "sign")


@pytest.mark.parametrize("name", [SEAL, SIGNING])
def test_another_ledger_s_keys(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A file of another origin's is told from one that is broken: nothing is signed, and the list says foreign."""
    assert corrigenda("db", "init", "--origin", "ledger.example.org/main").code == 0
    with monkeypatch.context() as patch:
        patch.setenv("CORRIGENDA_HOME", str(tmp_path / "other"))
        for gone in ("CORRIGENDA_DATABASE_URL", "DATABASE_URL"):
            patch.delenv(gone, raising=False)
        generated()
    (tmp_path / "other" / "keys" / name).replace(place / name)
    assert "event 0" in fails("LEDGER_UNVERIFIED", 15, "checkpoint", "sign").lower()
    listed = json.loads(corrigenda("-o", "json", "keys", "list").out)["items"]
    assert [item["held"] for item in listed] == [
        ("foreign" if name == SEAL else "yes"),
        ("yes" if name == SEAL else "foreign"),
    ]
