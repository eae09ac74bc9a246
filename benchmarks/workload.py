"""What everybody is asked to do, and how it is timed: N threads append, each one event after the other, until a bell.

The standard library only: the peers' own environment runs this file too.
"""

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import NamedTuple

WARM_UP_CALLS = 3
READY_TIMEOUT_S = 120

Append = Callable[[], object]
Writer = Callable[[int], AbstractContextManager[Append]]
Result = tuple[list[float], float] | BaseException


class Run(NamedTuple):
    """How many events were durable, in how many seconds, and how long each call took (seconds, sorted)."""

    events: int
    seconds: float
    calls: list[float]

    @property
    def rate(self) -> float:
        """Return events per second."""
        return self.events / self.seconds

    def percentile(self, share: float) -> float:
        """Return the time in seconds within which that share of the calls were answered."""
        return self.calls[max(0, math.ceil(share * len(self.calls)) - 1)]


def body(number: int) -> bytes:
    """Return a correction as compact JSON, 325 bytes or so: what every store here is given as an event's content."""
    told = {
        "episode": f"ep-{number % 997:06d}",
        "field": "chargeCode",
        "original": "THC",
        "corrected": "DTHC",
        "reason": "the carrier prints destination handling under the plain code; three invoices show it",
        "actor": "human:reviewer-07",
        "scope": {"tenant": "t-01", "project": "p-04", "agent": "reconciler"},
        "number": number,
        "rest": "x" * 40,
    }
    return json.dumps(told, separators=(",", ":")).encode()


def measure(
    writer: Writer, *, threads: int, seconds: float, events_per_call: int = 1, ready: Callable[[], None] | None = None
) -> Run:
    """Let `threads` callers append for about `seconds`; connections are made and warmed before the clock starts.

    `writer(i)` is entered in the i-th thread and gives the function that makes one durable append. `ready` is called
    once all are warm, and the clock starts when it returns: other processes may be waited for there.
    """
    start = threading.Barrier(threads + 1, action=ready, timeout=READY_TIMEOUT_S)
    results: list[Result] = []
    callers = [threading.Thread(target=_call, args=(writer, i, seconds, start, results)) for i in range(threads)]
    for caller in callers:
        caller.start()
    with suppress(threading.BrokenBarrierError):  # a caller could not even begin: its own error is raised below
        start.wait()
    began = time.perf_counter()
    for caller in callers:
        caller.join()
    return _gathered(results, began, events_per_call)


def _call(writer: Writer, number: int, seconds: float, start: threading.Barrier, results: list[Result]) -> None:
    try:
        with ExitStack() as stack:
            append = stack.enter_context(writer(number))
            for _ in range(WARM_UP_CALLS):
                append()
            start.wait()
            results.append(_until(time.perf_counter() + seconds, append))
    except BaseException as error:
        start.abort()
        results.append(error)


def _until(end: float, append: Append) -> tuple[list[float], float]:
    calls: list[float] = []
    before = time.perf_counter()
    while before < end:
        append()
        now = time.perf_counter()
        calls.append(now - before)
        before = now
    return calls, before


def _gathered(results: Sequence[Result], began: float, events: int) -> Run:
    calls: list[float] = []
    ended = began
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in errors:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    for result in results:
        if not isinstance(result, BaseException):
            calls += result[0]
            ended = max(ended, result[1])
    return Run(len(calls) * events, ended - began, sorted(calls))


def together(runs: Sequence[Run]) -> Run:
    """Return what several processes did that began at the same time."""
    return Run(
        sum(run.events for run in runs),
        max(run.seconds for run in runs),
        sorted(call for run in runs for call in run.calls),
    )
