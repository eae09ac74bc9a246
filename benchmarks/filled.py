"""A ledger with very many memories in one partition, and their vectors stored, without an embedder ever being asked.

Memories go in as pages, by our own committer with read models and outbox; vectors beside them, sealed by the ledger.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import corrigenda
from benchmarks import ours, server
from benchmarks.seeded import Seeded, as_embedder
from gateway.bootstrap import open_gateway
from ledger.message import ScopeIds
from projections.vectors import StoredVectors

PAGE = 1_000
SETTLING_MAX = 1_000  # times five seconds


class Filled:
    """A ledger of memories that are numbered from 0: number n says `ours.content(n)`."""

    def __init__(self, url: str, home: Path) -> None:
        self.url = ours.prepare(url, home)  # which remembers number 0, and so names the project
        self.home = home
        self.count = 1
        self._scope = ScopeIds(agent=None, project=self._project(), session=None, task_family=None, user=None)

    def fill(self, count: int) -> None:
        """Remember so many more, and store their vectors."""
        with ours.raw(self.url, self.home, models=True) as ledger:
            stored = StoredVectors(ledger.ledger, Seeded())
            end = self.count + count
            while self.count < end:
                page = min(PAGE, end - self.count)
                stored.of(ledger.remember_page(range(self.count, self.count + page), self._scope))
                self.count += page

    def settle(self) -> None:
        """Bring the index to the head, keep it, and let all checks be made that the memories ask for."""
        with self.opened(Seeded(closed=True), replay=False) as gateway:
            gateway.recover()
            for _ in range(SETTLING_MAX):
                if not gateway.carry_late():
                    return
        raise RuntimeError("the checks that were asked for are not done after a long time")

    @contextmanager
    def opened(self, embedder: Seeded, *, replay: bool = True) -> Generator["corrigenda.Gateway"]:
        """Open a gateway with an embedder of ours; without `replay` it leaves what waits in the outbox alone."""
        with as_embedder(embedder), self.gateway(replay=replay) as gateway:
            yield gateway

    def gateway(self, *, replay: bool = True) -> "corrigenda.Gateway":
        """Return a gateway with the embedder of this process."""
        return open_gateway(
            database_url=self.url, home=self.home, project=ours.PROJECT, actor="human:bench", replay=replay
        )

    def _project(self) -> str:
        with corrigenda.open(self.url, home=self.home, project=ours.PROJECT, embedder="none") as gateway:
            for event in gateway.events():
                facts = gateway.show_event(event.seq).facts
                if facts.get("kind") == "project":
                    return str(facts["id"])
        raise RuntimeError("no event names the project")


@contextmanager
def filled(server_url: str, home: Path, count: int) -> Generator[Filled]:
    """Make a settled ledger of so many memories in a database of its own, for as long as the block runs."""
    with server.fresh_database(server_url) as url:
        ledger = Filled(url, home)
        with ledger.opened(Seeded()) as gateway:
            gateway.recover()  # the vector of number 0
        print(f"filling a ledger with {count:,} memories …", file=sys.stderr)
        ledger.fill(count - 1)
        print("carrying them into the index, and making the late checks …", file=sys.stderr)
        ledger.settle()
        yield ledger
