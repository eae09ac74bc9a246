"""What `verify` says of a ledger that is whole, without its key, in part, or not there at all."""

import errno
import io
from contextlib import closing
from typing import Any

import msgspec
import pytest

from gateway.shapes.replies.audit import Verification
from gateway.shapes.replies.documents import document
from ledger.digest import LedgerKeys
from ledger.errors import CorrigendaError
from ledger.store import Database, Store
from ledger.verify import aside, verify
from tests.ledgers import WrittenLedger
from tests.tampering import Tampering, failed

CHECKED = ("canonical", "chain", "streams", "seals", "payloads")


# ---------------------------------------------------------------- nothing wrong


def test_an_untouched_ledger_is_found_whole(tampering: Tampering, written: WrittenLedger) -> None:
    """All six checks pass, what this version does not check is skipped with its reason, and both leave `ok` true."""
    report = tampering.report()
    assert failed(report) == {}
    assert {name for name, check in report.checks.items() if check.status == "ok"} == {*CHECKED, "tree"}
    skipped = {name for name, check in report.checks.items() if check.status == "skipped" and check.why}
    assert skipped == {"anchor", "checkpoints", "projections", "index"}
    assert (report.events, report.size, report.erased) == (9, 9, 0)
    assert report.head == written.ledger.walk.head.hash.hex()
    assert tampering.walk() == 8


def test_progress_is_told_up_to_the_last_event(tampering: Tampering) -> None:
    """The callback gets how many events were read, of how many."""
    told: list[tuple[int, int]] = []
    verify(tampering.store, tampering.keys, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (9, 9)


def test_a_report_becomes_the_documented_answer(tampering: Tampering) -> None:
    """Every key of the answer is there, and a check says only what applies to it."""
    tampering.flip("payload", "body", 4)
    body = document(msgspec.convert(msgspec.to_builtins(tampering.report()), Verification))
    assert list(body) == [
        *("schema_version", "ok", "exit_code", "events", "size", "root", "head", "checks"),
        *("unanchored_tail", "erased"),
    ]
    assert body["checks"]["chain"] == {"status": "ok"}
    assert body["checks"]["payloads"] == {
        "status": "failed",
        "first_bad_position": 4,
        "expected": "the payload that was committed to",
        "found": "another",
    }
    assert (body["root"], body["unanchored_tail"]) == (tampering.report().root, 9)


@pytest.mark.parametrize("when", ["made", "written", "read"])
def test_no_room_for_what_it_remembers(tampering: Tampering, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """A full disk is a part that does not answer: nothing is said about the ledger, which is not to blame."""

    class Full(io.BytesIO):
        def write(self, block: Any) -> int:  # Any: a buffer
            return _full() if when == "written" else super().write(block)

        def read(self, size: int | None = -1) -> bytes:
            return _full() if when == "read" else super().read(size)

    monkeypatch.setattr(aside, "HELD_MAX", 2)
    monkeypatch.setattr(aside, "TemporaryFile", lambda prefix: _full() if when == "made" else Full())
    with pytest.raises(CorrigendaError) as caught:
        tampering.report()
    assert caught.value.code == "UNAVAILABLE"
    assert "TMPDIR" in caught.value.message


def _full() -> Any:  # Any: it never returns
    raise OSError(errno.ENOSPC, "No space left on device")


# ---------------------------------------------------------------- keys


def test_no_key(tampering: Tampering) -> None:
    """All that needs no key is checked and said; exit 15 tells that the seals were not."""
    report = verify(tampering.store, None)
    assert (report.ok, report.exit_code) == (False, 15)
    assert (report.checks["seals"].status, report.checks["chain"].status) == ("failed", "ok")
    assert report.checks["seals"].why


def test_no_key_and_a_broken_chain(tampering: Tampering) -> None:
    """The lowest exit that applies is given."""
    tampering.flip("event", "envelope", 4, byte=12)
    report = verify(tampering.store, None)
    assert (report.ok, report.exit_code, report.checks["chain"].first_bad_position) == (False, 10, 4)


def test_another_ledger_s_key(tampering: Tampering) -> None:
    """A key that made none of the seals can say nothing about them: exit 15, not a broken ledger."""
    foreign = LedgerKeys(seal_secret=bytes(32), naming_secret=bytes(32), ledger=tampering.store.ledger)
    report = tampering.report(foreign)
    assert (report.ok, report.exit_code) == (False, 15)
    assert "key" in (report.checks["seals"].why or "")


# ---------------------------------------------------------------- ranges


def test_a_range_is_checked_and_says_so(tampering: Tampering) -> None:
    """What lies outside of it is neither read nor vouched for."""
    tampering.flip("event", "envelope", 2, byte=12)
    tampering.flip("payload", "body", 8)
    report = tampering.report(first=4, last=7)
    assert failed(report) == {}
    assert (report.events, report.size) == (4, 9)
    assert all("4 to 7" in (report.checks[name].why or "") for name in CHECKED)


def test_a_range_holds_its_first_entry_against_the_one_before(tampering: Tampering) -> None:
    """The link into the range is part of it."""
    tampering.flip("event", "envelope", 3, byte=12)
    assert failed(tampering.report(first=4, last=7)) == {"chain": 4}


def test_a_broken_entry_inside_a_range(tampering: Tampering) -> None:
    """Positions are the ledger's, not the range's."""
    tampering.flip("event", "seal", 6)
    assert failed(tampering.report(first=5)) == {"seals": 6}


@pytest.mark.parametrize(("first", "last"), [(-1, None), (9, None), (3, 2), (0, 9)])
def test_a_range_that_the_ledger_does_not_have(tampering: Tampering, first: int, last: int | None) -> None:
    """Refused, with the positions that there are."""
    with pytest.raises(CorrigendaError) as caught:
        verify(tampering.store, tampering.keys, first=first, last=last)
    assert caught.value.code == "VALIDATION_FAILED"
    assert "0 to 8" in str(caught.value)


def test_a_ledger_of_another_origin(tampering: Tampering) -> None:
    """Who says which ledger is meant is told if this is another."""
    report = verify(tampering.store, tampering.keys, "corrigenda.invalid/another")
    assert failed(report) == {"chain": 0}


def test_a_ledger_that_is_not_there(tampering: Tampering, ledger_url: str) -> None:
    """Nothing under an id is a finding, not a crash."""
    with closing(Database(ledger_url)) as database:
        report = verify(Store(database, "01JZ8Q0000000000000000000Z"), tampering.keys)
    assert failed(report) == {"chain": 0}
