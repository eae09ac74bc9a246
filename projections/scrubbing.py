"""Comparing little by little: what a process that runs long does now and then, and a short one at its start and end.

It has no thread of its own and keeps to a budget. What it finds wrong it puts right and logs; a ledger or an embedder
that does not answer now is left for the next time.
"""

import logging
import random
import time

from ledger.errors import CorrigendaError
from ledger.parking import SETTLED, Parking
from ledger.sql import load
from ledger.verified import VerifiedLedger
from projections.comparing import Compared, Comparison
from projections.embedders import Embedder
from projections.index.partitions import PartitionedIndex
from projections.items import Item, placed, streams_of
from projections.relay import Relay

QUERIES = load("projections")
GLANCE_S = 1.0

_log = logging.getLogger(__name__)


class Scrubber:
    """Goes through a replica again and again, a slice for each call. The caller holds the ledger's lock, caught up."""

    def __init__(self, ledger: VerifiedLedger, relay: Relay) -> None:
        self._ledger = ledger
        self._relay = relay
        self._round: Comparison | None = None
        self._told = 0
        self.rounds = 0
        self.repaired = 0

    def scrub(self, budget_s: float) -> int:
        """Compare, batch by batch, until the time is up or a round is done, and return how many entries were mended.

        At least one batch is compared. A replica that is not open, or is frozen, is left alone.
        """
        until, before = time.monotonic() + budget_s, self.repaired
        try:
            round_ = self._going()
            while round_ is not None:
                more = round_.step()
                self._tell(round_.result())
                if not more:
                    self._round, self.rounds = None, self.rounds + 1
                if not more or time.monotonic() >= until:
                    break
        except CorrigendaError as error:
            self._round = None
            _log.warning("index.not_scrubbed", extra={"code": error.code})
        return self.repaired - before

    def glance(self) -> int:
        """Count what is held against the read models, and scrub for a second if there are more or fewer."""
        index, embedder = self._relay.replica, self._relay.embedder
        if index is None or embedder is None or self._relay.frozen:
            return 0
        rows = self._ledger.store.query(QUERIES["count_standing"], {})
        position, revisions, corrections = rows[0] if rows else (-1, 0, 0)
        expected = revisions + corrections
        if position != self._relay.cursor or expected == len(index):
            return 0
        expected -= self._without_vectors(index, embedder)
        if expected == len(index):
            return 0
        _log.warning("index.drift", extra={"expected": expected, "held": len(index)})
        return self.scrub(GLANCE_S)

    def _without_vectors(self, index: PartitionedIndex, embedder: Embedder) -> int:
        """Return how many entries stand and are not held because the embedder failed on them."""
        noted = Parking(self._ledger.store, embedder.signature).all()
        known = streams_of(self._ledger, (one.revision for one in noted if one.state != SETTLED))
        stand = placed(self._ledger, (Item(lineage, revision) for revision, lineage in known.items()))
        return sum(1 for item in stand if str(item) not in index)

    def _going(self) -> Comparison | None:
        index, embedder = self._relay.replica, self._relay.embedder
        if index is None or embedder is None or self._relay.frozen:
            return None
        if self._round is None or self._round.index is not index:
            self._told = 0
            self._round = Comparison(
                self._ledger,
                embedder,
                index,
                lambda: self._relay.cursor,
                repair=True,
                # Where it begins is drawn, so that many short processes come to everything between them.
                first=random.randrange(1 << 32),
            )
        return self._round

    def _tell(self, found: Compared) -> None:
        fresh = found.repaired - self._told
        if fresh:
            self._told = found.repaired
            self.repaired += fresh
            self._relay.changed()
            _log.warning("index.repaired", extra={"entries": fresh, **found.counts})
