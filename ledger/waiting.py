"""Appends that wait to be stored, what may become of each, and the line from which groups are taken.

Whoever asked holds a future. It is answered once, whatever happens, and nobody can take an append back that waits.
"""

import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from msgspec import Struct

from ledger.errors import failure
from ledger.limits import GROUP_BYTES_MAX, GROUP_EVENTS_MAX, QUEUE_MAX
from ledger.sealing import Prepared
from ledger.verified import Recorded

LOOK_S = 1.0  # how often who waits looks whether the answer is there


class Appended(Struct, frozen=True):
    """An append was stored: its recorded events."""

    recorded: list[Recorded]


class Replayed(Struct, frozen=True):
    """The same request had been carried out before: the position of its first event. Nothing was stored."""

    position: int


class Conflicted(Struct, frozen=True):
    """A stream that the decision read has changed since. Nothing was stored; decide again."""

    stream: str


Outcome = Appended | Replayed | Conflicted


class Awaited:
    """What one caller waits for, once: a future without the means for many to wait and to be called back.

    At 32 callers that took a tenth of an append's processor time. Those who are answered together wake each other, one
    the next: woken all at once they would fight over the interpreter, with each other and with whoever woke them.
    """

    __slots__ = ("_answer", "_behind", "_given", "_left")

    def __init__(self) -> None:
        self._answer: Outcome | Exception | None = None
        self._given = threading.Lock()
        self._given.acquire()  # until its turn to wake has come
        self._behind: Awaited | None = None  # whom to wake next
        self._left = False  # whether nobody waits here any more, to be woken and to wake

    def done(self) -> bool:
        """Report whether the answer was given."""
        return self._answer is not None

    def set_result(self, outcome: Outcome) -> None:
        """Give the outcome, once."""
        self._answer = outcome
        self._given.release()

    def set_exception(self, error: Exception) -> None:
        """Give an error instead, once."""
        self._answer = error
        self._given.release()

    def set_before(self, outcome: Outcome, behind: "Awaited | None") -> None:
        """Give the outcome, once, and leave it to `wake` that it is noticed; who waits for it then wakes `behind`."""
        self._behind = behind
        self._answer = outcome

    def wake(self) -> None:
        """Wake whoever waits here, or else the next one behind who has not left."""
        one: Awaited | None = self
        while one is not None:
            one._given.release()
            if not one._left or not one._given.acquire(blocking=False):
                return  # whoever took it, or will, wakes the next
            one = one._behind

    def result(self, timeout: float) -> Outcome:
        """Wait so many seconds at most; return the outcome, or raise the error or TimeoutError."""
        self._wait(time.monotonic() + timeout)
        if self._answer is None:
            raise TimeoutError
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def _wait(self, until: float) -> None:
        """Wait to be woken, and wake the next. Whoever would have woken us may have been interrupted, hence a look."""
        woken = False
        try:
            while not woken and self._answer is None and (left := until - time.monotonic()) > 0:
                woken = self._given.acquire(timeout=min(left, LOOK_S))
        finally:
            if not woken:
                self._left = True
                woken = self._given.acquire(blocking=False)
            if woken and self._behind is not None:
                self._behind.wake()


class Waiting(Struct):
    """One append that waits, what whoever asked for it waits for, and whether its outcome was ever unknown."""

    prepared: Prepared
    future: "Future[Outcome] | Awaited"
    is_unknown: bool = False

    @property
    def is_open(self) -> bool:
        """Report whether it has no answer yet."""
        return not self.future.done()

    def answer(self, outcome: Outcome) -> None:
        """Say what became of it, unless that was said."""
        if self.is_open:
            self.future.set_result(outcome)

    def fail(self, error: Exception) -> None:
        """Say why nothing can be said to have become of it, or nothing will, unless an answer was given."""
        if self.is_open:
            self.future.set_exception(error)


Group = list[Waiting]


def answer_all(answers: Sequence[tuple[Waiting, Outcome]]) -> None:
    """Say what became of some appends. Only the first caller is woken here: each wakes the next."""
    awaited = [(one.future, outcome) for one, outcome in answers if isinstance(one.future, Awaited) and one.is_open]
    behind: Awaited | None = None
    for one, outcome in reversed(awaited):
        one.set_before(outcome, behind)
        behind = one
    if behind is not None:
        behind.wake()
    for one, outcome in answers:
        one.answer(outcome)  # the others, in their order


def fail(group: Sequence[Waiting], error: Exception) -> None:
    """Give all appends of a group that are open the same error."""
    for one in group:
        one.fail(error)


class Line:
    """First come, first served; many put in, one thread takes out."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._over: Waiting | None = None  # taken from the queue, and too large for the group that it met

    @property
    def is_empty(self) -> bool:
        """Report whether nobody waits."""
        return self._over is None and self._queue.empty()

    def check_room(self) -> None:
        """Refuse with QUEUE_FULL if as many wait as may."""
        if self._queue.qsize() >= QUEUE_MAX:
            raise failure(
                "QUEUE_FULL",
                f"{QUEUE_MAX} writes are waiting to be stored, and no more are taken. Nothing was stored; try again "
                "shortly.",
                retry_after_ms=100,
            )

    def put(self, waiting: Waiting) -> None:
        """Let an append wait."""
        self._queue.put(waiting)

    def end(self) -> None:
        """Let whoever takes groups meet the end, once everything before it was taken."""
        self._queue.put(None)

    def group(self) -> Group | None:
        """Wait for an append and return it with all that wait behind it, up to a group's limits; None at the end."""
        first = self._over or self._queue.get()
        self._over = None
        if first is None:
            return None
        group = [first]
        self.drain_into(group)
        return group

    def drain_into(self, group: Group) -> None:
        """Add what waits, up to the limits of a group. An append is never split: one above them is a group alone."""
        events = sum(len(one.prepared.parts) for one in group)
        size = sum(one.prepared.size for one in group)
        while self._over is None:
            try:
                further = self._queue.get_nowait()
            except queue.Empty:
                return
            if further is None:
                self._queue.put(None)  # the end: for `group` to meet
                return
            events += len(further.prepared.parts)
            size += further.prepared.size
            if events > GROUP_EVENTS_MAX or size > GROUP_BYTES_MAX:
                self._over = further
                return
            group.append(further)
