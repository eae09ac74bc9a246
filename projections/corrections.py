"""The corrections of every project, with their present states: where lists and counts look.

A row is a hint. What it says is checked against the correction's own events before anything is answered.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ledger.corrections import CorrectionConfirmed, CorrectionRecorded, CorrectionRevoked, CorrectionSuperseded
from ledger.sql import load
from ledger.store import Write
from ledger.verified import Recorded

QUERIES = load("projections")

_KEPT = -1  # the content position of a row that only changes its state: the upsert leaves what the row had
_Changed = CorrectionConfirmed | CorrectionSuperseded | CorrectionRevoked


class _Row(Struct, frozen=True, kw_only=True):
    correction: str
    state: str
    project: str = ""
    agent: str | None = None
    person: str | None = None
    session: str | None = None
    visibility: str = ""
    origin: str = ""
    revision: str | None = None
    content_seq: int = _KEPT


class CorrectionProjector:
    """Writes `correction`, one row per correction."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the one upsert of a group; each correction is in it once."""
        rows: dict[str, _Row] = {}
        for item in recorded:
            facts, stream = item.entry.envelope.facts, item.entry.envelope.stream
            if isinstance(facts, CorrectionRecorded):
                rows[stream] = _recorded(stream, facts, item.entry.position)
            elif isinstance(facts, _Changed):
                before = rows.get(stream) or _Row(correction=stream, state="")
                rows[stream] = msgspec.structs.replace(before, state=facts.standing.state)
        if not rows:
            return []
        params = {f"{name}s": [getattr(row, name) for row in rows.values()] for name in _Row.__struct_fields__}
        return [Write(QUERIES["upsert_corrections"], {"gen": gen, **params})]


def _recorded(stream: str, facts: CorrectionRecorded, position: int) -> _Row:
    return _Row(
        correction=stream,
        state=facts.standing.state,
        project=facts.scope.project,
        agent=facts.scope.agent,
        person=facts.scope.user,
        session=facts.scope.session,
        visibility=facts.visibility,
        origin=facts.origin,
        revision=facts.revision,
        content_seq=position,
    )
