"""What keeps a ledger in use: status, recovery, outbox, imports."""

from typing import Any

import msgspec

from gateway.shapes.replies.base import Reply


class Recovery(Reply, frozen=True, kw_only=True):
    """What start-up recovery did. `ok` is False while something needs a person."""

    ok: bool
    replayed: int
    skipped: int
    parked: int
    repaired: int
    index: dict[str, str]
    claims: tuple[dict[str, str], ...]
    position: int
    incarnation: int


class OutboxItem(Reply, frozen=True, kw_only=True):
    """What the event at `seq` asks of the index: to put or remove the revision or correction `id` of a stream.

    `state` is waiting, failing (tried again later) or parked (waits for a person). Of what failed, `attempts`, the last
    error's `code`, the time and the embedder's signature are known.
    """

    seq: int
    id: str
    stream: str
    effect: str
    state: str
    attempts: int
    code: str | None
    at: str | None
    embedder: str | None


class Outbox(Reply, frozen=True, kw_only=True):
    """What waits for the index, oldest first. `pending` counts what is carried by itself, `parked` what is not."""

    items: tuple[OutboxItem, ...]
    truncated: bool
    pending: int
    parked: int
    position: int
    incarnation: int


class OutboxRetry(Reply, frozen=True, kw_only=True):
    """What a retry did: the positions whose effects are settled now, and those that are parked again."""

    ok: bool
    settled: tuple[int, ...]
    parked: tuple[int, ...]
    position: int
    incarnation: int


class Status(Reply, frozen=True, kw_only=True):
    """One screen about the ledger and what is derived from it."""

    ledger: dict[str, Any]  # Any: size, head, origin, tenant, state of the chain
    anchor: dict[str, Any]  # Any: what is known of it
    projections: dict[str, Any]  # Any: generation and projector version
    index: dict[str, Any]  # Any: engine, embedder, items, cursor
    outbox: dict[str, int]
    index_pending: int
    memories: dict[str, int]
    conflicts_open: int
    candidates: dict[str, int]
    # Any: when the oldest one was made, and how many this home could not store.
    traces: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class ImportItem(Reply, frozen=True, kw_only=True):
    """The outcome of one row: stored, unchanged or rejected. `row` counts from 1."""

    row: int
    outcome: str
    code: str | None = None
    message: str | None = None
    memory_id: str | None = None
    revision_id: str | None = None


class ImportReport(Reply, frozen=True, kw_only=True):
    """What an import did. `items` holds the rejected rows; the counts cover all of them, links included."""

    stored: int
    unchanged: int
    rejected: int
    items: tuple[ImportItem, ...]
    links: int
    unlinks: int
    waiting: int
    position: int
    incarnation: int


class Transfer(Reply, frozen=True, kw_only=True):
    """What an import of another ledger's events did, by lines: each is stored, unchanged, rejected or left out.

    Left out is what is about the other ledger alone; `unverified` of those are admissions, which do not hold here.
    `items` names the rejected lines, at most a thousand of them. `origin`, `size` and `root` are the source's;
    `verified` says whether a key has signed them.
    """

    stored: int
    unchanged: int
    rejected: int
    left_out: int
    unverified: int
    items: tuple[ImportItem, ...]
    kind: str
    origin: str
    size: int
    root: str
    verified: bool
    position: int
    incarnation: int
