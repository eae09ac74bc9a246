"""What an event asks of the verified index: one insert-only row per effect, in the event's own transaction.

A row says only that a revision is to be put or removed. Whether it still is, is asked again when the row is drained.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ledger.chain import Entry
from ledger.message import Move, Values
from ledger.store import QUERIES, Write


class Effect(NamedTuple):
    """One revision to put into the index or to remove from it."""

    position: int
    revision: str
    effect: str
    lineage: str


def effects(entry: Entry) -> list[Effect]:
    """Return the effects of one entry: each revision that became live, or ceased to be, or is trusted otherwise."""
    moves: tuple[Move, ...] = getattr(entry.envelope.facts, "moves", ())
    changed = [move for move in moves if _place(move.before) != _place(move.after)]
    return [
        Effect(entry.position, move.revision, "put" if move.after.is_live else "remove", entry.envelope.stream)
        for move in changed
    ]


def _place(values: Values | None) -> str | None:
    """Return the trust under which a revision is indexed, or None while it is not."""
    return values.trust if values is not None and values.is_live else None


def outbox_writes(entries: Sequence[Entry]) -> list[Write]:
    """Return the statement that stores the effects of a group of entries, if there are any."""
    rows = [effect for entry in entries for effect in effects(entry)]
    if not rows:
        return []
    params = {
        "seqs": [row.position for row in rows],
        "revisions": [row.revision for row in rows],
        "effects": [row.effect for row in rows],
        "lineages": [row.lineage for row in rows],
    }
    return [Write(QUERIES["insert_outbox"], params)]
