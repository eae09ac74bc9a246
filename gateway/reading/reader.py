"""The reads: every answer is folded from verified entries; read models only say where to look."""

from collections.abc import Iterable
from typing import Any

import msgspec

from gateway.reading.appends import Traces
from gateway.reading.between import Between
from gateway.reading.correction_lineages import Chains
from gateway.reading.lineages import Surroundings
from gateway.scope.names import Names, References
from gateway.scope.past import Moment, Moments
from gateway.scope.states import States
from gateway.scope.visible import NOBODY
from gateway.shapes.positions import no_event
from gateway.shapes.replies.lineages import Lineage
from gateway.shapes.replies.log import EventDetail, LogItem, Trace
from gateway.shapes.replies.memories import Revision
from gateway.shapes.replies.past import Explanation, History, RevisionDiff
from gateway.shapes.requests import ScopeRequest
from gateway.views.diffing import patched_revision, revision_diff
from gateway.views.hidden import is_silenced
from gateway.views.revisions import (
    audit,
    chain_fields,
    correction_text_of,
    log_item,
    revision_fields,
    revision_reply,
    said,
)
from gateway.views.viewing import Viewing
from gateway.writing.page import Append
from ledger.corrections import CORRECTION, CorrectionRecorded, CorrectionText
from ledger.errors import refuse
from ledger.evidence import EvidenceText
from ledger.governance import ExportMade, NameAssigned
from ledger.ids import CORRECTION as CORRECTION_ID
from ledger.ids import MEMORY, OP, REVISION, is_ours, is_prefix_of_ours, kind_of
from ledger.memories import RevisionState, RevisionText
from ledger.message import ScopeIds
from ledger.verified import Recorded, VerifiedLedger


class Reader:
    """Reads one ledger as one project sees it. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger, names: Names, states: States, references: References) -> None:
        self._ledger = ledger
        self._names = names
        self._states = states
        self._references = references
        self._moments = Moments(ledger)
        self._traces = Traces(ledger)
        self._viewing = Viewing(ledger, names, states, references)
        self.viewing = self._viewing.seen_by(references.visible.everything())  # for a search, which asks by its scope
        self.chains = Chains(ledger, names, states, references, self._viewing)
        self.between = Between(ledger, names, references, self._viewing)

    @property
    def incarnation(self) -> int:
        """Return the incarnation that positions belong to."""
        return self._ledger.head_row.incarnation if self._ledger.head_row else 1

    @property
    def position(self) -> int:
        """Return the position that answers are made at."""
        return self._ledger.walk.position

    def text(self, append: Append, lineage: str, revision: str) -> RevisionText:
        """Return what a revision says, for an append that continues it."""
        return self._said(append.state(lineage).revisions[revision])

    def revision(self, lineage: str, revision: str) -> RevisionState:
        """Return a revision as its lineage's events leave it."""
        return self._states.lineage(lineage).revisions[revision]

    def find(self, lineage: str, revision: str) -> RevisionState | None:
        """Return a revision, whatever became of it; None if its lineage has no such one."""
        return self._states.lineage(lineage).revisions.get(revision)

    def actor(self, position: int) -> str:
        """Return the id of the actor of a verified event: of a revision's own, its author."""
        return self._ledger.at([position])[position].entry.envelope.actor

    def _said(self, item: RevisionState) -> RevisionText:
        found = self._ledger.at({item.content_seq, item.meta_seq})
        return said(found[item.content_seq], found[item.meta_seq])

    def correction(self, append: Append, correction: str) -> tuple[CorrectionRecorded, CorrectionText]:
        """Return a correction as it was recorded, for an append on it. Errors: INVALID_TRANSITION (it was erased)."""
        state = append.of(CORRECTION, correction)
        if state.recorded is None or state.position is None:
            raise TypeError(f"no correction: {correction}")
        item = self._ledger.at([state.position])[state.position]
        if item.payload is None:
            refuse(
                "INVALID_TRANSITION",
                "What this correction says was erased, so nobody can vouch for it or put another value in its place. "
                "It can be revoked; record a new correction for what is right.",
                state="erased",
                allowed=["revoke"],
            )
        return state.recorded, correction_text_of(item)

    def scope(self, project: str, request: ScopeRequest) -> ScopeIds:
        """Return a reader's scope as ids; a name that was never assigned stands for nobody."""

        def found(kind: str, name: str | None) -> str | None:
            return None if name is None else self._names.find(kind, project, name) or NOBODY

        return ScopeIds(
            agent=found("agent", request.agent),
            project=project,
            session=found("session", request.session),
            task_family=found("task_family", request.task_family),
            user=found("user", request.user),
        )

    def reader(self, project: str, request: ScopeRequest) -> ScopeIds:
        """Return the scope that a list is made for: of the reader that it names, or else what the actor reads with."""
        named = any((request.agent, request.user, request.session))
        return self.scope(project, request) if named else self._references.visible.reader(project)

    def show(self, reference: str) -> Revision:
        """Return one revision."""
        found, revision = self._viewing.find(reference)
        lineage = self._viewing.with_others(found)
        return revision_reply(lineage, lineage.state.revisions[revision], self._viewing.shown(lineage))

    def explain(self, reference: str, at: Moment | None = None) -> Explanation:
        """Return one revision, its place in the lineage, and every event of the lineage; now, or as it all stood."""
        position = None if at is None else self.position_of(at)
        found, revision = self._viewing.find(reference, position)
        lineage = self._viewing.with_others(found, position)
        show = self._viewing.shown(lineage)
        item = lineage.state.revisions[revision]
        fields: dict[str, Any] = revision_fields(lineage, item, show)  # Any: one value of each field's type
        if item.superseded_by:
            fields["provenance"]["supersededBy"] = item.superseded_by[0]
        first = min(lineage.state.revisions.values(), key=lambda item: item.version)
        return Explanation(
            head=lineage.state.head,
            root=first.revision,
            audit=audit(lineage, show),
            at_position=position,
            **fields,
        )

    def history(self, reference: str, *, patch: bool = False) -> History:
        """Return every revision of a memory in version order, with `patch` also what each changed."""
        found, _ = self._viewing.find(reference)
        lineage = self._viewing.with_others(found)
        show = self._viewing.shown(lineage, *lineage.others.values())
        items = sorted(lineage.state.revisions.values(), key=lambda item: item.version)
        reply = patched_revision if patch else revision_reply
        return History(
            memory_id=show(lineage.lineage),
            items=tuple(reply(lineage, item, show) for item in items),
            position=self.position,
            incarnation=self.incarnation,
        )

    def diff(self, before: str, after: str) -> RevisionDiff:
        """Return what differs between two revisions."""
        old, new = self._viewing.find(before), self._viewing.find(after)
        return revision_diff((old, new), self._viewing.shown(old[0], new[0]))

    def position_of(self, moment: Moment, field: str = "at") -> int:
        """Return the position that is meant by a moment of the past, −1 before all; `field` is what it is called."""
        return self._moments.position(moment, incarnation=self.incarnation, field=field)

    def recorded_at(self, position: int) -> str:
        """Return when the event at a position was recorded; before all of them, the beginning of time."""
        return "" if position < 0 else self._ledger.at([position])[position].entry.envelope.at

    def lineage(self, reference: str, *, up: bool, down: bool, depth: int | None) -> Lineage:
        """Return the graph around a memory: its revisions, where they lead, links to other memories, corrections.

        Or around a correction: the chain that it stands in, and what each of that touched.
        """
        if kind_of(reference) == CORRECTION_ID and is_ours(reference):
            return self._lineage_of_correction(reference, up=up, down=down, depth=depth)
        centre, _ = self._viewing.find(reference)
        around = Surroundings(self._ledger, self._names, self._references, self._viewing, centre)
        for newer in [True] * up + [False] * down:
            around.follow(newer=newer, depth=depth)
        nodes, edges = around.graph()
        return Lineage(
            root=self._names.show(centre.lineage),
            nodes=nodes,
            edges=edges,
            position=self.position,
            incarnation=self.incarnation,
        )

    def _lineage_of_correction(self, reference: str, *, up: bool, down: bool, depth: int | None) -> Lineage:
        correction = self._references.correction(reference)
        nodes, edges = self.chains.graph(self.chains.around(correction, up=up, down=down, depth=depth))
        return Lineage(root=correction, nodes=nodes, edges=edges, position=self.position, incarnation=self.incarnation)

    def event(self, seq: int) -> EventDetail:
        """Return one event with its facts and its payload."""
        return self._detail(self._recorded(seq))

    def trace(self, trace: str) -> Trace:
        """Return the events that one command stored."""
        found = self._traces.events(trace)
        first = found[0].entry.envelope
        return Trace(
            trace_id=first.op,
            at=first.at,
            actor=self._names.show(first.actor),
            items=tuple(self._detail(item) for item in found),
            position=self.position,
            incarnation=self.incarnation,
        )

    def _detail(self, item: Recorded) -> EventDetail:
        return EventDetail(
            **log_item(item.entry, self._names.show(item.entry.envelope.actor)),
            **chain_fields(item.entry),
            facts=msgspec.to_builtins(item.entry.envelope.facts),
            payload=self._shown_payload(item),
            erased=item.payload is None and item.entry.envelope.payload_sha256 is not None,
            forgotten=self.repeats_forgotten(item),
        )

    def _shown_payload(self, item: Recorded) -> dict[str, Any] | None:  # Any: the event type's own
        """Return what an event says; None where the actor may not see it, or where it repeats what was forgotten."""
        if item.payload is None or not self.tells(item) or self.repeats_forgotten(item):
            return None
        said: dict[str, Any] = msgspec.to_builtins(item.payload)  # Any: as above
        return said

    def tells(self, item: Recorded) -> bool:
        """Report whether the actor may see what an event says: of this project, where one is named, and visible.

        A name is as visible as what bears it, if that is a memory; what else it names is no secret of one reader's.
        """
        if self._references.visible.whole:
            return True
        stream, facts = item.entry.envelope.stream, item.entry.envelope.facts
        project = None if self._references.project_name is None else self._references.project or NOBODY
        if isinstance(facts, NameAssigned):
            if facts.kind == "memory":
                return self._references.sees(self._states.lineage(facts.id))
            return facts.parent == self._names.root or project in (None, facts.parent)
        if kind_of(stream) == CORRECTION_ID:
            recorded = self._states.of(CORRECTION, stream).recorded
            return recorded is not None and self._references.holds_correction(recorded)
        if isinstance(item.payload, EvidenceText):  # it says no project, and its stream is a digest of that
            return project is None or self._ledger.keys.evidence(project, item.payload.hash) == stream
        if kind_of(stream) != MEMORY:
            return not isinstance(facts, ExportMade)
        state = self._states.lineage(stream)
        return self._references.holds(state) and self._references.visible.tells(facts, state)

    def repeats_forgotten(self, item: Recorded) -> bool:
        """Report whether an event says what was forgotten, of a revision or as the values of a correction of one."""
        if item.payload is None:
            return False
        stream, facts = item.entry.envelope.stream, item.entry.envelope.facts
        if kind_of(stream) == MEMORY:
            return is_silenced(facts, self._states.lineage(stream))
        if kind_of(stream) != CORRECTION_ID:
            return False
        recorded = facts if isinstance(facts, CorrectionRecorded) else self._states.of(CORRECTION, stream).recorded
        return recorded is not None and bool(self._viewing.untold_about([recorded.revision]))

    def untold_about(self, revisions: Iterable[str | None]) -> frozenset[str]:
        """Return those of some revisions of which no correction tells its values any more."""
        return self._viewing.untold_about(revisions)

    def log(self, first: int, end: int) -> list[LogItem]:
        """Return the events from `first` up to before `end`, oldest first."""
        found = self._ledger.at(range(first, end))
        names = self._names.shown(sorted({item.entry.envelope.actor for item in found.values()}))
        entries = [found[position].entry for position in sorted(found)]
        return [LogItem(**log_item(entry, names[entry.envelope.actor])) for entry in entries]

    def raw(self, seq: int) -> bytes:
        """Return the bytes of one event's envelope."""
        return self._recorded(seq).entry.raw

    def _recorded(self, seq: int) -> Recorded:
        if not 0 <= seq <= self.position:
            raise no_event(seq, self.position)
        return self._ledger.at([seq])[seq]

    def complete(self, prefix: str) -> tuple[str, ...]:
        """Return our ids of this project's memories, revisions and corrections that begin with a prefix, sorted.

        Or those of traces: of the ledger's.
        """
        if not is_prefix_of_ours(prefix):
            return ()
        if kind_of(prefix) == OP:
            return self._traces.beginning_with(prefix)
        found = self._ledger.walk.beginning_with(prefix).items()
        ours = [(item, lineage) for item, lineage in found if kind_of(item) in (MEMORY, REVISION, CORRECTION_ID)]
        return tuple(sorted({item for item, stream in ours if self._is_found(item, stream)}))

    def _is_found(self, item: str, stream: str) -> bool:
        """Report whether a memory, revision or correction, by its stream, would be found."""
        if not self._ledger.walk.stream(stream).version:
            return False
        if kind_of(stream) == CORRECTION_ID:
            recorded = self._states.of(CORRECTION, stream).recorded
            return recorded is not None and self._references.holds_correction(recorded)
        return self._references.sees(self._states.lineage(stream), None if item == stream else item)
