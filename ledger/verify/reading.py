"""The pass itself: what the next entry has to follow, and where it does not.

After a break it goes on from the bytes that are there, so that one altered entry is one finding and not a thousand.
None stands for what a break left unknown.
"""

from collections.abc import Callable
from contextlib import suppress

from ledger import codec, digest
from ledger.chain import Envelope
from ledger.checkpoints import Watch
from ledger.digest import LedgerKeys
from ledger.erasure import OF_ERASURES, Erasures
from ledger.governance import LedgerName, LedgerOpened
from ledger.store import Store
from ledger.tree import Frontier
from ledger.verify import entries
from ledger.verify.aside import Aside, Part, Request
from ledger.verify.beside import Beside
from ledger.verify.entries import Ledger
from ledger.verify.pages import NO_PAYLOAD, Page, Row
from ledger.verify.report import Findings

GENESIS = digest.GENESIS.hex()
Append = tuple[str, int, str, str, str]


class Start:
    """Where a reading begins, and what the first entry has to follow; by default, with the ledger."""

    def __init__(self, first: int = 0, previous: bytes | None = digest.GENESIS) -> None:
        self.first = first
        self.previous = previous
        self.append: Append | None = None
        self.append_left: int | None = 0 if first == 0 else None
        self.at = ""
        self.origin: str | None = None
        self.public_key: str | None = None
        self.tree = Frontier()
        self.is_anchored = False  # begun at a checkpoint that the anchor bears out


class Reading:
    """The state of one pass over the entries from `start` on."""

    def __init__(
        self,
        store: Store,
        keys: LedgerKeys | None,
        origin: str | None,
        *,
        start: Start,
        findings: Findings,
        aside: Aside,
        beside: Beside,
        watches: list[Watch],
        witness: Callable[[Envelope], None] | None = None,
    ) -> None:
        self.start = start
        self.first = start.first
        self.next = start.first
        self.last = start.first - 1
        self.events = 0
        self.previous = start.previous
        self.public_key = start.public_key
        self.incarnation: int | None = None  # what event 0 says, where it was read
        self.tenant: str | None = None
        self.requests_below = 0  # those that the anchor should hold
        self.tree = start.tree
        self.seals_seen = 0
        self.clock_back: int | None = None  # the first position whose time lies before that of the entry before
        self.clock_backs = 0
        self.keys = keys
        self.origin = origin
        self.findings = findings
        self._bad = findings.bad
        self._ledger = store.ledger
        self._aside = aside
        self._beside = beside
        self._watches = watches
        self._witness = witness
        self.erasures = Erasures()
        self._suspect: int | None = None
        self._at = start.at
        self._append = start.append
        self._append_left = start.append_left
        self._parts: dict[str, Part] = {}
        self._requests: list[Request] = []

    def take(self, page: Page) -> None:
        """Check a page, and make it what the next one has to follow."""
        leaves: list[bytes] = []
        payload_of = page.payloads.get
        for row in page.rows:
            if row[0] != self.next:
                self._gap(row[0])
            raw = row[3] or b""
            leaves.append(digest.leaf(raw))  # whatever is wrong with it: the root is that of the stored bytes
            self._take(row, raw, payload_of(row[0], NO_PAYLOAD))
        self._grow(leaves)
        self._beside.compare(page.rows, leaves)
        if self.first:
            self._beside.check_requests(self._requests)
        self._aside.keep(self._parts, self._requests)
        self._parts, self._requests = {}, []

    def end(self) -> None:
        """Say what only shows when everything has been read."""
        if (repeated := self._aside.repeated()) is not None:
            self._bad("chain", repeated, "a request of its own", "one that was carried out before")
        for position, place, version, suspect in self._aside.breaks(whole=self.first == 0):
            blamed = position if suspect is None else suspect
            if place != version:
                self._bad("streams", blamed, f"entry {version} of the stream next", f"entry {place}")
            else:
                self._bad("streams", blamed, "an entry that the stream's next one links to", "another")

    def check_complete(self) -> None:
        """Say so if the last append is not there to its end; for a reading that went to the ledger's."""
        self._grow([])
        if self._append_left:
            self._bad("chain", self.next, "the rest of an append", "none")

    def clock(self) -> str | None:
        """Return what there is to say about the times of the entries: order is by position, so it is no failure."""
        if not self.clock_backs:
            return None
        more = f" and {self.clock_backs - 1} more" if self.clock_backs > 1 else ""
        return f"clock: back at position {self.clock_back}{more}"

    def _gap(self, seq: int) -> None:
        self._bad("chain", self.next, f"an entry at position {self.next}", f"none below position {seq}")
        self._beside.missing(self.next)
        self.previous = self._suspect = self._append_left = None

    def _grow(self, leaves: list[bytes]) -> None:
        """Let the tree grow, and tell whoever waits for it to have a size."""
        grown = 0
        for watch in sorted(self._watches, key=lambda watch: watch.size):
            upto = watch.size - self.tree.size
            if 0 < upto <= len(leaves) - grown:
                self.tree.extend(leaves[grown : grown + upto])
                grown += upto
            if watch.size == self.tree.size:
                watch.reached(self.tree)
        self.tree.extend(leaves[grown:])

    def _take(self, row: Row, raw: bytes, payload: tuple[bytes | None, bytes | None]) -> None:
        seq = row[0]
        own = digest.link(raw)
        sound = self._check_seal(seq, own, row[5])
        if own != row[4]:
            self._bad("chain", seq, "the envelope's hash in its column", "another")
            sound = False
        suspect = None if sound else seq
        try:
            envelope = codec.scan_envelope(raw)
        except codec.NotCanonical as error:
            self._bad("canonical", seq, "an envelope in canonical form", str(error))
            self._pass_over(row)
            suspect = seq
        else:
            if not entries.is_sound(envelope, row, payload, self.origin or ""):
                self._explain(envelope, row, payload)
            if self.previous is not None and envelope.prev_b3 != self.previous.hex():
                blamed = seq if self._suspect is None else self._suspect
                self._bad("chain", blamed, "an entry that the one after it links to", "another")
            self._follow_stream(envelope, seq, raw, suspect)
            self._follow_append(envelope, seq)
            if envelope.type in OF_ERASURES:
                self.erasures.see(envelope)
            if self._witness is not None:
                self._witness(envelope)
            if envelope.request is not None:
                self._requests.append(Request(_plain(envelope.request), seq))
                self.requests_below += seq < self._beside.size
        self.previous, self._suspect = own, suspect
        self.events, self.next, self.last = self.events + 1, seq + 1, seq

    def _check_seal(self, seq: int, own: bytes, seal: bytes | None) -> bool:
        if self.keys is None:
            return True
        expected = self.keys.seal(own)
        if seal == expected:
            self.seals_seen += 1
            return True
        self._bad("seals", seq, "a seal of this ledger's key", "none or another")
        self.seals_seen += seal is not None and seal[:8] == expected[:8]
        return False

    def _explain(self, envelope: Envelope, row: Row, payload: tuple[bytes | None, bytes | None]) -> None:
        if self.origin is None:
            self.origin = envelope.log
        entries.explain(
            envelope, row, payload, Ledger(self._ledger, self.origin, self.keys), self.findings, self.erasures.miss
        )
        if row[0] == 0 and isinstance(envelope.facts, LedgerOpened) and entries.opens(envelope, self._ledger):
            self.public_key = envelope.facts.public_key
            self.incarnation = envelope.facts.incarnation
            with suppress(codec.NotCanonical):
                named = codec.decode_payload(envelope.type, payload[1] or b"")
                self.tenant = named.tenant if isinstance(named, LedgerName) else None

    def _pass_over(self, row: Row) -> None:
        """Go on behind an envelope that says nothing: its stream at the place that the columns name."""
        seq, stream, stream_seq = row[:3]
        self._append_left = None
        if stream is not None and stream_seq is not None:
            part = self._parts.setdefault(stream, Part(stream, seq, None, None, 0, None, None))
            part.version, part.hash, part.suspect = stream_seq + 1, None, seq

    def _follow_stream(self, envelope: Envelope, seq: int, raw: bytes, suspect: int | None) -> None:
        place, link = envelope.stream_seq, envelope.stream_prev_b3
        own = digest.stream_link(raw)
        part = self._parts.get(envelope.stream)
        if part is None:
            if place == 0 and link != GENESIS:
                self._bad("streams", seq, "an entry that the stream's next one links to", "another")
            first = Part(envelope.stream, seq, place, link if place else None, place + 1, own, suspect)
            self._parts[envelope.stream] = first
            return
        blamed = seq if part.suspect is None else part.suspect
        if place != part.version:
            self._bad("streams", blamed, f"entry {part.version} of the stream next", f"entry {place}")
        elif part.hash is not None and link != part.hash.hex():
            self._bad("streams", blamed, "an entry that the stream's next one links to", "another")
        part.version, part.hash, part.suspect = place + 1, own, suspect

    def _follow_append(self, envelope: Envelope, seq: int) -> None:
        """Entries of one append lie side by side, and agree in all that an append has once."""
        index, count, left = envelope.op_index, envelope.op_count, self._append_left
        if left == 0 and index != 0:
            self._bad("chain", seq, "the first entry of an append", f"entry {index}")
        elif left and (append_of(envelope) != self._append or index != count - left):
            self._bad("chain", seq, "the next entry of the same append", "another")
        elif index and (envelope.request is not None or envelope.request_fp is not None):
            self._bad("chain", seq, "no request beyond an append's first entry", "one")
        self._append_left = max(0, count - index - 1)
        if self._append_left:
            self._append = append_of(envelope)
        if envelope.at < self._at:
            self.clock_backs += 1
            self.clock_back = seq if self.clock_back is None else self.clock_back
        self._at = envelope.at


def append_of(envelope: Envelope) -> Append:
    """Return what all entries of one append have in common."""
    return envelope.op, envelope.op_count, envelope.actor, envelope.authn, envelope.at


def _plain(request: str) -> bytes:
    """Return the bytes that a request's hex stands for; of a text that is none, its own."""
    try:
        return bytes.fromhex(request)
    except ValueError:
        return request.encode()
