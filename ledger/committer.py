"""Stores appends: a thread that takes whatever waits, links it to the verified head and commits it in one transaction.

There is no timer: busy callers share a commit, and one who is alone makes it without the thread. While the server works
for a group, the one before it is anchored and answered. Where another process was faster, the head row is locked, its
entries are followed, and the group is linked anew. A lost connection is treated the same way: under the lock either the
lost group's keys are there, or it can never be stored any more, because the head has moved.
"""

import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext

import psycopg

from ledger import driver, flush
from ledger.appending import (
    Failure,
    Projector,
    is_about_all,
    meaning,
)
from ledger.clock import Clock
from ledger.errors import CorrigendaError, UnavailableError, failure, refuse
from ledger.sealing import Draft, prepare
from ledger.store import Database, Store
from ledger.storing import Failed, Held, Linked, Storing
from ledger.verified import VerifiedLedger
from ledger.waiting import Awaited, Group, Line, Outcome, Waiting, fail

PATIENCE_S = 20.0
PAUSE_S, PAUSE_MAX_S = 0.02, 1.0
YIELD_S = 0.05  # how long a page of appends lets others go first: under steady load somebody always waits


class Committer:
    """Appends to one ledger, for all threads of a process."""

    def __init__(
        self, ledger: VerifiedLedger, database: Database, projectors: Sequence[Projector], clock: Clock
    ) -> None:
        self._ledger = ledger
        self._storing = Storing(ledger, database, projectors, clock)
        self._line = Line()
        self._turn = threading.Lock()  # held by whoever writes: the thread, a caller alone, or a holder of the head
        self._next = threading.Lock()  # held by whoever waits for a turn: a caller alone would always be faster
        self._stored: Linked = []  # by the thread, and not yet answered
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False

    # ---------------------------------------------------------------- for callers

    def submit(self, draft: Draft) -> "Future[Outcome]":
        """Queue an append and return what will become of it. Who stops waiting for it does not take it back.

        Errors, at once: QUEUE_FULL, PAYLOAD_TOO_LARGE, VALIDATION_FAILED. In the future: INTEGRITY_BROKEN, UNAVAILABLE
        (the message says whether the outcome is known).
        """
        self._line.check_room()
        future = Future[Outcome]()
        future.set_running_or_notify_cancel()  # from here on nobody can cancel it
        self._put(Waiting(prepare(draft), future))
        return future

    def append(self, draft: Draft, patience_s: float) -> Outcome:
        """Append, and wait for what becomes of it. Errors: as `submit` and its future; TimeoutError.

        Who finds nobody else at it stores it in their own thread: to hand it over and back takes a third of the time of
        an append that is alone.
        """
        self._line.check_room()
        awaited = Awaited()
        waiting = Waiting(prepare(draft), awaited)
        if patience_s < flush.ANSWER_S or not self._answered_here(waiting):
            self._put(waiting)
        return awaited.result(patience_s)

    @contextmanager
    def hold(self, *, more: bool = False) -> Generator[Held]:
        """Lock the head for a page of appends decided one on the other. What waits comes first, for a while.

        With `more` to come, the anchor is given the page while the next one is stored, or by `settle`: before that
        none of its appends may be answered.
        """
        patience = time.monotonic() + YIELD_S
        while not self._line.is_empty and time.monotonic() < patience:
            time.sleep(0.001)
        store = self._storing.store
        with self._next, self._turn:
            with store.transaction() as connection, self._reading_on(store):
                row = self._storing.lock(connection)
                held = Held(connection, row, self._storing)
                yield held
                held.end()
            if not more:
                self._storing.keep()

    def _reading_on(self, store: Store) -> AbstractContextManager[None]:
        """Have what decides read on the connection that holds the head: a pooler may have no second one to give.

        Elsewhere it reads on its own, where a query is one round trip.
        """
        return self._ledger.store.through(store) if store.database.pooled else nullcontext()

    def settle(self) -> None:
        """Give the anchor what a page with more to come has left."""
        with self._next, self._turn:
            self._storing.keep()

    def close(self) -> None:
        """Store what waits, and let go of the connection."""
        with self._starting:
            self._closed = True
            if self._thread is not None:
                self._line.end()
        if self._thread is not None:
            self._thread.join()
        with self._next, self._turn:
            self._storing.store.database.close()

    @property
    def is_idle(self) -> bool:
        """Report whether no append waits."""
        return self._line.is_empty

    def _put(self, waiting: Waiting) -> None:
        with self._starting:
            self._start()
            self._line.put(waiting)

    def _answered_here(self, waiting: Waiting) -> bool:
        """Try once to store an append in the caller's thread, and report whether it has its answer.

        What has to wait, for the head's lock or for trouble to pass, is left to the committer's.
        """
        if not self._line.is_empty or self._next.locked() or not self._turn.acquire(blocking=False):
            return False
        try:
            if not (self._closed or self._storing.locks):
                self._storing.answer(self._storing.attempt([waiting], _nothing, _no_more))
        except Failed as failed:
            waiting.is_unknown = failed.kind is Failure.UNKNOWN
        except Exception as error:  # as in the thread
            waiting.fail(error)
        finally:
            self._turn.release()
        return not waiting.is_open

    # ---------------------------------------------------------------- the thread

    def _start(self) -> None:
        if self._closed:
            refuse("UNAVAILABLE", "This ledger was closed, and stores nothing any more. Open it again.")
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (group := self._line.group()) is not None:
            self._see_through(group, _Patience(unknown=any(one.is_unknown for one in group)))
            if self._line.is_empty:
                self._answer()  # else the next attempt does, while the server works for it
        self._answer()

    def _answer(self) -> None:
        """Answer those whose appends this thread has stored."""
        stored, self._stored = self._stored, []
        self._storing.answer(stored)

    def _see_through(self, group: Group, patience: "_Patience", *, alone: bool = False) -> None:
        """Bring a group to its end: when this returns, each of its appends was stored or has its answer.

        With `alone` nothing that waits is taken into the group.
        """
        drain = _nothing if alone else self._line.drain_into
        try:
            while group:
                try:
                    self._attempt(group, drain)
                except Failed as failed:
                    self._after(failed, group, patience)
                group[:] = [one for one in group if one.is_open]
        except UnavailableError as error:
            fail(group, _gave_up(error, unknown=True) if patience.unknown else error)
        except CorrigendaError as error:
            fail(group, error)
        except Exception as error:  # whatever it is, it is the callers': the next group must not meet a dead thread
            fail(group, error)

    def _attempt(self, group: Group, drain: Callable[[Group], None]) -> None:
        """Try once to store a group. Those who were stored before wait neither for its turn nor for its end."""
        try:
            if not self._turn.acquire(blocking=False):
                self._answer()
                with self._next:
                    self._turn.acquire()
            try:
                stored = self._storing.attempt(group, drain, self._answer)
            finally:
                self._turn.release()
            self._stored += stored
        except BaseException:
            self._answer()
            raise

    def _after(self, failed: Failed, group: Group, patience: "_Patience") -> None:
        """Decide what to do after an attempt failed. Whatever is done next is done under the head's lock."""
        if failed.kind is Failure.REFUSED and failed.locked:
            self._one_by_one(failed.error, group, patience)
        elif failed.kind in (Failure.ROLLED_BACK, Failure.UNKNOWN) and not patience.waited(failed.kind):
            fail(group, _gave_up(failed.error, unknown=patience.unknown))

    def _one_by_one(self, error: psycopg.Error, group: Group, patience: "_Patience") -> None:
        """Find the append that the database refuses: it alone is answered with the refusal."""
        if len(group) == 1 or is_about_all(error):
            # After a lost connection a refusal is not the last word: nothing has moved the head, so what was sent then
            # may be stored yet.
            lost = patience.unknown
            fail(group, _gave_up(error, unknown=True) if lost else meaning(error, self._ledger.walk.head.size))
            return
        while group:
            self._see_through([group.pop(0)], patience, alone=True)


class _Patience:
    """How long a group is tried again, with pauses that double; and whether its outcome was ever unknown.

    It begins with the first failure: an attempt on a server that says nothing may take longer than all of it.
    """

    def __init__(self, *, unknown: bool) -> None:
        self.unknown = unknown
        self._until: float | None = None
        self._pause = PAUSE_S

    def waited(self, kind: Failure) -> bool:
        """Wait before another attempt, and report whether there is to be one."""
        self.unknown = self.unknown or kind is Failure.UNKNOWN
        now = time.monotonic()
        self._until = self._until or now + PATIENCE_S
        if now + self._pause > self._until:
            return False
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, PAUSE_MAX_S)
        return True


def _nothing(_: Group) -> None:
    """Take nothing more into a group."""


def _no_more() -> None:
    """Do nothing while the server works."""


def _gave_up(error: Exception, *, unknown: bool) -> Exception:
    said = driver.said(error)
    if unknown:
        return failure(
            "UNAVAILABLE",
            f"The database was needed and does not answer ({said}). Whether the write took effect is not known: repeat "
            "it with the same idempotency key. Check that the server runs and the URL is right.",
        )
    return failure("UNAVAILABLE", f"The database refused for now ({said}); nothing was stored. Try again.")
