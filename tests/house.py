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
from ledger.corrections import CorrectionRecorded, RecordStanding
from ledger.errors import CorrigendaError
from ledger.governance import NameAssigned
from ledger.memories import LINEAGE, Birth, LearningInvalidated, LineageState
from ledger.message import Values
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
        assert_read_models(ledger_url, found, lineages, events)
        _assert_outbox(ledger_url, found, events)
        _assert_index(ledger, home, lineages, _recorded(events), embedder)
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


def assert_read_models(
    ledger_url: str, ledger: str, lineages: dict[str, LineageState], events: Sequence[Recorded]
) -> None:
    """Fail unless the live generation of every read model holds what the events make of it, and nothing else."""
    ((live,),) = rows(ledger_url, "SELECT gen FROM corrigenda.head WHERE ledger = %s", ledger)
    for table, (columns, expected) in expected_rows(lineages, events).items():
        statement = f"SELECT {columns} FROM corrigenda.{table} WHERE ledger = %s AND gen = %s"  # noqa: S608 - our own words
        found = rows(ledger_url, statement, ledger, live)
        assert len(found) == len(set(expected)), table
        assert set(found) == set(expected), table
    for state in lineages.values():
        heads = [revision.revision for revision in state.revisions.values() if revision.values.is_live]
        assert heads == ([state.head] if state.head else [])


def expected_rows(lineages: dict[str, LineageState], events: Sequence[Recorded]) -> dict[str, tuple[str, list[Row]]]:
    """Return for each read model its columns and the rows that it should hold."""
    return {
        "revision": (
            "revision, lineage, version, state, trust, floor, content_seq, meta_seq, project, kind, visibility, agent,"
            " person, session",
            [row for lineage, state in lineages.items() for row in _revisions(lineage, state)],
        ),
        "revision_state": ("revision, from_seq, to_seq, lineage, state, trust, floor", _intervals(events)),
        "edge": ("kind, newer, older, from_seq, to_seq", _edges(events)),
        "log_entry": ("seq, at, type, actor, op", [_logged(item) for item in events if item.entry.position > 0]),
        "correction": (
            "correction, project, agent, person, session, visibility, origin, revision, state, content_seq",
            _corrections(events),
        ),
        "directory": ("id, seq", [*_named(events)]),
    }


def _revisions(lineage: str, state: LineageState) -> Iterator[Row]:
    for one in state.revisions.values():
        scope = one.scope
        yield (
            one.revision, lineage, one.version, one.values.state, one.values.trust, one.values.floor, one.content_seq,
            one.meta_seq, scope.project, one.kind, one.visibility, scope.agent, scope.user, scope.session,
        )  # fmt: skip


def _intervals(events: Sequence[Recorded]) -> list[Row]:
    """Return each revision's values in order, each up to where the next begin: `since` is not looked at."""
    begun: dict[str, list[tuple[int, str, tuple[str, str, str]]]] = {}
    for item in events:
        for move in getattr(item.entry.envelope.facts, "moves", ()):
            values = (move.after.state, move.after.trust, move.after.floor)
            begun.setdefault(move.revision, []).append((item.entry.position, item.entry.envelope.stream, values))
    return [
        (revision, begins, ends, lineage, *values)
        for revision, times in begun.items()
        for (begins, lineage, values), ends in zip(times, [*(at for at, _, _ in times[1:]), None], strict=True)
    ]


def _edges(events: Sequence[Recorded]) -> list[Row]:
    """Return each edge from where it was stated to where it was withdrawn, as the stream of its newer end tells it."""
    streams = {
        event.facts.moves[-1].revision: item.entry.envelope.stream
        for item in events
        if isinstance((event := item.event).facts, Birth)
    }
    found: list[Row] = []
    stated: dict[tuple[str, str, str], int] = {}
    for item in events:
        for edge in getattr(item.entry.envelope.facts, "edges", ()):
            key = (edge.kind, edge.newer, edge.older)
            if streams.get(edge.newer, edge.newer) != item.entry.envelope.stream:
                continue
            if edge.since is None:
                stated[key] = item.entry.position
            else:
                found.append((*key, stated.pop(key), item.entry.position))
    return [*found, *((*key, position, None) for key, position in stated.items()), *_corrected(events)]


def _corrected(events: Sequence[Recorded]) -> Iterator[Row]:
    """Yield what each correction is about, and what it invalidated."""
    for item in events:
        envelope = item.entry.envelope
        if isinstance(facts := envelope.facts, CorrectionRecorded) and facts.revision is not None:
            yield "corrects", envelope.stream, facts.revision, envelope.seq, None
        elif isinstance(facts, LearningInvalidated):
            yield from (("corrects", facts.correction, move.revision, envelope.seq, None) for move in facts.moves)


def _logged(item: Recorded) -> Row:
    envelope = item.entry.envelope
    begun = None if envelope.op_index else envelope.op
    return envelope.seq, envelope.at, envelope.type, envelope.actor, begun


def _corrections(events: Sequence[Recorded]) -> list[Row]:
    """Return each correction as it was recorded, with the state that its last event leaves behind."""
    last: dict[str, Any] = {item.entry.envelope.stream: item.entry.envelope.facts for item in events}  # Any: its own
    return [
        (
            item.entry.envelope.stream, facts.scope.project, facts.scope.agent, facts.scope.user, facts.scope.session,
            facts.visibility, facts.origin, facts.revision,
            last[item.entry.envelope.stream].standing.state, item.entry.position,
        )
        for item in events
        if isinstance(facts := item.entry.envelope.facts, CorrectionRecorded)
    ]  # fmt: skip


def _named(events: Sequence[Recorded]) -> Iterator[Row]:
    for item in events:
        if isinstance(facts := item.entry.envelope.facts, NameAssigned):
            yield facts.id, item.entry.position


def _assert_outbox(ledger_url: str, ledger: str, events: Sequence[Recorded]) -> None:
    found = rows(ledger_url, "SELECT seq, revision, effect, lineage FROM corrigenda.outbox WHERE ledger = %s", ledger)
    assert set(found) == {effect for item in events for effect in _effects(item)}


def _effects(item: Recorded) -> Iterator[Row]:
    """Yield what an event asks of the index: to put what is served from now on or elsewhere, to remove the rest."""
    facts, stream = item.entry.envelope.facts, item.entry.envelope.stream
    if stream.startswith("cor_"):
        stands = _state(item) in ("unconfirmed", "active")
        yield item.entry.position, stream, "put" if stands else "remove", stream
    for move in getattr(facts, "moves", ()):
        was, now = (_served(values) if values else None for values in (move.before, move.after))
        if was != now:
            yield item.entry.position, move.revision, "put" if now else "remove", stream


def _served(values: Values) -> str | None:
    return values.trust if values.is_live and values.floor != "revoked" else None


def _state(item: Recorded) -> str:
    """Return the state that an event of a correction leaves."""
    standing = getattr(item.entry.envelope.facts, "standing", None)
    assert isinstance(standing, RecordStanding)
    return standing.state


def _recorded(events: Sequence[Recorded]) -> dict[str, tuple[CorrectionRecorded, str]]:
    """Return what each correction's first event recorded, and the state that its last one leaves."""
    found: dict[str, tuple[CorrectionRecorded, str]] = {}
    for item in events:
        stream, facts = item.entry.envelope.stream, item.entry.envelope.facts
        if isinstance(facts, CorrectionRecorded):
            found[stream] = facts, facts.standing.state
        elif stream in found:
            found[stream] = found[stream][0], _state(item)
    return found


def _assert_index(
    ledger: VerifiedLedger,
    home: Path,
    lineages: dict[str, LineageState],
    corrections: dict[str, tuple[CorrectionRecorded, str]],
    embedder: Embedder,
) -> None:
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
    for stream, (recorded, state) in corrections.items():
        if state in ("unconfirmed", "active"):
            expected[f"{stream}/{stream}"] = partition("correction", namespace(recorded.visibility, recorded.scope))
    query = embedder.embed(["anything"])[0]
    held = {
        str(item): key for key in set(expected.values()) for item, _ in relay.neighbours([key], query, len(relay) + 1)
    }
    assert held == expected
    assert len(relay) == len(expected)
