"""The texts that a reader may see, read through one by one: for a search that no index can answer.

The read models say which revisions there may be, and where; what is handed out was read from verified entries. No text
is kept: a copy that could be searched would be a copy that an erasure has to reach.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.sound import sound
from ledger.memories import Birth, RevisionText
from ledger.message import ScopeIds
from ledger.scope import sees
from ledger.verified import Recorded, VerifiedLedger
from projections.items import Item
from projections.lineage import QUERIES

_CHUNK = 500

Place = tuple[int, str, str]


class Scanned(NamedTuple):
    """A revision that a reader may see, as it was born."""

    item: Item
    facts: Birth
    text: RevisionText


class Scan:
    """Reads through the revisions of one ledger. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger) -> None:
        self._ledger = ledger

    def places(
        self, scope: ScopeIds, *, at: int, states: Sequence[str], kinds: Sequence[str], most: int | None
    ) -> list[Place]:
        """Return where the revisions are that were in one of these states at a position, as the read models have it.

        Each is the position of its event, its id and its lineage's; the newest come first, at most `most` of them.
        """
        params = {
            "project": scope.project,
            "agent": scope.agent,
            "user": scope.user,
            "session": scope.session,
            "at": at,
            "states": list(states),
            "kinds": list(kinds) or None,
            "limit": most,
        }
        return [(seq, revision, lineage) for seq, revision, lineage in self._ledger.store.query(_SCAN, params)]

    def read(self, places: Sequence[Place], scope: ScopeIds, warnings: list[str]) -> Iterator[Sequence[Scanned]]:
        """Yield what stands at these places in chunks; what is broken is left out and named in `warnings`."""
        for first in range(0, len(places), _CHUNK):
            rows = places[first : first + _CHUNK]
            recorded: Mapping[int, Recorded] = sound(self._ledger.at, {seq for seq, _, _ in rows}, warnings)
            scanned = [_scanned(recorded.get(seq), Item(lineage, revision)) for seq, revision, lineage in rows]
            yield [
                one
                for one in scanned
                if one is not None and sees(scope, visibility=one.facts.visibility, scope=one.facts.scope)
            ]


_SCAN = QUERIES["scan_revisions"]


def _scanned(recorded: Recorded | None, item: Item) -> Scanned | None:
    """Return a row's revision, if that is what its event brought into being."""
    if recorded is None:
        return None
    facts, text = recorded.entry.envelope.facts, recorded.payload
    if not isinstance(facts, Birth) or not isinstance(text, RevisionText):
        return None
    found = Item(recorded.entry.envelope.stream, facts.moves[-1].revision)
    return Scanned(item, facts, text) if found == item else None
