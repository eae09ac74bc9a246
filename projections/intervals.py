"""What a revision's values were, and from which position to which: where the past is looked up.

A move names where the interval began that it ends, so rows are found by their whole key and nothing is read. A patch of
metadata opens no interval: where the metadata of a head lay is in the standing of its lineage's event of that time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.message import Move, Values
from ledger.sql import load
from ledger.store import Write
from ledger.verified import Recorded

QUERIES = load("projections")

_SAME = Values("", "", "")  # of an interval that only ends here: the upsert leaves what the row had


@dataclass(slots=True)
class _Row:
    lineage: str
    values: Values = _SAME
    to_seq: int | None = None


class IntervalProjector:
    """Writes `revision_state`, one row per revision and time that its values held."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the one upsert of a group: intervals that begin, and those that end."""
        rows: dict[tuple[str, int], _Row] = {}
        for item in recorded:
            lineage, position = item.entry.envelope.stream, item.entry.position
            moves: tuple[Move, ...] = getattr(item.entry.envelope.facts, "moves", ())
            for move in moves:
                if move.since is not None:
                    rows.setdefault((move.revision, move.since), _Row(lineage)).to_seq = position
                rows[move.revision, position] = _Row(lineage, move.after)
        if not rows:
            return []
        params = {
            "gen": gen,
            "revisions": [revision for revision, _ in rows],
            "from_seqs": [begins for _, begins in rows],
            "to_seqs": [row.to_seq for row in rows.values()],
            "lineages": [row.lineage for row in rows.values()],
            "states": [row.values.state for row in rows.values()],
            "trusts": [row.values.trust for row in rows.values()],
            "floors": [row.values.floor for row in rows.values()],
        }
        return [Write(QUERIES["upsert_intervals"], params)]
