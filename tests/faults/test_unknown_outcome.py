"""A commit whose answer is lost: one effect, and no caller is told otherwise.

Each loss in both halves: the commit took effect and was not reported; it did not take effect. Decisions name the
version of the stream that they write, so an append that meets its own lost effect could be taken for a conflict.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from gateway.bootstrap import open_gateway
from ledger import committer, flush, storing
from ledger.errors import UnavailableError
from tests.appends import (
    DEADLINE_S,
    Appends,
    head_held,
    on_stream,
    planted,
    positions,
    replayed,
    results,
    until,
    waiter,
    whole,
)
from tests.faults.children import Counting
from tests.faults.cutting import Proxy, ended, last_committed_by, stopped
from tests.faults.ledger_hands import Document, assert_in_order
from tests.house import refused, rows

pytestmark = pytest.mark.usefixtures("no_settings", "impatient")
LOCK, HOLD = "PERFORM pg_advisory_xact_lock(77);", b"SELECT pg_advisory_lock(77)"
KILL = "SELECT pg_terminate_backend(%s)"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a server that says nothing be given up after half a second, and a lock waited for a fifth of one."""
    monkeypatch.setattr(flush, "ANSWER_S", 0.5)
    monkeypatch.setattr(storing, "LOCK_TIMEOUT_MS", "200")


@pytest.fixture
def proxy(ledger_url: str, tmp_path: Path) -> Iterator[Proxy]:
    """Return what stands between the committer and its server."""
    if not str(conninfo_to_dict(ledger_url).get("host")).startswith("/"):
        pytest.skip("the server's processes have to be on this host")
    folder = tmp_path / "p"
    folder.mkdir()
    with closing(Proxy(ledger_url, folder)) as made:
        yield made


@pytest.fixture
def appends(ledger_url: str, home: Path, proxy: Proxy) -> Iterator[Appends]:
    """Return a committer behind the proxy that has stored one append; what it leaves has to be whole."""
    with whole(ledger_url, home, committer_url=proxy.url) as made:
        assert made.store("warm") == [1]
        assert made.store("warm") == [2]
        yield made


def once(appends: Appends, url: str, position: int) -> None:
    """Fail unless the append with the key k is there once, and its retry is told so."""
    assert on_stream(url, "s") == [position]
    assert replayed(appends.submit("s", key="k", reads={"s": 0}).result(DEADLINE_S)) == position
    assert on_stream(url, "s") == [position]


# ---------------------------------------------------------------- cut at a byte


def size_of_an_append(appends: Appends, proxy: Proxy, direction: str) -> int:
    """Return how many bytes go in a direction for one append."""
    before = proxy.passed[direction]
    appends.store("warm")
    return proxy.passed[direction] - before


@pytest.mark.parametrize("twentieth", range(0, 21, 2))
def test_a_connection_lost_on_the_way_there(appends: Appends, proxy: Proxy, ledger_url: str, twentieth: int) -> None:
    """RC-22, XC-01: given a flush that never came whole, it did not take effect; it is stored after all, once."""
    size = size_of_an_append(appends, proxy, "to the server")
    proxy.cut("to the server", max(0, size * twentieth // 20 - 1))

    outcome = appends.submit("s", key="k", reads={"s": 0}).result(DEADLINE_S)

    assert positions(outcome) == [4]
    once(appends, ledger_url, 4)


@pytest.mark.parametrize("twentieth", range(0, 21, 2))
def test_a_connection_lost_on_the_way_back(appends: Appends, proxy: Proxy, ledger_url: str, twentieth: int) -> None:
    """RC-22, XC-01: given a commit whose answer was cut at any byte, then its effect is found by its key, once."""
    size = size_of_an_append(appends, proxy, "to the client")
    proxy.cut("to the client", max(0, size * twentieth // 20 - 1))

    outcome = appends.submit("s", key="k", reads={"s": 0}).result(DEADLINE_S)

    assert replayed(outcome) == 4
    once(appends, ledger_url, 4)


NONSENSE = {"no length": b"Z\0\0\0\0", "no message": b"\xff" * 64, "an endless one": b"D\x7f\xff\xff\xff" + b"x" * 99}


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize("after", [0, 20])
def test_an_answer_that_is_none_is_no_answer(
    appends: Appends, proxy: Proxy, ledger_url: str, nonsense: str, after: int
) -> None:
    """RC-22: given nonsense where the answer should be, then the connection is given up, and the effect found."""
    proxy.cut("to the client", after, parting=NONSENSE[nonsense])

    outcome = appends.submit("s", key="k", reads={"s": 0}).result(DEADLINE_S)

    assert replayed(outcome) == 3
    once(appends, ledger_url, 3)


def test_a_whole_group_is_resolved_by_its_keys(appends: Appends, proxy: Proxy, ledger_url: str) -> None:
    """RC-22: given a group of fifty whose answer was lost, when its keys are looked up, each is told its position."""
    answer = size_of_an_append(appends, proxy, "to the client")
    with appends.waiting():
        futures = [appends.submit("s", reads={"s": number}) for number in range(50)]
        proxy.cut("to the client", answer)  # that of the append before, for which the group waits

    found = [replayed(outcome) for outcome in results(futures)]
    assert found == [*range(5, 55)]
    assert on_stream(ledger_url, "s") == found


@pytest.mark.parametrize("reached", [True, False])
def test_while_nobody_answers_the_outcome_is_said_to_be_unknown(
    appends: Appends, proxy: Proxy, ledger_url: str, monkeypatch: pytest.MonkeyPatch, reached: bool
) -> None:
    """RC-14, RC-21: given a database that is gone for good, UNAVAILABLE in time; the retry has one effect in all."""
    monkeypatch.setattr(committer, "PATIENCE_S", 1.0)
    proxy.refusing = True
    proxy.cut("to the client" if reached else "to the server", 10)
    began = time.monotonic()

    error = appends.submit("s", key="k", reads={"s": 0}).exception(DEADLINE_S)

    assert time.monotonic() - began < 5
    assert isinstance(error, UnavailableError)
    assert "is not known" in str(error) and "same idempotency key" in str(error)
    proxy.refusing = False
    assert on_stream(ledger_url, "s") == ([3] if reached else [])
    retried = appends.submit("s", key="k", reads={"s": 0}).result(DEADLINE_S)
    assert (replayed(retried) if reached else positions(retried)[0]) == 3
    once(appends, ledger_url, 3)


def test_without_any_connection_nothing_was_stored(
    appends: Appends, proxy: Proxy, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-21: given nobody to connect to from the start, then UNAVAILABLE says that nothing was stored."""
    monkeypatch.setattr(committer, "PATIENCE_S", 0.5)
    proxy.refusing = True
    proxy.cut_now()
    first = appends.submit("s", key="k").exception(DEADLINE_S)
    second = appends.submit("s", key="k").exception(DEADLINE_S)

    assert isinstance(first, UnavailableError) and "is not known" in str(first)
    assert isinstance(second, UnavailableError) and "nothing was stored" in str(second)
    proxy.refusing = False
    assert appends.store("s", key="k", reads={"s": 0}) == [3]
    once(appends, ledger_url, 3)


# ---------------------------------------------------------------- a backend that stands still


def test_a_flush_that_lies_before_a_stopped_backend_comes_too_late(appends: Appends, ledger_url: str) -> None:
    """RC-22: given a backend stopped before it read the flush, when it goes on, there is no double."""
    pid = last_committed_by(ledger_url)
    with stopped(pid):
        outcome = appends.submit("s", key="k", reads={"s": 0}).result(DEADLINE_S)
        assert positions(outcome) == [3]
        assert on_stream(ledger_url, "s") == [3]
    ended(ledger_url, pid)

    once(appends, ledger_url, 3)


def test_a_flush_that_lies_before_a_stopped_backend_may_still_commit(
    appends: Appends, proxy: Proxy, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-22: given such a backend and nobody else to ask, the outcome is said to be unknown; then it takes effect."""
    monkeypatch.setattr(committer, "PATIENCE_S", 0.5)
    pid = last_committed_by(ledger_url)
    proxy.refusing = True
    with stopped(pid):
        error = appends.submit("s", key="k", reads={"s": 0}).exception(DEADLINE_S)
        assert isinstance(error, UnavailableError) and "is not known" in str(error)
        assert on_stream(ledger_url, "s") == []
    proxy.refusing = False

    assert until(lambda: on_stream(ledger_url, "s")) == [3]
    once(appends, ledger_url, 3)


def test_a_refusal_after_a_lost_flush_is_not_the_last_word(appends: Appends, ledger_url: str) -> None:
    """RC-22: given such a backend, and then a refusal, unknown is what is said: the first flush may take effect yet."""
    pid = last_committed_by(ledger_url)
    with stopped(pid):
        with planted(ledger_url, "RAISE EXCEPTION 'not now' USING ERRCODE = '23514';"):
            error = appends.submit("s", key="k", reads={"s": 0}).exception(DEADLINE_S)
        assert isinstance(error, UnavailableError)
        assert "is not known" in str(error) and "nothing was stored" not in str(error)
    assert until(lambda: on_stream(ledger_url, "s")) == [3]

    once(appends, ledger_url, 3)


def test_a_backend_stopped_in_its_transaction_is_waited_for(appends: Appends, ledger_url: str) -> None:
    """RC-22, RC-23: given a backend stopped in the middle of the transaction, its effect is found once it goes on."""
    with planted(ledger_url, "PERFORM pg_sleep(0.4);"):
        future = appends.submit("s", key="k", reads={"s": 0})
        pid = waiter(ledger_url)
        with stopped(pid):
            time.sleep(1.5)  # the flush is given up, and the lock of its transaction met
            assert not future.done()
        assert replayed(future.result(DEADLINE_S)) == 3

    once(appends, ledger_url, 3)


def test_a_backend_stopped_before_the_guard_comes_too_late(appends: Appends, ledger_url: str) -> None:
    """RC-22: given a backend stopped while it waits for the head, another connection is faster; it stores nothing."""
    with ExitStack() as until_then:
        with head_held(ledger_url):
            future = appends.submit("s", key="k", reads={"s": 0})
            pid = waiter(ledger_url)
            until_then.enter_context(stopped(pid))
        assert positions(future.result(DEADLINE_S)) == [3]
    ended(ledger_url, pid)

    once(appends, ledger_url, 3)


# ---------------------------------------------------------------- a backend that is ended


@pytest.mark.parametrize("moment", ["before", "while"])
def test_a_backend_ended_around_its_commit(appends: Appends, ledger_url: str, moment: str) -> None:
    """RC-22: given a backend that is ended before or while it commits, nothing was stored; then it is, once."""
    holding = planted(ledger_url, LOCK, deferred=moment == "while")
    with psycopg.connect(ledger_url, autocommit=True) as holder, holding:
        holder.execute(HOLD)
        future = appends.submit("s", key="k", reads={"s": 0})
        pid = waiter(ledger_url)
        holder.execute(KILL.encode(), [pid])
        ended(ledger_url, pid)
        holder.close()
        assert positions(future.result(DEADLINE_S)) == [3]

    once(appends, ledger_url, 3)


def test_a_backend_ended_while_idle_is_not_noticed(appends: Appends, ledger_url: str) -> None:
    """RC-22: given a backend that was ended between two appends, the next is stored, once, and nobody sees it."""
    for turn in range(3):
        pid = last_committed_by(ledger_url)
        rows(ledger_url, KILL, pid)
        ended(ledger_url, pid)
        assert appends.store("s", key=f"k{turn}", reads={"s": turn}) == [3 + turn]


def test_a_silence_longer_than_the_patience_is_not_the_end(
    appends: Appends, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-22: given a backend whose silence outlasts the patience, the keys are looked up all the same."""
    monkeypatch.setattr(committer, "PATIENCE_S", 0.3)
    pid = last_committed_by(ledger_url)
    with stopped(pid):
        assert positions(appends.submit("s", key="k", reads={"s": 0}).result(DEADLINE_S)) == [3]
    ended(ledger_url, pid)

    once(appends, ledger_url, 3)


# ---------------------------------------------------------------- a caller alone


@pytest.mark.parametrize("direction", ["to the server", "to the client"])
@pytest.mark.parametrize("twentieth", [0, 10, 20])
def test_a_connection_lost_by_a_caller_that_is_alone(
    appends: Appends, proxy: Proxy, ledger_url: str, direction: str, twentieth: int
) -> None:
    """RC-22, XC-01: given a flush of a caller's own that was cut either way, then it is stored once, and found."""
    size = size_of_an_append(appends, proxy, direction)
    proxy.cut(direction, max(0, size * twentieth // 20 - 1))

    outcome = appends.committer.append(appends.draft("s", key="k", reads={"s": 0}), 60)

    assert (replayed(outcome) if direction == "to the client" else positions(outcome)[0]) == 4
    once(appends, ledger_url, 4)


@pytest.mark.parametrize("reached", [True, False])
def test_a_caller_alone_is_told_that_the_outcome_is_unknown(
    appends: Appends, proxy: Proxy, ledger_url: str, monkeypatch: pytest.MonkeyPatch, reached: bool
) -> None:
    """RC-14, RC-21: given a flush of a caller's own that was lost, and nobody to ask, unknown is what is said."""
    monkeypatch.setattr(committer, "PATIENCE_S", 1.0)
    proxy.refusing = True
    proxy.cut("to the client" if reached else "to the server", 10)

    with refused("UNAVAILABLE") as refusal:
        appends.committer.append(appends.draft("s", key="k", reads={"s": 0}), 60)

    assert "is not known" in refusal.error.message
    proxy.refusing = False
    retried = appends.submit("s", key="k", reads={"s": 0}).result(DEADLINE_S)
    assert (replayed(retried) if reached else positions(retried)[0]) == 3
    once(appends, ledger_url, 3)


# ---------------------------------------------------------------- a page that is committed with its last part


@pytest.mark.parametrize("reached", [True, False])
def test_a_last_page_whose_commit_or_its_answer_was_lost(
    appends: Appends, proxy: Proxy, ledger_url: str, *, reached: bool
) -> None:
    """RC-22, XC-01: given a page whose one flush was lost either way, unknown is what is said; it is stored once."""
    with refused("UNAVAILABLE") as refusal, appends.committer.hold(more=True) as held:
        proxy.cut("to the client" if reached else "to the server", 40)
        held.store([appends.draft("s", key="k", reads={"s": 0})], last=True)

    assert "is not known" in refusal.error.message
    if reached:
        assert until(lambda: on_stream(ledger_url, "s")) == [3]
    retried = appends.submit("s", key="k", reads={"s": 0}).result(DEADLINE_S)
    assert (replayed(retried) if reached else positions(retried)[0]) == 3
    once(appends, ledger_url, 3)


# ---------------------------------------------------------------- as a caller sees it


@pytest.mark.parametrize("direction", ["to the server", "to the client"])
def test_a_caller_whose_answer_was_lost_has_a_receipt_all_the_same(
    where: Document, counting: Counting, proxy: Proxy, direction: str
) -> None:
    """RC-14, RC-22: given a write whose commit or its answer was lost, the receipt says what was stored, once."""
    with open_gateway(**{**where, "database_url": proxy.url}) as gateway:
        gateway.remember("a")
        proxy.cut(direction, 40)
        receipt = gateway.remember("b", idempotency_key="k")

        assert receipt.replayed == (direction == "to the client")
        assert gateway.show(receipt.revision_id or "").content == "b"
        again = gateway.remember("b", idempotency_key="k")
        assert (again.replayed, again.revision_id, again.position) == (True, receipt.revision_id, receipt.position)
    assert assert_in_order(where).types["memory.remembered"] == 2
