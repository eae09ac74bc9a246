"""Traces: what single retrievals saw, chose and left out."""

from collections.abc import Iterator

from gateway.service.base import UseCases
from gateway.shapes import requests
from gateway.shapes.replies.traces import SearchTrace, TraceList, TraceSummary
from ledger.limits import LIST_LIMIT_DEFAULT

CHUNK = 200


class TraceUse(UseCases):
    """List and show traces."""

    def list_traces(
        self,
        *,
        session: str | None = None,
        kind: str | None = None,
        limit: int = LIST_LIMIT_DEFAULT,
        cursor: str | None = None,
        min_position: str | None = None,
    ) -> TraceList:
        """Return a page of the project's traces, newest first: of one session, or of one kind (search, dispatch).

        Whoever has the permission `admin` sees all of them; everybody else those of its own retrievals, and those that
        were made for it. Errors: VALIDATION_FAILED, CURSOR_INVALID, CURSOR_FILTER_MISMATCH.
        """
        request = requests.parse(requests.TracesRequest, session=session, kind=kind, limit=limit, cursor=cursor)
        self._require("read")
        project = self._need_project()
        self._background.flush()
        return self._read(min_position, lambda: self._retracing.list(project, request))

    def iterate_traces(
        self, *, session: str | None = None, kind: str | None = None, cursor: str | None = None
    ) -> Iterator[TraceSummary]:
        """Yield all that `list_traces` pages through, but for what is not sound, however many there are."""
        request = requests.parse(requests.TracesRequest, session=session, kind=kind, cursor=cursor)
        self._require("read")
        project = self._need_project()
        self._background.flush()
        return self._traces(project, request, self._read(None, lambda: self._retracing.begin(request)))

    def _traces(self, project: str, request: requests.TracesRequest, before: str | None) -> Iterator[TraceSummary]:
        while True:
            below = before
            page = self._read(None, lambda below=below: self._retracing.page(project, request, below, CHUNK))
            yield from page.items
            if (before := page.before) is None:
                return

    def search_trace(self, trace: str, *, min_position: str | None = None) -> SearchTrace:
        """Return what one retrieval saw, chose and left out, by its answer's `trace_id`.

        Errors: TRACE_NOT_FOUND (also one of another project, or of somebody else), INTEGRITY_BROKEN.
        """
        self._background.flush()
        return self._read_named(trace, min_position, lambda known: self._retracing.reply(self._retracing.find(known)))

    def prior_dispatch(self, session: str, *, turn: int | None = None) -> SearchTrace:
        """Return the last dispatch into a session before `turn`, by default before its latest turn.

        However often one turn was dispatched, it is one turn; dispatches without turns are one each.
        Errors: NO_PRIOR_TRACE, VALIDATION_FAILED.
        """
        request = requests.parse(requests.PriorTraceRequest, session=session, turn=turn)
        project = self._need_project()
        find = self._retracing.prior
        return self._read(None, lambda: self._retracing.reply(find(project, request.session, request.turn)))
