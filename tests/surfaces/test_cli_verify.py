"""`corrigenda verify` over a real ledger: its anchor, a checkpoint to begin at, and the exits of what it finds."""

import json
import os
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cli_hands import corrigenda
from psycopg import sql

from ledger.anchor import Anchor, Unusable
from tests.roles import as_owner


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch, ledger_url: str, home: Path) -> str:
    """A ledger with a few events, and its database's URL."""
    names = {"HOME": str(home), "PROJECT": "ap", "EMBEDDER": "none", "ACTOR": "human:ana", "DATABASE_URL": ledger_url}
    for name, value in names.items():
        monkeypatch.setenv(f"CORRIGENDA_{name}", value)
    assert corrigenda("memories", "remember", "user lives in Berlin").code == 0
    return ledger_url


@pytest.fixture
def signed(ledger: str, tmp_path: Path) -> Path:
    """A checkpoint of that ledger, which has gone on since."""
    path = tmp_path / "checkpoint"
    assert corrigenda("checkpoint", "sign", "--out", str(path)).code == 0
    assert corrigenda("memories", "remember", "user likes tea").code == 0
    return path


def report(*words: str, code: int = 0) -> dict[str, Any]:  # Any: JSON
    """The report of a verification, which ends with its own exit."""
    done = corrigenda("verify", "-o", "json", *words)
    found = json.loads(done.out)
    assert (done.code, found["exit_code"], found["ok"]) == (code, code, code == 0), done.err
    return found


def anchor_of(home: Path) -> Path:
    """The one anchor of a home."""
    (found,) = (home / "anchor").glob("*.sqlite")
    return found


def test_the_anchor_is_checked_without_being_asked_for(ledger: str) -> None:
    """What was acknowledged is anchored: no tail, and the check is ok."""
    found = report()
    assert (found["checks"]["anchor"], found["unanchored_tail"]) == ({"status": "ok"}, 0)


def test_since_reads_what_is_new(signed: Path) -> None:
    """The report has the same root as a whole one, and says what was not read again."""
    whole, since = report(), report("--since", str(signed))
    assert (since["root"], since["size"]) == (whole["root"], whole["size"])
    assert 0 < since["events"] < whole["events"]
    assert "were not read again" in since["checks"]["payloads"]["why"]
    assert "were not read again" in corrigenda("verify", "--since", str(signed)).out


def test_since_with_a_range_is_refused(signed: Path) -> None:
    """A range has its own beginning."""
    done = corrigenda("verify", "0..2", "--since", str(signed))
    assert (done.code, done.out) == (2, "")


def test_nothing_is_signed_that_the_anchor_does_not_bear_out(ledger: str, signed: Path) -> None:
    """A ledger that was cut is not made good by a new checkpoint, and the refusal names the anchor's finding."""
    size = report()["size"]
    with psycopg.connect(as_owner(ledger)) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM corrigenda.event WHERE seq >= %s", [size - 1])
        connection.execute("DELETE FROM corrigenda.payload WHERE seq >= %s", [size - 1])
        connection.execute(
            "UPDATE corrigenda.head SET (seq, hash) ="
            " (SELECT seq, hash FROM corrigenda.event ORDER BY seq DESC LIMIT 1)"
        )
    done = corrigenda("checkpoint", "sign", "-o", "json")
    fault = json.loads(done.err)
    assert (done.code, done.out, fault["code"]) == (11, "", "INTEGRITY_BROKEN")
    assert (fault["details"]["check"], fault["details"]["position"]) == ("anchor", size - 1)


def test_what_was_signed_here_is_compared_without_a_file(signed: Path) -> None:
    """The anchor keeps the last checkpoint, and every whole verification holds the ledger against it."""
    assert "are those of the checkpoint" in report()["checks"]["checkpoints"]["why"]


def test_no_anchor(signed: Path, home: Path, tmp_path: Path) -> None:
    """Without an anchor nothing is skipped for a checkpoint's sake, the report says so, and no anchor is made."""
    (home / "anchor").rename(tmp_path / "away")
    found = report("--since", str(signed))
    assert (found["events"], found["checks"]["anchor"]["status"]) == (found["size"], "skipped")
    assert "no anchor" in found["checks"]["checkpoints"]["why"]
    assert not (home / "anchor").exists()


def test_a_corrupt_anchor(ledger: str, home: Path) -> None:
    """It is named, and never trusted: exit 11."""
    for path in (home / "anchor").iterdir():
        path.write_bytes(b"no anchor" * 1_000)
    found = report(code=11)
    assert str(anchor_of(home)) in found["checks"]["anchor"]["found"]


def test_another_ledger_s_anchor(ledger: str, home: Path) -> None:
    """A file of another ledger in this one's place is foreign."""
    with psycopg.connect(as_owner(ledger)) as connection:
        connection.execute("SET session_replication_role = replica")
        for table in ("tenant", "head", "event", "payload"):
            moving = sql.SQL("UPDATE corrigenda.{} SET ledger = '01JZ8Q0000000000000000000Z'").format(
                sql.Identifier(table)
            )
            connection.execute(moving)
    path = anchor_of(home)
    path.rename(path.with_name("01JZ8Q0000000000000000000Z.sqlite"))
    done = json.loads(corrigenda("verify", "-o", "json").out)
    assert "another ledger" in done["checks"]["anchor"]["found"]


def test_an_anchor_that_cannot_be_read(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only the rights or the moment are wrong, nothing is known to be wrong with what it holds: 15."""

    def refused(*_: object, **__: object) -> None:
        raise Unusable("cannot be read: Permission denied", passing=True)

    monkeypatch.setattr(Anchor, "open", refused)
    assert "Permission denied" in report(code=15)["checks"]["anchor"]["why"]


@pytest.mark.skipif(os.geteuid() == 0, reason="rights do not bind root")
def test_an_anchor_without_rights(ledger: str, home: Path) -> None:
    """A file that may not be read is 15."""
    anchor_of(home).chmod(0)
    assert "denied" in report(code=15)["checks"]["anchor"]["why"].lower()
