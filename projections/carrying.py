"""Brings one index in line with what outbox rows ask for, and keeps what an embedder fails on from holding up the rest.

A text that fails is noted and passed; it is tried again later, each time after a longer while, and parked in the end.
What is noted is kept in the database, so every replica takes up what another one has settled, and none tries what is
parked; a vector that is stored is used whatever was noted.
"""

import time
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ledger.parking import FAILING, PARKED, SETTLED, SKIPPED, Failed, Parking, Place
from ledger.store import OutboxRow
from ledger.verified import VerifiedLedger
from projections.embedders import Embedder, Vectors
from projections.index.partitions import PartitionedIndex
from projections.items import Item, Placed, placed, streams_of
from projections.vectors import BATCH_TEXTS, StoredVectors

HURRIED_TEXTS = 8  # embedded at once while somebody waits: what is done by then is kept
NOTES_AGE_S = 1.0


class Carrier:
    """One index, filled by one embedder. The caller holds the ledger's lock and has caught up."""

    def __init__(self, ledger: VerifiedLedger, embedder: Embedder, index: PartitionedIndex) -> None:
        self.index = index
        self._ledger = ledger
        self._vectors = StoredVectors(ledger, embedder)
        self._parking = Parking(ledger.store, embedder.signature)
        self._noted: dict[Place, Failed] = {}
        self._noted_at = float("-inf")
        self._taken_up: set[Place] = set()
        self.changed = False  # whether it put or removed anything since this was last set

    @property
    def failing(self) -> int:
        """Return how many effects failed and will be tried again."""
        return sum(1 for one in self._noted.values() if one.state == FAILING)

    def carry(self, rows: Sequence[OutboxRow], until: float | None) -> int:
        """Bring the index in line for the items of some rows; return how many no longer stood.

        `until`: as in `StoredVectors.tried`; so are the errors.
        """
        if not rows:
            return 0
        self._look(fresh=False)
        # The stream is the walk's word, not the row's. An item that no event knows is nobody's.
        known = streams_of(self._ledger, (revision for _, revision, _, _ in rows))
        items = [(Item(known.get(revision, lineage), revision), effect) for _, revision, effect, lineage in rows]
        standing = placed(self._ledger, (item for item, _ in items if item.revision in known))
        places: dict[Item, list[Place]] = {}
        for (item, _), (seq, revision, _, _) in zip(items, rows, strict=True):
            places.setdefault(item, []).append((seq, revision))
        failed = self._bring(places, standing, until)
        self._parking.add({places[item][-1]: code for item, code in failed.items()})
        if failed:
            self.forget_notes()
        settled = {place for place, one in self._noted.items() if one.state == SETTLED}
        self._taken_up |= settled & {(seq, revision) for seq, revision, _, _ in rows}
        self._settle({revision for _, revision, _, _ in rows} - {item.revision for item in failed})
        return sum(1 for item, effect in items if effect == "put" and item not in standing)

    def take_up(self, cursor: int, until: float | None, *, at_once: bool) -> int:
        """Try again what failed up to a position and is due, all of it with `at_once`; return how many are settled.

        What other replicas have settled is taken up, too.
        """
        self._look(fresh=at_once)
        below = [one for one in self._noted.values() if one.seq <= cursor]
        due = [one for one in below if one.state == FAILING and (at_once or one.is_due)]
        settled = [one for one in below if one.state == SETTLED and one.place not in self._taken_up]
        if not due and not settled:
            return 0
        failed = self._attempt(due, settled, until)
        done = [one for one in (*due, *settled) if one.place not in failed]
        self._taken_up |= {one.place for one in done}
        self._look(fresh=True)
        return sum(1 for one in due if one.place not in failed)

    def _attempt(self, due: Sequence[Failed], settled: Sequence[Failed], until: float | None) -> dict[Place, str]:
        """Bring some effects in; return the failures, which are noted."""
        known = streams_of(self._ledger, (one.revision for one in (*due, *settled)))
        places: dict[Item, list[Place]] = {}
        for one in (*settled, *due):
            places.setdefault(Item(known.get(one.revision, ""), one.revision), []).append(one.place)
        standing = placed(self._ledger, (item for item in places if item.lineage))
        tries = [one.place for one in due]
        self._parking.begin(tries)
        try:
            found = self._bring(places, standing, until, again=True)
        except BaseException:
            self._parking.take_back(tries)
            raise
        failed = {place: code for item, code in found.items() for place in places[item]}
        self._parking.end({place: failed.get(place, "") for place in tries})
        self._parking.add({place: code for place, code in failed.items() if place not in set(tries)})
        return failed

    def _bring(
        self,
        places: Mapping[Item, Sequence[Place]],
        standing: Mapping[Item, Placed],
        until: float | None,
        *,
        again: bool = False,
    ) -> dict[Item, str]:
        """Put what stands and can be embedded, and remove the rest; return the failures' codes."""
        barred = set[Item]() if again else {item for item in standing if self._is_barred(places[item])}
        texts = {where.content: where.text for item, where in standing.items() if item not in barred}
        batch = BATCH_TEXTS if until is None else HURRIED_TEXTS
        tried = self._vectors.tried(texts, until=until, batch=batch, again=again)
        vectors = {**self._vectors.stored(standing[item].content for item in barred), **tried.vectors}
        found = {item: where for item, where in standing.items() if where.content in vectors}
        for item in places.keys() - found.keys():
            self.changed |= self.index.remove(str(item))
        self._put(found, vectors)
        return {
            item: tried.failed[where.content]
            for item, where in standing.items()
            if item not in barred and where.content in tried.failed
        }

    def _put(self, found: Mapping[Item, Placed], vectors: Mapping[str, Vectors]) -> None:
        together: dict[str, list[Item]] = {}
        for item, where in found.items():
            self.changed |= self.index.partition_of(str(item)) != where.partition
            together.setdefault(where.partition, []).append(item)
        for partition, items in together.items():
            rows = np.stack([vectors[found[item].content] for item in items])
            self.index.put_many(partition, [str(item) for item in items], rows)

    def _is_barred(self, places: Iterable[Place]) -> bool:
        """Report whether nothing asks for an item but what is parked or skipped."""
        return all(place in self._noted and self._noted[place].state in (PARKED, SKIPPED) for place in places)

    def _settle(self, revisions: set[str]) -> None:
        """Note that these are in now, or not wanted any more, where an earlier event's effect on them had failed."""
        if not self._noted:
            return
        open_ones = [
            one for one in self._noted.values() if one.state in (FAILING, PARKED) and one.revision in revisions
        ]
        done = [one for one in open_ones if self._is_settled(one)]
        self._parking.end({one.place: "" for one in done})
        if done:
            self.forget_notes()

    def _is_settled(self, one: Failed) -> bool:
        known = streams_of(self._ledger, [one.revision])
        item = Item(known.get(one.revision, ""), one.revision)
        return str(item) in self.index or not placed(self._ledger, [item] if item.lineage else [])

    def forget_notes(self) -> None:
        """Read anew, when it is needed next, what is noted: somebody has just changed it."""
        self._noted_at = float("-inf")

    def _look(self, *, fresh: bool) -> None:
        """Read what is noted, unless that was done a moment ago."""
        if fresh or time.monotonic() - self._noted_at > NOTES_AGE_S:
            self._noted = {one.place: one for one in self._parking.all()}
            self._noted_at = time.monotonic()
