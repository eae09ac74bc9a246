"""Times of many calls of one kind, and what is said of them: the median and the 99th percentile."""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from benchmarks.workload import Run

CALLS_MIN = 5


class Times(NamedTuple):
    """Median and 99th percentile of some calls, in milliseconds, and how many calls there were."""

    p50: float
    p99: float
    calls: int

    @classmethod
    def of(cls, seconds: list[float]) -> "Times":
        """Return what is to be said of calls that took so many seconds each."""
        run = Run(len(seconds), sum(seconds), sorted(seconds))
        return cls(run.percentile(0.5) * 1000, run.percentile(0.99) * 1000, len(seconds))


def timed(call: Callable[[], object]) -> float:
    """Return how many seconds a call took."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def repeated(call: Callable[[int], object], *, seconds: float, calls: int) -> Times:
    """Return the times of at most so many calls, numbered from 0, or of as many as fit into so many seconds."""
    call(0)  # what only the first one pays for
    found: list[float] = []
    until = time.perf_counter() + seconds
    while len(found) < calls and (time.perf_counter() < until or len(found) < CALLS_MIN):
        found.append(timed(partial(call, len(found))))
    return Times.of(found)
