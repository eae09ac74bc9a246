"""What keeps a ledger in use: recovery of what is derived from it."""

from collections.abc import Sequence

import msgspec

from gateway.imports.importing import Progress
from gateway.service.base import UseCases, listed
from gateway.shapes import requests
from gateway.shapes.replies.models import Rebuild, Reembedding
from gateway.shapes.replies.upkeep import Recovery, Status
from gateway.upkeep.models import differences
from projections.checking import PROJECTION_DRIFT
from projections.rebuilding import rebuild
from projections.recovery import Recovered, recover, untouched
from projections.reembedding import reembed
from projections.relay import Relay


class Operating(UseCases):
    """Rebuild and recover."""

    def status(self) -> Status:
        """Return one screen about the ledger and what is derived from it.

        The index is what this process searches in, once it is open: it may be further than the newest generation.
        """
        self._require("read")
        with self._writer.lock:
            self._ledger.catch_up()
            found, held = self._survey(), self._relay.replica
            if held is None:
                return found
            index = {**found.index, "cursor": self._relay.cursor, "items": len(held)}
            return msgspec.structs.replace(found, index=index, index_pending=self._relay.pending())

    def recover(
        self,
        *,
        check_only: bool = False,
        dry_run: bool = False,
        only: Sequence[str] = ("index", "outbox", "claims"),
        progress: Progress | None = None,
    ) -> Recovery:
        """Bring the index to the ledger's head and say what it took; or, with `check_only`, what it would take.

        `only` names parts: index (a generation that cannot be used is made anew, and its entries are put right), outbox
        (what waits is carried, what failed is tried until it is in or parked) and claims (of which there are none yet).
        The answer is not `ok` while anything is parked.
        """
        self._require("recover")
        parts = requests.parse(requests.RecoveryRequest, only=listed(only)).only
        only_look = check_only or dry_run
        done = self._recovered(parts, only_look, progress)
        if "outbox" in parts and not only_look:
            self.carry_late()
        with self._writer.lock:
            parked = self._relay.parked()
        return Recovery(
            ok=not parked,
            replayed=done.replayed,
            skipped=done.skipped,
            parked=parked,
            repaired=done.repaired,
            index={"action": done.action, "why": done.why},
            claims=(),
            position=self._reader.position,
            incarnation=self._reader.incarnation,
        )

    def _recovered(self, parts: Sequence[str], only_look: bool, progress: Progress | None) -> Recovered:
        if set(parts) == {"claims"}:
            with self._writer.lock:
                self._ledger.catch_up()
                return untouched()
        return recover(
            self._ledger,
            self._relay,
            alone=self._writer.lock,
            check_only=only_look,
            outbox="outbox" in parts,
            progress=progress,
        )

    def rebuild(self, *, progress: Progress | None = None) -> Rebuild:
        """Make all read models anew from the events, beside the live ones, and swap; an interrupted rebuild goes on.

        Reading and writing go on meanwhile, in this process too. `progress` is told how many events were taken up, and
        how many there are. Errors: UNAVAILABLE (a rebuild is under way), INTEGRITY_BROKEN (an event is not what was
        verified, or one that no read model can take up: it is named, and the live ones stay).
        """
        self._require("recover")
        with self._writer.lock:
            self._ledger.catch_up()
        done = rebuild(self._ledger, is_idle=lambda: self._writer.is_idle, progress=progress)
        return Rebuild(
            ok=not done.differences,
            exit_code=PROJECTION_DRIFT if done.differences else 0,
            generation=done.generation,
            retired=done.retired,
            version=done.projector,
            version_before=done.projector_before,
            position=done.position,
            began_at=done.began_at,
            rows=done.rows,
            rows_before=done.rows_before,
            differences=differences(done.differences),
            locked_ms=round(done.locked_s * 1000),
        )

    def reembed(self, *, progress: Progress | None = None) -> Reembedding:
        """Embed what stands with the configured embedder, beside the live index, and swap; an interrupted run goes on.

        Reading and writing go on meanwhile. `progress` is told how many effects were carried, and how many there are.
        Errors: EMBEDDER_UNAVAILABLE, INDEX_UNAVAILABLE; the live index stays then.
        """
        self._require("recover")
        done = reembed(self._ledger, self._relay, alone=lambda: self._writer.lock, progress=progress)
        return Reembedding(
            signature=done.signature,
            signature_before=done.signature_before,
            items=done.items,
            embedded=done.embedded,
            parked=done.parked,
            position=done.position,
        )

    @property
    def index(self) -> Relay:
        """Return this process's index replica, for recovery, diagnosis and tests."""
        return self._relay
