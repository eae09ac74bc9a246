"""What an event asks of the verified index: one insert-only row per effect, in the event's own transaction.

A row says only that a revision or a correction is to be put or removed. Whether it still is, is asked again when the
row is drained.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from ledger.chain import Entry
from ledger.corrections import CorrectionConfirmed, CorrectionRecorded, CorrectionRevoked, CorrectionSuperseded
from ledger.governance import OutboxSkipped
from ledger.message import Facts, Move, Values
from ledger.store import QUERIES, Write

PUT, REMOVE = "put", "remove"
_OF_CORRECTIONS = (CorrectionRecorded, CorrectionConfirmed, CorrectionSuperseded, CorrectionRevoked)


class Effect(NamedTuple):
    """One revision, or one correction, to put into the index or to remove from it; a correction is its own lineage."""

    position: int
    revision: str
    effect: str
    lineage: str


def effects(entry: Entry) -> list[Effect]:
    """Return the effects of one entry: what is served from now on, elsewhere or no more.

    A correction that is confirmed stays where it is, and is put again: what it contradicts is looked for once more.
    """
    facts, stream = entry.envelope.facts, entry.envelope.stream
    match facts:
        case CorrectionRecorded() | CorrectionConfirmed():
            return [Effect(entry.position, stream, PUT, stream)]
        case CorrectionSuperseded() | CorrectionRevoked():
            return [Effect(entry.position, stream, REMOVE, stream)]
        case _:
            moves: tuple[Move, ...] = getattr(facts, "moves", ())
            changed = [move for move in moves if _tier(move.before) != _tier(move.after)]
            return [
                Effect(entry.position, move.revision, REMOVE if _tier(move.after) is None else PUT, stream)
                for move in changed
            ]


def _tier(values: Values | None) -> str | None:
    """Return among which revisions one with these values is served; None if it is not."""
    return values.trust if values is not None and values.is_live and values.floor != "revoked" else None


def outbox_writes(entries: Sequence[Entry]) -> list[Write]:
    """Return the statements that store the effects of a group of entries, and what is given up in it."""
    rows = [effect for entry in entries if _has_any(type(entry.envelope.facts)) for effect in effects(entry)]
    return [*_inserted(rows), *_skipped(entries)]


@cache
def _has_any(kind: type[Facts]) -> bool:
    """Report whether an event of that type may have an effect."""
    return kind in _OF_CORRECTIONS or "moves" in kind.__struct_fields__


def _skipped(entries: Sequence[Entry]) -> list[Write]:
    facts = [entry.envelope.facts for entry in entries]
    skips = [one for one in facts if isinstance(one, OutboxSkipped)]
    if not skips:
        return []
    params = {"seqs": [one.position for one in skips], "targets": [one.target for one in skips]}
    return [Write(QUERIES["skip_failures"], params)]


def _inserted(rows: Sequence[Effect]) -> list[Write]:
    if not rows:
        return []
    params = {
        "seqs": [row.position for row in rows],
        "revisions": [row.revision for row in rows],
        "effects": [row.effect for row in rows],
        "lineages": [row.lineage for row in rows],
    }
    return [Write(QUERIES["insert_outbox"], params)]
