"""Tombstones: what is forgotten is not learned again by a machine from the same source.

A tombstone's stream is computed from project, source and text, so whether there is one is looked up, never searched
for; that there is none is held to until the append is stored.
"""

from collections.abc import Sequence

from gateway.reading.reader import Reader
from gateway.writing.page import Append
from ledger.decider import Command
from ledger.digest import LedgerKeys
from ledger.memories import RevisionText
from ledger.tombstones import TOMBSTONE, LiftTombstone, SetTombstone, check_not_buried

LEARNED = ("llm_extracted", "import")  # the origins that a tombstone stops


class Graveyard:
    """Sets, lifts and heeds the tombstones of one ledger's texts."""

    def __init__(self, keys: LedgerKeys, reader: Reader) -> None:
        self._keys = keys
        self._reader = reader

    def bury(self, append: Append, lineage: str, revision: str) -> None:
        """Decide that what a revision says is not learned again from its sources."""
        self._decide(append, lineage, revision, SetTombstone(revision=revision))

    def dig_up(self, append: Append, lineage: str, revision: str) -> None:
        """Decide that it may be learned again, as far as it was this revision that stopped it."""
        self._decide(append, lineage, revision, LiftTombstone(revision=revision))

    def streams(self, project: str, text: RevisionText) -> list[str]:
        """Return the streams of a text's tombstones."""
        return _streams(self._keys, project, text.content, text.provenance.sources)

    def _decide(self, append: Append, lineage: str, revision: str, command: Command) -> None:
        item = append.state(lineage).revisions[revision]
        text = self._reader.text(append, lineage, revision)
        for stream in self.streams(item.scope.project, text):
            append.decide_on(TOMBSTONE, stream, command)


def refuse_buried(
    append: Append, keys: LedgerKeys, *, project: str, origin: str, content: str, sources: Sequence[str]
) -> None:
    """Refuse with MEMORY_DELETED a text that a machine learned, if it was forgotten; persons and agents may say it."""
    if origin in LEARNED:
        for stream in _streams(keys, project, content, sources):
            check_not_buried(append.of(TOMBSTONE, stream))


def _streams(keys: LedgerKeys, project: str, content: str, sources: Sequence[str]) -> list[str]:
    """Return the streams of a text's tombstones: one per source, or the one of no source."""
    return [keys.tombstone(project, source, content) for source in dict.fromkeys(sources) or [""]]
