"""The reads: every answer is folded from verified entries; read models only say where to look."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gateway.graph import newer_than, older_than, reach
from gateway.names import Names, References
from gateway.page import Append
from gateway.positions import no_event
from gateway.replies import EventDetail, Explanation, History, Lineage, LineageEdge, LineageNode, LogItem, Revision
from gateway.schemas import ScopeRequest
from gateway.states import States
from gateway.views import (
    LineageView,
    audit,
    chain_fields,
    correction_text_of,
    is_hidden,
    log_item,
    revision_fields,
    revision_reply,
    said,
    text_of,
    view,
)
from ledger.corrections import CORRECTION, CorrectionRecorded, CorrectionText
from ledger.ids import CORRECTION as CORRECTION_ID
from ledger.ids import MEMORY, REVISION, is_prefix_of_ours, kind_of
from ledger.memories import Birth, LineageState, RevisionState, RevisionText
from ledger.message import ScopeIds
from ledger.verified import Recorded, VerifiedLedger

LABEL_CHARS_MAX = 60
NOBODY = "none"  # an id that nothing has: what a name stands for that was never assigned


class Reader:
    """Reads one ledger as one project sees it. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger, names: Names, states: States, references: References) -> None:
        self._ledger = ledger
        self._names = names
        self._states = states
        self._references = references

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

    def actor(self, position: int) -> str:
        """Return the id of the actor of a verified event: of a revision's own, its author."""
        return self._ledger.at([position])[position].entry.envelope.actor

    def _said(self, item: RevisionState) -> RevisionText:
        found = self._ledger.at({item.content_seq, item.meta_seq})
        return said(found[item.content_seq], found[item.meta_seq])

    def _said_elsewhere(self, revision: str) -> RevisionText:
        lineage = self._ledger.walk.lineages([revision])[revision]
        return self._said(self._states.lineage(lineage).revisions[revision])

    def correction(self, append: Append, correction: str) -> tuple[CorrectionRecorded, CorrectionText]:
        """Return a correction as it was recorded, for an append that replaces it."""
        state = append.of(CORRECTION, correction)
        if state.recorded is None or state.position is None:
            raise TypeError(f"no correction: {correction}")
        return state.recorded, correction_text_of(self._ledger.at([state.position])[state.position])

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

    def show(self, reference: str) -> Revision:
        """Return one revision."""
        lineage, revision = self._find(reference)
        return revision_reply(lineage, lineage.state.revisions[revision], self._shown(lineage))

    def explain(self, reference: str) -> Explanation:
        """Return one revision, its place in the lineage, and every event of the lineage."""
        lineage, revision = self._find(reference)
        show = self._shown(lineage)
        item = lineage.state.revisions[revision]
        fields: dict[str, Any] = revision_fields(lineage, item, show)  # Any: one value of each field's type
        if item.superseded_by:
            fields["provenance"]["supersededBy"] = item.superseded_by[0]
        first = min(lineage.state.revisions.values(), key=lambda item: item.version)
        return Explanation(
            head=lineage.state.head,
            root=first.revision,
            audit=audit(lineage, show),
            **fields,
        )

    def history(self, reference: str) -> History:
        """Return every revision of a memory in version order."""
        lineage, _ = self._find(reference)
        show = self._shown(lineage)
        items = sorted(lineage.state.revisions.values(), key=lambda item: item.version)
        return History(
            memory_id=show(lineage.lineage),
            items=tuple(revision_reply(lineage, item, show) for item in items),
            position=self.position,
            incarnation=self.incarnation,
        )

    def lineage(self, reference: str, *, up: bool, down: bool, depth: int | None) -> Lineage:
        """Return the memories around one, with the links between them, and the revisions of that one."""
        root = self._references.lineage(reference)
        state = self._states.lineage
        found: dict[str, int] = {root: 0}
        if up:
            found |= reach(root, lambda item: newer_than(item, state(item)), depth)
        if down:
            found |= reach(root, lambda item: older_than(item, state(item)), depth)
        centre = self._view(root)
        links = sorted({pair for item in found for pair in state(item).links if set(pair) <= found.keys()})
        shown = self._names.shown([*found])
        return Lineage(
            root=shown[root],
            nodes=(*(self._memory_node(item, shown[item]) for item in found), *_revision_nodes(centre)),
            edges=(
                *(LineageEdge(source=shown[new], target=shown[old], kind="supersedes") for new, old in links),
                *_revision_edges(centre),
            ),
            position=self.position,
            incarnation=self.incarnation,
        )

    def event(self, seq: int) -> EventDetail:
        """Return one event with its facts and its payload."""
        item = self._recorded(seq)
        return EventDetail(
            **log_item(item.entry, self._names.show(item.entry.envelope.actor)),
            **chain_fields(item.entry),
            facts=msgspec.to_builtins(item.entry.envelope.facts),
            payload=self._shown_payload(item),
        )

    def _shown_payload(self, item: Recorded) -> dict[str, Any] | None:  # Any: the event type's own
        """Return what an event says, without the content of a revision that was withdrawn from view."""
        if item.payload is None:
            return None
        said: dict[str, Any] = msgspec.to_builtins(item.payload)  # Any: as above
        facts = item.entry.envelope.facts
        if isinstance(facts, Birth):
            state = self._states.lineage(item.entry.envelope.stream)
            if is_hidden(state.revisions[facts.moves[-1].revision]):
                said["content"] = None
        return said

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
        """Return our ids of this project's memories, revisions and corrections that begin with a prefix, sorted."""
        if not is_prefix_of_ours(prefix):
            return ()
        project = self._references.project
        found = self._ledger.walk.beginning_with(prefix).items()
        ours = [(item, lineage) for item, lineage in found if kind_of(item) in (MEMORY, REVISION, CORRECTION_ID)]
        ids = {item for item, lineage in ours if project is None or self._project_of(lineage) == project}
        return tuple(sorted(ids))

    def _find(self, reference: str) -> tuple[LineageView, str]:
        """Return a lineage and the revision that is meant: the one named, the head, else the latest."""
        identifier, revision = self._references.locate(reference)
        lineage = self._view(identifier)
        return lineage, revision or lineage.state.head or lineage.state.latest or ""

    def _view(self, lineage: str) -> LineageView:
        return view(lineage, self._ledger.stream(lineage), self._said_elsewhere)

    def _project_of(self, stream: str) -> str | None:
        """Return the project of a lineage or of a correction."""
        if not self._ledger.walk.stream(stream).version:
            return None
        if kind_of(stream) == CORRECTION_ID:
            recorded = self._states.of(CORRECTION, stream).recorded
            return recorded.scope.project if recorded else None
        state = self._states.lineage(stream)
        return state.revisions[state.latest].scope.project if state.latest else None

    def _shown(self, lineage: LineageView) -> Callable[[str], str]:
        """Return a look-up of names that has read all those of a lineage at once."""
        scopes = [item.scope for item in lineage.state.revisions.values()]
        ids = {lineage.lineage} | {item.entry.envelope.actor for item in lineage.recorded.values()}
        for scope in scopes:
            ids |= {
                value for value in (scope.agent, scope.project, scope.session, scope.task_family, scope.user) if value
            }
        names: Mapping[str, str] = self._names.shown(sorted(ids))
        return names.__getitem__

    def _memory_node(self, lineage: str, shown: str) -> LineageNode:
        state = self._states.lineage(lineage)
        current = state.revisions[state.head or state.latest or ""]
        position = current.content_seq
        return LineageNode(
            id=shown,
            type="memory",
            state=_memory_state(state),
            label=_label(current, text_of(self._ledger.at([position])[position])),
            version=len(state.revisions),
        )


def _memory_state(state: LineageState) -> str:
    """Return a memory's state in one word: that of its head, or what became of its latest revision."""
    if state.head is not None:
        return "active"
    latest = state.revisions[state.latest or ""].values
    return "revoked" if latest.trust == "revoked" else latest.state


def _revision_nodes(lineage: LineageView) -> list[LineageNode]:
    return [
        LineageNode(
            id=item.revision,
            type="revision",
            state="revoked" if item.values.trust == "revoked" else item.values.state,
            label=_label(item, lineage.text(item.revision)),
            version=item.version,
        )
        for item in sorted(lineage.state.revisions.values(), key=lambda item: item.version)
    ]


def _revision_edges(lineage: LineageView) -> list[LineageEdge]:
    return [
        LineageEdge(source=item.revision, target=older, kind="supersedes")
        for item in lineage.state.revisions.values()
        for older in item.supersedes
    ]


def _label(item: RevisionState, text: RevisionText) -> str:
    """Return the beginning of what a revision says, unless that was withdrawn from view."""
    if is_hidden(item):
        return f"({item.values.state})"
    line = " ".join(text.content.strip().splitlines()[0].split())
    return line if len(line) <= LABEL_CHARS_MAX else line[: LABEL_CHARS_MAX - 1] + "…"
