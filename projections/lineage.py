"""The revisions of every lineage, with their present values: where commands and the relay find them.

A row is a hint. What it says is checked against the lineage's own events before anything is decided or answered.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ledger.memories import MemoryRemembered, RevisionCorrected
from ledger.message import Move
from ledger.sql import load
from ledger.store import Write
from ledger.verified import Recorded

QUERIES = load("projections")

_KEPT = -1  # the content position of a row that only moves: the upsert leaves what the row had


class _Row(NamedTuple):
    lineage: str
    project: str
    move: Move
    content_seq: int


class RevisionProjector:
    """Writes `revision`, one row per revision."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the one upsert of a group; each revision is in it once, demotions before promotions."""
        rows: dict[str, _Row] = {}
        for item in recorded:
            moves: tuple[Move, ...] = getattr(item.entry.envelope.facts, "moves", ())
            for move in moves:
                rows[move.revision] = _row(item, move, rows.get(move.revision))
        if not rows:
            return []
        ordered = sorted(rows.values(), key=lambda row: row.move.after.is_live)
        params = {
            "gen": gen,
            "revisions": [row.move.revision for row in ordered],
            "lineages": [row.lineage for row in ordered],
            "projects": [row.project for row in ordered],
            "versions": [row.move.version for row in ordered],
            "states": [row.move.after.state for row in ordered],
            "trusts": [row.move.after.trust for row in ordered],
            "floors": [row.move.after.floor for row in ordered],
            "content_seqs": [row.content_seq for row in ordered],
        }
        return [Write(QUERIES["upsert_revisions"], params)]


def _row(item: Recorded, move: Move, before: _Row | None) -> _Row:
    facts, stream = item.entry.envelope.facts, item.entry.envelope.stream
    if move.before is None and isinstance(facts, MemoryRemembered | RevisionCorrected):
        return _Row(stream, facts.scope.project, move, item.entry.position)
    return _Row(stream, before.project if before else "", move, before.content_seq if before else _KEPT)
