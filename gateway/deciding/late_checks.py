"""The check for contradicted learnings, made once more when the outbox is carried: by any process, once in effect.

A learning and a correction that were appended at the same time did not see each other; and a check that was deferred is
still to be made. How far this was done is kept in the database, not with a replica of the index: a process that is
killed leaves the rest to the next one, and a new replica repeats nothing. It never holds the ledger's lock while it
writes.
"""

import threading
import time
from collections.abc import Callable

from msgspec import Struct

from gateway.deciding.contradiction import Cause, Contradictions, Learning, Near
from gateway.writing.page import Append
from gateway.writing.policies import CONTRADICTION_THRESHOLD, INVALIDATE_CONTRADICTED, Policies
from gateway.writing.writer import Wish, Writer
from ledger.errors import ConflictError, IntegrityError, InvalidInputError, refuse
from ledger.ids import CORRECTION, kind_of
from ledger.outbox import PUT
from ledger.store import OutboxRow
from ledger.verified import VerifiedLedger
from projections.embedders import Embedder
from projections.embedders.patience import at_most

TASK = "contradiction"
ACTOR = "service:corrigenda"
PAGE_ROWS = 256
KEEP_ROWS = 1_024


class _Page(Struct, frozen=True):
    """What some outbox rows make due, and the position that is reached when it is done."""

    due: list[tuple[Cause, Near]]
    reached: int


class LateChecks:
    """Makes the checks that outbox rows ask for."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        writer: Writer,
        contradictions: Contradictions,
        policies: Policies,
        load_embedder: Callable[[], Embedder | None],
    ) -> None:
        self._ledger = ledger
        self._writer = writer
        self._contradictions = contradictions
        self._policies = policies
        self._load_embedder = load_embedder
        self._one_at_a_time = threading.Lock()
        self._carried = self._kept = -1

    @property
    def is_behind(self) -> bool:
        """Report whether there are rows, as far as the walk has come, that this process does not know to be checked."""
        return self._ledger.walk.position > self._carried

    @property
    def carried(self) -> int:
        """Return the position up to which this process knows all to be checked."""
        return self._carried

    def carry(self, limit_s: float, *, keep: bool = False, slice_s: float | None = None) -> int:
        """Make the checks of all rows up to the ledger's head, or until `limit_s` has passed; return how many wait.

        Without an embedder none is made: they wait for a process that has one. How far it got is kept when something
        was due, and with `keep`. No page is begun after `slice_s`. The caller holds no lock.
        """
        pause_s = limit_s if slice_s is None else slice_s
        began = time.monotonic()
        with self._one_at_a_time, at_most(limit_s):
            while (page := self._next_page()) is not None:
                for cause, near in page.due:
                    self._invalidate(cause, near)
                with self._writer.lock:
                    self._carried = page.reached
                    if page.due or self._carried - self._kept >= KEEP_ROWS:
                        self._keep()
                    if time.monotonic() - began > pause_s:
                        return self._ledger.store.count("count_outbox", after=page.reached)
            with self._writer.lock:
                if keep and self._carried > self._kept:
                    self._keep()
        return 0

    def _keep(self) -> None:
        self._ledger.store.write("mark_carried", task=TASK, seq=self._carried)
        self._kept = self._carried

    def _next_page(self) -> _Page | None:
        """Return the next rows' checks; None if nothing is left, or nothing can be done."""
        with self._writer.lock:
            until = self._ledger.catch_up()
            if self._carried >= until or self._load_embedder() is None:
                return None
            self._kept = max(self._kept, self._ledger.store.count("read_carried", task=TASK))
            self._carried = max(self._carried, self._kept)
            if self._carried >= until:
                return None
            rows, reached = self._ledger.store.outbox_page(after=self._carried, until=until, limit=PAGE_ROWS)
            put = [row for row in rows if row[2] == PUT]
            # Most rows are of no learning: which ones are is read for all of them at once.
            learnings = self._contradictions.learnings([(item, lineage) for _, item, _, lineage in put])
            due: list[tuple[Cause, Near]] = []
            for row in put:
                pairs, whole = self._due(row, learnings.get(row[1]))
                due += pairs
                if not whole:
                    return _Page(due, row[0] - 1)
            return _Page(due, reached)

    def _due(self, row: OutboxRow, learning: Learning | None) -> tuple[list[tuple[Cause, Near]], bool]:
        """Return what a row makes due, and whether all of it could be looked at; it may be of a learning."""
        position, item, _, _ = row
        try:
            if kind_of(item) != CORRECTION:
                found = [] if learning is None else self._contradictions.of_learning(learning, position)
                return found, True
            cause = self._contradictions.cause(item)
            near, whole = ([], True) if cause is None else self._contradictions.of_correction(cause)
            return [(cause, one) for one in near if cause is not None], whole
        except IntegrityError:
            return [], True  # a broken stream is served to nobody and contradicts nothing: no reason to stop here

    def _invalidate(self, cause: Cause, near: Near) -> None:
        """Invalidate a learning by one command, whose key is made of the learning and the correction."""
        revision, correction = near.learning.revision, cause.correction
        wish = Wish(
            operation=TASK,
            actor=ACTOR,
            request={"learning": revision, "correction": correction},
            key=f"{revision}:{correction}",
            decide=lambda append: self._decide(append, correction, near),
        )
        try:
            self._writer.write(wish)
        except (ConflictError, InvalidInputError):
            return  # another process did it, or it does not hold any more

    def _decide(self, append: Append, correction: str, near: Near) -> None:
        cause = self._contradictions.cause_within(append, correction)
        before = len(append.events)
        if cause is not None and self._applies(append, cause, near):
            self._contradictions.take(append, correction, cause.text, [near])
        if len(append.events) == before:
            refuse("NO_CHANGE", "The correction does not contradict this learning any more. Nothing was stored.")

    def _applies(self, append: Append, cause: Cause, near: Near) -> bool:
        project = cause.scope.project
        if not self._policies.within(append, INVALIDATE_CONTRADICTED, project):
            return False
        threshold = self._policies.within(append, CONTRADICTION_THRESHOLD, project)
        return float(near.similarity) >= threshold and not self._contradictions.is_excused(near.learning, cause)
