"""Measures the index alone: memory of an item, time of a search with and without filters, and a rebuild.

    python -m benchmarks.index [--million] [--rebuild 100000] [--seconds 5] [--json FILE]

A filter is applied in two ways: as retrieval does, which asks for more neighbours until enough of them pass, each time
anew; and by the index's own `allowed`, which asks the same of FAISS inside one call. Each index is filled and searched
in a process of its own, whose memory is read before and after. The exact index is only there to be right, and is left
out above 10^5 items. The rebuild goes from an empty folder to all items by the Relay, with an embedder that raises.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import bars, filled, ours, server
from benchmarks.seeded import DIMENSION, Seeded, unit_vectors
from benchmarks.timing import Times, repeated
from gateway.bootstrap import make_index
from projections.index import Neighbour, Vector, VectorIndex

K = 10
QUERIES = 200
CHUNK = 1_000
SIZES = (10_000, 100_000)
MILLION = 1_000_000
EXACT_MAX = 100_000
SHARES = (1, 10)  # of a hundred items, how many a filter lets through
KINDS = ("faiss", "exact")
STATM = Path("/proc/self/statm")

Search = Callable[[Vector], Sequence[Neighbour]]


class Measured(NamedTuple):
    """What one index of one size was found to be; `times` by how it was asked."""

    kind: str
    size: int
    bytes_per_item: float
    times: dict[str, Times]


def one(kind: str, size: int, seconds: float) -> Measured:
    """Fill an index and search it, in a process of its own."""
    print(f"{kind}, {size:,} items …", file=sys.stderr)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (kind, size, seconds))


def measure(kind: str, size: int, seconds: float) -> Measured:
    """Fill an index in this process, and search it in every way."""
    generator = np.random.default_rng(size)
    index = make_index(kind, DIMENSION)
    queries = unit_vectors(QUERIES, generator)
    before = _memory_bytes()
    for first in range(0, size, CHUNK):
        count = min(CHUNK, size - first)
        index.put_many([_item(first + n) for n in range(count)], unit_vectors(count, generator))
    held = _memory_bytes() - before
    times = {
        how: repeated(lambda n, search=search: search(queries[n % QUERIES]), seconds=seconds, calls=QUERIES)
        for how, search in _ways(index, size).items()
    }
    return Measured(kind, size, held / size, times)


def _ways(index: VectorIndex, size: int) -> dict[str, Search]:
    """Return the ways to ask: of all items, and with filters that let some through."""
    ways: dict[str, Search] = {"all": lambda vector: index.search(vector, K)}
    for share in SHARES:
        passing = frozenset(_item(n) for n in range(0, size, 100 // share))
        ways[f"{share} %, more each time"] = lambda vector, passing=passing: fetched(index, vector, passing)
        ways[f"{share} %, allowed"] = lambda vector, passing=passing: index.search(
            vector, K, allowed=passing.__contains__
        )
    return ways


def fetched(index: VectorIndex, vector: Vector, passing: frozenset[str]) -> list[Neighbour]:
    """Return the nearest items that pass, by asking for twice as many each time, as retrieval does."""
    found: list[Neighbour] = []
    seen, wanted = 0, 2 * K + 8
    while len(found) < K:
        near = index.search(vector, wanted)
        found += [neighbour for neighbour in near[seen:] if neighbour.item in passing]
        if len(near) < wanted:
            break
        seen, wanted = len(near), wanted * 2
    return found[:K]


def rebuilt(server_url: str, home: Path, count: int) -> list[bars.Line]:
    """Return the lines of a rebuild: how long it took, and how often the embedder was asked."""
    embedder = Seeded(closed=True)
    with filled.filled(server_url, home, count) as ledger:
        (home / "index").rename(home / "index-gone")
        with ledger.opened(embedder, replay=False) as gateway:
            began = time.perf_counter()
            recovered = gateway.recover()
            took = time.perf_counter() - began
        texts = [ours.content(0), ours.content(count - 1)]
        with ledger.opened(Seeded(asked=texts, closed=True)) as gateway:
            found = [gateway.search(told, k=1).hits[0].content for told in texts]
    assert (recovered.replayed, found) == (count, texts), "what was rebuilt does not answer as it should"
    return [
        bars.Line(f"rebuild of {count:,} items", f"{took:.1f} s", f"{count / took:,.0f} items/s", None, "", None),
        bars.near("texts that the embedder was asked for", embedder.calls, 0, 0),
    ]


def text(found: Sequence[Measured]) -> str:
    """Return the table of all indexes for people, as Markdown."""
    rows = [("index", "items", "asked of", "p50", "p99", "calls", "memory of an item"), ("---",) * 7]
    for index in found:
        memory = f"{index.bytes_per_item:,.0f} B"
        for how, times in index.times.items():
            p50, p99 = f"{times.p50:,.2f} ms", f"{times.p99:,.2f} ms"
            rows.append((index.kind, f"{index.size:,}", how, p50, p99, str(times.calls), memory))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(f"| {' | '.join(map(str.ljust, row, widths))} |" for row in rows)


def _item(number: int) -> str:
    """Return a name as long as those that the index really holds."""
    return f"mem_01{number:024d}/rev_01{number:024d}"


def _memory_bytes() -> int:
    """Return how much memory this process holds; where that is not told, the most that it ever held."""
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> int:
    """Measure, print, and exit with 1 if a bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="ITEMS")
    parser.add_argument(
        "--million", action="store_true", help="also 1,000,000 items: 2 GB of memory, some minutes more"
    )
    parser.add_argument("--rebuild", type=int, default=100_000, metavar="ITEMS", help="0 leaves it out")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each way of asking is measured at most")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured to a file")
    chosen = parser.parse_args()
    sizes = [*chosen.sizes, *([MILLION] if chosen.million else [])]
    found = [
        one(kind, size, chosen.seconds) for size in sizes for kind in KINDS if kind != "exact" or size <= EXACT_MAX
    ]
    print(text(found) + "\n")
    table: list[bars.Line] = []
    if chosen.rebuild:
        with server.durable_server() as url, tempfile.TemporaryDirectory(prefix="corrigenda-bench-") as temporary:
            table = rebuilt(url, Path(temporary) / "home", chosen.rebuild)
        print(bars.text(table))
    if chosen.json:
        indexes = [
            index._asdict() | {"times": {how: times._asdict() for how, times in index.times.items()}} for index in found
        ]
        chosen.json.write_text(json.dumps({"indexes": indexes, "lines": [line._asdict() for line in table]}, indent=1))
    return int(any(line.met is False for line in table))


if __name__ == "__main__":
    raise SystemExit(main())
