"""The revisions of every lineage, with their present values: where commands, lists and the relay find them.

A row is a hint. What it says is checked against the lineage's own events before anything is decided or answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.memories import Birth, MetadataPatched
from ledger.message import Move, Values
from ledger.sql import load
from ledger.store import Write
from ledger.verified import Recorded

QUERIES = load("projections")

_KEPT = -1  # a position that the upsert leaves as it is
_SAME = Values("", "", "")  # values that it leaves as they are


@dataclass(slots=True)
class _Row:
    """What a group says of a revision. Where it was not born in the group, only what changed."""

    lineage: str
    values: Values = _SAME
    version: int = 0
    content_seq: int = _KEPT
    meta_seq: int = _KEPT
    project: str = ""
    kind: str | None = None
    visibility: str | None = None
    agent: str | None = None
    person: str | None = None
    session: str | None = None


class RevisionProjector:
    """Writes `revision`, one row per revision."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the one upsert of a group; each revision is in it once, demotions before promotions."""
        rows: dict[str, _Row] = {}
        for item in recorded:
            _project(rows, item)
        if not rows:
            return []
        # Only what is live can be in the way of another head, so whatever is not comes first.
        ordered = sorted(rows.items(), key=lambda row: row[1].values.is_live)
        kept = [row for _, row in ordered]
        params = {
            "gen": gen,
            "revisions": [revision for revision, _ in ordered],
            "lineages": [row.lineage for row in kept],
            "projects": [row.project for row in kept],
            "versions": [row.version for row in kept],
            "states": [row.values.state for row in kept],
            "trusts": [row.values.trust for row in kept],
            "floors": [row.values.floor for row in kept],
            "content_seqs": [row.content_seq for row in kept],
            "kinds": [row.kind for row in kept],
            "visibilities": [row.visibility for row in kept],
            "agents": [row.agent for row in kept],
            "persons": [row.person for row in kept],
            "sessions": [row.session for row in kept],
            "meta_seqs": [row.meta_seq for row in kept],
        }
        return [Write(QUERIES["upsert_revisions"], params)]


def _project(rows: dict[str, _Row], item: Recorded) -> None:
    facts, stream, position = item.entry.envelope.facts, item.entry.envelope.stream, item.entry.position
    moves: tuple[Move, ...] = getattr(facts, "moves", ())
    if isinstance(facts, Birth):
        moves, born = facts.moves[:-1], facts.moves[-1]
        rows[born.revision] = _Row(
            lineage=stream,
            values=born.after,
            version=born.version,
            content_seq=position,
            meta_seq=position,
            project=facts.scope.project,
            kind=facts.kind,
            visibility=facts.visibility,
            agent=facts.scope.agent,
            person=facts.scope.user,
            session=facts.scope.session,
        )
    elif isinstance(facts, MetadataPatched):
        rows.setdefault(facts.revision, _Row(stream)).meta_seq = position
    for move in moves:
        rows.setdefault(move.revision, _Row(stream)).values = move.after
