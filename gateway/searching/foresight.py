"""What a search will probably look at, found before the head is read, so that head and hits are read in one round trip.

It is a guess that costs nothing to be wrong. What is near is used only if the index is still the one that was asked,
and what was read only if it is what the ledger verified. Nothing here says what is true.
"""

from collections.abc import Callable, Collection, Sequence

from gateway.searching.filtering import TIERS
from gateway.shapes.requests import ScopeRequest, SearchRequest
from ledger.errors import CorrigendaError
from ledger.ids import MEMORY, kind_of
from ledger.limits import INDEX_WAIT_S
from ledger.message import ScopeIds
from ledger.scope import namespaces
from ledger.verified import Ahead, VerifiedLedger
from projections.embedders import Embedder, Vectors, check_vectors
from projections.embedders.patience import at_most
from projections.relay import Item, Relay, partition
from projections.replicas import counted, counting

SPARE = 8  # neighbours asked for beyond the hits that are wanted, so that a few dead ones cost no second scan

_Near = list[tuple[Item, float]]


class Foresight:
    """What one search of the present foresees. Used under the ledger's lock."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        relay: Relay,
        request: SearchRequest,
        scope: Callable[[ScopeRequest], ScopeIds],
        behind: Callable[[], Collection[int]],
    ) -> None:
        """Foresee one search. `behind` says above which positions rows of the outbox will have to be counted."""
        self._ledger = ledger
        self._relay = relay
        self._request = request
        self._scope = scope
        self._behind = behind
        self._found: tuple[object, int, Sequence[str], _Near] | None = None
        self._problem: CorrigendaError | None = None  # why the question has no vector: nobody waits for that twice
        self._vector: Vectors | None = None
        self.ahead: Ahead | None = None

    def vector(self, embedder: Embedder) -> Vectors:
        """Return the question's vector, asked for once. Errors: EMBEDDER_UNAVAILABLE, each time if it was so once."""
        if self._problem is not None:
            raise self._problem
        if self._vector is None:
            try:
                self._vector = asked(embedder, self._request.query)
            except CorrigendaError as error:
                self._problem = error
                raise
        return self._vector

    def look(self) -> Ahead | None:
        """Return what is to be read with the head; None where that cannot be told, which is no error here."""
        self.ahead = None
        replica, request = self._relay.replica, self._request
        if replica is None or (embedder := self._relay.embedder) is None:
            return None
        try:
            vector = self.vector(embedder)
            partitions = partitions_of(request.min_trust, self._scope(request))
            edition = replica.edition
            near = self._relay.neighbours(partitions, vector, request.k + SPARE, unchecked=True)
            self._found = replica, edition, partitions, near
            first = near if request.why else near[: request.k]
            self.ahead = self._ledger.ahead({item.lineage for item, _ in first if kind_of(item.lineage) == MEMORY})
            if positions := self._behind():
                self.ahead.beside = [counting(self._ledger.store, positions)]
        except CorrigendaError:  # whatever is wrong is said by what asks for it when it is needed
            return None
        return self.ahead

    def rows_above(self, position: int) -> int | None:
        """Return how many rows of the outbox lay above a position when the head was read; None if that was not seen."""
        counts = () if self.ahead is None else self.ahead.answers
        return counted(counts[0]).get(position) if counts else None

    def neighbours(self, partitions: Sequence[str], wanted: int) -> _Near | None:
        """Return the nearest entries, if these are the partitions that were asked, and nothing in the index changed."""
        replica = self._relay.replica
        if self._found is None or replica is None or wanted != self._request.k + SPARE:
            return None
        index, edition, asked_of, near = self._found
        return near if index is replica and edition == replica.edition and asked_of == partitions else None


def asked(embedder: Embedder, query: str) -> Vectors:
    """Return a question's vector. It comes before the index is brought up to date: who has none needs no index."""
    with at_most(INDEX_WAIT_S):
        return check_vectors(embedder.embed([query]), 1, embedder.dimension)[0]


def partitions_of(min_trust: str, scope: ScopeIds) -> list[str]:
    """Return the partitions that a reader of a scope looks into, from that trust on."""
    return [partition(trust, space) for space in namespaces(scope) for trust in TIERS[min_trust]]
