"""The floor: our rows under our guard through our driver, and nothing else. What an append takes above it is Python's.

Random bytes stand for envelopes, hashes and seals. Nothing is encoded, linked, sealed, looked up, hashed into a tree or
anchored here, and nobody could verify what is left, so it lies in a database of its own.
"""

import os
import queue
import threading
from collections.abc import Generator
from contextlib import contextmanager

import psycopg

from benchmarks.workload import Append, Writer
from ledger.appending import PROJECTOR_VERSION
from ledger.clock import new_ulid
from ledger.flush import Flush
from ledger.limits import GROUP_EVENTS_MAX
from ledger.store import QUERIES
from ledger.wire import Row, Write

ENVELOPE_BYTES, PAYLOAD_BYTES, SEAL_BYTES, SALT_BYTES, HASH_BYTES = 830, 330, 40, 32, 32
LOCK_TIMEOUT_MS = "5000"
ANSWER_S = 60


class Floor:
    """Stores groups of made-up rows on one connection, for one thread at a time."""

    def __init__(self, connection: psycopg.Connection[Row], ledger: str) -> None:
        self._flush = Flush(connection, prepare=True)
        self._ledger = ledger
        entering = {"ledger": ledger, "lock_timeout": LOCK_TIMEOUT_MS}
        self._enter = Write(QUERIES["enter"], entering)
        self._envelope, self._body = os.urandom(ENVELOPE_BYTES), os.urandom(PAYLOAD_BYTES)
        self._seal, self._salt = os.urandom(SEAL_BYTES), os.urandom(SALT_BYTES)
        with connection.transaction():
            connection.execute(QUERIES["see"], {"ledger": ledger, "tenant": ""})
            rows = connection.execute(QUERIES["read_head"], {"ledger": ledger}).fetchall()
        self._seq, self._hash, self._incarnation, self._gen, _ = rows[0]
        self._waiting: queue.SimpleQueue[threading.Lock | None] = queue.SimpleQueue()

    def store(self, events: int = 1) -> None:
        """Store so many events in one durable transaction."""
        hashes = [os.urandom(HASH_BYTES) for _ in range(events)]
        guard = {
            "ledger": self._ledger, "old_seq": self._seq, "old_hash": self._hash, "gen": self._gen,
            "projector": PROJECTOR_VERSION, "incarnation": self._incarnation,
            "seq": self._seq + events, "hash": hashes[-1],
        }  # fmt: skip
        rows = self._row(hashes[0]) if events == 1 else self._columns(hashes)
        write = Write(QUERIES["append_single" if events == 1 else "append"], guard | rows)
        self._flush.run([self._enter, write])  # a transaction, as the committer sends it
        self._seq, self._hash = self._seq + events, hashes[-1]

    def _row(self, hash_: bytes) -> dict[str, object]:
        return {
            "stream": f"mem_{new_ulid()}", "stream_seq": 0, "envelope": self._envelope, "seal": self._seal,
            "request": hash_, "salt": self._salt, "body": self._body,
        }  # fmt: skip

    def _columns(self, hashes: list[bytes]) -> dict[str, object]:
        many = len(hashes)
        seqs = [*range(self._seq + 1, self._seq + 1 + many)]
        return {
            "seqs": seqs, "streams": [f"mem_{new_ulid()}" for _ in hashes], "stream_seqs": [0] * many,
            "envelopes": [self._envelope] * many, "hashes": hashes, "seals": [self._seal] * many, "requests": hashes,
            "payload_seqs": seqs, "salts": [self._salt] * many, "bodies": [self._body] * many,
        }  # fmt: skip

    @contextmanager
    def alone(self, _: int) -> Generator[Append]:
        """Give the only caller, whose every call is one event."""
        yield self.store

    @contextmanager
    def among_others(self, _: int) -> Generator[Append]:
        """Give one of several callers, whose events a thread stores together while `work` runs."""

        def append() -> None:
            stored = threading.Lock()
            stored.acquire()
            self._waiting.put(stored)
            if not stored.acquire(timeout=ANSWER_S):
                raise RuntimeError("nothing was stored: see what the thread that stores has to say")

        yield append

    def work(self) -> None:
        """Store what waits, group by group, until `end`."""
        while (first := self._waiting.get()) is not None:
            group = [first]
            while len(group) < GROUP_EVENTS_MAX and not self._waiting.empty():
                further = self._waiting.get()
                if further is None:
                    self.end()
                    break
                group.append(further)
            self.store(len(group))
            for stored in group:
                stored.release()

    def end(self) -> None:
        """Let `work` come to its end, once all before this was stored."""
        self._waiting.put(None)


@contextmanager
def floor(url: str, *, threads: int) -> Generator[Writer]:
    """Give what so many callers append with, for as long as the block runs, to a database that `ours.prepare` made."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.prepare_threshold = None
        made = Floor(connection, _ledger(connection))
        if threads == 1:
            yield made.alone
            return
        worker = threading.Thread(target=made.work)
        worker.start()
        try:
            yield made.among_others
        finally:
            made.end()
            worker.join()


def _ledger(connection: psycopg.Connection[Row]) -> str:
    with connection.transaction():
        connection.execute(QUERIES["see"], {"ledger": "", "tenant": "local"})
        ((ledger,),) = connection.execute(QUERIES["find_tenant"], {"tenant": "local"}).fetchall()
    return str(ledger)
