"""What each correction touched: the revision that it is about, and the learnings that it invalidated.

A row is a hint, as in every read model: whether a learning is still withdrawn is asked of its own events.
"""

from collections.abc import Sequence

from ledger.corrections import CorrectionRecorded
from ledger.memories import LearningInvalidated
from ledger.sql import load
from ledger.store import Write
from ledger.verified import Recorded

QUERIES = load("projections")

CORRECTS = "corrects"


class TouchedProjector:
    """Writes an `edge` of the kind `corrects`, from the correction to the revision; it never ends."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the one insert of a group."""
        edges = [edge for item in recorded for edge in _edges(item)]
        if not edges:
            return []
        params = {
            "gen": gen,
            "kind": CORRECTS,
            "newers": [newer for newer, _, _ in edges],
            "olders": [older for _, older, _ in edges],
            "from_seqs": [position for _, _, position in edges],
        }
        return [Write(QUERIES["insert_touched"], params)]


def _edges(item: Recorded) -> list[tuple[str, str, int]]:
    envelope = item.entry.envelope
    match envelope.facts:
        case CorrectionRecorded(revision=str(revision)):
            return [(envelope.stream, revision, envelope.seq)]
        case LearningInvalidated() as facts:
            return [(facts.correction, move.revision, envelope.seq) for move in facts.moves]
        case _:
            return []
