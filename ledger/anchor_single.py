"""One more entry by one statement, where nobody has written to the anchor since this connection did.

An append that is alone waits for the rows of its entry, and seven statements for them took a third of its processor
time. Here a trigger of the connection's own writes them, on the condition that the file still ends where it did.
Whatever is not as simple as that is left to the statements that look first; nothing is decided here.
"""

import sqlite3
from contextlib import suppress

from msgspec import Struct

from ledger.anchor_file import STATEMENTS, checksum, checksum_of_texts
from ledger.chain import StreamHead


class End(Struct, frozen=True, kw_only=True, gc=False):
    """Where an anchor ends, as it was last written: its size, its state, and the row of leaves that is being filled."""

    size: int
    head: bytes
    incarnation: int
    trust: str
    leaves: bytes

    @property
    def checksum(self) -> int:
        """Return the checksum of the state."""
        return checksum(self.size, self.head, self.incarnation, self.trust)


class Single:
    """Adds single entries through one connection. For one thread at a time: whoever holds the anchor's lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._end: End | None = None
        self._version = 0
        self._is_made = False

    def know(self, end: End | None) -> None:
        """Remember where the anchor ends. To be called by whoever has just written that and not yet committed it."""
        self._end, self._version = end, self._written_by_others()

    def add(
        self,
        *,
        place: int,
        leaf: bytes,
        stream: str,
        end: StreamHead,
        request: str | None,
        revision: str | None,
        head: bytes,
    ) -> bool:
        """Add the next entry, unless the anchor is not as it was known, and report whether that was done.

        `place` is the row that its leaf belongs to, which must not become full; `head` is the entry's hash.
        """
        known, self._end = self._end, None
        if known is None or known.size != end.position:
            return False
        hash_, leaves = end.hash.hex(), known.leaves + leaf
        then = End(size=known.size + 1, head=head, incarnation=known.incarnation, trust=known.trust, leaves=leaves)
        row = (
            known.size, known.head, known.checksum, then.size, then.head, then.checksum,
            place, leaves, checksum(place, leaves),
            stream, end.version, end.position, hash_, checksum_of_texts((stream, end.version, end.position, hash_)),
            request, None if request is None else checksum_of_texts((request, end.position)),
            revision, None if revision is None else checksum_of_texts((revision, stream)),
        )  # fmt: skip
        with suppress(sqlite3.Error):  # also where the guard says no: who looks first finds out what is wrong
            if self._written_by_others() == self._version:
                self._make()
                self._connection.execute(STATEMENTS["add_single"], row)
                self._end = then
        return self._end is not None

    def _written_by_others(self) -> int:
        """Return a number that changes when another connection has written to the file."""
        return self._connection.execute(STATEMENTS["data_version"]).fetchone()[0]

    def _make(self) -> None:
        if not self._is_made:
            self._connection.execute(STATEMENTS["single_view"])
            self._connection.execute(STATEMENTS["single_trigger"])
            self._is_made = True
