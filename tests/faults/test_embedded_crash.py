"""The embedded server after kill -9: of the postmaster, idle or busy, of everything, and in the middle of recovery."""

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gateway.embedded.processes import Identity, alive, standing_in
from tests.faults.embedded_home import (
    GRACE_S,
    Answer,
    House,
    gone_after_s,
    guardian_of,
    kill,
    until,
    watcher_of,
    worker,
)

MEGABYTE = 1 << 20


def test_committed_rows_survive_a_killed_postmaster(anybodys_house: House) -> None:
    """After kill -9 of an idle postmaster the next client recovers it, while an old client still lives."""
    house = anybodys_house
    _, first = house.stay()
    house.sql(first, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS number")
    watcher = watcher_of(first)
    kill(first.postmaster)
    second = house.visit()
    assert second.postmaster != first.postmaster
    assert house.sql(second, "SELECT count(*) FROM kept") == [[1000]]
    assert not alive(watcher)


def test_a_killed_postmaster_is_reaped(lived_in: House) -> None:
    """No zombie is left, whose pid PostgreSQL would take for a running server; both watching processes end."""
    _, answer = lived_in.stay(grace_s=1.0)
    watcher, guardian = watcher_of(answer), guardian_of(answer)
    kill(answer.postmaster)
    assert until(lambda: not Path(f"/proc/{answer.postmaster}").exists(), 5)
    assert gone_after_s(watcher, 5) is not None and gone_after_s(guardian, 5) is not None


def test_a_killed_postmaster_that_was_adopted_is_recovered(lived_in: House) -> None:
    """The same where the watching processes were killed before it."""
    _, first = lived_in.stay()
    watcher, guardian = watcher_of(first), guardian_of(first)
    kill(guardian)
    kill(watcher)
    kill(first.postmaster)
    assert lived_in.visit().postmaster != first.postmaster


def test_a_busy_backend_of_a_killed_postmaster_is_ended(lived_in: House) -> None:
    """A backend that computes outlives its postmaster; the next client waits for it, says so, and ends it."""
    _, first = lived_in.stay()
    asked = "SELECT count(*) FROM generate_series(1, 200000) a, generate_series(1, 100000) b WHERE a * b % 7 = 3"
    query = subprocess.Popen(
        [*lived_in.person.python, "-c", f"import psycopg; psycopg.connect({first.dsn!r}).execute({asked!r})"],
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=lived_in.person.environment,
    )
    try:
        assert until(lambda: _busy(lived_in, first))
        kill(first.postmaster)
        second = lived_in.visit()
        assert second.postmaster != first.postmaster
        assert "waiting for the last processes" in second.told
    finally:
        query.kill()
        query.wait()


@pytest.mark.parametrize("content", ["reused", "empty"])
def test_stale_pid_files_are_not_believed(lived_in: House, content: str) -> None:
    """Pid files that name an innocent process, or nothing, neither stop a start nor hurt the process."""
    _, first = lived_in.stay()
    account = first.uid
    kill(first.postmaster)
    identity: Identity = {} if account == os.geteuid() else {"user": account}
    innocent = subprocess.Popen(["/bin/sleep", "600"], cwd="/", **identity)
    try:
        for path in (first.state / "data/postmaster.pid", first.run / ".s.PGSQL.5432.lock"):
            assert path.exists()
            lines = path.read_text().split("\n")
            lines[0] = str(innocent.pid)
            path.write_text("\n".join(lines) if content == "reused" else "")
        assert lived_in.visit().postmaster != first.postmaster
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_recovery_of_an_import_takes_as_long_as_it_takes(lived_in: House) -> None:
    """Postmaster killed under a running import with 300 MB of WAL and live backends, its recovery held on purpose.

    All clients wait, are told, and find what was committed.
    """
    _, first = lived_in.stay()
    lived_in.sql(
        first,
        "ALTER SYSTEM SET max_wal_size = '20GB'",
        "ALTER SYSTEM SET checkpoint_timeout = '1d'",
        "SELECT pg_reload_conf()",
        "DROP TABLE IF EXISTS imported",
        "CREATE TABLE imported (number int, filler text)",
    )
    importer = _import_for_ever(lived_in, first)
    try:
        assert until(lambda: _wal_bytes(lived_in, first) > 300 * MEGABYTE, 60)
        committed = lived_in.sql(first, "SELECT count(*) FROM imported")[0][0]
        kill(first.postmaster)
        waiting = [lived_in.client() for _ in range(3)]
        held = _hold_recovery(first)
        assert waiting[0].hears("is recovering after a crash, ")
        assert all(client.waits for client in waiting)
        os.kill(held, signal.SIGCONT)
    finally:
        importer.kill()
        importer.wait()
    answers = [lived_in.noted(client.answer()) for client in waiting]
    assert {answer.postmaster for answer in answers} == {answers[0].postmaster}
    assert lived_in.sql(answers[0], "SELECT count(*) FROM imported")[0][0] >= committed > 0


@pytest.mark.soak
def test_a_suspended_postmaster_is_waited_for(lived_in: House) -> None:
    """It accepts and does not answer: no second server is started beside it."""
    _, answer = lived_in.stay()
    os.kill(answer.postmaster, signal.SIGSTOP)
    late = lived_in.client()
    time.sleep(2.0)
    assert late.waits
    os.kill(answer.postmaster, signal.SIGCONT)
    assert lived_in.noted(late.answer()).postmaster == answer.postmaster


def test_a_client_killed_in_its_first_start_leaves_nothing_half_made(house: House) -> None:
    """Killed at random points of initdb and start, over and over: the next one finds a whole cluster or none."""
    dice = random.Random(7)
    for _ in range(4):
        client = house.client()
        time.sleep(dice.uniform(0.2, 1.0))
        client.kill()
    answer = house.visit()
    assert answer.postmaster
    assert not list(answer.state.glob("data.new-*"))


@pytest.mark.soak
def test_anything_killed_at_random_points(anybodys_house: House) -> None:
    """Client, watching processes and postmaster killed at random points of a start: the next client always attaches."""
    house, dice = anybodys_house, random.Random(11)
    answer = house.visit()
    for round_ in range(14):
        client = house.client()
        time.sleep(dice.uniform(0.1, 0.4))
        if round_ % 2:
            _kill_watching(answer)
        client.kill()
        if round_ % 3 == 0:
            for pid in standing_in(answer.state / "data")[:1]:
                _kill_if_alive(pid)
        assert house.visit().postmaster
        if round_ % 4 == 0:
            house.stop()


@pytest.mark.soak
@pytest.mark.parametrize("before", ["fresh", "stopped", "killed"])
def test_twenty_processes_at_once(anybodys_house: House, before: str) -> None:
    """Twenty processes meet a fresh home, a stopped server and a killed one: each time one server."""
    house = anybodys_house
    if before != "fresh":
        first = house.visit()
        if before == "stopped":
            house.stop()
        else:
            kill(first.postmaster)
    clients = [house.client() for _ in range(20)]
    answers = [house.noted(client.answer()) for client in clients]
    assert len({answer.postmaster for answer in answers}) == 1
    assert sum("making a new" in answer.told for answer in answers) == (before == "fresh")


def test_the_grace_of_these_tests_outlives_them() -> None:
    """A test that does not speak of the grace must not meet it."""
    assert GRACE_S >= 60


def _busy(house: House, answer: Answer) -> bool:
    asked = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%generate_series%'"
    return house.sql(answer, asked + " AND pid <> pg_backend_pid()") == [[1]]


def _import_for_ever(house: House, answer: Answer) -> "subprocess.Popen[bytes]":
    """Start a process that commits 20,000 rows at a time until its server is gone."""
    batch = "INSERT INTO imported SELECT n, repeat('x', 500) FROM generate_series(1, 20000) n"
    code = (
        f"import psycopg\nc = psycopg.connect({answer.dsn!r}, autocommit=True)\nwhile True:\n    c.execute({batch!r})"
    )
    return subprocess.Popen(
        [*house.person.python, "-c", code],
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=house.person.environment,
        **house.person.identity,
    )


def _wal_bytes(house: House, answer: Answer) -> int:
    return int(house.sql(answer, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")[0][0])


def _hold_recovery(answer: Answer) -> int:
    """Suspend the startup process as soon as there is one; return its pid."""
    found: list[int] = []

    def look() -> bool:
        pid = worker(answer, "postgres: startup")
        if pid is not None:
            os.kill(pid, signal.SIGSTOP)
            found.append(pid)
        return bool(found)

    assert until(look), "recovery was over before it was seen"
    return found[0]


def _kill_watching(answer: Answer) -> None:
    with contextlib.suppress(OSError, AssertionError):
        for pid in (guardian_of(answer, 0.2), watcher_of(answer, 0.2)):
            _kill_if_alive(pid)


def _kill_if_alive(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
