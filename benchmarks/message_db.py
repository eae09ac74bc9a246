"""message-db, by its own SQL functions, over the same driver as everybody else here."""

import json
import os
import time
import uuid
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

from benchmarks.server import QUERIES
from benchmarks.workload import Append, Run, body

PAGE = 1_000
SEARCH_PATH = "-c search_path=message_store,public"
# Its installer's order. Left out: roles and privileges (the server may be somebody's) and the extension pgcrypto, which
# it wants for gen_random_uuid() alone; PostgreSQL has had that function itself since version 13.
SOURCES = (
    "schema/message-store.sql",
    "tables/messages.sql",
    "types/message.sql",
    "functions/message-store-version.sql",
    "functions/hash-64.sql",
    "functions/acquire-lock.sql",
    "functions/category.sql",
    "functions/is-category.sql",
    "functions/id.sql",
    "functions/cardinal-id.sql",
    "functions/stream-version.sql",
    "functions/write-message.sql",
    "functions/get-stream-messages.sql",
    "functions/get-category-messages.sql",
    "functions/get-last-stream-message.sql",
    "indexes/messages-id.sql",
    "indexes/messages-stream.sql",
    "indexes/messages-category.sql",
)


class MessageDb:
    """A message store in a database of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        with psycopg.connect(url, autocommit=True, options=SEARCH_PATH) as connection:
            for source in SOURCES:
                connection.execute((folder / source).read_bytes())

    @contextmanager
    def _connected(self) -> Generator[psycopg.Connection]:
        with psycopg.connect(self._url, autocommit=True, options=SEARCH_PATH) as connection:
            yield connection

    @contextmanager
    def writer(self, _: int) -> Generator[Append]:
        """Give a caller with a stream of its own, whose every call is one message at an expected version."""
        stream, versions = f"episode-{_uuid()}", count(-1)

        with self._connected() as connection:

            def append() -> None:
                version = next(versions)
                row = {"id": str(_uuid()), "stream": stream, "data": body(version).decode(), "version": version}
                connection.execute(QUERIES["write_message"], row, prepare=True).fetchone()

            yield append

    @contextmanager
    def batches(self, size: int) -> Generator[Append]:
        """Give a caller whose every call is `size` messages of a new stream in one transaction."""
        with self._connected() as connection:

            def append() -> None:
                ids = [str(_uuid()) for _ in range(size)]
                rows = {"stream": f"episode-{_uuid()}", "ids": ids, "bodies": [body(i).decode() for i in range(size)]}
                connection.execute(QUERIES["write_messages"], rows, prepare=True).fetchall()

            yield append

    def count(self) -> Run:
        """Count the events of each stream, page by page: the simplest read model there is, one transaction a page."""
        with self._connected() as connection:
            connection.execute("ANALYZE")  # its pages are read by a sort of everything until it has statistics
            connection.execute(QUERIES["drop_counts"])
            connection.execute(QUERIES["create_counts"])
            connection.execute(QUERIES["create_progress"])
            began = time.perf_counter()
            events, position = 0, 1
            while rows := _page(connection, position):
                counts = Counter(stream for stream, _, data in rows if json.loads(data))
                position = rows[-1][1] + 1
                events += len(rows)
                _keep(connection, counts, position)
            seconds = time.perf_counter() - began
        return Run(events, seconds, [seconds])


def _page(connection: psycopg.Connection, position: int) -> list[tuple[str, int, str]]:
    page = {"position": position, "limit": PAGE}
    return connection.execute(QUERIES["read_category"], page, prepare=True).fetchall()


def _keep(connection: psycopg.Connection, counts: Counter[str], position: int) -> None:
    rows = {"streams": list(counts), "events": list(counts.values())}
    with connection.pipeline(), connection.transaction():
        connection.execute(QUERIES["upsert_counts"], rows, prepare=True)
        connection.execute(QUERIES["upsert_progress"], {"position": position}, prepare=True)


def _uuid() -> uuid.UUID:
    return uuid.UUID(bytes=os.urandom(16), version=4)
