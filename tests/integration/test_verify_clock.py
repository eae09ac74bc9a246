"""Times that run backwards: order is by position, so nothing is refused, and whoever reads the report is told."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ledger.verify import Report
from tests.ledgers import WrittenLedger, correct, remember
from tests.sharing import verify
from tests.tampering import FIRST, SECOND

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        """Return what it was set to, a second later each time."""
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands at noon."""
    return Clock()


@pytest.fixture
def ledger(ledger_url: str, home: Path, clock: Clock) -> Iterator[WrittenLedger]:
    """Return a ledger that is written by that clock, with one memory: positions 0 and 1."""
    with closing(WrittenLedger(ledger_url, home, clock)) as written:
        written.append(FIRST, remember("rev_1", "Deploys are on Tuesdays."))
        yield written


def report_of(written: WrittenLedger, first: int = 0) -> Report:
    """Verify what was written, which is well whatever the clock did."""
    report = verify(written.ledger.store, written.ledger.keys, first=first)
    assert report.ok
    return report


def test_a_clock_that_goes_on(ledger: WrittenLedger, clock: Clock) -> None:
    """Forward by a year is forward: nothing is flagged, until somebody sets it right again."""
    clock.now += timedelta(days=365)
    ledger.append(FIRST, correct("rev_1", "rev_2", "On Wednesdays."))
    assert report_of(ledger).checks["chain"].why is None
    clock.now = NOON + timedelta(minutes=1)
    ledger.append(SECOND, remember("rev_a", "The office closes at six."))
    assert report_of(ledger).checks["chain"].why == "clock: back at position 3"


def test_a_clock_set_back(ledger: WrittenLedger, clock: Clock) -> None:
    """Back by an hour: the event is taken, its time is not bent, the first position is named and the rest counted."""
    clock.now -= timedelta(hours=1)
    entries = ledger.append(FIRST, correct("rev_1", "rev_2", "On Wednesdays."))
    assert entries[0].envelope.at.startswith("2026-03-01T11:00")
    assert report_of(ledger).checks["chain"].why == "clock: back at position 2"
    clock.now -= timedelta(hours=1)
    ledger.append(SECOND, remember("rev_a", "The office closes at six."))
    report = report_of(ledger)
    assert (report.exit_code, report.checks["chain"].status) == (0, "ok")
    assert report.checks["chain"].why == "clock: back at position 2 and 1 more"


def test_a_range_flags_what_lies_in_it(ledger: WrittenLedger, clock: Clock) -> None:
    """Events below a range say nothing about the times in it."""
    clock.now -= timedelta(hours=1)
    ledger.append(FIRST, correct("rev_1", "rev_2", "On Wednesdays."))
    ledger.append(FIRST, correct("rev_2", "rev_3", "On Thursdays."))
    assert "clock" not in (report_of(ledger, first=3).checks["chain"].why or "")
