"""Shared hands: whoever rewrites a ledger with its own keys in hand, so that every link and seal is right again."""

from collections.abc import Callable, Sequence

import msgspec

from ledger import codec, digest
from ledger.anchor import Anchor, Link
from ledger.chain import Envelope
from ledger.tree import Frontier
from tests.tampering import Tampering

Change = Callable[[Envelope], Envelope]

EVENT = (
    "UPDATE corrigenda.event SET envelope = %(envelope)s, hash = %(hash)s, seal = %(seal)s "
    "WHERE ledger = %(ledger)s AND seq = %(seq)s"
)
NEW_EVENT = (
    "INSERT INTO corrigenda.event (ledger, seq, stream, stream_seq, envelope, hash, seal, request) VALUES "
    "(%(ledger)s, %(seq)s, %(stream)s, %(stream_seq)s, %(envelope)s, %(hash)s, %(seal)s, %(request)s)"
)
HEAD = "UPDATE corrigenda.head SET seq = %(seq)s, hash = %(hash)s WHERE ledger = %(ledger)s"
UNIQUE = (
    "ALTER TABLE corrigenda.event DROP CONSTRAINT IF EXISTS event_stream",
    "DROP INDEX IF EXISTS corrigenda.event_request",
)
CUT = (
    "DELETE FROM corrigenda.event WHERE ledger = %(ledger)s AND seq >= %(size)s",
    "DELETE FROM corrigenda.payload WHERE ledger = %(ledger)s AND seq >= %(size)s",
    "DELETE FROM corrigenda.outbox WHERE ledger = %(ledger)s AND seq >= %(size)s",
)


def anchored(tampering: Tampering, size: int | None = None) -> Anchor:
    """Return an anchor in memory of the first `size` entries as they lie now, or of all."""
    anchor = Anchor.in_memory(ledger=tampering.store.ledger, origin=tampering.origin)
    stored = tampering.store.after(-1, 1_000)[:size]
    anchor.extend([Link.of(codec.read_entry(one.envelope, one.seal, position=one.seq)) for one in stored])
    return anchor


def root_of(tampering: Tampering, size: int) -> bytes:
    """Return the root of the first entries as they lie."""
    tree = Frontier()
    tree.extend([digest.leaf(stored.envelope) for stored in tampering.store.after(-1, size)])
    return tree.root()


def cut(tampering: Tampering, size: int) -> None:
    """Leave the first `size` events, and a head that fits them."""
    last = tampering.store.at([size - 1])[0]
    tampering.run(*CUT, size=size)
    tampering.run(HEAD, seq=size - 1, hash=digest.link(last.envelope))


def put(tampering: Tampering, seq: int, envelope: bytes, *, seal: bytes | None = None) -> None:
    """Put bytes in an event's place, with a hash that fits and, by default, the seal that the key makes of it."""
    own = digest.link(envelope)
    tampering.run(EVENT, seq=seq, envelope=envelope, hash=own, seal=tampering.keys.seal(own) if seal is None else seal)


def rechain(tampering: Tampering, first: int, change: Change) -> None:
    """Change one event and make every later link and seal again, as only a holder of the key can."""
    stored = tampering.store.after(-1, 1_000)
    previous, ends = digest.GENESIS, dict[str, bytes]()
    for one in stored:
        envelope = codec.decode_envelope(one.envelope)
        raw = one.envelope
        if one.seq >= first:
            envelope = change(envelope) if one.seq == first else envelope
            before = ends.get(envelope.stream, digest.GENESIS)
            linked = msgspec.structs.replace(envelope, prev_b3=previous.hex(), stream_prev_b3=before.hex())
            raw = codec.encode_envelope(linked)
            put(tampering, one.seq, raw)
        previous, ends[envelope.stream] = digest.link(raw), digest.stream_link(raw)
    tampering.run(HEAD, seq=stored[-1].seq, hash=previous)


def appended(
    tampering: Tampering,
    model: int,
    *,
    seal: bytes | None = None,
    place: int | None = None,
    keep_request: bool = False,
) -> int:
    """Append an event like the one at `model`, rightly linked to the last, and return its position.

    It has the seal that is given, or the key's; the next place in its stream, or `place`; and no request unless it is
    to keep the model's. The head row names it, and no unique index stands in its way.
    """
    tampering.run(*UNIQUE)
    stored: Sequence[Envelope] = [codec.decode_envelope(one.envelope) for one in tampering.store.after(-1, 1_000)]
    last = tampering.store.at([len(stored) - 1])[0]
    stream = stored[model].stream
    in_stream = [one.seq for one in stored if one.stream == stream]
    before = tampering.store.at([in_stream[-1]])[0]
    forged = msgspec.structs.replace(
        stored[model],
        seq=len(stored),
        prev_b3=digest.link(last.envelope).hex(),
        stream_seq=len(in_stream) if place is None else place,
        stream_prev_b3=digest.stream_link(before.envelope).hex(),
        payload_len=None,
        payload_sha256=None,
        request=stored[model].request if keep_request else None,
        request_fp=stored[model].request_fp if keep_request else None,
        op_index=0,
        op_count=1,
    )
    raw = codec.encode_envelope(forged)
    own = digest.link(raw)
    tampering.run(
        NEW_EVENT,
        seq=forged.seq,
        stream=forged.stream,
        stream_seq=forged.stream_seq,
        envelope=raw,
        hash=own,
        seal=tampering.keys.seal(own) if seal is None else seal,
        request=None if forged.request is None else bytes.fromhex(forged.request),
    )
    tampering.run(HEAD, seq=forged.seq, hash=own)
    return forged.seq
