"""Reading, checked: whatever leaves here has been held against the walk, its links and its payload commitment.

Every decision and every answer reads through this module, never through the store.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from ledger.anchor import Anchor, Link
from ledger.chain import Entry, StreamHead, broken
from ledger.codec import read_event, read_payload, scan_envelope
from ledger.corrections import RecordStanding
from ledger.digest import LedgerKeys, leaf, link, stream_link
from ledger.memories import PayloadErased
from ledger.message import Event, Payload, Standing
from ledger.store import HeadRow, Store, Stored
from ledger.walk import LEAF_BYTES, PAGE, Ahead, Walk

_PAGE = 500


class Recorded(Struct, frozen=True, gc=False):
    """An entry and its payload, both checked. A payload that was committed to and is None was erased."""

    entry: Entry
    payload: Payload | None

    @property
    def event(self) -> Event:
        """Return the event, for folding."""
        return read_event(self.entry, self.payload)


class Record(NamedTuple):
    """An aggregate that has a state and no revisions, a correction, as its first and its last event tell it."""

    first: Recorded
    last: Recorded

    @property
    def state(self) -> str:
        """Return its state; a last event that leaves none is INTEGRITY_BROKEN."""
        return _state(self.last.entry)


class VerifiedLedger:
    """One ledger as this process may believe it."""

    def __init__(self, store: Store, keys: LedgerKeys, origin: str, anchor: Anchor) -> None:
        self.store = store
        self.keys = keys
        self.origin = origin
        self.walk = Walk(origin, keys, anchor)
        self.head_row: HeadRow | None = None

    def close(self) -> None:
        """Let go of the anchor. The database is its opener's to close."""
        self.walk.anchor.close()

    def catch_up(self, ahead: Ahead | None = None) -> int:
        """Follow the ledger to its head and return the position of its last event; read what is wanted `ahead`, too."""
        self.head_row = self.walk.catch_up(self.store, ahead)
        return self.walk.position

    def ahead(self, streams: Iterable[str]) -> Ahead:
        """Return what to read with the head by one who will want the last events of these streams, and what they name.

        Where a stream goes on meanwhile, that is read when it is asked for.
        """
        head, ends = self.walk.present(streams)
        positions = {end.position for end in ends.values() if end.version}
        for entry in [self.walk.kept(position) for position in positions]:
            standing = None if entry is None else getattr(entry.envelope.facts, "standing", None)
            if isinstance(standing, Standing):
                positions |= {at for at in (standing.content_seq, standing.meta_seq) if at is not None}
        return Ahead(head, ends, positions)

    def catch_up_with(self, store: Store) -> HeadRow:
        """Follow the ledger to its head through another connection, and return its head row."""
        self.head_row = self.walk.catch_up(store)
        return self.head_row

    def follow(self, row: HeadRow, page: Sequence[Stored]) -> None:
        """Follow the entries that were read with the locked head row `row`, to that row."""
        walk = self.walk
        with walk.lock:
            walk.adopt()
            after = walk.position
            walk.follow_page([stored for stored in page if after < stored.seq <= row.seq])
            walk.check_head(row)
            if page and page[-1].seq > row.seq:
                raise broken(row.seq + 1, "chain", "nothing above the head", "an entry")
            if page:
                walk.keep()
            self.head_row = row

    def take(self, entries: Sequence[Entry], row: HeadRow, links: Sequence[Link] = ()) -> None:
        """Take entries that this process has stored on the head row `row`, with their `links` if they were made.

        The anchor has yet to be given them.
        """
        self.head_row = row._replace(seq=entries[-1].position, hash=entries[-1].hash)
        self.walk.take(entries, links)

    def at(self, positions: Iterable[int], ahead: Ahead | None = None) -> Mapping[int, Recorded]:
        """Return the events at verified positions. One that is missing or altered is INTEGRITY_BROKEN.

        What was read `ahead` is not read again.
        """
        wanted = set(positions)
        had = {} if ahead is None else {one: row for one in wanted if (row := ahead.rows.get(one)) is not None}
        further = wanted - had.keys()
        found = had | {stored.seq: stored for stored in self.store.at(further)} if further else had
        for position in sorted(wanted - found.keys()):
            raise broken(position, "chain", "the entry that was verified before", "none")
        known = {position: self.walk.checked(found[position]) for position in wanted}
        leaves = self.walk.leaves(position for position, entry in known.items() if entry is None)
        return {position: self._checked(found[position], leaves.get(position), known[position]) for position in wanted}

    def whole(self, positions: Iterable[int]) -> Iterator[tuple[Recorded, Stored]]:
        """Yield the events at verified positions, ascending, each with its stored row: salt and payload's bytes."""
        wanted = sorted(set(positions))
        for at in range(0, len(wanted), _PAGE):
            page = wanted[at : at + _PAGE]
            found = {stored.seq: stored for stored in self.store.at(page)}
            leaves = self.walk.leaves(page)
            for position in page:
                if position not in found:
                    raise broken(position, "chain", "the entry that was verified before", "none")
                yield self._checked(found[position], leaves[position]), found[position]

    def page(self, store: Store, first: int, count: int) -> list[Recorded]:
        """Return at most `count` events from a verified position on, without their payloads, for who reads them all.

        They are read through `store`, another connection's. One that is missing or altered is INTEGRITY_BROKEN.
        """
        rows = store.after(first - 1, min(count, self.walk.head.size - first))
        if not rows and first < self.walk.head.size:
            raise broken(first, "chain", "the entry that was verified before", "none")
        leaves = self.walk.leaves_from(first, len(rows))
        return [
            Recorded(
                self._scanned(stored, first + number, leaves[LEAF_BYTES * number : LEAF_BYTES * (number + 1)]), None
            )
            for number, stored in enumerate(rows)
        ]

    def _scanned(self, stored: Stored, position: int, verified: bytes) -> Entry:
        if stored.seq != position:
            raise broken(position, "chain", "the entry that was verified before", "none")
        if leaf(stored.envelope) != verified:
            raise broken(position, "chain", "the entry that was verified before", "another")
        own = link(stored.envelope)
        if not self.keys.is_sealed(own, stored.seal):
            raise broken(position, "seals", "a seal of this ledger's key", "none or another")
        raw = stored.envelope
        return Entry(envelope=scan_envelope(raw), raw=raw, hash=own, stream_hash=stream_link(raw), seal=stored.seal)

    def entries(self, first: int, end: int) -> Iterator[Entry]:
        """Yield the entries from `first` up to before `end`, without payloads, as `page` reads them."""
        while first < end:
            page = self.page(self.store, first, min(PAGE, end - first))
            yield from (item.entry for item in page)
            first += len(page)

    def stream(self, stream: str) -> Sequence[Recorded]:
        """Return a stream's whole history in order; a removed, added or altered event is INTEGRITY_BROKEN."""
        return self._history(stream, self.walk.stream(stream), self.store.stream(stream))

    def streams(self, streams: Iterable[str]) -> Mapping[str, Sequence[Recorded]]:
        """Return the whole history of each of some streams, as `stream` does, read at once."""
        heads = self.walk.ends(streams)
        rows: dict[str, list[Stored]] = {stream: [] for stream in heads}
        for stream, stored in self.store.streams(heads) if heads else ():
            rows[stream].append(stored)
        return {stream: self._history(stream, head, rows[stream]) for stream, head in heads.items()}

    def _history(self, stream: str, head: StreamHead, rows: Iterable[Stored]) -> Sequence[Recorded]:
        recorded = [self._checked(stored) for stored in rows if stored.seq <= head.position]
        for number, item in enumerate(recorded):
            envelope = item.entry.envelope
            if (envelope.stream, envelope.stream_seq) != (stream, number):
                raise broken(envelope.seq, "streams", "an entry of the stream that was asked for", "another's")
        if len(recorded) != head.version:
            raise broken(head.position, "streams", f"{head.version} entries of a stream", f"{len(recorded)}")
        if recorded:
            _check_end(stream, head, recorded[-1].entry)
        return recorded

    def standings(self, lineages: Iterable[str]) -> Mapping[str, Standing]:
        """Return where each lineage stands now, from its last event; one without events is left out."""
        return {lineage: standing_of(last.entry) for lineage, last in self.last(lineages).items()}

    def last(self, streams: Iterable[str]) -> Mapping[str, Recorded]:
        """Return the event with which each stream ends; a stream without events is left out."""
        return self._last(self.walk.ends(streams))

    def last_at(self, streams: Collection[str], ahead: Ahead | None = None) -> tuple[int, Mapping[str, Recorded]]:
        """Return what `last` does, and the position of the head at which that is where they end.

        What was looked up `ahead` counts for as long as the head is the same.
        """
        if ahead is not None and ahead.head == self.walk.head and all(one in ahead.ends for one in streams):
            return ahead.head.size - 1, self._last({one: ahead.ends[one] for one in streams}, ahead)
        head, ends = self.walk.present(streams)
        return head.size - 1, self._last(ends, ahead)

    def _last(self, ends: Mapping[str, StreamHead], ahead: Ahead | None = None) -> Mapping[str, Recorded]:
        heads = {stream: head for stream, head in ends.items() if head.version}
        if not heads:
            return {}
        found = self.at((head.position for head in heads.values()), ahead)
        for stream, head in heads.items():
            _check_end(stream, head, found[head.position].entry)
        return {stream: found[head.position] for stream, head in heads.items()}

    def records(self, streams: Iterable[str]) -> Mapping[str, Record]:
        """Return each record by its first and its last event; a stream without events is left out."""
        heads = {stream: head for stream, head in self.walk.ends(streams).items() if head.version}
        names = sorted(heads)
        opened = {stored.seq for stored in self.store.in_streams(names, [0] * len(names))} if names else set[int]()
        found = self.at(opened | {head.position for head in heads.values()})
        firsts = {found[position].entry.envelope.stream: found[position] for position in opened}
        for stream, head in heads.items():
            _check_end(stream, head, found[head.position].entry)
            if stream not in firsts or firsts[stream].entry.envelope.stream_seq != 0:
                raise broken(head.position, "streams", "the first entry of a stream", "none")
        return {stream: Record(firsts[stream], found[head.position]) for stream, head in heads.items()}

    def _checked(self, stored: Stored, verified: bytes | None = None, known: Entry | None = None) -> Recorded:
        entry = known or self.walk.check(stored, verified)
        if stored.salt is None and stored.body is None and self._is_erased(entry):
            return Recorded(entry, None)
        return Recorded(entry, read_payload(entry, stored.salt, stored.body))

    def _is_erased(self, entry: Entry) -> bool:
        """Report whether a later entry, checked itself, says that this one's payload was destroyed."""
        if entry.envelope.payload_sha256 is None:
            return False
        at = self.walk.erased_by(entry.position)
        if at is None or at <= entry.position:
            return False
        facts = (self.walk.check(stored).envelope.facts for stored in self.store.at([at]))
        return any(isinstance(one, PayloadErased) and entry.position in one.positions for one in facts)


def _check_end(stream: str, head: StreamHead, entry: Entry) -> None:
    """Refuse an entry that is not the one that a stream was seen to end with: its standing would be an older one's."""
    envelope = entry.envelope
    found = envelope.stream, StreamHead(envelope.stream_seq + 1, envelope.seq, entry.stream_hash)
    if found != (stream, head):
        raise broken(envelope.seq, "streams", "the last entry of a stream", "another")


def standing_of(entry: Entry) -> Standing:
    """Return where an entry leaves its lineage; one that is no lineage's is INTEGRITY_BROKEN."""
    standing = getattr(entry.envelope.facts, "standing", None)
    if not isinstance(standing, Standing):
        raise broken(entry.position, "streams", "an event of a lineage", "another")
    return standing


def _state(entry: Entry) -> str:
    standing = getattr(entry.envelope.facts, "standing", None)
    if not isinstance(standing, RecordStanding):
        raise broken(entry.position, "streams", "an event of a record", "another")
    return standing.state
