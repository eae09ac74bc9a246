"""Our own ledger: the committer alone, the whole command, and pages, over the same bodies as everybody else's.

Raw means what no append can do without: the event, its payload, the idempotency key and the anchor, but neither read
models nor the outbox; the event is one that none of them takes up. Every call makes its own ids, bytes and digests.
"""

import multiprocessing
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from multiprocessing.pool import AsyncResult
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import BrokenBarrierError

import corrigenda
import migrations
from benchmarks.server import as_writer
from benchmarks.workload import READY_TIMEOUT_S, Append, Run, body, measure, together
from ledger.appending import Projector
from ledger.clock import new_ulid, system_clock
from ledger.committer import Committer
from ledger.errors import CorrigendaError
from ledger.memories import LINEAGE, LineageLinked, LineageState, Remember, RevisionText
from ledger.message import HEADLESS, Edge, Event, Reason, ScopeIds
from ledger.opening import KeyFiles, open_ledger
from ledger.sealing import Draft
from ledger.store import Database
from ledger.waiting import Appended
from projections.models import ALL

ACTOR = "pr_01JZ8Q0000000000000000000C"
SCOPE = ScopeIds(agent=None, project="prj_01JZ8Q0000000000000000000B", session=None, task_family=None, user=None)
PROJECT = "bench"
ANSWER_S = 60
REQUEST = body(0)
FILLER = "x" * (len(body(0)) - 20)  # with which a payload is as long as a body of the others


def content(number: int) -> str:
    """Return a text with which a payload is as long as the peers' bodies."""
    return f"{number}: the carrier prints destination handling under the plain code; three invoices show it"


def prepare(url: str, home: Path) -> str:
    """Make a ledger in an empty database, with what the commands will name, and return the writer's URL of it."""
    home.mkdir(mode=0o700)
    migrations.upgrade(url)
    writer = as_writer(url)
    with _gateway(writer, home) as gateway:
        gateway.remember(content(0))
    return writer


class RawLedger:
    """One process's committer, without the gateway."""

    def __init__(self, url: str, home: Path, *, models: bool = False) -> None:
        self._models = models
        self._database = Database(url, durable=True)
        files = KeyFiles(home / "keys" / "ledger.key", home / "keys" / "signing.pem")
        self.ledger = open_ledger(
            self._database, tenant="local", files=files, anchors=home / "anchor", clock=system_clock
        )
        self.ledger.catch_up()
        projectors: Sequence[Projector] = ALL if models else []
        self.committer = Committer(self.ledger, self._database.another(), projectors, system_clock)

    def close(self) -> None:
        """Store what waits, and close the connections."""
        self.committer.close()
        self.ledger.close()
        self._database.close()

    @contextmanager
    def writer(self, _: int) -> Generator[Append]:
        """Give a caller whose every call is one durable event of a new stream."""
        numbers = count()

        def append() -> None:
            outcome = self.committer.append(self._draft(self._stated(next(numbers))), ANSWER_S)
            if not isinstance(outcome, Appended):
                raise RuntimeError(f"an append was answered with {outcome}")

        yield append

    @contextmanager
    def pages(self, size: int) -> Generator[Append]:
        """Give a caller whose every call is `size` appends in one transaction, as an import makes them."""
        event = self._told if self._models else self._stated

        def append() -> None:
            with self.committer.hold(more=True) as held:
                held.store((self._draft(event(number)) for number in range(size)), last=True)

        yield append
        self.committer.settle()

    def remember_page(self, numbers: Iterable[int], scope: ScopeIds) -> dict[str, str]:
        """Remember the text of each number in one transaction, and return the texts by their content digest."""
        texts = [content(number) for number in numbers]
        with self.committer.hold() as held:
            held.store(self._draft(self._remembered(told, scope)) for told in texts)
        return {self.ledger.keys.content(scope.project, told): told for told in texts}

    def _draft(self, event: tuple[str, Event]) -> Draft:
        """Return a decided append of one event, under a key of its own."""
        return Draft(
            op=f"op_{new_ulid()}",
            actor=ACTOR,
            authn="local",
            request=self.ledger.keys.request([ACTOR, "bench"], new_ulid()),
            fingerprint=self.ledger.keys.fingerprint(REQUEST),
            events=(event,),
        )

    def _stated(self, number: int) -> tuple[str, Event]:
        """Return an event that neither a read model nor an index takes up, in a stream of its own."""
        stream = f"mem_{new_ulid()}"
        edge = Edge("supersedes", f"mem_{new_ulid()}", stream, None)
        facts = LineageLinked(edges=(edge,), role="older", standing=HEADLESS)
        return stream, Event(facts=facts, payload=Reason(reason=f"{number:06d} {FILLER}"), position=-1)

    def _told(self, number: int) -> tuple[str, Event]:
        """Return the event of a new memory of nobody's project, and its stream."""
        return self._remembered(content(number), SCOPE)

    def _remembered(self, told: str, scope: ScopeIds) -> tuple[str, Event]:
        """Return the event of a new memory, and its stream."""
        wish = Remember(
            revision=f"rev_{new_ulid()}",
            content=self.ledger.keys.content(scope.project, told),
            kind="fact",
            origin="agent",
            scope=scope,
            visibility="project",
            text=RevisionText.plain(told),
        )
        (event,) = LINEAGE.decide(LineageState(), wish)
        return f"mem_{new_ulid()}", event


@contextmanager
def raw(url: str, home: Path, *, models: bool = False) -> Generator[RawLedger]:
    """Give a committer of this process for as long as the block runs."""
    ledger = RawLedger(url, home, models=models)
    try:
        yield ledger
    finally:
        ledger.close()


def raw_in_processes(url: str, home: Path, *, processes: int, threads: int, seconds: float) -> Run:
    """Let several processes, each with a committer of its own, append to one ledger at the same time."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(processes, timeout=READY_TIMEOUT_S)
    with context.Pool(processes, initializer=_keep_barrier, initargs=(ready,)) as pool:
        return together(pool.starmap(_process, [(url, home, threads, seconds)] * processes, chunksize=1))


_barriers: list[Barrier] = []  # a barrier may only be inherited, never be sent as an argument


def _keep_barrier(barrier: Barrier) -> None:
    _barriers.append(barrier)


def _ready() -> None:
    _barriers[0].wait()


def _process(url: str, home: Path, threads: int, seconds: float) -> Run:
    try:
        with raw(url, home) as ledger:
            return measure(ledger.writer, threads=threads, seconds=seconds, ready=_ready)
    except CorrigendaError as error:  # which does not survive the way between processes
        _barriers[0].abort()  # nobody has to wait for this one
        raise RuntimeError(f"{error.code}: {error}") from None


class Commands:
    """The whole command `remember`, as a program says it: all read models, the outbox, no embedder."""

    def __init__(self, url: str, home: Path) -> None:
        self._gateway = _gateway(url, home)

    def close(self) -> None:
        """Close the gateway."""
        self._gateway.close()

    @contextmanager
    def writer(self, _: int) -> Generator[Append]:
        """Give a caller whose every call remembers one text under a key of its own."""
        numbers = count()
        yield lambda: self._gateway.remember(content(next(numbers)), idempotency_key=new_ulid())


@contextmanager
def commands(url: str, home: Path) -> Generator[Commands]:
    """Give an open gateway for as long as the block runs."""
    opened = Commands(url, home)
    try:
        yield opened
    finally:
        opened.close()


def _gateway(url: str, home: Path) -> "corrigenda.Gateway":
    return corrigenda.open(url, home=home, project=PROJECT, actor="agent:bench", embedder="none")


@contextmanager
def commands_beside(url: str, home: Path, *, threads: int, seconds: float) -> Generator["AsyncResult[Run]"]:
    """Let callers in a process of its own remember for about `seconds`, from the beginning of the block on."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(2, timeout=READY_TIMEOUT_S)
    with context.Pool(1, initializer=_keep_barrier, initargs=(ready,)) as pool:
        wrote = pool.apply_async(_commands_process, (url, home, threads, seconds))
        with suppress(BrokenBarrierError):  # the callers could not even begin: their own error is raised by `get`
            ready.wait()
        yield wrote
        wrote.get(READY_TIMEOUT_S + seconds)


def _commands_process(url: str, home: Path, threads: int, seconds: float) -> Run:
    try:
        with commands(url, home) as opened:
            return measure(opened.writer, threads=threads, seconds=seconds, ready=_ready)
    except CorrigendaError as error:  # as above
        _barriers[0].abort()
        raise RuntimeError(f"{error.code}: {error}") from None
