"""Measures verified retrieval, given the query's vector, beside FAISS alone over the same vectors, and a start.

    python -m benchmarks.retrieval [--items 100000] [--behind 1000] [--seconds 10] [--json FILE]

FAISS and the whole search take turns, call by call, so that whatever slows the machine slows both; first with nobody
else, then while 32 callers in another process remember what they can. The start is a process of its own that opens a
ledger whose index lacks only the last memories, whose vectors are stored: from its first instruction to a gateway for
which nothing waits. The server runs; a model, which would have to be loaded, is not used.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, cast

import faiss
import numpy as np

import corrigenda
from benchmarks import bars, ours, server
from benchmarks.filled import Filled, filled
from benchmarks.seeded import DIMENSION, Seeded, as_embedder, vector_of
from benchmarks.timing import Times, timed

K = 10
WRITERS = 32
CALLS_MAX = 2_000
STARTS = 3
IDLE_MS_MAX = 1.5
WRITING_MS_MAX = 3.0
START_S_MAX = 2.0
QUESTIONS = tuple(f"question {number}" for number in range(100))
ROOT = Path(__file__).resolve().parents[1]


class Pairwise(NamedTuple):
    """What FAISS alone and the whole search took, measured by turns, and how many writes there were a second."""

    faiss: Times
    search: Times
    writes: float = 0.0


def bare_faiss(ledger: Filled) -> Callable[[str], object]:
    """Return a search of FAISS alone over the vectors of all memories of a ledger, on one thread."""
    index: Any = cast(Any, faiss).IndexFlatIP(DIMENSION)  # Any: the stubs speak of packages that are not installed
    index.add(np.array([vector_of(ours.content(number)) for number in range(ledger.count)]))
    vectors = {question: vector_of(question)[np.newaxis] for question in QUESTIONS}
    faiss.omp_set_num_threads(1)
    return lambda question: index.search(vectors[question], K)


def by_turns(gateway: "corrigenda.Gateway", alone: Callable[[str], object], seconds: float) -> Pairwise:
    """Let FAISS alone and the whole search answer the same questions by turns, for about so many seconds."""
    for question in QUESTIONS[:3]:
        alone(question)
        assert len(gateway.search(question, k=K).hits) == K, "the partition has fewer memories than were asked for"
    bare: list[float] = []
    whole: list[float] = []
    until = time.perf_counter() + seconds
    while not whole or (time.perf_counter() < until and len(whole) < CALLS_MAX):
        question = QUESTIONS[len(whole) % len(QUESTIONS)]
        bare.append(timed(partial(alone, question)))
        whole.append(timed(partial(gateway.search, question, k=K)))
    return Pairwise(Times.of(bare), Times.of(whole))


def searches(ledger: Filled, seconds: float, writers: int = WRITERS) -> dict[str, Pairwise]:
    """Return what searches take: with nobody else, and while others write."""
    ledger.settle()
    alone = bare_faiss(ledger)
    with ledger.opened(Seeded(asked=QUESTIONS)) as gateway:
        idle = by_turns(gateway, alone, seconds)
        with ours.commands_beside(ledger.url, ledger.home, threads=writers, seconds=seconds) as wrote:
            beside = by_turns(gateway, alone, seconds)
            writing = beside._replace(writes=wrote.get().rate)
    return {"idle": idle, f"while {writers} write": writing}


class Start(NamedTuple):
    """What one start took, in seconds from the process's beginning, and what the first answer warned of."""

    opened: float
    ready: float
    answered: float
    warnings: int


def starts(ledger: Filled, count: int) -> list[Start]:
    """Return what each of some starts took; each is killed in the end, so that all of them find the same index."""
    command = [sys.executable, "-m", "benchmarks.retrieval", "--start", ledger.url, str(ledger.home)]
    found: list[Start] = []
    for _ in range(count):
        began = time.perf_counter()
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None, "a pipe was asked for"
            said = [(process.stdout.readline(), time.perf_counter() - began) for _ in range(2)]
        (opened, ready), (warnings, answered) = said
        found.append(Start(float(opened), ready, answered, int(warnings)))
    return found


def start(url: str, home: Path) -> None:
    """Open a ledger in this process, say so, put a question, say what it warned of, and be gone without closing."""
    began = time.perf_counter()
    with as_embedder(Seeded(asked=QUESTIONS[:1], closed=True)):
        gateway = corrigenda.open(url, home=home, project=ours.PROJECT, actor="human:bench")
        print(time.perf_counter() - began, flush=True)
        print(len(gateway.search(QUESTIONS[0], k=K).warnings), flush=True)
    os._exit(0)


def measure(
    server_url: str, home: Path, *, items: int, behind: int, seconds: float, writers: int = WRITERS, times: int = STARTS
) -> tuple[dict[str, Pairwise], list[Start]]:
    """Fill a ledger; return what its starts and its searches took. The starts come first: searches would catch up."""
    with filled(server_url, home, items) as ledger:
        ledger.fill(behind)
        print("starting and searching …", file=sys.stderr)
        begun = starts(ledger, times)
        return searches(ledger, seconds, writers), begun


def lines(found: dict[str, Pairwise], begun: list[Start], behind: int) -> list[bars.Line]:
    """Return the table of the bars."""
    table: list[bars.Line] = []
    for (when, both), bar in zip(found.items(), (IDLE_MS_MAX, WRITING_MS_MAX), strict=True):
        more = both.search.p50 - both.faiss.p50
        table.append(bars.limit(f"search over FAISS alone, {when}, p50", more, bar, "ms"))
    ready, opened, answered = (
        median(times) for times in zip(*((one.ready, one.opened, one.answered) for one in begun), strict=True)
    )
    table.append(bars.limit(f"process start to ready, {behind:,} behind", ready, START_S_MAX, "s"))
    table.append(bars.Line("of which the gateway opens in", f"{opened:.2f} s", "", None, "", None))
    table.append(bars.Line("process start to the first answer", f"{answered:.2f} s", "", None, "", None))
    table.append(bars.near("warnings with the first answer", max(one.warnings for one in begun), 0, 0))
    return table


def text(found: dict[str, Pairwise]) -> str:
    """Return what was measured for people, as Markdown."""
    rows = [
        "| when | FAISS alone p50 | p99 | whole search p50 | p99 | calls | writes |",
        "|---|---|---|---|---|---|---|",
    ]
    for when, (alone, whole, writes) in found.items():
        cells = [f"{figure:,.2f} ms" for figure in (alone.p50, alone.p99, whole.p50, whole.p99)]
        rows.append(f"| {' | '.join([when, *cells, str(whole.calls), f'{writes:,.0f}/s'])} |")
    return "\n".join(rows)


def main() -> int:
    """Measure, print, and exit with 1 if a bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--items", type=int, default=100_000, help="memories in one partition")
    parser.add_argument("--behind", type=int, default=1_000, help="memories that the index lacks at the start")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long searches are measured, idle and not")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured to a file")
    parser.add_argument("--start", nargs=2, help=argparse.SUPPRESS)
    chosen, load = parser.parse_args(), os.getloadavg()[0]
    if chosen.start:
        start(chosen.start[0], Path(chosen.start[1]))
    with server.durable_server() as url, tempfile.TemporaryDirectory(prefix="corrigenda-bench-") as temporary:
        found, begun = measure(
            url, Path(temporary) / "home", items=chosen.items, behind=chosen.behind, seconds=chosen.seconds
        )
    table = lines(found, begun, chosen.behind)
    print(f"{chosen.items:,} memories, load average {load:.1f} before and {os.getloadavg()[0]:.1f} after\n")
    print(text(found) + "\n")
    print(bars.text(table))
    if chosen.json:
        searched = {
            when: {"faiss": both.faiss._asdict(), "search": both.search._asdict(), "writes": both.writes}
            for when, both in found.items()
        }
        chosen.json.write_text(
            json.dumps({"searches": searched, "starts": [one._asdict() for one in begun]}, indent=1), encoding="utf-8"
        )
    return int(any(line.met is False for line in table))


if __name__ == "__main__":
    raise SystemExit(main())
