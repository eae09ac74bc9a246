"""The events themselves."""

from typing import Any

from gateway.shapes.replies.base import Reply


class LogItem(Reply, frozen=True, kw_only=True):
    """One event of the ledger. `stream` is opaque; `hash` is the BLAKE3 link hash of its envelope, in hex."""

    seq: int
    type: str
    at: str
    actor: str
    stream: str
    stream_seq: int
    hash: str
    trace_id: str


class EventDetail(LogItem, frozen=True, kw_only=True):
    """One event with both its halves, and what links it: hashes in hex, under the names that FORMAT.md gives them.

    `leaf` is its hash in the Merkle tree; `payload_sha256` and `payload_len` are None where it has no payload. `erased`
    says that it had one, which was destroyed; `forgotten`, that it has one which repeats what was forgotten, and is not
    told.
    """

    log: str
    op_index: int
    op_count: int
    prev_b3: str
    stream_prev_b3: str
    seal: str
    leaf: str
    payload_sha256: str | None
    payload_len: int | None
    facts: dict[str, Any]  # Any: the event type's own, as FORMAT.md gives them
    payload: dict[str, Any] | None  # Any: as above
    erased: bool = False
    forgotten: bool = False


class Trace(Reply, frozen=True, kw_only=True):
    """What one command stored: its events, in order. `trace_id` is its receipt's."""

    trace_id: str
    at: str
    actor: str
    items: tuple[EventDetail, ...]
    position: int
    incarnation: int
