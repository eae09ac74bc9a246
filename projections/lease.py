"""Carrying the outbox into a target that processes share: one carrier at a time, and once in effect whoever is late.

A lease says who carries, for a while; it cannot stop a process that was stalled and goes on after its lease has ended.
So each lease has a fence, a number higher than every earlier one's, and the target itself keeps the highest fence that
it has seen and, for each item, the position that it has last taken, of removals too. What is older is refused there.
No such target is built yet; an index replica is a process's own and needs none of this.
"""

from typing import Protocol

import msgspec
from msgspec import Struct

from ledger.limits import LEASE_S
from ledger.store import OutboxRow, Store

PAGE_ROWS = 64


class Lease(Struct, frozen=True, kw_only=True):
    """The right to carry into one target; `cursor` is the position up to which that was done."""

    target: str
    owner: str
    fence: int
    cursor: int


class StaleFenceError(Exception):
    """A target has seen a newer lease: whoever is told this has been taken over, and stops."""


class Gate:
    """What a shared target keeps beside its items, in one transaction with them."""

    def __init__(self) -> None:
        self.fence = 0
        self._taken: dict[str, int] = {}

    def admits(self, item: str, seq: int, fence: int) -> bool:
        """Report whether an effect is news, and remember it; one that was taken already is not.

        Raises StaleFenceError for a lease that was taken over.
        """
        if fence < self.fence:
            raise StaleFenceError(f"lease {fence} was taken over by {self.fence}")
        self.fence = fence
        if seq <= self._taken.get(item, -1):
            return False
        self._taken[item] = seq
        return True


class SharedTarget(Protocol):
    """Something that several processes carry the outbox into."""

    def apply(self, row: OutboxRow, fence: int, /) -> None:
        """Take one effect durably, as `Gate.admits` allows. Raises StaleFenceError."""
        ...


class Leases:
    """The leases of one ledger. The database's clock says when one ends."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def take(self, target: str, owner: str, seconds: float = LEASE_S) -> Lease | None:
        """Return a new lease with a higher fence, or None while somebody else holds one."""
        row = self._store.write("take_lease", target=target, owner=owner, seconds=seconds)
        return None if row is None else Lease(target=target, owner=owner, fence=int(row[0]), cursor=int(row[1]))

    def keep(self, lease: Lease, cursor: int, seconds: float = LEASE_S) -> Lease | None:
        """Return the lease with its end put off and its cursor moved, or None if it was taken over."""
        row = self._store.write(
            "keep_lease", target=lease.target, fence=lease.fence, cursor=cursor, seconds=seconds
        )  # fmt: skip
        return None if row is None else msgspec.structs.replace(lease, cursor=int(row[0]))

    def end(self, lease: Lease) -> None:
        """Let the next one in at once."""
        self.keep(lease, lease.cursor, 0)


def carry(store: Store, target: SharedTarget, name: str, *, owner: str, until: int, seconds: float = LEASE_S) -> int:
    """Carry the outbox up to a position into a shared target, if nobody else does; return how many rows were handed on.

    The target takes an effect before the cursor moves, so what a crash interrupts is handed on again and refused there.
    """
    leases = Leases(store)
    lease, handed = leases.take(name, owner, seconds), 0
    while lease is not None and lease.cursor < until:
        rows, reached = store.outbox_page(after=lease.cursor, until=until, limit=PAGE_ROWS)
        try:
            for row in rows:
                target.apply(row, lease.fence)
                handed += 1
        except StaleFenceError:
            return handed
        lease = leases.keep(lease, reached, seconds)
    if lease is not None:
        leases.end(lease)
    return handed
