"""How fast and in how much memory a ledger is verified, beside the simplest read model of message-db.

The ledgers and the passes are `verify_rate`'s; here they only take their turn in the rounds.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import server, verify_rate
from benchmarks.workload import Run

EVENTS = 100_000
MANY_EVENTS = 1_000_000


class Verified:
    """A ledger of sealed events that is verified whole, each time in a process of its own."""

    def __init__(self, url: str, home: Path, *, streams: str, events: int) -> None:
        home.mkdir(mode=0o700)
        self._url = url
        self._home = home
        store = verify_rate.build(url, home, events, streams)
        self._ledger = store.ledger
        store.database.close()
        self.peak_mb = 0.0

    def run(self) -> Run:
        """Verify it once; `peak_mb` is the highest of all runs."""
        (found,) = verify_rate.measure(self._url, self._home, self._ledger, 1)
        self.peak_mb = max(self.peak_mb, found["peak_mb"])
        seconds = found["events"] / found["rate"]
        return Run(found["events"], seconds, [seconds])


@contextmanager
def verified(server_url: str, home: Path, *, streams: str, events: int) -> Generator[Verified]:
    """Build a ledger of that many events in a database of its own, for as long as the block runs."""
    with server.fresh_database(server_url) as url:
        yield Verified(url, home, streams=streams, events=events)
