"""What a trace holds, and the table that keeps traces: what one retrieval saw, chose and left out.

A trace holds ids, scores and reasons, and never a memory's text; of texts only the question, as it was asked. It is
added once and never changed. What is read back carries a digest that nobody without the ledger's key can make, and
belongs to the project and session that it was looked up by; a row that does not is named and never believed.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ledger.clock import stamp
from ledger.digest import LedgerKeys
from ledger.errors import IntegrityError, failure
from ledger.ids import TRACE
from ledger.limits import LIST_LIMIT_MAX
from ledger.sql import load
from ledger.store import Row, Store

QUERIES = load("gateway.traces")

SEARCH, DISPATCH = "search", "dispatch"
MEMORIES, CORRECTIONS = "memories", "corrections"  # what a retrieval was about
_AFTER_ALL = "~"  # after every character of an id
_TIME_CHARS = 10  # of an id, which say when it was made
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Seen(NamedTuple):
    """What a retrieval met, a revision or a correction, and why it was chosen, or left out.

    A correction is its own lineage; that of a revision is empty if it was not told.
    """

    lineage: str
    revision: str
    score: float
    why: str


class Traced(Struct, frozen=True, kw_only=True):
    """One retrieval. Who asked, where and for whom is said in names, as it was given.

    `chosen` are the hits, the best first; `left_out` at most a hundred of the `left_out_count` that were near and not
    served. `position` is the ledger's at which it was answered, `at_position` the one of the past that was asked for.
    Rows of before there were traces about corrections are all about memories.
    """

    trace: str
    kind: str
    at: str
    actor: str
    project: str
    agent: str | None
    user: str | None
    session: str | None
    task_family: str | None
    turn: int | None
    run: str | None
    query: str
    k: int
    filters: dict[str, Any]  # Any: JSON, what else was asked for, by the request's names
    valid_at: str
    at_position: int | None
    position: int
    incarnation: int
    embedder: str | None
    chosen: tuple[Seen, ...]
    left_out: tuple[Seen, ...]
    left_out_count: int
    warnings: tuple[str, ...]
    empty_reason: str | None
    about: str = MEMORIES


class Stored(NamedTuple):
    """A trace as it lies in its row."""

    trace: str
    digest: bytes
    body: bytes


class Kept(NamedTuple):
    """A trace that was read back, and its digest in hex, by which an event may name it."""

    traced: Traced
    digest: str


class TraceTable:
    """The traces of one ledger. Each method is a round trip, or none."""

    def __init__(self, store: Store, keys: LedgerKeys, root: str) -> None:
        self._store = store
        self._keys = keys
        self._root = root

    def on(self, store: Store) -> "TraceTable":
        """Return the same table through another connection."""
        return TraceTable(store, self._keys, self._root)

    def row(self, traced: Traced) -> tuple[Stored, dict[str, Any]]:  # Any: what the driver adapts
        """Return a trace as it is stored, and its look-up columns."""
        body = msgspec.json.encode(traced)
        columns: dict[str, Any] = {  # Any: as above
            "kind": traced.kind,
            "project": self.project(traced.project),
            "session": None if traced.session is None else self.session(traced.project, traced.session),
            "turn": traced.turn,
            "revisions": ",".join(one.revision for one in traced.chosen) if traced.kind == DISPATCH else "",
        }
        return Stored(traced.trace, self._keys.trace(traced.trace, body), body), columns

    def add(self, group: Sequence[tuple[Stored, Mapping[str, Any]]]) -> None:  # Any: as above
        """Store some traces, all of them or none. Errors: UNAVAILABLE, FORBIDDEN_ACTOR, SCHEMA_MISMATCH."""
        params = {
            f"{name}s": [columns[name] for _, columns in group] for name in ("kind", "project", "session", "turn")
        }
        params["revisions"] = [columns["revisions"] for _, columns in group]
        params["traces"] = [stored.trace for stored, _ in group]
        params["digests"] = [stored.digest for stored, _ in group]
        params["bodies"] = [stored.body for stored, _ in group]
        self._store.query(QUERIES["insert_traces"], params)

    def find(self, trace: str) -> Kept | None:
        """Return one trace by its id. Errors: INTEGRITY_BROKEN (it is not what was written)."""
        rows = self._store.query(QUERIES["find_trace"], {"trace": trace})
        return self._read(rows[0]) if rows else None

    def beginning_with(self, prefix: str, *, after: str | None, limit: int) -> list[tuple[str, Kept | None]]:
        """Return traces whose ids begin so, ascending, above an id; None for what is not sound."""
        first = prefix if after is None else after + _ALPHABET[0]  # above the id, and below every other one
        params = {"first": first, "last": prefix + _AFTER_ALL, "limit": limit}
        return self._sound(self._store.query(QUERIES["complete_trace"], params))

    def page(
        self, project: str, *, session: str | None, kind: str | None, before: str | None, limit: int
    ) -> list[tuple[str, Kept | None]]:
        """Return the newest traces of a project, or of a session of it, below an id; None for what is not sound."""
        params: dict[str, Any] = {"kind": kind, "before": before or TRACE + _AFTER_ALL, "limit": limit}  # Any: as above
        if session is None:
            rows = self._store.query(QUERIES["list_traces"], {**params, "project": self.project(project)})
        else:
            key = self.session(project, session)
            rows = self._store.query(QUERIES["list_session_traces"], {**params, "session": key})
        return [(trace, kept if _is_of(kept, project, session) else None) for trace, kept in self._sound(rows)]

    def end_of(self, project: str, session: str, turn: int) -> str | None:
        """Return the last dispatch of a turn of a session; None if there is none."""
        params = {"session": self.session(project, session), "turn": turn}
        ((trace,),) = self._store.query(QUERIES["find_turn"], params)
        return None if trace is None else str(trace)

    def before(self, project: str, session: str, trace: str | None, *, turn: int | None) -> Iterator[Kept]:
        """Yield the dispatches of a session before a trace, or all, without those of a turn, newest first.

        Errors: INTEGRITY_BROKEN.
        """
        below, most = trace or TRACE + _AFTER_ALL, 2
        while True:
            params = {"session": self.session(project, session), "turn": turn, "before": below, "limit": most}
            rows = self._store.query(QUERIES["find_prior_traces"], params)
            for row in rows:
                kept = self._read(row)
                if not _is_of(kept, project, session):
                    raise unsound(kept.traced.trace)
                yield kept
            if len(rows) < most:
                return
            below, most = str(rows[-1][0]), min(4 * most, LIST_LIMIT_MAX)

    def dispatched(self, revisions: Sequence[str]) -> list[Traced]:
        """Return what handed any of some revisions to a run, oldest first, as far as it is what was written."""
        rows = self._store.query(QUERIES["find_dispatches"], {"revisions": list(revisions)})
        return [kept.traced for _, kept in self._sound(rows) if kept is not None]

    def project(self, name: str) -> str:
        """Return what a project's traces are looked up by, whether or not it has an id yet."""
        return self._keys.name("project", self._root, name)

    def session(self, project: str, name: str) -> str:
        """Return what a session's traces are looked up by."""
        return self._keys.name("session", self.project(project), name)

    def _sound(self, rows: Sequence[Row]) -> list[tuple[str, Kept | None]]:
        found: list[tuple[str, Kept | None]] = []
        for row in rows:
            try:
                found.append((str(row[0]), self._read(row)))
            except IntegrityError:
                found.append((str(row[0]), None))
        return found

    def _read(self, row: Row) -> Kept:
        trace, digest, body = str(row[0]), bytes(row[1]), bytes(row[2])
        if self._keys.trace(trace, body) != digest:
            raise unsound(trace)
        return Kept(msgspec.json.decode(body, type=Traced), digest.hex())


def unsound(trace: str) -> Exception:
    """Return INTEGRITY_BROKEN for a trace whose row somebody edited or swapped."""
    return failure(
        "INTEGRITY_BROKEN",
        f"The trace {trace} is not what was written: its digest is not the ledger's for its bytes, or it lies where "
        "another belongs. It says nothing about any retrieval. Restore its row from a backup, or remove it.",
        check="trace",
        trace=trace,
    )


def oldest(store: Store) -> str | None:
    """Return when the oldest trace of a ledger was made; None if there is none."""
    ((trace,),) = store.query(QUERIES["edge_of_traces"], {})
    return None if trace is None else made_at(str(trace))


def first_id(moment: datetime) -> str:
    """Return what comes before every id of a trace that was made at a moment or later, and after the others."""
    milliseconds = max(int(moment.timestamp() * 1000), 0)
    digits = [_ALPHABET[milliseconds >> shift & 31] for shift in range(5 * (_TIME_CHARS - 1), -1, -5)]
    return f"{TRACE}_{''.join(digits)}"


def made_at(trace: str) -> str:
    """Return when a trace was made, by its id, as the ledger writes times."""
    number = 0
    for character in trace.partition("_")[2][:_TIME_CHARS]:
        number = number << 5 | _ALPHABET.index(character)
    return stamp(datetime.fromtimestamp(number / 1000, UTC))


def _is_of(kept: Kept | None, project: str, session: str | None) -> bool:
    return kept is not None and kept.traced.project == project and session in (None, kept.traced.session)
