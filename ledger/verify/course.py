"""What the next entry has to follow, and where it does not: the entries themselves, in their order, and nothing beside.

After a break it goes on from the bytes that are there, so that one altered entry is one finding and not a thousand.
None stands for what a break left unknown, or what lies before a beginning that nobody has looked behind.
"""

from collections.abc import Callable
from contextlib import suppress

from ledger import codec, digest
from ledger.chain import Envelope
from ledger.erasure import OF_ERASURES
from ledger.governance import LedgerName, LedgerOpened
from ledger.tree import Frontier
from ledger.verify import entries
from ledger.verify.aside import Part, Request
from ledger.verify.entries import Ledger
from ledger.verify.glance import AT_ONCE, GENESIS, Append, Glance, Place, append_of, glance
from ledger.verify.pages import NO_PAYLOAD, Page, Payload, Row
from ledger.verify.report import Findings


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


class Course:
    """The state of entries that were looked at one after the other, from `start` on."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        start: Start,
        findings: Findings,
        witness: Callable[[Envelope], None] | None = None,
    ) -> None:
        self.first = start.first
        self.next = start.first
        self.last = start.first - 1
        self.events = 0
        self.previous = start.previous
        self.append = start.append
        self.append_left = start.append_left
        self.at = start.at
        self.public_key = start.public_key
        self.incarnation: int | None = None  # what event 0 says, where it was read
        self.tenant: str | None = None
        self.seals_seen = 0
        self.clock_back: int | None = None  # the first position whose time lies before that of the entry before
        self.clock_backs = 0
        self.findings = findings
        self.absent: list[int] = []  # where a payload is not there at all
        self.erasing: list[Envelope] = []  # the events of erasures
        self.parts: dict[str, Part] = {}
        self.requests: list[Request] = []
        self._ledger = ledger
        self._seals = ledger.keys
        self._bad = findings.bad
        self._witness = witness
        self._suspect: int | None = None

    @property
    def origin(self) -> str | None:
        """Return the name that all entries bear; None until the first has been looked at, if nobody said it before."""
        return self._ledger.origin

    def look(self, page: Page) -> list[bytes]:
        """Check the entries of a page, a few at a glance or else one after the other, and return their leaf hashes."""
        leaves: list[bytes] = []
        for first in range(0, len(page.rows), AT_ONCE):
            part = Page(page.rows[first : first + AT_ONCE], page.payloads)
            place = Place(self.next, self.previous, self.append, self.append_left, self.at, self.parts)
            seen = glance(part, place, self._ledger)
            leaves += self._look_closely(part) if seen is None else self._pass(seen)
        return leaves

    def _pass(self, seen: Glance) -> list[bytes]:
        """Go on behind a page that is sound."""
        count = len(seen.leaves)
        self.events, self.last = self.events + count, seen.follows.seq - 1
        self.next, self.previous, self.append, self.append_left, self.at, parts = seen.follows
        self._suspect = None
        self.seals_seen += 0 if self._seals is None else count
        self._note_clock(seen.clock_backs)
        self.parts.update(parts)
        self.requests += seen.requests
        self.absent += seen.absent
        self.erasing += seen.erasing
        if self._witness is not None:
            for envelope in seen.envelopes:
                self._witness(envelope)
        return seen.leaves

    def _note_clock(self, backs: list[int]) -> None:
        self.clock_backs += len(backs)
        self.clock_back = backs[0] if backs and self.clock_back is None else self.clock_back

    def _look_closely(self, page: Page) -> list[bytes]:
        leaves: list[bytes] = []
        payload_of = page.payloads.get
        for row in page.rows:
            if row[0] != self.next:
                self._gap(row[0])
            raw = row[3] or b""
            leaves.append(digest.leaf(raw))  # whatever is wrong with it: the root is that of the stored bytes
            self._take(row, raw, payload_of(row[0], NO_PAYLOAD))
        return leaves

    def is_followed_by(self, opening: Envelope) -> bool:
        """Report whether an entry that is sound by itself is the next one; after a break that cannot be said."""
        left = self.append_left
        if opening.seq != self.next or self.previous is None or left is None:
            return False
        if left and (append_of(opening) != self.append or opening.op_index != opening.op_count - left):
            return False
        return opening.prev_b3 == self.previous.hex() and (left > 0 or opening.op_index == 0)

    def _gap(self, seq: int) -> None:
        self._bad("chain", self.next, f"an entry at position {self.next}", f"none below position {seq}")
        self.previous = self._suspect = self.append_left = None

    def _take(self, row: Row, raw: bytes, payload: Payload) -> None:
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
            if not entries.is_sound(envelope, row, payload, self._ledger.origin or ""):
                self._explain(envelope, row, payload)
            if self.previous is not None and envelope.prev_b3 != self.previous.hex():
                blamed = seq if self._suspect is None else self._suspect
                self._bad("chain", blamed, "an entry that the one after it links to", "another")
            self._follow_stream(envelope, seq, raw, suspect)
            self._follow_append(envelope, seq)
            if envelope.type in OF_ERASURES:
                self.erasing.append(envelope)
            if self._witness is not None:
                self._witness(envelope)
            if envelope.request is not None:
                self.requests.append(Request(_plain(envelope.request), seq))
        self.previous, self._suspect = own, suspect
        self.events, self.next, self.last = self.events + 1, seq + 1, seq

    def _check_seal(self, seq: int, own: bytes, seal: bytes | None) -> bool:
        if self._seals is None:
            return True
        expected = self._seals.seal(own)
        if seal == expected:
            self.seals_seen += 1
            return True
        self._bad("seals", seq, "a seal of this ledger's key", "none or another")
        self.seals_seen += seal is not None and seal[:8] == expected[:8]
        return False

    def _explain(self, envelope: Envelope, row: Row, payload: Payload) -> None:
        if self._ledger.origin is None:
            self._ledger = self._ledger._replace(origin=envelope.log)
        entries.explain(envelope, row, payload, self._ledger, self.findings, self.absent.append)
        if row[0] == 0 and isinstance(envelope.facts, LedgerOpened) and entries.opens(envelope, self._ledger.id):
            self.public_key = envelope.facts.public_key
            self.incarnation = envelope.facts.incarnation
            with suppress(codec.NotCanonical):
                named = codec.decode_payload(envelope.type, payload[1] or b"")
                self.tenant = named.tenant if isinstance(named, LedgerName) else None

    def _pass_over(self, row: Row) -> None:
        """Go on behind an envelope that says nothing: its stream at the place that the columns name."""
        seq, stream, stream_seq = row[:3]
        self.append_left = None
        if stream is not None and stream_seq is not None:
            part = self.parts.setdefault(stream, Part(stream, seq, None, None, 0, None, None))
            part.version, part.hash, part.suspect = stream_seq + 1, None, seq

    def _follow_stream(self, envelope: Envelope, seq: int, raw: bytes, suspect: int | None) -> None:
        place, link = envelope.stream_seq, envelope.stream_prev_b3
        own = digest.stream_link(raw)
        part = self.parts.get(envelope.stream)
        if part is None:
            named = None if place == 0 and link == GENESIS else link
            first = Part(envelope.stream, seq, place, named, place + 1, own, suspect)
            self.parts[envelope.stream] = first
            return
        blamed = seq if part.suspect is None else part.suspect
        if place != part.version:
            self._bad("streams", blamed, f"entry {part.version} of the stream next", f"entry {place}")
        elif part.hash is not None and link != part.hash.hex():
            self._bad("streams", blamed, "an entry that the stream's next one links to", "another")
        part.version, part.hash, part.suspect = place + 1, own, suspect

    def _follow_append(self, envelope: Envelope, seq: int) -> None:
        """Entries of one append lie side by side, and agree in all that an append has once."""
        index, count, left = envelope.op_index, envelope.op_count, self.append_left
        if left == 0 and index != 0:
            self._bad("chain", seq, "the first entry of an append", f"entry {index}")
        elif left and (append_of(envelope) != self.append or index != count - left):
            self._bad("chain", seq, "the next entry of the same append", "another")
        elif index and (envelope.request is not None or envelope.request_fp is not None):
            self._bad("chain", seq, "no request beyond an append's first entry", "one")
        self.append_left = max(0, count - index - 1)
        if self.append_left:
            self.append = append_of(envelope)
        self._follow_time(envelope.at, seq)

    def _follow_time(self, at: str, seq: int) -> None:
        self._note_clock([seq] if at < self.at else [])
        self.at = at


def _plain(request: str) -> bytes:
    """Return the bytes that a request's hex stands for; of a text that is none, its own."""
    try:
        return bytes.fromhex(request)
    except ValueError:
        return request.encode()
