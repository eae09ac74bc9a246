"""How many events a second `verify` checks, and how much memory it takes: a ledger of N sealed events, read whole.

    python -m benchmarks.verify_rate --events 1000000 --streams ulid
    python -m benchmarks.verify_rate --events 100000 --streams hashed --database-url postgresql://…

Every event is an append of its own, with a request, a payload and (but for `few`) a stream of its own. They are sealed
by the ledger's own functions and stored as rows, without the committer: this measures reading. Each pass runs in a
process of its own. Printed are its rate; its rate for each second of processor time that it and its helper took, which
says more on a machine with other work; and the peak of their memory, what they share counted twice. The best of
`--runs` is the figure; `--alone` leaves the helper out. Without a URL the embedded server is started in a temporary
home. The database that is named must hold no ledger yet.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

import migrations
from ledger.appending import group_writes
from ledger.clock import new_ulid, stamp, system_clock
from ledger.digest import LedgerKeys
from ledger.governance import AssignedName, NameAssigned
from ledger.keys import read_ledger_key
from ledger.memories import MemoryRemembered, Provenance, RevisionText
from ledger.message import Event, Facts, Move, Payload, ScopeIds, Standing, Values
from ledger.opening import KeyFiles, open_ledger
from ledger.sealing import Draft, Prepared, Sealer, Tip, prepare
from ledger.store import Database, Store
from ledger.verified import VerifiedLedger
from ledger.verify import verify

ROWS = 2_000
FEW_STREAMS = 100
TASKS = Path("/proc/self/task")  # on Linux; elsewhere children are not counted
WATCHED_EVERY_S = 0.05
SCOPE = ScopeIds(agent=None, project=f"prj_{new_ulid()}", session=None, task_family=None, user=None)
CONTENT = "Deploys are on Tuesdays, unless the release manager has said otherwise in the channel the day before."


class Writer:
    """Seals appends of one event and stores them by the thousand, as nobody's decision."""

    def __init__(self, ledger: VerifiedLedger, streams: str) -> None:
        self._store = ledger.store
        self._keys = ledger.keys
        self._sealer = Sealer(ledger.keys, ledger.origin)
        self._tip = Tip(ledger.walk.head, {})
        self._streams = streams
        self._few = [f"mem_{new_ulid()}" for _ in range(FEW_STREAMS)]

    def write(self, count: int) -> None:
        """Append so many events in one transaction."""
        at = stamp(system_clock())
        sealed = [one for _ in range(count) for one in self._sealer.seal(self._draft(), self._tip, at)]
        if self._streams != "few":
            self._tip.ends.clear()  # each stream has one event
        writes = group_writes(self._store.ledger, self._store.head(), sealed, [])
        with self._store.transaction() as connection:
            for write in writes:
                connection.execute(write.query.encode(), write.params)

    def _draft(self) -> Prepared:
        seq = self._tip.head.size
        stream, facts, payload = self._event(seq)
        request = self._keys.request(["human:ana", "remember"], str(seq))
        return prepare(
            Draft(
                op=f"op_{new_ulid()}",
                actor="pr_01JZ8Q0000000000000000000C",
                authn="local",
                request=request,
                fingerprint=request,
                events=((stream, Event(facts=facts, payload=payload, position=-1)),),
            )
        )

    def _event(self, seq: int) -> tuple[str, Facts, Payload]:
        if self._streams == "hashed":
            facts = NameAssigned(id=f"mem_{new_ulid()}", kind="memory", parent=SCOPE.project)
            return self._keys.name("memory", SCOPE.project, str(seq)), facts, AssignedName(name=f"name-{seq}")
        stream = f"mem_{new_ulid()}" if self._streams == "ulid" else self._few[seq % FEW_STREAMS]
        return stream, _remembered(seq, self._keys), text_of(seq)


def _remembered(seq: int, keys: LedgerKeys) -> MemoryRemembered:
    revision = f"rev_{new_ulid()}"
    fresh = Values("active", "unverified", "verified")
    standing = Standing(content_seq=seq, floor="verified", head=revision, meta_seq=seq, trust="unverified")
    move = Move(after=fresh, before=None, revision=revision, since=None, version=1)
    return MemoryRemembered(
        content=keys.content(SCOPE.project, str(seq)), edges=(), kind="fact", moves=(move,), origin="human",
        scope=SCOPE, standing=standing, supports=(), visibility="project",
    )  # fmt: skip


def text_of(seq: int) -> RevisionText:
    """Return a text like that of a short note."""
    return RevisionText(
        applies=None, confidence=None, content=f"{seq}: {CONTENT}", evidence=(), institutional=None,
        provenance=Provenance(run=None, session=None, sources=()), reason=None, recorded_at=None, review_by=None,
        subjects=(), tags=(), valid_from=None, valid_to=None,
    )  # fmt: skip


def build(url: str, home: Path, events: int, streams: str) -> Store:
    """Make a ledger of that many events in an empty database, and return its tables."""
    migrations.upgrade(url)
    files = _files(home)
    database = Database(url)
    ledger = open_ledger(database, tenant="local", files=files, clock=system_clock)
    ledger.catch_up()
    writer = Writer(ledger, streams)
    for first in range(1, events, ROWS):
        writer.write(min(ROWS, events - first))
    return ledger.store


def _files(home: Path) -> KeyFiles:
    return KeyFiles(home / "ledger.key", home / "signing.pem")


def one_pass(url: str, home: Path, ledger: str, *, alone: bool) -> dict[str, Any]:
    """Verify the ledger once, by this process and its helper; return rate, time and peak memory."""
    store = Store(Database(url), ledger)
    keys = read_ledger_key(_files(home).ledger).for_ledger(ledger)
    with children() as memory:
        began, worked = time.perf_counter(), _worked()
        report = verify(store, keys, processes=1 if alone else None)
        took, worked = time.perf_counter() - began, _worked() - worked
    assert report.ok and report.checks["chain"].why is None, msgspec.to_builtins(report.checks)
    peak = (_own_peak() + sum(memory.values())) / 1024
    return {"events": report.events, "rate": report.events / took, "own_rate": report.events / worked, "peak_mb": peak}


def _own_peak() -> int:
    """Return this process's peak memory in KiB; what `getrusage` says may be that of the process that began it."""
    with suppress(OSError):
        return _peak(Path("/proc/self/status"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)


def _peak(status: Path) -> int:
    _, _, rest = status.read_text().partition("VmHWM:")
    return int(rest.split()[0]) if rest else 0  # a process that has just ended has none


def _worked() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


@contextmanager
def children() -> Generator[dict[int, int]]:
    """Watch this process's children for as long as the block runs; afterwards, the peak memory of each in KiB."""
    peaks: dict[int, int] = {}
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(WATCHED_EVERY_S):
            for child in (int(one) for path in TASKS.glob("*/children") for one in path.read_text().split()):
                with suppress(OSError):  # it has ended
                    peaks[child] = _peak(Path(f"/proc/{child}/status")) or peaks.get(child, 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        is_over.set()
        watcher.join()


def measure(url: str, home: Path, ledger: str, runs: int, *, alone: bool = False) -> list[dict[str, Any]]:
    """Return what each of some passes measured, each in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.verify_rate", *(["--alone"] if alone else [])]
    command += ["--pass", url, str(home), ledger]
    root = Path(__file__).resolve().parents[1]
    return [json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True).stdout) for _ in range(runs)]


def _run(url: str, home: Path, asked: argparse.Namespace) -> None:
    began = time.perf_counter()
    store = build(url, home, asked.events, asked.streams)
    print(f"built {asked.events} events, streams {asked.streams}, in {time.perf_counter() - began:.0f} s", flush=True)
    passes = measure(url, home, store.ledger, asked.runs, alone=asked.alone)
    for found in sorted(passes, key=lambda found: -found["rate"]):
        print(
            "{rate:10,.0f} events/s   {own_rate:10,.0f} a second of its own   {peak_mb:5.0f} MB".format(**found),
            flush=True,
        )
    store.database.close()


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description="Measure the rate and the memory of a verification.")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--streams", choices=["ulid", "hashed", "few"], default="ulid")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--database-url")
    parser.add_argument("--alone", action="store_true", help="verify by one process")
    parser.add_argument("--pass", dest="one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        url, home, ledger = asked.one
        print(json.dumps(one_pass(url, Path(home), ledger, alone=asked.alone)))
        return
    with tempfile.TemporaryDirectory() as folder:
        if asked.database_url:
            _run(asked.database_url, Path(folder), asked)
            return
        from gateway.embedded import attach, stop  # not needed, and not to be loaded, when a server is given

        with attach(Path(folder) / "server", grace_s=5.0) as server:
            _run(server.owner_dsn, Path(folder), asked)
        stop(Path(folder) / "server", remove=True)


if __name__ == "__main__":
    main()
