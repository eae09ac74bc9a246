"""The root that `verify` computes, and what it says of a checkpoint that is held against the ledger."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import notes, tree
from ledger.digest import leaf
from ledger.errors import CorrigendaError
from ledger.keys import read_signing_key
from ledger.notes import Checkpoint
from ledger.verify import Report
from tests.ledgers import WrittenLedger
from tests.sharing import verify
from tests.tampering import Tampering


def roots(tampering: Tampering) -> list[bytes]:
    """Return the roots of the first 0, 1, 2 … entries as they lie."""
    leaves = [leaf(stored.envelope) for stored in tampering.store.after(-1, 100)]
    return [tree.root(leaves[:size]) for size in range(len(leaves) + 1)]


def signed(written: WrittenLedger, size: int, root: bytes, key: Ed25519PrivateKey | None = None) -> bytes:
    """Return a checkpoint by the ledger's signing key, or another."""
    key = key or read_signing_key(written.files.signing)
    return notes.sign_checkpoint(Checkpoint(written.ledger.origin, size, root), key)


def held(tampering: Tampering, checkpoint: bytes) -> Report:
    """Verify the ledger and hold a checkpoint against it."""
    return verify(tampering.store, tampering.keys, checkpoint=checkpoint)


def mismatch(report: Report) -> tuple[str, str]:
    """Return what a checkpoint that alone failed expected and found."""
    failed = {name for name, check in report.checks.items() if check.status == "failed"}
    assert (report.ok, report.exit_code, failed) == (False, 11, {"checkpoints"})
    return report.checks["checkpoints"].expected or "", report.checks["checkpoints"].found or ""


def test_the_root_is_that_of_the_stored_envelopes(tampering: Tampering) -> None:
    """The root of the report is that of a tree made from the bytes that were read by other means."""
    report = tampering.report()
    assert report.root == roots(tampering)[9].hex()
    assert report.checks["tree"].status == "ok"


def test_every_stored_byte_counts(tampering: Tampering) -> None:
    """An altered envelope gives another root, beside the findings of the other checks."""
    before = tampering.report().root
    tampering.flip("event", "envelope", 4, byte=12)
    after = tampering.report()
    assert after.root not in (None, before)
    assert after.exit_code == 10


@pytest.mark.parametrize("seq", [0, 4, 8])
def test_no_root_without_every_entry(tampering: Tampering, seq: int) -> None:
    """A missing entry leaves the tree out, with its reason, and no root that could be taken for one."""
    tampering.run("DELETE FROM corrigenda.event WHERE ledger = %(ledger)s AND seq = %(seq)s", seq=seq)
    report = tampering.report()
    assert (report.root, report.checks["tree"].status) == (None, "skipped")
    assert "missing" in (report.checks["tree"].why or "")


def test_a_range_has_no_root(tampering: Tampering) -> None:
    """A root needs the whole ledger; a range that is the whole one has it."""
    part, whole = tampering.report(first=0, last=7), tampering.report(first=0, last=8)
    assert (part.root, part.checks["tree"].status) == (None, "skipped")
    assert "0 to 7" in (part.checks["tree"].why or "")
    assert whole.root is not None


@pytest.mark.parametrize("size", [1, 5, 9])
def test_a_checkpoint_of_the_past_is_borne_out(tampering: Tampering, written: WrittenLedger, size: int) -> None:
    """A checkpoint that was signed at a size holds as long as the first entries are what they were."""
    report = held(tampering, signed(written, size, roots(tampering)[size]))
    assert (report.ok, report.exit_code, report.checks["checkpoints"].status) == (True, 0, "ok")
    assert f"first {size} of 9" in (report.checks["checkpoints"].why or "")


def test_a_ledger_that_was_rewritten(tampering: Tampering, written: WrittenLedger) -> None:
    """A past in which every link and seal is right, but that is another one than was signed, is exit 11."""
    expected, found = mismatch(held(tampering, signed(written, 5, roots(tampering)[4])))
    assert roots(tampering)[4].hex() in expected
    assert roots(tampering)[5].hex() in found


def test_a_ledger_that_was_shortened(tampering: Tampering, written: WrittenLedger) -> None:
    """A tail that was cut, its head row set back, is found by whoever kept a checkpoint: nothing else in it shows."""
    checkpoint = signed(written, 9, roots(tampering)[9])
    tampering.run(
        "DELETE FROM corrigenda.payload WHERE ledger = %(ledger)s AND seq = 8",
        "DELETE FROM corrigenda.outbox WHERE ledger = %(ledger)s AND seq = 8",
        "DELETE FROM corrigenda.event WHERE ledger = %(ledger)s AND seq = 8",
        "UPDATE corrigenda.head SET seq = 7, hash = (SELECT hash FROM corrigenda.event WHERE ledger = %(ledger)s AND "
        "seq = 7) WHERE ledger = %(ledger)s",
    )
    assert tampering.report().ok
    report = held(tampering, checkpoint)
    assert mismatch(report) == ("9 entries, as the checkpoint says", "8")
    assert report.checks["checkpoints"].first_bad_position == 8


def test_a_checkpoint_by_another_key(tampering: Tampering, written: WrittenLedger) -> None:
    """The key is event 0's: a right root under a stranger's signature says nothing."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    assert "known key" in mismatch(held(tampering, signed(written, 9, roots(tampering)[9], key)))[1]


@pytest.mark.parametrize("note", [b"", b"\xff", b"text\n"])
def test_what_is_no_checkpoint(tampering: Tampering, note: bytes) -> None:
    """A file of another kind is a checkpoint that fails, never one that is passed over."""
    assert mismatch(held(tampering, note))[0] == "a checkpoint"


def test_a_broken_chain_comes_first(tampering: Tampering, written: WrittenLedger) -> None:
    """The lowest exit that applies is given, and the report has both findings."""
    checkpoint = signed(written, 9, roots(tampering)[9])
    tampering.flip("event", "envelope", 4, byte=12)
    report = held(tampering, checkpoint)
    assert report.exit_code == 10
    assert report.checks["checkpoints"].status == "failed"


def test_a_checkpoint_and_no_ledger_key(tampering: Tampering, written: WrittenLedger) -> None:
    """A checkpoint that fails is 11 without the key too; one that holds leaves the 15 of the seals."""
    right, wrong = (signed(written, 9, roots(tampering)[size]) for size in (9, 8))
    assert verify(tampering.store, None, checkpoint=right).exit_code == 15
    assert verify(tampering.store, None, checkpoint=wrong).exit_code == 11


def test_a_checkpoint_and_a_range(tampering: Tampering, written: WrittenLedger) -> None:
    """A part of a ledger cannot bear a checkpoint out, and is not asked to."""
    with pytest.raises(CorrigendaError) as caught:
        verify(tampering.store, tampering.keys, last=7, checkpoint=signed(written, 5, roots(tampering)[5]))
    assert caught.value.code == "VALIDATION_FAILED"
