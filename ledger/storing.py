"""One attempt to store a group: on the head that is known, or on the head row locked and followed up to.

The head row is guarded, so what this process has verified is the whole truth whenever a commit succeeds: keys and
stream versions are looked up there, not in the database. An attempt that fails leaves nothing, or an outcome that is
not known; which of them, and what then, is the committer's to say.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice

import psycopg
from psycopg.pq.abc import PGresult

from ledger.anchor import Link
from ledger.appending import PROJECTOR_VERSION, Failure, Projector, classify, group_writes, meaning, other_version
from ledger.chain import broken
from ledger.clock import Clock, stamp
from ledger.errors import CorrigendaError
from ledger.flush import Flush
from ledger.sealing import Draft, Sealed, Sealer, Tip, prepare
from ledger.store import QUERIES, Database, HeadRow, Row, Store, Stored, Write, no_head_row
from ledger.verified import Recorded, VerifiedLedger
from ledger.waiting import Appended, Conflicted, Group, Replayed, Waiting, answer_all
from ledger.wire import integer

LOCK_TIMEOUT_MS = "5000"
GAP_MAX = 5_000  # entries of others that are followed under the lock; more of them are followed before it
LOCKED_GROUPS = 64  # after a lost race so many groups lock the head; each that met nobody takes eight off
MET_NOBODY = 8
LAST_OF_TIP = 5  # the column of `read_tip` that says where the last event is
PART_APPENDS = 128  # of a page: the server works for them while the next ones are asked for and sealed

Connection = psycopg.Connection[Row]
Linked = list[tuple[Waiting, list[Sealed]]]


class Failed(Exception):
    """An attempt that the database ended: what became of it, and whether the head was locked for it."""

    def __init__(self, error: psycopg.Error, kind: Failure, *, locked: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.kind = kind
        self.locked = locked


_BEGIN = Write(QUERIES["begin"], {})
_COMMIT = Write(QUERIES["commit"], {})
_ROLLBACK = Write(QUERIES["rollback"], {})


class Storing:
    """Stores groups on one connection, for one thread at a time."""

    def __init__(
        self, ledger: VerifiedLedger, database: Database, projectors: Sequence[Projector], clock: Clock
    ) -> None:
        self.store = Store(database, ledger.store.ledger)
        self._ledger = ledger
        self._projectors = projectors
        self._clock = clock
        self._sealer = Sealer(ledger.keys, ledger.origin)
        self._flush: Flush | None = None
        self._contended = 0
        self._was_sent = False  # whether what commits was sent in the last attempt

    @property
    def locks(self) -> bool:
        """Report whether the next attempt locks the head before it links."""
        return self._contended > 0

    def attempt(self, group: Group, drain: Callable[[Group], None], meanwhile: Callable[[], None]) -> Linked:
        """Try once to store a group, and return what was stored: it has left the group, and is for `answer`.

        `drain` adds what came while the head was waited for; `meanwhile` is called while the server works. What is open
        in the group when this returns has to be tried again. Failed, with the head locked in the next attempts, where
        the database or the way to it says no.
        """
        self._was_sent, locked = False, self.locks
        try:
            with self.store.database.connected() as connection:
                flush, row = self._on(connection), self._ledger.head_row
                if locked or row is None:
                    return self._commit_locked(flush, group, drain, meanwhile)
                return self._commit(flush, group, row, meanwhile)
        except psycopg.Error as error:
            kind = classify(error)
            if kind is Failure.UNKNOWN and not self._was_sent:
                kind = Failure.ROLLED_BACK
            self._contended = LOCKED_GROUPS
            raise Failed(error, kind, locked=locked) from error

    def answer(self, stored: Linked) -> None:
        """Answer those whose appends were stored: only when the anchor holds them, so far as it can be written."""
        try:
            self.keep()
        finally:
            answer_all([(one, Appended([item.recorded for item in sealed])) for one, sealed in stored])

    def seal(self, drafts: Iterable[Draft]) -> Iterator[list[list[Sealed]]]:
        """Yield each draft's entries as they would be stored next, a part of the drafts at a time; nothing is stored.

        They are asked for, and sealed, when a part is.
        """
        at, coming = stamp(self._clock()), iter(drafts)
        tip: Tip | None = None
        while part := [*islice(coming, PART_APPENDS)]:
            head, ends, _ = self._ledger.walk.tip(_streams(part), ())
            tip = Tip(head, ends) if tip is None else Tip(tip.head, ends | tip.ends)
            yield [self._sealer.seal(prepare(draft), tip, at) for draft in part]

    def write(
        self, connection: Connection, row: HeadRow, drafts: Iterable[Draft], *, last: bool = False
    ) -> list[list[Sealed]]:
        """Store drafts on the walk's head inside the caller's transaction, and return each one's entries.

        While the server stores a part of them, the next part is asked for and sealed; while it stores the last ones,
        the anchor is given what was stored before. What is the `last` of the transaction is committed behind them, in
        the same flush, and taken over.
        """
        written: list[list[Sealed]] = []
        links: list[Link] = []

        def parts() -> Iterator[list[Write]]:
            for part in self.seal(drafts):
                written.extend(part)
                yield self._writes(row, [*chain.from_iterable(part)])
            if last:
                yield [_COMMIT]

        def meanwhile() -> None:
            self.keep()
            if last:
                links.extend(Link.of(item.entry) for item in chain.from_iterable(written))

        try:
            self._on(connection).stream(parts(), meanwhile)
        except psycopg.Error as error:
            if classify(error) is Failure.REFUSED:
                raise meaning(error, row.seq + 1) from error
            raise
        if last and written:
            self.take([*chain.from_iterable(written)], row, links)
        return written

    def commit(self, connection: Connection, row: HeadRow, sealed: Sequence[Sealed]) -> None:
        """Commit the caller's transaction, and take over what was stored in it, on the head row `row`.

        While the server sees to it, the links are made.
        """
        links: list[Link] = []
        self._on(connection).run([_COMMIT], lambda: links.extend(Link.of(item.entry) for item in sealed))
        if sealed:
            self.take(sealed, row, links)

    def take(self, sealed: Sequence[Sealed], row: HeadRow, links: Sequence[Link] = ()) -> None:
        """Take over entries that were committed on the head row `row`; to `keep` them is the next thing to do."""
        # They are stored, and saying otherwise would be a lie. What is wrong with the anchor is said by the next read.
        with suppress(CorrigendaError):
            self._ledger.take([item.entry for item in sealed], row, links)

    def keep(self) -> None:
        """Give the anchor what was taken over, if it can be written."""
        with suppress(CorrigendaError):  # as above
            self._ledger.walk.keep()

    # ---------------------------------------------------------------- the two ways

    def _commit(self, flush: Flush, group: Group, row: HeadRow, meanwhile: Callable[[], None]) -> Linked:
        """Commit on the head that is known; the guard refuses if it has moved."""
        linked, links = self._link(group), list[Link]()
        if linked:
            sealed = _all(linked)
            writes = self._writes(row, sealed)

            def while_it_works() -> None:
                meanwhile()
                links.extend(Link.of(item.entry) for item in sealed)
                self._ledger.walk.anchor.make_ready(links)

            try:
                self._was_sent = True
                flush.run(self._transaction(writes), while_it_works)
            except psycopg.Error:
                self._roll_back(flush)
                raise
        return self._stored(group, linked, row, links)

    def _transaction(self, writes: Sequence[Write]) -> list[Write]:
        """Return a flush that is a whole transaction.

        On a session of ours its end commits it: without BEGIN and COMMIT an append that is alone takes a twentieth less
        time, and the level of isolation is the session's, as `store` has set it. Behind a pooler the session is
        whichever is free, and so the level is said.
        """
        if self.store.database.pooled:
            return [_BEGIN, self._enter, *writes, _COMMIT]
        return [self._enter, *writes]

    def _commit_locked(
        self, flush: Flush, group: Group, drain: Callable[[Group], None], meanwhile: Callable[[], None]
    ) -> Linked:
        """Lock the head, follow what others have appended, and commit on that."""
        after = self._ledger.walk.position
        try:
            row, page, _ = self._locked(flush, after, before=[_BEGIN, self._enter], meanwhile=meanwhile)
            if len(page) == GAP_MAX:  # too much to be followed while everybody waits
                self._roll_back(flush)
                self._ledger.catch_up()
                return []
            self._follow(row, page)
            self._contended = max(0, self._contended - MET_NOBODY) if row.seq == after else LOCKED_GROUPS
            drain(group)
            linked = self._link(group)
            self._was_sent = bool(linked)
            flush.run([*self._writes(row, _all(linked)), _COMMIT] if linked else [_ROLLBACK])
        except BaseException:
            self._roll_back(flush)
            raise
        return self._stored(group, linked, row)

    def lock(self, connection: Connection) -> HeadRow:
        """Lock the head inside the caller's transaction, follow what others have appended, and return its row."""
        tip = Write(QUERIES["read_tip"], {"ledger": self.store.ledger})
        row, page, (found,) = self._locked(self._on(connection), self._ledger.walk.position, behind=[tip])
        last = integer(found.get_value(0, LAST_OF_TIP))
        if len(page) == GAP_MAX:
            row, page = self._ledger.catch_up_with(self.store), []
        self._follow(row, page)
        if last > row.seq:
            raise broken(row.seq + 1, "chain", "nothing above the head", "an entry")
        return row

    def _locked(
        self,
        flush: Flush,
        after: int,
        *,
        before: Sequence[Write] = (),
        behind: Sequence[Write] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> tuple[HeadRow, list[Stored], list[PGresult]]:
        """Lock the head in one flush; return its row, the entries above a position, and what was asked `behind` them.

        What comes `before` it opens the transaction.
        """
        ledger = self.store.ledger
        gap = {"ledger": ledger, "after": after, "until": after + GAP_MAX}
        lock = [Write(QUERIES["lock_head"], {"ledger": ledger}), Write(QUERIES["read_gap"], gap)]
        locked, found, *further = flush.run([*before, *lock, *behind], meanwhile)[len(before) :]
        return _head_row(locked), _page(found), further

    def _follow(self, row: HeadRow, page: Sequence[Stored]) -> None:
        """Follow entries that were read under the lock, and hold the head row against them."""
        if row.projector != PROJECTOR_VERSION:
            raise other_version(row.projector)
        self._ledger.follow(row, page)

    # ---------------------------------------------------------------- shared

    def _link(self, group: Group) -> Linked:
        """Answer what must not be stored, and link the rest to the walk's head, in order."""
        drafts = [one.prepared.draft for one in group]
        head, ends, done = self._ledger.walk.tip(_streams(drafts), (draft.request for draft in drafts))
        tip, at = Tip(head, ends), stamp(self._clock())
        mine: set[str] = set()
        linked: Linked = []
        for one in group:
            draft = one.prepared.draft
            moved = tip.moved(draft.reads) if draft.reads else None
            if draft.request is not None and draft.request in done:
                one.answer(Replayed(done[draft.request]))
            elif moved is not None:
                one.answer(Conflicted(moved))
            elif draft.request in mine:
                one.answer(Conflicted(one.prepared.parts[0].stream))
            else:
                try:
                    linked.append((one, self._sealer.seal(one.prepared, tip, at)))
                except CorrigendaError as refusal:
                    one.fail(refusal)
                else:
                    if draft.request is not None:
                        mine.add(draft.request)
        return linked

    def _writes(self, row: HeadRow, sealed: Sequence[Sealed]) -> list[Write]:
        return group_writes(self.store.ledger, row, sealed, self._projectors)

    def _stored(self, group: Group, linked: Linked, row: HeadRow, links: Sequence[Link] = ()) -> Linked:
        """Take over what was committed: all of the group is that, or was answered before."""
        if linked:
            self.take(_all(linked), row, links)
        group.clear()
        return linked

    def _on(self, connection: Connection) -> Flush:
        if self._flush is None or self._flush.connection is not connection:
            self._flush = Flush(connection, prepare=not self.store.database.pooled)
        return self._flush

    def _roll_back(self, flush: Flush) -> None:
        """Undo what is open; a flush without BEGIN has left nothing open, and then nothing is asked of the server."""
        with suppress(psycopg.Error):
            flush.connection.rollback()

    @property
    def _enter(self) -> Write:
        return Write(QUERIES["enter"], {"ledger": self.store.ledger, "lock_timeout": LOCK_TIMEOUT_MS})


class Held:
    """The locked head, for as long as the block runs."""

    def __init__(self, connection: Connection, row: HeadRow, storing: Storing) -> None:
        self.row = row
        self.stored: list[Sealed] = []
        self._is_committed = False
        self._connection = connection
        self._storing = storing

    def would_be(self, draft: Draft) -> list[Recorded]:
        """Return an append's events as they would be stored, and store nothing."""
        ((sealed,),) = self._storing.seal([draft])
        return [item.recorded for item in sealed]

    def store(self, drafts: Iterable[Draft], *, last: bool = False) -> list[list[Recorded]]:
        """Store a page of appends, once per hold; they are committed when the block ends.

        They are asked for a few at a time, and the server works meanwhile. If that raises, all of it is undone.
        Where they are the `last` thing that the block does, they are committed here: nobody waits for the server twice,
        and what the block raises behind them undoes nothing.
        """
        groups = self._storing.write(self._connection, self.row, drafts, last=last)
        self._is_committed = last
        self.stored = [*chain.from_iterable(groups)]
        return [[item.recorded for item in group] for group in groups]

    def end(self) -> None:
        """Commit what was stored, unless that is done."""
        if not self._is_committed:
            self._storing.commit(self._connection, self.row, self.stored)


def _streams(drafts: Iterable[Draft]) -> set[str]:
    return {stream for draft in drafts for stream in draft.streams}


def _all(linked: Linked) -> list[Sealed]:
    return [*chain.from_iterable(sealed for _, sealed in linked)]


def _head_row(answer: PGresult) -> HeadRow:
    if answer.ntuples == 0:
        raise no_head_row()
    seq, hash_, incarnation, gen, projector = (answer.get_value(0, column) for column in range(5))
    return HeadRow(integer(seq), hash_ or b"", integer(incarnation), integer(gen), integer(projector))


def _page(answer: PGresult) -> list[Stored]:
    rows = range(answer.ntuples)
    value = answer.get_value
    return [Stored(integer(value(row, 0)), value(row, 1) or b"", value(row, 2) or b"", None, None) for row in rows]
