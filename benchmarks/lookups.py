"""The look-ups of an append and of an answer: 500 streams, 500 idempotency keys, 500 positions.

Streams and keys are asked of the anchor, positions of PostgreSQL, whose tables are analysed while they are empty and
filled with autovacuum off: a new ledger, that the planner knows nothing of. The median of many calls is the figure.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import psycopg

import migrations
from benchmarks import server, verify_rate
from ledger.clock import system_clock
from ledger.opening import KeyFiles, open_ledger
from ledger.store import Database

EVENTS = 200_000
KEYS = 500
CALLS = 50


def measure(server_url: str, home: Path) -> dict[str, float]:
    """Return, by what is looked up, the median milliseconds of a look-up of 500."""
    home.mkdir(mode=0o700)
    with server.fresh_database(server_url) as url:
        migrations.upgrade(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
            for table in ("event", "payload"):
                connection.execute(server.QUERIES[f"autovacuum_off_{table}"])
        verify_rate.build(url, home, EVENTS, "ulid").database.close()
        return _times(url, home)


def _times(url: str, home: Path) -> dict[str, float]:
    """Anchor the ledger, and time the look-ups of 500 of its events."""
    database = Database(server.as_writer(url))
    files = KeyFiles(home / "ledger.key", home / "signing.pem")
    ledger = open_ledger(database, tenant="local", files=files, anchors=home / "anchor", clock=system_clock)
    try:
        ledger.catch_up()
        positions = Random(0).sample(range(1, EVENTS), KEYS)
        streams, requests = _keys(url, positions)
        return {
            "streams": _time(lambda: ledger.walk.ends(streams)),
            "idempotency keys": _time(lambda: ledger.walk.carried_out(requests)),
            "positions": _time(lambda: ledger.store.at(positions)),
        }
    finally:
        ledger.close()
        database.close()


def _keys(url: str, positions: Sequence[int]) -> tuple[list[str], list[str]]:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(server.QUERIES["sample_events"], {"seqs": list(positions)}).fetchall()
    return [stream for stream, _ in rows], [bytes(request).hex() for _, request in rows]


def _time(look_up: Callable[[], Any]) -> float:  # Any: a collection of what was found
    times: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        found = look_up()
        times.append(time.perf_counter() - began)
        assert len(found) == KEYS, f"{len(found)} of {KEYS} were found"
    return median(times) * 1000
