"""Drafts to entries: settles positions, links each entry to the one before it and to its stream's, and seals it.

What costs time and depends on nothing else, the payload's bytes and their commitment, is made when an append is
prepared, by whoever asks for it; linking has to wait for its turn and is kept short.
"""

from collections.abc import Mapping

from msgspec import Struct

from ledger import codec, digest
from ledger.chain import NO_STREAM, Entry, Envelope, Head, StreamHead
from ledger.clock import Chance
from ledger.digest import LedgerKeys
from ledger.message import Event, Facts, settled
from ledger.verified import Recorded


class Draft(Struct, frozen=True, kw_only=True, gc=False):
    """One append, decided: its events with their streams, who makes it, under which request, and what it rests on.

    `reads` is the version of every stream that the decision looked at, written to or not: it is stored only while all
    of them are still at that version. `objects` are the bytes of evidence by its stream, stored with the event that
    says their hash.
    """

    op: str
    actor: str
    authn: str
    request: str | None
    fingerprint: str | None
    events: tuple[tuple[str, Event], ...]
    reads: Mapping[str, int] = {}
    objects: Mapping[str, bytes] = {}

    @property
    def streams(self) -> set[str]:
        """Return every stream that the append reads or writes."""
        return {stream for stream, _ in self.events} | self.reads.keys()


class Part(Struct, frozen=True, gc=False):
    """One event of a draft with its payload's salt, bytes and commitment."""

    stream: str
    event: Event
    salt: bytes
    body: bytes | None
    commitment: str | None


class Prepared(Struct, frozen=True, gc=False):
    """A draft that needs no more than its place in the chain."""

    draft: Draft
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Return the number of bytes of payloads and objects."""
        objects = sum(map(len, self.draft.objects.values()))
        return objects + sum(len(part.body or b"") for part in self.parts)


class Sealed(Struct, frozen=True, gc=False):
    """One event as it is stored."""

    recorded: Recorded
    salt: bytes
    body: bytes | None
    object: bytes | None = None

    @property
    def entry(self) -> Entry:
        """Return the event's entry."""
        return self.recorded.entry


fresh_salt = Chance(digest.SALT_BYTES)


def prepare(draft: Draft) -> Prepared:
    """Make the payloads' bytes. A text that can never be stored is VALIDATION_FAILED or PAYLOAD_TOO_LARGE."""
    return Prepared(draft, tuple(_part(stream, event) for stream, event in draft.events))


def _part(stream: str, event: Event) -> Part:
    salt = fresh_salt()
    if event.payload is None:
        return Part(stream, event, salt, None, None)
    body = codec.encode_payload(event.payload)
    return Part(stream, event, salt, body, digest.commitment(salt, body))


class Tip:
    """Where the next entry goes: the head of the chain and the ends of the streams, moved on by each append sealed."""

    def __init__(self, head: Head, ends: dict[str, StreamHead]) -> None:
        self.head = head
        self.ends = ends

    def moved(self, reads: Mapping[str, int]) -> str | None:
        """Return a stream that is not at the version at which it was read, or None."""
        for name, version in reads.items():
            if self.end(name).version != version:
                return name
        return None

    def end(self, stream: str) -> StreamHead:
        """Return where a stream ends."""
        return self.ends.get(stream, NO_STREAM)


class Sealer:
    """Seals the appends of one ledger."""

    def __init__(self, keys: LedgerKeys, origin: str) -> None:
        self._keys = keys
        self._origin = origin

    def seal(self, prepared: Prepared, tip: Tip, at: str) -> list[Sealed]:
        """Return an append's entries on `tip`, which is moved on. A refusal (an envelope over 16 KiB) leaves it."""
        first, head, ends = tip.head.size, tip.head, dict[str, StreamHead]()
        sealed: list[Sealed] = []
        for index, part in enumerate(prepared.parts):
            stream = part.stream
            end = ends.get(stream) or tip.ends.get(stream, NO_STREAM)
            one = self._seal(prepared.draft, index, part, end, head, settled(part.event.facts, first), at)
            entry = one.recorded.entry
            ends[stream] = StreamHead(end.version + 1, head.size, entry.stream_hash)
            head = Head(head.size + 1, entry.hash)
            sealed.append(one)
        tip.head = head
        tip.ends.update(ends)
        return sealed

    def _seal(self, draft: Draft, index: int, part: Part, end: StreamHead, head: Head, facts: Facts, at: str) -> Sealed:
        envelope = Envelope(
            actor=draft.actor,
            at=at,
            authn=draft.authn,
            facts=facts,
            log=self._origin,
            op=draft.op,
            op_count=len(draft.events),
            op_index=index,
            payload_len=None if part.body is None else len(part.body),
            payload_sha256=part.commitment,
            prev_b3=head.hash.hex(),
            request=draft.request if index == 0 else None,
            request_fp=draft.fingerprint if index == 0 else None,
            schema=codec.SCOPE_SCHEMA,
            seq=head.size,
            stream=part.stream,
            stream_prev_b3=end.hash.hex(),
            stream_seq=end.version,
            subjects=part.event.subjects,
            type=codec.TAGS[type(facts)],
            v=codec.FORMAT_VERSION,
        )
        raw = codec.encode_envelope(envelope)
        own = digest.link(raw)
        entry = Entry(
            envelope=envelope, raw=raw, hash=own, stream_hash=digest.stream_link(raw), seal=self._keys.seal(own)
        )
        return Sealed(Recorded(entry, part.event.payload), part.salt, part.body, draft.objects.get(part.stream))
