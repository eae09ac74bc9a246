"""Measures durable appends, ours beside the peers', in one run on one PostgreSQL, and prints them against the bars.

    python -m benchmarks.append [--rounds 3] [--seconds 2] [--many] [--json FILE]

A round runs every case once, those of one shape next to each other and the order turned in every second round, so that
a disk that slows down slows all of them. Medians of the rounds are printed, ratios within a round.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import bars, lookups, message_db, ours, peers, server, verification
from benchmarks.bare import Bare
from benchmarks.cores import WORD, one_core
from benchmarks.eventsourcing_peer import EventSourcing
from benchmarks.floor import floor
from benchmarks.verification import Verified, verified
from benchmarks.workload import Run, Writer, measure

BATCH = 1_000
IDLE_APPENDS = 100
COUNTED_COMMANDS = 50
LOOKUP_MS_MAX = 5.0
MEMORY_MB_MAX = 150.0


class Case(NamedTuple):
    """One thing that is measured once a round."""

    name: str
    run: Callable[[], Run]


Shape = list[Case]  # cases that are compared with each other, hence measured next to each other


class Contenders(NamedTuple):
    """Everybody who is measured, each with a database of its own. A peer that could not be had is None."""

    bare: Bare
    eventsourcing: EventSourcing | None
    message_db: message_db.MessageDb | None
    floor_url: str
    url: str
    home: Path
    by_ulid: Verified
    by_hash: Verified


@contextmanager
def contenders(server_url: str, folder: Path) -> Generator[Contenders]:
    """Set everybody up, for as long as the block runs; `folder` is for our homes."""
    with ExitStack() as stack:

        def database() -> str:
            return stack.enter_context(server.fresh_database(server_url))

        def ledger(streams: str) -> Verified:
            home = folder / f"home-{streams}"
            return stack.enter_context(verified(server_url, home, streams=streams, events=verification.EVENTS))

        python, sources = peers.eventsourcing_python(), peers.message_db_folder()
        library = EventSourcing(python, plain_url=database(), functions_url=database()) if python else None
        store = message_db.MessageDb(database(), sources) if sources else None
        home = folder / "home"
        url = ours.prepare(database(), home)
        floor_url = ours.prepare(database(), folder / "home-floor")
        yield Contenders(Bare(database()), library, store, floor_url, url, home, ledger("ulid"), ledger("hashed"))


def shapes(who: Contenders, seconds: float) -> list[Shape]:
    """Return every case, by shape."""
    return [
        [
            _bare(who, 1, seconds),
            _floor(who, 1, seconds),
            _raw(who, 1, seconds),
            *_eventsourcing(who, 1, seconds),
            *_message_db(who, 1, seconds),
            _remember(who, 1, seconds),
        ],
        [*_both_ways([*_eventsourcing(who, 8, seconds), *_message_db(who, 8, seconds)])],
        [
            _bare(who, 32, seconds),
            _floor(who, 32, seconds),
            *_eventsourcing(who, 32, seconds),
            *_message_db(who, 32, seconds),
            *_both_ways([_raw(who, 32, seconds), _remember(who, 32, seconds)]),
            _processes(who, seconds),
        ],
        [*_batches(who, seconds), _bulk(who, seconds, models=False), _bulk(who, seconds, models=True)],
        [
            Case("verify, ULID streams", who.by_ulid.run),
            *([Case("message-db, count per stream", who.message_db.count)] if who.message_db else []),
            Case("verify, hash-named streams", who.by_hash.run),
        ],
    ]


def _both_ways(cases: Sequence[Case]) -> list[Case]:
    """Return cases of one process with many threads as they are, and each with its process kept to one core."""

    def kept(case: Case) -> Case:
        def run() -> Run:
            with one_core():
                return case.run()

        return Case(f"{case.name}, {WORD}", run)

    return [way for case in cases for way in (case, kept(case))]


def _callers(threads: int, word: str = "") -> str:
    return f"{threads} {word or 'thread'}s" if threads > 1 else f"1 {word or 'writer'}"


def _bare(who: Contenders, threads: int, seconds: float) -> Case:
    return Case(f"bare, {_callers(threads)}", lambda: measure(who.bare.writer, threads=threads, seconds=seconds))


def _floor(who: Contenders, threads: int, seconds: float) -> Case:
    def run() -> Run:
        with floor(who.floor_url, threads=threads) as writer:
            return measure(writer, threads=threads, seconds=seconds)

    return Case(f"floor, {_callers(threads)}", run)


def _raw(who: Contenders, threads: int, seconds: float) -> Case:
    def run() -> Run:
        with ours.raw(who.url, who.home) as ledger:
            return measure(ledger.writer, threads=threads, seconds=seconds)

    return Case(f"raw append, {_callers(threads)}", run)


def _processes(who: Contenders, seconds: float) -> Case:
    return Case(
        "raw append, 4 processes × 8",
        lambda: ours.raw_in_processes(who.url, who.home, processes=4, threads=8, seconds=seconds),
    )


def _remember(who: Contenders, threads: int, seconds: float) -> Case:
    def run() -> Run:
        with ours.commands(who.url, who.home) as commands:
            return measure(commands.writer, threads=threads, seconds=seconds)

    return Case(f"remember, {_callers(threads, 'caller')}", run)


def _bulk(who: Contenders, seconds: float, *, models: bool) -> Case:
    def run() -> Run:
        with ours.raw(who.url, who.home, models=models) as ledger:
            return measure(lambda _: ledger.pages(BATCH), threads=1, seconds=seconds, events_per_call=BATCH)

    return Case(f"bulk, {'with read models' if models else 'raw'}", run)


def _eventsourcing(who: Contenders, threads: int, seconds: float) -> list[Case]:
    library = who.eventsourcing
    if library is None:
        return []
    return [
        Case(f"eventsourcing, {_callers(threads)}", lambda: library.run(threads=threads, seconds=seconds)),
        Case(
            f"eventsourcing with functions, {_callers(threads)}",
            lambda: library.run(threads=threads, seconds=seconds, functions=True),
        ),
    ]


def _message_db(who: Contenders, threads: int, seconds: float) -> list[Case]:
    store = who.message_db
    if store is None:
        return []
    return [Case(f"message-db, {_callers(threads)}", lambda: measure(store.writer, threads=threads, seconds=seconds))]


def _batches(who: Contenders, seconds: float) -> list[Case]:
    library, store = who.eventsourcing, who.message_db
    cases: list[Case] = []
    if library is not None:
        for functions in (False, True):
            cases.append(_library_batches(library, seconds, functions=functions))
    if store is not None:
        run = lambda: measure(lambda _: store.batches(BATCH), threads=1, seconds=seconds, events_per_call=BATCH)  # noqa: E731 - as the others
        cases.append(Case("message-db, batch of 1,000", run))
    return cases


def _library_batches(library: EventSourcing, seconds: float, *, functions: bool) -> Case:
    return Case(
        f"eventsourcing{' with functions' if functions else ''}, batch of 1,000",
        lambda: library.run(threads=1, seconds=seconds, batch=BATCH, functions=functions),
    )


def rounds(cases: Sequence[Shape], count: int) -> dict[str, list[float]]:
    """Run every case once a round, and return its figures: events per second, and the 99th percentile of a call."""
    figures: dict[str, list[float]] = defaultdict(list)
    for number in range(count):
        for shape in cases:
            for case in shape if number % 2 == 0 else reversed(shape):
                run = case.run()
                figures[case.name].append(run.rate)
                figures[f"{case.name}: p99 s"].append(run.percentile(0.99))
                print(f"round {number + 1}: {case.name}: {run.rate:,.0f}/s", file=sys.stderr)
    return figures


def tables_touched(who: Contenders) -> int:
    """Return how many tables one `remember` writes to, once the names that it uses are known."""
    before = server.rows_written(who.url)
    with ours.commands(who.url, who.home) as commands:
        _repeat(commands.writer, COUNTED_COMMANDS)
    after = server.rows_written(who.url)
    return sum(1 for table, rows in after.items() if rows - before.get(table, 0) >= COUNTED_COMMANDS)


def idle_syncs(who: Contenders) -> int:
    """Return how many WAL syncs 100 appends make, one after the other with nothing beside them."""

    def syncs(appends: int) -> int:
        before = server.wal_syncs(who.url)
        with ours.raw(who.url, who.home) as ledger:
            _repeat(ledger.writer, appends)
        return server.wal_syncs(who.url) - before

    opening = syncs(0)
    return syncs(IDLE_APPENDS) - opening


def memory_of_many(server_url: str, home: Path) -> bars.Line:
    """Return the line of the memory that a million events in a million streams take to verify."""
    with verified(server_url, home, streams="ulid", events=verification.MANY_EVENTS) as many:
        run = many.run()
        what = f"memory of a verification of {verification.MANY_EVENTS:,} events, at {run.rate:,.0f}/s"
        return bars.limit(what, many.peak_mb, MEMORY_MB_MAX, "MB")


def _repeat(writer: Writer, times: int) -> None:
    with writer(0) as append:
        for _ in range(times):
            append()


def report(figures: dict[str, list[float]], table: Sequence[bars.Line], settings: dict[str, str]) -> dict[str, object]:
    """Return everything that was measured, for machines."""
    return {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()},
        "settings": settings,
        "peers": {"eventsourcing": peers.EVENTSOURCING, "message-db": peers.MESSAGE_DB},
        "rounds": figures,
        "medians": {name: median(values) for name, values in figures.items()},
        "lines": [line._asdict() for line in table],
    }


def main() -> int:
    """Measure, print, and exit with 1 if a bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.append", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each case runs in each round")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured to a file")
    parser.add_argument("--many", action="store_true", help="also verify 1,000,000 events: some minutes more")
    chosen, began = parser.parse_args(), os.getloadavg()[0]
    with (
        server.durable_server() as server_url,
        tempfile.TemporaryDirectory(prefix="corrigenda-bench-") as temporary,
    ):
        folder, settings = Path(temporary), server.settings(server_url)
        with contenders(server_url, folder) as who:
            tables = tables_touched(who)
            figures = rounds(shapes(who, chosen.seconds), chosen.rounds)
            table = bars.lines(figures, tables=tables)
            table.append(bars.near(f"WAL syncs of {IDLE_APPENDS} idle appends", idle_syncs(who), IDLE_APPENDS, 2))
        for name, found in lookups.measure(server_url, folder / "home-lookups").items():
            table.append(bars.limit(f"look-up of {lookups.KEYS} {name}", found, LOOKUP_MS_MAX, "ms"))
        if chosen.many:
            table.append(memory_of_many(server_url, folder / "home-many"))
    print(", ".join(f"{name} {value}" for name, value in settings.items()))
    print(f"{os.cpu_count()} cores, load average {began:.1f} before and {os.getloadavg()[0]:.1f} after\n")
    print(_everybody(figures) + "\n")
    print(bars.text(table))
    if chosen.json:
        chosen.json.write_text(json.dumps(report(figures, table, settings), indent=1), encoding="utf-8")
    return int(any(line.met is False for line in table))


def _everybody(figures: dict[str, list[float]]) -> str:
    """Return the medians of all cases, for people."""
    cases = {name: rates for name, rates in figures.items() if not name.endswith(": p99 s")}
    wide = max(map(len, cases))
    rows = [
        f"| {name.ljust(wide)} | {median(rates):8,.0f}/s | {min(rates):8,.0f} – {max(rates):8,.0f} "
        f"| {median(figures[f'{name}: p99 s']) * 1000:9.1f} ms |"
        for name, rates in cases.items()
    ]
    return "\n".join(
        [f"| {'case'.ljust(wide)} | median | lowest – highest round | p99 of a call |", "|---|---|---|---|", *rows]
    )


if __name__ == "__main__":
    raise SystemExit(main())
