"""Search: neighbours from the index, and for each one the ledger's word. A neighbour is not a hit.

`_confirm`, and for corrections `_confirm_corrections`, is the only place where a hit is born. Both look at nothing but
verified entries, so no edit of an index, a read model or a stored vector can bring back what was revoked, corrected or
never written.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, Generic, TypeVar

import msgspec

from gateway.reading.corrections import Corrections
from gateway.reading.corrections import Found as FoundCorrection
from gateway.reading.reader import Reader
from gateway.reading.sound import sound
from gateway.scope.names import Names
from gateway.searching.filtering import CorrectionQuestion, Interval, Question, unfit, untrusted
from gateway.searching.foresight import SPARE, Foresight, asked, partitions_of
from gateway.searching.pace import Due, Pace
from gateway.searching.prompt import estimated_tokens
from gateway.searching.recollection import Recollection
from gateway.searching.scanning import Scan
from gateway.searching.trail import FULL_TEXT, Found, Record, Trail
from gateway.shapes.replies.corrections import CorrectionHit, CorrectionSearch
from gateway.shapes.replies.searches import Hit, Search
from gateway.views.revisions import said, said_fields
from ledger.corrections import STANDING_STATES, CorrectionRecorded
from ledger.errors import CorrigendaError, IntegrityError
from ledger.ids import CORRECTION, MEMORY, kind_of
from ledger.limits import INDEX_WAIT_S
from ledger.memories import FRESH, Birth, MetadataPatched, RevisionState, RevisionText, born_revision
from ledger.message import ScopeIds, Standing, Values
from ledger.scope import SEGMENTS, namespaces, sees
from ledger.verified import Ahead, Recorded, VerifiedLedger, standing_of
from projections.embedders import Embedder, TokenCounter, Vectors
from projections.items import CORRECTIONS
from projections.lineage import QUERIES
from projections.relay import Item, Relay, partition

_Near = list[tuple[Item, float]]
_HitT = TypeVar("_HitT", Hit, CorrectionHit)
WIDENING = 4  # each time that too few neighbours are hits, so many times more are asked for: an index scans anew
MOVED_MAX = 16  # times that hits are looked at again because somebody wrote about them meanwhile


@dataclass(frozen=True, slots=True)
class Confirmed(Generic[_HitT]):
    """A neighbour of which the ledger has said that it is a hit, and how that one is made, at a rank and a position.

    `stream` and `version` are what said so, at a `position` of the ledger: a later version may say otherwise, and so
    may one of `leaning`. An answer of the past has none.
    """

    item: Item
    hit: Callable[[int, int], _HitT]
    stream: str | None = None
    version: int = 0
    position: int = -1
    leaning: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def versions(self) -> Mapping[str, int]:
        """Return the versions of all streams that it rests on."""
        return self.leaning if self.stream is None else {self.stream: self.version, **self.leaning}


@dataclass(frozen=True, slots=True)
class _Filled(Generic[_HitT]):
    """The best hits, the neighbours that were seen, and the position at which all of the hits are true."""

    hits: Sequence[_HitT]
    near: _Near
    position: int


@dataclass(frozen=True, slots=True)
class _Measured:
    """How one question is answered: what is near, which of it is true, and why there is nothing."""

    near: Callable[[int], _Near]
    confirm: Callable[[_Near], Iterable[Confirmed[Hit]]]
    why_nothing: Callable[[_Near], str]


@dataclass(frozen=True, slots=True)
class _Told:
    """What the ledger tells of a neighbour: its lineage's last event, and the event and the text of its content."""

    item: Item
    near: str
    score: float
    last: Recorded
    content: Recorded
    text: RevisionText

    @property
    def version(self) -> int:
        """Return the version of its lineage."""
        return self.last.entry.envelope.stream_seq + 1

    @property
    def names(self) -> list[str]:
        """Return the ids that a hit shows by their names."""
        scope = _facts(self.content).scope
        return [self.item.lineage, scope.project, *(one for name in SEGMENTS if (one := getattr(scope, name)))]


_log = logging.getLogger(__name__)


class Retrieval:
    """Answers questions from one ledger. The caller holds the lock and has caught up."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        relay: Relay,
        reader: Reader,
        corrections: Corrections,
        names: Names,
        record: Record,
        pace: Pace,
    ) -> None:
        self._record = record
        self._ledger = ledger
        self._corrections = corrections
        self._relay = relay
        self._reader = reader
        self._recollection = Recollection(ledger, reader, Scan(ledger), names.show)
        self._names = names
        self._pace = pace

    def search(self, question: Question, due: Due, sight: Foresight | None = None) -> Search:
        """Return the k best revisions that stand, are visible and pass the filters; dead neighbours cost no slots.

        What is `due` is in the index before.

        Nearest by meaning, or, where no embedder answers, by the words that they share with the question. What `sight`
        has seen before is not looked for again.
        """
        trail = Trail(question.scope, self._reader, self._names.show, wanted=question.request.why)
        measured = self._measured(question, due, trail, sight)
        found = self._fill(measured.near, question.request.k, measured.confirm, all_near=question.request.why)
        hits = found.hits
        budget = question.request.budget
        kept = hits if budget is None else _within(hits, budget, self._counter(trail))
        if len(kept) < len(hits):
            trail.warn(f"budget:{len(hits) - len(kept)}")
        reason = None if kept else "budget" if hits else measured.why_nothing(found.near)
        return Search(
            hits=tuple(kept),
            warnings=tuple(dict.fromkeys(trail.warnings)),
            empty_reason=reason,
            trace_id=self._record(question, trail, Found(found.near, hits, len(kept), reason)),
            position=found.position,
            incarnation=self._reader.incarnation,
            at_position=question.position,
            excluded=trail.excluded,
        )

    def _measured(self, question: Question, due: Due, trail: Trail, sight: Foresight | None) -> _Measured:
        """Return how a question is answered: by vectors if there is one of it, else by words; now, or of the past."""
        meant, past = self._meaning(question, due, trail, sight), self._recollection
        if meant is not None and not question.is_of_past:
            return self._by_index(question, meant[1], trail, sight)
        if meant is None:
            trail.warn(FULL_TEXT)
            ranked, any_at_all = past.sharing(question, trail)
        else:
            ranked, any_at_all = past.near(question, *meant, trail), False
        measure = "shared words" if meant is None else "similarity"
        return _Measured(
            near=lambda wanted: ranked[:wanted],
            confirm=lambda fresh: (
                _as_it_was(past.confirm(fresh, question, trail, measure))
                if question.is_of_past
                else self._confirm(fresh, question, trail, measure)
            ),
            why_nothing=lambda near: (
                "filtered"
                if near or past.is_of_other_kinds(question)
                else "no_embedder"
                if any_at_all
                else self._why_none_there(question.scope, question.position)
            ),
        )

    def _by_index(self, question: Question, vector: Vectors, trail: Trail, sight: Foresight | None) -> _Measured:
        partitions = partitions_of(question.request.min_trust, question.scope)
        ahead = None if sight is None else sight.ahead

        def near(wanted: int) -> _Near:
            seen = None if sight is None else sight.neighbours(partitions, wanted)
            # Whether an entry is of this ledger at all is not asked here: what the ledger does not know is never a hit.
            return self._relay.neighbours(partitions, vector, wanted, unchecked=True) if seen is None else seen

        return _Measured(
            near=near,
            confirm=lambda fresh: self._confirm(fresh, question, trail, "similarity", ahead),
            why_nothing=lambda near: (
                "filtered" if self._relay.ours(near) else self._why_nothing(vector, question.scope)
            ),
        )

    def _meaning(
        self, question: Question, due: Due, trail: Trail, sight: Foresight | None
    ) -> tuple[Embedder, Vectors] | None:
        """Return the embedder and the question's vector, the index being up to date; None if no embedder answers."""
        try:
            embedder = self._relay.embedder
            if embedder is None:
                return None
            vector = asked(embedder, question.request.query) if sight is None else sight.vector(embedder)
            if not question.is_of_past and (lag := self._lag(due, sight)):
                trail.warn(f"index_pending:{lag}")
            return embedder, vector
        except CorrigendaError as error:
            if error.code != "EMBEDDER_UNAVAILABLE":
                raise
            _log.warning("only words are compared: %s", error.message)
            trail.warn(f"embedder_unavailable:{error.details.get('reason', 'no_answer')}")
            return None

    def _lag(self, due: Due, sight: Foresight | None = None) -> int:
        """Bring the index up to date, or leave that to a later search; return how many effects it does not hold yet."""
        head, carried = self._ledger.walk.position, self._relay.cursor
        if carried >= head:  # but for what an embedder failed on, which may be due now
            return self._relay.drain(INDEX_WAIT_S).pending
        if self._pace.may_wait(head=head, carried=carried, owed=due.position):
            rows = None if sight is None else sight.rows_above(carried)
            return self._relay.pending() if rows is None else rows + self._relay.failing
        with self._pace.carrying():
            return self._relay.drain(INDEX_WAIT_S, slice_s=due.slice_s).pending

    def _counter(self, trail: Trail) -> Callable[[str], int]:
        embedder = None if FULL_TEXT in trail.warnings else self._relay.embedder
        return embedder.count_tokens if isinstance(embedder, TokenCounter) else estimated_tokens

    def search_corrections(self, question: CorrectionQuestion, due: Due) -> CorrectionSearch:
        """Return the k nearest corrections that stand, are visible and match, those that nobody confirmed included."""
        request, scope, floor = question.request, question.scope, question.min_score
        found = _Filled(list[CorrectionHit](), [], self._reader.position)
        trail = Trail(scope, self._reader, self._names.show, wanted=False)
        embedder = self._relay.embedder
        if embedder is None:
            reason = "no_embedder"
        else:
            vector = asked(embedder, request.query)
            lag = self._lag(due)
            if lag:
                trail.warn(f"index_pending:{lag}")
            partitions = [partition(CORRECTIONS, space) for space in namespaces(scope)]
            found = self._fill(
                lambda wanted: self._relay.neighbours(partitions, vector, wanted),
                question.k,
                lambda fresh: self._confirm_corrections(fresh, question, trail),
                floor=floor,
            )
            for item, score in found.near:
                if floor is not None and score < floor:
                    trail.leave_out(item, score, f"its score is below {floor}")
            reason = None if found.hits else self._why_no_correction(found.near, floor, scope)
        return CorrectionSearch(
            hits=tuple(found.hits),
            warnings=tuple(dict.fromkeys(trail.warnings)),
            empty_reason=reason,
            trace_id=self._record(question, trail, Found(found.near, found.hits, len(found.hits), reason)),
            position=found.position,
            incarnation=self._reader.incarnation,
        )

    def _fill(
        self,
        nearest: Callable[[int], _Near],
        k: int,
        confirm: Callable[[_Near], Iterable[Confirmed[_HitT]]],
        *,
        floor: float | None = None,
        all_near: bool = False,
    ) -> _Filled[_HitT]:
        """Return the best k hits of a score not below `floor`, ranked from 1, all of them true at one position.

        Only as many neighbours are confirmed as it takes; with `all_near` all that were asked for.
        """
        sure: list[Confirmed[_HitT]] = []
        near: _Near = []
        seen, wanted, moved = 0, k + SPARE, 0
        step = wanted if all_near else k
        while True:
            if seen == len(near) and len(sure) < k and wanted:
                near = nearest(wanted)
                wanted = 0 if len(near) < wanted else wanted * WIDENING
            fresh = near[seen : seen + step] if len(sure) < k else []
            seen, step = seen + len(fresh), step * 2
            if floor is not None and fresh and fresh[-1][1] < floor:
                fresh, seen, wanted = [pair for pair in fresh if pair[1] >= floor], len(near), 0
            sure += confirm(fresh) if fresh else ()
            if len(sure) < k and (seen < len(near) or wanted):
                continue
            position, stale = self._moved(sure[:k])
            if not stale:
                return _Filled([one.hit(rank, position) for rank, one in enumerate(sure[:k], start=1)], near, position)
            sure = self._again(sure, stale, near, confirm if moved < MOVED_MAX else lambda _: ())
            moved += 1

    def _moved(self, sure: Sequence[Confirmed[Any]]) -> tuple[int, set[Item]]:  # Any: of either kind
        """Return a position at which these are true, and which of them were confirmed by a stream that has gone on.

        What was confirmed in one look needs no other.
        """
        positions = {one.position for one in sure}
        if len(positions) == 1 and -1 not in positions:
            return positions.pop(), set()
        head, ends = self._ledger.walk.present({stream for one in sure for stream in one.versions})
        return head.size - 1, {
            one.item for one in sure if any(ends[stream].version != version for stream, version in one.versions.items())
        }

    def _again(
        self,
        sure: Sequence[Confirmed[_HitT]],
        stale: set[Item],
        near: _Near,
        confirm: Callable[[_Near], Iterable[Confirmed[_HitT]]],
    ) -> list[Confirmed[_HitT]]:
        """Return what was confirmed, the best first, with those that are stale confirmed anew, or left out."""
        place = {item: number for number, (item, _) in enumerate(near)}
        renewed = confirm([pair for pair in near if pair[0] in stale])
        return sorted(
            [*(one for one in sure if one.item not in stale), *renewed], key=lambda one: place.get(one.item, 0)
        )

    def neighbours(self, query: str, scope: ScopeIds, k: int) -> _Near:
        """Return what the index alone would say: items and scores, confirmed by nobody."""
        embedder = self._relay.embedder
        if embedder is None:
            return []
        return self._relay.neighbours(partitions_of("unverified", scope), embedder.embed([query])[0], k)

    def _why_nothing(self, vector: Vectors, scope: ScopeIds) -> str:
        """Return why the index offered nothing: trust was asked for, no memory was ever there, or none has a head."""
        if self._relay.neighbours(partitions_of("unverified", scope), vector, 1):
            return "filtered"
        return self._why_none_there(scope)

    def _why_none_there(self, scope: ScopeIds, position: int | None = None) -> str:
        """Return why there was nothing to look at: now, or as the ledger stood at a position."""
        store = self._ledger.store
        params = {"gen": store.head().gen, "project": scope.project}
        if position is None:
            (found,) = store.query(QUERIES["any_revision"], params)
        else:
            (found,) = store.query(QUERIES["any_revision_at"], {**params, "at": position})
        any_at_all, any_head = found
        if any_head:  # one that this reader may not see, or that the index does not hold (yet)
            return "no_match"
        return "headless" if any_at_all else "nothing_indexed"

    def _confirm(
        self, near: _Near, question: Question, trail: Trail, measure: str, ahead: Ahead | None = None
    ) -> Iterator[Confirmed[Hit]]:
        """Yield each neighbour that its lineage's last event says is the head, as the reader may see it."""
        memories = {item.lineage for item, _ in near if kind_of(item.lineage) == MEMORY}
        at, lasts = self._lasts(memories, trail.warnings, ahead)
        alive: list[tuple[Item, float, Standing]] = []
        for item, score in near:
            standing = standing_of(lasts[item.lineage].entry) if item.lineage in lasts else None
            reason = _dead(standing, item, question)
            if reason is None and standing is not None:
                alive.append((item, score, standing))
            else:
                trail.leave_out(item, score, reason or "")
        places = {place for _, _, standing in alive for place in _places(standing)}
        found = self._read(places, lasts, trail.warnings, ahead)
        sure: list[_Told] = []
        for item, score, standing in alive:
            content, meta = (found.get(place) for place in _places(standing))
            if content is None or meta is None or not _is_of(content, meta, item):
                continue
            facts, text = _facts(content), said(content, meta)
            if not sees(question.scope, visibility=facts.visibility, scope=facts.scope):
                continue
            reason = unfit(facts.kind, text, Interval(text.valid_from, text.valid_to), question)
            if reason is None:
                sure.append(_Told(item, f"{measure} {score:.3f}", score, lasts[item.lineage], content, text))
            else:
                trail.leave_out(item, score, reason)
        self._names.shown({name for told in sure for name in told.names})  # all of them in one look
        for told in sure:
            yield Confirmed(told.item, partial(self._hit, told), told.item.lineage, told.version, at)

    def _lasts(
        self, memories: set[str], warnings: list[str], ahead: Ahead | None
    ) -> tuple[int, Mapping[str, Recorded]]:
        """Return the last event of each memory, and the position where they are that; −1 if not in one look."""
        try:
            return self._ledger.last_at(memories, ahead)
        except IntegrityError:
            return -1, sound(self._ledger.last, memories, warnings)

    def _read(
        self, places: set[int], known: Mapping[str, Recorded], warnings: list[str], ahead: Ahead | None
    ) -> Mapping[int, Recorded]:
        """Return the events at these places; those that are `known` already are not read again."""
        had = {one.entry.position: one for one in known.values()}
        further = places - had.keys()
        if not further:
            return had
        return {**had, **sound(lambda positions: self._ledger.at(positions, ahead), further, warnings)}

    def _confirm_corrections(
        self, near: _Near, question: CorrectionQuestion, trail: Trail
    ) -> Iterator[Confirmed[CorrectionHit]]:
        """Yield each neighbour that its last event says is a standing correction, and that is visible."""
        ours = [(item, score) for item, score in near if kind_of(item.lineage) == CORRECTION]
        records = sound(self._ledger.records, {item.lineage for item, _ in ours}, trail.warnings)
        for item, score in ours:
            record = records.get(item.lineage)
            # Looked up before the correction is: what is done to its memory from then on is noticed.
            leaning = self._about(None if record is None else record.first)
            found = None if record is None else self._corrections.confirmed(record, item.lineage)
            if record is None or found is None:
                continue
            if not sees(question.scope, visibility=found.facts.visibility, scope=found.facts.scope):
                continue
            if reason := _unserved(found, question.request.entity_key):
                trail.leave_out(item, score, reason)
            else:
                version = record.last.entry.envelope.stream_seq + 1
                hit = partial(self._correction_hit, found, score)
                yield Confirmed(item, hit, item.lineage, version, leaning=leaning)

    def _about(self, first: Recorded | None) -> Mapping[str, int]:
        """Return the memory that a correction is about, and its version: once that is forgotten, it is no hit."""
        walk, facts = self._ledger.walk, None if first is None else first.entry.envelope.facts
        revision = facts.revision if isinstance(facts, CorrectionRecorded) else None
        about = () if revision is None else walk.lineages([revision]).values()
        return {lineage: walk.stream(lineage).version for lineage in about}

    def _correction_hit(self, found: FoundCorrection, score: float, rank: int, position: int) -> CorrectionHit:
        why = f"similarity {score:.3f}; {found.state} at position {position}"
        return CorrectionHit(rank=rank, score=score, why=why, **self._corrections.fields(found))

    def _why_no_correction(self, near: _Near, min_score: float | None, scope: ScopeIds) -> str:
        if near:
            return "no_match" if min_score is not None and near[0][1] < min_score else "filtered"
        store = self._ledger.store
        params = {"gen": store.head().gen, "project": scope.project}
        return "no_match" if store.query(QUERIES["any_correction"], params)[0][0] else "nothing_indexed"

    def _hit(self, told: _Told, rank: int, position: int) -> Hit:
        standing = standing_of(told.last.entry)
        values = Values("active", standing.trust or "", standing.floor or "")
        state = msgspec.structs.replace(self._revision(told.item, told.content), values=values)
        fields: dict[str, Any] = said_fields(state, told.text, self._names.show)  # Any: one value of each field's type
        return Hit(
            rank=rank,
            score=told.score,
            why=f"{told.near}; head of its memory, {values.trust}, at position {position}",
            memory_id=self._names.show(told.item.lineage),
            stream_version=told.version,
            recorded_at=told.content.entry.envelope.at,
            superseded_at=None,
            **fields,
        )

    def _revision(self, item: Item, content: Recorded) -> RevisionState:
        """Return a revision as it was born; one that was held then says in a later event what it superseded."""
        born = born_revision(_facts(content), content.entry.position)
        return born if born.values == FRESH else self._reader.revision(item.lineage, item.revision)


def _as_it_was(hits: Iterable[Hit]) -> Iterator[Confirmed[Hit]]:
    """Yield hits of the past as what nothing that comes later makes untrue."""
    for hit in hits:
        yield Confirmed(Item(hit.memory_id, hit.revision_id), partial(_ranked, hit))


def _ranked(hit: Hit, rank: int, _: int) -> Hit:
    return msgspec.structs.replace(hit, rank=rank)


def _within(hits: Sequence[Hit], budget: int, count: Callable[[str], int]) -> Sequence[Hit]:
    """Return the best hits whose texts together take no more tokens than the budget; none is cut in two."""
    spent = list(accumulate(count(hit.content or "") for hit in hits))
    return hits[: sum(1 for tokens in spent if tokens <= budget)]


def _unserved(found: FoundCorrection, entity_key: str | None) -> str | None:
    """Return why a correction is not served; None if it may be."""
    if found.is_erased:
        return "what it says was erased"
    if found.is_forgotten:
        return "what it says was forgotten"
    if found.state not in STANDING_STATES:
        return f"it is {found.state}"
    return None if entity_key in (None, found.text.entity_key) else "it is of another entity"


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
