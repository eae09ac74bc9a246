"""The revisions of every lineage, with their present values: where commands and the relay find them.

A row is a hint. What it says is checked against the lineage's own events before anything is decided or answered.
"""

from collections.abc import Sequence

from ledger.memories import MemoryRemembered, RevisionCorrected
from ledger.message import Move
from ledger.sql import load
from ledger.store import Write
from ledger.verified import Recorded

QUERIES = load("projections")

_KEPT = -1  # the content position of a row that only moves: the upsert leaves the old one


class RevisionProjector:
    """Writes `revision`, one row per revision."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the one upsert of a group; each revision is in it once, demotions before promotions."""
        rows: dict[str, tuple[str, Move, int]] = {}
        for item in recorded:
            facts = item.entry.envelope.facts
            born = facts.moves[-1].revision if isinstance(facts, MemoryRemembered | RevisionCorrected) else None
            moves: tuple[Move, ...] = getattr(facts, "moves", ())
            for move in moves:
                kept = rows[move.revision][2] if move.revision in rows else _KEPT
                content_seq = item.entry.position if move.revision == born else kept
                rows[move.revision] = (item.entry.envelope.stream, move, content_seq)
        if not rows:
            return []
        ordered = sorted(rows.values(), key=lambda row: row[1].after.is_live)
        params = {
            "gen": gen,
            "revisions": [move.revision for _, move, _ in ordered],
            "lineages": [stream for stream, _, _ in ordered],
            "versions": [move.version for _, move, _ in ordered],
            "states": [move.after.state for _, move, _ in ordered],
            "trusts": [move.after.trust for _, move, _ in ordered],
            "floors": [move.after.floor for _, move, _ in ordered],
            "content_seqs": [content_seq for _, _, content_seq in ordered],
        }
        return [Write(QUERIES["upsert_revisions"], params)]
