"""eventsourcing, by its own recorder, in its own environment: does the one thing that standard input asks for.

Asked is `{"parameters": {…}, "functions": bool, "threads": N, "seconds": S, "batch": B}`; the answer holds events,
seconds and the calls' times. Run by the peer's interpreter: the standard library, the peer, and `benchmarks.workload`.
"""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from typing import Any
from uuid import uuid4  # noqa: TID251 - the peer wants UUIDs

from eventsourcing.persistence import InfrastructureFactory, StoredEvent  # pyright: ignore[reportMissingImports] - its own venv

from benchmarks.workload import Append, body, measure

THREADS_MAX = 32


class Recorder:
    """An application recorder of the library's PostgreSQL module, as its documentation sets it up."""

    def __init__(self, parameters: dict[str, str], *, functions: bool) -> None:
        environment = {
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "POSTGRES_DBNAME": parameters["dbname"],
            "POSTGRES_HOST": parameters["host"],
            "POSTGRES_PORT": parameters["port"],
            "POSTGRES_USER": parameters["user"],
            "POSTGRES_PASSWORD": parameters["password"],
            "POSTGRES_SCHEMA": "public",
            "POSTGRES_POOL_SIZE": str(THREADS_MAX + 2),
        }
        if functions:
            environment["POSTGRES_ENABLE_DB_FUNCTIONS"] = "yes"
        self._factory = InfrastructureFactory.construct(env=environment)
        self._recorder = self._factory.application_recorder()

    def close(self) -> None:
        """Close its pool of connections."""
        self._factory.close()

    @contextmanager
    def writer(self, _: int) -> Generator[Append]:
        """Give a caller with a stream of its own, whose every call is one event at the next version."""
        stream, versions = uuid4(), count(1)

        def append() -> None:
            version = next(versions)
            self._recorder.insert_events([StoredEvent(stream, version, "bench:Corrected", body(version))])

        yield append

    def batches(self, size: int) -> Any:  # Any: the context manager of `writer`
        """Return a writer whose every call is `size` events of a new stream in one transaction."""

        @contextmanager
        def batch(_: int) -> Generator[Append]:
            def append() -> None:
                stream = uuid4()
                rows = [
                    StoredEvent(stream, version, "bench:Corrected", body(version)) for version in range(1, size + 1)
                ]
                self._recorder.insert_events(rows)

            yield append

        return batch


def main() -> None:
    """Measure once, and answer."""
    wish = json.load(sys.stdin)
    recorder, size = Recorder(wish["parameters"], functions=wish["functions"]), wish["batch"]
    writer = recorder.writer if size == 1 else recorder.batches(size)
    run = measure(writer, threads=wish["threads"], seconds=wish["seconds"], events_per_call=size)
    recorder.close()
    print(json.dumps(run._asdict()))


if __name__ == "__main__":
    main()
