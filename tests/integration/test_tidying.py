"""Old traces and carried rows go by themselves once a day, for a moment, and never in anybody's way."""

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.service import Gateway
from gateway.upkeep import tidying
from gateway.upkeep.tidying import tidy
from ledger.clock import system_clock
from tests.house import rows
from tests.integration.conftest import Here
from tests.roles import as_owner

NOW = system_clock()
YEARS = timedelta(days=800)
TIME_ENOUGH_S = 60.0


@pytest.fixture
def old(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    """A gateway of today whose ledger has a trace and outbox rows of years ago, and time enough to sweep them."""
    monkeypatch.setattr(tidying, "BUDGET_S", TIME_ENOUGH_S)
    with open_here(clock=lambda: NOW - YEARS) as past:
        past.remember("the ferry sails")
        past.search("ferry")
    gateway = open_here()
    assert (traces(gateway, open_here), outbox(gateway, open_here)) == (1, 1)
    open_here.broken = True  # the oracle wants every row of the outbox
    return gateway


def traces(gateway: Gateway, here: Here) -> int:
    """Return how many traces are stored."""
    gateway._background.flush()
    return rows(here.ledger_url, "SELECT count(*) FROM corrigenda.trace")[0][0]


def outbox(gateway: Gateway, here: Here) -> int:
    """Return how many rows the outbox has."""
    return gateway._ledger.store.count("count_outbox", after=-1)


def test_what_is_old_goes_and_what_is_new_stays(old: Gateway, open_here: Here, home: Path) -> None:
    """Given a trace and rows of years ago, then they are removed, and what was made today is not."""
    old.search("ferry")
    old.remember("the bus leaves")
    assert traces(old, open_here) == 2

    assert tidy(old._ledger, as_owner(open_here.ledger_url), home, now=NOW)

    assert (traces(old, open_here), outbox(old, open_here)) == (1, 1)
    assert [hit.content for hit in old.search("the ferry sails", k=1).hits] == ["the ferry sails"]


def test_it_is_done_once_a_day(old: Gateway, open_here: Here, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a sweep, then the next one is a day later, or where the clock was put back by as much."""
    swept, sweep = list[str](), tidying._sweep
    monkeypatch.setattr(tidying, "_sweep", lambda *given: swept.append("once") or sweep(*given))
    url = as_owner(open_here.ledger_url)
    found = list[int]()
    for hours in (0, 23, 25, 26, 0):
        assert tidy(old._ledger, url, home, now=NOW + timedelta(hours=hours))
        found.append(len(swept))
    assert found == [1, 1, 2, 2, 3]


def test_what_there_was_no_time_for_goes_the_next_time(
    old: Gateway, open_here: Here, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given no time at all, then nothing is removed, and the next opening goes on instead of waiting for a day."""
    url = as_owner(open_here.ledger_url)
    monkeypatch.setattr(tidying, "BUDGET_S", -1.0)
    assert not tidy(old._ledger, url, home, now=NOW)
    assert (traces(old, open_here), outbox(old, open_here)) == (1, 1)
    monkeypatch.setattr(tidying, "BUDGET_S", TIME_ENOUGH_S)
    assert tidy(old._ledger, url, home, now=NOW)
    assert (traces(old, open_here), outbox(old, open_here)) == (0, 0)


def test_a_role_that_may_not_is_no_reason_to_fail(
    old: Gateway, open_here: Here, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given the writer's URL, not the owner's, then nothing is removed, and the log says so; nobody is stopped."""
    with caplog.at_level(logging.WARNING, logger=tidying.__name__):
        assert not tidy(old._ledger, open_here.ledger_url, home, now=NOW)
    assert [record.getMessage() for record in caplog.records] == ["not swept: FORBIDDEN_ACTOR"]
    assert traces(old, open_here) == 1
    assert tidy(old._ledger, as_owner(open_here.ledger_url), home, now=NOW), "it is tried again a day later only"
    assert traces(old, open_here) == 1
