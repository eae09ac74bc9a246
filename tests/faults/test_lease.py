"""Targets that processes share: one carrier at a time, and no crash or stalled carrier changes what they end with."""

import random
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from ledger.store import Database, OutboxRow, Store
from projections.lease import Gate, Leases, carry
from tests.house import tamper

LEDGER = "01J9ZKAAAAAAAAAAAAAAAAAAAA"
ITEMS, EFFECTS = 40, 400


class Crash(Exception):
    """A carrier dies here."""


class Shelf:
    """A shared target: the items that it holds, and how often each effect changed it."""

    def __init__(self, *, guarded: bool) -> None:
        self.held: set[str] = set()
        self.changes: list[tuple[int, str]] = []
        self.resurrected = 0
        self.meanwhile: Callable[[], None] = lambda: None
        self._gate = Gate() if guarded else None
        self._gone: dict[str, int] = {}

    def apply(self, row: OutboxRow, fence: int, /) -> None:
        """Put or remove the item of a row; what happens meanwhile comes first."""
        self.meanwhile()
        seq, item, effect, _ = row
        if self._gate is not None and not self._gate.admits(item, seq, fence):
            return
        self.changes.append((seq, item))
        if effect == "put":
            self.resurrected += self._gone.get(item, -1) > seq
            self.held.add(item)
        else:
            self._gone[item] = max(seq, self._gone.get(item, -1))
            self.held.discard(item)


@pytest.fixture
def store(ledger_url: str) -> Iterator[Store]:
    """Return the tables of a ledger that has nothing but an outbox: effects on few items, in a chance order."""
    chance = random.Random(6)
    made = Store(Database(ledger_url), LEDGER)
    with closing(made.database):
        made.write(
            "insert_outbox",
            seqs=[*range(EFFECTS)],
            revisions=[f"item-{chance.randrange(ITEMS)}" for _ in range(EFFECTS)],
            effects=[chance.choice(("put", "remove")) for _ in range(EFFECTS)],
            lineages=["lineage"] * EFFECTS,
        )
        yield made


def expected(store: Store) -> set[str]:
    """Return what the outbox leaves: each item whose last effect puts it."""
    last = {item: effect for _, item, effect, _ in store.outbox(after=-1, until=EFFECTS, limit=EFFECTS)}
    return {item for item, effect in last.items() if effect == "put"}


def in_trouble(store: Store, shelf: Shelf) -> None:
    """Carry with deaths, and with carriers that stall, are taken over and go on, until a last one comes to its end."""
    chance, depth = random.Random(7), 0

    def meanwhile() -> None:
        nonlocal depth
        what = chance.random()
        if what < 0.02:
            raise Crash
        if what < 0.04 and depth < 3:  # it stalls here; another one takes over, and dies or comes to its end
            depth += 1
            attempt(f"taker-{chance.random()}")
            depth -= 1

    def attempt(owner: str) -> None:
        try:
            carry(store, shelf, "shelf", owner=owner, until=EFFECTS - 1, seconds=0)
        except Crash:
            return

    shelf.meanwhile = meanwhile
    for number in range(30):
        attempt(f"carrier-{number}")
    shelf.meanwhile = lambda: None
    carry(store, shelf, "shelf", owner="the last one", until=EFFECTS - 1, seconds=0)


def test_late_and_dead_carriers_do_no_harm(store: Store) -> None:
    """OH-27, OH-28: with fences and positions kept by the target, it ends as the outbox says, each effect once."""
    shelf = Shelf(guarded=True)
    in_trouble(store, shelf)
    assert shelf.held == expected(store)
    assert (len(shelf.changes), shelf.resurrected) == (len(set(shelf.changes)), 0)


def test_without_the_guard_the_same_run_goes_wrong(store: Store) -> None:
    """The same trouble on a target that keeps neither: effects are repeated, and what was removed comes back."""
    shelf = Shelf(guarded=False)
    in_trouble(store, shelf)
    assert len(shelf.changes) > len(set(shelf.changes))
    assert shelf.resurrected > 0


def test_one_carrier_at_a_time(store: Store, ledger_url: str) -> None:
    """OH-28: a lease shuts others out for thirty seconds; then its rows are another's, and its holder moves nothing."""
    leases = Leases(store)
    first = leases.take("shelf", "a")
    assert first is not None and first.fence == 1
    assert leases.take("shelf", "b") is None
    assert leases.take("another shelf", "b") is not None
    shelf = Shelf(guarded=True)
    assert carry(store, shelf, "shelf", owner="b", until=EFFECTS - 1) == 0
    tamper(ledger_url, ("UPDATE corrigenda.lease SET expires_at = expires_at - interval '29 seconds'", ()))
    assert leases.take("shelf", "b") is None
    tamper(ledger_url, ("UPDATE corrigenda.lease SET expires_at = expires_at - interval '2 seconds'", ()))
    assert carry(store, shelf, "shelf", owner="b", until=EFFECTS - 1) == EFFECTS
    assert leases.keep(first, 5) is None
    again = leases.take("shelf", "a")
    assert again is not None
    assert (again.fence, again.cursor) == (3, EFFECTS - 1)
