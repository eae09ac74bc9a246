"""A new generation of all read models, made beside the live one from verified events, and put in its place.

Each page of events is one transaction of rows and progress, so whoever is killed goes on where they were. Nothing waits
for it but the swap: a short transaction under the head's lock that applies what is left and moves the head row's
generation. The live generation is never written by it, and never removed.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager

import psycopg
from msgspec import Struct

from ledger.appending import PROJECTOR_VERSION, Projector
from ledger.chain import Envelope
from ledger.errors import failure
from ledger.flush import Flush
from ledger.sql import load
from ledger.store import HeadRow, Store, Write
from ledger.verified import Recorded, VerifiedLedger
from projections import digests
from projections.digests import Difference, Sums
from projections.models import ALL

QUERIES = load("projections")

PAGE = 2_500
SWAP_EVENTS_MAX = 100  # what may be left to apply when the head is locked
UNDER_LOCK_MAX = 1_000  # and what is applied there at most: others may be quick
SWAPS_MAX = 100
GENERATION_MAX = 1 << 62  # a head row that somebody set above this is not counted on from
PAUSE_MAX_S = 0.5
LOCK_WAIT_S = 0.5  # a process that was killed may take that long to be missed

# What a projector may meet in an event that it was not made for.
_FAILS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

Progress = Callable[[int, int], None]


class Rebuilt(Struct, frozen=True, kw_only=True):
    """What a rebuild did.

    `began_at` is the position after which this call went on: −1 unless it was resumed. `differences` are those of a
    live generation of the same projector version; `rows` and `rows_before` are the numbers of rows in each table when
    the two were compared. `locked_s` is how long the swap held the head.
    """

    generation: int
    retired: int
    projector: int
    projector_before: int
    position: int
    began_at: int
    rows: dict[str, int]
    rows_before: dict[str, int]
    differences: tuple[Difference, ...]
    locked_s: float


class _Compared(Struct, frozen=True, kw_only=True):
    rows: dict[str, int]
    rows_before: dict[str, int]
    differences: tuple[Difference, ...] = ()


def rebuild(
    ledger: VerifiedLedger,
    *,
    projectors: Sequence[Projector] = ALL,
    is_idle: Callable[[], bool] = lambda: True,
    progress: Progress | None = None,
) -> Rebuilt:
    """Rebuild all read models, or go on with a rebuild that was interrupted, and swap.

    While `is_idle` says no, or the ledger grows, every page is followed by a pause as long as it took. Errors:
    UNAVAILABLE (a rebuild is under way, or the database does not answer: what was built stays), INTEGRITY_BROKEN (an
    event is not what was verified, or one that no read model can take up, named; the live generation stays).
    """
    with (
        closing(ledger.store.another().database) as work,
        closing(ledger.store.another().database) as reading,
        closing(ledger.store.another().database) as aside,
        closing(ledger.store.another().database) as lock,
    ):
        own = ledger.store.ledger
        run = _Run(ledger, Store(work, own), Store(reading, own), projectors, is_idle, progress)
        with _alone(Store(lock, own)):
            run.begin()
            compared = run.compare(Store(aside, own))
            return run.swap(compared)


class _Run:
    """One call of `rebuild`. All that it writes goes through one connection, and pages are read through another."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        store: Store,
        reading: Store,
        projectors: Sequence[Projector],
        is_idle: Callable[[], bool],
        progress: Progress | None,
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._reading = reading
        self._projectors = projectors
        self._is_idle = is_idle
        self._progress = progress
        self._gen = 0
        self._seq = -1  # the last position that the new generation has taken up
        self._began_at = -1
        self._last_head = -1

    def begin(self) -> None:
        """Go on with the newest generation above the live one, if this version was building it; else begin another."""
        with self._store.transaction():
            row = self._ledger.catch_up_with(self._store)
            self._last_head = row.seq
            for gen, seq, projector in self._store.query(QUERIES["find_rebuild"], {"gen": row.gen}):
                if projector == PROJECTOR_VERSION and seq <= row.seq:
                    self._gen, self._seq, self._began_at = gen, seq, seq
                    return
            self._gen = self._begin_another(row.gen)

    def compare(self, aside: Store) -> _Compared:
        """Build up to the head of one moment, and compare with what was live in that moment; nobody waits for that."""
        self._build(self._ledger.catch_up_with(self._store).seq)
        with aside.transaction(snapshot=True):
            row = aside.head()
            self._ledger.walk.catch_up(self._store)
            self._build(row.seq)
            live, built = digests.compared(aside, row.gen, self._store, self._gen)
            differences = self._differences(aside, row, live, built) if row.projector == PROJECTOR_VERSION else ()
        return _Compared(
            rows=digests.rows_by_table(built), rows_before=digests.rows_by_table(live), differences=tuple(differences)
        )

    def swap(self, compared: _Compared) -> Rebuilt:
        """Apply what has come meanwhile, and make the new generation the live one."""
        for _ in range(SWAPS_MAX):
            head = self._ledger.catch_up_with(self._store)
            if head.seq - self._seq > SWAP_EVENTS_MAX:
                self._build(head.seq)
                continue
            done = self._try_swap()
            if done is not None:
                row, locked_s = done
                return Rebuilt(
                    generation=self._gen, retired=row.gen, projector=PROJECTOR_VERSION,
                    projector_before=row.projector, position=self._seq, began_at=self._began_at, rows=compared.rows,
                    rows_before=compared.rows_before, differences=compared.differences, locked_s=locked_s,
                )  # fmt: skip
        raise failure(
            "UNAVAILABLE",
            f"The new generation {self._gen} of the read models is built up to position {self._seq}, and events come "
            "faster than they can be taken up. Nothing was swapped. Run it again when less is written: it goes on "
            "where it is.",
        )

    # ---------------------------------------------------------------- inside

    def _begin_another(self, above: int) -> int:
        """Begin a generation above all that there are any rows of, and return it."""
        with self._store.transaction():
            ((last,),) = self._store.query(QUERIES["last_generation"], {})
            gen = max(last, above if above < GENERATION_MAX else 0) + 1
            self._run([Write(QUERIES["insert_rebuild"], {"gen": gen, "projector": PROJECTOR_VERSION})])
        return gen

    def _try_swap(self) -> tuple[HeadRow, float] | None:
        """Swap, and return the head row as it was and how long it was locked; None if too much had come."""
        with self._store.transaction():
            row = self._store.head(lock=True)
            began = time.monotonic()
            if row.seq - self._seq > UNDER_LOCK_MAX:
                return None
            self._ledger.walk.catch_up(self._store)
            page = self._ledger.page(self._store, self._seq + 1, row.seq - self._seq) if row.seq > self._seq else []
            swapping = Write(QUERIES["swap_generation"], {"gen": self._gen, "projector": PROJECTOR_VERSION})
            self._run([*self._page_writes(page, self._seq), swapping])
        locked_s = time.monotonic() - began
        self._seq = row.seq
        self._tell(row.seq)
        return row, locked_s

    def _build(self, until: int) -> None:
        """Take up the events up to a position, page by page; while one is being stored, the next is read and folded."""
        at, began = self._seq, time.monotonic()
        storing: Future[None] | None = None
        with ThreadPoolExecutor(1, thread_name_prefix="rebuild") as aside:
            while at < until:
                page = self._ledger.page(self._reading, at + 1, min(PAGE, until - at))
                writes = self._folded(page, at)
                if storing is not None:
                    storing.result()
                    self._tell(until)
                storing = aside.submit(self._store_page, page, writes)
                at = page[-1].entry.position
                if until - at > PAGE:  # never so near the end that those who write stay ahead
                    self._pause(time.monotonic() - began)
                began = time.monotonic()
            if storing is not None:
                storing.result()
                self._tell(until)

    def _folded(self, page: Sequence[Recorded], after: int) -> list[Write] | None:
        """Return what stores a page behind a position, or None if a projector cannot take it up."""
        try:
            return self._page_writes(page, after)
        except _FAILS:
            return None

    def _store_page(self, page: Sequence[Recorded], writes: list[Write] | None) -> None:
        try:
            if writes is not None:
                self._commit(page, writes)
                return
        except psycopg.Error as error:
            if "REBUILD_MOVED" in str(error):
                raise _under_way() from error
        for item in page:  # to find the event that fails, and to keep those before it
            try:
                self._commit([item], self._page_writes([item], self._seq))
            except (psycopg.Error, *_FAILS) as error:
                raise _failing(item, error) from error

    def _commit(self, page: Sequence[Recorded], writes: Sequence[Write]) -> None:
        with self._store.transaction():
            self._run(writes)
        self._seq = page[-1].entry.position

    def _page_writes(self, page: Sequence[Recorded], after: int) -> list[Write]:
        if not page:
            return []
        moved = {"gen": self._gen, "seq": page[-1].entry.position, "old_seq": after}
        return [
            *(write for projector in self._projectors for write in projector.writes(self._gen, page)),
            Write(QUERIES["move_rebuild"], moved),
        ]

    def _run(self, writes: Sequence[Write]) -> None:
        """Run statements in the transaction that is open, in one flush."""
        with self._store.transaction() as connection:
            flush = Flush(connection, prepare=False)
            flush.run([Write(one.query, {"ledger": self._store.ledger, **one.params}) for one in writes])

    def _pause(self, took_s: float) -> None:
        """Let others go first for as long as a page took, if there are any."""
        head = self._store.head().seq
        if head > self._last_head or not self._is_idle():
            time.sleep(min(took_s, PAUSE_MAX_S))
        self._last_head = head

    def _tell(self, until: int) -> None:
        if self._progress is not None:
            self._progress(self._seq + 1, until + 1)

    def _differences(self, aside: Store, row: HeadRow, live: Sums, built: Sums) -> list[Difference]:
        """Return what is wrong in the live generation. If it is the rebuilt one that is wrong, refuse to swap it."""
        places = digests.differing(built, live)
        if not places:
            return []
        told = digests.told_parts(self._envelopes(row.seq), places)
        found: list[Difference | None] = []
        for table, bucket in places:
            if digests.parts_of(self._store, self._gen, table, bucket) != told[table]:
                raise self._abandoned(table)
            found.append(digests.difference(table, told[table], digests.parts_of(aside, row.gen, table, bucket)))
        return [one for one in found if one is not None]

    def _envelopes(self, until: int) -> Iterator[Envelope]:
        for first in range(0, until + 1, PAGE):
            for item in self._ledger.page(self._reading, first, min(PAGE, until + 1 - first)):
                yield item.entry.envelope

    def _abandoned(self, table: str) -> Exception:
        """Let the next rebuild begin anew, and return why this one is not swapped."""
        self._begin_another(self._gen)
        return failure(
            "INTEGRITY_BROKEN",
            f"The rebuilt rows of {table} are not what the events say: somebody has changed them while they were "
            "built. Nothing was swapped, and what was built is left alone. Run the rebuild again: it begins anew.",
            check="projections",
            exit_code=12,
        )


@contextmanager
def _alone(store: Store) -> Generator[None]:
    """Hold the right to rebuild, or refuse; a process that dies lets go of it."""
    with store.transaction():
        until = time.monotonic() + LOCK_WAIT_S
        while not _try_lock(store):
            if time.monotonic() > until:
                raise _under_way()
            time.sleep(0.05)
        yield


def _try_lock(store: Store) -> bool:
    ((is_ours, _),) = store.query(QUERIES["try_rebuild_lock"], {})
    return is_ours


def _under_way() -> Exception:
    return failure(
        "UNAVAILABLE",
        "The read models of this ledger are being rebuilt already, by another call or process. Nothing was done by "
        "this one. `corrigenda projections status` shows how far it is.",
    )


def _failing(item: Recorded, error: Exception) -> Exception:
    envelope = item.entry.envelope
    return failure(
        "INTEGRITY_BROKEN",
        f"The read models could not take up the event at position {envelope.seq} ({envelope.type}), so their rebuild "
        f"stopped before it ({type(error).__name__}). The live ones stay as they are. `corrigenda show --raw "
        f"{envelope.seq}` shows the event; once that is mended, the rebuild goes on from there.",
        position=envelope.seq,
        check="projections",
        exit_code=12,
    )
