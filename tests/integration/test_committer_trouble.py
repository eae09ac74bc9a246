"""What the committer makes of a database that refuses, of rows that nobody wrote, and of other writers."""

import time
import tracemalloc
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from ledger import committer
from ledger.errors import UnavailableError
from ledger.limits import QUEUE_MAX
from ledger.sealing import Draft
from tests.appends import (
    DEADLINE_S,
    LOCK_HEAD,
    Appends,
    on_stream,
    planted,
    positions,
    replayed,
    results,
    transactions,
    waiter,
    whole,
)
from tests.house import last_position, refused, rows, tamper
from tests.roles import as_owner

REFUSE_BAD = "IF NEW.stream = 'name_bad' THEN RAISE EXCEPTION 'not this one' USING ERRCODE = '23514'; END IF;"
ANY_DEFAULTS = "-c default_transaction_read_only=off -c statement_timeout=0"
PASSES = ("40001", "40P01", "55P03", "57P03", "53100", "53200", "53300")


@pytest.fixture
def appends(ledger_url: str, home: Path, no_settings: None) -> Iterator[Appends]:
    """Return the committer of one process on a new ledger; what it leaves has to be whole."""
    with whole(ledger_url, home) as made:
        yield made


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let groups be tried for half a second."""
    monkeypatch.setattr(committer, "PATIENCE_S", 0.5)


# ---------------------------------------------------------------- one that is refused


@pytest.mark.parametrize("bad", [[0], [4], [9], [0, 5, 9], [*range(10)]])
def test_of_a_group_only_what_the_database_refuses_is_refused(
    appends: Appends, ledger_url: str, bad: list[int]
) -> None:
    """XC-01: given a group in which the database refuses some appends, they alone fail; the rest keeps its order."""
    with planted(ledger_url, REFUSE_BAD):
        with appends.waiting():
            futures = [appends.submit("good", "bad" if number in bad else "good") for number in range(10)]
        outcomes = [future.exception(DEADLINE_S) or positions(future.result()) for future in futures]

    refusals = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert [isinstance(outcome, UnavailableError) for outcome in outcomes] == [number in bad for number in range(10)]
    assert all("nothing was stored" in str(refusal) for refusal in refusals)
    stored = [position for outcome in outcomes if isinstance(outcome, list) for position in outcome]
    assert stored == [*range(2, 22 - 2 * len(bad))]
    assert on_stream(ledger_url, "bad") == []
    assert appends.store("bad") == [22 - 2 * len(bad)]


def test_sifting_takes_nothing_more_in(appends: Appends, ledger_url: str) -> None:
    """Given one that is refused while others keep coming, then it has its answer before those that came after it."""
    answered: list[int] = []
    with planted(ledger_url, REFUSE_BAD):
        with appends.waiting():
            futures = [appends.submit(*["good" if number % 100 else "bad"] * 20) for number in range(300)]
            for number, future in enumerate(futures):
                future.add_done_callback(lambda _, number=number: answered.append(number))
        errors = [future.exception(DEADLINE_S) for future in futures]

    assert [number for number, error in enumerate(errors) if error] == [0, 100, 200]
    assert answered == [*range(300)]


def test_a_refusal_tells_nothing_of_what_was_to_be_stored(appends: Appends, ledger_url: str) -> None:
    """XC-04: given a CHECK that a payload fails, the server quotes the row, and the refusal does not."""
    with psycopg.connect(as_owner(ledger_url), autocommit=True) as connection:
        connection.execute("ALTER TABLE corrigenda.payload ADD CONSTRAINT short CHECK (length(body) < 100)")
        try:
            error = appends.submit("s", name="secret" * 30).exception(DEADLINE_S)
        finally:
            connection.execute("ALTER TABLE corrigenda.payload DROP CONSTRAINT short")

    assert isinstance(error, UnavailableError)
    assert "short" in str(error)
    assert b"secret".hex() not in str(error) and "Failing row" not in str(error)


def test_a_database_that_may_only_be_read_is_told_at_once(appends: Appends, ledger_url: str) -> None:
    """Given a database that may only be read, then UNAVAILABLE, without patience; as soon as it can, it stores."""
    with role_setting(ledger_url, "default_transaction_read_only = on"):
        cut_off(ledger_url)
        began = time.monotonic()
        with refused("UNAVAILABLE") as refusal:
            appends.submit("s", key="k").result(DEADLINE_S)
        assert time.monotonic() - began < committer.PATIENCE_S / 2

    assert "nothing was stored" in refusal.error.message
    cut_off(ledger_url)
    assert appends.store("s", key="k") == [1]


def test_a_group_that_takes_longer_than_a_statement_may_is_stored_one_by_one(
    ledger_url: str, home: Path, no_settings: None
) -> None:
    """Given a role's statement_timeout that a group runs into, then its appends are stored each alone, in order."""
    setting, slowly = "statement_timeout = 1500", "PERFORM pg_sleep(0.4);"
    with role_setting(ledger_url, setting), whole(ledger_url, home) as appends, planted(ledger_url, slowly):
        with appends.waiting():
            futures = [appends.submit("s") for _ in range(5)]
        stored = [positions(outcome) for outcome in results(futures)]

    assert stored == [[2], [3], [4], [5], [6]]
    assert transactions(ledger_url)[1:] == stored


# ---------------------------------------------------------------- rows that nobody wrote


PLANT = {
    "event": (
        "INSERT INTO corrigenda.event SELECT ledger, %s, 'name_x', 0, envelope, hash, seal, NULL"
        " FROM corrigenda.event WHERE seq = 0"
    ),
    "payload": "INSERT INTO corrigenda.payload SELECT ledger, %s, 'salt', 'body' FROM corrigenda.head",
}


@pytest.mark.parametrize("table", PLANT)
def test_a_row_that_nobody_wrote_stops_all_appends_at_once(
    appends: Appends, ledger_url: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """XC-03: given a foreign row above the head, each append is INTEGRITY_BROKEN, and the group is not taken apart."""
    at = last_position(ledger_url) + 2
    tried: list[int] = []
    write = committer.group_writes
    monkeypatch.setattr(committer, "group_writes", lambda *given: tried.append(len(given[2])) or write(*given))
    with appends.waiting():
        tamper(ledger_url, (PLANT[table], [at]))
        futures = [appends.submit("s") for _ in range(20)]

    for future in futures:
        with refused("INTEGRITY_BROKEN") as refusal:
            future.result(DEADLINE_S)
        assert refusal.details["position"] == at
    assert len(tried) <= 4, "each of the group was tried alone"

    tamper(ledger_url, (f"DELETE FROM corrigenda.{table} WHERE seq = %s", [at]))  # noqa: S608 - from PLANT
    assert appends.store("s") == [at]


def test_a_row_under_another_streams_name_stops_only_that_stream(appends: Appends, ledger_url: str) -> None:
    """XC-03: given a row relabelled to where a stream goes on, it is INTEGRITY_BROKEN there, and there alone."""
    (at,) = appends.store("s")
    tamper(ledger_url, ("UPDATE corrigenda.event SET stream = 'name_t' WHERE seq = %s", [at]))
    with appends.waiting():
        futures = [appends.submit(stream) for stream in "utu"]

    with refused("INTEGRITY_BROKEN") as refusal:
        futures[1].result(DEADLINE_S)
    assert refusal.details["check"] == "streams"
    assert [positions(future.result(DEADLINE_S)) for future in futures[::2]] == [[at + 2], [at + 3]]

    tamper(ledger_url, ("UPDATE corrigenda.event SET stream = 'name_s' WHERE seq = %s", [at]))
    assert appends.store("t") == [at + 4]


def test_a_head_row_that_is_gone_is_named(appends: Appends, ledger_url: str) -> None:
    """XC-03: given a head row that somebody removed, an append is INTEGRITY_BROKEN; once it is back, all is well."""
    head = rows(ledger_url, "SELECT * FROM corrigenda.head")[0]
    tamper(ledger_url, ("DELETE FROM corrigenda.head", []))

    with refused("INTEGRITY_BROKEN"):
        appends.submit("s").result(DEADLINE_S)

    tamper(ledger_url, ("INSERT INTO corrigenda.head VALUES (%s, %s, %s, %s, %s, %s)", list(head)))
    assert appends.store("s") == [1]


# ---------------------------------------------------------------- trouble that passes


@pytest.mark.parametrize("state", PASSES)
def test_trouble_that_passes_is_waited_for(appends: Appends, ledger_url: str, state: str) -> None:
    """XC-01: given a server in trouble that passes, when it has passed, then what waited is stored, once."""
    raising = f"RAISE EXCEPTION 'in trouble' USING ERRCODE = '{state}';"
    with planted(ledger_url, raising):
        future = appends.submit("s")
        with pytest.raises(TimeoutError):
            future.result(0.3)

    assert positions(future.result(DEADLINE_S)) == [1]
    assert on_stream(ledger_url, "s") == [1]


@pytest.mark.usefixtures("short_patience")
@pytest.mark.parametrize("state", PASSES)
def test_trouble_that_does_not_pass_is_told(appends: Appends, ledger_url: str, state: str) -> None:
    """XC-01, RC-21: given trouble without end, then UNAVAILABLE for the whole group, which says nothing was stored."""
    raising = f"RAISE EXCEPTION 'in trouble' USING ERRCODE = '{state}';"
    with planted(ledger_url, raising):
        futures = [appends.submit("s", key=f"k{number}") for number in range(3)]
        errors = [future.exception(DEADLINE_S) for future in futures]

    assert [isinstance(error, UnavailableError) for error in errors] == [True] * 3
    assert all("nothing was stored" in str(error) and "in trouble" in str(error) for error in errors)
    assert last_position(ledger_url) == 0
    assert appends.store("s", key="k0") == [1]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_default_isolation_of_the_role_changes_nothing(
    ledger_url: str, home: Path, no_settings: None, level: str
) -> None:
    """Given a role whose default is a stricter isolation, when two processes write in turns, each append is stored."""
    setting = f"default_transaction_isolation = '{level}'"
    with role_setting(ledger_url, setting), whole(ledger_url, home) as one, whole(ledger_url, home) as other:
        assert [place for _ in range(5) for by in (one, other) for place in by.store("s")] == [*range(1, 11)]
        with one.waiting():
            futures = [by.submit("s") for _ in range(10) for by in (one, other)]
        results(futures)

    assert len(on_stream(ledger_url, "s")) == 30


# ---------------------------------------------------------------- other writers


def test_what_other_processes_stored_is_followed_under_the_lock(appends: Appends, ledger_url: str, home: Path) -> None:
    """XC-08: given appends of another process, when this one appends next, it links to theirs and knows their keys."""
    with whole(ledger_url, home) as other:
        for number in range(4):
            other.store("s", key=f"theirs {number}")
        assert appends.store("s") == [5]
        assert other.store("s") == [6]
        assert replayed(appends.submit("s", key="theirs 2").result(DEADLINE_S)) == 3
    assert appends.ledger.stream("name_s")[-1].entry.position == 6


def test_writers_that_meet_take_turns(ledger_url: str, home: Path, no_settings: None) -> None:
    """LM-42, XC-01: given two processes with a lot to store at once, then each append is stored, without a gap."""
    with whole(ledger_url, home) as one, whole(ledger_url, home) as other:
        futures = [by.submit("s", "t") for _ in range(100) for by in (one, other)]
        found = [position for outcome in results(futures) for position in positions(outcome)]

    assert sorted(found) == [*range(1, 401)]


@pytest.mark.parametrize("behind", [6, 7, 8, 30])
def test_a_gap_of_more_than_a_page_is_followed_before_the_lock(
    appends: Appends, ledger_url: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: int
) -> None:
    """Given more entries of others than are followed under the lock, they are followed first, and the append stored."""
    monkeypatch.setattr(committer, "GAP_MAX", 7)
    monkeypatch.setenv("CORRIGENDA_ANCHOR", str(tmp_path / "elsewhere"))
    with whole(ledger_url, home) as other:
        for _ in range(behind):
            other.store("s")
    monkeypatch.delenv("CORRIGENDA_ANCHOR")

    assert appends.store("s") == [behind + 1]
    assert appends.store("s") == [behind + 2]


def test_who_holds_the_head_comes_between_groups(appends: Appends, ledger_url: str) -> None:
    """Given a page that is decided on the locked head, it is stored on it, and what is submitted meanwhile after it."""
    with appends.committer.hold() as held:
        waiting = appends.submit("s")
        stored = held.store([appends.draft("s"), appends.draft("s", "t")])
        assert not waiting.done()

    assert [[item.entry.position for item in one] for one in stored] == [[1], [2, 3]]
    assert positions(waiting.result(DEADLINE_S)) == [4]
    assert transactions(ledger_url) == [[1, 2, 3], [4]]


def test_a_held_page_that_fails_leaves_nothing(appends: Appends, ledger_url: str) -> None:
    """XC-01, RC-27: given a failure after a page was stored, before its end, nothing of it is there."""
    with pytest.raises(RuntimeError), appends.committer.hold() as held:
        held.store([appends.draft("s")])
        raise RuntimeError("changed my mind")

    assert last_position(ledger_url) == 0
    assert appends.store("s") == [1]


# ---------------------------------------------------------------- too much at once


def test_a_full_queue_refuses_and_takes_no_memory(ledger_url: str, home: Path, no_settings: None) -> None:
    """RC-21: given 4,096 that wait, 100,000 further ones are QUEUE_FULL, in ≤ 20 MB; what was taken is stored."""
    with whole(ledger_url, home) as appends:
        with psycopg.connect(as_owner(ledger_url)) as connection:
            connection.execute(LOCK_HEAD)
            futures = [appends.submit("s")]
            waiter(ledger_url)
            futures += [appends.submit("s") for _ in range(QUEUE_MAX)]
            draft = appends.draft("s")
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()
            refusals = Counter(refusal_of(appends, draft) for _ in range(100_000))
            grown = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
        assert refusals == {("QUEUE_FULL", 100, True): 100_000}
        assert grown <= 20_000_000
        assert len({position for outcome in results(futures) for position in positions(outcome)}) == QUEUE_MAX + 1
        assert appends.store("s") == [QUEUE_MAX + 2]


# ---------------------------------------------------------------- hands


def refusal_of(appends: Appends, draft: Draft) -> tuple[str, int | None, bool]:
    """Submit an append that is refused at once, and return what the refusal says to programs."""
    try:
        appends.committer.submit(draft)
    except UnavailableError as error:
        return error.code, error.retry_after_ms, error.retriable
    raise AssertionError("it was taken")


def cut_off(ledger_url: str) -> None:
    """End every other connection to this database."""
    with psycopg.connect(as_owner(ledger_url), autocommit=True, options=ANY_DEFAULTS) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@contextmanager
def role_setting(ledger_url: str, setting: str) -> Generator[None]:
    """Give the role of these tests a default in this database, for connections that are made from now on."""
    name = setting.partition(" ")[0]
    alter_role(ledger_url, f"SET {setting}")
    try:
        yield
    finally:
        alter_role(ledger_url, f"RESET {name}")


def alter_role(ledger_url: str, change: str) -> None:
    """Change the role's defaults in this database, whatever they are now."""
    with psycopg.connect(ledger_url, autocommit=True, options=ANY_DEFAULTS) as connection:
        connection.execute(f"ALTER ROLE CURRENT_USER IN DATABASE {connection.info.dbname} {change}".encode())
