"""The look-ups that an append may make while it holds the head, in a ledger that the planner knows nothing of.

The tables are analysed while they are empty and filled with autovacuum off: the plans that a new ledger gets.
Statements are prepared, as the ledger's own connections prepare them, and the median of many calls is the figure.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import psycopg

import migrations
from benchmarks import server
from benchmarks.verify_rate import build
from ledger.store import QUERIES

EVENTS = 200_000
KEYS = 500
CALLS = 50


def measure(server_url: str, home: Path) -> dict[str, float]:
    """Return, by statement, the median milliseconds of a look-up of 500 keys."""
    home.mkdir(mode=0o700)
    with server.fresh_database(server_url) as url:
        migrations.upgrade(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
            connection.execute(server.QUERIES["autovacuum_off"])
        store = build(url, home, EVENTS, "ulid")
        with psycopg.connect(url, autocommit=True) as connection:
            return {name: _time(connection, name, keys, store.ledger) for name, keys in _keys(connection).items()}


def _keys(connection: psycopg.Connection[Any]) -> dict[str, dict[str, Sequence[object]]]:
    """Return the parameters of each look-up: 500 events anywhere in the ledger."""
    chosen = Random(0).sample(range(1, EVENTS), KEYS)
    rows = connection.execute(server.QUERIES["sample_events"], {"seqs": chosen}).fetchall()
    return {"read_positions": {"seqs": [seq for seq, _, _ in rows]}}


def _time(connection: psycopg.Connection[Any], name: str, keys: dict[str, Sequence[object]], ledger: str) -> float:
    times: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        found = connection.execute(QUERIES[name], {"ledger": ledger, **keys}, prepare=True, binary=True).fetchall()
        times.append(time.perf_counter() - began)
        assert len(found) == KEYS, f"{name} found {len(found)} of {KEYS}"
    return median(times) * 1000
