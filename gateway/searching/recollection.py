"""Search in the past: what stood at a position, or held at a moment of the world, or both.

The index holds the present only, so the past is answered exactly from stored vectors of what the read models say stood
then, and each answer is confirmed by folding its whole verified lineage up to that position. It is slower, and never
shows what was withdrawn from view since.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from gateway.reading.reader import Reader
from gateway.reading.sound import sound
from gateway.searching.filtering import Interval, Question, unfit, untrusted
from gateway.searching.scanning import Place, Scan, Scanned, item_at
from gateway.searching.trail import Trail
from gateway.shapes.replies.searches import Hit
from gateway.views.hidden import is_hidden
from gateway.views.revisions import LineageView, revision_fields, view_at
from gateway.views.words import SharedWords
from ledger.errors import CorrigendaError
from ledger.limits import EMBEDDED_PER_SEARCH_MAX, TEXTS_PER_SEARCH_MAX
from ledger.memories import RevisionState
from ledger.scope import sees
from ledger.verified import VerifiedLedger
from projections.embedders import Embedder, Vectors
from projections.items import Item
from projections.vectors import StoredVectors

Near = list[tuple[Item, float]]

_HELD = ("active", "superseded", "retired")
_STOOD = ("active",)


class Recollection:
    """Reads one ledger as it was. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger, reader: Reader, scan: Scan, show: Callable[[str], str]) -> None:
        self._ledger = ledger
        self._reader = reader
        self._viewing = reader.viewing
        self._scan = scan
        self._show = show

    def near(self, question: Question, embedder: Embedder, vector: Vectors, trail: Trail) -> Near:
        """Return everything that may be meant, nearest first, by its stored vector; at most 256 are made anew."""
        stored, found = StoredVectors(self._ledger, embedder), Near()
        left, pending = EMBEDDED_PER_SEARCH_MAX, 0
        places = self._places(question, question.request.kinds)
        for chunk in self._scan.born(places, question.scope, trail.warnings):
            vectors, _ = stored.at_most(dict.fromkeys((one.content for one in chunk), ""), 0)
            missing = [one.place for one in chunk if one.content not in vectors]
            if missing and left:
                (texts,) = self._scan.read(missing[:left], question.scope, trail.warnings)
                fresh, embedded = _vectors(stored, texts, left)
                vectors, left = {**vectors, **fresh}, max(left - embedded, 0)
            known = [one for one in chunk if one.content in vectors]
            pending += len(chunk) - len(known)
            if known:
                scores = np.stack([vectors[one.content] for one in known]) @ vector
                found += [(item_at(one.place), float(score)) for one, score in zip(known, scores, strict=True)]
        if pending:
            trail.warn(f"vectors_pending:{pending}")
        return sorted(found, key=lambda pair: (-pair[1], str(pair[0])))

    def sharing(self, question: Question, trail: Trail) -> tuple[Near, bool]:
        """Return what shares words with the question, best first, and whether there is anything that could.

        Of very many texts only the newest are read, since nothing but reading them tells.
        """
        shared = SharedWords[Item](question.request.query)
        places = self._places(question, question.request.kinds, TEXTS_PER_SEARCH_MAX + 1)
        if len(places) > TEXTS_PER_SEARCH_MAX:
            trail.warn(f"newest_only:{TEXTS_PER_SEARCH_MAX}")
        for chunk in self._scan.read(places[:TEXTS_PER_SEARCH_MAX], question.scope, trail.warnings):
            for one in chunk:
                shared.put(one.item, one.text.content)
        return shared.ranked(), len(shared) > 0

    def confirm(self, near: Near, question: Question, trail: Trail, measure: str) -> Iterator[Hit]:
        """Yield a hit for each of them of which its own lineage says that it stood, and held, as was asked."""
        views = sound(self._viewing.many, {item.lineage for item, _ in near}, trail.warnings)
        for item, score in near:
            now = views.get(item.lineage)
            if now is None or item.revision not in now.state.revisions:
                continue
            then = now if question.position is None else view_at(now, question.position)
            found = then.state.revisions.get(item.revision)
            if found is None or not sees(question.scope, visibility=found.visibility, scope=found.scope):
                continue
            reason = _stood(found, now, question)
            fields = None if reason else self._fields(then, found, question)
            reason = reason or _fits(then, found, fields, question)
            if reason or fields is None:
                trail.leave_out(item, score, reason or "")
                continue
            why = f"{measure} {score:.3f}; {self._told(found, now, question)}"
            told: dict[str, Any] = fields | _as_of_now(now, item.revision)  # Any: one value of each field's type
            yield Hit(rank=0, score=score, why=why, **told)

    def is_of_other_kinds(self, question: Question) -> bool:
        """Report whether a search for some kinds had nothing to look at, and one for all kinds would have."""
        kinds = question.request.kinds
        return bool(kinds) and not self._places(question, kinds, 1) and bool(self._places(question, (), 1))

    def _places(self, question: Question, kinds: Sequence[str], most: int | None = None) -> list[Place]:
        at = self._reader.position if question.position is None else question.position
        return self._scan.places(question.scope, at=at, states=_states(question), kinds=kinds, most=most)

    def _fields(self, then: LineageView, item: RevisionState, question: Question) -> dict[str, object]:
        elsewhere = set(item.superseded_by) - then.state.revisions.keys()
        whole = self._viewing.with_others(then, question.position) if elsewhere else then
        return revision_fields(whole, item, self._show)

    def _told(self, then: RevisionState, now: LineageView, question: Question) -> str:
        present = now.state.revisions[then.revision].values
        at = self._reader.position if question.position is None else question.position
        held = f", held at {question.valid_at}" if question.as_of else ""
        return (
            f"{then.values.state} and {then.values.trust} at position {at}{held}; now {present.state} and "
            f"{present.trust}"
        )


def _states(question: Question) -> tuple[str, ...]:
    return _HELD if question.as_of else _STOOD


def _vectors(stored: StoredVectors, chunk: Sequence[Scanned], embedded_max: int) -> tuple[Mapping[str, Vectors], int]:
    """Return the vectors of some texts, and how many were made; where no embedder answers, those that are stored."""
    texts = {one.facts.content: one.text.content for one in chunk}
    try:
        return stored.at_most(texts, embedded_max)
    except CorrigendaError as error:
        if error.code != "EMBEDDER_UNAVAILABLE":
            raise
        return stored.at_most(texts, 0)[0], embedded_max


def _stood(then: RevisionState, now: LineageView, question: Question) -> str | None:
    """Return why a revision is no answer by where it stood; None if it may be one."""
    if is_hidden(now.state.revisions[then.revision]):
        return "its content was withdrawn from view"
    if then.values.state not in _states(question):
        return f"it was {then.values.state}"
    return untrusted(then.values, question)


def _fits(
    then: LineageView, item: RevisionState, fields: Mapping[str, object] | None, question: Question
) -> str | None:
    """Return which filter leaves a revision out by what it said then."""
    text = then.text(item.revision)
    holds = Interval(text.valid_from, text.valid_to)
    if question.as_of and fields is not None:
        # Without a word of its own it holds from when it was recorded, and until its earliest successor does.
        since = text.valid_from or text.recorded_at or then.at(item.content_seq)
        holds = Interval(since, cast("str | None", fields["valid_to"]))
    return unfit(item.kind, text, holds, question)


def _as_of_now(now: LineageView, revision: str) -> dict[str, object]:
    """Return those fields of an answer of the past that tell of the present."""
    item = now.state.revisions[revision]
    ended = now.ended.get(revision)
    return {
        "state": item.values.state,
        "trust": item.values.trust,
        "superseded_by": item.superseded_by,
        "superseded_at": None if ended is None else now.at(ended),
        "stream_version": now.state.version,
    }
