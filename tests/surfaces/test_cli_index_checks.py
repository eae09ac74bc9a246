"""The index from the command line: checked, mended and built anew, over a real ledger."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_hands import corrigenda

from projections import embedders
from tests.house import WORDS, tamper


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch, ledger_url: str, home: Path) -> str:
    """A ledger with two memories in an index, and its database's URL."""
    names = {"HOME": str(home), "PROJECT": "ap", "ACTOR": "human:ana", "DATABASE_URL": ledger_url}
    for name, value in names.items():
        monkeypatch.setenv(f"CORRIGENDA_{name}", value)
    monkeypatch.setattr(embedders, "load", lambda name: None if name == embedders.NONE else WORDS)
    answer("memories", "remember", "user lives in Berlin")
    answer("memories", "remember", "user works in Potsdam")
    return ledger_url


def answer(*words: str, code: int = 0) -> dict[str, Any]:  # Any: JSON
    """The document that a command line answers with."""
    done = corrigenda("-o", "json", *words)
    assert done.code == code, done.err
    return json.loads(done.out)


def test_a_lost_index_is_exit_13_until_it_is_recovered(ledger: str, home: Path) -> None:
    """G9: with the outbox lost, too, the check names what is missing, and recover mends it."""
    assert "ok: 2 items in 1 partition" in corrigenda("index", "verify").out
    shutil.rmtree(home / "index")
    assert answer("index", "verify")["pending"] == 2
    tamper(ledger, ("DELETE FROM corrigenda.outbox", ()))
    found = answer("index", "verify", code=13)
    assert (found["ok"], found["counts"]["missing"], found["entries"]) == (False, 2, 0)
    said = corrigenda("index", "verify").out
    assert "2 missing" in said
    assert found["differences"][0]["revision_id"] in said
    assert answer("recover")["repaired"] == 2
    assert answer("index", "verify")["digest"] == answer("index", "verify")["expected_digest"]


def test_a_verification_takes_the_index_in(ledger: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify --index` is exit 13 for an index that lacks something, 0 once it is mended, and skips what is not."""
    assert answer("verify")["checks"]["index"]["status"] == "skipped"
    assert answer("verify", "--all")["checks"]["index"] == {"status": "ok"}
    shutil.rmtree(home / "index")
    tamper(ledger, ("DELETE FROM corrigenda.outbox", ()))
    found = answer("verify", "--index", code=13)
    assert (found["ok"], found["exit_code"], found["checks"]["chain"]["status"]) == (False, 13, "ok")
    assert found["checks"]["index"]["why"] == "2 missing; `corrigenda recover` mends it"
    answer("recover")
    assert answer("verify", "--index")["checks"]["index"] == {"status": "ok"}
    monkeypatch.setenv("CORRIGENDA_EMBEDDER", "none")
    assert answer("verify", "--index")["checks"]["index"]["why"] == "there is no embedder, so no index"


def test_a_check_tells_what_is_parked_from_what_waits(ledger: str) -> None:
    """Given a vector that is gone and a text that was parked, or skipped, when the index is checked, it says which."""
    seq = answer("memories", "remember", "poison")["events"][-1]["seq"]
    noted = (
        "INSERT INTO corrigenda.outbox_failure (ledger, seq, revision, signature, state, attempts, code, at)"
        " SELECT ledger, seq, revision, %s, 'parked', 5, 'x', now() FROM corrigenda.outbox WHERE seq = %s"
    )
    tamper(ledger, (noted, (WORDS.signature, seq)))
    shutil.rmtree(next(Path(os.environ["CORRIGENDA_HOME"]).glob("index")))
    vector = "DELETE FROM corrigenda.embedding WHERE ctid = (SELECT max(ctid) FROM corrigenda.embedding)"
    tamper(ledger, (vector, ()))
    assert corrigenda("recover").code == 9
    said = corrigenda("index", "verify").out
    assert "1 item parked there (`corrigenda outbox list --parked`)" in said and "waiting" not in said
    assert corrigenda("outbox", "skip", str(seq), "--reason", "nobody looks for it").code == 0
    assert "; 1 item skipped for good" in corrigenda("index", "verify").out


def test_of_a_broken_ledger_the_index_is_not_asked(ledger: str) -> None:
    """The exit is the ledger's own."""
    tamper(ledger, ("UPDATE corrigenda.payload SET body = '\\x7b7d' WHERE seq > 1", ()))
    check = answer("verify", "--index", code=10)["checks"]["index"]
    assert (check["status"], "not sound" in check["why"]) == ("skipped", True)


def test_a_rebuild_is_told(ledger: str) -> None:
    """A rebuild says how many entries there are, were, and how many texts had to be embedded."""
    done = answer("index", "rebuild")
    assert (done["entries"], done["entries_before"], done["embedded"], done["kept"]) == (2, 2, 0, True)
    assert "2 items in the new index" in corrigenda("index", "rebuild").out


def test_without_an_embedder_there_is_nothing_to_check(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 3, and what to do."""
    monkeypatch.setenv("CORRIGENDA_EMBEDDER", "none")
    for verb in ("verify", "rebuild"):
        done = corrigenda("index", verb)
        assert done.code == 3
        assert "CORRIGENDA_EMBEDDER" in done.err


def test_the_doctor_searches_the_index(ledger: str) -> None:
    """Where all else is well, the last check asks the index for its own entries."""
    found = json.loads(corrigenda("-o", "json", "doctor").out)["items"]
    if all(check["ok"] for check in found):
        assert (found[-1]["name"], found[-1]["message"]) == (
            "index",
            "2 entries came first when they were searched for",
        )
