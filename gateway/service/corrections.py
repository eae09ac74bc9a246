"""The acts on corrections as records, and the questions about them."""

from collections.abc import Sequence

import msgspec

from gateway.reading.correction_pages import CorrectionPages
from gateway.scope.past import Moment
from gateway.service.base import UseCases, listed
from gateway.shapes import requests
from gateway.shapes.replies.corrections import (
    Correction,
    CorrectionHistory,
    CorrectionList,
    CorrectionStats,
    EvalCase,
    ExplainedCorrection,
)
from gateway.shapes.replies.writes import CorrectionReceipt
from gateway.writing.page import Append
from gateway.writing.receipts import of_correction
from ledger.limits import LIST_LIMIT_DEFAULT

STANDING = ("unconfirmed", "active")


class CorrectionActs(UseCases):
    """Record, confirm, supersede and revoke corrections; show, list and count them."""

    def record_correction(
        self,
        *,
        agent: str,
        original_value: str,
        corrected_value: str,
        field: str | None = None,
        entity_key: str | None = None,
        run: str | None = None,
        session: str | None = None,
        original_input: str | None = None,
        reason: str | None = None,
        tags: Sequence[str] = (),
        visibility: str = "agent",
        user: str | None = None,
        memory: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> CorrectionReceipt:
        """Record what an agent put out, what was right, and why; an empty `corrected_value` says: it should be empty.

        By a person it is active at once, by an agent unconfirmed until a person confirms it. With `memory` the same
        append corrects that memory, whose text becomes `corrected_value`; this needs the permission `correct`, and
        `if_revision` is the memory's.

        Errors: VALIDATION_FAILED, NO_CHANGE (both values are the same), FORBIDDEN_ACTOR, and with `memory` those of
        `correct`.
        """
        given = {
            "agent": agent, "original_value": original_value, "corrected_value": corrected_value, "field": field,
            "entity_key": entity_key, "run": run, "session": session, "original_input": original_input,
            "reason": reason, "tags": listed(tags), "visibility": visibility, "user": user, "memory": memory,
            "if_revision": if_revision,
        }  # fmt: skip
        request = requests.parse(requests.RecordCorrectionRequest, **given)

        def decide(append: Append) -> None:
            self._decisions.record_correction(append, request)

        return of_correction(self._write("record_correction", "write", given, decide, idempotency_key, dry_run))

    def confirm_correction(
        self,
        correction: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> CorrectionReceipt:
        """Vouch for a correction that an agent reported. Errors: CORRECTION_NOT_FOUND, INVALID_TRANSITION."""
        requests.parse(requests.ReasonRequest, reason=reason)
        given = {"correction": correction, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.confirm_correction(append, correction, reason, if_revision)

        return of_correction(self._write("confirm_correction", "decide", given, decide, idempotency_key, dry_run))

    def supersede_correction(
        self,
        correction: str,
        *,
        corrected_value: str,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> CorrectionReceipt:
        """Replace a correction by one that says the same but for its corrected value.

        The receipt's `correction_id` is the new one. Neither the memory that was corrected with the old one nor the
        learnings that it invalidated are touched: `warnings` name them.

        Errors: CORRECTION_NOT_FOUND, INVALID_TRANSITION (it is superseded or revoked), NO_CHANGE.
        """
        request = requests.parse(requests.SupersedeCorrectionRequest, corrected_value=corrected_value, reason=reason)
        given = {
            "correction": correction, "corrected_value": corrected_value, "reason": reason, "if_revision": if_revision,
        }  # fmt: skip

        def decide(append: Append) -> None:
            self._decisions.supersede_correction(append, correction, request, if_revision)

        return of_correction(
            self._write(
                "supersede_correction",
                "correct",
                given,
                decide,
                idempotency_key,
                dry_run,
                warn=lambda: self._corrections.left_behind(correction),
            )
        )

    def revoke_correction(
        self,
        correction: str,
        *,
        reason: str,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> CorrectionReceipt:
        """Withdraw a correction: it is not found, listed or counted any more. What it did stays; `warnings` name it.

        Errors: CORRECTION_NOT_FOUND, INVALID_TRANSITION (it is superseded or revoked already).
        """
        requests.parse(requests.RequiredReasonRequest, reason=reason)
        given = {"correction": correction, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.revoke_correction(append, correction, reason, if_revision)

        return of_correction(
            self._write(
                "revoke_correction",
                "revoke",
                given,
                decide,
                idempotency_key,
                dry_run,
                warn=lambda: self._corrections.left_behind(correction),
            )
        )

    # ---------------------------------------------------------------- questions

    def show_correction(self, correction: str, *, min_position: str | None = None) -> ExplainedCorrection:
        """Return one correction, whatever its state, with its story. Errors: CORRECTION_NOT_FOUND."""
        return self._read_named(correction, min_position, self._corrections.show)

    def explain_correction(
        self,
        correction: str,
        *,
        at: Moment | None = None,
        trace: str | None = None,
        min_position: str | None = None,
    ) -> ExplainedCorrection:
        """Return one correction with its story, now or as it stood `at` a position or a time.

        With the `trace` of a retrieval `in_trace` says why that chose it, or left it out.

        Errors: CORRECTION_NOT_FOUND (also where it was not recorded yet), EVENT_NOT_FOUND (a position above the head),
        VALIDATION_FAILED (neither a position nor a time with its zone), TRACE_NOT_FOUND.
        """
        if trace is None:
            return self._read_named(correction, min_position, lambda known: self._corrections.show(known, at))
        asked = requests.parse(requests.ReferenceRequest, id=trace)
        self._background.flush()
        return self._read_named(correction, min_position, lambda known: self._traced(known, asked.id, at))

    def _traced(self, correction: str, trace: str, at: Moment | None) -> ExplainedCorrection:
        traced = self._retracing.find(trace).traced
        story = self._corrections.show(correction, at)
        return msgspec.structs.replace(story, in_trace=self._retracing.verdict(traced, story.correction_id))

    def correction_history(
        self, correction: str, *, patch: bool = False, min_position: str | None = None
    ) -> CorrectionHistory:
        """Return the corrections that took each other's place, oldest first, whichever of their ids is given.

        With `patch` the items are `PatchedCorrection`: each says what it changed. Errors: CORRECTION_NOT_FOUND.
        """
        return self._read_named(correction, min_position, lambda known: self._corrections.history(known, patch=patch))

    def list_corrections(
        self,
        *,
        agent: str | None = None,
        entity_key: str | None = None,
        since: str | None = None,
        states: Sequence[str] = STANDING,
        user: str | None = None,
        session: str | None = None,
        min_position: str | None = None,
    ) -> tuple[Correction, ...]:
        """Return the project's corrections of those states, oldest first; `since` is a time, and included.

        Whoever has the permission `admin` sees all of them; with `user` or `session` those that a reader with these ids
        and `agent` may see, as everybody else does with any of the three; without them those that its actor may see.
        Errors: VALIDATION_FAILED, CORRECTION_NOT_FOUND (no such project; as for `correction_stats` and `eval_cases`).
        """
        request = requests.parse(
            requests.CorrectionsRequest, agent=agent, entity_key=entity_key, since=since, states=listed(states),
            user=user, session=session,
        )  # fmt: skip
        self._need_project()
        answer = self._in_project(lambda: tuple(self._corrections.list(request)), "CORRECTION_NOT_FOUND")
        return self._read(min_position, answer)

    def page_corrections(
        self,
        *,
        agent: str | None = None,
        entity_key: str | None = None,
        since: str | None = None,
        states: Sequence[str] = STANDING,
        user: str | None = None,
        session: str | None = None,
        limit: int = LIST_LIMIT_DEFAULT,
        cursor: str | None = None,
        min_position: str | None = None,
    ) -> CorrectionList:
        """Return a page of what `list_corrections` lists. `cursor` is a page's `next_cursor`, with the same filters.

        It goes on as of that page's position, whatever became of the corrections since. Errors: as
        `list_corrections`, CURSOR_INVALID, CURSOR_FILTER_MISMATCH.
        """
        request = requests.parse(
            requests.CorrectionPageRequest, agent=agent, entity_key=entity_key, since=since, states=listed(states),
            user=user, session=session, limit=limit, cursor=cursor,
        )  # fmt: skip
        self._need_project()
        return self._read(min_position, lambda: self._page(request))

    def _page(self, request: requests.CorrectionPageRequest) -> CorrectionList:
        pages = CorrectionPages(self._ledger, self._references, self._reader, self._corrections)
        page, place, cursor = pages.page(request)
        return CorrectionList(
            items=tuple(page.items),
            next_cursor=cursor,
            truncated=page.cut,
            position=place.position,
            incarnation=self._reader.incarnation,
        )

    def correction_stats(
        self,
        *,
        agent: str | None = None,
        since: str | None = None,
        by: Sequence[str] = (),
        period: str = "month",
        min_position: str | None = None,
    ) -> CorrectionStats:
        """Count the corrections that stand, by entity key and field, and by `agent` and `period` if `by` names them.

        `period` is day, month or year. Who sees which: as in `list_corrections`.
        """
        request = requests.parse(requests.StatsRequest, agent=agent, since=since, by=listed(by), period=period)
        self._need_project()
        answer = self._in_project(lambda: self._corrections.stats(request), "CORRECTION_NOT_FOUND")
        return self._read(min_position, answer)

    def eval_cases(self, *, agent: str | None = None, min_position: str | None = None) -> tuple[EvalCase, ...]:
        """Return a regression case for each active correction with an `original_input`, oldest first.

        What an agent reported and nobody confirmed makes no case: it would be tested by its own word.
        """
        request = requests.parse(requests.CorrectionsRequest, agent=agent, states=("active",))
        self._need_project()
        answer = self._in_project(lambda: tuple(self._corrections.eval_cases(request)), "CORRECTION_NOT_FOUND")
        return self._read(min_position, answer)
