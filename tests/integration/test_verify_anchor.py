"""The anchor held against the tables: what nobody without it can hide, and what an anchor is never believed for."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ledger import notes
from ledger.anchor import Anchor, Unusable
from ledger.chain import Envelope
from ledger.keys import read_signing_key
from ledger.notes import Checkpoint
from ledger.verify import Report
from tests.conftest import fresh_database
from tests.forging import anchored, appended, cut, put, rechain, root_of
from tests.ledgers import WrittenLedger
from tests.roles import as_writer
from tests.sharing import verify
from tests.tampering import Tampering, failed


@pytest.fixture
def ledger_url(server_url: str, migrated_template: str) -> Iterator[str]:
    """Return a database of the test's own: what is done to its tables here cannot be undone for the next test."""
    with fresh_database(server_url, template=migrated_template) as url:
        yield as_writer(url)


def held(tampering: Tampering, anchor: Anchor | Unusable | None) -> Report:
    """Verify the ledger beside an anchor."""
    return verify(tampering.store, tampering.keys, anchor=anchor)


def mismatch(report: Report) -> int | None:
    """Return where an anchor that alone failed differs."""
    failing = {name for name, check in report.checks.items() if check.status == "failed"}
    assert (report.ok, report.exit_code, failing) == (False, 11, {"anchor"})
    return report.checks["anchor"].first_bad_position


# ---------------------------------------------------------------- nothing wrong


def test_a_ledger_that_is_its_anchor_s(tampering: Tampering) -> None:
    """Every leaf is the anchor's, and nothing lies above it."""
    report = held(tampering, anchored(tampering))
    assert failed(report) == {}
    assert (report.checks["anchor"].status, report.unanchored_tail) == ("ok", 0)


def test_an_anchor_that_is_behind(tampering: Tampering) -> None:
    """Behind is normal: what lies above it is counted."""
    report = held(tampering, anchored(tampering, 6))
    assert (report.ok, report.checks["anchor"].status, report.unanchored_tail) == (True, "ok", 3)


def test_no_anchor_is_trust_on_first_use(tampering: Tampering) -> None:
    """Without one the check is skipped, and says what that means; everything is unanchored."""
    report = held(tampering, None)
    assert (report.ok, report.checks["anchor"].status, report.unanchored_tail) == (True, "skipped", 9)
    assert "first use" in (report.checks["anchor"].why or "")


def test_an_anchor_that_began_with_what_there_was(tampering: Tampering) -> None:
    """An anchor that was built from the database vouches for nothing before that, and the check says so."""
    assert "when there was none" in (held(tampering, anchored(tampering)).checks["anchor"].why or "")


def test_a_range_is_held_against_it(tampering: Tampering) -> None:
    """A range compares its own positions, and no head."""
    anchor = anchored(tampering)
    rechain(tampering, 3, _otherwise_proven)
    assert verify(tampering.store, tampering.keys, anchor=anchor, first=0, last=2).ok
    assert mismatch(verify(tampering.store, tampering.keys, anchor=anchor, first=4, last=7)) == 4


# ---------------------------------------------------------------- what it finds


@pytest.mark.parametrize("size", [1, 5, 8])
def test_a_tail_cut(tampering: Tampering, size: int) -> None:
    """A tail that was cut, with a head set back to fit, is a clean ledger but for the anchor."""
    anchor = anchored(tampering)
    cut(tampering, size)
    assert held(tampering, None).ok or size == 5  # at 5 an append is cut in two
    report = held(tampering, anchor)
    assert report.checks["anchor"].first_bad_position == size
    assert report.exit_code == (11 if held(tampering, None).ok else 10)


def test_a_head_cut(tampering: Tampering) -> None:
    """A ledger whose beginning is gone fails by itself, and the anchor names the first entry that is missing."""
    anchor = anchored(tampering)
    tampering.run("DELETE FROM corrigenda.event WHERE ledger = %(ledger)s AND seq < 3")
    report = held(tampering, anchor)
    assert report.exit_code == 10
    assert (report.checks["chain"].first_bad_position, report.checks["anchor"].first_bad_position) == (0, 0)


def test_an_entry_missing_in_the_middle(tampering: Tampering) -> None:
    """The gap is the anchor's finding as much as the chain's."""
    anchor = anchored(tampering)
    tampering.run("DELETE FROM corrigenda.event WHERE ledger = %(ledger)s AND seq = 4")
    report = held(tampering, anchor)
    assert (report.checks["chain"].first_bad_position, report.checks["anchor"].first_bad_position) == (4, 4)


@pytest.mark.parametrize("first", [0, 4, 8])
def test_a_full_rechain(tampering: Tampering, first: int) -> None:
    """With the key every hash, link and seal can be made again. The leaf is another, and that is all that shows."""
    anchor = anchored(tampering)
    rechain(tampering, first, _otherwise_proven)
    assert held(tampering, None).ok
    assert mismatch(held(tampering, anchor)) == first


def test_cut_and_then_appended(tampering: Tampering) -> None:
    """Cut, then write on with the key: as long as before, and another ledger from the cut on."""
    anchor = anchored(tampering)
    cut(tampering, 7)
    while appended(tampering, 7 - 1) < 9:
        pass
    assert held(tampering, None).ok
    report = held(tampering, anchor)
    assert (mismatch(report), report.size) == (7, 10)


def test_an_old_backup_put_back(tampering: Tampering, written: WrittenLedger) -> None:
    """What was a whole ledger at the time of the backup is a loss of everything that came after it."""
    cut(tampering, 7)
    old = tampering.store.after(-1, 100)
    anchor = anchored(tampering)
    appended(tampering, 4)
    anchor_now = anchored(tampering)
    cut(tampering, 7)
    assert tampering.store.after(-1, 100) == old
    assert held(tampering, anchor).ok
    assert mismatch(held(tampering, anchor_now)) == 7


def test_the_anchored_note_is_held_against_the_ledger(tampering: Tampering, written: WrittenLedger) -> None:
    """The last checkpoint that was signed here is compared, too, whether or not a file is given."""
    for size, told in ((9, 9), (5, 9)):
        anchor = anchored(tampering)
        note = Checkpoint(tampering.origin, size, root_of(tampering, told))
        anchor.keep_note(size, notes.sign_checkpoint(note, read_signing_key(written.files.signing)))
        report = held(tampering, anchor)
        assert report.checks["checkpoints"].status == ("ok" if size == told else "failed")
        assert report.exit_code == (0 if size == told else 11)


def test_a_broken_chain_comes_before_the_anchor(tampering: Tampering) -> None:
    """The lowest exit that applies is given; both findings are in the report."""
    anchor = anchored(tampering)
    tampering.flip("event", "envelope", 4, byte=12)
    report = held(tampering, anchor)
    assert report.exit_code == 10
    assert report.checks["anchor"].first_bad_position == 4


# ---------------------------------------------------------------- anchors that are none


def at_path(tampering: Tampering, path: Path) -> Anchor | Unusable:
    """Open an anchor as a verification does."""
    try:
        return Anchor.find(path, ledger=tampering.store.ledger, origin=tampering.origin)
    except Unusable as fault:
        return fault


@pytest.mark.parametrize("damage", ["empty", "garbage", "truncated"])
def test_a_corrupt_anchor(tampering: Tampering, tmp_path: Path, damage: str) -> None:
    """A file that is not what was written is named and never trusted: exit 11, whatever the ledger is like."""
    path = tmp_path / "anchor.sqlite"
    Anchor.open(path, ledger=tampering.store.ledger, origin=tampering.origin).close()
    whole = path.read_bytes()
    path.write_bytes({"empty": b"", "garbage": b"no anchor" * 500, "truncated": whole[: len(whole) // 2]}[damage])
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    report = held(tampering, at_path(tampering, path))
    assert (mismatch(report), report.unanchored_tail) == (None, 9)


def test_a_foreign_anchor(tampering: Tampering, tmp_path: Path) -> None:
    """Another ledger's anchor says nothing about this one, and is no reason to believe it."""
    path = tmp_path / "anchor.sqlite"
    Anchor.open(path, ledger="01JZ8Q0000000000000000000Z", origin=tampering.origin).close()
    report = held(tampering, at_path(tampering, path))
    assert mismatch(report) is None
    assert "another ledger" in (report.checks["anchor"].found or "")


def test_an_anchor_that_goes_bad_while_it_is_read(tampering: Tampering) -> None:
    """What was lost of it since it was opened is found where it is needed."""
    anchor = anchored(tampering)
    anchor._connection.execute("DROP TABLE leaf")
    report = held(tampering, anchor)
    assert mismatch(report) is None


def test_an_anchor_that_cannot_be_read(tampering: Tampering) -> None:
    """Rights that are missing say nothing about what it holds: 15, unless something else is wrong."""
    fault = Unusable("cannot be read: Permission denied", passing=True)
    report = held(tampering, fault)
    assert (report.ok, report.exit_code, report.checks["anchor"].status) == (False, 15, "failed")
    assert "Permission denied" in (report.checks["anchor"].why or "")
    put(tampering, 4, b"{}")
    assert held(tampering, fault).exit_code == 10


def test_an_anchor_is_left_as_it_is(tampering: Tampering, tmp_path: Path) -> None:
    """A verification looks at an anchor and adds nothing to it."""
    path = tmp_path / "anchor.sqlite"
    Anchor.open(path, ledger=tampering.store.ledger, origin=tampering.origin).close()
    before = sqlite3.connect(path).execute("SELECT size FROM meta").fetchall()
    anchor = at_path(tampering, path)
    assert isinstance(anchor, Anchor)
    assert held(tampering, anchor).unanchored_tail == 9
    anchor.close()
    assert sqlite3.connect(path).execute("SELECT size FROM meta").fetchall() == before == [(0,)]


def _otherwise_proven(envelope: Envelope) -> Envelope:
    return msgspec.structs.replace(envelope, authn="token")


# ---------------------------------------------------------------- its other tables


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE stream SET version = version - 1 WHERE version > 1",
        "DELETE FROM stream WHERE version = 1",
        "DELETE FROM request WHERE position = 8",
    ],
)
def test_an_anchor_whose_streams_or_requests_were_set_back(
    tampering: Tampering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: str
) -> None:
    """Leaves that are right do not make the rest right: what is missing of streams or keys shows in the sums."""
    anchor = anchored(tampering)
    assert held(tampering, anchor).ok
    anchor._connection.execute(edit)
    report = held(tampering, anchor)
    assert (report.ok, report.exit_code, report.checks["anchor"].status) == (False, 11, "failed")
