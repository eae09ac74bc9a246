"""From the figures of all rounds to lines with a ratio, a bar and a verdict.

Disks and neighbours drift, so a ratio is made of two figures of the same round, and the median of the rounds counts.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.cores import WORD

Figures = Mapping[str, Sequence[float]]  # by case: one figure a round, events per second unless the name says more

NO_PEER = "not fetched: python -m benchmarks.peers"
TABLES_FREE = 5  # a full command may touch so many; each further one lowers its bar
ONE_CORE = f"32 threads, {WORD}"
_CALLERS = ("1 writer", "8 threads", f"8 threads, {WORD}", "32 threads")
MESSAGE_DB, EVENTSOURCING, WITH_FUNCTIONS = (
    tuple(f"{peer}, {callers}" for callers in _CALLERS)
    for peer in ("message-db", "eventsourcing", "eventsourcing with functions")
)


class Line(NamedTuple):
    """One line of the table; `met` is None where there is no bar, or no figure to hold against it.

    `best` is the ratio of the two best rounds: neighbours only ever slow a round down.
    """

    what: str
    figure: str
    against: str
    ratio: float | None
    bar: str
    met: bool | None
    best: float | None = None


class Bar(NamedTuple):
    """A ratio that should be at least, or at most, so much."""

    limit: float
    at_most: bool = False

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.limit:.2f}"

    def met(self, ratio: float) -> bool:
        """Report whether a ratio keeps the bar."""
        return ratio <= self.limit if self.at_most else ratio >= self.limit


def lines(figures: Figures, *, tables: int) -> list[Line]:
    """Return the table of DESIGN's bars on appends; `tables`: how many a full command touched."""
    best_message_db, best_eventsourcing = _best(figures, MESSAGE_DB), _best(figures, EVENTSOURCING)
    return [
        _compare(figures, "raw append, 1 writer", "bare, 1 writer", Bar(0.40)),
        _compare(figures, "raw append, 1 writer", "floor, 1 writer", None),
        _compare(figures, "raw append, 1 writer", "eventsourcing, 1 writer", Bar(1.6)),
        _compare(figures, "raw append, 1 writer", "eventsourcing with functions, 1 writer", None),
        _compare(figures, "raw append, 1 writer", "message-db, 1 writer", None),
        *_of_many(figures, "32 threads", best_message_db, best_eventsourcing),
        *_of_many(figures, ONE_CORE, best_message_db, best_eventsourcing),
        _compare(figures, "raw append, 32 threads", "floor, 32 threads", None),
        _compare(figures, "floor, 32 threads", best_message_db, None),
        _p99(figures, "floor, 32 threads", 32, None),
        _compare(figures, "raw append, 4 processes × 8", "raw append, 32 threads", Bar(0.5)),
        _p99(figures, "raw append, 4 processes × 8", 32, None),
        _compare(figures, "remember, 1 caller", "raw append, 1 writer", None),
        *_of_commands(figures, "", tables),
        *_of_commands(figures, f", {WORD}", tables),
        _compare(figures, "bulk, raw", "eventsourcing, batch of 1,000", Bar(1.0)),
        _compare(figures, "bulk, with read models", "eventsourcing, batch of 1,000", Bar(0.5)),
        _best_of(figures, "verify, ULID streams", "message-db, count per stream", Bar(0.40)),
        _best_of(figures, "verify, hash-named streams", "message-db, count per stream", Bar(0.25)),
    ]


def _of_many(figures: Figures, threads: str, best_message_db: str, best_eventsourcing: str) -> list[Line]:
    """Return the lines of an append among many threads, on all cores or on one: the peers' best may be either."""
    what = f"raw append, {threads}"
    return [
        _compare(figures, what, best_message_db, Bar(2.5)),
        _compare(figures, what, best_eventsourcing, Bar(5.0)),
        _compare(figures, what, _best(figures, WITH_FUNCTIONS), None),
        _compare(figures, what, "bare, 32 threads", None),
        _p99(figures, what, 32, Bar(2.5, at_most=True)),
    ]


def _of_commands(figures: Figures, way: str, tables: int) -> list[Line]:
    """Return the lines of the full command among many callers."""
    command, bar = f"remember, 32 callers{way}", Bar(0.45 - 0.03 * max(0, tables - TABLES_FREE))
    line = _compare(figures, command, f"raw append, 32 threads{way}", bar)
    return [line._replace(what=f"{command}, {tables} tables"), _p99(figures, command, 32, None)]


def limit(what: str, found: float, bar: float, unit: str) -> Line:
    """Return the line of a figure that should be at most so much."""
    return Line(what, f"{found:,.2f} {unit}", "", None, f"≤ {bar:g} {unit}", found <= bar)


def near(what: str, found: int, wanted: int, within: int) -> Line:
    """Return the line of a count that should be about so much."""
    return Line(what, f"{found}", "", None, f"{wanted} ± {within}", abs(found - wanted) <= within)


def share(what: str, figure: float, against: str, other: float | None, bar: Bar | None) -> Line:
    """Return the line of one rate held against another."""
    if other is None:
        return Line(what, f"{figure:,.0f}/s", f"{against} ({NO_PEER})", None, str(bar or ""), None)
    ratio = figure / other
    return Line(what, f"{figure:,.0f}/s", against, ratio, str(bar or ""), bar.met(ratio) if bar else None)


def ratios(figures: Figures, what: str, against: str) -> float | None:
    """Return the median of the rounds' ratios, or None where one of the two was not measured."""
    if not figures.get(what) or not figures.get(against):
        return None
    return median(ours / theirs for ours, theirs in zip(figures[what], figures[against], strict=True))


def text(table: Sequence[Line]) -> str:
    """Return the table for people, as Markdown."""
    rows = [("what", "figure", "against", "ratio", "best rounds", "bar", "met"), ("---",) * 7]
    rows += [
        (one.what, one.figure, one.against, _of(one.ratio), _of(one.best), one.bar, _verdict(one.met)) for one in table
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(f"| {' | '.join(map(str.ljust, row, widths))} |" for row in rows)


def _compare(figures: Figures, what: str, against: str, bar: Bar | None) -> Line:
    rate = median(figures[what])
    ratio = ratios(figures, what, against)
    if ratio is None:
        return share(what, rate, against, None, bar)
    best = max(figures[what]) / max(figures[against])
    return Line(what, f"{rate:,.0f}/s", against, ratio, str(bar or ""), bar.met(ratio) if bar else None, best)


def _best_of(figures: Figures, what: str, against: str, bar: Bar) -> Line:
    """Return the line of two best rounds: what is read once and is short is disturbed, never helped, by neighbours."""
    other = max(figures[against]) if figures.get(against) else None
    return share(f"{what}, best round", max(figures[what]), against, other, bar)


def _p99(figures: Figures, what: str, callers: int, bar: Bar | None) -> Line:
    """Return the 99th percentile of a call, in multiples of what each caller waits on average."""
    times = figures[f"{what}: p99 s"]
    ratio = median(time * rate / callers for time, rate in zip(times, figures[what], strict=True))
    against = f"{callers} / rate"
    met = bar.met(ratio) if bar else None
    return Line(f"{what}, p99", f"{median(times) * 1000:.1f} ms", against, ratio, str(bar or ""), met)


def _best(figures: Figures, cases: Sequence[str]) -> str:
    """Return the case with the highest median."""
    return max(cases, key=lambda case: median(figures.get(case) or [0.0]))


def _verdict(met: bool | None) -> str:
    return "" if met is None else "yes" if met else "NO"


def _of(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
