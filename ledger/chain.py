"""The chain as a fold: an entry follows a head, or it breaks the chain at its position.

`follow` is the only way from one head to the next, and it looks at nothing but the entry's own bytes and seal.
"""

from collections.abc import Callable

from msgspec import Struct

from ledger.digest import GENESIS
from ledger.errors import failure
from ledger.message import Facts


class Envelope(Struct, frozen=True, kw_only=True, gc=False):
    """The hashed part of an event, parsed. Every field as FORMAT.md §3 lists it; hashes are hex."""

    actor: str
    at: str
    authn: str
    facts: Facts
    log: str
    op: str
    op_count: int
    op_index: int
    payload_len: int | None
    payload_sha256: str | None
    prev_b3: str
    request: str | None
    request_fp: str | None
    schema: int
    seq: int
    stream: str
    stream_prev_b3: str
    stream_seq: int
    subjects: tuple[str, ...]
    type: str
    v: int


class Entry(Struct, frozen=True, kw_only=True, gc=False):
    """One event as it lies in the ledger: parsed, with its bytes, its hashes and its seal."""

    envelope: Envelope
    raw: bytes
    hash: bytes
    stream_hash: bytes
    seal: bytes

    @property
    def position(self) -> int:
        """Return the entry's place in the ledger."""
        return self.envelope.seq


class Head(Struct, frozen=True, gc=False):
    """How many entries there are, and the hash of the last one."""

    size: int
    hash: bytes


class StreamHead(Struct, frozen=True, gc=False):
    """How many entries a stream has (its version), where its last one is, and that one's stream hash."""

    version: int
    position: int
    hash: bytes


EMPTY = Head(0, GENESIS)
NO_STREAM = StreamHead(0, -1, GENESIS)


def follow(head: Head, entry: Entry, is_sealed: Callable[[bytes, bytes], bool]) -> Head:
    """Return the head after `entry`, or raise INTEGRITY_BROKEN naming the position and the check that failed."""
    if entry.envelope.seq != head.size:
        raise broken(head.size, "chain", f"position {head.size}", f"position {entry.envelope.seq}")
    if entry.envelope.prev_b3 != head.hash.hex():
        raise broken(head.size, "chain", "a link to the entry before", "another link")
    if not is_sealed(entry.hash, entry.seal):
        raise broken(head.size, "seals", "a seal of this ledger's key", "none or another")
    return Head(head.size + 1, entry.hash)


def follow_stream(head: StreamHead, entry: Entry) -> StreamHead:
    """Return the stream's head after `entry`, or raise INTEGRITY_BROKEN."""
    envelope = entry.envelope
    if (envelope.stream_seq, envelope.stream_prev_b3) != (head.version, head.hash.hex()):
        raise broken(envelope.seq, "streams", f"entry {head.version} of its stream", f"entry {envelope.stream_seq}")
    return StreamHead(head.version + 1, envelope.seq, entry.stream_hash)


def broken(position: int, check: str, expected: str, found: str) -> Exception:
    """Return INTEGRITY_BROKEN for a position: which check failed, what it expected and what it found."""
    return failure(
        "INTEGRITY_BROKEN",
        f"The ledger is not what was written: at position {position} the check '{check}' expected {expected} and found "
        f"{found}. What was altered is not served, and nothing is decided on it, until that is mended. `corrigenda "
        f"verify` shows the whole report, and `corrigenda show --raw {position}` the bytes.",
        position=position,
        check=check,
        expected=expected,
        found=found,
    )
