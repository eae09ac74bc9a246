"""Checkpoints and keys from the command line, over a real ledger."""

import base64
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cli_hands import corrigenda
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import notes, tiles, tree
from ledger.digest import leaf
from tests.roles import as_owner


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch, ledger_url: str, home: Path) -> str:
    """A ledger with a few events, and its database's URL."""
    names = {"HOME": str(home), "PROJECT": "ap", "EMBEDDER": "none", "ACTOR": "human:ana", "DATABASE_URL": ledger_url}
    for name, value in names.items():
        monkeypatch.setenv(f"CORRIGENDA_{name}", value)
    assert corrigenda("db", "init", "--origin", "ledger.example.org/main").code == 0
    remember("user lives in Berlin")
    return ledger_url


def remember(text: str) -> None:
    """Append a memory."""
    assert corrigenda("memories", "remember", text).code == 0


def answer(*words: str) -> dict[str, Any]:  # Any: JSON
    """The document that a command line answers with."""
    done = corrigenda("-o", "json", *words)
    assert done.code == 0, done.err
    return json.loads(done.out)


def fails(code: str, exit: int, *words: str) -> str:
    """The paragraph on stderr of a command line that ends like this, with nothing on stdout."""
    done = corrigenda(*words)
    assert (done.code, done.out) == (exit, ""), done.err
    assert done.err.startswith(f"error {code}: ") and done.err.count("\n") == 1
    return done.err


def stored(path: Path, *words: str) -> str:
    """Sign a checkpoint into a file and return its path."""
    done = corrigenda("checkpoint", "sign", "--out", str(path), *words)
    assert done.code == 0, done.err
    assert path.read_bytes() == done.raw
    return str(path)


def test_what_is_signed_can_be_checked_without_us(ledger: str) -> None:
    """Stdout is the note, byte for byte; the exported key opens it; size and root are those that verify computes."""
    done = corrigenda("checkpoint", "sign")
    key = corrigenda("keys", "export-public").out.removesuffix("\n")
    checkpoint = notes.open_checkpoint(done.raw, notes.parse_verifier_key(key))
    report = answer("verify")
    assert (checkpoint.size, checkpoint.root.hex()) == (report["size"], report["root"])
    assert checkpoint.origin == "ledger.example.org/main"


def test_a_checkpoint_says_what_it_says(ledger: str, tmp_path: Path) -> None:
    """`show` reads a file or stdin, for a person and for a program; `sign -o json` says the same and has the note."""
    path = stored(tmp_path / "checkpoint")
    shown = answer("checkpoint", "show", path)
    signed = answer("checkpoint", "sign")
    assert signed.pop("note").encode() == Path(path).read_bytes()
    assert shown == signed
    text = corrigenda("checkpoint", "show", "-", stdin=Path(path).read_bytes()).out
    assert shown["root"] in text and "ledger.example.org/main" in text


def test_verify_bears_out_a_checkpoint(ledger: str, tmp_path: Path) -> None:
    """A kept checkpoint is borne out after further appends, and the report says so."""
    path = stored(tmp_path / "checkpoint")
    remember("user likes tea")
    assert answer("verify", "--checkpoint", path)["checks"]["checkpoints"]["status"] == "ok"
    done = corrigenda("verify", "--checkpoint", path)
    assert done.code == 0 and "root " in done.out


def test_verify_finds_a_shortened_ledger(ledger: str, home: Path, tmp_path: Path) -> None:
    """A tail cut with its head row set back is exit 11 by the anchor alone, and without it by a checkpoint."""
    remember("user likes tea")
    path = stored(tmp_path / "checkpoint")
    with psycopg.connect(as_owner(ledger)) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM corrigenda.event WHERE seq = (SELECT max(seq) FROM corrigenda.event)")
        connection.execute("DELETE FROM corrigenda.payload WHERE seq > (SELECT max(seq) FROM corrigenda.event)")
        connection.execute("DELETE FROM corrigenda.outbox WHERE seq > (SELECT max(seq) FROM corrigenda.event)")
        connection.execute(
            "UPDATE corrigenda.head SET (seq, hash) ="
            " (SELECT seq, hash FROM corrigenda.event ORDER BY seq DESC LIMIT 1)"
        )
    report = json.loads(corrigenda("verify", "-o", "json").out)
    assert (report["exit_code"], report["checks"]["anchor"]["first_bad_position"]) == (11, report["size"])
    (home / "anchor").rename(tmp_path / "away")
    assert corrigenda("verify").code == 0
    done = corrigenda("verify", "--checkpoint", path)
    assert done.code == 11 and "exit 11" in done.out
    fails("INTEGRITY_BROKEN", 11, "checkpoint", "consistency", path, path)


def test_a_checkpoint_extends_the_one_before(ledger: str, tmp_path: Path) -> None:
    """The proof in the answer holds for the two notes; the other way round there is none."""
    old = stored(tmp_path / "old")
    remember("user likes tea")
    new = stored(tmp_path / "new")
    proven = answer("checkpoint", "consistency", old, new)
    before, after = (answer("checkpoint", "show", path) for path in (old, new))
    roots = [bytes.fromhex(said["root"]) for said in (before, after)]
    proof = [base64.b64decode(one) for one in proven["proof"]]
    assert proof
    tree.check_consistency(before["size"], roots[0], after["size"], roots[1], proof)
    assert corrigenda("checkpoint", "consistency", old, new).out.startswith("ok: ")
    assert corrigenda("checkpoint", "consistency", old, old).code == 0
    fails("INTEGRITY_BROKEN", 11, "checkpoint", "consistency", new, old)


def test_a_fork_is_no_extension(ledger: str, tmp_path: Path) -> None:
    """An entry that was rewritten after it was signed: the ledger proves nothing that rests on it."""
    old = stored(tmp_path / "old")
    remember("user likes tea")
    new = stored(tmp_path / "new")
    with psycopg.connect(as_owner(ledger)) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE corrigenda.event SET envelope = envelope || ' '::bytea WHERE seq = 1")
    for pair in ((old, old), (old, new)):
        assert "first checkpoint" in fails("INTEGRITY_BROKEN", 11, "checkpoint", "consistency", *pair)


def test_nothing_is_signed_over_a_broken_ledger(ledger: str, tmp_path: Path) -> None:
    """The first bad position is told, and no note is printed or written."""
    with psycopg.connect(as_owner(ledger)) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE corrigenda.payload SET body = body || ' '::bytea WHERE seq = 2")
    assert "position 2" in fails("INTEGRITY_BROKEN", 10, "checkpoint", "sign", "--out", str(tmp_path / "checkpoint"))
    assert list(tmp_path.glob("checkpoint*")) == []


def test_only_an_extension_takes_a_checkpoint_s_place(ledger: str, tmp_path: Path) -> None:
    """An older checkpoint of this ledger is replaced; any other file stays as it is."""
    path = tmp_path / "checkpoint"
    stored(path)
    remember("user likes tea")
    stored(path)
    path.write_bytes(b"somebody's letter\n")
    fails("INTEGRITY_BROKEN", 11, "checkpoint", "sign", "--out", str(path))
    assert path.read_bytes() == b"somebody's letter\n"
    assert "--out" in fails("VALIDATION_FAILED", 2, "checkpoint", "sign", "--out", str(tmp_path / "no" / "folder"))


@pytest.mark.parametrize("note", ["", "text\n", "o\n1\nx\n\n— o x\n", "a letter\n\n— ana AAAAAAA=\n"])
def test_what_is_no_checkpoint(ledger: str, tmp_path: Path, note: str) -> None:
    """A file of another kind is exit 2, as one that is not there; a verification that was to rest on it is exit 11."""
    path = tmp_path / "other"
    path.write_text(note)
    for words in (("show", str(path)), ("consistency", str(path), str(path))):
        told = fails("VALIDATION_FAILED", 2, "checkpoint", *words)
        assert "checkpoint sign" in told and "letter" not in told
    assert corrigenda("verify", "--checkpoint", str(path)).code == 11
    for words in (("checkpoint", "show"), ("verify", "--checkpoint")):
        assert "no-such" in fails("VALIDATION_FAILED", 2, *words, str(tmp_path / "no-such"))


def test_a_checkpoint_of_another_ledger(ledger: str, tmp_path: Path) -> None:
    """A checkpoint that another key signed is exit 11 wherever one of this ledger's is expected."""
    signed = notes.sign_checkpoint(
        notes.Checkpoint("ledger.example.org/main", 1, leaf(b"")), Ed25519PrivateKey.generate()
    )
    path = tmp_path / "foreign"
    path.write_bytes(signed)
    fails("INTEGRITY_BROKEN", 11, "checkpoint", "show", str(path))
    fails("INTEGRITY_BROKEN", 11, "checkpoint", "consistency", str(path), str(path))
    assert corrigenda("verify", "--checkpoint", str(path)).code == 11


def test_the_keys_and_where_they_are(ledger: str, home: Path) -> None:
    """Both keys are listed with their files, and no secret; the public one is exported as event 0 has it."""
    listed = {item["purpose"]: item for item in answer("keys", "list")["items"]}
    exported = answer("keys", "export-public")
    assert {name: item["held"] for name, item in listed.items()} == {"seal": "yes", "signing": "yes"}
    assert listed["signing"]["public_key"] == exported["public_key"]
    assert exported["key_id"] == exported["public_key"].split("+")[1]
    assert str(home) in corrigenda("keys", "list").out


def test_a_signing_key_that_is_missing_or_another_s(ledger: str, home: Path, tmp_path: Path) -> None:
    """Nothing is signed, exit 15; the list tells which it is."""
    key = home / "keys" / "signing.pem"
    key.rename(tmp_path / "signing.pem")
    assert "signing.pem" in fails("LEDGER_UNVERIFIED", 15, "checkpoint", "sign")
    assert answer("keys", "list")["items"][1]["held"] == "no"
    from ledger.keys import make_signing_key

    make_signing_key(key)
    assert "event 0" in fails("LEDGER_UNVERIFIED", 15, "checkpoint", "sign")
    assert answer("keys", "list")["items"][1]["held"] == "foreign"


def test_without_the_ledger_key_no_public_key_is_believed(ledger: str, home: Path, tmp_path: Path) -> None:
    """Event 0 can be anybody's unless its seal is checked: exit 15, and the list still answers."""
    path = stored(tmp_path / "checkpoint")
    (home / "keys" / "ledger.key").unlink()
    for words in (("keys", "export-public"), ("checkpoint", "sign"), ("checkpoint", "show", path)):
        fails("LEDGER_UNVERIFIED", 15, *words)
    assert answer("keys", "list")["items"][0]["held"] == "no"


def test_an_origin_that_no_checkpoint_could_bear(ledger_url: str, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """A name with a space or a plus is refused at first use, when it can still be changed; no key is made."""
    monkeypatch.setenv("CORRIGENDA_HOME", str(home))
    monkeypatch.setenv("CORRIGENDA_DATABASE_URL", ledger_url)
    for origin in ("two words", "a+b"):
        fails("INVALID_INPUT", 5, "db", "init", "--origin", origin)
    assert not (home / "keys").exists()


def test_a_log_is_shown_in_a_directory(ledger: str, tmp_path: Path) -> None:
    """`sign --tiles` leaves the note that it prints, every envelope, and no payload; the next run adds to it."""
    first = corrigenda("checkpoint", "sign", "--tiles", str(tmp_path / "log"))
    assert first.code == 0 and str(tmp_path / "log") in first.err
    assert (tmp_path / "log" / "checkpoint").read_bytes() == first.raw
    remember("user likes tea")
    signed = answer("checkpoint", "sign", "--tiles", str(tmp_path / "log"))
    assert (tmp_path / "log" / "checkpoint").read_text() == signed["note"]
    size = signed["size"]
    (bundle,) = tiles.of_size(size, tiles.ENTRIES)
    entries = tiles.unbundle((tmp_path / "log" / tiles.path(bundle)).read_bytes())
    assert entries == [corrigenda("show", "--raw", str(seq)).raw.removesuffix(b"\n") for seq in range(size)]
    assert tree.root([*map(leaf, entries)]).hex() == signed["root"]
    assert not [path for path in (tmp_path / "log").rglob("*") if path.is_file() and b"likes tea" in path.read_bytes()]


def test_a_directory_that_no_log_can_be_shown_in(ledger: str, tmp_path: Path) -> None:
    """Another ledger's directory is exit 2, an altered one 11; no note is printed, and `--out` is not written."""
    folder, out = tmp_path / "log", tmp_path / "checkpoint"
    assert corrigenda("checkpoint", "sign", "--tiles", str(folder)).code == 0
    words = ("checkpoint", "sign", "--out", str(out), "--tiles")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "checkpoint").write_text((folder / "checkpoint").read_text().replace("ledger", "other"))
    assert "other" in fails("VALIDATION_FAILED", 2, *words, str(tmp_path / "other"))
    (altered,) = (folder / "tile" / "0").glob("000.p/*")
    altered.write_bytes(altered.read_bytes()[:-1])
    assert str(altered) in fails("INTEGRITY_BROKEN", 11, *words, str(folder))
    assert not out.exists()
