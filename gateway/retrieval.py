"""Search: neighbours from the index, and for each one the ledger's word. A neighbour is not a hit.

`_confirm`, and for corrections `_confirm_corrections`, is the only place where a hit is born. Both look at nothing but
verified entries, so no edit of an index, a read model or a stored vector can bring back what was revoked, corrected or
never written.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

import msgspec

from gateway.corrections import Corrections
from gateway.filtering import TIERS, Interval, Question, unfit, untrusted
from gateway.prompt import estimated_tokens
from gateway.reading import Reader
from gateway.recollection import Recollection
from gateway.replies import CorrectionHit, CorrectionSearch, Hit, Search
from gateway.scanning import Scan
from gateway.schemas import SearchCorrectionsRequest
from gateway.sound import sound
from gateway.tracing import Found, Record
from gateway.trail import FULL_TEXT, Trail
from gateway.views import said, said_fields
from ledger.corrections import STANDING_STATES
from ledger.errors import CorrigendaError
from ledger.ids import CORRECTION, MEMORY, kind_of
from ledger.limits import INDEX_WAIT_S
from ledger.memories import FRESH, Birth, MetadataPatched, RevisionState, RevisionText, born_revision
from ledger.message import ScopeIds, Standing, Values
from ledger.scope import namespaces, sees
from ledger.verified import Recorded, VerifiedLedger
from projections.embedders import Embedder, TokenCounter, Vectors, check_vectors
from projections.embedders.patience import at_most
from projections.items import CORRECTIONS
from projections.lineage import QUERIES
from projections.relay import Item, Relay, partition

_Near = list[tuple[Item, float]]
_HitT = TypeVar("_HitT", Hit, CorrectionHit)


@dataclass(frozen=True, slots=True)
class _Measured:
    """How one question is answered: what is near, which of it is true, and why there is nothing."""

    near: Callable[[int], _Near]
    confirm: Callable[[_Near], Iterable[Hit]]
    why_nothing: Callable[[_Near], str]


_log = logging.getLogger(__name__)


class Retrieval:
    """Answers questions from one ledger. The caller holds the lock and has caught up."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        relay: Relay,
        reader: Reader,
        corrections: Corrections,
        show: Callable[[str], str],
        record: Record,
    ) -> None:
        self._record = record
        self._ledger = ledger
        self._corrections = corrections
        self._relay = relay
        self._reader = reader
        self._recollection = Recollection(ledger, reader, Scan(ledger), show)
        self._show = show

    def search(self, question: Question) -> Search:
        """Return the k best revisions that stand, are visible and pass the filters; dead neighbours cost no slots.

        Nearest by meaning, or, where no embedder answers, by the words that they share with the question.
        """
        trail = Trail(question.scope, self._reader, self._show, wanted=question.request.why)
        measured = self._measured(question, trail)
        hits, near = self._fill(measured.near, question.request.k, None, lambda fresh: measured.confirm(fresh))
        kept = _within(hits, question.request.budget, self._counter(trail))
        if len(kept) < len(hits):
            trail.warn(f"budget:{len(hits) - len(kept)}")
        reason = None if kept else "budget" if hits else measured.why_nothing(near)
        return Search(
            hits=tuple(kept),
            warnings=tuple(dict.fromkeys(trail.warnings)),
            empty_reason=reason,
            trace_id=self._record(question, trail, Found(near, hits, len(kept), reason)),
            position=self._reader.position,
            incarnation=self._reader.incarnation,
            at_position=question.position,
            excluded=trail.excluded,
        )

    def _measured(self, question: Question, trail: Trail) -> _Measured:
        """Return how a question is answered: by vectors if there is one of it, else by words; now, or of the past."""
        meant, past = self._meaning(question, trail), self._recollection
        if meant is not None and not question.is_of_past:
            return self._by_index(question, meant[1], trail)
        if meant is None:
            trail.warn(FULL_TEXT)
            ranked, any_at_all = past.sharing(question, trail)
        else:
            ranked, any_at_all = past.near(question, *meant, trail), False
        measure = "shared words" if meant is None else "similarity"
        confirm = past.confirm if question.is_of_past else self._confirm
        return _Measured(
            near=lambda wanted: ranked[:wanted],
            confirm=lambda fresh: confirm(fresh, question, trail, measure),
            why_nothing=lambda near: (
                "filtered"
                if near or past.is_of_other_kinds(question)
                else "no_embedder"
                if any_at_all
                else self._why_none_there(question.scope)
            ),
        )

    def _by_index(self, question: Question, vector: Vectors, trail: Trail) -> _Measured:
        partitions = _partitions(question.request.min_trust, question.scope)
        return _Measured(
            near=lambda wanted: self._relay.neighbours(partitions, vector, wanted),
            confirm=lambda fresh: self._confirm(fresh, question, trail, "similarity"),
            why_nothing=lambda near: "filtered" if near else self._why_nothing(vector, question.scope),
        )

    def _meaning(self, question: Question, trail: Trail) -> tuple[Embedder, Vectors] | None:
        """Return the embedder and the question's vector, the index being up to date; None if no embedder answers."""
        try:
            embedder = self._relay.embedder
            if embedder is None:
                return None
            vector = _asked(embedder, question.request.query)
            if not question.is_of_past and (lag := self._relay.drain(INDEX_WAIT_S).pending):
                trail.warn(f"index_pending:{lag}")
            return embedder, vector
        except CorrigendaError as error:
            if error.code != "EMBEDDER_UNAVAILABLE":
                raise
            _log.warning("only words are compared: %s", error.message)
            trail.warn(f"embedder_unavailable:{error.details.get('reason', 'no_answer')}")
            return None

    def _counter(self, trail: Trail) -> Callable[[str], int]:
        embedder = None if FULL_TEXT in trail.warnings else self._relay.embedder
        return embedder.count_tokens if isinstance(embedder, TokenCounter) else estimated_tokens

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
            vector = _asked(embedder, request.query)
            lag = self._relay.drain(INDEX_WAIT_S).pending
            warnings += [f"index_pending:{lag}"] if lag else []
            partitions = [partition(CORRECTIONS, space) for space in namespaces(scope)]
            hits, near = self._fill(
                lambda wanted: self._relay.neighbours(partitions, vector, wanted),
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
        nearest: Callable[[int], _Near],
        k: int,
        floor: float | None,
        confirm: Callable[[_Near], Iterable[_HitT]],
    ) -> tuple[list[_HitT], _Near]:
        """Return the best k hits of a score not below `floor`, ranked from 1, and the neighbours that were seen."""
        hits: list[_HitT] = []
        near: _Near = []
        seen, wanted = 0, 2 * k + 8
        while len(hits) < k:
            near = nearest(wanted)
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

    def _why_nothing(self, vector: Vectors, scope: ScopeIds) -> str:
        """Return why the index offered nothing: trust was asked for, no memory was ever there, or none has a head."""
        if self._relay.neighbours(_partitions("unverified", scope), vector, 1):
            return "filtered"
        return self._why_none_there(scope)

    def _why_none_there(self, scope: ScopeIds) -> str:
        store = self._ledger.store
        (found,) = store.query(QUERIES["any_revision"], {"gen": store.head().gen, "project": scope.project})
        any_at_all, any_head = found
        if any_head:  # one that this reader may not see, or that the index does not hold (yet)
            return "no_match"
        return "headless" if any_at_all else "nothing_indexed"

    def _confirm(self, near: _Near, question: Question, trail: Trail, measure: str) -> Iterator[Hit]:
        """Yield a hit for each neighbour that its lineage's last event says is the head, as the reader may see it."""
        memories = {item.lineage for item, _ in near if kind_of(item.lineage) == MEMORY}
        standings = sound(self._ledger.standings, memories, trail.warnings)
        alive: _Near = []
        for item, score in near:
            reason = _dead(standings.get(item.lineage), item, question)
            if reason is None:
                alive.append((item, score))
            else:
                trail.leave_out(item, score, reason)
        where = {item.lineage: _places(standings[item.lineage]) for item, _ in alive}
        found = sound(self._ledger.at, {place for places in where.values() for place in places}, trail.warnings)
        for item, score in alive:
            content, meta = (found.get(place) for place in where[item.lineage])
            if content is None or meta is None or not _is_of(content, meta, item):
                continue
            facts, text = _facts(content), said(content, meta)
            if not sees(question.scope, visibility=facts.visibility, scope=facts.scope):
                continue
            reason = unfit(facts.kind, text, Interval(text.valid_from, text.valid_to), question)
            if reason is None:
                yield self._hit(item, f"{measure} {score:.3f}", standings[item.lineage], content, text, score)
            else:
                trail.leave_out(item, score, reason)

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

    def _hit(
        self, item: Item, near: str, standing: Standing, content: Recorded, text: RevisionText, score: float
    ) -> Hit:
        values = Values("active", standing.trust or "", standing.floor or "")
        state = msgspec.structs.replace(self._revision(item, content), values=values)
        fields: dict[str, Any] = said_fields(state, text, self._show)  # Any: one value of each field's type
        return Hit(
            rank=0,
            score=score,
            why=f"{near}; head of its memory, {values.trust}, at position {self._reader.position}",
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


def _within(hits: Sequence[Hit], budget: int | None, count: Callable[[str], int]) -> Sequence[Hit]:
    """Return the best hits whose texts together take no more tokens than the budget; none is cut in two."""
    if budget is None:
        return hits
    spent = list(accumulate(count(hit.content or "") for hit in hits))
    return hits[: sum(1 for tokens in spent if tokens <= budget)]


def _asked(embedder: Embedder, query: str) -> Vectors:
    """Return a question's vector. It comes before the index is brought up to date: who has none needs no index."""
    with at_most(INDEX_WAIT_S):
        return check_vectors(embedder.embed([query]), 1, embedder.dimension)[0]


def _partitions(min_trust: str, scope: ScopeIds) -> list[str]:
    """Return the partitions that a reader of a scope looks into, from that trust on."""
    return [partition(trust, space) for space in namespaces(scope) for trust in TIERS[min_trust]]


def _dead(standing: Standing | None, item: Item, question: Question) -> str | None:
    """Return why a neighbour is not served, by where its lineage stands; None if it may be."""
    if standing is None or standing.head != item.revision:
        return "it is not the head of its memory"
    return untrusted(Values("active", standing.trust or "", standing.floor or ""), question)


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


def _facts(content: Recorded) -> Birth:
    facts = content.entry.envelope.facts
    if not isinstance(facts, Birth):
        raise TypeError("a standing names an event that holds no revision")
    return facts
