"""A process whose threads write for a while, whatever happens to the server; each repeats its key until it is answered.

    enduring.py '{"where": {…}, "gate": "/…", "name": "a", "threads": 50, "seconds": 20}'

`where` holds the arguments of `open_gateway`. Says `ready`, waits for the gate, and at the end says one JSON line for
each append: its key, revision and position, how often it was asked for, and how often its outcome was unknown.
"""

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gateway.bootstrap import open_gateway
from gateway.service import Gateway
from ledger.errors import CorrigendaError

ANSWER_WITHIN_S = 90.0

Words = dict[str, Any]  # Any: JSON


class Writers:
    """The threads of this process."""

    def __init__(self, gateway: Gateway, words: Words) -> None:
        self._gateway = gateway
        self._words = words
        self._said = threading.Lock()

    def run(self) -> None:
        """Write until the time is over."""
        until, threads = time.monotonic() + self._words["seconds"], self._words["threads"]
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(self._write, thread, until) for thread in range(threads)]:
                done.result()

    def _write(self, thread: int, until: float) -> None:
        turn, last = 0, ""
        while time.monotonic() < until:
            answer = self._persist(f"{self._words['name']}-{thread}-{turn}", last if turn % 2 else None)
            with self._said:
                print(json.dumps(answer), flush=True)
            turn, last = turn + 1, answer["revision"]

    def _persist(self, key: str, corrected: str | None) -> Words:
        """Ask for one append, of a new memory or of a correction, until it is answered."""
        until, asked, unknown = time.monotonic() + ANSWER_WITHIN_S, 0, 0
        while True:
            asked += 1
            try:
                if corrected is None:
                    receipt = self._gateway.remember(key, idempotency_key=key)
                else:
                    receipt = self._gateway.correct(corrected, key, idempotency_key=key)
            except CorrigendaError as error:
                if not error.retriable or time.monotonic() > until:
                    raise
                unknown += "not known" in error.message
                time.sleep((error.retry_after_ms or 100) / 1000)
            else:
                return {
                    "key": key, "revision": receipt.revision_id, "position": receipt.position,
                    "replayed": receipt.replayed, "asked": asked, "unknown": unknown,
                }  # fmt: skip


def main() -> None:
    """Write as the first argument says."""
    words: Words = json.loads(sys.argv[1])
    with open_gateway(**words["where"], replay=False) as gateway:
        print(json.dumps({"ready": True}), flush=True)
        while not Path(words["gate"]).exists():
            time.sleep(0.005)
        Writers(gateway, words).run()


if __name__ == "__main__":
    main()
