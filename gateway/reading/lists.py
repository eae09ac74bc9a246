"""Lists of memories as they stood at one position: found in the read models, believed only from verified entries.

A page is read at the position of the first one, so nothing that happens meanwhile can make pages skip or repeat.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct, structs

from gateway.reading.reader import Reader
from gateway.scope.names import References, no_such_project
from gateway.scope.visible import Visible
from gateway.shapes.cursors import Cursors, Place
from gateway.shapes.replies.memories import ListedRevision, Revision, RevisionAct
from gateway.shapes.requests import ListRequest
from gateway.views.revisions import LineageView, invalidation, revision_fields, revision_reply
from gateway.views.viewing import Viewing
from ledger.memories import MetadataPatched, RevisionPromoted, RevisionState
from ledger.message import Edge, Move, ScopeIds, Values
from ledger.verified import Recorded, VerifiedLedger
from projections.lineage import QUERIES

CHUNK = 200


class Wanted(Struct, frozen=True, kw_only=True):
    """What a list is asked for, with names as ids: `reader` is None where the project holds nothing yet.

    `visible` says what is shown: everything of the project, if it is whole, or what the reader's scope makes visible.
    """

    request: ListRequest
    lineage: str | None
    reader: ScopeIds | None
    visible: Visible

    @property
    def whole(self) -> bool:
        """Report whether everything of the project is shown."""
        return self.visible.whole


class Chunk(NamedTuple):
    """Some items with their keys, and the key above which the list goes on; None at its end."""

    items: list[tuple[int, Revision]]
    next: int | None


class Lister:
    """Lists the memories of one ledger as one project sees them. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger, references: References, reader: Reader) -> None:
        self._ledger = ledger
        self._references = references
        self._reader = reader

    def begin(self, request: ListRequest) -> tuple[Wanted, Place]:
        """Return what is asked for, and where the list goes on: at its beginning and the head unless a cursor says.

        Errors: MEMORY_NOT_FOUND (an unknown project too), CURSOR_INVALID, CURSOR_FILTER_MISMATCH.
        """
        project = self._references.project
        reader = None if project is None else self._reader.reader(project, request)
        wanted = Wanted(
            request=request,
            lineage=None if request.memory is None else self._references.lineage(request.memory),
            reader=reader,
            visible=self._seeing(request, reader),
        )
        if request.cursor is None and reader is None:
            raise no_such_project()
        return wanted, self._cursors.begin(request.cursor, self._filter(wanted), head=self._reader.position)

    def _seeing(self, request: ListRequest, reader: ScopeIds | None) -> Visible:
        """Return what the list shows: the operator's of one memory shows all of it, whoever is named."""
        visible = self._references.visible
        named = any((request.agent, request.user, request.session))
        alone = visible.whole and request.memory is not None
        return visible if reader is None or alone or not named else visible.named(reader)

    def cursor(self, wanted: Wanted, place: Place, last: int | None) -> str | None:
        """Return the cursor with which the list goes on behind a page; None at its end."""
        return self._cursors.onward(place, last, self._filter(wanted))

    def chunk(self, wanted: Wanted, place: Place, most: int) -> Chunk:
        """Return the next items above a place; not all rows that were looked at need be among them."""
        rows = self._rows(wanted, place, most)
        viewing = self._reader.viewing.seen_by(wanted.visible)
        views = viewing.many({lineage for _, _, lineage in rows}, place.position)
        found = [(key, views[lineage], revision) for key, revision, lineage in rows]
        kept = [(key, view, item) for key, view, item in _known(found) if self._is_wanted(view, item, wanted)]
        whole = _with_successors(viewing, [view for _, view, _ in kept], place.position)
        show = viewing.shown(*whole.values())
        reply = _listed if wanted.lineage is not None else revision_reply
        items: list[tuple[int, Revision]] = [(key, reply(whole[view.lineage], item, show)) for key, view, item in kept]
        return Chunk(items, rows[-1][0] if len(rows) == most else None)

    def _rows(self, wanted: Wanted, place: Place, most: int) -> list[tuple[int, str, str]]:
        if wanted.reader is None:
            return []
        params = {
            "project": wanted.reader.project,
            "at": place.position,
            "after": place.last,
            "lineage": wanted.lineage,
            "kind": wanted.request.kind,
            "agent": wanted.reader.agent,
            "user": wanted.reader.user,
            "whole": wanted.whole,
            "session": wanted.reader.session,
            "states": list(wanted.request.states),
            "limit": most,
        }
        return [(key, revision, lineage) for key, revision, lineage in self._ledger.store.query(_LIST, params)]

    def _is_wanted(self, view: LineageView, item: RevisionState, wanted: Wanted) -> bool:
        """Report whether a revision is what was asked for, by what its events said at the position of the list."""
        request, reader = wanted.request, wanted.reader
        return (
            wanted.visible.revision(item)
            and (reader is not None and item.scope.project == reader.project)
            and wanted.lineage in (None, view.lineage)
            and request.kind in (None, item.kind)
            and listed_state(item.values) in request.states
            and (not request.tags or set(request.tags) <= set(view.tags(item.revision)))
        )

    @property
    def _cursors(self) -> Cursors:
        return Cursors(self._ledger.keys, self._reader.incarnation)

    def _filter(self, wanted: Wanted) -> Mapping[str, Any]:  # Any: JSON
        request = wanted.request
        return {
            "list": "memories",
            "whole": wanted.whole,
            "project": self._references.project_name,
            "lineage": wanted.lineage,
            "states": sorted(request.states),
            "kind": request.kind,
            "tags": sorted(set(request.tags)),
            "agent": request.agent,
            "user": request.user,
            "session": request.session,
        }


_LIST = QUERIES["list_revisions"]


def _with_successors(viewing: Viewing, views: list[LineageView], at: int) -> dict[str, LineageView]:
    """Return views by lineage, with the other lineages by which revisions of theirs were superseded."""
    return {
        view.lineage: viewing.with_others(view, at)
        if any(set(item.superseded_by) - view.state.revisions.keys() for item in view.state.revisions.values())
        else view
        for view in {view.lineage: view for view in views}.values()
    }


def listed_state(values: Values) -> str:
    """Return under which state a revision is listed and counted: one that is active but revoked only as revoked."""
    return "revoked" if values.state == "active" and values.trust == "revoked" else values.state


def _known(found: list[tuple[int, LineageView, str]]) -> list[tuple[int, LineageView, RevisionState]]:
    """Return the rows whose revision their lineage really held, at the place that the row names."""
    kept: list[tuple[int, LineageView, RevisionState]] = []
    for key, view, revision in found:
        item = view.state.revisions.get(revision)
        if item is not None and item.content_seq == key:
            kept.append((key, view, item))
    return kept


def _listed(view: LineageView, item: RevisionState, show: Any) -> Revision:  # Any: a look-up of names
    fields: dict[str, Any] = revision_fields(view, item, show)  # Any: one value of each field's type
    return ListedRevision(audit=_acts(view, item.revision, show), **fields)


def _acts(view: LineageView, revision: str, show: Any) -> tuple[RevisionAct, ...]:  # Any: as above
    """Return what happened to a revision, oldest first."""
    acts: list[RevisionAct] = []
    standing: Values | None = None
    for _, item in sorted(view.recorded.items()):
        after = _after(item, revision, standing)
        if after is not None:
            acts.append(_act(view, item, revision, standing, after, show))
            standing = after
    return tuple(acts)


def _after(item: Recorded, revision: str, standing: Values | None) -> Values | None:
    """Return where an event left a revision; None if it did nothing to it."""
    facts = item.entry.envelope.facts
    if isinstance(facts, MetadataPatched) and facts.revision == revision:
        return standing
    return next((move.after for move in _moves(item) if move.revision == revision), None)


def _act(
    view: LineageView, item: Recorded, revision: str, before: Values | None, after: Values, show: Any
) -> RevisionAct:
    envelope = item.entry.envelope
    told = structs.replace(item, payload=None) if envelope.seq in view.untold else item
    retired_by, similarity = invalidation(told)
    edges: tuple[Edge, ...] = getattr(envelope.facts, "edges", ())
    contradicted = [edge for edge in edges if edge.kind == "conflicts" and edge.since is None]
    return RevisionAct(
        seq=envelope.seq,
        at=envelope.at,
        action=envelope.type,
        actor=show(envelope.actor),
        reason=getattr(told.payload, "reason", None),
        from_state=before and before.state,
        to_state=after.state,
        from_trust=before and before.trust,
        to_trust=after.trust,
        expected_active=_replaced(item) if before and before.state == "conflicted" and after.is_live else None,
        conflict_with=next(
            (edge.newer if edge.older == revision else edge.older for edge in contradicted
             if revision in (edge.newer, edge.older)),
            None,
        ),
        retired_by=retired_by,
        similarity=similarity,
    )  # fmt: skip


def _replaced(item: Recorded) -> str | None:
    """Return the head that a promotion replaced."""
    if not isinstance(item.entry.envelope.facts, RevisionPromoted):
        return None
    return next((move.revision for move in _moves(item) if move.before is not None and move.before.is_live), None)


def _moves(item: Recorded) -> tuple[Move, ...]:
    return getattr(item.entry.envelope.facts, "moves", ())
