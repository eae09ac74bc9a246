"""Hands for the tests of whole ledgers: children that may die, everything that a ledger holds, and the oracle.

`read_ledger` believes nothing but verified events. `assert_in_order` is what every fault test ends with: the house is
in order, and the newest generation holds the heads and nothing else, with nothing half done beside it.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from msgspec.structs import astuple

from gateway.settings import read_settings
from ledger.clock import system_clock
from ledger.governance import AssignedName, NameAssigned
from ledger.memories import LINEAGE, LineageLinked, LineageState, LineageUnlinked, RevisionState, RevisionText
from ledger.message import Payload
from ledger.opening import open_ledger
from ledger.store import Database
from ledger.verified import Recorded
from projections import embedders
from tests.house import WORDS, assert_house_in_order
from tests.roles import as_owner

ROOT = Path(__file__).resolve().parents[2]
SLOW_S = 120.0
STRUCK = -signal.SIGKILL

Document = dict[str, Any]  # Any: JSON
Pair = tuple[str, str]


@dataclass(frozen=True)
class Ended:
    """How a child ended, and what it had said by then."""

    returncode: int
    said: list[Document]
    complaints: str

    @property
    def struck(self) -> str | None:
        """Return the moment at which it killed itself; None if it did not."""
        last = self.said[-1] if self.said else {}
        return last.get("struck") if self.returncode == STRUCK else None

    @property
    def answers(self) -> list[Document]:
        """Return what it said before its end."""
        return [answer for answer in self.said if not answer.keys() & {"struck", "done", "ready"}]


class Child:
    """A process of ours that runs `children.py`."""

    def __init__(self, act: str, where: Document, **words: Any) -> None:
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
        environment["CORRIGENDA_EMBEDDED_GRACE_S"] = "5"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.children", json.dumps({"act": act, "where": where, **words})],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=environment,
        )

    def ready(self) -> None:
        """Wait until it stands before its gate."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert b"ready" in line, line

    def end(self) -> Ended:
        """Wait until it ends."""
        out, complaints = self._process.communicate(timeout=SLOW_S)
        lines = [json.loads(line) for line in out.splitlines()]
        return Ended(self._process.returncode, lines, complaints.decode(errors="replace"))


def run(act: str, where: Document, **words: Any) -> Ended:
    """Run a child that should come to its end, and return what it said."""
    ended = Child(act, where, **words).end()
    assert ended.returncode == 0, ended.complaints
    return ended


def kill(act: str, where: Document, moment: str, **words: Any) -> Ended:
    """Run a child that kills itself at that moment, and return what it had said."""
    ended = Child(act, where, moment=moment, **words).end()
    assert ended.struck == moment, ended.complaints or ended.said
    return ended


def race(act: str, where: Document, gate: Path, processes: int, **words: Any) -> list[Ended]:
    """Run children that begin at the same moment, when all are ready; all should come to their end."""
    children = [Child(act, where, gate=str(gate), **words) for _ in range(processes)]
    for child in children:
        child.ready()
    gate.touch()
    ended = [child.end() for child in children]
    assert [one.returncode for one in ended] == [0] * processes, [one.complaints for one in ended]
    return ended


# ---------------------------------------------------------------- what a ledger holds


@dataclass(frozen=True)
class Told:
    """Everything that a ledger holds, read from its verified events."""

    ledger: str
    events: list[Recorded]
    states: dict[str, LineageState]
    names: dict[str, str]

    @property
    def types(self) -> "Counter[str]":
        """Return how many events there are of each type, without its version."""
        return Counter(item.entry.envelope.type.removesuffix(".v1") for item in self.events)

    @property
    def live_edges(self) -> set[Pair]:
        """Return the links that stand, by name: the newer one first."""
        return {self._pair(pair) for state in self.states.values() for pair in state.links}

    def edges(self, facts: "type[LineageLinked | LineageUnlinked]") -> "Counter[Pair]":
        """Return how often each link was stated, or withdrawn: once for each of the two streams."""
        found = [item.entry.envelope.facts for item in self.events]
        return Counter(
            self._pair((edge.newer, edge.older)) for one in found if isinstance(one, facts) for edge in one.edges
        )

    @property
    def folded(self) -> Document:
        """Return every lineage as its events leave it, by name: nothing of it depends on ids, positions or keys."""
        return {self.names[lineage]: self._lineage(state) for lineage, state in self.states.items()}

    def items(self) -> set[str]:
        """Return what an index of this ledger should hold."""
        return {f"{lineage}/{state.head}" for lineage, state in self.states.items() if state.head}

    def payload(self, position: int) -> Payload | None:
        """Return the payload of one event."""
        return self.events[position].payload

    def _pair(self, ids: Pair) -> Pair:
        return self.names[ids[0]], self.names[ids[1]]

    def _lineage(self, state: LineageState) -> Document:
        versions = {item.revision: item.version for item in state.revisions.values()}
        return {
            "head": versions[state.head] if state.head else None,
            "links": sorted(self._pair(pair) for pair in state.links),
            "revisions": [self._revision(item, versions) for item in state.revisions.values()],
        }

    def _revision(self, item: RevisionState, versions: dict[str, int]) -> Document:
        text = self.payload(item.content_seq)
        assert isinstance(text, RevisionText)
        return {
            "version": item.version,
            "values": astuple(item.values),
            "content": text.content,
            "valid_from": text.valid_from,
            "sources": text.provenance.sources,
            "kind": item.kind,
            "origin": item.origin,
            "visibility": item.visibility,
            "supersedes": [versions[revision] for revision in item.supersedes],
            "withdrawals": [(withdrawal.act, astuple(withdrawal.before)) for withdrawal in item.withdrawals],
        }


def as_later(made: Document) -> Document:
    """Return what `db init` answered as it answers once the ledger is there: without what comes next."""
    return {name: value for name, value in made.items() if name not in ("next", "sql")}


def read_ledger(where: Document) -> Told:
    """Return everything that the ledger holds; anything that does not check is raised."""
    settings = read_settings({}, database_url=where["database_url"], home=where["home"])
    database = Database(where["database_url"])
    try:
        ledger = open_ledger(database, tenant="local", files=settings.keys, clock=system_clock)
        last = ledger.catch_up()
        found = ledger.at(range(last + 1))
    finally:
        database.close()
    events = [found[position] for position in range(last + 1)]
    streams: dict[str, list[Recorded]] = {}
    for item in events:
        streams.setdefault(item.entry.envelope.stream, []).append(item)
    return Told(
        ledger=ledger.store.ledger,
        events=events,
        states={
            stream: LINEAGE.fold(item.event for item in items)
            for stream, items in streams.items()
            if stream.startswith("mem_")
        },
        names=dict(_names(events)),
    )


def _names(events: list[Recorded]) -> list[Pair]:
    pairs = [(item.entry.envelope.facts, item.payload) for item in events]
    return [
        (facts.id, payload.name)
        for facts, payload in pairs
        if isinstance(facts, NameAssigned) and isinstance(payload, AssignedName)
    ]


def outbox(where: Document) -> dict[str, int]:
    """Return the position of each revision that the outbox asks to put into the index."""
    query = "SELECT revision, seq FROM corrigenda.outbox WHERE effect = 'put'"
    with psycopg.connect(as_owner(where["database_url"])) as connection:
        return dict(connection.execute(query).fetchall())


def generations(home: Path) -> list[Path]:
    """Return the directories of the finished generations in a home, newest first."""
    return sorted((path for path in home.glob("index/*/generation-*") if not path.suffix), reverse=True)


def indexed(home: Path) -> set[str]:
    """Return the items that the newest generation holds; nothing if there is none."""
    for path in generations(home)[:1]:
        return {item for _, items in json.loads((path / "items.json").read_bytes()) for item in items}
    return set()


def revisions_in(items: set[str]) -> set[str]:
    """Return the revisions among index items."""
    return {item.partition("/")[2] for item in items}


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return everything under a folder: mode, time of change and content, by path."""
    found = sorted(folder.rglob("*"))
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in found
    }


def rows(where: Document) -> dict[str, int]:
    """Return how many rows each table of the ledger has."""
    tables = ("tenant", "head", "event", "payload", "outbox", "embedding", "revision", "directory")
    parts = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM corrigenda.{table}" for table in tables)  # noqa: S608 - from a list
    with psycopg.connect(as_owner(where["database_url"])) as connection:
        return dict(connection.execute(parts.encode()).fetchall())


# ---------------------------------------------------------------- the oracle


def assert_in_order(where: Document) -> Told:
    """Assert that the house is in order and the newest generation at the head; return what the ledger holds."""
    home = Path(where["home"])
    embedder = embedders.load(where["embedder"])
    assert_house_in_order(where["database_url"], home, embedder=embedder or WORDS)
    told = read_ledger(where)
    if embedder is not None:
        assert indexed(home) == told.items()
        assert [name for name in os.listdir(home / "index" / told.ledger) if name.startswith(".")] == []
    return told
