"""Stores appends: a thread that takes whatever waits, links it to the verified head and commits it in one transaction.

There is no timer: an idle caller pays for one commit, busy ones share it. The head row is guarded, so what this process
has verified is the whole truth whenever a commit succeeds: keys and stream versions are looked up there, not in the
database. Where another process was faster, the head row is locked, its entries are followed, and the group is linked
anew. A lost connection is treated the same way: under the lock either the lost group's keys are there, or it can never
be stored any more, because the head has moved.
"""

import queue
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress

import psycopg
from msgspec import Struct
from psycopg.pq.abc import PGresult

from ledger import driver
from ledger.appending import PROJECTOR_VERSION as PROJECTOR_VERSION
from ledger.appending import Failure, Projector, classify, group_writes, is_about_all, meaning, other_version
from ledger.clock import Clock, stamp
from ledger.errors import CorrigendaError, UnavailableError, failure, refuse
from ledger.flush import Flush
from ledger.limits import GROUP_BYTES_MAX, GROUP_EVENTS_MAX, QUEUE_MAX
from ledger.sealing import Draft, Prepared, Sealed, Sealer, Tip, prepare
from ledger.store import QUERIES, Database, HeadRow, Store, Stored, Write, no_head_row
from ledger.verified import Recorded, VerifiedLedger
from ledger.wire import integer

LOCK_TIMEOUT_MS = "5000"
GAP_MAX = 5_000  # entries of others that are followed under the lock; more of them are followed before it
LOCKED_GROUPS = 64  # after a lost race so many groups lock the head; each that met nobody takes eight off
PATIENCE_S = 20.0
YIELD_S = 0.05  # how long a page of appends lets others go first: under steady load the queue is never empty
PAUSE_S, PAUSE_MAX_S = 0.02, 1.0


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


class _Waiting(Struct, frozen=True):
    prepared: Prepared
    future: "Future[Outcome]"

    @property
    def is_open(self) -> bool:
        return not self.future.done()

    def answer(self, outcome: Outcome) -> None:
        if self.is_open:
            self.future.set_result(outcome)

    def fail(self, error: Exception) -> None:
        if self.is_open:
            self.future.set_exception(error)


Linked = list[tuple[_Waiting, list[Sealed]]]


class Committer:
    """Appends to one ledger, for all threads of a process."""

    def __init__(
        self, ledger: VerifiedLedger, database: Database, projectors: Sequence[Projector], clock: Clock
    ) -> None:
        self._ledger = ledger
        self._store = Store(database, ledger.store.ledger)
        self._projectors = projectors
        self._clock = clock
        self._sealer = Sealer(ledger.keys, ledger.origin)
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._turn = threading.Lock()  # held by whoever is about to write: the thread's group, or a holder of the head
        self._over: _Waiting | None = None  # taken from the queue, and too large for the group that it met
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._flush: Flush | None = None
        self._contended = 0
        self._sent = False  # whether a COMMIT was sent in this attempt

    # ---------------------------------------------------------------- for callers

    def submit(self, draft: Draft) -> "Future[Outcome]":
        """Queue an append and return what will become of it. Who stops waiting for it does not take it back.

        Errors, at once: QUEUE_FULL, PAYLOAD_TOO_LARGE, VALIDATION_FAILED. In the future: INTEGRITY_BROKEN, UNAVAILABLE
        (the message says whether the outcome is known).
        """
        if self._queue.qsize() >= QUEUE_MAX:
            raise _queue_full()
        waiting = _Waiting(prepare(draft), Future())
        waiting.future.set_running_or_notify_cancel()  # from here on nobody can cancel it
        with self._starting:
            self._start()
            self._queue.put(waiting)
        return waiting.future

    @contextmanager
    def hold(self) -> Generator["Held"]:
        """Lock the head for a page of appends decided one on the other. What waits comes first, for a while."""
        patience = time.monotonic() + YIELD_S
        while (self._queue.qsize() or self._over) and time.monotonic() < patience:
            time.sleep(0.001)
        with self._turn:
            with self._store.transaction():
                self._store.head(lock=True)
                row = self._ledger.catch_up_with(self._store)
                held = Held(row, self)
                yield held
            if held.stored:
                self._take([item.recorded for item in held.stored], row)

    def close(self) -> None:
        """Store what waits, and let go of the connection."""
        with self._starting:
            self._closed = True
            if self._thread is not None:
                self._queue.put(None)
        if self._thread is not None:
            self._thread.join()
        self._store.database.close()

    def seal(self, drafts: Sequence[Draft]) -> list[list[Sealed]]:
        """Return each draft's entries as they would be stored next, and store nothing."""
        prepared = [prepare(draft) for draft in drafts]
        (tip, _), at = self._tip(prepared), stamp(self._clock())
        return [self._sealer.seal(one, tip, at) for one in prepared]

    def write(self, row: HeadRow, sealed: Sequence[Sealed]) -> None:
        """Store sealed entries on the walk's head inside the caller's transaction."""
        writes = self._writes(row, sealed)
        try:
            with self._store.transaction() as connection:
                self._on(connection).run(writes)
        except psycopg.Error as error:
            if classify(error) is Failure.REFUSED:
                raise meaning(error, row.seq + 1) from error
            raise

    # ---------------------------------------------------------------- the thread

    def _start(self) -> None:
        if self._closed:
            refuse("UNAVAILABLE", "This ledger was closed, and stores nothing any more. Open it again.")
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (first := self._over or self._queue.get()) is not None:
            self._over = None
            group = [first]
            self._drain(group)
            self._see_through(group, _Patience())

    def _drain(self, group: list[_Waiting]) -> None:
        """Add what waits, up to the limits of a group. An append is never split: one above them is a group alone."""
        events = sum(len(one.prepared.parts) for one in group)
        size = sum(one.prepared.size for one in group)
        while self._over is None:
            try:
                further = self._queue.get_nowait()
            except queue.Empty:
                return
            if further is None:
                self._queue.put(None)  # the end: for `_work` to meet
                return
            events += len(further.prepared.parts)
            size += further.prepared.size
            if events > GROUP_EVENTS_MAX or size > GROUP_BYTES_MAX:
                self._over = further
                return
            group.append(further)

    def _see_through(self, group: list[_Waiting], patience: "_Patience", *, alone: bool = False) -> None:
        """Bring a group to its end: when this returns, each of its appends has its answer.

        With `alone` nothing that waits is taken into the group.
        """
        try:
            while group:
                try:
                    self._attempt(group, alone=alone)
                except psycopg.Error as error:
                    self._after(error, group, patience)
                group[:] = [one for one in group if one.is_open]
        except UnavailableError as error:
            _fail(group, _gave_up(error, unknown=True) if patience.unknown else error)
        except CorrigendaError as error:
            _fail(group, error)
        except Exception as error:  # whatever it is, it is the callers': the next group must not meet a dead thread
            _fail(group, error)

    def _after(self, error: psycopg.Error, group: list[_Waiting], patience: "_Patience") -> None:
        """Decide what to do after a flush failed. Whatever is done next is done under the head's lock."""
        kind, locked = classify(error), self._contended > 0
        self._contended = LOCKED_GROUPS
        if kind is Failure.UNKNOWN and not self._sent:
            kind = Failure.ROLLED_BACK
        if kind is Failure.REFUSED and locked:
            self._one_by_one(error, group, patience)
        elif kind in (Failure.ROLLED_BACK, Failure.UNKNOWN) and not patience.waited(kind):
            _fail(group, _gave_up(error, unknown=patience.unknown))

    def _one_by_one(self, error: psycopg.Error, group: Sequence[_Waiting], patience: "_Patience") -> None:
        """Find the append that the database refuses: it alone is answered with the refusal."""
        if len(group) == 1 or is_about_all(error):
            # After a lost connection a refusal is not the last word: nothing has moved the head, so what was sent then
            # may be stored yet.
            lost = patience.unknown
            _fail(group, _gave_up(error, unknown=True) if lost else meaning(error, self._ledger.walk.head.size))
            return
        for one in group:
            self._see_through([one], patience, alone=True)

    # ---------------------------------------------------------------- one attempt

    def _attempt(self, group: list[_Waiting], *, alone: bool) -> None:
        self._sent = False
        with self._turn, self._store.database.connected() as connection:
            flush = self._on(connection)
            row = self._ledger.head_row
            if self._contended or row is None:
                self._commit_locked(flush, group, alone=alone)
            else:
                self._commit(flush, group, row)

    def _commit(self, flush: Flush, group: list[_Waiting], row: HeadRow) -> None:
        """Commit on the head that is known; the guard refuses if it has moved."""
        self._ledger.walk.adopt()
        linked = self._link(group)
        if linked:
            writes = self._writes(row, _all(linked))
            try:
                self._sent = True
                flush.run([_BEGIN, self._enter, *writes, _COMMIT])
            except psycopg.Error:
                self._roll_back(flush)
                raise
            self._answer(linked, row)

    def _commit_locked(self, flush: Flush, group: list[_Waiting], *, alone: bool) -> None:
        """Lock the head, follow what others have appended, and commit on that."""
        after = self._ledger.walk.position
        lock, gap = self._lock_writes(after)
        try:
            *_, locked, found = flush.run([_BEGIN, self._enter, lock, gap])
            row, page = _head_row(locked), _page(found)
            if len(page) == GAP_MAX:  # too much to be followed while everybody waits
                self._roll_back(flush)
                self._ledger.catch_up()
                return
            self._follow(row, page)
            self._contended = max(0, self._contended - 8) if row.seq == after else LOCKED_GROUPS
            if not alone:
                self._drain(group)  # the lock may have been waited for: take what came meanwhile
            linked = self._link(group)
            self._sent = bool(linked)
            flush.run([*self._writes(row, _all(linked)), _COMMIT] if linked else [_ROLLBACK])
        except BaseException:
            self._roll_back(flush)
            raise
        self._answer(linked, row)

    def _lock_writes(self, after: int) -> tuple[Write, Write]:
        ledger = self._store.ledger
        gap = {"ledger": ledger, "after": after, "until": after + GAP_MAX}
        return Write(QUERIES["lock_head"], {"ledger": ledger}), Write(QUERIES["read_gap"], gap)

    def _follow(self, row: HeadRow, page: Sequence[Stored]) -> None:
        """Follow entries that were read under the lock, and hold the head row against them."""
        if row.projector != PROJECTOR_VERSION:
            raise other_version(row.projector)
        self._ledger.follow(row, page)

    def _link(self, group: Sequence[_Waiting]) -> Linked:
        """Answer what must not be stored, and link the rest to the walk's head, in order."""
        tip, done = self._tip([one.prepared for one in group])
        at = stamp(self._clock())
        requests = [one.prepared.draft.request for one in group]
        mine: set[str | None] = {None}
        linked: Linked = []
        for one, request in zip(group, requests, strict=True):
            moved = tip.moved(one.prepared.draft.reads)
            if request in done:
                one.answer(Replayed(done[request or ""]))
            elif moved is not None:
                one.answer(Conflicted(moved))
            elif request is not None and request in mine:
                one.answer(Conflicted(one.prepared.parts[0].stream))
            else:
                try:
                    linked.append((one, self._sealer.seal(one.prepared, tip, at)))
                    mine.add(request)
                except CorrigendaError as refusal:
                    one.fail(refusal)
        return linked

    def _tip(self, group: Sequence[Prepared]) -> tuple[Tip, dict[str, int]]:
        """Return where a group would be linked to, and the positions of those of its requests that were carried out."""
        walk = self._ledger.walk
        with walk.lock:
            streams = (stream for one in group for stream in one.draft.streams)
            ends, done = walk.known(streams, (one.draft.request for one in group))
            return Tip(walk.head, ends), done

    def _writes(self, row: HeadRow, sealed: Sequence[Sealed]) -> list[Write]:
        return group_writes(self._store.ledger, row, sealed, self._projectors)

    def _answer(self, linked: Linked, row: HeadRow) -> None:
        """Take over what was committed, and answer: only when the anchor holds it, so far as it can be written."""
        if linked:
            self._take([item.recorded for item in _all(linked)], row)
        for one, sealed in linked:
            one.answer(Appended([item.recorded for item in sealed]))

    def _take(self, recorded: Sequence[Recorded], row: HeadRow) -> None:
        try:
            self._ledger.take([item.entry for item in recorded], row)
        except CorrigendaError:
            # It is stored, and saying otherwise would be a lie. What is wrong with the anchor is said by the next read.
            return

    def _on(self, connection: "psycopg.Connection[tuple[object, ...]]") -> Flush:
        if self._flush is None or self._flush.connection is not connection:
            self._flush = Flush(connection, prepare=not self._store.database.pooled)
        return self._flush

    def _roll_back(self, flush: Flush) -> None:
        with suppress(psycopg.Error):
            flush.connection.execute(QUERIES["rollback"])

    @property
    def _enter(self) -> Write:
        return Write(QUERIES["enter"], {"ledger": self._store.ledger, "lock_timeout": LOCK_TIMEOUT_MS})


class Held:
    """The locked head, for as long as the block runs."""

    def __init__(self, row: HeadRow, committer: Committer) -> None:
        self.row = row
        self.stored: list[Sealed] = []
        self._committer = committer

    def would_be(self, draft: Draft) -> list[Recorded]:
        """Return an append's events as they would be stored, and store nothing."""
        (sealed,) = self._committer.seal([draft])
        return [item.recorded for item in sealed]

    def store(self, drafts: Sequence[Draft]) -> list[list[Recorded]]:
        """Store a page of appends, once per hold; they are committed when the block ends."""
        groups = self._committer.seal(drafts)
        self.stored = [item for group in groups for item in group]
        if self.stored:
            self._committer.write(self.row, self.stored)
        return [[item.recorded for item in group] for group in groups]


class _Patience:
    """How long a group is tried again, with pauses that double; and whether its outcome was ever unknown.

    It begins with the first failure: an attempt on a server that says nothing may take longer than all of it.
    """

    def __init__(self) -> None:
        self.unknown = False
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


_BEGIN = Write(QUERIES["begin"], {})
_COMMIT = Write(QUERIES["commit"], {})
_ROLLBACK = Write(QUERIES["rollback"], {})


def _all(linked: Linked) -> list[Sealed]:
    return [item for _, sealed in linked for item in sealed]


def _head_row(answer: PGresult) -> HeadRow:
    if answer.ntuples == 0:
        raise no_head_row()
    seq, hash_, incarnation, gen, projector = (answer.get_value(0, column) for column in range(5))
    return HeadRow(integer(seq), hash_ or b"", integer(incarnation), integer(gen), integer(projector))


def _page(answer: PGresult) -> list[Stored]:
    rows = range(answer.ntuples)
    value = answer.get_value
    return [Stored(integer(value(row, 0)), value(row, 1) or b"", value(row, 2) or b"", None, None) for row in rows]


def _fail(group: Sequence[_Waiting], error: Exception) -> None:
    for one in group:
        one.fail(error)


def _gave_up(error: Exception, *, unknown: bool) -> Exception:
    said = driver.said(error)
    if unknown:
        return failure(
            "UNAVAILABLE",
            f"The database was needed and does not answer ({said}). Whether the write took effect is not known: repeat "
            "it with the same idempotency key. Check that the server runs and the URL is right.",
        )
    return failure("UNAVAILABLE", f"The database refused for now ({said}); nothing was stored. Try again.")


def _queue_full() -> Exception:
    return failure(
        "QUEUE_FULL",
        f"{QUEUE_MAX} writes are waiting to be stored, and no more are taken. Nothing was stored; try again shortly.",
        retry_after_ms=100,
    )
