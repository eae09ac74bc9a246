"""One flush: the statements of a transaction sent together and answered together, on the driver's own libpq objects.

The driver's pipeline polls at each statement, and so has to win back the interpreter's lock each time; here one loop
waits for all answers. What fails makes the server pass over all that comes behind it in the flush, COMMIT included.
A flush that begins no transaction is one: the server commits it when it comes to its end, and answers that with what
the commit is refused with.
"""

import select
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import count

import psycopg
from psycopg import pq
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from ledger.wire import Row, Statement, Write, statement

ANSWER_S = 30.0
_GOOD = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
_BINARY = pq.Format.BINARY


class Flush:
    """Sends flushes on one connection, for one thread at a time. Without `prepare` nothing is left on the server."""

    def __init__(self, connection: psycopg.Connection[Row], *, prepare: bool) -> None:
        self.connection = connection
        self._pgconn = connection.pgconn
        self._poll = select.poll()
        self._prepare = prepare
        self._names: dict[bytes, bytes] = {}
        self._fresh: list[bytes] = []  # what this flush is the first to name
        self._numbers = count()  # a name is not used again, even if it was never prepared

    def run(self, writes: Sequence[Write], meanwhile: Callable[[], None] | None = None) -> list[PGresult]:
        """Return the answers, one for each statement; the first error is raised as the driver's.

        Once all is sent, `meanwhile` is called: the server works, and there is nothing else to do than to wait for it.
        A connection that is lost, or a server that says nothing for 30 s, is psycopg.OperationalError: whether what the
        flush commits took effect is then not known.
        """
        encoded = _encoded(writes)  # before anything is sent: a value that cannot be sent then costs no connection
        with self._pipeline():
            self._send(encoded)
            return self._answers(meanwhile)

    def stream(self, parts: Iterable[Sequence[Write]], meanwhile: Callable[[], None] | None = None) -> None:
        """Send statements as they are made: the server works for one part while the next is made. Errors: as `run`.

        While it works for the last ones, `meanwhile` is called. What the making of a part raises costs the connection,
        and so the transaction.
        """
        with self._pipeline():
            for writes in parts:
                self._send(_encoded(writes))
                self._pgconn.flush()  # what the server does not take yet goes with the next part
            self._answers(meanwhile)

    @contextmanager
    def _pipeline(self) -> Generator[None]:
        self._pgconn.enter_pipeline_mode()
        self._fresh.clear()
        try:
            yield
        except BaseException:
            for sql in self._fresh:
                self._names.pop(sql)
            raise
        finally:
            if self._pgconn.status == pq.ConnStatus.OK:
                self._leave()

    def _send(self, encoded: Iterable[tuple[Statement, list[bytes | None]]]) -> None:
        for one, params in encoded:
            formats = [_BINARY] * len(params)
            if self._prepare:
                self._pgconn.send_query_prepared(self._name(one), params, formats, _BINARY)
            else:
                self._pgconn.send_query_params(one.sql, params, one.oids, formats, _BINARY)

    def _name(self, one: Statement) -> bytes:
        """Return under which name the server knows a statement by the time that it comes to it."""
        name = self._names.get(one.sql)
        if name is None:
            name = self._names[one.sql] = b"corrigenda_%d" % next(self._numbers)
            self._fresh.append(one.sql)
            self._pgconn.send_prepare(name, one.sql, one.oids)
        return name

    def _answers(self, meanwhile: Callable[[], None] | None = None) -> list[PGresult]:
        answers: list[PGresult] = []
        failed: PGresult | None = None
        self._pgconn.pipeline_sync()
        self._push()
        if meanwhile is not None:
            meanwhile()
        while True:
            while self._pgconn.is_busy():
                self._wait(select.POLLIN)
                self._pgconn.consume_input()
            answer = self._pgconn.get_result()
            if answer is None:
                raise psycopg.OperationalError("the connection was lost before the last answer")
            status = answer.status
            if status == ExecStatus.PIPELINE_SYNC:
                break
            self._pgconn.get_result()  # None, which ends a statement's answers: it is there, and need not be waited for
            if status in _GOOD:
                if answer.command_status:  # what was only prepared was no command
                    answers.append(answer)
            elif status != ExecStatus.PIPELINE_ABORTED and failed is None:
                failed = answer
        if failed is not None:
            raise psycopg.errors.error_from_result(failed)
        return answers

    def _push(self) -> None:
        """Send what is buffered; the server may want to be listened to meanwhile."""
        while self._pgconn.flush():
            if self._wait(select.POLLIN | select.POLLOUT) & select.POLLIN:
                self._pgconn.consume_input()

    def _wait(self, events: int) -> int:
        self._poll.register(self._pgconn.socket, events)
        ready = self._poll.poll(ANSWER_S * 1000)
        if not ready:
            self._pgconn.finish()
            raise psycopg.OperationalError(f"the server gave no answer for {ANSWER_S:.0f} s")
        return ready[0][1]

    def _leave(self) -> None:
        try:
            self._pgconn.exit_pipeline_mode()
        except psycopg.OperationalError:
            self._pgconn.finish()  # interrupted between sending and the last answer: nobody may use it any more


def _encoded(writes: Sequence[Write]) -> list[tuple[Statement, list[bytes | None]]]:
    return [(one, one.encode(write.params)) for one, write in ((statement(write.query), write) for write in writes)]
