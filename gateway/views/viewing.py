"""Lineages read as views: whole, at the head or as they stood, with what they lead to in other lineages.

Each lineage that an answer needs is read once. Nothing here is believed that was not verified.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from gateway.scope.names import Names, References, not_found
from gateway.scope.states import States
from gateway.scope.visible import Visible
from gateway.views.hidden import is_hidden_since
from gateway.views.revisions import LineageView, view, view_at
from ledger.errors import failure
from ledger.message import ScopeIds
from ledger.verified import VerifiedLedger


class Viewing:
    """Reads the lineages of one ledger as one project sees them. The caller has caught up."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        names: Names,
        states: States,
        references: References,
        visible: Visible | None = None,
    ) -> None:
        self._ledger = ledger
        self._names = names
        self._states = states
        self._references = references
        self._visible = visible or references.visible

    def seen_by(self, visible: Visible) -> "Viewing":
        """Return what reads the same for somebody else."""
        return Viewing(self._ledger, self._names, self._states, self._references, visible)

    def find(self, reference: str, at: int | None = None) -> tuple[LineageView, str]:
        """Return a lineage, now or as it stood at a position, and the revision meant: that named, the head, the latest.

        Errors: MEMORY_NOT_FOUND, also for what had not begun by then.
        """
        lineage, revision = self._references.place(reference)
        now = view(lineage, self._ledger.stream(lineage))
        self._references.check(now.state, revision)
        self._states.keep(lineage, now.state)
        found = self._narrowed(now if at is None else view_at(now, at))
        revision = revision or found.state.head or found.state.latest
        if revision is None or revision not in found.state.revisions:
            raise not_found() if at is None else _not_yet(at)
        return found, revision

    def with_others(self, found: LineageView, at: int | None = None) -> LineageView:
        """Return a view with those of other lineages whose revisions supersede its own, or are superseded by them."""
        ours = found.state.revisions
        near = {one for item in ours.values() for one in (*item.superseded_by, *item.supersedes)} - ours.keys()
        lineages = self._ledger.walk.lineages(near)
        others = self.many(lineages.values(), at)
        return msgspec.structs.replace(found, others={one: others[lineage] for one, lineage in lineages.items()})

    def many(self, lineages: Iterable[str], at: int | None = None) -> dict[str, LineageView]:
        """Return some lineages, read at once, now or as they stood at a position, as far as they are visible."""
        histories = self._ledger.streams(lineages)
        views = {lineage: view(lineage, recorded) for lineage, recorded in histories.items()}
        return {lineage: self._narrowed(one if at is None else view_at(one, at)) for lineage, one in views.items()}

    def at(self, now: LineageView, position: int) -> LineageView:
        """Return what is visible of a lineage as it stood at a position."""
        return self._narrowed(view_at(now, position))

    def _narrowed(self, whole: LineageView) -> LineageView:
        """Return a view without the revisions that the reader does not see, and without what is said of them."""
        visible = self._visible
        seen = visible.narrowed(whole.state)
        if seen is whole.state:
            return whole
        untold = {
            at for at, item in whole.recorded.items() if not visible.tells(item.entry.envelope.facts, whole.state)
        }
        return msgspec.structs.replace(whole, state=seen, untold=whole.untold | untold)

    def untold_about(self, revisions: Iterable[str | None]) -> frozenset[str]:
        """Return those of some revisions of which no correction tells its values: they, or what came of them, are gone.

        That is so now, whenever they are looked at, and whoever looks.
        """
        asked = {one for one in revisions if one is not None}
        lineages = self._ledger.walk.lineages(asked) if asked else {}
        states = self._states.lineages(set(lineages.values()))
        return frozenset(one for one, lineage in lineages.items() if is_hidden_since(states[lineage], one))

    def shown(self, *views: LineageView) -> Callable[[str], str]:
        """Return a look-up of names that has read all those of some lineages at once."""
        ids: set[str] = set()
        for one in views:
            ids |= {one.lineage} | {item.entry.envelope.actor for item in one.recorded.values()}
            ids |= {name for item in one.state.revisions.values() for name in _segments(item.scope)}
        names: Mapping[str, str] = self._names.shown(sorted(ids))
        return names.__getitem__


def _segments(scope: ScopeIds) -> list[str]:
    return [
        name for name in (scope.agent, scope.project, scope.session, scope.task_family, scope.user) if name is not None
    ]


def _not_yet(position: int) -> Exception:
    then = f"at position {position}" if position >= 0 else "when the ledger held nothing"
    return failure(
        "MEMORY_NOT_FOUND",
        f"This memory or revision was not there yet {then}. Ask for a later position; its history says when it began.",
        position=position,
    )
