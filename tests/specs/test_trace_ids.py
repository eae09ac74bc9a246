"""What an id of a trace tells of its time, and how losses are counted: without a database."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.traces.losses import Losses
from gateway.traces.traced import first_id, made_at
from ledger.clock import UlidMint, stamp

MOMENTS = [datetime(2026, 1, 2, 3, 4, 5, 6000, UTC), datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)]


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_id_tells_when_its_trace_was_made(moment: datetime) -> None:
    """Given an id made at a moment, then it tells that one, and lies in its millisecond."""
    trace = f"trc_{UlidMint(lambda: moment)()}"
    assert made_at(trace) == stamp(moment)
    assert first_id(moment) <= trace < first_id(moment + timedelta(milliseconds=1))


def test_a_moment_before_all_ids_comes_before_them() -> None:
    """Given a retention that reaches back before any clock, then nothing is older."""
    assert first_id(datetime(1960, 1, 1, tzinfo=UTC)) == "trc_0000000000"


def test_losses_add_up_over_processes(tmp_path: Path) -> None:
    """Given two processes of a home, when both lose traces, then either counts all of them."""
    one, other = Losses(tmp_path, "led"), Losses(tmp_path, "led")
    assert one.count == 0
    one.add(2)
    other.add(1)
    assert (one.count, other.count, Losses(tmp_path, "another").count) == (3, 3, 0)


def test_a_loss_that_cannot_be_counted_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Given a home that takes no files, when a trace is lost, then nothing fails, and the log says it."""
    caplog.set_level(logging.WARNING, logger="gateway")  # a command line in this process may have quieted it
    (tmp_path / "traces").write_text("in the way")
    Losses(tmp_path, "led").add(1)
    assert "could not be counted" in caplog.text
