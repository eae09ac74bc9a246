"""How many events a second `verify` checks, and how much memory it takes: a ledger of N sealed events, read whole.

    python -m benchmarks.verify_rate --events 1000000 --streams ulid
    python -m benchmarks.verify_rate --events 100000 --streams hashed --database-url postgresql://…

Every event is an append of its own, with a request, a payload and (but for `few`) a stream of its own. They are sealed
by the ledger's own functions and stored as rows, without the committer: this measures reading. Each pass runs in a
process of its own, whose peak memory is printed beside its rate; the best of `--runs` is the figure. Without a URL the
embedded server is started in a temporary home. The database that is named must hold no ledger yet.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import migrations
from ledger import codec, digest
from ledger.chain import Entry, Envelope, StreamHead
from ledger.clock import new_ulid, stamp, system_clock
from ledger.governance import AssignedName, NameAssigned
from ledger.keys import read_ledger_key
from ledger.memories import MemoryRemembered, Provenance, RevisionText
from ledger.message import Facts, Move, Payload, ScopeIds, Standing, Values
from ledger.opening import KeyFiles, open_ledger
from ledger.store import QUERIES, Database, Store, Write
from ledger.verify import verify

ROWS = 2_000
FEW_STREAMS = 100
SCOPE = ScopeIds(agent=None, project=f"prj_{new_ulid()}", session=None, task_family=None, user=None)
CONTENT = "Deploys are on Tuesdays, unless the release manager has said otherwise in the channel the day before."
Row = tuple[Entry, bytes, bytes]


class Writer:
    """Links and seals events, one append after the other, as a committer would."""

    def __init__(self, store: Store, files: KeyFiles, streams: str) -> None:
        first = codec.read_entry(store.at([0])[0].envelope, b"", position=0)
        self._keys = read_ledger_key(files.ledger).for_ledger(store.ledger)
        self._origin = first.envelope.log
        self._previous = first.hash
        self._streams = streams
        self._few = [f"mem_{new_ulid()}" for _ in range(FEW_STREAMS)]
        self._heads: dict[str, StreamHead] = {}

    def rows(self, first: int, count: int) -> Iterator[Row]:
        """Yield the next entries with their salts and bodies."""
        at = stamp(system_clock())
        for seq in range(first, first + count):
            stream, facts, payload = self._event(seq)
            head = self._heads.get(stream, StreamHead(0, -1, digest.GENESIS))
            yield self._sealed(seq, at, stream, head, facts, payload)

    def _event(self, seq: int) -> tuple[str, Facts, Payload]:
        if self._streams == "hashed":
            facts = NameAssigned(id=f"mem_{new_ulid()}", kind="memory", parent=SCOPE.project)
            return self._keys.name("memory", SCOPE.project, str(seq)), facts, AssignedName(name=f"name-{seq}")
        stream = f"mem_{new_ulid()}" if self._streams == "ulid" else self._few[seq % FEW_STREAMS]
        return stream, _remembered(seq, self._keys), _text(seq)

    def _sealed(self, seq: int, at: str, stream: str, head: StreamHead, facts: Facts, payload: Payload) -> Row:
        salt, body = os.urandom(digest.SALT_BYTES), codec.encode_payload(payload)
        request = self._keys.request(["human:ana", "remember"], str(seq))
        envelope = Envelope(
            actor="pr_01JZ8Q0000000000000000000C", at=at, authn="local", facts=facts, log=self._origin,
            op=f"op_{new_ulid()}", op_count=1, op_index=0,
            payload_len=len(body), payload_sha256=digest.commitment(salt, body), prev_b3=self._previous.hex(),
            request=request, request_fp=request, schema=codec.SCOPE_SCHEMA, seq=seq,
            stream=stream, stream_prev_b3=head.hash.hex(), stream_seq=head.version,
            subjects=(), type=codec.TAGS[type(facts)], v=codec.FORMAT_VERSION,
        )  # fmt: skip
        raw = codec.encode_envelope(envelope)
        own, in_stream = digest.link(raw), digest.stream_link(raw)
        self._previous = own
        if self._streams == "few":
            self._heads[stream] = StreamHead(head.version + 1, seq, in_stream)
        return Entry(envelope=envelope, raw=raw, hash=own, stream_hash=in_stream, seal=self._keys.seal(own)), salt, body


def _remembered(seq: int, keys: digest.LedgerKeys) -> MemoryRemembered:
    revision = f"rev_{new_ulid()}"
    fresh = Values("active", "unverified", "verified")
    standing = Standing(content_seq=seq, floor="verified", head=revision, meta_seq=seq, trust="unverified")
    move = Move(after=fresh, before=None, revision=revision, since=None, version=1)
    return MemoryRemembered(
        content=keys.content(SCOPE.project, str(seq)), edges=(), kind="fact", moves=(move,), origin="human",
        scope=SCOPE, standing=standing, supports=(), visibility="project",
    )  # fmt: skip


def _text(seq: int) -> RevisionText:
    return RevisionText(
        applies=None, confidence=None, content=f"{seq}: {CONTENT}", evidence=(), institutional=None,
        provenance=Provenance(run=None, session=None, sources=()), reason=None, recorded_at=None, review_by=None,
        subjects=(), tags=(), valid_from=None, valid_to=None,
    )  # fmt: skip


def build(url: str, home: Path, events: int, streams: str) -> Store:
    """Make a ledger of that many events in an empty database, and return its tables."""
    migrations.upgrade(url)
    files = _files(home)
    database = Database(url)
    store = open_ledger(database, tenant="local", files=files, clock=system_clock).store
    writer = Writer(store, files, streams)
    for first in range(1, events, ROWS):
        _store(store, list(writer.rows(first, min(ROWS, events - first))))
    return store


def _store(store: Store, rows: Sequence[Row]) -> None:
    entries = [entry for entry, _, _ in rows]
    events = {
        "seqs": [entry.position for entry in entries],
        "streams": [entry.envelope.stream for entry in entries],
        "stream_seqs": [entry.envelope.stream_seq for entry in entries],
        "envelopes": [entry.raw for entry in entries],
        "hashes": [entry.hash for entry in entries],
        "seals": [entry.seal for entry in entries],
        "requests": [bytes.fromhex(entry.envelope.request or "") for entry in entries],
    }
    payloads = {
        "seqs": events["seqs"],
        "salts": [salt for _, salt, _ in rows],
        "bodies": [body for _, _, body in rows],
    }
    before = store.head()
    head = {
        "seq": entries[-1].position, "hash": entries[-1].hash, "old_seq": before.seq, "old_hash": before.hash,
        "gen": before.gen, "projector": before.projector, "incarnation": before.incarnation,
    }  # fmt: skip
    store.run(
        [
            Write(QUERIES["move_head"], head),
            Write(QUERIES["insert_events"], events),
            Write(QUERIES["insert_payloads"], payloads),
        ]
    )


def _files(home: Path) -> KeyFiles:
    return KeyFiles(home / "ledger.key", home / "signing.pem")


def one_pass(url: str, home: Path, ledger: str) -> dict[str, Any]:
    """Verify the ledger once, in this process; return rate, time and peak memory."""
    store = Store(Database(url), ledger)
    keys = read_ledger_key(_files(home).ledger).for_ledger(ledger)
    began = time.perf_counter()
    report = verify(store, keys)
    took = time.perf_counter() - began
    assert report.ok, msgspec.to_builtins(report.checks)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    return {"events": report.events, "seconds": took, "rate": report.events / took, "peak_mb": kilobytes / 1024}


def measure(url: str, home: Path, ledger: str, runs: int) -> list[dict[str, Any]]:
    """Return what each of some passes measured, each in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.verify_rate", "--pass", url, str(home), ledger]
    root = Path(__file__).resolve().parents[1]
    return [json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True).stdout) for _ in range(runs)]


def _run(url: str, home: Path, asked: argparse.Namespace) -> None:
    began = time.perf_counter()
    store = build(url, home, asked.events, asked.streams)
    print(f"built {asked.events} events, streams {asked.streams}, in {time.perf_counter() - began:.0f} s", flush=True)
    for found in sorted(measure(url, home, store.ledger, asked.runs), key=lambda found: -found["rate"]):
        print(f"{found['rate']:10,.0f} events/s   {found['seconds']:6.2f} s   {found['peak_mb']:5.0f} MB", flush=True)
    store.database.close()


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description="Measure the rate and the memory of a verification.")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--streams", choices=["ulid", "hashed", "few"], default="ulid")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--database-url")
    parser.add_argument("--pass", dest="one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        url, home, ledger = asked.one
        print(json.dumps(one_pass(url, Path(home), ledger)))
        return
    with tempfile.TemporaryDirectory() as folder:
        if asked.database_url:
            _run(asked.database_url, Path(folder), asked)
            return
        from gateway.embedded import attach, stop  # not needed, and not to be loaded, when a server is given

        with attach(Path(folder) / "server", grace_s=5.0) as server:
            _run(server.dsn, Path(folder), asked)
        stop(Path(folder) / "server", remove=True)


if __name__ == "__main__":
    main()
