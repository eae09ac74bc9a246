"""What a trace's question may no longer say: the texts that were withdrawn from view, told from a question by digests.

Of such a text nothing is kept but digests: the ledger's own of exactly what it said, and one of its words, whatever
their case and what stands between them. Of one that was erased only the first is left. A question is held back rather
than shown before it was compared with all of them.
"""

import hashlib
from collections.abc import Sequence

from gateway.reading.sound import sound
from gateway.views.words import words_of
from ledger.memories import Birth, RevisionText
from ledger.verified import Recorded, VerifiedLedger
from projections.lineage import QUERIES

HIDING = ("memory.forgotten.v1", "memory.restored.v1", "payload.erased.v1")  # what withdraws, or brings back
READ_MAX = 20_000  # texts that one question has read at most: what is left then is read for the next ones
_CHUNK = 500


class Unsaid:
    """The texts of one ledger that were withdrawn from view. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger) -> None:
        self._ledger = ledger
        self._position = -1
        self._hidden = frozenset[int]()  # where they were recorded
        self._left: list[int] = []  # of these, what was not read yet
        self._read = set[int]()
        self._exact: dict[str, dict[str, set[int]]] = {}  # by project and digest, where it is
        self._words: dict[bytes, set[int]] = {}

    def holds(self, question: str) -> bool:
        """Report whether a question repeats what is not shown any more, or may do so."""
        self._look()
        if self._left:
            return True
        found = set(self._words.get(_digest(question), ()))
        for project, contents in self._exact.items():
            found |= contents.get(self._ledger.keys.content(project, question), set())
        return not found.isdisjoint(self._hidden)

    def _look(self) -> None:
        """See what is withdrawn at the present position, and read what of it was not read yet, or the first of that."""
        position = self._ledger.walk.position
        if self._left or self._may_have_changed(position):
            self._hidden = frozenset(seq for (seq,) in self._ledger.store.query(QUERIES["find_hidden"], {}))
            unread = sorted(self._hidden - self._read)
            for first in range(0, min(len(unread), READ_MAX), _CHUNK):
                self._take(unread[first : min(first + _CHUNK, READ_MAX)])
            self._left = unread[READ_MAX:]
        self._position = position  # only now: what could not be read is looked for again

    def _may_have_changed(self, position: int) -> bool:
        """Report whether anything was withdrawn or brought back since the last look; if not, nothing is searched."""
        if self._position < 0 or self._position == position:
            return self._position < 0
        params = {"after": self._position, "types": list(HIDING)}
        ((found,),) = self._ledger.store.query(QUERIES["has_hiding"], params)
        return bool(found)

    def _take(self, places: Sequence[int]) -> None:
        # A text that is broken is shown nowhere, and cannot be compared either.
        for seq, item in sound(self._ledger.at, set(places), []).items():
            self._note(seq, item)
        self._read |= set(places)

    def _note(self, seq: int, item: Recorded) -> None:
        facts, text = item.entry.envelope.facts, item.payload
        if isinstance(facts, Birth):
            self._exact.setdefault(facts.scope.project, {}).setdefault(facts.content, set()).add(seq)
        if isinstance(text, RevisionText):
            self._words.setdefault(_digest(text.content), set()).add(seq)


def _digest(text: str) -> bytes:
    """Return what texts have in common that say the same words in the same order; of one without words, itself."""
    said = " ".join(words_of(text)) or text
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).digest()
