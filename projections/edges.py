"""What supersedes, contradicts, corrects or was held to replace what, and between which positions that was so.

What spans two streams is written to both; it is projected from the newer one's event, so that there is one row of it.
A correction `corrects` the revision that it is about, and the learnings that it invalidated; that never ends.
"""

from collections.abc import Sequence

from ledger.chain import Envelope
from ledger.corrections import CorrectionRecorded
from ledger.memories import (
    LearningInvalidated,
    LineageLinked,
    LineageUnlinked,
    MemoryRemembered,
    RevisionCorrected,
    RevisionSuperseded,
)
from ledger.message import Edge
from ledger.sql import load
from ledger.store import Write
from ledger.verified import Recorded

QUERIES = load("projections")

CORRECTS = "corrects"

Key = tuple[str, str, str, int]  # kind, newer, older, the position that stated it


class EdgeProjector:
    """Writes `edge`, one row per edge and time that it was stated."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the one upsert of a group. An edge that is withdrawn is a whole row: when it was stated is known."""
        rows: dict[Key, int | None] = {}
        for item in recorded:
            position = item.entry.position
            for edge in stated_here(item.entry.envelope):
                begins = position if edge.since is None else edge.since
                rows[edge.kind, edge.newer, edge.older, begins] = None if edge.since is None else position
        if not rows:
            return []
        kinds, newer, older, begins = (list(column) for column in zip(*rows, strict=True))
        params = {
            "gen": gen,
            "kinds": kinds,
            "newers": newer,
            "olders": older,
            "from_seqs": begins,
            "to_seqs": list(rows.values()),
        }
        return [Write(QUERIES["upsert_edges"], params)]


def stated_here(envelope: Envelope) -> Sequence[Edge]:
    """Return the edges of an event that are not another stream's to state, or to withdraw."""
    facts = envelope.facts
    edges: Sequence[Edge] = getattr(facts, "edges", ())
    match facts:
        case LineageLinked() | LineageUnlinked():
            return edges if facts.role == "newer" else ()
        case RevisionSuperseded():  # its successors are in other lineages
            return ()
        case MemoryRemembered() | RevisionCorrected():
            born = facts.moves[-1].revision
            return [edge for edge in edges if edge.newer == born]
        case CorrectionRecorded(revision=str(revision)):
            return [Edge(CORRECTS, envelope.stream, revision, None)]
        case LearningInvalidated():
            return [Edge(CORRECTS, facts.correction, move.revision, None) for move in facts.moves]
        case _:
            return edges
