"""The database as the ledger uses it: one connection, transactions, and the named queries. It checks nothing.

Rows come back as they lie there; whether they are what was written is for `walk` and `verified` to say. Errors of
the connection become UNAVAILABLE here, so that no other module has to know the driver's.
"""

import os
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NamedTuple

import psycopg
from psycopg import IsolationLevel, sql
from psycopg.pq import TransactionStatus

from ledger import driver
from ledger.errors import CorrigendaError, UnavailableError, failure, refuse
from ledger.flush import Flush
from ledger.sql import load
from ledger.wire import Params, Row, Write, is_typed, rows
from migrations import LATEST

QUERIES = load("ledger")

CONNECT_TIMEOUT_S = 10
OutboxRow = tuple[int, str, str, str]  # position, revision or correction, effect, stream


class HeadRow(NamedTuple):
    """The guarded row: position and hash of the last event, incarnation, live generation and projector version."""

    seq: int
    hash: bytes
    incarnation: int
    gen: int
    projector: int


class Stored(NamedTuple):
    """One event as it is read for checking."""

    seq: int
    envelope: bytes
    seal: bytes
    salt: bytes | None
    body: bytes | None


class Sight(NamedTuple):
    """What row-level security shows a transaction: the rows of one ledger, and the row of one tenant; else nothing."""

    ledger: str = ""
    tenant: str = ""


class OwnRole(NamedTuple):
    """Who we are to the database, and what that lets us do, by way of memberships too."""

    name: str
    is_superuser: bool
    bypasses_rls: bool
    owns_tables: bool
    may_write: bool


class Database:
    """A connection that is made when it is needed, used by one thread at a time, and made anew after it was lost.

    With `durable` every connection is refused whose server may lose what it acknowledged. `revive` is asked for a URL
    when no connection can be made to the one that is known: a server of ours can be started again.
    """

    def __init__(
        self, url: str, *, pooled: bool = False, durable: bool = False, revive: Callable[[], str] | None = None
    ) -> None:
        self.url = url
        self.pooled = pooled
        self._durable = durable
        self._revive = revive
        self._lock = threading.RLock()
        self._depth = 0
        self._sight: Sight = Sight()
        self._begins: dict[tuple[Sight, bool], bytes] = {}
        self._process = os.getpid()
        self._connection: psycopg.Connection[Row] | None = None
        self._flush: Flush | None = None
        self._was_reached = False  # and so something may have been stored already, by us or for us

    def another(self, *, reviving: bool = True) -> "Database":
        """Return the same database for another connection; if not `reviving`, one that starts no server again."""
        revive = self._revive if reviving else None
        other = Database(self.url, pooled=self.pooled, durable=self._durable, revive=revive)
        other._was_reached = self._was_reached
        return other

    def close(self) -> None:
        """Close the connection; the next use makes a new one."""
        with self._lock:
            self._drop()

    @contextmanager
    def transaction(
        self, *, ledger: str | None = None, tenant: str | None = None, snapshot: bool = False
    ) -> Generator[psycopg.Connection[Row]]:
        """Hold the connection for one READ COMMITTED transaction; inside another one, for a part of that.

        With `snapshot` all that it reads is of one moment, that of its first query, and it writes nothing.

        Row-level security shows it the rows of `ledger` and the row of `tenant`; where they are not given, what the
        transaction around it sees. A connection that cannot be made, or that is lost, is UNAVAILABLE; lost while it
        commits, the outcome is unknown, and the message says so. What our role may not do is FORBIDDEN_ACTOR.
        A database without writes, or with another schema: as `driver.refusal`.
        """
        with self._lock:
            depth, around = self._depth, self._sight
            sight = Sight(
                around.ledger if ledger is None else ledger,
                around.tenant if tenant is None else tenant,
            )
            try:
                connection = self._connected() if depth == 0 else self._held()
                self._depth, self._sight = depth + 1, sight
                with self._whole(connection, sight, snapshot) if depth == 0 else _part(connection, sight, around):
                    yield connection
            except psycopg.Error as error:
                self._tell(error)
                raise
            finally:
                self._depth, self._sight = depth, around
                # Whatever interrupted us, a signal included: a transaction that stayed open would swallow the next
                # ones, and they would be acknowledged without ever being committed.
                if depth == 0 and not self._is_idle():
                    self._drop()

    def read_together(self, reads: Sequence[Write], *, ledger: str) -> list[list[Row]]:
        """Return the rows of some queries, asked in one transaction of their own and in one round trip.

        Every placeholder has its cast, as in `wire`. Each query sees what is committed when it runs. Errors: as of
        `transaction`, inside which this is not to be used.
        """
        sight = Sight(ledger, self._sight.tenant)
        before, after = [Write(QUERIES["see"], sight._asdict())], list[Write]()
        if self.pooled:  # elsewhere the flush is a transaction without being told, at the level of the session
            before, after = [Write(QUERIES["begin"], {}), *before], [Write(QUERIES["commit"], {})]
        with self._lock:
            try:
                flush = self._flush_on(self._connected())
                answers = flush.run([*before, *reads, *after])
            except psycopg.Error as error:
                self._roll_back()
                self._tell(error)
                raise
            finally:
                if not self._is_idle():
                    self._drop()
        return [rows(answer) for answer in answers[len(before) : len(before) + len(reads)]]

    def _flush_on(self, connection: psycopg.Connection[Row]) -> Flush:
        if self._flush is None or self._flush.connection is not connection:
            self._flush = Flush(connection, prepare=not self.pooled)
        return self._flush

    def _roll_back(self) -> None:
        if self._is_alive() and self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.rollback()

    def _tell(self, error: psycopg.Error) -> None:
        """Raise what an error of the driver means; return where it has no other meaning."""
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            raise self._unavailable(error) from error
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            raise _forbidden(error, self.role) from error
        if (meaning := driver.refusal(error)) is not None:
            raise meaning from error

    @contextmanager
    def connected(self) -> Generator[psycopg.Connection[Row]]:
        """Hold the connection for whoever begins and ends transactions alone; the driver's errors are theirs."""
        with self._lock:
            try:
                yield self._connected()
            finally:
                if not self._is_idle():
                    self._drop()

    @contextmanager
    def _whole(self, connection: psycopg.Connection[Row], sight: Sight, snapshot: bool) -> Generator[None]:
        """Begin a transaction and say what it sees in one round trip, and end it."""
        begin = self._begins.get((sight, snapshot))
        if begin is None:  # made once: it takes longer than all else that is done here
            query = QUERIES["begin_snapshot" if snapshot else "begin_seeing"]
            begin = psycopg.ClientCursor(connection).mogrify(query, sight._asdict()).encode()
            self._begins[sight, snapshot] = begin
        connection.execute(begin, prepare=False)
        try:
            yield
        except BaseException:
            with suppress(psycopg.Error):  # a connection that is lost, or still open after this, is dropped
                connection.rollback()
            raise
        connection.commit()

    @property
    def is_in_transaction(self) -> bool:
        """Report whether a transaction is open."""
        return self._depth > 0

    @property
    def is_connected(self) -> bool:
        """Report whether the next use finds a connection; one that was lost has been let go of."""
        return self._connection is not None

    @property
    def role(self) -> str:
        """Return the role that we last logged in as."""
        return "" if self._connection is None else self._connection.info.user

    def _connected(self) -> psycopg.Connection[Row]:
        if self._process != os.getpid():
            refuse("UNAVAILABLE", "This ledger was opened before the process forked. Open it anew in the new process.")
        if self._connection is None or not self._is_idle():
            self._drop()
            self._connection = self._prepared()
            self._was_reached = True
        return self._connection

    def _held(self) -> psycopg.Connection[Row]:
        if self._connection is None:
            raise psycopg.OperationalError("the connection was lost inside a transaction")
        return self._connection

    def _prepared(self) -> psycopg.Connection[Row]:
        connection = self._connect()
        self._begins.clear()
        try:
            connection.isolation_level = IsolationLevel.READ_COMMITTED
            # Flushes without BEGIN rely on it. `options` in the URL would do, but displace those of a service file
            # or of PGOPTIONS. A pooler's sessions are not ours, and there each transaction says it.
            if not self.pooled:
                connection.execute(QUERIES["pin_isolation"])
            # Only flushes prepare. The driver would, after a roll-back, remove everything that is prepared, theirs too.
            connection.prepare_threshold = None
            if self._durable:
                _check_durable(dict(connection.execute(QUERIES["durability"]).fetchall()))
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> psycopg.Connection[Row]:
        try:
            return self._dial()
        except psycopg.ProgrammingError as error:
            raise failure(
                "VALIDATION_FAILED",
                "The database URL should be a PostgreSQL connection string (postgresql://user@host/name, or key=value "
                "pairs), and it is not. Check --database-url and CORRIGENDA_DATABASE_URL.",
            ) from error
        except psycopg.OperationalError:
            if self._revive is None:
                raise
            self.url = self._revive()
            return self._dial()

    def _dial(self) -> psycopg.Connection[Row]:
        return psycopg.connect(
            self.url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S, application_name="corrigenda"
        )

    def _unavailable(self, error: Exception) -> Exception:
        if not self._was_reached:
            return _unreachable(error)
        return _unavailable(error, lost=not self._is_alive())

    def _is_alive(self) -> bool:
        return self._connection is not None and not (self._connection.broken or self._connection.closed)

    def _is_idle(self) -> bool:
        connection = self._connection
        return connection is not None and connection.pgconn.transaction_status == TransactionStatus.IDLE

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def check_schema(self) -> None:
        """Refuse with SCHEMA_MISMATCH unless the schema is the one this version works with. One SELECT."""
        found = self.schema_version()
        if found == LATEST:
            return
        if found is None:
            refuse(
                "SCHEMA_MISMATCH",
                f"The database should hold the ledger's schema, version {LATEST}, and it holds none. Run "
                "`corrigenda db init` once to make it.",
                expected=LATEST,
                found=None,
            )
        newer = found > LATEST
        mend = "Install the version that made it." if newer else "Run `corrigenda db migrate`."
        refuse(
            "SCHEMA_MISMATCH",
            f"The ledger's schema should be of version {LATEST}, and it is of version {found}. {mend}",
            expected=LATEST,
            found=found,
        )

    def schema_version(self) -> str | None:
        """Return the version of the ledger's schema in this database, or None if it has none."""
        try:
            with self.transaction() as connection:
                row = connection.execute(QUERIES["schema_version"]).fetchone()
        except CorrigendaError as error:
            if isinstance(error.__cause__, driver.NO_SCHEMA):
                return None
            raise
        return None if row is None else str(row[0])

    def own_role(self) -> OwnRole:
        """Return what the role that we log in as may do. One SELECT."""
        with self.transaction() as connection:
            found = connection.execute(QUERIES["own_role"]).fetchall()
        return OwnRole(*found[0])

    def check_durability(self) -> None:
        """Refuse with UNAVAILABLE a server that may lose what it acknowledged."""
        with self.transaction() as connection:
            _check_durable(dict(connection.execute(QUERIES["durability"]).fetchall()))


class Store:
    """The tables of one ledger."""

    def __init__(self, database: Database, ledger: str) -> None:
        self.database = database
        self.ledger = ledger

    def transaction(self, *, snapshot: bool = False) -> AbstractContextManager[psycopg.Connection[Row]]:
        """Hold one transaction that sees this ledger; see Database.transaction."""
        return self.database.transaction(ledger=self.ledger, snapshot=snapshot)

    def another(self, *, reviving: bool = True) -> "Store":
        """Return the same tables for another connection; see Database.another."""
        return Store(self.database.another(reviving=reviving), self.ledger)

    def head(self, *, lock: bool = False) -> HeadRow:
        """Return the guarded row; with `lock`, nobody else appends until the transaction ends."""
        row = self._one("lock_head" if lock else "read_head")
        if row is None:
            raise no_head_row()
        return HeadRow(*row)

    def tip(
        self, position: int, limit: int, further: Collection[int] = (), beside: Sequence[Write] = ()
    ) -> tuple[HeadRow, int, list[Stored], dict[int, Stored], list[list[Row]]]:
        """Return the guarded row, the last position that there was at that moment, and what `after` returns.

        All of it in one round trip; events that were appended meanwhile may be among them. So are the `further` events
        that are there, by their positions, as `at` returns them, and the rows of the queries `beside`: they are read
        after the row.
        """
        tip = Write(QUERIES["read_tip"], {"ledger": self.ledger})
        page = Write(QUERIES["read_after"], {"ledger": self.ledger, "after": position, "until": position + limit})
        named = [Write(QUERIES["read_positions"], {"ledger": self.ledger, "seqs": sorted(further)})] if further else []
        found, rows, *more = self.together([tip, page, *named, *beside])
        if not found:
            raise no_head_row()
        *head, last = found[0]
        row = HeadRow(*head)
        events = [_bare(one) for one in rows] if rows or row.seq <= position else self.after(position, limit)
        told = {one.seq: one for part in more[: len(named)] for one in map(_stored, part)}
        return row, last, events, told, more[len(named) :]

    def after(self, position: int, limit: int) -> list[Stored]:
        """Return at most `limit` events above a position, in order, without their payloads; none only at the end."""
        return [_bare(row) for row in self._page("read_after", position, limit)]

    def whole_after(self, position: int, limit: int) -> list[Row]:
        """Return at most `limit` events above a position with every column of their table, as `after` does."""
        return self._page("read_whole_after", position, limit)

    def expect_pages(self) -> None:
        """Let the connection take large pieces at a time: at first it is 16 KiB, some 150 for a page of 1,000 events.

        Without it, or on another connection, pages are read as well, with three times as many waits.
        """
        self._all("large_row")

    def whole_page(self, position: int, limit: int) -> tuple[list[Row], list[Row]]:
        """Return what `whole_after` does, and the payloads of the same positions (seq, salt, body), in one round trip.

        They are read behind the events: whoever stored an event that was seen had stored its payload by then.
        """
        bounds = {"ledger": self.ledger, "after": position, "until": position + limit}
        rows, payloads = self.together([Write(QUERIES[one], bounds) for one in ("read_whole_after", "read_payloads")])
        if not rows and (rows := self.whole_after(position, limit)):  # above a gap
            payloads = self._all("read_payloads", after=position, until=int(rows[-1][0]))
        return rows, payloads

    def before(self, position: int, limit: int) -> list[Row]:
        """Return at most `limit` events below a position, newest first: seq, envelope, hash, seal."""
        return self._all("read_before", before=position, limit=limit)

    def at(self, positions: Iterable[int]) -> list[Stored]:
        """Return the events at some positions, with their payloads; what is not there is left out."""
        return [_stored(row) for row in self._all("read_positions", seqs=sorted(set(positions)))]

    def stream(self, stream: str) -> list[Stored]:
        """Return a stream's events in order, with their payloads."""
        return [_stored(row) for row in self._all("read_stream", stream=stream)]

    def streams(self, streams: Iterable[str]) -> list[tuple[str, Stored]]:
        """Return the events of some streams, each stream's in order, with their payloads."""
        rows = self._all("read_streams", streams=sorted(set(streams)))
        return [(str(row[0]), _stored(row[1:])) for row in rows]

    def in_streams(self, streams: Sequence[str], places: Sequence[int]) -> list[Stored]:
        """Return the event at a place in each of some streams, without payloads; what is not there is left out."""
        return [_bare(row) for row in self._all("read_places", streams=list(streams), places=list(places))]

    def outbox(self, *, after: int, until: int, limit: int) -> list[OutboxRow]:
        """Return outbox rows above `after` up to `until`: position, revision, effect, lineage."""
        return _outbox(self._all("read_outbox", after=after, until=until, limit=limit))

    def outbox_page(self, *, after: int, until: int, limit: int) -> tuple[list[OutboxRow], int]:
        """Return about `limit` of these rows, whole events only, and the position that carrying them reaches."""
        return self.outbox_page_and(after=after, until=until, limit=limit, beside=())[:2]

    def outbox_page_and(
        self, *, after: int, until: int, limit: int, beside: Sequence[Write]
    ) -> tuple[list[OutboxRow], int, list[list[Row]]]:
        """Return the same, and the rows of the queries `beside`, read after these in the same round trip."""
        while True:
            params = {"ledger": self.ledger, "after": after, "until": until, "limit": limit}
            found, *more = self.together([Write(QUERIES["read_outbox"], params), *beside])
            rows = _outbox(found)
            if len(rows) < limit:
                return rows, until, more
            whole = [row for row in rows if row[0] < rows[-1][0]]
            if whole:
                return whole, whole[-1][0], more
            limit *= 2

    def pending_of(self, identifiers: Iterable[str], *, after: int) -> set[str]:
        """Return which of these revisions and corrections have outbox rows above a position."""
        wanted = list(identifiers)
        return {row[0] for row in self._all("read_pending", after=after, revisions=wanted)} if wanted else set()

    def count(self, query: str, **params: Any) -> int:  # Any: as Params
        """Return the one number that a counting query gives."""
        row = self._one(query, **params)
        return 0 if row is None else int(row[0])

    def object(self, evidence: str) -> bytes | None:
        """Return the bytes of evidence that lie under a stream, unchecked; None if there are none."""
        row = self._one("read_object", evidence=evidence)
        return None if row is None else bytes(row[0] or b"")

    def vectors(self, contents: Sequence[bytes], signature: str) -> list[Row]:
        """Return content digest, vector and seal of each stored vector."""
        return self._all("read_vectors", contents=list(contents), signature=signature)

    def write(self, query: str, **params: Any) -> Row | None:  # Any: as Params
        """Run one writing query, and return its first row if it has one."""
        with self.transaction() as connection:
            cursor = connection.execute(QUERIES[query], {"ledger": self.ledger, **params})
            return cursor.fetchone() if cursor.description else None

    def query(self, query: str, params: Params) -> list[Row]:
        """Return the rows of a query of another floor; asked again where the connection had been lost meanwhile."""
        return self.together([Write(query, {"ledger": self.ledger, **params})])[0]

    @contextmanager
    def through(self, other: "Store") -> Generator[None]:
        """Read on the connection of another store of this ledger, inside its transaction, while the block lasts."""
        own, self.database = self.database, other.database
        try:
            yield
        finally:
            self.database = own

    def together(self, reads: Sequence[Write]) -> list[list[Row]]:
        """Return the rows of each of some queries, in one round trip where each says what its parameters are."""
        alone = not self.database.is_in_transaction
        try:
            return self._together(reads)
        except UnavailableError:
            if not alone or self.database.is_connected:
                raise
        return self._together(reads)

    def _together(self, reads: Sequence[Write]) -> list[list[Row]]:
        if not self.database.is_in_transaction and all(is_typed(read.query) for read in reads):
            return self.database.read_together(reads, ledger=self.ledger)
        with self.transaction() as connection:
            return [connection.execute(read.query.encode(), read.params, binary=True).fetchall() for read in reads]

    def _all(self, query: str, **params: Any) -> list[Row]:  # Any: as Params
        return self.query(QUERIES[query], params)

    def _page(self, query: str, position: int, limit: int) -> list[Row]:
        """Return the rows of the next `limit` positions; where rows were removed, those above the gap."""
        rows = self._all(query, after=position, until=position + limit)
        if rows:
            return rows
        further = self._one("next_position", after=position)
        if further is None or further[0] is None:
            return []
        below = int(further[0]) - 1
        return self._all(query, after=below, until=below + limit)

    def _one(self, query: str, **params: Any) -> Row | None:  # Any: as Params
        rows = self._all(query, **params)
        return rows[0] if rows else None


@contextmanager
def _part(connection: psycopg.Connection[Row], sight: Sight, around: Sight) -> Generator[None]:
    """Hold a part of a transaction; if it sees something else than the whole, only as long as it lasts."""
    with connection.transaction():
        if sight != around:
            connection.execute(QUERIES["see"], sight._asdict())
        yield
        if sight != around:
            connection.execute(QUERIES["see"], around._asdict())


def _check_durable(found: dict[str, str]) -> None:
    wanted = {"fsync": "on", "full_page_writes": "on", "zero_damaged_pages": "off", "ignore_checksum_failure": "off"}
    wrong = [f"{name}={found.get(name)}" for name, value in wanted.items() if found.get(name) != value]
    if found.get("synchronous_commit") in ("off", "local"):
        wrong.append(f"synchronous_commit={found['synchronous_commit']}")
    if wrong:
        refuse(
            "UNAVAILABLE",
            f"A ledger needs a server that keeps what it acknowledged, and this one runs with {', '.join(wrong)}. "
            "Mend the settings; nothing was written.",
            settings=wrong,
        )


def _bare(row: Row) -> Stored:
    seq, envelope, seal = row  # whoever tampers with the tables may have emptied a column
    return Stored(seq, envelope or b"", seal or b"", None, None)


def _outbox(rows: Iterable[Row]) -> list[OutboxRow]:
    return [(seq, revision, effect, lineage) for seq, revision, effect, lineage in rows]


def _stored(row: Row) -> Stored:
    seq, envelope, seal, salt, body = row
    return Stored(seq, envelope or b"", seal or b"", salt, body)


def identifier(name: str) -> str:
    """Return a name as SQL writes it, for a statement that a person is told to run."""
    return sql.Identifier(name).as_string()


def _forbidden(error: Exception, role: str) -> Exception:
    said = driver.said(error)
    return failure(
        "FORBIDDEN_ACTOR",
        f"The database role {role} may not do this in the database ({said}); nothing was stored. A service logs in as "
        f"a member of corrigenda_writer, which the tables' owner makes: GRANT corrigenda_writer TO {identifier(role)}. "
        "`corrigenda db init` and `corrigenda db migrate` need the owner's URL.",
        role=role,
    )


def _unreachable(error: Exception) -> Exception:
    return failure(
        "UNAVAILABLE",
        f"The database was needed, and no connection to it could be made ({driver.said(error)}); nothing was stored. "
        "Check that the server runs and the URL is right.",
    )


def _unavailable(error: Exception, *, lost: bool) -> Exception:
    said = driver.said(error)
    if lost:
        return failure(
            "UNAVAILABLE",
            f"The database was needed and does not answer ({said}). If this was a write, whether it took effect is "
            "not known: repeat it with the same idempotency key. Check that the server runs and the URL is right.",
        )
    return failure("UNAVAILABLE", f"The database refused for now ({said}); nothing was stored. Try again.")


def no_head_row() -> Exception:
    """Return INTEGRITY_BROKEN for a ledger whose head row somebody removed."""
    return failure(
        "INTEGRITY_BROKEN",
        "The ledger's head row is gone, so nothing says where the ledger ends. Nothing is served. Restore the row from "
        "a backup.",
        position=0,
        check="chain",
    )
