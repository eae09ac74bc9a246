"""The yardstick: a durable insert of one row into a table with one index, and nothing else."""

from collections.abc import Generator
from contextlib import contextmanager

import psycopg

from benchmarks.server import QUERIES
from benchmarks.workload import Append, body


class Bare:
    """Bare inserts."""

    def __init__(self, url: str) -> None:
        self._url = url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(QUERIES["create_bare"])

    @contextmanager
    def writer(self, number: int) -> Generator[Append]:
        """Give a caller of its own connection, whose every call is one durable row."""
        row = {"body": body(number)}
        with psycopg.connect(self._url, autocommit=True) as connection:
            yield lambda: connection.execute(QUERIES["insert_bare"], row, prepare=True)
