"""The chain that a correction stands in, and the graph around it: what it replaced, what replaced it, what it touched.

The event that ends a correction names its successor, and lies in the append that recorded that one: so the chain is
followed both ways through verified entries alone. Only what a correction touched is asked of a read model, and each
revision is held against its own events.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from gateway.reading.lineages import Graph, about_of, correction_node, is_touched, revision_node
from gateway.scope.names import Names, References
from gateway.scope.states import States
from gateway.shapes.replies.lineages import LineageEdge
from gateway.views.viewing import Viewing
from ledger.corrections import CORRECTION, CorrectionSuperseded
from ledger.verified import VerifiedLedger
from projections.corrections import QUERIES
from projections.edges import CORRECTS


class Chains:
    """Follows the corrections of one ledger. The caller has caught up."""

    def __init__(
        self, ledger: VerifiedLedger, names: Names, states: States, references: References, viewing: Viewing
    ) -> None:
        self._ledger = ledger
        self._names = names
        self._states = states
        self._references = references
        self._viewing = viewing

    def whole(self, correction: str) -> list[str]:
        """Return all corrections of a chain, oldest first."""
        return self.around(correction, up=True, down=True, depth=None)

    def around(self, correction: str, *, up: bool, down: bool, depth: int | None) -> list[str]:
        """Return those that came after (`up`) and before (`down`), at most `depth` steps away, oldest first."""
        older = list(self._followed(correction, newer=False, depth=depth)) if down else []
        newer = list(self._followed(correction, newer=True, depth=depth)) if up else []
        return [*reversed(older), correction, *newer]

    def graph(self, chain: Sequence[str]) -> Graph:
        """Return the corrections of a chain, newest first, and the revisions that they touched; and what joins them."""
        touched = {one: list(self._touched(one)) for one in reversed(chain)}
        lineages = self._ledger.walk.lineages({revision for found in touched.values() for revision in found})
        views = self._viewing.many(set(lineages.values()))
        corrects = [
            (one, revision)
            for one, found in touched.items()
            for revision in found
            if revision in lineages
            and revision in views[lineages[revision]].state.revisions
            and is_touched(views[lineages[revision]], revision, one, self._states.of(CORRECTION, one))
        ]
        shown = self._names.shown(sorted({lineages[revision] for _, revision in corrects}))
        revisions = dict.fromkeys(revision for _, revision in corrects)
        states = {one: self._states.of(CORRECTION, one) for one in touched}
        untold = self._viewing.untold_about(about_of(state) for state in states.values())
        nodes = (
            *(
                correction_node(one, states[one], self._ledger.stream(one), told=about_of(states[one]) not in untold)
                for one in touched
            ),
            *(revision_node(views[lineages[one]], one, shown[lineages[one]]) for one in revisions),
        )
        edges = (
            *(LineageEdge(source=new, target=old, kind="supersedes") for old, new in pairwise(chain)),
            *(LineageEdge(source=one, target=revision, kind=CORRECTS) for one, revision in corrects),
        )
        return nodes, edges

    def _followed(self, correction: str, *, newer: bool, depth: int | None) -> Iterator[str]:
        step, steps = (self._successor if newer else self._predecessor), 0
        found = step(correction)
        while found is not None and (depth is None or steps < depth):
            yield found
            found, steps = step(found), steps + 1

    def _successor(self, correction: str) -> str | None:
        return self._seen(self._states.of(CORRECTION, correction).superseded_by)

    def _predecessor(self, correction: str) -> str | None:
        """Return the correction that was ended in favour of one, in the append that recorded it."""
        position = self._states.of(CORRECTION, correction).position
        if position is None:
            return None
        envelope = self._ledger.at([position])[position].entry.envelope
        first = position - envelope.op_index
        for entry in self._ledger.entries(first, first + envelope.op_count):
            facts = entry.envelope.facts
            if isinstance(facts, CorrectionSuperseded) and facts.successor == correction:
                return self._seen(entry.envelope.stream)
        return None

    def _seen(self, correction: str | None) -> str | None:
        recorded = None if correction is None else self._states.of(CORRECTION, correction).recorded
        return correction if recorded is not None and self._references.holds_correction(recorded) else None

    def _touched(self, correction: str) -> Iterable[str]:
        store = self._ledger.store
        params = {"gen": store.head().gen, "kind": CORRECTS, "correction": correction}
        return dict.fromkeys(str(revision) for revision, _ in store.query(QUERIES["find_touched"], params))
