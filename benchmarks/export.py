"""What it takes to hand out one memory of a thousand revisions, and to check it: time, memory and bytes, by ledger.

    python -m benchmarks.export [--events 10000 100000] [--revisions 1000] [--json FILE]

Each ledger is filled with sealed events of other memories, three in ten of them corrections, and the memory's own go in
last by the gateway. Export and check run in processes of their own on an open ledger, so that their peaks of memory are
theirs; the fastest of three is told. A complete bundle is told beside what PostgreSQL takes to copy the same rows out.
The whole ledger is written as lines of JSON, too, and as a complete bundle of all its events, in tiles.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from math import log2
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psycopg

import corrigenda
from benchmarks import bars, ours, server
from benchmarks.bars import Line
from benchmarks.rebuild_rate import Writer
from benchmarks.verify_rate import ROWS
from gateway.upkeep.bare import open_bare
from ledger.bundle import writing

EXPORT_S_MAX, VERIFY_S_MAX, MEMORY_MB_MAX = 5.0, 1.0, 300.0
PROOF_BYTES = 45  # a hash in base64 and its line break
ROUNDS = 3
MEMORY = "long"
SHIPPED = Path(writing.__file__).parent / "shipped" / "verify.py"

# Runs a program as it is, and tells its peak of memory in kilobytes when it has ended.
_WITH_PEAK = """
import runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    with open("/proc/self/status") as status:
        print(status.read().partition("VmHWM:")[2].split()[0], file=sys.stderr)
"""


class Sized(NamedTuple):
    """Everything that was measured on a ledger of one size; seconds, bytes and megabytes."""

    events: int
    revisions: int
    chain: int
    export_s: float
    verify_s: float
    alone_s: float
    bytes: int
    packed: int
    wanted: int  # chain × (envelope + 45 bytes × log2 of the ledger)
    export_mb: float
    complete_s: float
    complete_mb: float
    complete_bytes: int
    complete_verify_s: float
    lines_s: float
    lines_mb: float
    lines_bytes: int
    log_s: float
    log_mb: float
    log_bytes: int
    log_verify_s: float
    log_verify_mb: float
    log_alone_s: float
    log_alone_mb: float
    copy_s: float
    copy_bytes: int


def build(url: str, home: Path, events: int, revisions: int) -> str:
    """Fill a ledger up to that many events, the last of them those of the memory; return the writer's URL."""
    writer_url = ours.prepare(url, home)
    with ours.raw(writer_url, home, models=True) as raw:
        writer = Writer(raw.ledger)
        for first in range(raw.ledger.walk.position + 1, events - revisions - 1, ROWS):
            writer.write(min(ROWS, events - revisions - 1 - first))
        raw.ledger.catch_up()
    with opened(writer_url, home) as gateway:
        gateway.remember("It is revision 1 of the one that is handed out.", memory_id=MEMORY)
        for number in range(2, revisions + 1):
            gateway.correct(MEMORY, f"It is revision {number} of the one that is handed out.", reason="counted again")
    return writer_url


def opened(url: str, home: Path) -> "corrigenda.Gateway":
    """Return a gateway that needs no embedder."""
    return corrigenda.open(url, home=home, project=ours.PROJECT, actor="human:bench", embedder="none")


# ---------------------------------------------------------------- one act, in a process of its own


def act(name: str, url: str, home: Path, out: Path, key: str) -> dict[str, float]:
    """Do one thing and return how many seconds it took, and the peak of this process's memory in megabytes."""
    if name == "verify":
        began = time.perf_counter()
        found = corrigenda.verify_bundle(out, key)
        took = time.perf_counter() - began
        assert found.exit_code == 0, found
    else:
        with opened(url, home) as gateway:
            began = time.perf_counter()
            if name == "lines":
                gateway.export_ledger(out, form="jsonl")
            elif name == "log":
                gateway.export_ledger(out, complete=True)
            else:
                gateway.export_supersession([MEMORY], out, complete=name == "complete")
            took = time.perf_counter() - began
    return {"seconds": took, "mb": _peak_mb()}


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _apart(name: str, url: str, home: Path, out: Path, key: str = "") -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.export", "--act", name, url, str(home), str(out), key]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(done.stdout)
    print(f"{name}: {found['seconds']:.2f} s, {found['mb']:.0f} MB", file=sys.stderr)
    return found


# ---------------------------------------------------------------- one ledger


def measured(server_url: str, home: Path, events: int, revisions: int) -> Sized:
    """Return what was measured on a ledger of that many events."""
    print(f"filling a ledger with {events:,} events …", file=sys.stderr)
    with server.fresh_database(server_url) as url:
        writer = build(url, home, events, revisions)
        with open_bare(database_url=writer, home=home) as bare:
            key = bare.public_key()["public_key"]
        with TemporaryDirectory(prefix="corrigenda-bench-") as folder:
            return _measured(url, writer, home, Path(folder), key, events, revisions)


def _measured(url: str, writer: str, home: Path, folder: Path, key: str, events: int, revisions: int) -> Sized:
    made = [_apart("proofs", writer, home, folder / f"proofs-{number}") for number in range(ROUNDS)]
    bundle = folder / "proofs-0"
    _apart("proofs", writer, home, folder / "packed.tar.gz")
    checked = [_apart("verify", writer, home, bundle, key) for _ in range(ROUNDS)]
    alone = _alone(key, bundle)
    whole = _apart("complete", writer, home, folder / "complete")
    whole_checked = _apart("verify", writer, home, folder / "complete", key)
    told = _apart("lines", writer, home, folder / "lines.jsonl")
    log = _apart("log", writer, home, folder / "log")
    log_checked = _apart("verify", writer, home, folder / "log", key)
    log_alone = _alone(key, folder / "log")
    envelopes = [one.stat().st_size for one in (bundle / "envelopes").iterdir()]
    copied = _copied(url, folder / "copied")
    return Sized(
        events=events,
        revisions=revisions,
        chain=len(envelopes),
        export_s=min(one["seconds"] for one in made),
        verify_s=min(one["seconds"] for one in checked),
        alone_s=alone["seconds"],
        bytes=_bytes(bundle),
        packed=(folder / "packed.tar.gz").stat().st_size,
        wanted=round(sum(envelopes) + len(envelopes) * PROOF_BYTES * log2(events)),
        export_mb=max(one["mb"] for one in made),
        complete_s=whole["seconds"],
        complete_mb=whole["mb"],
        complete_bytes=_bytes(folder / "complete"),
        complete_verify_s=whole_checked["seconds"],
        lines_s=told["seconds"],
        lines_mb=told["mb"],
        lines_bytes=(folder / "lines.jsonl").stat().st_size,
        log_s=log["seconds"],
        log_mb=log["mb"],
        log_bytes=_bytes(folder / "log"),
        log_verify_s=log_checked["seconds"],
        log_verify_mb=log_checked["mb"],
        log_alone_s=log_alone["seconds"],
        log_alone_mb=log_alone["mb"],
        copy_s=copied,
        copy_bytes=(folder / "copied").stat().st_size,
    )


def _alone(key: str, bundle: Path) -> dict[str, float]:
    """Return what the program that lies in every bundle takes for one: seconds, its start included, and megabytes."""
    began = time.perf_counter()
    command = [sys.executable, "-c", _WITH_PEAK, str(SHIPPED), key, str(bundle)]
    done = subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    found = {"seconds": time.perf_counter() - began, "mb": int(done.stderr) / 1024}
    print(f"verify.py: {found['seconds']:.2f} s, {found['mb']:.0f} MB", file=sys.stderr)
    return found


def _bytes(folder: Path) -> int:
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def _copied(url: str, out: Path) -> float:
    """Return how long PostgreSQL takes to copy events and payloads into a file, in its binary form."""
    began = time.perf_counter()
    with psycopg.connect(url) as connection, out.open("wb") as file:
        for name in ("copy_events", "copy_payloads"):
            with connection.cursor().copy(server.QUERIES[name]) as copy:
                for data in copy:
                    file.write(data)
    return time.perf_counter() - began


# ---------------------------------------------------------------- what is said of it


def lines(found: Sequence[Sized]) -> list[Line]:
    """Return the table with its bars."""
    said: list[Line] = []
    for one in found:
        of = f"{one.revisions:,} revisions in {one.events:,} events"
        said += [
            bars.limit(f"export, {of}", one.export_s, EXPORT_S_MAX, "s"),
            bars.limit(f"verification, {of}", one.verify_s, VERIFY_S_MAX, "s"),
            Line("the same by verify.py, its start included", f"{one.alone_s:.2f} s", "", None, "", None),
            bars.limit("memory of an export", one.export_mb, MEMORY_MB_MAX, "MB"),
            Line(
                "bundle", f"{one.bytes:,} bytes", f"{one.wanted:,} for envelopes and proofs", one.bytes / one.wanted,
                "", None,
            ),
            Line("bundle, packed", f"{one.packed:,} bytes", "", None, "", None),
            Line(
                "complete: rate", f"{one.events / one.complete_s:,.0f} events/s",
                f"COPY {one.events / one.copy_s:,.0f} events/s", one.copy_s / one.complete_s, "", None,
            ),
            Line(
                "complete: size", f"{one.complete_bytes / one.events:,.0f} bytes an event",
                f"COPY {one.copy_bytes / one.events:,.0f}", one.complete_bytes / one.copy_bytes, "", None,
            ),
            Line("complete: verification", f"{one.complete_verify_s:.2f} s", "", None, "", None),
            bars.limit("complete: memory of the export", one.complete_mb, MEMORY_MB_MAX, "MB"),
            Line(
                "the ledger as lines: rate", f"{one.events / one.lines_s:,.0f} events/s",
                f"{one.lines_bytes / one.events:,.0f} bytes an event", None, "", None,
            ),
            bars.limit("the ledger as lines: memory", one.lines_mb, MEMORY_MB_MAX, "MB"),
            Line(
                "the ledger as a bundle: rate", f"{one.events / one.log_s:,.0f} events/s",
                f"{one.log_bytes / one.events:,.0f} bytes an event", None, "", None,
            ),
            bars.limit("the ledger as a bundle: memory", one.log_mb, MEMORY_MB_MAX, "MB"),
            Line(
                "the ledger as a bundle: verification", f"{one.log_verify_s:.1f} s", f"{one.log_verify_mb:.0f} MB",
                None, "", None,
            ),
            Line(
                "the same by verify.py", f"{one.log_alone_s:.1f} s", f"{one.log_alone_mb:.0f} MB", None, "", None,
            ),
        ]  # fmt: skip
    return said


def main() -> int:
    """Build, measure, print; 1 if a bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.export", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--events", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--revisions", type=int, default=1_000)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured to a file")
    parser.add_argument("--act", nargs=5, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.act:
        name, url, home, out, key = asked.act
        print(json.dumps(act(name, url, Path(home), Path(out), key)))
        return 0
    with server.durable_server() as server_url, TemporaryDirectory(prefix="corrigenda-bench-") as folder:
        found = [
            measured(server_url, Path(folder) / f"home-{events}", events, asked.revisions) for events in asked.events
        ]
    said = lines(found)
    print(bars.text(said))
    if asked.json:
        document: dict[str, Any] = {"sized": [one._asdict() for one in found]}  # Any: JSON
        asked.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0 if all(line.met in (True, None) for line in said) else 1


if __name__ == "__main__":
    sys.exit(main())
