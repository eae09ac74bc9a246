"""A long ledger read by two processes: pages are looked at by whoever is free, and joined in their order by one.

The report must not depend on who looked at what. So a page counts as looked at elsewhere only if nothing at all was
wrong with it and it follows what was joined before; every other page is taken in its turn, as a reading alone does.
A helper that ends early is not asked any more, and what it had in hand is taken here; the report says that it ended.
There is one helper at most: each process needs some 50 MB, and a verification should not need more than 150.
"""

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import IO

import msgspec

from ledger.digest import SealKey
from ledger.store import Store
from ledger.verify.entries import Ledger
from ledger.verify.helper import Answer, Job, Span, receive, send
from ledger.verify.pages import FIRST_SIZE, Page, next_size, read, upto
from ledger.verify.reading import Reading
from ledger.verify.stretch import Stretch, stretch_of

SHARED_MIN = 20_000  # events: fewer are read before a second interpreter has begun
IN_HAND_MAX = 2  # spans of the helper: one to look at, one to read meanwhile
SIZE_MIN = 128  # events of a page, where texts are short
SHARES = 2 * (IN_HAND_MAX + 1)
AHEAD_MAX = 8  # spans that are looked at, or in hand, before one that is not
UNSOUND_MAX = 8  # pages that had to be taken in their turn: there is nothing to be won by looking at more beforehand
ANSWER_S = 60.0
LEAVING_S = 5.0
# What is imported stays, so looking for what could go is of no use meanwhile: it would take a tenth of the time.
BEGIN = "import gc, sys; gc.disable(); sys.path[:] = sys.argv[1:]; from ledger.verify.helper import main; main()"


class Helper:
    """The helper, seen from the process that began it. `answers` ends with None."""

    def __init__(self, told: IO[bytes], said: IO[bytes], ended: Callable[[], str]) -> None:
        self.answers: SimpleQueue[Answer | None] = SimpleQueue()
        self._told = told
        self._said = said
        self._ended = ended
        self._listener = threading.Thread(target=self._listen, name="verify-helper", daemon=True)
        self._listener.start()

    def tell(self, message: Job | Span) -> None:
        """Tell it something. That it is gone is told by its answers."""
        with suppress(OSError):
            send(self._told, message)

    def end(self) -> str:
        """Tell it nothing more, wait until it has ended, and return how it did, in a few words."""
        with suppress(OSError):
            self._told.close()
        how = self._ended()
        self._listener.join()
        return how

    def _listen(self) -> None:
        try:
            while (answer := receive(self._said, Answer)) is not None:
                self.answers.put(answer)
        except (OSError, msgspec.MsgspecError):
            pass  # what is no answer is its last one
        finally:
            self.answers.put(None)


@contextmanager
def helper() -> Generator[Helper | None]:
    """Give a helper for as long as the block runs; None where no second interpreter can be begun."""
    if not sys.executable or getattr(sys, "frozen", False):  # a program that has Python in it, and is no interpreter
        yield None
        return
    command = [sys.executable, "-P", "-c", BEGIN, *sys.path]  # a process of its own, never a fork: we may have threads
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    except OSError:
        yield None
        return
    with process:
        assert process.stdin is not None and process.stdout is not None
        aid = Helper(process.stdin, process.stdout, lambda: _ending(process))
        try:
            yield aid
        finally:
            aid.end()


def _ending(process: "subprocess.Popen[bytes]") -> str:
    """Wait until a helper that is told nothing more has ended, and return how it did."""
    try:
        status = process.wait(LEAVING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Turn:
    """A page in the order of all pages, and what was found in it; `is_settled` once somebody has looked at it."""

    def __init__(self, span: Span, page: "Future[Page] | None") -> None:
        self.span = span
        self.page = page  # None for a page of the helper's
        self.stretch: Stretch | None = None
        self.is_settled = False

    def settle(self, stretch: Stretch | None) -> None:
        """Say what was found; None: it has to be looked at in its turn."""
        self.stretch, self.is_settled, self.page = stretch, True, None


class Sharing:
    """One reading with a helper. `read` goes as far as it is of use; the rest is for the reading alone."""

    def __init__(self, reading: Reading, store: Store, seals: SealKey | None, origin: str, aid: Helper) -> None:
        self.trouble: str | None = None
        self._reading = reading
        self._store = store
        self._ledger = Ledger(store.ledger, origin, seals)
        self._helper: Helper | None = aid
        self._is_ready = False
        self._turns: deque[_Turn] = deque()  # in order, from the first that is not joined
        self._in_hand: deque[_Turn] = deque()  # the helper's, in the order of its answers
        self._next = reading.next
        self._end = self._next - 1
        self._size = FIRST_SIZE
        self._unsound = 0
        secret = None if seals is None else seals.secret
        aid.tell(Job(store.database.url, store.database.pooled, store.ledger, origin, secret))

    def read(self, end: int, told: Callable[[], None]) -> None:
        """Read up to the position `end`, or until too many pages were unsound; `told` is called after each page."""
        self._end = end
        with ThreadPoolExecutor(1, thread_name_prefix="verify") as reader:
            own = self._begin_own(reader)
            while self._turns and self._unsound < UNSOUND_MAX:
                self._hand_out()
                if own is not None and own.page is not None and len(self._turns) <= AHEAD_MAX:
                    page = own.page.result()
                    self._size = next_size(page) if page.rows else self._size
                    following = self._begin_own(reader)
                    own.settle(stretch_of(page, own.span.first, own.span.last, self._ledger))
                    own = following
                    self._listen(wait=False)
                else:
                    self._listen(wait=True)
                self._join(told)

    def _begin_own(self, reader: ThreadPoolExecutor) -> _Turn | None:
        """Take the next page that nobody has, and begin to read it."""
        span = self._next_span()
        if span is None:
            return None
        turn = _Turn(span, reader.submit(_read, self._store, span))
        self._turns.append(turn)
        return turn

    def _next_span(self) -> Span | None:
        if self._next > self._end:
            return None
        # The last ones are shorter, so that nobody waits long for the other.
        fair = max(SIZE_MIN, (self._end - self._next) // SHARES)
        span = Span(self._next, min(self._end, self._next + min(self._size, fair) - 1))
        self._next = span.last + 1
        return span

    def _hand_out(self) -> None:
        """Keep the helper busy."""
        while self._helper is not None and self._is_ready and len(self._in_hand) < IN_HAND_MAX:
            span = self._next_span()
            if span is None:
                return
            self._helper.tell(span)
            turn = _Turn(span, None)
            self._turns.append(turn)
            self._in_hand.append(turn)

    def _listen(self, *, wait: bool) -> None:
        """Take the helper's answers that are there, or wait for one."""
        while self._helper is not None:
            try:
                answer = self._helper.answers.get(wait and bool(self._in_hand), ANSWER_S)
            except Empty:
                if wait and self._in_hand:
                    self._let_go(f"no answer for {ANSWER_S:.0f} s")
                return
            wait = False
            if answer is None or answer.trouble is not None:
                self._let_go(self._helper.end() if answer is None else str(answer.trouble))
            elif self._is_ready:
                self._in_hand.popleft().settle(answer.stretch)
            else:
                self._is_ready = True

    def _let_go(self, why: str) -> None:
        self._helper, self.trouble = None, why
        while self._in_hand:
            self._in_hand.popleft().settle(None)

    def _join(self, told: Callable[[], None]) -> None:
        """Take over what is next, as far as it has been looked at."""
        while self._turns and self._turns[0].is_settled and self._unsound < UNSOUND_MAX:
            turn = self._turns.popleft()
            if turn.stretch is None or not self._reading.join(turn.stretch):
                self._unsound += self.trouble is None
                self._reading.take(_read(self._store, turn.span))
            told()


def _read(store: Store, span: Span) -> Page:
    page = read(store, span.first - 1, span.last - span.first + 1)
    return upto(span.last, page) if page.rows else page
