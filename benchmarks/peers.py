"""The peers, in a cache folder: `eventsourcing` from PyPI in an environment of its own, message-db's SQL from npm.

    python -m benchmarks.peers

Neither the project's requirements nor the tests' grow by them. `CORRIGENDA_BENCH_CACHE` moves the folder. What cannot
be had is said so, and the benchmark then prints a line without a figure; nothing is ever put in a peer's place.
"""

import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

EVENTSOURCING = "9.5.6"
MESSAGE_DB = "1.3.1"
FETCH_TIMEOUT_S = 300


def cache() -> Path:
    """Return the folder in which the peers lie."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return Path(os.environ.get("CORRIGENDA_BENCH_CACHE") or caches / "corrigenda-benchmarks")


def eventsourcing_python() -> Path | None:
    """Return the interpreter that can import eventsourcing, or None while it has not been fetched."""
    python = cache() / f"eventsourcing-{EVENTSOURCING}" / "bin" / "python"
    return python if (python.parent.parent / "complete").exists() else None


def message_db_folder() -> Path | None:
    """Return the folder of message-db's SQL, or None while it has not been fetched."""
    folder = cache() / f"message-db-{MESSAGE_DB}" / "package" / "database"
    return folder if (folder / "functions" / "write-message.sql").exists() else None


def fetch_eventsourcing() -> None:
    """Make the environment with the ordinary clients of its registry."""
    place = cache() / f"eventsourcing-{EVENTSOURCING}"
    venv.create(place, with_pip=True, clear=True)
    wanted = [f"eventsourcing[postgres]=={EVENTSOURCING}", "psycopg[binary,pool]"]
    _run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *wanted], place)
    (place / "complete").touch()


def fetch_message_db() -> None:
    """Fetch the package and unpack it."""
    place = cache() / f"message-db-{MESSAGE_DB}"
    place.mkdir(parents=True, exist_ok=True)
    _run(["npm", "pack", "--silent", f"@eventide/message-db@{MESSAGE_DB}"], place)
    (packed,) = place.glob("*.tgz")
    with tarfile.open(packed) as archive:
        archive.extractall(place, filter="data")


def _run(command: list[str], place: Path) -> None:
    subprocess.run(command, cwd=place, check=True, timeout=FETCH_TIMEOUT_S, stdin=subprocess.DEVNULL, stdout=sys.stderr)


def main() -> int:
    """Fetch what is not there yet; 1 if a peer could not be had."""
    failed = False
    for name, found, fetch in (
        ("eventsourcing", eventsourcing_python, fetch_eventsourcing),
        ("message-db", message_db_folder, fetch_message_db),
    ):
        if found() is None:
            try:
                fetch()
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                print(f"{name}: could not be had: {error}", file=sys.stderr)
                failed = True
                continue
        print(f"{name}: {found()}")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
