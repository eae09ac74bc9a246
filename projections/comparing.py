"""The index replica held against the ledger, entry by entry, both ways; and, where asked, put right.

What should be there is told by verified events and by stored vectors that carry the ledger's seal, never by the outbox
or a read model. It goes batch by batch, so that whoever serves meanwhile waits for one batch at most, and so that a
scrubber can do a little at a time. An entry that waits in the outbox above the replica's cursor is no drift.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from ledger.ids import CORRECTION, kind_of
from ledger.memories import LINEAGE
from ledger.parking import FAILING, PARKED, SETTLED, SKIPPED, Parking
from ledger.verified import VerifiedLedger
from projections.embedders import Embedder
from projections.index import Vector
from projections.index.partitions import PartitionedIndex
from projections.items import Item, Placed, placed, standing, streams, streams_of
from projections.replicas import swept_up_to
from projections.vectors import StoredVectors

BATCH = 256
NAMED_MAX = 10

MISSING, STALE, FOREIGN, REVOKED, UNSTORED = "missing", "stale", "foreign", "revoked", "unstored"
KINDS = (MISSING, STALE, FOREIGN, REVOKED, UNSTORED)


class Drift(Struct, frozen=True):
    """One entry that is not what the ledger says.

    `missing`: it stands and is not held. `stale`: it is held and no longer stands, or stands elsewhere, or its vector
    is not the stored one. `revoked`: it is held and was withdrawn. `foreign`: the ledger knows no such thing.
    `unstored`: it is held, and its stored vector is missing or does not carry the seal, so nothing vouches for it.
    """

    kind: str
    item: str
    partition: str


class SetSum(Struct):
    """The digest of a set of entries, in whatever order they come: how many, and the sum of their numbers."""

    count: int = 0
    total: int = 0

    def add(self, number: int) -> None:
        """Take one entry in."""
        self.count += 1
        self.total = (self.total + number) % (1 << 256)

    def both(self, other: "SetSum") -> "SetSum":
        """Return the digest of both sets together."""
        return SetSum(self.count + other.count, (self.total + other.total) % (1 << 256))

    @property
    def hex(self) -> str:
        """Return it as text."""
        return f"{self.count}:{self.total:064x}"


class Compared(Struct, frozen=True, kw_only=True):
    """What a comparison found: what should be held and what is, by partition; how much waits, what differs.

    `parked` waits for a person, and `skipped` was given up: neither is part of what is `pending`.
    """

    expected: Mapping[str, SetSum]
    found: Mapping[str, SetSum]
    pending: int
    parked: int
    skipped: int
    counts: Mapping[str, int]
    first: tuple[Drift, ...]
    repaired: int

    @property
    def drifted(self) -> int:
        """Return how many entries differ."""
        return sum(self.counts.values())


class _Entry(NamedTuple):
    partition: str
    vector: Vector


class Comparison:
    """One comparison. Whoever calls `step` holds the ledger's lock and has caught up.

    With `repair` entries that differ are put right: what is missing is put from stored vectors, only a text without one
    is embedded; what should not be there is removed.
    """

    def __init__(
        self,
        ledger: VerifiedLedger,
        embedder: Embedder,
        index: PartitionedIndex,
        cursor: Callable[[], int],
        *,
        repair: bool = False,
        first: int = 0,
    ) -> None:
        """Note what is to be compared. `first` says where to begin: who stops early should begin elsewhere each time.

        The streams of which nothing is held come first, for what is lost is worst; with an odd `first` what is held.
        """
        self.index = index
        self._ledger = ledger
        self._vectors = StoredVectors(ledger, embedder)
        self._parking = Parking(ledger.store, embedder.signature)
        self._cursor = cursor
        self._repair = repair
        held, every = sorted(index.items()), streams(ledger)
        present = {Item.parse(name).lineage for name in held}
        lost = [stream for stream in every if stream not in present]
        ways = [(self._find_missing, _turned(lost, first)), (self._compare_held, _turned(held, first))]
        # Taken from the end. The last of all are the streams of which something else than what stands may be held.
        self._ways = [(self._find_missing, sorted(present.intersection(every))), *ways[:: 1 if first % 2 else -1]]
        self.total = sum(len(names) for _, names in self._ways)
        self.done = 0
        self._sound: set[str] = set()
        self._expected: dict[str, SetSum] = {}
        self._found: dict[str, SetSum] = {}
        self._counts: Counter[str] = Counter()
        self._first: list[Drift] = []
        self._pending = self._parked = self._skipped = self._repaired = 0

    def step(self) -> bool:
        """Compare the next batch; report whether there was one."""
        while self._ways:
            compare, names = self._ways[-1]
            if names:
                batch = names[-BATCH:]
                del names[-BATCH:]
                compare(batch)
                self.done += len(batch)
                return True
            self._ways.pop()
        return False

    def result(self) -> Compared:
        """Return what was found so far."""
        return Compared(
            expected=self._expected,
            found=self._found,
            pending=self._pending,
            parked=self._parked,
            skipped=self._skipped,
            counts={kind: self._counts[kind] for kind in KINDS},
            first=tuple(self._first),
            repaired=self._repaired,
        )

    # ---------------------------------------------------------------- what is held

    def _compare_held(self, names: Sequence[str]) -> None:
        held = {name: _Entry(*entry) for name, entry in self.index.entries(names).items()}
        items = {name: Item.parse(name) for name in held}
        known = streams_of(self._ledger, {item.revision for item in items.values()})
        ours = {name: item for name, item in items.items() if known.get(item.revision) == item.lineage}
        where = placed(self._ledger, ours.values())
        stored = self._vectors.stored({one.content for one in where.values()})
        wrong: dict[str, str] = {}
        for name, entry in held.items():
            place = where.get(ours[name]) if name in ours else None
            kind = self._judge(name in ours, place, entry, stored)
            if kind is None:
                self._sound.add(items[name].lineage)
                self._count(name, entry, (self._expected, self._found))
            else:
                wrong[name] = kind
        waiting = self._waiting(ours[name] for name in wrong if name in ours)
        for name in self._named_withdrawn(wrong, ours):
            wrong[name] = REVOKED
        for name, kind in wrong.items():
            if name in ours and ours[name] in waiting:
                self._pending += 1
                continue
            self._note(Drift(kind, name, held[name].partition), held[name])
            place = where.get(ours[name]) if name in ours else None
            if place is not None:
                self._expect(name, place, stored)
        if self._repair:
            self._mend({name: ours.get(name) for name in wrong if ours.get(name) not in waiting}, where)

    @staticmethod
    def _judge(ours: bool, place: Placed | None, entry: _Entry, stored: Mapping[str, Vector]) -> str | None:
        """Return what is wrong with an entry that is held, None if nothing is."""
        if not ours:
            return FOREIGN
        if place is None:
            return STALE
        vector = stored.get(place.content)
        if vector is None:
            return UNSTORED
        return None if place.partition == entry.partition and np.array_equal(vector, entry.vector) else STALE

    def _named_withdrawn(self, wrong: Mapping[str, str], ours: Mapping[str, Item]) -> list[str]:
        """Return which of the entries that do not stand were withdrawn, as their own events tell it."""
        stale = {name: ours[name] for name, kind in wrong.items() if kind == STALE}
        records = {item.lineage for item in stale.values() if kind_of(item.lineage) == CORRECTION}
        states = {stream: one.state for stream, one in self._ledger.records(records).items()} if records else {}
        histories = self._ledger.streams({item.lineage for item in stale.values()} - records)
        folded = {stream: LINEAGE.fold(one.event for one in history) for stream, history in histories.items()}
        withdrawn: list[str] = []
        for name, item in stale.items():
            if item.lineage in states:
                is_out = states[item.lineage] == "revoked"
            else:
                values = folded[item.lineage].revisions[item.revision].values
                is_out = "revoked" in (values.trust, values.floor)
            withdrawn += [name] if is_out else []
        return withdrawn

    # ---------------------------------------------------------------- what should be

    def _find_missing(self, names: Sequence[str]) -> None:
        where = standing(self._ledger, (stream for stream in names if stream not in self._sound))
        held = self.index.entries(str(item) for item in where)
        absent = {item: place for item, place in where.items() if str(item) not in held}
        stored = self._vectors.stored({place.content for place in absent.values()})
        failed = self._failed(absent, stored)
        waiting = self._waiting(absent) - failed.keys()
        states = Counter(failed.values())
        self._pending += len(waiting) + states[FAILING]
        self._parked += states[PARKED]
        self._skipped += states[SKIPPED]
        wanted = {str(item): item for item in absent if item not in waiting and item not in failed}
        for name, item in wanted.items():
            self._note(Drift(MISSING, name, absent[item].partition), None)
            self._expect(name, absent[item], stored)
        if self._repair:
            self._mend(wanted, absent)

    # ---------------------------------------------------------------- both

    def _waiting(self, items: Iterable[Item]) -> set[Item]:
        """Return which of these changed above the cursor, and have a row in the outbox that will be carried.

        Of what was swept there above the cursor the rows are made again, whichever they were.
        """
        cursor, wanted = self._cursor(), set(items)
        ends = self._ledger.walk.ends({item.lineage for item in wanted})
        later = {item for item in wanted if ends[item.lineage].position > cursor}
        if later and cursor < swept_up_to(self._ledger.store):
            return later
        rows = self._ledger.store.pending_of((item.revision for item in later), after=cursor)
        return {item for item in later if item.revision in rows}

    def _failed(self, absent: Mapping[Item, Placed], stored: Mapping[str, Vector]) -> Mapping[Item, str]:
        """Return which of these an embedder failed on and have no vector: they are tried again, parked or skipped."""
        without = {item for item, place in absent.items() if place.content not in stored}
        if not without:
            return {}
        states = {one.revision: one.state for one in self._parking.all() if one.state != SETTLED}  # the last one's
        return {item: states[item.revision] for item in without if item.revision in states}

    def _mend(self, wrong: Mapping[str, Item | None], where: Mapping[Item, Placed]) -> None:
        """Put each of these entries where it belongs, or take out what belongs nowhere, or has no vector."""
        places = {item: where[item] for item in wrong.values() if item is not None and item in where}
        stored = self._vectors.stored(place.content for place in places.values())
        failed = self._failed(places, stored)
        texts = {place.content: place.text for item, place in places.items() if item not in failed}
        vectors = self._vectors.tried(texts).vectors
        for name, item in wrong.items():
            place = None if item is None else places.get(item)
            vector = None if place is None else vectors.get(place.content)
            if place is None or vector is None:
                self._repaired += self.index.remove(name)
            else:
                self.index.put(place.partition, name, vector)
                self._repaired += 1

    def _note(self, drift: Drift, entry: _Entry | None) -> None:
        self._counts[drift.kind] += 1
        if len(self._first) < NAMED_MAX:
            self._first.append(drift)
        if entry is not None:
            self._count(drift.item, entry, (self._found,))

    def _expect(self, name: str, place: Placed, stored: Mapping[str, Vector]) -> None:
        vector = stored.get(place.content)
        if vector is not None:
            self._count(name, _Entry(place.partition, vector), (self._expected,))

    def _count(self, name: str, entry: _Entry, sides: Iterable[dict[str, SetSum]]) -> None:
        raw = np.ascontiguousarray(entry.vector, dtype="<f4").tobytes()
        number = self._ledger.keys.index_entry(entry.partition, name, raw)
        for side in sides:
            side.setdefault(entry.partition, SetSum()).add(number)


def _turned(names: Sequence[str], first: int) -> list[str]:
    turn = first % len(names) if names else 0
    return [*names[turn:], *names[:turn]]
