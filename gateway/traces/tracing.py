"""How traces come into being: a dispatch's before its answer is given, a search's in groups afterwards.

Recording a search must never slow it down, and never fail it: what cannot be stored is lost, said in the log and
counted in the home, where `status` reads it. A dispatch without a stored trace is no answer.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
import psycopg

from gateway.reading.reader import Reader
from gateway.searching.filtering import CorrectionQuestion, Question
from gateway.searching.trail import EXCLUDED_MAX, FULL_TEXT, Found, Trail
from gateway.shapes.replies.corrections import CorrectionHit
from gateway.shapes.replies.searches import Hit
from gateway.shapes.requests import SearchRequest
from gateway.traces.losses import Losses
from gateway.traces.traced import CORRECTIONS, DISPATCH, MEMORIES, SEARCH, Seen, Stored, Traced, TraceTable
from ledger.clock import Clock, stamp
from ledger.errors import CorrigendaError, failure
from ledger.ids import TRACE
from ledger.store import Store

QUEUE_MAX = 1_000
QUEUE_WEIGHT_MAX = 20_000  # hits, with their texts, and what was left out
GROUP_MAX = 200
LINGER_S = 1.0  # so long a search's trace waits for others: each group takes the interpreter and the database once
IDLE_S = 5.0
FLUSH_S = 2.0
OVER_BUDGET = "it did not fit the budget"
_FILTERS = ("min_trust", "min_confidence", "kinds", "tags", "context", "as_of", "budget")
_PLAIN: dict[str, Any] = {name: SearchRequest.model_fields[name].get_default() for name in _FILTERS}  # Any: as there

Row = tuple[Stored, Mapping[str, Any]]  # Any: look-up columns

_log = logging.getLogger(__name__)


class Background:
    """Stores rows in groups on a connection of its own, by a thread that is there once there is something to do.

    Who puts something in takes no lock that this thread holds, and never waits for it; even its row is made by the
    thread. One caller puts at a time.
    """

    def __init__(self, table: TraceTable, store: Store, losses: Losses) -> None:
        self._table = table.on(store)
        self._store = store
        self._losses = losses
        self._waiting: deque[tuple[int, Callable[[], Row]]] = deque()
        self._came = self._went = 0  # how many ever came, and went: each counted by one side only
        self._came_weight = self._went_weight = 0
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._settled = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = self._given_up = False

    def put(self, make: Callable[[], Row], weight: int) -> bool:
        """Take what makes a row over, at once; report whether there was room for it. `weight` counts what it holds."""
        heavy = self._waiting and self._came_weight - self._went_weight + weight > QUEUE_WEIGHT_MAX
        if self._closing or heavy or len(self._waiting) >= QUEUE_MAX:
            self._lose(1, "too many wait to be stored")
            return False
        self._came_weight += weight
        self._came += 1
        self._waiting.append((weight, make))
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
            self._thread.start()
        if not self._wake.is_set():
            self._wake.set()
        waiting = self._came_weight - self._went_weight
        if (len(self._waiting) * 2 > QUEUE_MAX or waiting * 2 > QUEUE_WEIGHT_MAX) and not self._hurry.is_set():
            self._hurry.set()  # half full: there are others enough
        return True

    def flush(self, limit_s: float = FLUSH_S) -> bool:
        """Wait until what was put in so far is stored, or lost, or for so long; report which."""
        wanted = self._came
        self._hurry.set()
        self._wake.set()
        with self._settled:
            return self._settled.wait_for(lambda: self._went >= wanted, limit_s)

    def close(self) -> None:
        """Store what waits, within two seconds, and let go of the connection."""
        self._closing = True
        self._hurry.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(FLUSH_S)
            if (left := self._came - self._went) > 0:
                self._given_up = True
                self._lose(left, "the gateway was closed before they were stored")

    def _run(self) -> None:
        while not self._closing or self._waiting:
            if not self._wake.wait(IDLE_S):
                self._store.database.close()  # nothing has been asked for a while
                continue
            self._hurry.wait(LINGER_S)
            self._hurry.clear()
            self._wake.clear()
            while self._waiting:
                self._keep_group()
        self._store.database.close()

    def _keep_group(self) -> None:
        group: list[Row] = []
        taken = 0
        try:
            while self._waiting and taken < GROUP_MAX:
                weight, make = self._waiting.popleft()
                self._went_weight += weight
                taken += 1
                group.append(make())
                time.sleep(0)  # whoever answers meanwhile comes first
            self._table.add(group)
        except (CorrigendaError, psycopg.Error) as error:
            if not self._given_up:  # else they are counted already
                self._lose(taken, error.code if isinstance(error, CorrigendaError) else type(error).__name__)
        finally:
            with self._settled:
                self._went += taken
                self._settled.notify_all()

    def _lose(self, count: int, why: str) -> None:
        _log.warning("traces.lost: %s", why, extra={"count": count})
        self._losses.add(count)


class _Noted(NamedTuple):
    """What is true of a retrieval at its moment, and would be another thing later."""

    trace: str
    at: str
    position: int
    incarnation: int
    embedder: str | None


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

    def record(self, question: Question | CorrectionQuestion, trail: Trail, found: Found) -> str | None:
        """Record a retrieval, and return its trace's id: None if it is a search's, and there are too many.

        Errors: UNAVAILABLE (a dispatch's could not be stored).
        """
        noted = _Noted(
            trace=f"{TRACE}_{self._mint()}",
            at=stamp(self._clock()),
            position=self._reader.position,
            incarnation=self._reader.incarnation,
            embedder=None if FULL_TEXT in trail.warnings else self._signature(),
        )
        if isinstance(question, Question) and question.request.trace_kind == DISPATCH:
            self._dispatch(self._row(noted, question, trail, found))
            return noted.trace
        weight = len(found.hits) + len(trail.left_out)
        make = partial(self._row, noted, question, trail, found)
        return noted.trace if self._background.put(make, weight) else None

    def _row(self, noted: _Noted, question: Question | CorrectionQuestion, trail: Trail, found: Found) -> Row:
        return self._table.row(self._traced(noted, question, trail, found))

    def _dispatch(self, row: Row) -> None:
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

    def _traced(self, noted: _Noted, question: Question | CorrectionQuestion, trail: Trail, found: Found) -> Traced:
        lineages = {item.revision: item.lineage for item, _ in found.near}
        met = [_seen(hit, lineages) for hit in found.hits]
        left_out = [one._replace(why=OVER_BUDGET) for one in met[found.served :]]
        left_out += [Seen(item.lineage, item.revision, score, why) for item, score, why in trail.left_out]
        return Traced(
            trace=noted.trace,
            at=noted.at,
            actor=self._actor,
            project=self._project or "",
            agent=question.request.agent,
            user=question.request.user,
            session=question.request.session,
            task_family=question.request.task_family,
            query=question.request.query,
            position=noted.position,
            incarnation=noted.incarnation,
            embedder=noted.embedder,
            chosen=tuple(met[: found.served]),
            left_out=tuple(sorted(left_out, key=lambda one: -one.score)[:EXCLUDED_MAX]),
            left_out_count=len(left_out),
            warnings=tuple(trail.warnings),
            empty_reason=found.empty_reason,
            **(_of_memories(question) if isinstance(question, Question) else _of_corrections(question)),
        )


def _seen(hit: Hit | CorrectionHit, lineages: Mapping[str, str]) -> Seen:
    if isinstance(hit, CorrectionHit):
        return Seen(hit.correction_id, hit.correction_id, hit.score, hit.why)
    # An index may offer less when it is asked for more: then the ledger tells the lineage when the trace is read.
    return Seen(lineages.get(hit.revision_id, ""), hit.revision_id, hit.score, hit.why)


def _of_memories(question: Question) -> dict[str, Any]:  # Any: one value of each field's type
    """Return what a trace says of a question about memories only."""
    request = question.request
    return {
        "about": MEMORIES,
        "kind": request.trace_kind,
        "turn": request.turn,
        "run": request.run,
        "k": request.k,
        "filters": _filters(request),
        "valid_at": question.valid_at,
        "at_position": question.position,
    }


def _of_corrections(question: CorrectionQuestion) -> dict[str, Any]:  # Any: as above
    """Return the same of a question about corrections."""
    filters = {"entity_key": question.request.entity_key, "min_score": question.min_score}
    return {
        "about": CORRECTIONS,
        "kind": SEARCH,
        "turn": None,
        "run": None,
        "k": question.k,
        "filters": {name: value for name, value in filters.items() if value is not None},
        "valid_at": question.asked_at,
        "at_position": None,
    }


def _filters(request: SearchRequest) -> dict[str, Any]:  # Any: JSON
    """Return what was asked for beside the question, as far as it is not what holds unless asked for."""
    asked = {name: getattr(request, name) for name in _PLAIN}
    return msgspec.to_builtins({name: value for name, value in asked.items() if value != _PLAIN[name]})
