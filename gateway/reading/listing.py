"""The log: events as they lie in the tables, filtered and with their actors' names. Nothing is checked, and it says so.

It has to answer where the chain is broken, so bytes in no known form are listed as such. It must never decide or serve
a memory.
"""

from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from gateway.reading.following import Waiting, follow
from gateway.shapes.replies.log import LogItem
from gateway.views.revisions import log_item
from ledger import codec
from ledger.chain import Entry
from ledger.codec import NotCanonical, read_entry
from ledger.errors import IntegrityError
from ledger.governance import AssignedName, NameAssigned
from ledger.store import Store
from projections.lineage import QUERIES

PAGE = 500
UNREADABLE = "unreadable"


class Wanted(Struct, frozen=True, kw_only=True):
    """Which events are listed: above `after`, below `before`, and what else they have to be."""

    after: int | None = None
    before: int | None = None
    type: str | None = None
    actor: str | None = None
    stream: str | None = None
    since: str | None = None
    until: str | None = None


class Listing:
    """One ledger's events, as they lie."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._actors: dict[str, str] = {}

    def items(self, wanted: Wanted, *, limit: int | None, reverse: bool) -> Iterator[LogItem]:
        """Yield events newest first, or oldest first with `reverse`."""
        count = 0
        for seq, envelope, hash_ in self._rows(wanted, reverse=reverse):
            if limit is not None and count >= limit:
                return
            item = self._item(seq, envelope, hash_, wanted)
            if item is not None:
                count += 1
                yield item

    def follow(self, wanted: Wanted, *, limit: int | None, waiting: Waiting) -> Iterator[LogItem]:
        """Yield events oldest first, and then each that is committed, without end; `limit` of those that are there."""
        for row in follow(self._store, self._start(wanted, limit), waiting):
            item = self._item(row[0], bytes(row[3] or b""), bytes(row[4] or b""), wanted)
            if item is not None:
                yield item

    def last_of_streams(self, wanted: Wanted, *, limit: int | None, reverse: bool) -> tuple[int, dict[str, int]]:
        """Return the head's position, and for each stream the position of the event of it that is listed last."""
        top = self._store.head().seq if wanted.before is None else wanted.before - 1
        return top, {item.stream: item.seq for item in self.items(wanted, limit=limit, reverse=reverse)}

    def _start(self, wanted: Wanted, limit: int | None) -> int:
        """Return the position above which the latest `limit` of what is there lie."""
        latest = [] if limit is None else [item.seq for item in self.items(wanted, limit=limit, reverse=False)]
        return latest[-1] - 1 if limit is not None and len(latest) == limit else _low(wanted)

    def _rows(self, wanted: Wanted, *, reverse: bool) -> Iterator[tuple[int, bytes, bytes]]:
        low = _low(wanted)
        high = self._store.head().seq + 1 if wanted.before is None else wanted.before
        if reverse:
            while rows := [row for row in self._store.whole_after(low, PAGE) if row[0] < high]:
                yield from ((row[0], bytes(row[3] or b""), bytes(row[4] or b"")) for row in rows)
                low = rows[-1][0]
            return
        while rows := [row for row in self._store.before(high, PAGE) if row[0] > low]:
            yield from ((row[0], bytes(row[1] or b""), bytes(row[2] or b"")) for row in rows)
            high = rows[-1][0]

    def _item(self, seq: int, envelope: bytes, hash_: bytes, wanted: Wanted) -> LogItem | None:
        try:
            entry = read_entry(envelope, b"", position=seq)
        except IntegrityError:
            return LogItem(
                seq=seq, type=UNREADABLE, at="", actor="", stream="", stream_seq=-1, hash=hash_.hex(), trace_id=""
            )
        if not self._is_wanted(entry, wanted):
            return None
        return LogItem(**log_item(entry, self._actor(entry.envelope.actor)))

    def _is_wanted(self, entry: Entry, wanted: Wanted) -> bool:
        envelope = entry.envelope
        return (
            wanted.type in (None, envelope.type)
            and (wanted.actor is None or wanted.actor in (envelope.actor, self._actor(envelope.actor)))
            and wanted.stream in (None, envelope.stream)
            and (wanted.since is None or envelope.at >= wanted.since)
            and (wanted.until is None or envelope.at <= wanted.until)
        )

    def _actor(self, identifier: str) -> str:
        """Return an actor's name as the directory has it; unchecked, like everything here."""
        if identifier not in self._actors:
            self._actors[identifier] = self._named(identifier) or identifier
        return self._actors[identifier]

    def _named(self, identifier: str) -> str | None:
        rows = self._store.query(QUERIES["find_names"], {"ids": [identifier]})
        for stored in self._store.at(position for _, position in rows):
            with suppress(IntegrityError, NotCanonical):
                entry = read_entry(stored.envelope, stored.seal, position=stored.seq)
                payload = codec.read_payload(entry, stored.salt, stored.body)
                facts = entry.envelope.facts
                if isinstance(facts, NameAssigned) and facts.id == identifier and isinstance(payload, AssignedName):
                    return payload.name
        return None


def _low(wanted: Wanted) -> int:
    return -1 if wanted.after is None else wanted.after
