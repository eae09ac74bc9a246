"""What every use case needs: who acts, the one way to write, the one way to read."""

from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import isfunction
from typing import Any, Self, cast

from gateway.deciding import Decisions
from gateway.deciding.contradiction import Contradictions
from gateway.deciding.late_checks import LateChecks
from gateway.reading.corrections import Corrections
from gateway.reading.reader import NOBODY, Reader
from gateway.scope.names import Names, References, no_project, no_such_project
from gateway.scope.past import Moment
from gateway.scope.permissions import Actor
from gateway.scope.spelling import Spellings
from gateway.scope.states import States
from gateway.scope.visible import Visible
from gateway.searching.filtering import Question
from gateway.searching.foresight import Foresight
from gateway.searching.pace import Due, Pace
from gateway.searching.retrieval import Retrieval
from gateway.searching.trail import Record
from gateway.service.typed import typed
from gateway.shapes import requests
from gateway.shapes.positions import parse_position, wait_until_at
from gateway.shapes.replies.upkeep import Status
from gateway.shapes.replies.writes import Receipt
from gateway.traces.losses import Losses
from gateway.traces.retracing import Retracing
from gateway.traces.traced import TraceTable
from gateway.traces.tracing import Background, Tracer
from gateway.writing.page import Append
from gateway.writing.policies import Policies
from gateway.writing.writer import Wish, Writer
from ledger.clock import Clock, stamp
from ledger.committer import Committer
from ledger.errors import CorrigendaError, refuse
from ledger.keys import KeyFiles
from ledger.limits import INDEX_WAIT_S
from ledger.message import ScopeIds
from ledger.verified import VerifiedLedger
from projections.embedders.patience import at_most
from projections.relay import Relay
from projections.scrubbing import Scrubber

# The fields of a request that name something; of these, the one that may be None.
REFERENCES = frozenset({"revision", "newer", "older", "with", "correction", "expected_active"})
_OPTIONAL = frozenset({"expected_active"})


class UseCases:
    """One ledger, as one actor uses it. A context manager; safe to share between threads.

    Each public method of its use cases is held to the types that it names (`gateway/service/typed.py`).
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, member in list(vars(cls).items()):
            if isfunction(member) and not name.startswith("_"):
                setattr(cls, name, typed(member))

    def __init__(
        self,
        ledger: VerifiedLedger,
        relay: Relay,
        committer: Committer,
        *,
        actor: Actor,
        project: str | None,
        clock: Clock,
        files: KeyFiles,
        survey: Callable[[], Status],
        losses: Losses,
        on_close: Callable[[], None],
    ) -> None:
        states = States(ledger)
        self._ledger = ledger
        self._relay = relay
        self._scrubber = Scrubber(ledger, relay)
        self._actor = actor
        self._project = project
        self._names = Names(ledger)
        self._states = states
        self._visible = Visible(actor, self._names.find)
        self._references = References(ledger, self._names, states, project, self._visible)
        self._policies = Policies(self._names, states)
        self._spellings = Spellings(self._names)
        self._writer = Writer(ledger, committer, self._names, states, clock)
        self._reader = Reader(ledger, self._names, states, self._references)
        self._corrections = Corrections(
            ledger,
            names=self._names,
            states=states,
            references=self._references,
            reader=self._reader,
        )
        self._contradictions = Contradictions(ledger, self._names, self._policies, lambda: relay.embedder)
        self._decisions = Decisions(
            keys=ledger.keys,
            names=self._names,
            references=self._references,
            policies=self._policies,
            contradictions=self._contradictions,
            reader=self._reader,
            actor=actor,
            project=project,
            mint=self._writer.mint,
        )
        self._late = LateChecks(ledger, self._writer, self._contradictions, self._policies, lambda: relay.embedder)
        self._pace = Pace()
        self._retracing, record = self._tracing(clock, losses)
        self._retrieval = Retrieval(ledger, relay, self._reader, self._corrections, self._names, record, self._pace)
        self._clock = clock
        self._files = files
        self._survey = survey
        self._on_close = on_close
        self._closed = False
        self._wrote = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @at_most(INDEX_WAIT_S)
    def close(self) -> None:
        """Bring the index up to date for at most five seconds, keep it, and let go of the database."""
        if self._closed:
            return
        if self._wrote:
            self.carry_late()
        self._closed = True
        self._writer.close()
        self._background.close()
        with self._writer.lock:
            try:
                self._scrubber.scrub(0.0)
                self._relay.close(wrote=self._wrote)
            finally:
                self._ledger.close()
                self._on_close()

    def _tracing(self, clock: Clock, losses: Losses) -> tuple[Retracing, Record]:
        """Return what reads traces, and what records this gateway's retrievals."""
        ledger, relay, actor = self._ledger, self._relay, self._actor.name
        table = TraceTable(ledger.store, ledger.keys, self._names.root)
        self._background = Background(table, ledger.store.another(reviving=False), losses)
        tracer = Tracer(
            table,
            self._background,
            actor=actor,
            project=self._project,
            mint=self._writer.mint,
            clock=clock,
            reader=self._reader,
            signature=lambda: None if relay.embedder is None else relay.embedder.signature,
        )
        reading = Retracing(ledger, table, self._names, self._states, self._references, self._reader, actor=actor)
        return reading, tracer.record

    # ---------------------------------------------------------------- shared

    def _write(
        self,
        operation: str,
        permission: str | None,
        given: Mapping[str, Any],  # Any: JSON
        decide: Callable[[Append], None],
        key: str | None,
        dry_run: bool,
        warn: Callable[[], Sequence[str]] = tuple,
    ) -> Receipt:
        """Carry out one act. Without a `permission` it is for `decide` to say which one the act needs."""
        self._check_open()
        if permission is not None:
            self._require(permission)
        requests.parse(requests.Who, actor=self._actor.name, project=self._project, idempotency_key=key)
        for name in sorted(REFERENCES & given.keys()):
            if given[name] is not None or name not in _OPTIONAL:
                requests.parse(requests.ReferenceRequest, id=given[name])
        request = {"project": self._project, **given}
        wish = Wish(
            operation=operation,
            actor=self._actor.name,
            request=request,
            key=key,
            decide=decide,
            dry_run=dry_run,
            warn=warn,
        )
        self._wrote = True
        return self._writer.write(wish)

    def _read_named(
        self, reference: str, min_position: str | None, answer: Callable[[str], Any]
    ) -> Any:  # Any: the reader's own reply
        self._require("read")
        request = requests.parse(requests.ReferenceRequest, id=reference)
        return self._read(min_position, lambda: answer(request.id))

    def _read(self, min_position: str | None, answer: Callable[[], Any]) -> Any:  # Any: the reader's own reply
        self._require("read")
        self._reach(min_position)
        with self._writer.lock:
            self._ledger.catch_up()
            return answer()

    def _reach(self, min_position: str | None) -> int:
        """Wait at most two seconds for a position that somebody has announced; return it. The caller holds no lock."""
        if min_position is None:
            return -1
        self._caught_up()
        position = parse_position(min_position, incarnation=self._reader.incarnation)
        wait_until_at(position, self._caught_up)
        return position

    @typed
    def carry_late(self, *, keep: bool = True) -> tuple[str, ...]:
        """Make, for at most five seconds, the checks that outbox rows ask for; return what a reader is to be warned of.

        They can wait: what keeps them from being made, keeps nothing else. The caller holds no lock.
        """
        return self._carry_late(keep=keep)

    def _carry_late(self, *, keep: bool, slice_s: float | None = None) -> tuple[str, ...]:
        if self._relay.frozen:
            return ()
        try:
            waiting = self._late.carry(INDEX_WAIT_S, keep=keep, slice_s=slice_s)
        except CorrigendaError as error:
            return (f"contradictions_pending: {error.code}",)
        return (f"contradictions_pending: {waiting}",) if waiting else ()

    def _checked(
        self, answer: Callable[[Due], Any], owed: int, sight: Foresight | None = None
    ) -> tuple[Any, tuple[str, ...]]:  # Any: the reader's own reply
        """Answer once the checks that wait are made, so that nothing contradicted is served; and what to warn of.

        `owed` is a position up to which all is to be carried before, whatever else may wait; `answer` is told what is
        due in this search. What `sight` foresees is read with the head.
        """
        with self._writer.lock:
            self._ledger.catch_up(None if sight is None else sight.look())
            due = Due(max(owed, self._writer.reached))
            carried = self._late.carried
            if not self._late.is_behind:
                return answer(due), ()
            if self._pace.may_wait(head=self._ledger.walk.position, carried=carried, owed=due.position):
                waiting = None if sight is None else sight.rows_above(carried)
                if waiting is None:
                    waiting = self._ledger.store.count("count_outbox", after=carried)
                return answer(due), (f"contradictions_pending: {waiting}",) if waiting else ()
            owes = min(carried, self._relay.cursor) < due.position
            # It is this search that carries: the index, too.
            due = Due(self._ledger.walk.position, None if owes else self._pace.slice_s)
        with self._pace.carrying():
            warnings = self._carry_late(keep=False, slice_s=due.slice_s)
        with self._writer.lock:
            self._ledger.catch_up(None if sight is None else sight.look())
            return answer(due), warnings

    def _behind(self) -> Collection[int]:
        """Return from where on rows wait, for a search that may leave them for later and has to say how many."""
        return {self._late.carried, self._relay.cursor} if self._pace.rests else ()

    def _caught_up(self) -> int:
        with self._writer.lock:
            return self._ledger.catch_up()

    def _require(self, permission: str) -> None:
        self._check_open()
        self._actor.require(permission)

    def _check_open(self) -> None:
        if self._closed:
            refuse("UNAVAILABLE", "This gateway was closed, and does nothing any more. Open another one.")

    def _question(self, request: requests.SearchRequest, at_position: Moment | None = None) -> Question:
        """Return what a search is about, at the head that was caught up with, or as the ledger stood."""
        given = {"projectId": self._project, "sessionId": request.session, **request.context}
        position = None if at_position is None else self._reader.position_of(at_position, "at_position")
        now = stamp(self._clock()) if position is None else self._reader.recorded_at(position)
        return Question(
            request=request,
            scope=self._scope(request),
            context={name: value for name, value in given.items() if value is not None},
            valid_at=request.as_of or now,
            position=position,
            as_of=request.as_of is not None,
        )

    def _scope(self, request: requests.ScopeRequest) -> ScopeIds:
        """Return the scope of a reader, at the head that was caught up with."""
        # A project without a name yet has no memories, and still sees what the whole tenant may see.
        return self._reader.scope(self._references.project or NOBODY, request)

    def _in_project(self, answer: Callable[[], Any], code: str) -> Callable[[], Any]:  # Any: the reader's own reply
        """Return an answer about all of a project, with that code where nothing was ever stored under its name."""

        def checked() -> Any:  # Any: as above
            if self._references.project_name is not None and self._references.project is None:
                raise no_such_project(code)
            return answer()

        return checked

    def _need_project(self) -> str:
        if self._project is None:
            raise no_project()
        return self._project


def listed(values: Any) -> Any:  # Any: what the schema is to check
    """Return a list as a tuple; whatever is none stays, to be refused: a string is no list of its letters."""
    if isinstance(values, str | dict):
        return cast(object, values)
    try:
        return tuple(values)
    except TypeError:
        return values
