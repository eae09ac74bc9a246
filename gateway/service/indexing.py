"""The index as a whole: is it what the ledger says, make it anew, look after it little by little."""

from gateway.imports.importing import Progress
from gateway.service.base import UseCases
from gateway.shapes.replies.models import IndexCheck, IndexRebuild
from gateway.upkeep.index_check import checked
from ledger.errors import CorrigendaError, failure
from projections.recovery import examine, sound_out
from projections.reindexing import reindex


class Indexing(UseCases):
    """Check, rebuild and scrub the index. Others read and write on meanwhile, in this process too."""

    def verify_index(self, *, progress: Progress | None = None) -> IndexCheck:
        """Compare the index with the ledger, both ways, and change nothing.

        What should be held is told by verified events and sealed vectors, at the position up to which the index was
        carried. Errors: NOT_CONFIGURED (there is no embedder, so no index), INTEGRITY_BROKEN (the ledger itself).
        """
        self._require("read")
        found = examine(self._ledger, self._relay, alone=self._writer.lock, progress=progress)
        if found is None:
            raise _no_index()
        return checked(found, position=self._reader.position, incarnation=self._reader.incarnation)

    def probe_index(self) -> tuple[bool, str]:
        """Search for a few entries by their own vectors; return whether all came first, and that in a sentence.

        It changes nothing, and takes as long as its searches do: for `doctor`, and for a probe of readiness.
        """
        self._require("read")
        found = sound_out(self._ledger, self._relay, alone=self._writer.lock)
        if found is None:
            return True, "no embedder, so no index"
        if found.failed:
            return False, f"{len(found.failed)} of {found.probed} entries do not come first when they are searched for"
        return True, f"{found.probed} entries came first when they were searched for"

    def rebuild_index(self, *, progress: Progress | None = None) -> IndexRebuild:
        """Build the index anew beside the live one, from stored vectors, and swap.

        Only texts that stand and have no stored vector are embedded. `progress` is told how many streams were gone
        through, and how many there are. Errors: NOT_CONFIGURED (there is no embedder), EMBEDDER_UNAVAILABLE (a text has
        to be embedded; the live index stays), INDEX_UNAVAILABLE (it cannot be written; it is used, and not kept).
        """
        self._require("recover")
        done = reindex(self._ledger, self._relay, alone=self._writer.lock, progress=progress)
        if done is None:
            raise _no_index()
        return IndexRebuild(
            entries=done.entries,
            entries_before=done.entries_before,
            embedded=done.embedded,
            carried=done.carried,
            kept=done.kept,
            position=self._reader.position,
            incarnation=self._reader.incarnation,
        )

    def scrub_index(self, budget_s: float) -> int:
        """Compare the next part of the index with the ledger for about so long, and return how many were mended.

        For a process that runs long, now and then. What goes wrong is logged, and left for the next time.
        """
        self._require("recover")
        with self._writer.lock:
            self._ledger.catch_up()
            return self._scrubber.scrub(budget_s)


def _no_index() -> CorrigendaError:
    return failure(
        "NOT_CONFIGURED",
        "An index was to be looked at, and there is none, because no embedder is configured. Name one "
        "(CORRIGENDA_EMBEDDER=builtin, say); searches find nothing until then.",
    )
