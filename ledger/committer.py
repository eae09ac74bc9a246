"""Drafts to entries to the database: links, seals and stores a group of appends in one transaction.

The caller holds the head's lock while it decides, so what it decided on is what the group is linked to; the guarded
head row says so once more. Either everything of the group is stored, read models and outbox included, or nothing.
"""

import os
from collections.abc import Sequence
from typing import Protocol

import psycopg
from msgspec import Struct

from ledger import codec, digest
from ledger.chain import Entry, Envelope, StreamHead, broken
from ledger.clock import Clock, stamp
from ledger.errors import failure
from ledger.message import Event
from ledger.outbox import outbox_writes
from ledger.store import QUERIES, HeadRow, Write
from ledger.verified import Recorded, VerifiedLedger

PROJECTOR_VERSION = 1


class Draft(Struct, frozen=True, kw_only=True):
    """One append, decided: its events with their streams, who makes it, and under which request."""

    op: str
    actor: str
    authn: str
    request: str | None
    fingerprint: str | None
    events: tuple[tuple[str, Event], ...]


class Projector(Protocol):
    """Turns a group of entries into rows, one statement per table; the same one runs in a rebuild."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the statements that bring this read model up to date with the group."""
        ...


class _Sealed(Struct, frozen=True):
    recorded: Recorded
    salt: bytes
    body: bytes | None


class Committer:
    """Appends to one ledger."""

    def __init__(self, ledger: VerifiedLedger, projectors: Sequence[Projector], clock: Clock) -> None:
        self._ledger = ledger
        self._projectors = projectors
        self._clock = clock

    def commit(self, row: HeadRow, drafts: Sequence[Draft]) -> list[list[Recorded]]:
        """Store a group of appends on the locked head `row`, inside the caller's transaction.

        Returns the recorded events of each draft. The walk has to be told (`take`) once the transaction has ended.
        """
        groups = self._seal(drafts)
        sealed = [item for group in groups for item in group]
        recorded = [item.recorded for item in sealed]
        writes = [
            _move_head(row, recorded[-1].entry),
            _insert_events([item.entry for item in recorded]),
            _insert_payloads(sealed),
            *outbox_writes([item.entry for item in recorded]),
            *(write for projector in self._projectors for write in projector.writes(row.gen, recorded)),
        ]
        try:
            self._ledger.store.run(writes)
        except psycopg.errors.UniqueViolation as error:
            raise _taken(error.diag.table_name or "", row) from error
        except psycopg.errors.InvalidTextRepresentation as error:
            raise _raised_on_purpose(error, row) from error
        return [[item.recorded for item in group] for group in groups]

    def take(self, recorded: Sequence[Sequence[Recorded]]) -> None:
        """Let the walk follow what was committed."""
        for group in recorded:
            for item in group:
                self._ledger.walk.follow(item.entry)

    def _seal(self, drafts: Sequence[Draft]) -> list[list[_Sealed]]:
        at = stamp(self._clock())
        walk = self._ledger.walk
        first, previous = walk.head.size, walk.head.hash
        streams: dict[str, StreamHead] = {}
        groups: list[list[_Sealed]] = []
        for draft in drafts:
            group: list[_Sealed] = []
            for index, (stream, event) in enumerate(draft.events):
                head = streams.get(stream) or walk.stream(stream)
                sealed = self._seal_one(draft, index, event.settled(first), stream, head, previous, at)
                entry = sealed.recorded.entry
                streams[stream] = StreamHead(head.version + 1, entry.position, entry.stream_hash)
                previous = entry.hash
                group.append(sealed)
            first += len(group)
            groups.append(group)
        return groups

    def _seal_one(
        self, draft: Draft, index: int, event: Event, stream: str, head: StreamHead, previous: bytes, at: str
    ) -> _Sealed:
        body = None if event.payload is None else codec.encode_payload(event.payload)
        salt = os.urandom(digest.SALT_BYTES)
        envelope = Envelope(
            actor=draft.actor,
            at=at,
            authn=draft.authn,
            facts=event.facts,
            log=self._ledger.origin,
            op=draft.op,
            op_count=len(draft.events),
            op_index=index,
            payload_len=None if body is None else len(body),
            payload_sha256=None if body is None else digest.commitment(salt, body),
            prev_b3=previous.hex(),
            request=draft.request if index == 0 else None,
            request_fp=draft.fingerprint if index == 0 else None,
            schema=codec.SCOPE_SCHEMA,
            seq=event.position,
            stream=stream,
            stream_prev_b3=head.hash.hex(),
            stream_seq=head.version,
            subjects=(),
            type=codec.TAGS[type(event.facts)],
            v=codec.FORMAT_VERSION,
        )
        raw = codec.encode_envelope(envelope)
        own = digest.link(raw)
        entry = Entry(
            envelope=envelope,
            raw=raw,
            hash=own,
            stream_hash=digest.stream_link(raw),
            seal=self._ledger.keys.seal(own),
        )
        return _Sealed(Recorded(entry, event.payload), salt, body)


def _move_head(row: HeadRow, last: Entry) -> Write:
    params = {
        "seq": last.position,
        "hash": last.hash,
        "old_seq": row.seq,
        "old_hash": row.hash,
        "gen": row.gen,
        "projector": PROJECTOR_VERSION,
        "incarnation": row.incarnation,
    }
    return Write(QUERIES["move_head"], params)


def _insert_events(entries: Sequence[Entry]) -> Write:
    requests = [entry.envelope.request for entry in entries]
    params = {
        "seqs": [entry.position for entry in entries],
        "streams": [entry.envelope.stream for entry in entries],
        "stream_seqs": [entry.envelope.stream_seq for entry in entries],
        "envelopes": [entry.raw for entry in entries],
        "hashes": [entry.hash for entry in entries],
        "seals": [entry.seal for entry in entries],
        "requests": [None if request is None else bytes.fromhex(request) for request in requests],
    }
    return Write(QUERIES["insert_events"], params)


def _insert_payloads(sealed: Sequence[_Sealed]) -> Write:
    rows = [(item.recorded.entry.position, item.salt, item.body) for item in sealed if item.body is not None]
    params = {
        "seqs": [position for position, _, _ in rows],
        "salts": [salt for _, salt, _ in rows],
        "bodies": [body for _, _, body in rows],
    }
    return Write(QUERIES["insert_payloads"], params)


def _taken(table: str, row: HeadRow) -> Exception:
    """Return what it means that a row which this append writes is there already: nothing else may write it."""
    if table in ("event", "payload", "outbox"):
        return broken(row.seq + 1, "chain", "a free place above the head", f"a row in the table {table}")
    return failure(
        "INTEGRITY_BROKEN",
        f"The read model in the table {table} holds a row that no event accounts for, so this append could not bring "
        "it up to date. Nothing was stored; the events themselves are not touched by this. Put the row right: "
        "`corrigenda history` says what it should hold.",
        position=row.seq,
        check="projections",
        exit_code=12,
    )


def _raised_on_purpose(error: Exception, row: HeadRow) -> Exception:
    """Return what a statement meant that raises when its row count is wrong."""
    if "PROJECTION_DRIFT" in str(error):
        return failure(
            "INTEGRITY_BROKEN",
            "A read model has lost a row that this append changes. Nothing was stored. Rebuild the read models.",
            position=row.seq,
            check="projections",
            exit_code=12,
        )
    if "HEAD_MOVED" in str(error) and row.projector != PROJECTOR_VERSION:
        return failure(
            "SCHEMA_MISMATCH",
            f"The read models are of version {row.projector}, and this program writes version {PROJECTOR_VERSION}. "
            "Nothing was stored. Use the version that the other processes use.",
        )
    return failure("CONCURRENT_MODIFICATION", "The ledger moved during this append; nothing was stored. Try again.")
