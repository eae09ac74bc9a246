"""Search: neighbours from the index, and for each one the ledger's word. A neighbour is not a hit.

`_confirm`, and for corrections `_confirm_corrections`, is the only place where a hit is born. Both look at nothing but
verified entries, so no edit of an index, a read model or a stored vector can bring back what was revoked, corrected or
never written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from gateway.corrections import Corrections
from gateway.reading import Reader
from gateway.replies import CorrectionHit, CorrectionSearch, Hit, Search
from gateway.schemas import SearchCorrectionsRequest, SearchRequest
from gateway.sound import sound
from gateway.views import said, said_fields
from ledger.corrections import STANDING_STATES
from ledger.ids import CORRECTION, MEMORY, kind_of
from ledger.limits import INDEX_WAIT_S
from ledger.memories import FRESH, Birth, MetadataPatched, RevisionState, RevisionText, born_revision
from ledger.message import ScopeIds, Standing, Values
from ledger.scope import namespaces, sees
from ledger.verified import Recorded, VerifiedLedger
from projections.embedders import Vectors
from projections.items import CORRECTIONS
from projections.lineage import QUERIES
from projections.relay import Item, Relay, partition

_TIERS = {"unverified": ("verified", "unverified"), "verified": ("verified",)}
_Near = list[tuple[Item, float]]
_HitT = TypeVar("_HitT", Hit, CorrectionHit)


class Retrieval:
    """Answers questions from one ledger. The caller holds the lock and has caught up."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        relay: Relay,
        reader: Reader,
        corrections: Corrections,
        show: Callable[[str], str],
    ) -> None:
        self._ledger = ledger
        self._corrections = corrections
        self._relay = relay
        self._reader = reader
        self._show = show

    def search(self, request: SearchRequest, scope: ScopeIds) -> Search:
        """Return the k nearest revisions that stand, are visible and match; dead neighbours cost no slots."""
        embedder = self._relay.embedder
        if embedder is None:
            return self.nothing("no_embedder")
        lag = self._relay.drain(INDEX_WAIT_S).pending
        warnings = [f"index_pending:{lag}"] if lag else []
        vector = embedder.embed([request.query])[0]
        partitions = _partitions(request.min_trust, scope)
        hits, near = self._fill(
            partitions, vector, request.k, None, lambda fresh: self._confirm(fresh, request, scope, warnings)
        )
        reason = None if hits else "filtered" if near else self._why_nothing(vector, scope)
        return self._answer(tuple(hits), tuple(dict.fromkeys(warnings)), reason)

    def search_corrections(
        self, request: SearchCorrectionsRequest, scope: ScopeIds, *, k: int, min_score: float | None
    ) -> CorrectionSearch:
        """Return the k nearest corrections that stand, are visible and match, those that nobody confirmed included."""
        hits: Sequence[CorrectionHit] = ()
        warnings: list[str] = []
        embedder = self._relay.embedder
        if embedder is None:
            reason = "no_embedder"
        else:
            lag = self._relay.drain(INDEX_WAIT_S).pending
            warnings += [f"index_pending:{lag}"] if lag else []
            vector = embedder.embed([request.query])[0]
            partitions = [partition(CORRECTIONS, space) for space in namespaces(scope)]
            hits, near = self._fill(
                partitions,
                vector,
                k,
                min_score,
                lambda fresh: self._confirm_corrections(fresh, request, scope, warnings),
            )
            reason = None if hits else self._why_no_correction(near, min_score, scope)
        return CorrectionSearch(
            hits=tuple(hits),
            warnings=tuple(dict.fromkeys(warnings)),
            empty_reason=reason,
            position=self._reader.position,
            incarnation=self._reader.incarnation,
        )

    def _fill(
        self,
        partitions: Sequence[str],
        vector: Vectors,
        k: int,
        floor: float | None,
        confirm: Callable[[_Near], Iterable[_HitT]],
    ) -> tuple[list[_HitT], _Near]:
        """Return the best k hits of a score not below `floor`, ranked from 1, and the neighbours that were seen."""
        hits: list[_HitT] = []
        near: _Near = []
        seen, wanted = 0, 2 * k + 8
        while len(hits) < k:
            near = self._relay.neighbours(partitions, vector, wanted)
            fresh = [pair for pair in near[seen:] if floor is None or pair[1] >= floor]
            hits += confirm(fresh)
            if len(near) < wanted or len(fresh) < len(near) - seen:
                break
            seen, wanted = len(near), wanted * 2
        return [msgspec.structs.replace(hit, rank=rank) for rank, hit in enumerate(hits[:k], start=1)], near

    def neighbours(self, query: str, scope: ScopeIds, k: int) -> _Near:
        """Return what the index alone would say: items and scores, confirmed by nobody."""
        embedder = self._relay.embedder
        if embedder is None:
            return []
        return self._relay.neighbours(_partitions("unverified", scope), embedder.embed([query])[0], k)

    def nothing(self, reason: str) -> Search:
        """Return an empty answer and why it is empty."""
        return self._answer((), (), reason)

    def _answer(self, hits: tuple[Hit, ...], warnings: tuple[str, ...], reason: str | None) -> Search:
        return Search(
            hits=hits,
            warnings=warnings,
            empty_reason=reason,
            trace_id=None,
            position=self._reader.position,
            incarnation=self._reader.incarnation,
        )

    def _why_nothing(self, vector: Vectors, scope: ScopeIds) -> str:
        """Return why the index offered nothing: trust was asked for, no memory was ever there, or none has a head."""
        if self._relay.neighbours(_partitions("unverified", scope), vector, 1):
            return "filtered"
        store = self._ledger.store
        (found,) = store.query(QUERIES["any_revision"], {"gen": store.head().gen, "project": scope.project})
        any_at_all, any_head = found
        if any_head:  # one that this reader may not see, or that the index does not hold (yet)
            return "no_match"
        return "headless" if any_at_all else "nothing_indexed"

    def _confirm(self, near: _Near, request: SearchRequest, scope: ScopeIds, warnings: list[str]) -> Iterator[Hit]:
        """Yield a hit for each neighbour that its lineage's last event says is the head, as the reader may see it."""
        standings = self._standings({item.lineage for item, _ in near if kind_of(item.lineage) == MEMORY}, warnings)
        alive = [(item, score) for item, score in near if _serves(standings.get(item.lineage), item, request)]
        where = {item.lineage: _places(standings[item.lineage]) for item, _ in alive}
        found = self._read({place for places in where.values() for place in places}, warnings)
        for item, score in alive:
            content, meta = (found.get(place) for place in where[item.lineage])
            if content is None or meta is None or not _is_of(content, meta, item):
                continue
            text = said(content, meta)
            if _matches(_facts(content), text, request, scope):
                yield self._hit(item, score, standings[item.lineage], content, text)

    def _confirm_corrections(
        self, near: _Near, request: SearchCorrectionsRequest, scope: ScopeIds, warnings: list[str]
    ) -> Iterator[CorrectionHit]:
        """Yield a hit for each neighbour that its last event says is a standing correction, and that is visible."""
        ours = [(item, score) for item, score in near if kind_of(item.lineage) == CORRECTION]
        records = sound(self._ledger.records, {item.lineage for item, _ in ours}, warnings)
        for item, score in ours:
            record = records.get(item.lineage)
            found = None if record is None else self._corrections.confirmed(record, item.lineage)
            if found is None or found.state not in STANDING_STATES:
                continue
            if not sees(scope, visibility=found.facts.visibility, scope=found.facts.scope):
                continue
            if request.entity_key is None or found.text.entity_key == request.entity_key:
                why = f"similarity {score:.3f}; {found.state} at position {self._reader.position}"
                yield CorrectionHit(rank=0, score=score, why=why, **self._corrections.fields(found))

    def _why_no_correction(self, near: _Near, min_score: float | None, scope: ScopeIds) -> str:
        if near:
            return "no_match" if min_score is not None and near[0][1] < min_score else "filtered"
        store = self._ledger.store
        params = {"gen": store.head().gen, "project": scope.project}
        return "no_match" if store.query(QUERIES["any_correction"], params)[0][0] else "nothing_indexed"

    def _hit(self, item: Item, score: float, standing: Standing, content: Recorded, text: RevisionText) -> Hit:
        values = Values("active", standing.trust or "", standing.floor or "")
        state = msgspec.structs.replace(self._revision(item, content), values=values)
        fields: dict[str, Any] = said_fields(state, text, self._show)  # Any: one value of each field's type
        return Hit(
            rank=0,
            score=score,
            why=f"similarity {score:.3f}; head of its memory, {values.trust}, at position {self._reader.position}",
            memory_id=self._show(item.lineage),
            stream_version=self._ledger.walk.stream(item.lineage).version,
            recorded_at=content.entry.envelope.at,
            superseded_at=None,
            **fields,
        )

    def _revision(self, item: Item, content: Recorded) -> RevisionState:
        """Return a revision as it was born; one that was held then says in a later event what it superseded."""
        born = born_revision(_facts(content), content.entry.position)
        return born if born.values == FRESH else self._reader.revision(item.lineage, item.revision)

    def _standings(self, lineages: Iterable[str], warnings: list[str]) -> Mapping[str, Standing]:
        return sound(self._ledger.standings, set(lineages), warnings)

    def _read(self, positions: set[int], warnings: list[str]) -> Mapping[int, Recorded]:
        return sound(self._ledger.at, positions, warnings)


def _partitions(min_trust: str, scope: ScopeIds) -> list[str]:
    """Return the partitions that a reader of a scope looks into, from that trust on."""
    return [partition(trust, space) for space in namespaces(scope) for trust in _TIERS[min_trust]]


def _serves(standing: Standing | None, item: Item, request: SearchRequest) -> bool:
    if standing is None or standing.head != item.revision or standing.floor == "revoked":
        return False
    return standing.trust in _TIERS[request.min_trust]


def _places(standing: Standing) -> tuple[int, int]:
    """Return where a head's content and its metadata are."""
    return standing.content_seq or 0, standing.meta_seq or 0


def _is_of(content: Recorded, meta: Recorded, item: Item) -> bool:
    """Report whether a text, and the event that mended its metadata last, are of the revision that is near."""
    streams = {content.entry.envelope.stream, meta.entry.envelope.stream}
    if streams != {item.lineage} or _facts(content).moves[-1].revision != item.revision:
        return False
    patch = meta.entry.envelope.facts
    return not isinstance(patch, MetadataPatched) or patch.revision == item.revision


def _matches(facts: Birth, text: RevisionText, request: SearchRequest, scope: ScopeIds) -> bool:
    if not sees(scope, visibility=facts.visibility, scope=facts.scope):
        return False
    if request.kinds and facts.kind not in request.kinds:
        return False
    return set(request.tags) <= set(text.tags)


def _facts(content: Recorded) -> Birth:
    facts = content.entry.envelope.facts
    if not isinstance(facts, Birth):
        raise TypeError("a standing names an event that holds no revision")
    return facts
