"""Reading, checked: whatever leaves here has been held against the walk, its links and its payload commitment.

Every decision and every answer reads through this module, never through the store.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ledger.chain import Entry, broken
from ledger.codec import read_event, read_payload
from ledger.digest import LedgerKeys
from ledger.message import Event, Payload, Standing
from ledger.store import HeadRow, Store, Stored
from ledger.walk import Walk


class Recorded(NamedTuple):
    """An entry and its payload, both checked."""

    entry: Entry
    payload: Payload | None

    @property
    def event(self) -> Event:
        """Return the event, for folding."""
        return read_event(self.entry, self.payload)


class VerifiedLedger:
    """One ledger as this process may believe it."""

    def __init__(self, store: Store, keys: LedgerKeys, origin: str) -> None:
        self.store = store
        self.keys = keys
        self.origin = origin
        self.walk = Walk(origin, keys)
        self.head_row: HeadRow | None = None

    def catch_up(self) -> int:
        """Follow the ledger to its head and return the position of its last event."""
        self.head_row = self.walk.catch_up(self.store)
        return self.walk.position

    def at(self, positions: Iterable[int]) -> Mapping[int, Recorded]:
        """Return the events at verified positions. One that is missing or altered is INTEGRITY_BROKEN."""
        wanted = set(positions)
        found = {stored.seq: stored for stored in self.store.at(wanted)}
        for position in sorted(wanted - found.keys()):
            raise broken(position, "chain", "the entry that was verified before", "none")
        return {position: self._checked(found[position]) for position in wanted}

    def stream(self, stream: str) -> Sequence[Recorded]:
        """Return a stream's whole history in order; a removed, added or altered event is INTEGRITY_BROKEN."""
        head = self.walk.stream(stream)
        rows = [stored for stored in self.store.stream(stream) if stored.seq <= head.position]
        recorded = [self._checked(stored) for stored in rows]
        for number, item in enumerate(recorded):
            envelope = item.entry.envelope
            if (envelope.stream, envelope.stream_seq) != (stream, number):
                raise broken(envelope.seq, "streams", "an entry of the stream that was asked for", "another's")
        if len(recorded) != head.version:
            raise broken(head.position, "streams", f"{head.version} entries of a stream", f"{len(recorded)}")
        return recorded

    def standings(self, lineages: Iterable[str]) -> Mapping[str, Standing]:
        """Return where each lineage stands now, from its last event; one without events is left out."""
        heads = {lineage: self.walk.stream(lineage) for lineage in lineages}
        last = {lineage: head.position for lineage, head in heads.items() if head.version}
        found = self.at(last.values())
        return {lineage: _standing(found[position].entry) for lineage, position in last.items()}

    def _checked(self, stored: Stored) -> Recorded:
        entry = self.walk.check(stored)
        return Recorded(entry, read_payload(entry, stored.salt, stored.body))


def _standing(entry: Entry) -> Standing:
    standing = getattr(entry.envelope.facts, "standing", None)
    if not isinstance(standing, Standing):
        raise broken(entry.position, "streams", "an event of a lineage", "another")
    return standing
