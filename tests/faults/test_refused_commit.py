"""A flush is committed by its end, and what the commit is refused with comes as the answer to that: it is not missed.

A constraint that is checked at the end is what makes a commit fail when every statement before it was answered well.
What is lost around a commit is in `test_unknown_outcome`, behind such a constraint too.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from ledger.errors import UnavailableError
from ledger.flush import Flush
from ledger.store import QUERIES, Write
from tests.appends import DEADLINE_S, Appends, on_stream, planted, positions, whole
from tests.faults.cutting import last_committed_by
from tests.house import refused

pytestmark = pytest.mark.usefixtures("no_settings")
KEPT = "CREATE TEMP TABLE kept (number bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)"
REFUSING = "RAISE EXCEPTION 'not at the end' USING ERRCODE = '23514';"
IN_TROUBLE = "RAISE EXCEPTION 'in trouble' USING ERRCODE = '40001';"


def keep(number: int) -> Write:
    """Return what keeps a number; that it is kept once is checked at the end."""
    return Write("INSERT INTO kept VALUES (%(number)s::bigint) RETURNING number", {"number": number})


@pytest.mark.parametrize("prepare", [True, False])
def test_a_refusal_of_the_end_is_raised(server_url: str, *, prepare: bool) -> None:
    """XC-01: given a commit that is refused, the flush raises that, nothing is kept, and the connection goes on."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(KEPT)
        flush = Flush(connection, prepare=prepare)
        for _ in range(2):
            with pytest.raises(psycopg.errors.UniqueViolation):
                flush.run([keep(1), keep(1)])
            assert connection.info.transaction_status == TransactionStatus.IDLE
            assert connection.execute("SELECT number FROM kept").fetchall() == []

            assert [answer.ntuples for answer in flush.run([keep(2), keep(3)])] == [1, 1]
            assert connection.execute("DELETE FROM kept RETURNING number").fetchall() == [(2,), (3,)]


def test_the_first_refusal_is_the_one_that_is_raised(server_url: str) -> None:
    """XC-01: given a statement that is refused, that is what is told, and nothing before or behind it is kept."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(KEPT)
        flush = Flush(connection, prepare=True)
        with pytest.raises(psycopg.errors.DivisionByZero):
            flush.run([keep(1), keep(1), Write("SELECT 1 / 0", {}), keep(2)])

        assert connection.execute("SELECT number FROM kept").fetchall() == []


# ---------------------------------------------------------------- as the committer sees it


@pytest.fixture
def appends(ledger_url: str, home: Path) -> Iterator[Appends]:
    """Return a committer that knows the head; what it leaves has to be whole."""
    with whole(ledger_url, home) as made:
        assert [made.store("warm") for _ in range(2)] == [[1], [2]]
        yield made


Storing = Callable[[Appends], object]
BY_ITSELF: dict[str, Storing] = {
    "alone": lambda appends: appends.committer.append(appends.draft("s", key="k"), 60),
    "queued": lambda appends: appends.submit("s", key="k").result(DEADLINE_S),
}


@pytest.mark.parametrize("way", BY_ITSELF)
def test_an_append_whose_commit_is_refused_is_told_so(appends: Appends, ledger_url: str, way: str) -> None:
    """XC-01, RC-21: given an append that is refused when it commits, nothing was stored, nobody is told that it was.

    The next one is stored, on the same connection.
    """
    pid = last_committed_by(ledger_url)
    with planted(ledger_url, REFUSING, deferred=True):
        with refused("UNAVAILABLE") as refusal:
            BY_ITSELF[way](appends)
        assert "not at the end" in refusal.error.message and "nothing was stored" in refusal.error.message
        assert on_stream(ledger_url, "s") == []

    assert appends.store("s", key="k", reads={"s": 0}) == [3]
    assert last_committed_by(ledger_url) == pid


def test_trouble_at_the_end_that_passes_is_waited_for(appends: Appends, ledger_url: str) -> None:
    """XC-01: given commits that fail for now, when that has passed, then what waited is stored, once."""
    with planted(ledger_url, IN_TROUBLE, deferred=True):
        future = appends.submit("s", key="k", reads={"s": 0})
        with pytest.raises(TimeoutError):
            future.result(0.3)
        assert on_stream(ledger_url, "s") == []

    assert positions(future.result(DEADLINE_S)) == on_stream(ledger_url, "s") == [3]


def test_one_that_is_refused_at_the_end_takes_no_others_with_it(appends: Appends, ledger_url: str) -> None:
    """XC-01: given a group whose commit is refused for one of its appends, that one is told so, and no other."""
    of_one = f"IF NEW.stream = 'name_bad' THEN {REFUSING} END IF;"
    with planted(ledger_url, of_one, deferred=True):
        with appends.waiting():
            futures = [appends.submit(stream) for stream in ("s", "bad", "s")]
        told = [future.exception(DEADLINE_S) for future in futures]

    assert [isinstance(error, UnavailableError) for error in told] == [False, True, False]
    assert [positions(future.result()) for future in futures[::2]] == [[4], [5]]
    assert on_stream(ledger_url, "bad") == []


# ---------------------------------------------------------------- what is sent


@pytest.mark.parametrize("pooled", [False, True])
def test_only_a_pooler_is_told_where_a_transaction_begins_and_ends(
    ledger_url: str, home: Path, monkeypatch: pytest.MonkeyPatch, *, pooled: bool
) -> None:
    """Given an append that is alone, it is one flush, which commits by its end, or by COMMIT behind a pooler."""
    with whole(ledger_url, home, pooled=pooled) as appends:
        appends.store("s")
        sent, run = list[list[str]](), Flush.run

        def recorded(self: Flush, writes: Sequence[Write], *meanwhile: Any) -> list[Any]:
            sent.append([write.query for write in writes])
            return run(self, writes, *meanwhile)

        with monkeypatch.context() as patch:
            patch.setattr(Flush, "run", recorded)
            assert appends.store("s") == [2]

    (queries,) = sent
    assert (queries[0] == QUERIES["begin"], queries[-1] == QUERIES["commit"]) == (pooled, pooled)
    assert QUERIES["enter"] in queries and QUERIES["append_single"] in queries
