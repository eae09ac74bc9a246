"""Whether two things say the same of every read model: two generations, or a generation and the events themselves.

A row is a sum of parts (queries.sql). An event names a part that it changes as it was and as it is, so the digest of
what a whole table should hold is told event by event, in memory that does not grow with the ledger.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ledger import digest
from ledger.chain import Envelope
from ledger.corrections import CorrectionConfirmed, CorrectionRecorded, CorrectionRevoked, CorrectionSuperseded
from ledger.governance import LedgerOpened, NameAssigned
from ledger.memories import Birth, MetadataPatched
from ledger.message import Edge, Move
from ledger.sql import load
from ledger.store import Store
from projections.edges import stated_here
from projections.log import begun_here
from projections.models import TABLES

QUERIES = load("projections")

Field = str | int | None
_BETWEEN, _NULL = chr(31), chr(30)


class Sum(NamedTuple):
    """How many rows, and the sum of the hashes of their parts."""

    rows: int
    total: int


Sums = Mapping[tuple[str, str], Sum]  # by table and bucket; one that is empty is left out


class Part(NamedTuple):
    """A part of a row that an event adds (sign 1) or takes away (−1)."""

    table: str
    bucket: str
    text: str
    rows: int
    sign: int


class Difference(NamedTuple):
    """A table that differs, its first key that does, and how that key's parts read on either side."""

    table: str
    key: str
    expected: tuple[str, ...]
    found: tuple[str, ...]


def fresh_salt() -> str:
    """Return a salt for one comparison."""
    return os.urandom(16).hex()


def sums(store: Store, gen: int, salt: str) -> Sums:
    """Return what a generation holds, to be compared with what is told. In a snapshot, of one moment."""
    return _sums(store, gen, "sum_parts", salt)


def compared(store: Store, gen: int, other: Store, other_gen: int) -> tuple[Sums, Sums]:
    """Return what two generations hold, to be compared with each other only; both are read at once."""
    salt = int.from_bytes(os.urandom(8), "big", signed=True)
    with ThreadPoolExecutor(1) as beside:
        reading = beside.submit(_sums, other, other_gen, "sum_rows", salt)
        return _sums(store, gen, "sum_rows", salt), reading.result()


def _sums(store: Store, gen: int, block: str, salt: str | int) -> Sums:
    found: dict[tuple[str, str], Sum] = {}
    with store.transaction():
        store.query(QUERIES["take_time"], {})
        for table in TABLES:
            for bucket, rows, total in store.query(_over(table, block), {"gen": gen, "salt": salt}):
                found[table, bucket] = Sum(rows, int(total))
    return found


def parts_of(store: Store, gen: int, table: str, bucket: str) -> "Counter[str]":
    """Return the parts of all rows in one bucket of a table."""
    return Counter(part for (part,) in store.query(_over(table, "list_parts"), {"gen": gen, "bucket": bucket}))


def cycles(store: Store, gen: int) -> tuple[str, ...]:
    """Return ids that supersede themselves through others, one of each cycle at least."""
    with store.transaction():
        store.query(QUERIES["take_time"], {})
        return tuple(found for (found,) in store.query(QUERIES["list_cycles"], {"gen": gen}))


def rows_by_table(found: Sums) -> dict[str, int]:
    """Return the number of rows in each table."""
    return {table: sum(one.rows for (of, _), one in found.items() if of == table) for table in TABLES}


def differing(expected: Sums, found: Sums) -> list[tuple[str, str]]:
    """Return for each table that differs its first bucket that does, in the order of the tables."""
    wrong = sorted(place for place in expected.keys() | found.keys() if expected.get(place) != found.get(place))
    first = {table: bucket for table, bucket in reversed(wrong)}
    return [(table, first[table]) for table in TABLES if table in first]


def difference(table: str, expected: "Counter[str]", found: "Counter[str]") -> Difference | None:
    """Return how the parts of a bucket differ, or None if they are the same after all."""
    missing, more = expected - found, found - expected
    keys = sorted({_key(table, part) for part in (*missing, *more)})
    if not keys:
        return None
    return Difference(
        table,
        keys[0],
        *(
            tuple(sorted(_shown(table, part) for part in side if _key(table, part) == keys[0]))
            for side in (missing, more)
        ),
    )


class Told:
    """What the read models should hold, told by the events up to a position."""

    def __init__(self, until: int, salt: str) -> None:
        self._until = until
        self._salt = salt
        self._rows: Counter[tuple[str, str]] = Counter()
        self._totals: Counter[tuple[str, str]] = Counter()
        self.taken = 0

    def take(self, envelope: Envelope) -> None:
        """Take the next event."""
        if envelope.seq > self._until:
            return
        self.taken += 1
        for part in _parts(envelope):
            place = (part.table, part.bucket)
            self._rows[place] += part.rows * part.sign
            self._totals[place] += digest.part(self._salt, part.text) * part.sign

    def sums(self) -> Sums:
        """Return what has been told."""
        places = self._rows.keys() | self._totals.keys()
        told = {place: Sum(self._rows[place], self._totals[place]) for place in places}
        return {place: one for place, one in told.items() if one != (0, 0)}


def told_parts(envelopes: Iterable[Envelope], places: Iterable[tuple[str, str]]) -> dict[str, "Counter[str]"]:
    """Return, for one bucket in each of some tables, the parts that events leave there."""
    wanted = dict(places)
    left: dict[str, Counter[str]] = {table: Counter() for table in wanted}
    for envelope in envelopes:
        for part in _parts(envelope):
            if wanted.get(part.table) == part.bucket:
                left[part.table][part.text] += part.sign
    return {table: +parts for table, parts in left.items()}


# ---------------------------------------------------------------- what an event says of rows


def _parts(envelope: Envelope) -> Iterator[Part]:
    facts, seq = envelope.facts, envelope.seq
    if not isinstance(facts, LedgerOpened):
        told = (envelope.at, envelope.type, envelope.actor, begun_here(envelope))
        yield _part("log_entry", str(seq), told, rows=1)
    if isinstance(facts, NameAssigned):
        yield _part("directory", facts.id, (seq,), rows=1)
    elif isinstance(facts, MetadataPatched):
        yield _part("revision", facts.revision, ("metadata", facts.since), sign=-1)
        yield _part("revision", facts.revision, ("metadata", seq))
    elif isinstance(facts, CorrectionRecorded):
        yield from _recorded(envelope, facts)
    elif isinstance(facts, CorrectionConfirmed | CorrectionSuperseded | CorrectionRevoked):
        yield _part("correction", envelope.stream, ("state", facts.before), sign=-1)
        yield _part("correction", envelope.stream, ("state", facts.after))
    if isinstance(facts, Birth):
        yield from _born(envelope, facts)
    moves: tuple[Move, ...] = getattr(facts, "moves", ())
    for move in moves:
        yield from _moved(envelope, move)
    for edge in stated_here(envelope):
        yield from _edge(edge, seq)


def _born(envelope: Envelope, facts: Birth) -> Iterator[Part]:
    born, scope, seq = facts.moves[-1], facts.scope, envelope.seq
    told: tuple[Field, ...] = (
        "born", envelope.stream, scope.project, born.version, seq, facts.kind, facts.visibility, scope.agent,
        scope.user, scope.session,
    )  # fmt: skip
    yield _part("revision", born.revision, told, rows=1)
    yield _part("revision", born.revision, ("metadata", seq))


def _moved(envelope: Envelope, move: Move) -> Iterator[Part]:
    revision, seq, after = move.revision, envelope.seq, move.after
    if move.before is not None:
        before = move.before
        yield _part("revision", revision, ("values", before.state, before.trust, before.floor), sign=-1)
    yield _part("revision", revision, ("values", after.state, after.trust, after.floor))
    if move.since is not None:
        yield _part("revision_state", revision, (move.since, "until", None), sign=-1)
        yield _part("revision_state", revision, (move.since, "until", seq))
    values = (seq, "values", envelope.stream, after.state, after.trust, after.floor)
    yield _part("revision_state", revision, values, rows=1)
    yield _part("revision_state", revision, (seq, "until", None))


def _edge(edge: Edge, seq: int) -> Iterator[Part]:
    begins = seq if edge.since is None else edge.since
    names = (edge.kind, edge.newer, edge.older, begins)
    bucket = edge.newer[-2:]
    if edge.since is None:
        yield Part("edge", bucket, _text(*names, "stated"), 1, 1)
        yield Part("edge", bucket, _text(*names, "until", None), 0, 1)
    else:
        yield Part("edge", bucket, _text(*names, "until", None), 0, -1)
        yield Part("edge", bucket, _text(*names, "until", seq), 0, 1)


def _recorded(envelope: Envelope, facts: CorrectionRecorded) -> Iterator[Part]:
    scope = facts.scope
    told: tuple[Field, ...] = (
        "recorded", scope.project, scope.agent, scope.user, scope.session, facts.visibility, facts.origin,
        facts.revision, envelope.seq,
    )  # fmt: skip
    yield _part("correction", envelope.stream, told, rows=1)
    yield _part("correction", envelope.stream, ("state", facts.standing.state))


def _part(table: str, key: str, fields: Iterable[Field], *, rows: int = 0, sign: int = 1) -> Part:
    return Part(table, key[-2:], _text(key, *fields), rows, sign)


def _text(*fields: Field) -> str:
    return _BETWEEN.join(_NULL if field is None else str(field) for field in fields)


def _over(table: str, block: str) -> str:
    """Return a query over the parts, or the whole rows, of a table."""
    return QUERIES[block].replace("/* parts */", QUERIES[f"{'rows' if block == 'sum_rows' else 'parts'}_{table}"])


_KEY_FIELDS = {"revision_state": 2, "edge": 4}


def _key(table: str, part: str) -> str:
    """Return the columns of a row's key, as a person reads them."""
    return " ".join(part.split(_BETWEEN)[: _KEY_FIELDS.get(table, 1)])


def _shown(table: str, part: str) -> str:
    """Return what a part says of its row, as a person reads it."""
    fields = part.split(_BETWEEN)[_KEY_FIELDS.get(table, 1) :]
    return " ".join("null" if field == _NULL else field for field in fields)
