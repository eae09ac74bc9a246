"""The questions: each answer is made from verified entries at the ledger's head."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from gateway.scope.past import Moment
from gateway.searching.foresight import Foresight
from gateway.service.base import UseCases, listed
from gateway.shapes import requests
from gateway.shapes.replies.lineages import Lineage
from gateway.shapes.replies.log import EventDetail, LogItem, Trace
from gateway.shapes.replies.memories import Revision
from gateway.shapes.replies.past import CorrectionDiff, Explanation, History, MemoryDiff, RevisionDiff
from gateway.shapes.replies.searches import Search
from ledger.ids import TRACE, is_prefix_of_ours, kind_of
from projections.relay import Item

EVENTS_PAGE = 1_000


class Reading(UseCases):
    """Search, show, explain, and list events."""

    def search(
        self,
        query: str,
        *,
        k: int = 5,
        min_trust: str = "unverified",
        min_confidence: str | None = None,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        task_family: str | None = None,
        context: Mapping[str, str] | None = None,
        as_of: str | datetime | None = None,
        at_position: Moment | None = None,
        budget: int | None = None,
        why: bool = False,
        trace_kind: str = "search",
        turn: int | None = None,
        run: str | None = None,
        min_position: str | None = None,
    ) -> Search:
        """Return the k nearest memories that the ledger confirms at this moment, best first.

        A memory that does not hold now (`valid_from`, `valid_to`) is left out, and one with conditions of its own
        unless they hold: `context` says what they are held against, by `directory`, `worktree`, `projectId` and
        `sessionId`; the last two are the project and the `session` unless given. The hits' texts take at most `budget`
        tokens. Without an embedder, or while it does not answer, texts are found by the words that they share with the
        query (the warning `full_text`). With `why` the answer names what is near and was left out, and the rule.

        `at_position`, a position or a recorded time, answers as the ledger stood there; `as_of` what held then in the
        world, by what is known now (or at that position): superseded and retired memories too. Such a hit is as it was,
        with its present state and trust; what was withdrawn from view since is never shown.

        What was chosen and left out is recorded under the answer's `trace_id`, for the `session`, its `turn` and the
        `run`. With `trace_kind` dispatch the hits are meant to go into a run: then the trace is stored before they are
        given, or UNAVAILABLE says that it could not be. A dispatch is never of the past.

        Errors: VALIDATION_FAILED; EVENT_NOT_FOUND (a position above the head); UNAVAILABLE if `min_position` is not
        reached within two seconds.
        """
        self._require("read")
        request = requests.parse(
            requests.SearchRequest, query=query, k=k, min_trust=min_trust, min_confidence=min_confidence,
            kinds=listed(kinds), tags=listed(tags), agent=agent, user=user, session=session, task_family=task_family,
            context={} if context is None else context, as_of=as_of, budget=budget, why=why, trace_kind=trace_kind,
            turn=turn, run=run,
        )  # fmt: skip
        requests.check_dispatch(request, of_past=at_position is not None)
        self._need_project()
        owed = self._reach(min_position)
        is_of_past = request.as_of is not None or at_position is not None
        sight = None if is_of_past else Foresight(self._ledger, self._relay, request, self._scope, self._behind)
        found, warnings = self._checked(
            lambda due: self._retrieval.search(self._question(request, at_position), due, sight), owed, sight
        )
        return msgspec.structs.replace(found, warnings=(*warnings, *found.warnings)) if warnings else found

    def neighbours(self, query: str, *, k: int = 5) -> list[tuple[Item, float]]:
        """Return what the index alone says is near, best first: confirmed by nobody, and never an answer."""
        self._require("read")
        with self._writer.lock:
            project = self._references.project
            request = requests.parse(requests.SearchRequest, query=query, k=k)
            return [] if project is None else self._retrieval.neighbours(query, self._reader.scope(project, request), k)

    def show(self, reference: str, *, min_position: str | None = None) -> Revision:
        """Return one revision; a memory stands for its head, or its latest revision while it has none."""
        return self._read_named(reference, min_position, self._reader.show)

    def explain(
        self, reference: str, *, at: Moment | None = None, trace: str | None = None, min_position: str | None = None
    ) -> Explanation:
        """Return one revision with the story of its lineage, now or as it stood `at` a position or a time.

        A time means the last append that was recorded by then. What was forgotten since is shown without its content.
        With the `trace` of a retrieval `in_trace` says why that chose the revision, or left it out; a memory then
        stands for the revision of it that was met.

        Errors: MEMORY_NOT_FOUND (also where it was not there yet), EVENT_NOT_FOUND (a position above the head),
        VALIDATION_FAILED (neither a position nor a time with its zone), TRACE_NOT_FOUND.
        """
        if trace is None:
            return self._read_named(reference, min_position, lambda known: self._reader.explain(known, at))
        asked = requests.parse(requests.ReferenceRequest, id=trace)
        self._background.flush()
        return self._read_named(reference, min_position, lambda known: self._explained(known, asked.id, at))

    def _explained(self, reference: str, trace: str, at: Moment | None) -> Explanation:
        traced = self._retracing.find(trace).traced
        story = self._reader.explain(self._retracing.met(traced, reference) or reference, at)
        return msgspec.structs.replace(story, in_trace=self._retracing.verdict(traced, story.revision_id))

    def history(self, reference: str, *, patch: bool = False, min_position: str | None = None) -> History:
        """Return every revision of a memory, in version order, whichever of its ids is given.

        With `patch` the items are `PatchedRevision`: each says what it changed, and how its metadata was mended.
        """
        return self._read_named(reference, min_position, lambda known: self._reader.history(known, patch=patch))

    def diff(self, before: str, after: str, *, min_position: str | None = None) -> RevisionDiff:
        """Return what differs between two revisions, field by field; a memory stands for its head, or its latest."""
        requests.parse(requests.ReferenceRequest, id=before)
        return self._read_named(after, min_position, lambda known: self._reader.diff(before, known))

    def diff_between(
        self, first: Moment, last: Moment, *, min_position: str | None = None
    ) -> Iterator[MemoryDiff | CorrectionDiff]:
        """Yield what happened to each memory and correction of the project after one position or time, up to another.

        In the order of each one's first event there, each as it stood before and after, as they are read.
        Errors: EVENT_NOT_FOUND (a position above the head), VALIDATION_FAILED (neither a position nor a time with its
        zone, or the second before the first), MEMORY_NOT_FOUND (no such project).
        """
        answer = self._in_project(
            lambda: (self._reader.position_of(first, "first"), self._reader.position_of(last, "last")),
            "MEMORY_NOT_FOUND",
        )
        start, end = self._read(min_position, answer)
        return self._diffs(start, end, self._reader.between.streams(start, end))

    def _diffs(self, first: int, last: int, pages: Iterator[Sequence[str]]) -> Iterator[MemoryDiff | CorrectionDiff]:
        while True:
            with self._writer.lock:
                self._check_open()
                page = next(pages, None)
                found = () if page is None else self._reader.between.diffs(page, first, last)
            yield from found
            if page is None:
                return

    def lineage(
        self,
        reference: str,
        *,
        up: bool | None = None,
        down: bool | None = None,
        depth: int | None = None,
        min_position: str | None = None,
    ) -> Lineage:
        """Return the graph around a memory: what supersedes it (`up`), what it supersedes (`down`); both by default.

        Links between memories and, from its revisions on, where merges and splits lead: at most `depth` steps away.
        Around a correction: those that took each other's place, and the revisions that they touched.
        """
        both = not up and not down
        return self._read_named(
            reference,
            min_position,
            lambda known: self._reader.lineage(known, up=up or both, down=down or both, depth=depth),
        )

    def reach(self, position: str) -> None:
        """Wait until the ledger has reached a position, `SEQ` or `INC.SEQ`. Errors: VALIDATION_FAILED, UNAVAILABLE."""
        self._reach(position)

    def show_event(self, seq: int) -> EventDetail:
        """Return one event, verified, with its facts and payload. Errors: EVENT_NOT_FOUND."""
        return self._read(None, lambda: self._reader.event(seq))

    def show_trace(self, trace: str, *, min_position: str | None = None) -> Trace:
        """Return the events that one command stored, with facts and payloads, by its receipt's `trace_id`.

        Errors: TRACE_NOT_FOUND.
        """
        return self._read_named(trace, min_position, self._reader.trace)

    def raw(self, seq: int) -> bytes:
        """Return the hashed bytes of one event, verified. Errors: EVENT_NOT_FOUND."""
        return self._read(None, lambda: self._reader.raw(seq))

    def complete(self, prefix: str) -> tuple[str, ...]:
        """Return the ids of ours in the project, and of traces, that begin with `prefix`, sorted."""
        prefix = requests.parse(requests.ReferenceRequest, id=prefix).id
        if is_prefix_of_ours(prefix) and kind_of(prefix) == TRACE:
            self._background.flush()
            return self._read(None, lambda: self._retracing.beginning_with(prefix))
        return self._read(None, lambda: self._reader.complete(prefix))

    def events(self, *, after: int = -1) -> Iterator[LogItem]:
        """Yield every event above `after` up to the present head, oldest first, verified."""
        self._require("read")
        with self._writer.lock:
            last = self._ledger.catch_up()
        for first in range(max(after, -1) + 1, last + 1, EVENTS_PAGE):
            with self._writer.lock:
                page = self._reader.log(first, min(first + EVENTS_PAGE, last + 1))
            yield from page
