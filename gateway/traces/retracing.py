"""Traces as they are read: whose they are, what of them the actor may see, and what one says of a revision.

A trace is shown to the operator, to who made the retrieval, and to the agent or user for whom it was made. To everybody
else it is one that there is not. What it met is shown as far as the actor sees it now.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from gateway.reading.reader import Reader
from gateway.scope.names import Names, References
from gateway.scope.states import States
from gateway.shapes.cursors import Cursors
from gateway.shapes.replies.searches import Excluded
from gateway.shapes.replies.traces import (
    SearchTrace,
    TracedCorrection,
    TracedHit,
    TraceList,
    TraceSummary,
    TraceVerdict,
)
from gateway.shapes.requests import TracesRequest
from gateway.traces.traced import CORRECTIONS, Kept, Seen, Traced, TraceTable
from gateway.traces.unsaid import Unsaid
from ledger.corrections import CORRECTION as CORRECTION_RECORD
from ledger.errors import IntegrityError, failure
from ledger.ids import CORRECTION, TRACE, is_ours, kind_of
from ledger.limits import LIST_LIMIT_MAX
from ledger.verified import VerifiedLedger

LISTED_MAX = 10
_SEGMENTS = ("agent", "user", "session", "task_family")


class Page(Struct, frozen=True):
    """Some traces, the id below which the list goes on, None at its end, and which ones are not what was written."""

    items: list[TraceSummary]
    before: str | None
    unsound: tuple[str, ...]


class Retracing:
    """Reads the traces of one ledger as one actor sees them. The caller has caught up."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        table: TraceTable,
        names: Names,
        states: States,
        references: References,
        reader: Reader,
        *,
        actor: str,
    ) -> None:
        self._ledger = ledger
        self._table = table
        self._names = names
        self._states = states
        self._references = references
        self._reader = reader
        self._actor = actor
        self._unsaid = Unsaid(ledger)

    # ---------------------------------------------------------------- one

    def find(self, trace: str) -> Kept:
        """Return a trace that the actor may see. Errors: TRACE_NOT_FOUND, INTEGRITY_BROKEN."""
        kept = self._table.find(trace) if is_ours(trace) and kind_of(trace) == TRACE else None
        if kept is None or not self._sees(kept.traced):
            raise failure(
                "TRACE_NOT_FOUND",
                "There is no such trace of a retrieval in this project. A search's answer names its trace, which is "
                "kept as long as the project's trace_retention says; `corrigenda traces list` lists them.",
            )
        return kept

    def prior(self, project: str, session: str, turn: int | None) -> Kept:
        """Return the last dispatch of the turn before one, by default before a session's latest.

        What the actor does not see is no turn to it. Errors: NO_PRIOR_TRACE, INTEGRITY_BROKEN.
        """
        if turn is not None:
            kept = self._last_before(project, session, self._table.end_of(project, session, turn), turn)
        else:
            kept = self._last_before(project, session, None, None)
            if kept is not None:
                kept = self._last_before(project, session, kept.traced.trace, kept.traced.turn)
        if kept is None:
            raise failure(
                "NO_PRIOR_TRACE",
                "An earlier turn of this session was expected, into which memories were dispatched, and there is none. "
                "Search with trace_kind dispatch and the session, once for each turn.",
            )
        return kept

    def _last_before(self, project: str, session: str, trace: str | None, turn: int | None) -> Kept | None:
        before = self._table.before(project, session, trace, turn=turn)
        return next((kept for kept in before if self._sees(kept.traced)), None)

    def reply(self, kept: Kept) -> SearchTrace:
        """Return a trace as the actor sees it."""
        traced = kept.traced
        chosen = [(rank, one) for rank, one in enumerate(traced.chosen, start=1) if self._is_visible(one)]
        left_out = [one for one in traced.left_out if self._is_visible(one)]
        return SearchTrace(
            trace_id=traced.trace,
            digest=kept.digest,
            kind=traced.kind,
            at=traced.at,
            actor=traced.actor,
            project=traced.project,
            scope={name: value for name in _SEGMENTS if (value := getattr(traced, name)) is not None},
            session=traced.session,
            turn=traced.turn,
            run=traced.run,
            query=self._query(traced),
            k=traced.k,
            filters=traced.filters,
            valid_at=traced.valid_at,
            at_position=traced.at_position,
            embedder=traced.embedder,
            about=traced.about,
            **(_corrections(chosen, left_out) if traced.about == CORRECTIONS else self._memories(chosen, left_out)),
            excluded_total=traced.left_out_count,
            withheld=len(traced.chosen) + len(traced.left_out) - len(chosen) - len(left_out),
            warnings=traced.warnings,
            empty_reason=traced.empty_reason,
            position=traced.position,
            incarnation=traced.incarnation,
        )

    def _memories(
        self, chosen: Sequence[tuple[int, Seen]], left_out: Sequence[Seen]
    ) -> dict[str, Any]:  # Any: the reply's fields
        show = self._names.show
        return {
            "hits": tuple(
                TracedHit(
                    rank=rank,
                    memory_id=show(self._lineage(one)),
                    revision_id=one.revision,
                    score=one.score,
                    why=one.why,
                )
                for rank, one in chosen
            ),
            "excluded": tuple(
                Excluded(memory_id=show(self._lineage(one)), revision_id=one.revision, score=one.score, reason=one.why)
                for one in left_out
            ),
        }

    def beginning_with(self, prefix: str) -> tuple[str, ...]:
        """Return the ids of traces that begin so and that the actor may see, sorted: at most ten."""
        found, after, most = list[str](), None, LISTED_MAX
        while len(found) < LISTED_MAX:
            rows = self._table.beginning_with(prefix, after=after, limit=most)
            found += [trace for trace, kept in rows if kept is not None and self._sees(kept.traced)]
            if len(rows) < most:
                break
            after, most = rows[-1][0], min(2 * most, LIST_LIMIT_MAX)
        return tuple(found[:LISTED_MAX])

    # ---------------------------------------------------------------- what one says of a revision

    def met(self, traced: Traced, reference: str) -> str | None:
        """Return the revision that a retrieval met of a memory; None if it met none, or a revision is named."""
        lineage, revision = self._references.locate(reference)
        met = (one.revision for one in (*traced.chosen, *traced.left_out) if self._lineage(one) == lineage)
        return None if revision is not None else next(met, None)

    def verdict(self, traced: Traced, revision: str) -> TraceVerdict:
        """Return what a retrieval made of a revision, or a correction."""
        outcome, rank, score, reason = "not_seen", None, None, self._unseen(traced, revision)
        for place, one in enumerate(traced.chosen, start=1):
            if one.revision == revision:
                outcome, rank, score, reason = "chosen", place, one.score, one.why
        for one in traced.left_out:
            if one.revision == revision:
                outcome, score, reason = "excluded", one.score, one.why
        return TraceVerdict(
            trace_id=traced.trace,
            kind=traced.kind,
            at=traced.at,
            position=traced.position,
            outcome=outcome,
            rank=rank,
            score=score,
            reason=reason,
        )

    def _unseen(self, traced: Traced, revision: str) -> str:
        if (traced.about == CORRECTIONS) != (kind_of(revision) == CORRECTION):
            return f"this retrieval was about {traced.about}"
        recorded = self._recorded_at(revision)
        if recorded is not None and recorded > traced.position:
            return f"it was recorded at position {recorded}, after this retrieval, which saw {traced.position}"
        if traced.left_out_count > len(traced.left_out):
            return (
                f"it is not among the hits, nor among the nearest {len(traced.left_out)} of {traced.left_out_count} "
                "that were left out"
            )
        if len(traced.chosen) >= traced.k:
            return f"it was not among the {traced.k} nearest, which is what was asked for"
        return "it was not near, or not visible to whom it was asked for"

    def _recorded_at(self, revision: str) -> int | None:
        if kind_of(revision) == CORRECTION:
            return self._states.of(CORRECTION_RECORD, revision).position
        lineage = self._ledger.walk.lineages([revision]).get(revision)
        item = None if lineage is None else self._states.lineage(lineage).revisions.get(revision)
        return None if item is None else item.content_seq

    def runs(self, revisions: Sequence[str]) -> tuple[str, ...]:
        """Return the runs that any of some revisions was handed to, the first one first."""
        seen = [one.run for one in self._table.dispatched(revisions) if self._sees(one)]
        return tuple(dict.fromkeys(run for run in seen if run is not None))

    # ---------------------------------------------------------------- many

    def begin(self, request: TracesRequest) -> str | None:
        """Return the id below which a list begins. Errors: CURSOR_INVALID, CURSOR_FILTER_MISMATCH."""
        return None if request.cursor is None else self._cursors.read_after(request.cursor, self._asked(request))

    def list(self, project: str, request: TracesRequest) -> TraceList:
        """Return a page. Errors: as `begin`."""
        items, before, unsound = list[TraceSummary](), self.begin(request), list[str]()
        most = request.limit
        while len(items) < request.limit:
            page = self.page(project, request, before, most)
            items += page.items
            unsound += page.unsound
            before = page.before
            if before is None:
                break
            most = min(2 * most, LIST_LIMIT_MAX)  # where most are somebody else's, more are read at a time
        if len(items) > request.limit:
            del items[request.limit :]
            before = items[-1].trace_id
            unsound = [trace for trace in unsound if trace > before]
        return TraceList(
            items=tuple(items),
            next_cursor=None if before is None else self._cursors.make_after(before, self._asked(request)),
            truncated=False,
            warnings=tuple(f"INTEGRITY_BROKEN@{trace}" for trace in unsound),
            position=self._reader.position,
            incarnation=self._reader.incarnation,
        )

    def page(self, project: str, request: TracesRequest, before: str | None, most: int) -> Page:
        """Return at most so many traces below an id; those that the actor does not see are passed over."""
        rows = self._table.page(
            project, session=request.session, kind=request.kind, before=before, limit=min(most, LIST_LIMIT_MAX) + 1
        )
        goes_on = len(rows) > min(most, LIST_LIMIT_MAX)
        rows = rows[:most]
        return Page(
            [self._summary(kept.traced) for _, kept in rows if kept is not None and self._sees(kept.traced)],
            rows[-1][0] if goes_on else None,
            tuple(trace for trace, kept in rows if kept is None),
        )

    def _summary(self, traced: Traced) -> TraceSummary:
        return TraceSummary(
            trace_id=traced.trace,
            kind=traced.kind,
            about=traced.about,
            at=traced.at,
            actor=traced.actor,
            session=traced.session,
            turn=traced.turn,
            run=traced.run,
            query=self._query(traced),
            hits=len(traced.chosen),
            excluded=traced.left_out_count,
            empty_reason=traced.empty_reason,
            position=traced.position,
        )

    @property
    def _cursors(self) -> Cursors:
        return Cursors(self._ledger.keys, self._reader.incarnation)

    def _asked(self, request: TracesRequest) -> dict[str, str | None]:
        return {
            "list": "traces",
            "project": self._references.project_name,
            "session": request.session,
            "kind": request.kind,
        }

    # ---------------------------------------------------------------- what may be seen

    def _sees(self, traced: Traced) -> bool:
        if self._references.project_name not in (None, traced.project):
            return False
        if self._references.visible.whole or traced.actor == self._actor:
            return True
        return self._actor in (f"agent:{traced.agent}", f"human:{traced.user}")

    def _is_visible(self, seen: Seen) -> bool:
        try:
            if kind_of(seen.revision) == CORRECTION:
                item = self._states.of(CORRECTION_RECORD, seen.revision).recorded
            else:
                item = self._states.lineage(self._lineage(seen)).revisions.get(seen.revision)
        except IntegrityError:
            return False  # a broken stream is shown to nobody
        return item is not None and self._references.visible.sees(item.visibility, item.scope)

    def _lineage(self, seen: Seen) -> str:
        return seen.lineage or self._ledger.walk.lineages([seen.revision]).get(seen.revision, "")

    def _query(self, traced: Traced) -> str | None:
        """Return the question, unless it repeats a text that was withdrawn from view since."""
        return None if self._unsaid.holds(traced.query) else traced.query


def _corrections(
    chosen: Sequence[tuple[int, Seen]], left_out: Sequence[Seen]
) -> dict[str, Any]:  # Any: the reply's fields
    def told(rank: int | None, one: Seen) -> TracedCorrection:
        return TracedCorrection(rank=rank, correction_id=one.revision, score=one.score, why=one.why)

    return {
        "hits": (),
        "excluded": (),
        "corrections": tuple(told(rank, one) for rank, one in chosen),
        "excluded_corrections": tuple(told(None, one) for one in left_out),
    }
