"""Two hundred threads in four processes write while the server is killed: nothing is lost, doubled, skipped or forked.

`CORRIGENDA_TEST_SOAK_S` says for how many seconds they write (20; the full form is 60).
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.bootstrap import open_gateway
from gateway.embedded import attach, stop
from gateway.embedded.processes import standing_in
from tests.appends import assert_whole
from tests.faults.ledger_hands import ROOT
from tests.house import rows, written

SECONDS = float(os.environ.get("CORRIGENDA_TEST_SOAK_S", "20"))
PROCESSES, THREADS, KILLS = 4, 50, 4
GRACE_S = 60.0

pytestmark = pytest.mark.soak


@pytest.fixture
def alone(home: Path, no_settings: None) -> Iterator[Path]:
    """A home with a server and a ledger of its own."""
    with open_gateway(home=home, project="faults", actor="human:tester", embedder="none") as gateway:
        gateway.remember("before")
    yield home
    stop(home, remove=True)


def test_nothing_is_lost_or_doubled_while_the_server_is_killed(alone: Path, tmp_path: Path) -> None:
    """XC-01, XC-03, RC-14, RC-22: given 200 writers and a server killed under them, each key has one effect."""
    gate = tmp_path / "gate"
    children = [_writers(alone, gate, name) for name in "abcd"[:PROCESSES]]
    for child in children:
        assert child.stdout is not None and b"ready" in child.stdout.readline()
    with ThreadPoolExecutor(PROCESSES) as pool:
        ends = [pool.submit(child.communicate, timeout=SECONDS + 180) for child in children]
        gate.touch()
        killed: set[int] = set()
        for _ in range(KILLS):
            time.sleep(SECONDS / (KILLS + 1))
            killed.add(_kill_server(alone))
        told = [end.result() for end in ends]

    assert [child.returncode for child in children] == [0] * PROCESSES, [errors.decode()[-2_000:] for _, errors in told]
    answers: list[dict[str, Any]] = [json.loads(line) for said, _ in told for line in said.splitlines()]
    with attach(alone, grace_s=GRACE_S) as server:
        assert_whole(server.dsn, alone)
        _assert_once(server.dsn, answers)
    asked_again = [answer for answer in answers if answer["asked"] > 1]
    print(
        f"{len(answers)} appends in {SECONDS:.0f} s; {len(asked_again)} were asked for again, "
        f"{sum(answer['unknown'] > 0 for answer in answers)} after an unknown outcome, "
        f"{sum(answer['replayed'] for answer in answers)} were told what they had done"
    )
    assert len(answers) > PROCESSES * THREADS
    assert len(killed) == KILLS


def _assert_once(url: str, answers: list[dict[str, Any]]) -> None:
    """Fail unless each answered append is where it was said to be, once, and no other is there."""
    places = Counter(
        (move["revision"], event.seq)
        for event in written(url)
        for move in event.facts.get("moves", ())
        if move["before"] is None
    )
    said = Counter((answer["revision"], answer["position"]) for answer in answers)
    assert said - places == Counter(), "acknowledged, and not there"
    assert len(places - said) == 1, "there, and asked for by nobody: only the one that was there before may be"
    assert max(places.values()) == 1
    assert len({answer["key"] for answer in answers}) == len(answers)
    assert rows(url, "SELECT count(*) FROM corrigenda.revision") == [(len(answers) + 1,)]
    assert rows(url, "SELECT count(*) FROM corrigenda.outbox WHERE effect = 'put'") == [(len(answers) + 1,)]


def _writers(home: Path, gate: Path, name: str) -> "subprocess.Popen[bytes]":
    where = {"home": str(home), "project": "faults", "actor": "human:tester", "embedder": "none"}
    words = {"where": where, "gate": str(gate), "name": name, "threads": THREADS, "seconds": SECONDS}
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.enduring", json.dumps(words)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment,
    )  # fmt: skip


def _kill_server(home: Path) -> int:
    """Kill every process of a home's server, as a power cut would, and return its postmaster's id.

    The postmaster's death alone interrupts nobody: a backend ends when it has answered.
    """
    with attach(home, grace_s=GRACE_S) as server:
        (folder,) = rows(server.dsn, "SHOW data_directory")[0]
        postmaster = int((Path(folder) / "postmaster.pid").read_text().split()[0])
        for pid in [postmaster, *standing_in(Path(folder))]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return postmaster
