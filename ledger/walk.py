"""What this process has verified of the chain: its head, every event's hash, every stream's head.

The walk only ever goes forward, over entries that are sealed and linked. Whatever is read from the database later
is held against it, so an edited, moved or removed event cannot get past it. It is kept in memory (32 bytes an event)
and made anew by each process.
"""

from collections.abc import Mapping

from ledger.chain import EMPTY, NO_STREAM, Entry, Head, StreamHead, broken, follow, follow_stream
from ledger.codec import read_entry
from ledger.digest import LedgerKeys
from ledger.message import Move
from ledger.store import HeadRow, Store, Stored

PAGE = 5_000


class Walk:
    """A verified prefix of one ledger."""

    def __init__(self, ledger: str, keys: LedgerKeys) -> None:
        self._ledger = ledger
        self._keys = keys
        self._head = EMPTY
        self._hashes = bytearray()
        self._streams: dict[str, StreamHead] = {}
        self._requests: dict[str, int] = {}
        self._lineages: dict[str, str] = {}

    @property
    def head(self) -> Head:
        """Return the size and last hash of what has been verified."""
        return self._head

    @property
    def position(self) -> int:
        """Return the last verified position, −1 before the first."""
        return self._head.size - 1

    @property
    def streams(self) -> Mapping[str, StreamHead]:
        """Return the head of every stream that has an event."""
        return self._streams

    def stream(self, stream: str) -> StreamHead:
        """Return a stream's head; NO_STREAM for one without events."""
        return self._streams.get(stream, NO_STREAM)

    @property
    def requests(self) -> Mapping[str, int]:
        """Return the position of every request that was carried out, by its hex digest."""
        return self._requests

    @property
    def lineages(self) -> Mapping[str, str]:
        """Return the lineage of every revision."""
        return self._lineages

    def hash_at(self, position: int) -> bytes | None:
        """Return the hash of the event at a position, or None beyond the verified prefix."""
        if not 0 <= position < self._head.size:
            return None
        return bytes(self._hashes[position * 32 : position * 32 + 32])

    def catch_up(self, store: Store) -> HeadRow:
        """Follow the ledger to its present head, or raise INTEGRITY_BROKEN. Return the head row."""
        row = store.head()
        while True:
            self._follow_to(row.seq, store)
            self._check_head(row)
            if not store.goes_on_above(row.seq):
                return row
            # Either somebody has just appended, and then the head has moved; or the head was set back.
            last, row = row, store.head()
            if row.seq <= last.seq:
                raise broken(last.seq + 1, "chain", "nothing above the head", "an entry")

    def _follow_to(self, position: int, store: Store) -> None:
        while self.position < position:
            page = [stored for stored in store.after(self.position, PAGE) if stored.seq <= position]
            if not page:
                raise broken(self._head.size, "chain", "an entry", "none, and the head is above it")
            for stored in page:
                self.follow(read_entry(stored.envelope, stored.seal, position=self._head.size))

    def follow(self, entry: Entry) -> None:
        """Take the next entry, or raise INTEGRITY_BROKEN and stay where the walk is."""
        if entry.envelope.log != self._ledger:
            raise broken(self._head.size, "chain", "an entry of this ledger", "one of another")
        head = follow(self._head, entry, self._keys.is_sealed)
        stream, request = entry.envelope.stream, entry.envelope.request
        if request is not None and request in self._requests:
            raise broken(entry.position, "chain", "a request of its own", "one that was carried out before")
        self._streams[stream] = follow_stream(self.stream(stream), entry)
        if request is not None:
            self._requests[request] = entry.position
        moves: tuple[Move, ...] = getattr(entry.envelope.facts, "moves", ())
        self._lineages.update((move.revision, stream) for move in moves if move.before is None)
        self._hashes += entry.hash
        self._head = head

    def check(self, stored: Stored) -> Entry:
        """Return the entry that was read again at a verified position, or raise INTEGRITY_BROKEN."""
        entry = read_entry(stored.envelope, stored.seal, position=stored.seq)
        if entry.hash != self.hash_at(stored.seq):
            raise broken(stored.seq, "chain", "the entry that was verified before", "another")
        return entry

    def _check_head(self, row: HeadRow) -> None:
        if row.seq < self.position:
            raise broken(row.seq, "chain", f"a head at {self.position}, which was seen before", f"one at {row.seq}")
        if self.hash_at(row.seq) != row.hash:
            raise broken(row.seq, "chain", "a head row with the last entry's hash", "another hash")
