"""How traces come into being: a dispatch's before its answer is given, a search's in groups afterwards.

Recording a search must never slow it down, and never fail it: what cannot be stored is lost, said in the log and
counted in the home, where `status` reads it. A dispatch without a stored trace is no answer.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import psycopg

from gateway.filtering import Question
from gateway.losses import Losses
from gateway.reading import Reader
from gateway.replies import Hit
from gateway.schemas import SearchRequest
from gateway.traced import DISPATCH, Seen, Stored, Traced, TraceTable
from gateway.trail import EXCLUDED_MAX, FULL_TEXT, Trail
from ledger.clock import Clock, stamp
from ledger.errors import CorrigendaError, failure
from ledger.ids import TRACE
from ledger.store import Store
from projections.items import Item

QUEUE_MAX = 1_000
QUEUE_BYTES_MAX = 8_000_000
GROUP_MAX = 200
LINGER_S = 0.02
IDLE_S = 5.0
FLUSH_S = 2.0
OVER_BUDGET = "it did not fit the budget"
_FILTERS = ("min_trust", "min_confidence", "kinds", "tags", "context", "as_of", "budget")
_PLAIN: dict[str, Any] = {name: SearchRequest.model_fields[name].get_default() for name in _FILTERS}  # Any: as there
_Row = tuple[Stored, Mapping[str, Any]]  # Any: look-up columns

_log = logging.getLogger(__name__)


class Found(NamedTuple):
    """What a retrieval came to: what was near, the hits of it, how many of them are the answer, why there are none."""

    near: Sequence[tuple[Item, float]]
    hits: Sequence[Hit]
    served: int
    empty_reason: str | None


Record = Callable[[Question, Trail, Found], str | None]


class Background:
    """Stores rows in groups on a connection of its own, by a thread that is there once there is something to do."""

    def __init__(self, table: TraceTable, store: Store, losses: Losses) -> None:
        self._table = table.on(store)
        self._store = store
        self._losses = losses
        self._changed = threading.Condition()
        self._waiting: deque[_Row] = deque()
        self._bytes = self._busy = 0
        self._thread: threading.Thread | None = None
        self._closing = False

    def put(self, row: _Row) -> bool:
        """Take a row over, at once; report whether there was room for it."""
        with self._changed:
            size = len(row[0].body)
            if self._closing or len(self._waiting) >= QUEUE_MAX or self._bytes + size > QUEUE_BYTES_MAX:
                self._lose(1, "too many wait to be stored")
                return False
            self._waiting.append(row)
            self._bytes += size
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return True

    def flush(self, limit_s: float = FLUSH_S) -> bool:
        """Wait until nothing waits any more, or for so long; report which."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, limit_s)

    def close(self) -> None:
        """Store what waits, within two seconds, and let go of the connection."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(FLUSH_S)
        with self._changed:
            if self._waiting:
                self._lose(len(self._waiting), "the process ended before they were stored")
                self._waiting.clear()

    def _run(self) -> None:
        while (group := self._next()) is not None:
            try:
                if group:
                    self._table.add(group)
            except (CorrigendaError, psycopg.Error) as error:
                self._lose(len(group), error.code if isinstance(error, CorrigendaError) else type(error).__name__)
            if not group:
                self._store.database.close()  # nothing has been asked for a while
        self._store.database.close()

    def _next(self) -> list[_Row] | None:
        """Return the next group; an empty one after a while without any; None at the end."""
        with self._changed:
            self._busy = 0
            self._changed.notify_all()
            there = self._changed.wait_for(lambda: self._waiting or self._closing, IDLE_S)
            if there and not self._closing:
                self._changed.wait_for(lambda: self._closing or len(self._waiting) >= GROUP_MAX, LINGER_S)
            group = [self._waiting.popleft() for _ in range(min(GROUP_MAX, len(self._waiting)))]
            self._busy = len(group)
            self._bytes -= sum(len(stored.body) for stored, _ in group)
            return None if self._closing and not group else group

    def _lose(self, count: int, why: str) -> None:
        _log.warning("traces.lost: %s", why, extra={"count": count})
        self._losses.add(count)


class Tracer:
    """Records the retrievals of one gateway."""

    def __init__(
        self,
        table: TraceTable,
        background: Background,
        *,
        actor: str,
        project: str | None,
        mint: Callable[[], str],
        clock: Clock,
        reader: Reader,
        signature: Callable[[], str | None],
    ) -> None:
        self._table = table
        self._background = background
        self._reader = reader
        self._actor = actor
        self._project = project
        self._mint = mint
        self._clock = clock
        self._signature = signature

    def record(self, question: Question, trail: Trail, found: Found) -> str | None:
        """Record a retrieval, and return its trace's id: None if it is a search's, and there are too many.

        Errors: UNAVAILABLE (a dispatch's could not be stored).
        """
        traced = self._traced(question, trail, found)
        row = self._table.row(traced)
        if traced.kind == DISPATCH:
            self._dispatch(row)
        elif not self._background.put(row):
            return None
        return traced.trace

    def _dispatch(self, row: _Row) -> None:
        try:
            self._table.add([row])
        except CorrigendaError as error:
            raise failure(
                "UNAVAILABLE",
                f"The trace of a dispatch has to be stored before its answer is given, and could not be "
                f"({error.code}): nothing was answered. Mend that and ask again; what is not to go into a run is asked "
                "for with trace_kind search.",
                reason=error.code,
            ) from error

    def _traced(self, question: Question, trail: Trail, found: Found) -> Traced:
        request = question.request
        lineages = {item.revision: item.lineage for item, _ in found.near}
        met = [Seen(lineages[hit.revision_id], hit.revision_id, hit.score, hit.why) for hit in found.hits]
        left_out = [one._replace(why=OVER_BUDGET) for one in met[found.served :]]
        left_out += [Seen(item.lineage, item.revision, score, why) for item, score, why in trail.left_out]
        return Traced(
            trace=f"{TRACE}_{self._mint()}",
            kind=request.trace_kind,
            at=stamp(self._clock()),
            actor=self._actor,
            project=self._project or "",
            agent=request.agent,
            user=request.user,
            session=request.session,
            task_family=request.task_family,
            turn=request.turn,
            run=request.run,
            query=request.query,
            k=request.k,
            filters=_filters(request),
            valid_at=question.valid_at,
            at_position=question.position,
            position=self._reader.position,
            incarnation=self._reader.incarnation,
            embedder=None if FULL_TEXT in trail.warnings else self._signature(),
            chosen=tuple(met[: found.served]),
            left_out=tuple(sorted(left_out, key=lambda one: -one.score)[:EXCLUDED_MAX]),
            left_out_count=len(left_out),
            warnings=tuple(trail.warnings),
            empty_reason=found.empty_reason,
        )


def _filters(request: SearchRequest) -> dict[str, Any]:  # Any: JSON
    """Return what was asked for beside the question, as far as it is not what holds unless asked for."""
    asked = {name: getattr(request, name) for name in _PLAIN}
    return msgspec.to_builtins({name: value for name, value in asked.items() if value != _PLAIN[name]})
