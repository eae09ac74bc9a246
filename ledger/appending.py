"""The statements that store a group of sealed appends, and what it means when the database refuses one of them."""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

import psycopg

from ledger import driver
from ledger.chain import broken
from ledger.errors import failure
from ledger.outbox import outbox_writes
from ledger.sealing import Sealed
from ledger.store import QUERIES, HeadRow, Write
from ledger.verified import Recorded
from ledger.wire import Params

PROJECTOR_VERSION = 2


class Projector(Protocol):
    """Turns a group of entries into rows, one statement per table; the same one runs in a rebuild."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the statements that bring this read model up to date with the group."""
        ...


def group_writes(ledger: str, row: HeadRow, sealed: Sequence[Sealed], projectors: Sequence[Projector]) -> list[Write]:
    """Return what stores a group: first the events, guarded, so that all is stored only on the head they link to."""
    recorded = [item.recorded for item in sealed]
    writes = [
        _append(row, sealed),
        *outbox_writes([item.entry for item in recorded]),
        *(write for projector in projectors for write in projector.writes(row.gen, recorded)),
        *_object_writes(sealed),
    ]
    return [Write(write.query, {"ledger": ledger, **write.params}) for write in writes]


def _append(row: HeadRow, sealed: Sequence[Sealed]) -> Write:
    first, last = sealed[0].entry, sealed[-1].entry
    guard: Params = {
        "seq": last.position,
        "hash": last.hash,
        "old_seq": first.position - 1,
        "old_hash": bytes.fromhex(first.envelope.prev_b3),
        "gen": row.gen,
        "projector": PROJECTOR_VERSION,
        "incarnation": row.incarnation,
    }
    if len(sealed) == 1:
        return Write(QUERIES["append_single"], guard | _row(sealed[0]))
    return Write(QUERIES["append"], guard | _columns(sealed))


def _row(item: Sealed) -> Params:
    entry = item.entry
    envelope = entry.envelope
    return {
        "stream": envelope.stream,
        "stream_seq": envelope.stream_seq,
        "envelope": entry.raw,
        "seal": entry.seal,
        "request": envelope.request and bytes.fromhex(envelope.request),
        "salt": item.salt,
        "body": item.body,
    }


def _columns(sealed: Sequence[Sealed]) -> Params:
    entries = [item.entry for item in sealed]
    paid = [item for item in sealed if item.body is not None]
    return {
        "seqs": [entry.position for entry in entries],
        "streams": [entry.envelope.stream for entry in entries],
        "stream_seqs": [entry.envelope.stream_seq for entry in entries],
        "envelopes": [entry.raw for entry in entries],
        "hashes": [entry.hash for entry in entries],
        "seals": [entry.seal for entry in entries],
        "requests": [one and bytes.fromhex(one) for one in (entry.envelope.request for entry in entries)],
        "payload_seqs": [item.entry.position for item in paid],
        "salts": [item.salt for item in paid],
        "bodies": [item.body for item in paid],
    }


def _object_writes(sealed: Sequence[Sealed]) -> list[Write]:
    """Return the statement that stores the evidence of a group, if there is any."""
    rows = {item.entry.envelope.stream: item.object for item in sealed if item.object is not None}
    if not rows:
        return []
    return [Write(QUERIES["insert_objects"], {"objects": [*rows], "bytes": [*rows.values()]})]


class Failure(Enum):
    """What became of a group whose flush failed, and so what has to be done."""

    LOST_RACE = "the head had moved: nothing was stored"
    ROLLED_BACK = "the server was in trouble that passes: nothing was stored"
    UNKNOWN = "the connection was lost: whether it was stored is not known"
    REFUSED = "the database refused what was to be stored: nothing was"


_OWN_TABLES = ("event", "payload", "outbox", "evidence_object")
_PLACES = ("event_pkey", "payload_pkey", "outbox_pkey")
_BAD_NUMBER = "22P02"  # what the guard's cast of a text to a number is refused with
_PASSES = ("40001", "40P01", "55P03", "57P03")
_LACKS = "53"  # the class of a full disk, too little memory, too many connections


def classify(error: psycopg.Error) -> Failure:
    """Return what a flush's error says about its transaction."""
    state = error.sqlstate
    if state is None or state.startswith("08") or state in ("57P01", "57P02"):
        return Failure.UNKNOWN
    if state in _PASSES or state.startswith(_LACKS):
        return Failure.ROLLED_BACK
    return Failure.LOST_RACE if state == _BAD_NUMBER and "HEAD_MOVED" in str(error) else Failure.REFUSED


def is_about_all(error: psycopg.Error) -> bool:
    """Report whether a refusal is about the place above the head, and so about whatever would be stored there."""
    return isinstance(error, psycopg.errors.UniqueViolation) and error.diag.constraint_name in _PLACES


def meaning(error: psycopg.Error, position: int) -> Exception:
    """Return a refusal in the registry's words, for an append that would have begun at `position`."""
    if isinstance(error, psycopg.errors.UniqueViolation):
        return _taken(error.diag.table_name or "", error.diag.constraint_name or "", position)
    if "PROJECTION_DRIFT" in str(error):
        return failure(
            "INTEGRITY_BROKEN",
            "A read model has lost a row that this append changes. Nothing was stored; the events themselves are not "
            "touched by this. Run `corrigenda projections rebuild`, and do this again.",
            position=position - 1,
            check="projections",
            exit_code=12,
        )
    known = driver.refusal(error)
    if known is not None:
        return known
    return failure("UNAVAILABLE", f"The database refused this append ({driver.said(error)}); nothing was stored.")


def _taken(table: str, constraint: str, position: int) -> Exception:
    """Return what it means that a row which this append writes is there already: nothing else may write it."""
    if constraint == "event_stream":
        return broken(position, "streams", "a free place at its stream's end", "a row of another stream there")
    if table in _OWN_TABLES:
        return broken(position, "chain", "a free place above the head", f"a row in the table {table}")
    return failure(
        "INTEGRITY_BROKEN",
        f"The read model in the table {table} holds a row that no event accounts for, so this append could not bring "
        "it up to date. Nothing was stored; the events themselves are not touched by this. Run `corrigenda projections "
        "rebuild`, and do this again.",
        position=position - 1,
        check="projections",
        exit_code=12,
    )


def other_version(found: int) -> Exception:
    """Return SCHEMA_MISMATCH for read models that another version of the projectors writes."""
    mend = (
        "Install the version that wrote them, or a newer one."
        if found > PROJECTOR_VERSION
        else "Run `corrigenda projections rebuild` once: it makes them anew beside the old ones, and nothing stops."
    )
    return failure(
        "SCHEMA_MISMATCH",
        f"The read models are of version {found}, and this program writes version {PROJECTOR_VERSION}. Nothing was "
        f"stored. {mend}",
        expected=PROJECTOR_VERSION,
        found=found,
    )
