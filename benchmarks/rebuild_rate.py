"""How fast all read models are rebuilt beside message-db's count per stream, in how much memory, and what swaps block.

    python -m benchmarks.rebuild_rate [--events 1000000] [--rounds 3] [--json FILE]

The ledger is one of N sealed events, three in ten of them corrections of an earlier head, stored with their read models
but without the committer. Each pass runs in a process of its own: it opens the ledger, rebuilds everything and compares
it with what is live; its peak memory and the time that its swap held the head's lock are kept. One more pass rebuilds
while a thread of its process appends without pause, and tells how long the slowest append took. Rounds take turns with
message-db's simplest read model over as many events, and the best rounds are compared: neighbours only slow one down.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import migrations
from benchmarks import bars, message_db, peers, server
from benchmarks.bars import Bar, Line
from benchmarks.verify_rate import ROWS, SCOPE, text_of
from benchmarks.workload import Run
from ledger.appending import group_writes
from ledger.chain import StreamHead
from ledger.clock import new_ulid, stamp, system_clock
from ledger.committer import Committer
from ledger.flush import Flush
from ledger.memories import FRESH, Birth, MemoryRemembered, RevisionCorrected
from ledger.message import Edge, Event, Move, Standing, Values
from ledger.opening import KeyFiles, open_ledger
from ledger.sealing import Draft, Sealed, Sealer, Tip, prepare
from ledger.store import Database
from ledger.verified import VerifiedLedger
from projections.models import ALL, TABLES
from projections.rebuilding import rebuild

BATCH = 1_000
MEMORY_MB_MAX = 150.0
BLOCKED_MS_MAX = 30.0
CORRECTED = 0.3
HEADS_KEPT = 2_000  # the heads that may still be corrected
SUPERSEDED = Values("superseded", "unverified", "verified")


class _Head(NamedTuple):
    """A lineage's end: its stream, where that ends, and the revision that is its head."""

    stream: str
    end: StreamHead
    revision: str
    since: int
    version: int


class Writer:
    """Seals appends of one event and stores them by the thousand with their read models, as nobody's decision."""

    def __init__(self, ledger: VerifiedLedger) -> None:
        self._ledger = ledger
        self._sealer = Sealer(ledger.keys, ledger.origin)
        self._tip = Tip(ledger.walk.head, {})
        self._chance = random.Random(7)
        self._heads: list[_Head] = []

    def write(self, count: int) -> None:
        """Append so many events in one transaction."""
        at, store = stamp(system_clock()), self._ledger.store
        sealed = [one for _ in range(count) for one in self._one(at)]
        writes = group_writes(store.ledger, store.head(), sealed, ALL)
        with store.transaction() as connection:
            Flush(connection, prepare=False).run(writes)

    def draft(self) -> Draft:
        """Return the append of one more lineage, for a committer."""
        return self._drafted(f"mem_{new_ulid()}", self._remembered())

    def _one(self, at: str) -> list[Sealed]:
        corrects = len(self._heads) > 1 and self._chance.random() < CORRECTED
        head = self._heads.pop(self._chance.randrange(len(self._heads))) if corrects else None
        stream, facts = (
            (f"mem_{new_ulid()}", self._remembered()) if head is None else (head.stream, self._corrected(head))
        )
        self._tip.ends = {} if head is None else {stream: head.end}
        sealed = self._sealer.seal(prepare(self._drafted(stream, facts)), self._tip, at)
        born = facts.moves[-1]
        seq = self._tip.head.size - 1
        self._heads.append(_Head(stream, self._tip.ends[stream], born.revision, seq, born.version))
        if len(self._heads) > HEADS_KEPT:
            del self._heads[0]
        return sealed

    def _remembered(self) -> MemoryRemembered:
        born = Move(after=FRESH, before=None, revision=f"rev_{new_ulid()}", since=None, version=1)
        return MemoryRemembered(
            content=new_ulid(), edges=(), kind="fact", moves=(born,), origin="human", scope=SCOPE,
            standing=_standing(born), supports=(), visibility="project",
        )  # fmt: skip

    def _corrected(self, head: _Head) -> RevisionCorrected:
        ended = Move(
            after=SUPERSEDED, before=FRESH, revision=head.revision, since=head.since, version=head.version
        )  # fmt: skip
        born = Move(after=FRESH, before=None, revision=f"rev_{new_ulid()}", since=None, version=head.version + 1)
        return RevisionCorrected(
            content=new_ulid(), edges=(Edge("supersedes", born.revision, head.revision, None),), kind="fact",
            moves=(ended, born), origin="human", scope=SCOPE, standing=_standing(born), supports=(), trace=None,
            visibility="project",
        )  # fmt: skip

    def _drafted(self, stream: str, facts: Birth) -> Draft:
        request = self._ledger.keys.request(["human:ana", "remember"], new_ulid())
        return Draft(
            op=f"op_{new_ulid()}",
            actor="pr_01JZ8Q0000000000000000000C",
            authn="local",
            request=request,
            fingerprint=request,
            events=((stream, Event(facts=facts, payload=text_of(self._tip.head.size), position=-1)),),
        )


def _standing(born: Move) -> Standing:
    return Standing(content_seq=-1, floor="verified", head=born.revision, meta_seq=-1, trust="unverified")


def build(url: str, home: Path, events: int) -> None:
    """Make a ledger of that many events in an empty database, with its read models and its anchor."""
    migrations.upgrade(url)
    with closing(Database(url)) as database, closing(_opened(database, home)) as ledger:
        writer = Writer(ledger)
        for first in range(1, events, ROWS):
            writer.write(min(ROWS, events - first))
        ledger.catch_up()


def _opened(database: Database, home: Path) -> VerifiedLedger:
    files = KeyFiles(home / "ledger.key", home / "signing.pem")
    ledger = open_ledger(database, tenant="local", files=files, anchors=home / "anchor", clock=system_clock)
    ledger.catch_up()
    return ledger


def one_pass(url: str, home: Path, *, writer: bool) -> dict[str, Any]:  # Any: JSON
    """Rebuild everything once, in this process; return rate, peak memory, and what the swap held up."""
    with closing(Database(url)) as database, closing(_opened(database, home)) as ledger:
        writing = _Writing(ledger, database) if writer else None
        began, worked = time.perf_counter(), time.process_time()
        done = rebuild(ledger)
        took, worked = time.perf_counter() - began, time.process_time() - worked
        longest = writing.end() if writing is not None else None
    assert done.differences == (), done.differences
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    events = done.position + 1
    return {
        "events": events,
        "rate": events / took,
        "own_rate": events / worked,
        "peak_mb": kilobytes / 1024,
        "locked_ms": done.locked_s * 1000,
        "longest_append_ms": longest,
    }


class _Writing:
    """Somebody who appends all the time, and remembers how long the slowest append took."""

    def __init__(self, ledger: VerifiedLedger, database: Database) -> None:
        self._writer = Writer(ledger)
        self._committer = Committer(ledger, database.another(), ALL, system_clock)
        self._stop, self._longest = threading.Event(), 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            draft = self._writer.draft()
            began = time.perf_counter()
            self._committer.submit(draft).result(60)
            self._longest = max(self._longest, time.perf_counter() - began)

    def end(self) -> float:
        """Stop, and return the longest time of an append in milliseconds."""
        self._stop.set()
        self._thread.join()
        self._committer.close()
        return self._longest * 1000


class Rebuilt:
    """A ledger whose read models are rebuilt, each time in a process of its own."""

    def __init__(self, url: str, home: Path, events: int) -> None:
        home.mkdir(mode=0o700)
        self._url = url
        self._home = home
        build(url, home, events)
        self.passes: list[dict[str, Any]] = []  # Any: JSON

    def run(self, *, writer: bool = False) -> Run:
        """Rebuild everything once; what was measured is in `passes`."""
        command = [sys.executable, "-m", "benchmarks.rebuild_rate", "--pass", self._url, str(self._home)]
        root = Path(__file__).resolve().parents[1]
        done = subprocess.run([*command, *["--writer"] * writer], cwd=root, check=True, capture_output=True)
        found = json.loads(done.stdout)
        self.passes.append(found)
        seconds = found["events"] / found["rate"]
        return Run(found["events"], seconds, [seconds])


def _counted(url: str, events: int) -> message_db.MessageDb | None:
    """Return message-db with that many events, or None while it has not been fetched."""
    sources = peers.message_db_folder()
    if sources is None:
        return None
    store = message_db.MessageDb(url, sources)
    with store.batches(BATCH) as append:
        for _ in range(0, events, BATCH):
            append()
    return store


def lines(ours: Sequence[dict[str, Any]], counted: Sequence[float], blocked: dict[str, Any]) -> list[Line]:  # Any: JSON
    """Return the table of DESIGN's bars on a rebuild."""
    best = max(one["rate"] for one in ours)
    bar = Bar(max(0.1, 0.2 * 3 / len(TABLES)))
    beside = "message-db, count per stream"
    what = f"rebuild of {len(TABLES)} read models, {ours[0]['events']:,} events, best round"
    locked = median(one["locked_ms"] for one in [*ours, blocked])
    return [
        bars.share(what, best, beside, max(counted, default=None), bar),
        bars.limit("memory of a rebuild", max(one["peak_mb"] for one in ours), MEMORY_MB_MAX, "MB"),
        bars.limit("swap: head locked", locked, BLOCKED_MS_MAX, "ms"),
        Line("swap: slowest append while it was rebuilt", f"{blocked['longest_append_ms']:.1f} ms", "", None, "", None),
    ]


def main() -> int:
    """Build, measure, print; 1 if a bar is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rebuild_rate", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured to a file")
    parser.add_argument("--writer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--pass", dest="one", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        url, home = asked.one
        print(json.dumps(one_pass(url, Path(home), writer=asked.writer)))
        return 0
    counted: list[float] = []
    with ExitStack() as stack:
        server_url = stack.enter_context(server.durable_server())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="corrigenda-bench-")))
        store = _counted(stack.enter_context(server.fresh_database(server_url)), asked.events)
        ours = Rebuilt(stack.enter_context(server.fresh_database(server_url)), folder / "home", asked.events)
        for _ in range(asked.rounds):
            print(f"rebuild: {ours.run().rate:,.0f}/s", file=sys.stderr)
            if store is not None:
                counted.append(store.count().rate)
                print(f"message-db, count per stream: {counted[-1]:,.0f}/s", file=sys.stderr)
        ours.run(writer=True)
    *passes, blocked = ours.passes
    table = lines(passes, counted, blocked)
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} after\n\n{bars.text(table)}")
    if asked.json:
        asked.json.write_text(json.dumps({"passes": ours.passes, "counted": counted}, indent=1), encoding="utf-8")
    return int(any(line.met is False for line in table))


if __name__ == "__main__":
    raise SystemExit(main())
