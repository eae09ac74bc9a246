"""The oracle that a test which writes ends with: chain, read models, outbox and index say one and the same thing.

It reads the tables itself and folds them itself, so that a projector, a relay or a cache that went astray is found.
"""

import json
import re
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from msgspec import Struct

from gateway.bootstrap import make_index, open_bare
from gateway.settings import read_settings
from ledger.errors import CorrigendaError
from ledger.governance import NameAssigned
from ledger.memories import LINEAGE, LineageState
from ledger.opening import attach, find_ledger
from ledger.scope import namespace
from ledger.store import Database
from ledger.verified import Recorded, VerifiedLedger
from projections.embedders import Embedder, Vectors
from projections.relay import Relay, partition
from tests.roles import as_owner

Row = tuple[Any, ...]  # Any: a query's own columns


class WordsEmbedder:
    """An embedder that is quick and predictable: texts are near each other if they share words."""

    signature = "provider=test;model=words"
    dimension = 256

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text: a bag of its words, hashed, and a little that all texts share."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[0] = 0.1
            for word in re.findall(r"\w+", text.lower()):
                row[1 + zlib.crc32(word.encode()) % (self.dimension - 1)] += 1.0
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


WORDS = WordsEmbedder()


class Written(Struct, frozen=True, kw_only=True):
    """One event as its envelope in the database says, read without any of the product's code."""

    seq: int
    type: str
    stream: str
    stream_seq: int
    op: str
    op_index: int
    op_count: int
    actor: str
    facts: dict[str, Any]  # Any: JSON


class Refusal:
    """What was refused, once the block that expected it has ended."""

    error: CorrigendaError

    @property
    def details(self) -> dict[str, Any]:
        """Return the refusal's details."""
        return self.error.details


@contextmanager
def refused(code: str) -> Generator[Refusal]:
    """Expect a refusal of that code, in one paragraph that says what to do."""
    refusal = Refusal()
    try:
        yield refusal
    except CorrigendaError as error:
        assert error.code == code, f"{error.code}: {error.message}"
        assert "\n" not in error.message and len(error.message) > 20
        refusal.error = error
    else:
        raise AssertionError(f"{code} was expected, and nothing was refused")


def rows(ledger_url: str, query: str, *params: object) -> list[Row]:
    """Return what a query of the test's own finds; the owner sees every row."""
    with psycopg.connect(as_owner(ledger_url)) as connection:
        return connection.execute(query.encode(), params).fetchall()


def tamper(ledger_url: str, *statements: tuple[str, Sequence[object]]) -> None:
    """Change tables as their owner would, with triggers and foreign keys out of the way."""
    with psycopg.connect(as_owner(ledger_url)) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement, params in statements:
            done = connection.execute(statement.encode(), params)
            assert done.rowcount > 0, f"nothing was changed by {statement}"


def written(ledger_url: str, *, above: int = -1) -> list[Written]:
    """Return the ledger's events above a position, in order."""
    found = rows(ledger_url, "SELECT seq, envelope FROM corrigenda.event WHERE seq > %s ORDER BY seq", above)
    return [_written(seq, json.loads(bytes(envelope))) for seq, envelope in found]


def types(events: Sequence[Written]) -> list[str]:
    """Return the types of some events without their version."""
    return [event.type.removesuffix(".v1") for event in events]


def last_position(ledger_url: str) -> int:
    """Return the ledger's last position as its head row gives it."""
    return rows(ledger_url, "SELECT seq FROM corrigenda.head")[0][0]


def assert_house_in_order(ledger_url: str, home: Path, *, embedder: Embedder = WORDS, tenant: str = "local") -> None:
    """Fail unless a tenant's chain verifies, and read models, outbox and index are what its events make of them."""
    with open_bare(database_url=ledger_url, home=home, tenant=tenant, create=False) as bare:
        report = bare.verify()
        assert report.ok, report.checks
    database = Database(ledger_url)
    try:
        found = find_ledger(database, tenant)
        assert found is not None
        files = read_settings(database_url=ledger_url, home=home).keys
        ledger = attach(database, ledger=found, tenant=tenant, files=files)
        size = ledger.catch_up() + 1
        seqs = rows(ledger_url, "SELECT seq FROM corrigenda.event WHERE ledger = %s ORDER BY seq", found)
        assert [seq for (seq,) in seqs] == [*range(size)]
        recorded = ledger.at(range(size))
        events = [recorded[position] for position in range(size)]
        lineages = _fold(events)
        _assert_revisions(ledger_url, found, lineages)
        _assert_directory(ledger_url, found, events)
        _assert_outbox(ledger_url, found, events)
        _assert_index(ledger, home, lineages, embedder)
        ledger.close()
    finally:
        database.close()


def _written(seq: int, envelope: dict[str, Any]) -> Written:
    names = ("type", "stream", "stream_seq", "op", "op_index", "op_count", "actor", "facts")
    assert envelope["seq"] == seq
    return Written(seq=seq, **{name: envelope[name] for name in names})


def _fold(events: Sequence[Recorded]) -> dict[str, LineageState]:
    lineages: dict[str, LineageState] = {}
    for item in events:
        stream = item.entry.envelope.stream
        if stream.startswith("mem_"):
            lineages[stream] = LINEAGE.evolve(lineages.get(stream, LINEAGE.initial), item.event)
    return lineages


def _assert_revisions(ledger_url: str, ledger: str, lineages: dict[str, LineageState]) -> None:
    expected = {
        (
            revision.revision, lineage, revision.version,
            revision.values.state, revision.values.trust, revision.values.floor, revision.content_seq,
        )
        for lineage, state in lineages.items()
        for revision in state.revisions.values()
    }  # fmt: skip
    found = rows(
        ledger_url,
        "SELECT revision, lineage, version, state, trust, floor, content_seq FROM corrigenda.revision"
        " WHERE ledger = %s",
        ledger,
    )
    assert len(found) == len(expected)
    assert set(found) == expected
    for state in lineages.values():
        live = [revision.revision for revision in state.revisions.values() if revision.values.is_live]
        assert live == ([state.head] if state.head else [])


def _assert_directory(ledger_url: str, ledger: str, events: Sequence[Recorded]) -> None:
    facts = [(item.entry.envelope.facts, item.entry.position) for item in events]
    expected = {(named.id, position) for named, position in facts if isinstance(named, NameAssigned)}
    assert set(rows(ledger_url, "SELECT id, seq FROM corrigenda.directory WHERE ledger = %s", ledger)) == expected


def _assert_outbox(ledger_url: str, ledger: str, events: Sequence[Recorded]) -> None:
    found = rows(ledger_url, "SELECT seq, revision, effect, lineage FROM corrigenda.outbox WHERE ledger = %s", ledger)
    assert set(found) == {effect for item in events for effect in _effects(item)}


def _effects(item: Recorded) -> Iterator[Row]:
    """Yield what an event asks of the index: to put what became live, to remove what ceased to be."""
    for move in getattr(item.entry.envelope.facts, "moves", ()):
        was, is_now = move.before is not None and move.before.is_live, move.after.is_live
        if was != is_now:
            yield item.entry.position, move.revision, "put" if is_now else "remove", item.entry.envelope.stream


def _assert_index(ledger: VerifiedLedger, home: Path, lineages: dict[str, LineageState], embedder: Embedder) -> None:
    """Fail unless a process that starts now, from what is on the disk, comes to hold the heads and nothing else."""
    relay = Relay(
        ledger,
        home=home,
        load_embedder=lambda: embedder,
        make_index=lambda dimension: make_index("exact", dimension),
    )
    relay.open()
    assert "damaged" not in relay.opened_with
    relay.drain()
    expected: dict[str, str] = {}
    for lineage, state in lineages.items():
        if state.head is not None:
            head = state.revisions[state.head]
            space = namespace(head.visibility, head.scope)
            expected[f"{lineage}/{head.revision}"] = partition(head.values.trust, space)
    query = embedder.embed(["anything"])[0]
    held = {
        str(item): key for key in set(expected.values()) for item, _ in relay.neighbours([key], query, len(relay) + 1)
    }
    assert held == expected
    assert len(relay) == len(expected)
