"""Carries the outbox into this process's index replica: embed what still stands, put it, remove what does not.

The replica's cursor is the position up to which the outbox has been carried; a durable generation keeps it with the
vectors, so whatever was interrupted is simply carried again. What a row asks for is looked up at the present head,
so carrying a row twice, or late, does no harm.
"""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from ledger import parking
from ledger.clock import is_past
from ledger.errors import CorrigendaError, UnavailableError, failure
from ledger.limits import ATTEMPTS_MAX, INDEX_WAIT_S
from ledger.verified import VerifiedLedger
from projections.carrying import Carrier
from projections.deadline import TOO_SLOW
from projections.embedders import Embedder, Vectors
from projections.embedders.patience import at_most
from projections.index import Neighbour, VectorIndex
from projections.index.disk import writer_lock
from projections.index.partitions import PartitionedIndex
from projections.index.snapshot import Loaded, Manifest, load, manifests, publish, signatures
from projections.items import Item, partition, streams_of
from projections.replicas import behind, next_rows, report, waiting
from projections.vectors import OTHER_MODEL, Absent, Recognised, recognised

__all__ = ["Drained", "Item", "Relay", "partition"]

PAGE_ROWS = 64
ABSENT_S = 5.0  # after an embedder did not answer, who only looks does not ask it again for so long
INCARNATION = "1"

_log = logging.getLogger(__name__)


class Drained(Struct, frozen=True):
    """What a drain did: rows carried, those of them that no longer stood, rows that are left.

    `settled` counts rows that had failed in an earlier drain, and are in now or not wanted any more.
    """

    carried: int
    skipped: int
    pending: int
    settled: int = 0


class Relay:
    """One index replica of one ledger. The caller holds the ledger's lock and has caught up."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        *,
        home: Path,
        load_embedder: Callable[[], Embedder | None],
        make_index: Callable[[int], VectorIndex],
    ) -> None:
        self._ledger = ledger
        self._home = home / "index" / ledger.store.ledger
        self._load_embedder = load_embedder
        self._make_index = make_index
        self._embedder: Embedder | None = None
        self._absent: tuple[Absent | None, float] = None, 0.0  # and until when it is not asked again
        self._carrier: Carrier | None = None  # None until the index is opened
        self._cursor = -1
        self._kept = -1
        self.opened_with = "not opened"
        self.frozen = False  # a frozen replica carries nothing: it stays behind, as a stalled process would

    @property
    def embedder(self) -> Embedder | None:
        """Return the embedder, loaded when it is first asked for; None if there is none."""
        if self._embedder is None:
            self._embedder = recognised(self._ledger, self._load_embedder())
        return self._embedder

    @property
    def named(self) -> Embedder | None:
        """Return the embedder for who only looks: an absent one by the name that the newest generation gives.

        That generation's seal and the stored vectors' are of the same name, so nothing else is taken for its work.
        Errors: EMBEDDER_UNAVAILABLE (that name cannot be its, or there is no generation).
        """
        embedder, (absent, until) = self.embedder, self._absent
        if absent is not None and time.monotonic() < until:
            return absent
        try:
            with at_most(INDEX_WAIT_S):
                known = None if embedder is None else embedder.signature
            return None if known is None else embedder
        except UnavailableError as error:
            said = next(iter(manifests(self._home)), None)
            if said is None or not isinstance(embedder, Recognised) or error.details.get("reason") == OTHER_MODEL:
                raise
            if not embedder.may_sign(said.signature):
                raise
            absent = Absent(said.signature, said.dimension, error)
            self._absent = absent, time.monotonic() + ABSENT_S
            return absent

    @property
    def cursor(self) -> int:
        """Return the position up to which the outbox has been carried."""
        return self._cursor

    def drain(
        self,
        limit_s: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        *,
        exhaust: bool = False,
        slice_s: float | None = None,
    ) -> Drained:
        """Carry the outbox up to the walk's head, or until `limit_s` has passed, whether the embedder answers or not.

        With `slice_s` no further page is begun after so long; what an embedder has begun is not cut off for that.
        With `exhaust` what an embedder fails on is tried until it is in or parked, else when it is due. `progress` is
        told how many rows were carried, and of how many; then, from 0 on, how often what failed was tried again. What
        was carried stays so. Errors: EMBEDDER_UNAVAILABLE (it fails on everything: nothing is passed for that),
        INDEX_UNAVAILABLE (another embedder built the index).
        """
        embedder = self.embedder
        if embedder is None:
            return Drained(0, 0, 0)
        if self.frozen:
            return Drained(0, 0, self.pending())
        began = time.monotonic()
        stop_at = None if limit_s is None else began + limit_s
        pause_at = None if slice_s is None else began + slice_s
        with at_most(limit_s):
            return self._drain(self._opened(embedder), stop_at, progress, exhaust=exhaust, pause_at=pause_at)

    def _drain(
        self,
        carrier: Carrier,
        stop_at: float | None,
        progress: Callable[[int, int], None] | None,
        *,
        exhaust: bool,
        pause_at: float | None,
    ) -> Drained:
        until = self._ledger.walk.position
        total = self.pending() if progress else 0
        carried = skipped = settled = 0
        if progress:
            progress(0, total)
        try:
            while self._cursor < until and not is_past(stop_at):
                rows, without = self._page(carrier, until, stop_at)
                carried, skipped = carried + rows, skipped + without
                if progress:
                    progress(carried, total)
                if is_past(pause_at):
                    break
            if self._cursor == until and not is_past(stop_at):
                settled = _take_up(carrier, self._cursor, stop_at, exhaust=exhaust, progress=progress)
        except UnavailableError as error:
            if error.details.get("reason") != TOO_SLOW:
                raise
        pending = self.pending() if self._cursor < until or carrier.failing else 0
        return Drained(carried, skipped, pending, settled)

    def _page(self, carrier: Carrier, until: int, stop_at: float | None = None) -> tuple[int, int]:
        """Carry the next rows; return how many they are, and how many of them no longer stood."""
        rows, reached = next_rows(self._ledger, after=self._cursor, until=until, limit=PAGE_ROWS)
        skipped = carrier.carry(rows, stop_at)
        self._cursor = reached
        return len(rows), skipped

    def pending(self) -> int:
        """Return how many outbox rows lie above the cursor, or failed and will be tried again."""
        return behind(self._ledger.store, self._cursor) + self.failing

    @property
    def failing(self) -> int:
        """Return how many outbox rows failed and will be tried again."""
        return 0 if self._carrier is None else self._carrier.failing

    def parked(self) -> int:
        """Return how many rows wait for a person, because the embedder has failed on them too often."""
        if self.embedder is None:
            return 0
        cursor, signature = self.carried()
        return waiting(self._ledger.store, signature, cursor)[1]

    def retry(self, positions: Sequence[int]) -> Drained:
        """Try what failed at these positions as if it never had, and whatever else waits, as with `exhaust`."""
        if self.embedder is not None:
            parking.Parking(self._ledger.store, self.embedder.signature).retry(positions)
            self._opened(self.embedder).forget_notes()
        return self.drain(exhaust=True)

    def look(self) -> int:
        """Return how many effects wait above what was `reached`, and change nothing: at `close` neither."""
        cursor, signature = self.carried()
        return waiting(self._ledger.store, signature, cursor)[0]

    def carried(self) -> tuple[int, str | None]:
        """Return what was `reached`, and the signature of the embedder that it was reached with; None without one.

        Where that embedder does not answer, it is what the newest generation says of itself: what waits and what is
        parked has to be seen above all while an embedder is out.
        """
        try:
            embedder = self.named
            return self.reached(), None if embedder is None else embedder.signature
        except UnavailableError as error:
            if error.code != "EMBEDDER_UNAVAILABLE":
                raise
            said = next(iter(manifests(self._home)), None)
            return (-1, None) if said is None else (said.position, said.signature)

    def reached(self) -> int:
        """Return up to where this replica, or the newest good generation if it is not open, holds the outbox."""
        embedder = None if self._carrier is not None else self.named
        if embedder is None:
            return self._cursor
        found = self._load(embedder, only_look=True).generation
        return -1 if found is None else found.manifest.position

    def open(self) -> None:
        """Load the newest durable generation, if there is an embedder."""
        if self.embedder is not None:
            self._opened(self.embedder)

    @property
    def replica(self) -> PartitionedIndex | None:
        """Return what is held, for comparing and mending it; None until it is opened."""
        return None if self._carrier is None else self._carrier.index

    def peeked(self) -> tuple[PartitionedIndex, int] | None:
        """Return the replica and its cursor; one that is not open is loaded for the caller only, and nothing changes.

        None if there is no embedder. Errors: INDEX_UNAVAILABLE (another embedder built the index).
        """
        if self._carrier is not None:
            return self._carrier.index, self._cursor
        embedder = self.named
        if embedder is None:
            return None
        self._ledger.catch_up()
        index = PartitionedIndex(embedder.dimension, self._make_index)
        loaded = self._load(embedder, only_look=True)
        found = loaded.generation
        if found is None and loaded.other is not None:
            raise _other_embedder(loaded.other, embedder.signature)
        if found is not None:
            index.restore(found.contents)
        return index, -1 if found is None else found.manifest.position

    def empty(self) -> PartitionedIndex | None:
        """Return an empty index like the replica, to build another one in; None if there is no embedder."""
        return None if self.embedder is None else PartitionedIndex(self.embedder.dimension, self._make_index)

    def swap(self, index: PartitionedIndex, cursor: int) -> None:
        """Hold `index` from now on, built beside; what came after `cursor` is carried into it next."""
        if self.embedder is not None:
            self._carrier = Carrier(self._ledger, self.embedder, index)
        self._cursor, self._kept = cursor, -1

    def changed(self) -> None:
        """Note that the replica is no longer what is kept, though its cursor is where it was."""
        if self._carrier is not None:
            self._carrier.changed = True

    def neighbours(
        self, partitions: Sequence[str], vector: Vectors, k: int, *, unchecked: bool = False
    ) -> list[tuple[Item, float]]:
        """Return the k nearest entries of some partitions, best first. What they are worth is for the ledger to say.

        What no event of ours knows takes nobody's place; with `unchecked` it is for the caller to find out.
        """
        if self._carrier is None:
            return []
        wanted = k
        while True:
            found: list[Neighbour] = self._carrier.index.search(partitions, vector, wanted)
            items = [(Item.parse(neighbour.item), neighbour.score) for neighbour in found]
            near = items if unchecked else self.ours(items)
            if unchecked or len(found) < wanted or len(near) >= k:
                return near[:k]
            wanted *= 2

    def ours(self, near: list[tuple[Item, float]]) -> list[tuple[Item, float]]:
        """Return those of some neighbours that are items of this ledger, whatever became of them."""
        known = streams_of(self._ledger, (item.revision for item, _ in near))
        return [(item, score) for item, score in near if known.get(item.revision) == item.lineage]

    def __len__(self) -> int:
        return 0 if self._carrier is None else len(self._carrier.index)

    def beside(self, embedder: Embedder) -> "Relay":
        """Return a replica of the same ledger that holds nothing yet, whatever generation is live."""
        made = Relay(
            self._ledger, home=self._home.parents[1], load_embedder=lambda: embedder, make_index=self._make_index
        )
        index = PartitionedIndex(embedder.dimension, self._make_index)
        made._embedder, made._carrier = embedder, Carrier(self._ledger, embedder, index)
        return made

    def carry_page(self) -> bool:
        """Carry the next rows, however long that takes; report whether any lie behind them.

        After the last ones, what the embedder failed on is tried until it is in or parked.
        """
        embedder, until = self.embedder, self._ledger.walk.position
        if embedder is None:
            return False
        carrier = self._opened(embedder)
        if self._cursor < until:
            self._page(carrier, until)
        if self._cursor < until:
            return True
        _take_up(carrier, self._cursor, None, exhaust=True)
        return False

    def take_over(self, other: "Relay") -> bool:
        """Make what the replica `other` holds the live generation, and this replica's own; report whether it could be.

        It cannot while another process is publishing. Errors: INDEX_UNAVAILABLE (no room, or no right to write).
        """
        if not other.keep(replacing=True):
            return False
        if other._carrier is not None:
            self.swap(other._carrier.index, other._cursor)
        self._kept = other._kept
        return True

    def live_signature(self) -> str | None:
        """Return the signature of the newest generation's embedder, as it says itself; None if there is none."""
        return next(iter(signatures(self._home)), None)

    def keep(self, *, replacing: bool = False) -> bool:
        """Publish what the replica holds as a durable generation, unless another process does; report whether.

        A live generation of another embedder is replaced only if that is what is wanted.
        """
        carrier = self._carrier
        if carrier is None or self._embedder is None or (self._cursor == self._kept and not carrier.changed):
            return False
        digest = self._ledger.walk.leaf_at(self._cursor)
        if digest is None:
            return False
        with writer_lock(self._home) as mine:
            if not mine or not (replacing or self._may_replace(self._embedder)):
                return False
            publish(
                self._home,
                self._manifest(self._embedder, digest),
                carrier.index.dump(),
                seal=self._ledger.keys.generation,
            )
        self._kept, carrier.changed = self._cursor, False
        self._report()
        return True

    def close(self, *, wrote: bool) -> None:
        """Carry what is waiting for at most five seconds, and keep it. What is left is carried at the next start.

        Who wrote nothing and never opened the index leaves it as it is.
        """
        try:
            if self._carrier is None and (not wrote or self.pending() == 0):
                return
            self.drain(INDEX_WAIT_S)
            self.keep()
        except CorrigendaError:
            # The writes are stored and acknowledged; their effects stay in the outbox, and status counts them.
            return

    def _opened(self, embedder: Embedder) -> Carrier:
        if self._carrier is None:
            # Another process may just have kept a generation above our walk: a newer one would be set aside.
            self._ledger.catch_up()
            index = PartitionedIndex(embedder.dimension, self._make_index)
            loaded = self._load(embedder)
            self.opened_with = loaded.why
            if loaded.generation is None and loaded.other is not None:
                raise _other_embedder(loaded.other, embedder.signature)
            if loaded.generation is not None:
                index.restore(loaded.generation.contents)
                self._cursor = self._kept = loaded.generation.manifest.position
                self._report()
            self._carrier = Carrier(self._ledger, embedder, index)
        return self._carrier

    def _report(self) -> None:
        report(self._ledger.store, self._home, incarnation=int(INCARNATION), cursor=self._kept)

    def _may_replace(self, embedder: Embedder) -> bool:
        """Report whether the live generation is of this embedder, and not one that has been put in its place."""
        found = signatures(self._home)
        if not found or embedder.signature in found:
            return True
        _log.warning("generation.of_another_embedder", extra={"built_by": found[0], "configured": embedder.signature})
        return False

    def _load(self, embedder: Embedder, *, only_look: bool = False) -> Loaded:
        return load(
            self._home,
            ledger=self._ledger.store.ledger,
            incarnation=INCARNATION,
            signature=embedder.signature,
            dimension=embedder.dimension,
            size=self._ledger.walk.head.size,
            digest_at=self._ledger.walk.leaf_at,
            seal=self._ledger.keys.generation,
            only_look=only_look,
        )

    def _manifest(self, embedder: Embedder, digest: bytes) -> Manifest:
        return Manifest(
            ledger=self._ledger.store.ledger,
            incarnation=INCARNATION,
            position=self._cursor,
            digest=digest.hex(),
            signature=embedder.signature,
            dimension=embedder.dimension,
        )


def _take_up(
    carrier: Carrier,
    cursor: int,
    stop_at: float | None,
    *,
    exhaust: bool,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Try again what failed up to a position, with `exhaust` until it is in or parked; return how many are settled."""
    settled = carrier.take_up(cursor, stop_at, at_once=exhaust)
    for attempt in range(ATTEMPTS_MAX if exhaust else 0):
        if not carrier.failing:
            break
        if progress:
            progress(attempt, ATTEMPTS_MAX)
        settled += carrier.take_up(cursor, stop_at, at_once=True)
    return settled


def _other_embedder(built_by: str, configured: str) -> CorrigendaError:
    return failure(
        "INDEX_UNAVAILABLE",
        f"The index was expected to be built by the configured embedder, {configured}; {built_by} built it, and "
        "vectors of two embedders cannot be compared. Nothing was changed. Run `corrigenda index reembed` to build it "
        "with the configured one, or configure the other one again.",
        reason="signature",
        built_by=built_by,
        configured=configured,
        retriable=False,
    )
