"""Shared hands: appends to a real ledger by the committer alone, without read models, in groups that a test chooses.

What is submitted inside `waiting` is one group, or as many as its limits ask for. Every event gives a name to an id of
its own: that is allowed on any stream, any number of times.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from gateway.bootstrap import open_bare
from gateway.settings import read_settings
from ledger.clock import Clock, new_ulid, system_clock
from ledger.committer import Committer
from ledger.governance import AssignedName, NameAssigned
from ledger.message import Event
from ledger.opening import open_ledger
from ledger.sealing import Draft
from ledger.store import Database
from ledger.verified import VerifiedLedger
from ledger.waiting import Appended, Conflicted, Outcome, Replayed
from tests.house import rows
from tests.roles import as_owner

DEADLINE_S = 30.0
KIND = "name_"  # what the streams of such events begin with; tests leave it out
PARENT = "prj_01JZ8Q0000000000000000000B"
ACTOR = "pr_01JZ8Q0000000000000000000C"

LOCK_HEAD = b"SELECT 1 FROM corrigenda.head FOR UPDATE"
WAITERS = (
    b"SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    b" AND (wait_event_type = 'Lock' OR wait_event = 'PgSleep')"
)


class Appends:
    """A process's committer on a ledger. Each has connections and a walk of its own; the anchor is shared."""

    def __init__(
        self,
        url: str,
        home: Path,
        clock: Clock = system_clock,
        *,
        committer_url: str | None = None,
        pooled: bool = False,
    ) -> None:
        self.url = url
        self.home = home
        self.database = Database(url)
        settings = read_settings({}, database_url=url, home=home)
        self.ledger: VerifiedLedger = open_ledger(
            self.database, tenant="local", files=settings.keys, anchors=settings.anchors, clock=clock
        )
        self.ledger.catch_up()
        self.committer = Committer(self.ledger, Database(committer_url or url, pooled=pooled), [], clock)

    def close(self) -> None:
        """Store what waits, and close the connections."""
        self.committer.close()
        self.ledger.close()
        self.database.close()

    def draft(
        self, *streams: str, key: str | None = None, reads: Mapping[str, int] | None = None,
        name: str = "a name", kind: str = "user", body: bytes = b"{}",
    ) -> Draft:  # fmt: skip
        """Return an append of one event on each of these streams, under a key of its own if none is given."""
        return Draft(
            op=f"op_{new_ulid()}",
            actor=ACTOR,
            authn="local",
            request=self.ledger.keys.request(["human:ana", "test"], key or new_ulid()),
            fingerprint=self.ledger.keys.fingerprint(body),
            events=tuple((KIND + stream, _event(name, kind)) for stream in streams),
            reads={KIND + stream: version for stream, version in (reads or {}).items()},
        )

    def submit(self, *streams: str, **words: object) -> "Future[Outcome]":
        """Submit such an append."""
        return self.committer.submit(self.draft(*streams, **words))  # pyright: ignore[reportArgumentType] - as they come

    def store(self, *streams: str, **words: object) -> list[int]:
        """Store such an append, and return its positions."""
        return positions(self.submit(*streams, **words).result(DEADLINE_S))

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Let whatever is submitted inside the block wait until its end."""
        with head_held(self.url):
            plug = self.submit("plug")
            waiter(self.url)
            yield
        plug.result(DEADLINE_S)


def _event(name: str, kind: str) -> Event:
    facts = NameAssigned(id=f"usr_{new_ulid()}", kind=kind, parent=PARENT)
    return Event(facts=facts, payload=AssignedName(name=name), position=-1)


@contextmanager
def whole(url: str, home: Path, **words: object) -> Generator[Appends]:
    """Give a process's hands; what they leave has to be whole."""
    with closing(Appends(url, home, **words)) as appends:  # pyright: ignore[reportArgumentType] - as they come
        yield appends
    assert_whole(url, home)


def assert_whole(url: str, home: Path) -> None:
    """Fail unless the ledger verifies, from position 0 to its head, without a gap."""
    with open_bare(database_url=url, home=home, create=False) as bare:
        report = bare.verify()
        assert report.ok, report.checks
    stored = [seq for (seq,) in rows(url, "SELECT seq FROM corrigenda.event ORDER BY seq")]
    assert stored == [*range(rows(url, "SELECT seq FROM corrigenda.head")[0][0] + 1)]


def positions(outcome: Outcome) -> list[int]:
    """Return where an append was stored; that it was stored is taken for granted."""
    assert isinstance(outcome, Appended), outcome
    return [item.entry.position for item in outcome.recorded]


def replayed(outcome: Outcome) -> int:
    """Return at which position an append had been carried out before."""
    assert isinstance(outcome, Replayed), outcome
    return outcome.position


def conflicted(outcome: Outcome) -> str:
    """Return the stream that stood against an append."""
    assert isinstance(outcome, Conflicted), outcome
    return outcome.stream.removeprefix(KIND)


def results(futures: "Sequence[Future[Outcome]]") -> list[Outcome]:
    """Return what became of some appends."""
    return [future.result(DEADLINE_S) for future in futures]


def transactions(url: str) -> list[list[int]]:
    """Return the positions of the events, event 0 left out, as they were committed together, in order."""
    found = rows(
        url, "SELECT array_agg(seq ORDER BY seq) FROM corrigenda.event WHERE seq > 0 GROUP BY xmin::text ORDER BY 1"
    )
    return [group for (group,) in found]


def on_stream(url: str, stream: str) -> list[int]:
    """Return the positions of a stream's events as the tables have them."""
    found = rows(url, "SELECT seq FROM corrigenda.event WHERE stream = %s ORDER BY stream_seq", KIND + stream)
    return [seq for (seq,) in found]


@contextmanager
def head_held(url: str) -> Generator[None]:
    """Hold the head's lock for as long as the block runs."""
    with psycopg.connect(as_owner(url)) as connection:
        connection.execute(LOCK_HEAD)
        yield


def waiter(url: str) -> int:
    """Wait until some backend waits for a lock, or sleeps, and return its process id."""
    with psycopg.connect(as_owner(url), autocommit=True) as connection:
        return until(lambda: [pid for (pid,) in connection.execute(WAITERS).fetchall()])[0]


def until(ask: "Callable[[], list[int]]") -> list[int]:
    """Ask until the answer is not empty."""
    end = time.monotonic() + DEADLINE_S
    while not (answer := ask()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)
    return answer


@contextmanager
def planted(url: str, body: str, *, deferred: bool = False) -> Generator[None]:
    """Plant a trigger of the owner's with this PL/pgSQL body for each event; deferred, it runs at COMMIT."""
    timing = "AFTER INSERT ON corrigenda.event DEFERRABLE INITIALLY DEFERRED"
    making = f"CONSTRAINT TRIGGER planted {timing}" if deferred else "TRIGGER planted BEFORE INSERT ON corrigenda.event"
    with psycopg.connect(as_owner(url), autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(
            f"CREATE OR REPLACE FUNCTION public.planted() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN {body} RETURN NEW; END $$".encode()
        )
        connection.execute(f"CREATE {making} FOR EACH ROW EXECUTE FUNCTION public.planted()".encode())
        try:
            yield
        finally:
            connection.execute("DROP TRIGGER IF EXISTS planted ON corrigenda.event")
