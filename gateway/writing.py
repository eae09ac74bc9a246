"""The one way to write: lock the head, catch up, look the key up, decide, commit, answer.

Before anything is decided the idempotency key is looked up, so a retry is told what its first attempt did, even if
by now the same wish would be refused. Whatever is refused leaves nothing behind.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from gateway.lineages import Lineages
from gateway.names import Names
from gateway.page import Append, Page
from gateway.receipts import receipt
from gateway.replies import Receipt
from ledger.clock import Clock, UlidMint
from ledger.codec import canonical
from ledger.committer import Committer, Draft
from ledger.errors import refuse
from ledger.store import HeadRow
from ledger.verified import Recorded, VerifiedLedger
from projections.directory import DirectoryProjector
from projections.lineage import RevisionProjector


class Wish(Struct, frozen=True, kw_only=True):
    """One command before it is decided: what it is called, who wants it, its request as given, and how to decide it."""

    operation: str
    actor: str
    request: Mapping[str, Any]  # Any: JSON
    key: str | None
    decide: Callable[[Append], None]
    dry_run: bool = False


class _OnlyTried(Exception):
    """Rolls a transaction back that was only tried, and carries what it would have answered."""

    def __init__(self, would_be: Receipt) -> None:
        super().__init__()
        self.receipt = would_be


class Writer:
    """Writes to one ledger, one caller at a time."""

    def __init__(self, ledger: VerifiedLedger, names: Names, lineages: Lineages, clock: Clock) -> None:
        self.mint = UlidMint(clock)
        self.lock = threading.RLock()
        self._ledger = ledger
        self._names = names
        self._lineages = lineages
        self._committer = Committer(ledger, [RevisionProjector(), DirectoryProjector()], clock)

    def write(self, wish: Wish) -> Receipt:
        """Carry out one wish: its receipt, or that of the same request's first time, or the refusal."""
        key = self.mint() if wish.key is None else wish.key
        request = self._ledger.keys.request([wish.actor, wish.operation], key)
        fingerprint = self._ledger.keys.fingerprint(canonical({"operation": wish.operation, **wish.request}))
        with self.lock:
            try:
                with self._ledger.store.transaction():
                    row = self.locked_head()
                    first = None if wish.key is None else self._ledger.walk.requests.get(request)
                    if first is not None:
                        return self.replay(first, fingerprint, row)
                    page = self.page()
                    append = page.begin(actor=wish.actor, request=request, fingerprint=fingerprint)
                    wish.decide(append)
                    page.close(append)
                    (group,) = self._committer.commit(row, page.drafts)
                    # Before the commit: nothing may stand between that and the answer which could still fail.
                    answer = receipt(group, self._names, incarnation=row.incarnation, dry_run=wish.dry_run)
                    if wish.dry_run:
                        raise _OnlyTried(answer)
            except _OnlyTried as tried:
                return tried.receipt
            self._committer.take([group])
            page.keep()
        return answer

    def commit(self, row: HeadRow, drafts: Sequence[Draft]) -> list[list[Recorded]]:
        """Store a page of drafts inside the caller's transaction; see `take`."""
        return self._committer.commit(row, drafts)

    def take(self, groups: Sequence[Sequence[Recorded]]) -> None:
        """Let the walk follow a page whose transaction has ended."""
        self._committer.take(groups)

    def locked_head(self) -> HeadRow:
        """Lock the head and catch up with it, inside the caller's transaction."""
        row = self._ledger.store.head(lock=True)
        self._ledger.catch_up()
        return row

    def page(self) -> Page:
        """Return a new page on the head that the caller has locked."""
        return Page(self._ledger.walk.head.size, self._names, self._lineages, self.mint)

    def replay(self, first: int, fingerprint: str, row: HeadRow) -> Receipt:
        """Return the receipt of an append that has been made, or refuse a key that was used for something else."""
        opening = self._ledger.at([first])[first].entry.envelope
        if opening.request_fp != fingerprint:
            refuse(
                "IDEMPOTENCY_KEY_REUSED",
                "This idempotency key was used before, for another request. Nothing was stored. Use a key of its own "
                "for each request, and the same one only to repeat the very same request.",
                position=first,
            )
        positions = range(first, first + opening.op_count)
        found = self._ledger.at(positions)
        group = [found[position] for position in positions]
        return receipt(group, self._names, incarnation=row.incarnation, replayed=True)
