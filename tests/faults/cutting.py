"""A proxy before the test's server that loses connections where a test wants it, and hands that stop a backend.

It speaks nothing: it counts bytes. What was passed on to the server stays there, as with a network that goes away.
"""

import os
import signal
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.appends import until
from tests.roles import as_owner

NAME = ".s.PGSQL.{port}"


class Proxy:
    """Stands in the way of connections; each cut is made once."""

    def __init__(self, url: str, folder: Path) -> None:
        given = conninfo_to_dict(url)
        port = given.get("port") or "5432"
        self._server = str(Path(str(given["host"])) / NAME.format(port=port))
        self.url = make_conninfo(url, host=str(folder), requirepeer="")
        self.passed = {"to the server": 0, "to the client": 0}
        self.refusing = False
        self._limits: dict[str, int] = {}
        self._parting = b""
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / NAME.format(port=port)))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self, direction: str, after: int = 0, *, parting: bytes = b"") -> None:
        """Lose the connection when that many further bytes have gone in that direction, and `parting` after them."""
        with self._lock:
            self._limits[direction], self._parting = after, parting

    def cut_now(self) -> None:
        """Lose every connection that there is."""
        for pair in self._pairs:
            _lose(*pair)

    def close(self) -> None:
        """Lose everything, and let nobody through any more."""
        _lose(self._listener)
        self.cut_now()
        for thread in self._threads:
            thread.join(10)
        for pair in self._pairs:
            for end in pair:
                end.close()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refusing:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._pairs.append((client, server))
                for way in ((client, server, "to the server"), (server, client, "to the client")):
                    self._threads.append(threading.Thread(target=self._pass_on, args=way, daemon=True))
                    self._threads[-1].start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                allowed, lost = self._allowed(direction, len(data))
                sink.sendall(data[:allowed] + (self._parting if lost else b""))
                if lost:
                    break
        _lose(source, sink)

    def _allowed(self, direction: str, size: int) -> tuple[int, bool]:
        with self._lock:
            self.passed[direction] += size
            limit = self._limits.get(direction)
            if limit is None or size <= limit:
                if limit is not None:
                    self._limits[direction] = limit - size
                return size, False
            del self._limits[direction]
            return limit, True


def _lose(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def stopped(pid: int) -> Generator[None]:
    """Stop a server process of this host for as long as the block runs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def last_committed_by(url: str) -> int:
    """Return the process id of the backend that has just committed and waits for more."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle'"
        " AND (query = 'COMMIT' OR query LIKE '%WITH moved AS%')"  # whose flush's end commits
        " ORDER BY state_change DESC LIMIT 1"
    )
    with psycopg.connect(as_owner(url), autocommit=True) as connection:
        (pid,) = until(lambda: [pid for (pid,) in connection.execute(query.encode()).fetchall()])
    return pid


def ended(url: str, pid: int) -> None:
    """Wait until a backend is gone."""
    with psycopg.connect(as_owner(url), autocommit=True) as connection:
        asked = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = %s)"
        until(lambda: [one for (one,) in connection.execute(asked.encode(), [pid]).fetchall()])
