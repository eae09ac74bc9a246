"""What happened to the memories and corrections of a project between two positions: each one's acts, before and after.

It goes through the events in between once, and reads each of them that they changed once, a page of them at a time.
"""

from collections.abc import Iterator, Sequence

from gateway.reading.correction_diffs import CorrectionDiffs
from gateway.scope.names import Names, References
from gateway.shapes.replies.lineages import LineageEdge
from gateway.shapes.replies.past import CorrectionDiff, MemoryDiff, MemoryThen
from gateway.views.diffing import differences, said_then
from gateway.views.revisions import LineageView
from gateway.views.viewing import Viewing
from ledger.errors import refuse
from ledger.ids import CORRECTION, MEMORY, kind_of
from ledger.verified import VerifiedLedger

EVENTS_PAGE = 2_000
STREAMS_PAGE = 200


class Between:
    """What changed between two positions. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger, names: Names, references: References, viewing: Viewing) -> None:
        self._ledger = ledger
        self._names = names
        self._references = references
        self._viewing = viewing
        self._corrections = CorrectionDiffs(ledger, names, references, viewing)

    def streams(self, first: int, last: int) -> Iterator[Sequence[str]]:
        """Yield memories and corrections with events above `first` up to `last`, once each, by their first one there.

        Each page is read when it is asked for. Errors: VALIDATION_FAILED (it ends before it begins).
        """
        if last < first:
            refuse(
                "VALIDATION_FAILED",
                "The ledger is compared from an earlier position or time to a later one, and the second one given is "
                "before the first. Give them the other way round.",
            )
        return self._pages(first, last)

    def _pages(self, first: int, last: int) -> Iterator[Sequence[str]]:
        seen: set[str] = set()
        for start in range(first + 1, last + 1, EVENTS_PAGE):
            entries = self._ledger.entries(start, min(start + EVENTS_PAGE, last + 1))
            streams = dict.fromkeys(entry.envelope.stream for entry in entries)
            fresh = [one for one in streams if kind_of(one) in (MEMORY, CORRECTION) and one not in seen]
            seen.update(fresh)
            for at in range(0, len(fresh), STREAMS_PAGE):
                yield fresh[at : at + STREAMS_PAGE]

    def diffs(self, streams: Sequence[str], first: int, last: int) -> list[MemoryDiff | CorrectionDiff]:
        """Return what happened to those of some memories and corrections that the project has, in their order."""
        found: dict[str, MemoryDiff | CorrectionDiff] = {
            **self._memories([one for one in streams if kind_of(one) == MEMORY], first, last),
            **self._corrections.diffs([one for one in streams if kind_of(one) == CORRECTION], first, last),
        }
        return [found[one] for one in streams if one in found]

    def _memories(self, lineages: Sequence[str], first: int, last: int) -> dict[str, MemoryDiff]:
        views = [view for view in self._viewing.many(lineages).values() if self._references.holds(view.state)]
        after = {one.lineage: self._viewing.at(one, last) for one in views}
        after = {lineage: one for lineage, one in after.items() if _revision(one) is not None}
        others = {end for one in after.values() for pair in one.state.links for end in pair}
        others |= {end for one in views for pair in self._viewing.at(one, first).state.links for end in pair}
        self._names.shown(sorted(others))
        self._viewing.shown(*views)
        return {one: self._diff(view, self._viewing.at(view, first), first) for one, view in after.items()}

    def _diff(self, after: LineageView, before: LineageView, first: int) -> MemoryDiff:
        stood, now = _revision(before), _revision(after)
        show = self._names.show
        old, new = before.state.links.keys(), after.state.links.keys()
        return MemoryDiff(
            memory_id=show(after.lineage),
            acts=_acts(after, first),
            before=None if stood is None else _then(before, stood),
            after=_then(after, now or ""),
            patch={} if stood is None else differences(
                said_then(before, before.state.revisions[stood], before.text(stood), show),
                said_then(after, after.state.revisions[now or ""], after.text(now or ""), show),
            ),
            linked=self._edges(new - old),
            unlinked=self._edges(old - new),
        )  # fmt: skip

    def _edges(self, pairs: "set[tuple[str, str]]") -> tuple[LineageEdge, ...]:
        show = self._names.show
        return tuple(
            LineageEdge(source=show(newer), target=show(older), kind="supersedes") for newer, older in sorted(pairs)
        )


def _revision(view: LineageView) -> str | None:
    return view.state.head or view.state.latest


def _then(view: LineageView, revision: str) -> MemoryThen:
    item = view.state.revisions[revision]
    return MemoryThen(
        head=view.state.head,
        revision_id=revision,
        version=item.version,
        state=item.values.state,
        trust=item.values.trust,
        content=None if revision in view.unseen else view.text(revision).content,
    )


def _acts(view: LineageView, first: int) -> tuple[str, ...]:
    """Return what each event above a position did, in the words of their types; that which began the memory `begun`."""
    recorded = [(at, item.entry.envelope) for at, item in sorted(view.recorded.items()) if at > first]
    return tuple("begun" if one.stream_seq == 0 else one.type.split(".")[1] for _, one in recorded)
