"""Corrections as people read them: listed, counted, made into regression cases. All from verified entries.

The read model says only where to look: what a row says is asked again of the correction's first and last event.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gateway.reading.reader import Reader
from gateway.scope.names import Names, References
from gateway.scope.past import Moment
from gateway.scope.states import States
from gateway.shapes.replies.corrections import (
    Correction,
    CorrectionHistory,
    CorrectionStats,
    EvalCase,
    ExplainedCorrection,
    PatchedCorrection,
)
from gateway.shapes.replies.past import Change
from gateway.shapes.requests import CorrectionsRequest, StatsRequest
from gateway.views.hidden import bare_correction
from gateway.views.revisions import audit_entry, correction_text_of
from ledger.corrections import (
    CORRECTION,
    STANDING_STATES,
    CorrectionConfirmed,
    CorrectionRecorded,
    CorrectionRevoked,
    CorrectionSuperseded,
    CorrectionText,
)
from ledger.errors import failure
from ledger.message import ScopeIds
from ledger.scope import sees
from ledger.verified import Record, Recorded, VerifiedLedger
from projections.corrections import QUERIES
from projections.edges import CORRECTS

PAGE_ROWS = 500
_PERIOD_CHARS = {"day": 10, "month": 7, "year": 4}  # of a time such as 2026-01-02T03:04:05Z
_Changed = CorrectionRecorded | CorrectionConfirmed | CorrectionSuperseded | CorrectionRevoked


class Found(NamedTuple):
    """A correction as its first and its last event tell it."""

    facts: CorrectionRecorded
    text: CorrectionText
    first: Recorded
    last: Recorded
    state: str
    is_forgotten: bool = False  # what it says repeats what was forgotten, and only what it was about is left here

    @property
    def correction(self) -> str:
        """Return its id."""
        return self.first.entry.envelope.stream

    @property
    def is_erased(self) -> bool:
        """Report whether what it says was erased."""
        return self.first.payload is None

    @property
    def is_told(self) -> bool:
        """Report whether its values are told."""
        return not (self.is_erased or self.is_forgotten)

    @property
    def created_at(self) -> str:
        """Return when it was recorded; of an import, when it had been recorded first."""
        return self.text.recorded_at or self.first.entry.envelope.at


class Corrections:
    """Reads the corrections of one ledger as one project sees them. The caller has caught up."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        *,
        names: Names,
        states: States,
        references: References,
        reader: Reader,
    ) -> None:
        self._ledger = ledger
        self._names = names
        self._states = states
        self._references = references
        self._reader = reader

    def show(self, reference: str, at: Moment | None = None) -> ExplainedCorrection:
        """Return one correction, whatever its state, with its story; now, or as it stood.

        Errors: CORRECTION_NOT_FOUND, also where it was not recorded yet.
        """
        correction = self._references.correction(reference)
        position = None if at is None else self._reader.position_of(at)
        recorded = [
            item for item in self._ledger.stream(correction) if position is None or item.entry.position <= position
        ]
        if not recorded:
            raise _not_yet(position)
        found = self._known(recorded[0], recorded[-1], correction)
        shown = self._names.shown(sorted({item.entry.envelope.actor for item in recorded}))
        if found.is_forgotten:
            recorded = [msgspec.structs.replace(item, payload=None) for item in recorded]
        return ExplainedCorrection(
            **msgspec.structs.asdict(self._reply(found, self._names.show)),
            audit=tuple(audit_entry(item, shown.__getitem__) for item in recorded),
            at_position=position,
        )

    def history(self, reference: str, *, patch: bool) -> CorrectionHistory:
        """Return the chain that a correction stands in, oldest first, with `patch` also what each changed."""
        correction = self._references.correction(reference)
        chain = [self._whole(one) for one in self._reader.chains.whole(correction)]
        items: list[Correction] = chain
        if patch:
            items = [_patched(old, new) for old, new in zip([None, *chain], chain, strict=False)]
        return CorrectionHistory(
            correction_id=correction,
            items=tuple(items),
            position=self._reader.position,
            incarnation=self._reader.incarnation,
        )

    def _whole(self, correction: str) -> Correction:
        recorded = self._ledger.stream(correction)
        return self._reply(self._known(recorded[0], recorded[-1], correction), self._names.show)

    def _known(self, first: Recorded, last: Recorded, correction: str) -> Found:
        found = _found(first, last, correction)
        if found is None:
            raise TypeError(f"no correction: {correction}")
        return self._told([found])[0]

    def _told(self, found: Sequence[Found]) -> list[Found]:
        """Return some corrections, those without their values that repeat what was forgotten."""
        untold = self._reader.untold_about(one.facts.revision for one in found)
        return [
            one._replace(text=bare_correction(one.text), is_forgotten=True) if one.facts.revision in untold else one
            for one in found
        ]

    def list(self, request: CorrectionsRequest) -> Iterator[Correction]:
        """Yield what was asked for, oldest first."""
        for page in self._pages(request):
            ids = {one for found in page for one in _named(found.facts.scope)}
            shown: Mapping[str, str] = self._names.shown(sorted(ids))
            yield from (self._reply(found, shown.__getitem__) for found in page)

    def stats(self, request: StatsRequest) -> CorrectionStats:
        """Count what was asked for."""
        total = 0
        entities, fields, agents, periods = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        for found in self._all(request):
            total += 1
            entities.update([found.text.entity_key] if found.text.entity_key is not None else [])
            fields.update([found.text.field] if found.text.field is not None else [])
            agents.update([found.facts.scope.agent] if found.facts.scope.agent else [])
            periods.update([found.created_at[: _PERIOD_CHARS[request.period]]])
        shown = self._names.shown(sorted(agents))
        return CorrectionStats(
            total=total,
            by_entity_key=_ranked(entities),
            by_field=_ranked(fields),
            by_agent=_ranked(Counter({shown[one]: n for one, n in agents.items()})) if "agent" in request.by else None,
            by_period=dict(sorted(periods.items())) if "period" in request.by else None,
        )

    def eval_cases(self, request: CorrectionsRequest) -> Iterator[EvalCase]:
        """Yield a case for each of them that has the input which led to it, oldest first."""
        for found in self._all(request):
            if found.text.original_input is not None:
                yield EvalCase(
                    input=found.text.original_input,
                    expected=found.text.corrected_value,
                    field=found.text.field,
                    correction_id=found.correction,
                )

    def left_behind(self, reference: str) -> tuple[str, ...]:
        """Return warnings that name what a correction did which ending it does not undo."""
        correction = self._references.correction(reference)
        recorded = self._states.of(CORRECTION, correction).recorded
        about = recorded.revision if recorded else None
        touched = [revision for revision in self._touched(correction) if revision != about]
        learnings = [revision for revision in touched if self._is_invalidated(revision)]
        return (
            *([f"memory_untouched: the memory corrected at {about} keeps its text"] if about else []),
            *(
                f"learning_untouched: {revision} stays invalidated; restore it if that is wrong"
                for revision in learnings
            ),
        )

    def said_too(self, reference: str, *, forgotten: bool = False) -> tuple[str, ...]:
        """Return warnings that name the standing corrections in which a withdrawn text is still to be read.

        A correction is a record of its own: withdrawing what it made of a memory, or what it was about, leaves it. Of
        what was forgotten it tells nothing any more, until that is restored.
        """
        says = "stands, and is not told until this is restored" if forgotten else "still says it"
        lineage, revision = self._references.locate(reference)
        state = self._states.lineage(lineage)
        item = state.revisions.get(revision or state.head or state.latest or "")
        if item is None:
            return ()
        about = {"revisions": [item.revision, *item.supersedes], "kind": CORRECTS}
        rows = self._ledger.store.query(QUERIES["find_correcting"], {"gen": self._ledger.store.head().gen, **about})
        standing = [one for one in dict.fromkeys(str(row[0]) for row in rows) if self._stands(one)]
        return tuple(f"correction_untouched: {one} {says}; revoke it too if that is wrong" for one in standing)

    def _stands(self, correction: str) -> bool:
        return self._states.of(CORRECTION, correction).state in STANDING_STATES

    def confirmed(self, record: Record, correction: str) -> Found | None:
        """Return a correction that its own first and last event confirm; None if they are another's."""
        found = _found(record.first, record.last, correction)
        return None if found is None else self._told([found])[0]

    def fields(self, found: Found) -> dict[str, Any]:  # Any: one value of each field's type
        """Return the fields of `replies.Correction`."""
        return msgspec.structs.asdict(self._reply(found, self._names.show))

    # ---------------------------------------------------------------- finding

    def _all(self, request: CorrectionsRequest) -> Iterator[Found]:
        for page in self._pages(request):
            yield from page

    def _pages(self, request: CorrectionsRequest) -> Iterator[Sequence[Found]]:
        """Yield the corrections that are wanted and visible, as many pages as there are."""
        project = self._references.project
        if project is None:
            return
        ids = self._reader.scope(project, request.reader)
        reader = self._reader.reader(project, request.reader) if self._reads_as_somebody(request) else None
        for rows in self._rows(project, None if request.agent is None else ids.agent, request.states):
            yield self._told([found for found in self._read(rows) if _wanted(found, request, project, ids, reader)])

    def stood(
        self, request: CorrectionsRequest, *, position: int, after: int, most: int
    ) -> tuple[Sequence[tuple[int, Correction]], int | None]:
        """Return those that are wanted as they stood at a position, by the positions above `after` that recorded them.

        At most so many rows are looked at; with them comes the one above which to go on, None where nothing is left.
        """
        project = self._references.project
        if project is None:
            return [], None
        ids = self._reader.scope(project, request.reader)
        reader = self._reader.reader(project, request.reader) if self._reads_as_somebody(request) else None
        # What a row says is of now: only where that is then, does it tell whether a correction was in a state.
        states = list(request.states) if position == self._ledger.walk.position else None
        params = {
            "gen": self._ledger.store.head().gen, "project": project, "states": states, "after": after, "at": position,
            "agent": None if request.agent is None else ids.agent, "limit": most,
        }  # fmt: skip
        rows = self._ledger.store.query(QUERIES["find_corrections"], params)
        histories = self._ledger.streams({correction for correction, _ in rows})
        found = (_found_by(histories[one], position, one) for one, _ in rows if one in histories)
        kept = self._told([one for one in found if one is not None and _wanted(one, request, project, ids, reader)])
        shown = self._names.shown(sorted({name for one in kept for name in _named(one.facts.scope)}))
        items = [(one.first.entry.position, self._reply(one, shown.__getitem__)) for one in kept]
        return items, rows[-1][1] if len(rows) == most else None

    def _reads_as_somebody(self, request: CorrectionsRequest) -> bool:
        """Report whether visibility decides: the operator sees every record of the project, unless as somebody."""
        return not self._references.visible.whole or bool(request.user or request.session)

    def _rows(self, project: str, agent: str | None, states: Sequence[str]) -> Iterator[Mapping[str, int]]:
        store, after = self._ledger.store, -1
        gen = store.head().gen
        last = self._ledger.walk.position
        wanted = {
            "gen": gen, "project": project, "agent": agent, "states": list(states), "limit": PAGE_ROWS, "at": last,
        }  # fmt: skip
        while rows := store.query(QUERIES["find_corrections"], {**wanted, "after": after}):
            yield {correction: seq for correction, seq in rows if seq >= 0}
            after = rows[-1][1]

    def _read(self, rows: Mapping[str, int]) -> Iterator[Found]:
        """Yield each correction that its own events confirm to be where its row says, in the order of the rows."""
        heads = self._ledger.walk.ends(rows)
        ends = {one: heads[one].position for one in rows if one in heads and heads[one].version}
        recorded = self._ledger.at({*(rows[one] for one in ends), *ends.values()})
        for correction, end in ends.items():
            found = _found(recorded[rows[correction]], recorded[end], correction)
            if found is not None:
                yield found

    def _touched(self, correction: str) -> Iterable[str]:
        store = self._ledger.store
        params = {"gen": store.head().gen, "kind": CORRECTS, "correction": correction}
        return [revision for revision, _ in store.query(QUERIES["find_touched"], params)]

    def _is_invalidated(self, revision: str) -> bool:
        lineage = self._ledger.walk.lineages([revision]).get(revision)
        item = None if lineage is None else self._states.lineage(lineage).revisions.get(revision)
        return item is not None and bool(item.withdrawals) and item.withdrawals[-1].act == "invalidate"

    def _reply(self, found: Found, show: Callable[[str], str]) -> Correction:
        facts, text, last = found.facts, found.text, found.last.entry.envelope

        def shown(identifier: str | None) -> str | None:
            return None if identifier is None else show(identifier)

        return Correction(
            correction_id=found.correction,
            state=found.state,
            agent=shown(facts.scope.agent) or "",
            field=text.field,
            entity_key=text.entity_key,
            original_value=text.original_value if found.is_told else None,
            corrected_value=text.corrected_value if found.is_told else None,
            reason=text.reason,
            original_input=text.original_input,
            tags=text.tags,
            run=text.run,
            session=shown(facts.scope.session),
            user=shown(facts.scope.user),
            visibility=facts.visibility,
            memory=facts.revision,
            origin=facts.origin,
            created_at=found.created_at,
            superseded_by=last.facts.successor if isinstance(last.facts, CorrectionSuperseded) else None,
            contradiction=getattr(last.facts, "contradiction", facts.contradiction),
            stream_version=last.stream_seq + 1,
            position=found.first.entry.position,
            erased=found.is_erased,
            forgotten=found.is_forgotten,
        )


def _found(first: Recorded, last: Recorded, correction: str) -> Found | None:
    facts, now = first.entry.envelope.facts, last.entry.envelope.facts
    if not isinstance(facts, CorrectionRecorded) or not isinstance(now, _Changed):
        return None
    if {first.entry.envelope.stream, last.entry.envelope.stream} != {correction}:
        return None
    return Found(facts, correction_text_of(first), first, last, now.standing.state)


def _found_by(recorded: Sequence[Recorded], position: int, correction: str) -> Found | None:
    """Return a correction as its events up to a position tell it; None if it had not begun."""
    then = [item for item in recorded if item.entry.position <= position]
    return _found(then[0], then[-1], correction) if then else None


def _wanted(found: Found, request: CorrectionsRequest, project: str, ids: ScopeIds, reader: ScopeIds | None) -> bool:
    """Report whether a correction is what was asked for, of the project, and visible to a reader; None sees all."""
    facts = found.facts
    return (
        facts.scope.project == project
        and found.state in request.states
        and (request.agent is None or facts.scope.agent == ids.agent)
        and (request.entity_key is None or found.text.entity_key == request.entity_key)
        and (request.since is None or found.created_at >= request.since)
        and (reader is None or sees(reader, visibility=facts.visibility, scope=facts.scope))
    )


_COMPARED = (
    "corrected_value", "original_value", "field", "entity_key", "reason", "original_input", "tags", "agent", "user",
    "session", "run", "visibility", "memory", "origin",
)  # fmt: skip


def _patched(old: Correction | None, new: Correction) -> PatchedCorrection:
    pairs = {} if old is None else {name: (getattr(old, name), getattr(new, name)) for name in _COMPARED}
    changed = {name: Change(before=a, after=b) for name, (a, b) in pairs.items() if a != b}
    return PatchedCorrection(
        **msgspec.structs.asdict(new),
        compared_with=None if old is None else old.correction_id,
        patch=None if old is None else changed,
    )


def _not_yet(position: int | None) -> Exception:
    return failure(
        "CORRECTION_NOT_FOUND",
        f"This correction was not there yet at position {position}. Ask for a later position; its story says when it "
        "was recorded.",
        position=position,
    )


def _named(scope: ScopeIds) -> list[str]:
    return [one for one in (scope.agent, scope.session, scope.user) if one is not None]


def _ranked(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
