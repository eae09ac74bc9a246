"""What `status`, `doctor` and the signer of checkpoints make of the anchor: they look at it, and make none."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.views import upkeep
from corrigenda import CorrigendaError
from gateway.audit import signing
from gateway.shapes.replies.upkeep import Status
from gateway.upkeep.bare import open_bare
from ledger.keys import read_signing_key
from tests.house import last_position, refused, tamper
from tests.integration.conftest import Here
from tests.integration.test_anchor import anchor_of, cut, looked_at, rechain, state_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def begun(open_here: Here) -> Here:
    """A ledger with three memories and its anchor, and no gateway open."""
    with open_here() as gateway:
        for text in ("the office is in Berlin", "deploys are on Tuesdays", "the moon is a rock"):
            gateway.remember(text)
    return open_here


def status_of(here: Here) -> Status:
    """Return what `status` says."""
    with open_bare(database_url=here.ledger_url, home=here.home, create=False) as bare:
        return bare.status()


def doctor_of(here: Here) -> tuple[bool, str]:
    """Return what `doctor` says of the anchor."""
    with open_bare(database_url=here.ledger_url, home=here.home, create=False) as bare:
        ((well, said),) = [(well, said) for name, well, said, _ in bare.doctor() if name == "anchor"]
    return well, said


def sign(here: Here, **named: Any) -> dict[str, Any]:
    """Sign a checkpoint."""
    with open_bare(database_url=here.ledger_url, home=here.home, create=False) as bare:
        return bare.sign_checkpoint(**named)


# ---------------------------------------------------------------- status and doctor


def test_an_anchor_that_is_as_long_as_the_ledger(begun: Here) -> None:
    """State ok, its path, size and trust, and no tail."""
    size = last_position(begun.ledger_url) + 1
    expected = {"state": "ok", "path": str(anchor_of(begun)), "size": size, "trust": "opening", "unanchored_tail": 0}
    assert status_of(begun).anchor == expected
    assert doctor_of(begun) == (True, f"{anchor_of(begun)}, {size} entries, trust: opening")


def test_an_anchor_that_is_behind(begun: Here, tmp_path: Path) -> None:
    """Behind is normal; the tail is what is not anchored yet."""
    shutil.copy(anchor_of(begun), tmp_path / "older")
    with begun() as gateway:
        gateway.remember("the sea is green", memory_id="sea")
    shutil.copy(tmp_path / "older", anchor_of(begun))
    found = status_of(begun).anchor
    assert (found["state"], found["unanchored_tail"]) == ("behind", 2)
    assert doctor_of(begun)[0]


def test_an_anchor_that_is_ahead(begun: Here) -> None:
    """Ahead is a loss, and is said in words; doctor is not well then."""
    begun.broken = True
    size = last_position(begun.ledger_url) + 1
    cut(begun, size - 1)
    found = status_of(begun).anchor
    assert (found["state"], found["size"], found["unanchored_tail"]) == ("ahead", size, 0)
    assert "lost entries" in found["why"]
    assert doctor_of(begun)[0] is False


def test_an_anchor_beside_another_history(begun: Here) -> None:
    """An anchor that holds another last entry than the ledger is not to be trusted, or the ledger is not."""
    begun.broken = True
    position = last_position(begun.ledger_url)
    tamper(begun.ledger_url, ("UPDATE corrigenda.event SET envelope = envelope || '\\x20' WHERE seq = %s", [position]))
    found = status_of(begun).anchor
    assert (found["state"], found["why"]) == (
        "unusable",
        f"it holds another entry than the ledger at position {position}",
    )
    assert doctor_of(begun)[0] is False


def test_a_missing_anchor(begun: Here) -> None:
    """Missing says what the next use will do, and neither status nor doctor makes one."""
    (begun.home / "anchor").rename(begun.home / "away")
    found = status_of(begun).anchor
    assert (found["state"], found["size"]) == ("missing", None)
    assert found["unanchored_tail"] == last_position(begun.ledger_url) + 1
    assert doctor_of(begun)[0]
    assert not (begun.home / "anchor").exists()
    with begun() as gateway:
        gateway.remember("the sea is green")
    found = status_of(begun).anchor
    assert (found["state"], found["trust"]) == ("ok", "first_use")
    assert "nothing of what was done before" in found["why"]


@pytest.mark.parametrize("damage", ["noise", "a folder", "empty", "a row"])
def test_an_unusable_anchor(begun: Here, damage: str) -> None:
    """Unusable names what is wrong; a damage that only a whole reading finds is found by doctor."""
    path = anchor_of(begun)
    begun.broken = True
    if damage == "noise":
        path.write_bytes(bytes(byte ^ 0x5A for byte in path.read_bytes()))
    elif damage == "a row":
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE request SET position = position + 1")
        connection.close()
    else:
        path.unlink()
        path.mkdir() if damage == "a folder" else path.touch(0o600)
    if damage != "a row":
        found = status_of(begun).anchor
        assert found["state"] == "unusable"
        assert found["why"].startswith("it is ")
    well, said = doctor_of(begun)
    assert not well
    assert str(path) in said


def test_status_as_text_is_one_screen(begun: Here) -> None:
    """In text each state has a line that says what it means."""
    text = upkeep.status(status_of(begun))
    assert "ok, path: " in text.replace("\n", " ") and "trust: opening" in " ".join(text.split())
    begun.broken = True
    cut(begun, last_position(begun.ledger_url))
    assert "lost entries" in " ".join(upkeep.status(status_of(begun)).split())


# ---------------------------------------------------------------- signing


def test_a_signature_is_remembered(begun: Here) -> None:
    """What was signed is the anchor's last note, byte for byte; the next one extends it."""
    first = sign(begun)
    anchor = looked_at(begun)
    assert anchor.note() == first["note"].encode()
    with begun() as gateway:
        gateway.remember("the sea is green")
    second = sign(begun)
    assert second["size"] > first["size"]
    assert anchor.note() == second["note"].encode()
    anchor.close()
    assert sign(begun) == second


def test_nothing_is_signed_below_the_last_note(begun: Here) -> None:
    """Given a ledger cut below its last checkpoint, even beside a new anchor that kept the note, then exit 11."""
    size = sign(begun)["size"]
    begun.broken = True
    cut(begun, size - 1)
    with refused("INTEGRITY_BROKEN") as refusal:
        sign(begun)
    assert refusal.error.exit_code == 11
    assert refusal.details["position"] == size - 1


def test_nothing_is_signed_below_the_anchor(begun: Here) -> None:
    """Given a ledger cut below what the anchor holds, nothing is signed although no checkpoint was ever made."""
    size = last_position(begun.ledger_url) + 1
    begun.broken = True
    cut(begun, size - 1)
    with refused("INTEGRITY_BROKEN") as refusal:
        sign(begun)
    assert (refusal.error.exit_code, refusal.details["position"]) == (11, size - 1)
    anchor = looked_at(begun)
    assert anchor.note() is None
    anchor.close()


def test_nothing_is_signed_beside_the_last_note(begun: Here) -> None:
    """Given another ledger's worth of entries with a whole chain, then the root of the last checkpoint is missed."""
    size = sign(begun)["size"]
    begun.broken = True
    rechain(begun, size - 1)
    with refused("INTEGRITY_BROKEN") as refusal:
        sign(begun)
    assert refusal.error.exit_code == 11
    anchor = looked_at(begun)
    assert f"\n{size}\n" in (anchor.note() or b"").decode()
    anchor.close()


def test_an_anchor_that_cannot_be_trusted_signs_nothing(begun: Here) -> None:
    """What was signed last is not known then."""
    begun.broken = True
    anchor_of(begun).write_bytes(b"")
    with refused("INTEGRITY_BROKEN") as refusal:
        sign(begun)
    assert refusal.error.exit_code == 11


def test_without_an_anchor_signing_makes_none(begun: Here) -> None:
    """A checkpoint can be signed on a host that has none; nothing is made there."""
    shutil.rmtree(begun.home / "anchor")
    assert sign(begun)["size"] == last_position(begun.ledger_url) + 1
    assert not (begun.home / "anchor").exists()


def test_one_signer_at_a_time(begun: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process holds the signing key, this one waits, and says so at last; a killed one lets go."""
    key = begun.home / "keys" / "signing.pem"
    read_signing_key(key)
    monkeypatch.setattr(signing, "PATIENCE_S", 0.2)
    hold = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(key)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with refused("UNAVAILABLE"):
            sign(begun)
        other.kill()
    assert sign(begun)["size"] == last_position(begun.ledger_url) + 1


def test_signers_at_once_sign_one_history(begun: Here) -> None:
    """Given signers in several processes while events are added, no size is ever signed twice with two roots."""
    words = (
        "import json, sys; from gateway.upkeep.bare import open_bare\n"
        "with open_bare(database_url=sys.argv[1], home=sys.argv[2], create=False) as bare:\n"
        "    for _ in range(4): print(json.dumps(bare.sign_checkpoint()['note']), flush=True)\n"
    )
    line = [sys.executable, "-c", words, begun.ledger_url, str(begun.home)]
    signers = [
        subprocess.Popen(line, stdout=subprocess.PIPE, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, text=True)
        for _ in range(2)
    ]
    with begun() as gateway:
        for number in range(20):
            gateway.remember(f"text {number}")
    signed: dict[str, set[str]] = {}
    for signer in signers:
        out, _ = signer.communicate(timeout=60)
        assert signer.returncode == 0
        for note in map(json.loads, out.splitlines()):
            signed.setdefault(note.split("\n")[1], set()).add(note)
    assert signed
    assert all(len(notes) == 1 for notes in signed.values())
    assert state_of(begun).size == last_position(begun.ledger_url) + 1


def test_min_position_of_another_incarnation_is_refused(begun: Here) -> None:
    """A position of another incarnation means nothing here."""
    with (
        pytest.raises(CorrigendaError) as caught,
        open_bare(database_url=begun.ledger_url, home=begun.home, create=False) as bare,
    ):
        bare.reach("2.1")
    assert caught.value.code == "VALIDATION_FAILED"
