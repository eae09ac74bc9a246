"""`log --follow`: every event once, in order, at once; over a restart of the database, and never over a gap."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from gateway.bootstrap import open_gateway
from gateway.embedded import attach
from gateway.embedded.processes import listener
from tests.faults.embedded_home import ROOT, House, kill
from tests.faults.ledger_hands import Document
from tests.house import tamper

SLOW_S = 60.0


def _hears_interrupts() -> None:
    """Undo what a shell does to whatever it runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Follower:
    """A `log --follow -o jsonl` that runs, and what it has printed."""

    def __init__(self, where: Document, *words: str) -> None:
        given = {name: where[name] for name in ("database_url", "home", "project") if where.get(name)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from cli.main import main; main()", "log", "--follow", *(words or ("-o", "jsonl"))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={f"CORRIGENDA_{name.upper()}": str(value) for name, value in given.items()}
            | {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "error"},
            preexec_fn=_hears_interrupts,
        )
        self._watchdog = threading.Timer(SLOW_S, self._process.kill)
        self._watchdog.start()
        self.lines: list[str] = []

    def until(self, seq: int) -> list[int]:
        """Read until it has printed that position, and return all the positions so far."""
        assert self._process.stdout is not None
        while not self.lines or json.loads(self.lines[-1])["seq"] < seq:
            line = self._process.stdout.readline().decode()
            assert line, self._process.communicate()[1].decode()
            self.lines.append(line)
        return [json.loads(line)["seq"] for line in self.lines]

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; return its exit and what it left on stderr."""
        self._process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> tuple[int, str]:
        """Wait for its end; return its exit and its stderr."""
        out, complaints = self._process.communicate(timeout=SLOW_S)
        self.lines += out.decode().splitlines()
        self._watchdog.cancel()
        return self._process.returncode, complaints.decode()

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.communicate()
        self._watchdog.cancel()


@pytest.fixture
def started() -> Iterator[list[Follower]]:
    """Return a list of followers that are ended with the test."""
    followers: list[Follower] = []
    yield followers
    for one in followers:
        one.kill()


def write(where: Document, texts: list[str]) -> int:
    """Remember some texts; return the last position."""
    with open_gateway(**{**where, "embedder": "none"}) as gateway:
        return max(gateway.remember(text).position for text in texts)


def test_every_event_is_printed_once_and_in_order(where: Document, started: list[Follower]) -> None:
    """Given two writers at once, then each event is printed when it is committed; Ctrl-C ends it with 130, silently."""
    before = write(where, ["the first"])
    started.append(Follower(where))
    assert started[0].until(before) == [*range(before + 1)]

    ends: list[int] = []
    writers = [
        threading.Thread(target=lambda name=name: ends.append(write(where, [f"{name} {n}" for n in range(20)])))
        for name in ("a", "b")
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert started[0].until(max(ends)) == [*range(max(ends) + 1)]
    assert started[0].interrupt() == (130, "")


def test_it_begins_with_the_latest_and_filters(where: Document, started: list[Follower]) -> None:
    """`--limit` counts what is there already; a filter holds for what comes, too."""
    last = write(where, [f"text {n}" for n in range(5)])
    started.append(Follower(where, "--limit", "2", "--type", "memory.remembered.v1", "-o", "jsonl"))
    assert started[0].until(last) == [last - 1, last]
    with open_gateway(**{**where, "embedder": "none"}) as gateway:
        gateway.correct(gateway.remember("one more").revision_id or "", "and another")
        end = gateway.remember("the last").position
    assert started[0].until(end) == [last - 1, last, last + 1, end]


def test_it_outlives_a_restart_of_the_database(house: House, no_settings: None, started: list[Follower]) -> None:
    """Given a server that is killed while it is followed, then what is written later comes next, nothing twice."""
    where: Document = {"database_url": None, "home": house.home, "project": "faults", "embedder": "none"}
    before = write(where, ["the first"])
    house.homes.add(str(house.home))
    started.append(Follower(where))
    assert started[0].until(before) == [*range(before + 1)]
    for turn in range(2):
        with attach(house.home) as server:
            found = listener(server.place.socket)
            assert found is not None
            kill(found.pid)
        end = write(where, [f"after {turn}"])
        assert started[0].until(end) == [*range(end + 1)]
    assert started[0].interrupt()[0] == 130


@pytest.mark.parametrize(
    "act",
    [
        "DELETE FROM corrigenda.event WHERE seq = 2",
        "DELETE FROM corrigenda.event WHERE seq = 3",
        "UPDATE corrigenda.head SET seq = 1",
    ],
)
def test_it_never_goes_on_over_a_gap(where: Document, started: list[Follower], act: str) -> None:
    """Given an event that is missing, or a head set back, then it ends with INTEGRITY_BROKEN and exit 10."""
    last = write(where, ["the first"])
    if act.startswith("DELETE"):
        tamper(where["database_url"], (act, []))
    started.append(Follower(where))
    if act.startswith("UPDATE"):
        started[0].until(last)
        tamper(where["database_url"], (act, []))
    code, complaint = started[0].end()
    assert code == 10 and '"INTEGRITY_BROKEN"' in complaint


def test_it_tells_of_a_database_that_does_not_answer(where: Document, started: list[Follower], home: Path) -> None:
    """A database that never answered is UNAVAILABLE at once: it waits only for one that has."""
    started.append(Follower({**where, "database_url": f"host={home} dbname=nowhere"}))
    code, complaint = started[0].end()
    assert code == 7 and '"UNAVAILABLE"' in complaint


def test_a_session_that_is_cut_is_made_anew(where: Document, started: list[Follower]) -> None:
    """Given a follower whose sessions are ended by an administrator again and again, then it says so and goes on."""
    before = write(where, ["the first"])
    started.append(Follower(where, "-o", "jsonl"))
    started[0].until(before)
    with psycopg.connect(where["database_url"], autocommit=True) as connection:
        for turn in range(3):
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            end = write(where, [f"after {turn}"])
            assert started[0].until(end) == [*range(end + 1)]
