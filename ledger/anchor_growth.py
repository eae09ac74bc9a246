"""What some more entries add to an anchor's file: worked out beforehand, and written by one statement.

Every statement that runs lets go of the interpreter, and to get it back among many callers costs more than the
statement. Here a trigger of the connection's own writes all tables at once, on the condition that the file still ends
where it did. Where nobody else has written since, nothing has to be read for that.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from ledger import tree
from ledger.anchor_file import LEAF_BYTES, STATEMENTS, checksum, checksum_of_texts
from ledger.chain import Entry, StreamHead
from ledger.digest import leaf, node
from ledger.memories import PayloadErased
from ledger.message import Move

ROW_BITS = 8  # leaves lie in rows of 256, each the root of a subtree once it is full
ROW_LEAVES = 1 << ROW_BITS
ROW_BYTES = ROW_LEAVES * LEAF_BYTES

_MADE = ("growth_view", "growth_trigger", "lone_view", "lone_trigger")

Row = tuple[Any, ...]  # Any: a statement's own columns


class Link(Struct, frozen=True, gc=False):
    """What the anchor keeps of one verified entry."""

    position: int
    leaf: bytes
    hash: bytes
    stream: str
    end: StreamHead
    request: str | None
    revisions: tuple[str, ...]
    erased: tuple[int, ...] = ()  # positions whose payload the entry says is destroyed

    @classmethod
    def of(cls, entry: Entry) -> "Link":
        """Return the link of an entry that follows what was verified before it."""
        envelope = entry.envelope
        moves: tuple[Move, ...] = getattr(envelope.facts, "moves", ())
        return cls(
            position=envelope.seq,
            leaf=leaf(entry.raw),
            hash=entry.hash,
            stream=envelope.stream,
            end=StreamHead(envelope.stream_seq + 1, envelope.seq, entry.stream_hash),
            request=envelope.request,
            revisions=tuple([move.revision for move in moves if move.before is None]) if moves else (),
            erased=envelope.facts.positions if isinstance(envelope.facts, PayloadErased) else (),
        )


class End(Struct, frozen=True, kw_only=True, gc=False):
    """Where an anchor ends: its state, the row of leaves that is being filled, and the roots of the rows before it.

    `peaks` are the roots of the complete subtrees over the full rows, largest first.
    """

    size: int
    head: bytes
    incarnation: int
    trust: str
    leaves: bytes
    peaks: tuple[bytes, ...]

    @property
    def checksum(self) -> int:
        """Return the checksum of the state."""
        return checksum(self.size, self.head, self.incarnation, self.trust)


class Ready(Struct, frozen=True, gc=False):
    """What some entries add to where an anchor ends, before it is written, and the statement that writes it."""

    end: End
    then: End
    statement: str
    row: Row


class Growth:
    """Adds entries through one connection. For one thread at a time: whoever holds the anchor's lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._end: End | None = None
        self._ready: Ready | None = None
        self._version = 0
        self._is_made = False

    def make_ready(self, links: Sequence[Link]) -> None:
        """Work out what these entries will add where the anchor was left, if that is where they go; write nothing."""
        if self._end is not None and links and self._end.size == links[0].position:
            self._ready = _grown(self._end, links)

    def add(self, links: Sequence[Link]) -> bool:
        """Add the next entries, unless the anchor is not as it was left, and report whether that was done.

        One that another process holds locked is sqlite3.OperationalError: it has been waited for.
        """
        known, self._end = self._end, None
        if known is None or known.size != links[0].position or self._connection.in_transaction:
            return False  # nobody would commit into what an interrupt left open: who looks first undoes that
        try:
            if self._written_by_others() == self._version:  # a row that was edited is found by who looks first
                self._end = self._written(known, links)
        except sqlite3.Error as error:  # also where the guard says no: who looks first finds out what is wrong
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise
        return self._end is not None

    def add_to(self, end: End, links: Sequence[Link]) -> None:
        """Add entries to where the anchor was just found to end, in the transaction in which that was looked up."""
        self._end = None
        self._end, self._version = self._written(end, links), self._written_by_others()

    def _written(self, end: End, links: Sequence[Link]) -> End:
        ready, self._ready = self._ready, None
        if ready is None or ready.end is not end or ready.then.head != links[-1].hash:
            ready = _grown(end, links)
        if not self._is_made:
            for made in _MADE:
                self._connection.execute(STATEMENTS[made])
            self._is_made = not self._connection.in_transaction  # what is rolled back takes them along
        self._connection.execute(STATEMENTS[ready.statement], ready.row)
        return ready.then

    def _written_by_others(self) -> int:
        """Return a number that changes when another connection has written to the file."""
        return self._connection.execute(STATEMENTS["data_version"]).fetchone()[0]


def _grown(end: End, links: Sequence[Link]) -> Ready:
    """Return what entries that come next add to where the anchor ends."""
    leaves = end.leaves + b"".join([link.leaf for link in links])
    first = end.size >> ROW_BITS
    parts = [leaves[at : at + ROW_BYTES] for at in range(0, len(leaves), ROW_BYTES)]
    peaks, subtrees, roots = [*end.peaks], list[Row](), list[bytes]()
    for place, part in enumerate(parts, start=first):
        if len(part) == ROW_BYTES:
            for level, at, root in _completed(peaks, place, root_of(part)):
                subtrees.append((level, at, checksum(level, at, root)))
                roots.append(root)
    then = End(
        size=links[-1].position + 1,
        head=links[-1].hash,
        incarnation=end.incarnation,
        trust=end.trust,
        leaves=leaves[len(leaves) & -ROW_BYTES :],
        peaks=tuple(peaks),
    )
    states = (end.size, end.head, end.checksum, then.size, then.head, then.checksum)
    places = [(place, checksum(place, part)) for place, part in enumerate(parts, start=first)]
    if len(links) == 1 and not subtrees and not links[0].erased and len(links[0].revisions) <= 1:
        return Ready(end, then, "add_lone", (*states, leaves, *places[0], *_of_lone(links[0])))
    row = (*states, leaves, _json(places), b"".join(roots), _json(subtrees), *_of_tables(links))
    return Ready(end, then, "grow", row)


def _of_tables(links: Sequence[Link]) -> Row:
    """Return the rows that entries add to the other tables, as JSON: streams, requests, revisions and erasures."""
    ends = {link.stream: link.end for link in links}
    return (
        _rows([(name, one.version, one.position, one.hash.hex()) for name, one in ends.items()]),
        # In the table's order: of requests, which are hashes, neighbours then share the pages that they go to.
        _rows(sorted([(link.request, link.position) for link in links if link.request is not None])),
        _rows([(revision, link.stream) for link in links if link.revisions for revision in link.revisions]),
        _json([(position, link.position) for link in links if link.erased for position in link.erased]),
    )


def _of_lone(link: Link) -> Row:
    """Return the same of one entry without erasures and with one revision at most, column by column."""
    end, request, revision = link.end, link.request, next(iter(link.revisions), None)
    stream = (link.stream, end.version, end.position, end.hash.hex())
    return (
        *stream, checksum_of_texts(stream),
        request, None if request is None else checksum_of_texts((request, link.position)),
        revision, None if revision is None else checksum_of_texts((revision, link.stream)),
    )  # fmt: skip


def _completed(peaks: list[bytes], place: int, root: bytes) -> Iterable[tuple[int, int, bytes]]:
    """Yield level, place and root of each subtree that a full row completes; `peaks` then end with the largest."""
    level = ROW_BITS
    yield level, place, root
    while place & 1:
        root, level, place = node(peaks.pop(), root), level + 1, place >> 1
        yield level, place, root
    peaks.append(root)


def _rows(rows: Sequence[tuple[str | int, ...]]) -> str:
    return _json([(*row, checksum_of_texts(row)) for row in rows])


def _json(rows: Sequence[Row]) -> str:
    return msgspec.json.encode(rows).decode()


@lru_cache(1_024)  # the proofs of neighbours share most of what stands beside them
def root_of(leaves: bytes) -> bytes:
    """Return the root of the tree over leaf hashes that lie side by side."""
    return tree.root([leaves[at : at + LEAF_BYTES] for at in range(0, len(leaves), LEAF_BYTES)])
