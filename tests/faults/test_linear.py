"""G6: what is withdrawn is in no answer that began afterwards, from any process, whatever state its index is in.

Writers revoke, correct and contest while other processes search: with a live replica, with a frozen one, with one that
came from an old generation, and in processes that are killed. A reader that believes its index shows that such
answers would be seen here.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.bootstrap import open_gateway
from tests.faults.children import Counting
from tests.faults.ledger_hands import ROOT, Document, assert_in_order

SLOW_S = 600.0
QUERY = "how is the harbour on day"


class Size(NamedTuple):
    """How much is done: revisions that each writer takes out, pause between, searches of each reader, the readers."""

    writers: tuple[str, ...]
    withdrawn: int
    pause_s: float
    searches: int
    readers: tuple[str, ...]

    @property
    def days(self) -> int:
        """Return how many memories there are; every second one is taken out, so that others can be found."""
        return 2 * self.withdrawn * len(self.writers)


SMALL = Size(("first",), 24, 0.01, 20, ("live", "old"))
SOAK = Size(("first", "second"), 510, 0.05, 4_000, ("live", "frozen", "old"))


class Withdrawn(NamedTuple):
    """One revision that was taken out: at which position, and by when its writer knew."""

    revision: str
    position: int
    at: float


class Bench:
    """The processes of one run, and what they noted."""

    def __init__(self, where: Document, folder: Path, size: Size) -> None:
        self.where, self.folder, self.size = where, folder, size
        self.gate, self.stop = folder / "gate", folder / "stop"
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, act: str, *, home: Path | None = None, **words: Any) -> None:  # Any: JSON
        """Start a process, and wait until it stands before the gate."""
        where = {**self.where, **({} if home is None else {"home": str(home)})}
        given = {"act": act, "where": where, "notes": str(self.folder / f"{name}.notes"), "gate": str(self.gate)}
        given |= {"stop": str(self.stop), "query": QUERY, "at_least": self.size.searches}
        given |= {"days": self.size.days, **words}
        with (self.folder / f"{name}.complaints").open("wb") as complaints:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.linear_children", json.dumps(given)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                cwd=ROOT,
                env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"},
            )
        self._running[name] = process
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", (self.folder / f"{name}.complaints").read_text()

    def end(self, name: str) -> None:
        """Wait for a process, which should come to its end."""
        process = self._running.pop(name)
        assert process.wait(timeout=SLOW_S) == 0, (self.folder / f"{name}.complaints").read_text()
        assert process.stdout is not None
        process.stdout.close()

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.communicate()

    def kill(self, name: str) -> None:
        """Kill a process outright."""
        process = self._running.pop(name)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert process.stdout is not None
        process.stdout.close()

    def notes(self, name: str) -> list[Document]:
        """Return what a process noted; the last line of a killed one may be half written."""
        lines = (self.folder / f"{name}.notes").read_bytes().split(b"\n")
        return [json.loads(line) for line in lines[:-1]]

    def withdrawn(self) -> list[Withdrawn]:
        """Return what the writers took out."""
        return [Withdrawn(**one) for name in self.size.writers for one in self.notes(name)]


def run(where: Document, folder: Path, size: Size) -> Bench:
    """Let writers and readers go at each other; return what they noted."""
    with Bench(where, folder, size) as bench:
        _run(bench)
    return bench


def _run(bench: Bench) -> None:
    size = bench.size
    revisions = _filled(bench.where, size.days)[::2]
    old = bench.folder / "old home"
    shutil.copytree(bench.where["home"], old)
    for number, name in enumerate(size.writers):
        bench.start(name, "withdraw", revisions=revisions[number :: len(size.writers)], pause_s=size.pause_s)
    for name in size.readers:
        home = old if name == "old" else None
        bench.start(name, "search", frozen=name != "live", believes=name == "old", home=home)
    bench.start("killed", "search", frozen=False, believes=False, at_least=10**9)
    bench.gate.touch()
    bench.end(size.writers[0])
    bench.kill("killed")
    for name in size.writers[1:]:
        bench.end(name)
    bench.stop.touch()
    for name in size.readers:
        bench.end(name)


def _filled(where: Document, count: int) -> list[str]:
    """Remember texts that every search finds, and return their revisions, in an index that was kept."""
    with open_gateway(**where) as gateway:
        texts = [f"{QUERY} {number}" for number in range(count)]
        return [gateway.remember(text).revision_id or "" for text in texts]


def stale(bench: Bench, name: str, *, confirms: bool = True) -> list[tuple[str, int]]:
    """Return what a reader was told too late, in the searches that confirm or in the others, with the search's number.

    That is each hit that was withdrawn by a commit before the search began, or by the position that the answer names;
    and `behind` for each answer of a position before one that was acknowledged when the search began.
    """
    gone = {one.revision: one for one in bench.withdrawn()}
    acknowledged = sorted((one.at, one.position) for one in gone.values())
    times = [at for at, _ in acknowledged]
    highest = _running_maximum(position for _, position in acknowledged)
    found: list[tuple[str, int]] = []
    for number, search in enumerate(bench.notes(name)):
        if search["confirms"] is not confirms:
            continue
        before = bisect_right(times, search["began"])
        if before and search["position"] < highest[before - 1]:
            found.append(("behind", number))
        for hit in search["hits"]:
            one = gone.get(hit)
            if one and (one.at < search["began"] or one.position <= search["position"]):
                found.append((hit, number))
    return found


def _running_maximum(numbers: Iterable[int]) -> list[int]:
    highest: list[int] = []
    for number in numbers:
        highest.append(max(number, highest[-1] if highest else number))
    return highest


def assert_linear(bench: Bench) -> None:
    """Assert that nobody who confirms was ever late, and that who does not was seen to be."""
    for name in (*bench.size.readers, "killed"):
        assert stale(bench, name) == [], name
        assert any(answer["hits"] for answer in bench.notes(name)), f"{name} found nothing at all"
    seen = {hit for hit, _ in stale(bench, "old", confirms=False)}
    assert len(seen) > min(len(bench.withdrawn()) // 10, 10), "an index that is believed should have been seen to lie"
    assert_in_order(bench.where)


def test_no_answer_holds_what_was_withdrawn_before_it_began(
    where: Document, tmp_path: Path, counting: Counting
) -> None:
    """G6, XC-08, OH-18: writers against a live, a killed and an old replica; believing the old one is seen."""
    bench = run(where, tmp_path, SMALL)
    assert len(bench.withdrawn()) == SMALL.withdrawn
    assert_linear(bench)


@pytest.mark.soak
def test_no_answer_holds_what_was_withdrawn_before_it_began_in_a_long_run(
    where: Document, tmp_path: Path, counting: Counting
) -> None:
    """G6: at least 10^4 confirmed searches against at least 10^3 withdrawals."""
    began = time.monotonic()
    bench = run(where, tmp_path, SOAK)
    assert len(bench.withdrawn()) >= 1_000
    answers = [answer for name in (*SOAK.readers, "killed") for answer in bench.notes(name)]
    searches = sum(answer["confirms"] for answer in answers)
    assert searches >= 10_000, f"{searches} in {time.monotonic() - began:.0f} s"
    assert_linear(bench)
