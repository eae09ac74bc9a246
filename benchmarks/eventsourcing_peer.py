"""Our end of the process in which eventsourcing runs."""

import json
import subprocess
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from benchmarks.workload import Run

ROOT = Path(__file__).resolve().parents[1]
DEFAULTS = {"host": "127.0.0.1", "port": "5432", "user": "postgres", "password": ""}


class EventSourcing:
    """The library in its two modes, each in a database of its own and, for each case, in a new process.

    A process that stayed would keep its pool's connections, and the server has not enough for everybody's.
    """

    def __init__(self, python: Path, *, plain_url: str, functions_url: str) -> None:
        self._python = python
        self._plain = _parameters(plain_url)
        self._functions = _parameters(functions_url)

    def run(self, *, threads: int, seconds: float, batch: int = 1, functions: bool = False) -> Run:
        """Let it append; see `workload.measure`."""
        wish = {
            "parameters": self._functions if functions else self._plain,
            "functions": functions,
            "threads": threads,
            "seconds": seconds,
            "batch": batch,
        }
        command = [str(self._python), "-m", "benchmarks.eventsourcing_worker"]
        done = subprocess.run(command, cwd=ROOT, input=json.dumps(wish), stdout=subprocess.PIPE, text=True, check=True)
        return Run(**json.loads(done.stdout))


def _parameters(url: str) -> dict[str, str]:
    given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    return {**DEFAULTS, **given}
