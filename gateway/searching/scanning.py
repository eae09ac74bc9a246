"""The texts that a reader may see, read through one by one: for a search that no index can answer.

The read models say which revisions there may be, and where; what is handed out was read from verified entries. No text
is kept: a copy that could be searched would be a copy that an erasure has to reach.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.reading.sound import sound
from ledger.memories import Birth, RevisionText
from ledger.message import ScopeIds
from ledger.scope import sees
from ledger.verified import Recorded, VerifiedLedger
from projections.items import Item
from projections.lineage import QUERIES

_CHUNK = 500
_BORN_MAX = 200_000

Place = tuple[int, str, str]


class Scanned(NamedTuple):
    """A revision as it was born."""

    place: Place
    facts: Birth
    text: RevisionText

    @property
    def item(self) -> Item:
        """Return what an index calls it."""
        return item_at(self.place)


class Born(NamedTuple):
    """What a revision's own event says for good, without its text: where it is, and the keyed digest of the text."""

    place: Place
    content: str
    visibility: str
    scope: ScopeIds


class Scan:
    """Reads through the revisions of one ledger. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger) -> None:
        self._ledger = ledger
        self._born: dict[Place, Born] = {}

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

    def born(self, places: Sequence[Place], scope: ScopeIds, warnings: list[str]) -> Iterator[Sequence[Born]]:
        """Yield in chunks what stands at these places, without texts: what was verified once is not read again."""
        for first in range(0, len(places), _CHUNK):
            chunk = places[first : first + _CHUNK]
            for one in self._read([place for place in chunk if place not in self._born], warnings):
                if len(self._born) >= _BORN_MAX:
                    self._born.clear()
                self._born[one.place] = Born(one.place, one.facts.content, one.facts.visibility, one.facts.scope)
            known = [self._born[place] for place in chunk if place in self._born]
            yield [one for one in known if sees(scope, visibility=one.visibility, scope=one.scope)]

    def read(self, places: Sequence[Place], scope: ScopeIds, warnings: list[str]) -> Iterator[Sequence[Scanned]]:
        """Yield what stands at these places in chunks; what is broken is left out and named in `warnings`."""
        for first in range(0, len(places), _CHUNK):
            yield [
                one
                for one in self._read(places[first : first + _CHUNK], warnings)
                if sees(scope, visibility=one.facts.visibility, scope=one.facts.scope)
            ]

    def _read(self, places: Sequence[Place], warnings: list[str]) -> list[Scanned]:
        if not places:
            return []
        recorded: Mapping[int, Recorded] = sound(self._ledger.at, {seq for seq, _, _ in places}, warnings)
        scanned = [_scanned(recorded.get(place[0]), place) for place in places]
        return [one for one in scanned if one is not None]


_SCAN = QUERIES["scan_revisions"]


def item_at(place: Place) -> Item:
    """Return what an index calls the revision at a place."""
    return Item(place[2], place[1])


def _scanned(recorded: Recorded | None, place: Place) -> Scanned | None:
    """Return a row's revision, if that is what its event brought into being."""
    if recorded is None:
        return None
    facts, text = recorded.entry.envelope.facts, recorded.payload
    if not isinstance(facts, Birth) or not isinstance(text, RevisionText):
        return None
    found = Item(recorded.entry.envelope.stream, facts.moves[-1].revision)
    return Scanned(place, facts, text) if found == item_at(place) else None
