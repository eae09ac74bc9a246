"""The graph around one memory: its revisions, where merges and splits lead, links between memories, corrections.

Followed level by level, each level's lineages read at once; whatever stands in it was folded from verified entries.
Only which corrections name a revision is asked of a read model, and each is held against its own events.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from gateway.reading.graph import newer_than, older_than
from gateway.scope.names import Names, References
from gateway.shapes.replies.lineages import LineageEdge, LineageNode
from gateway.views.revisions import LineageView, correction_text_of
from gateway.views.viewing import Viewing
from ledger.corrections import CORRECTION, CorrectionState
from ledger.ids import MEMORY, kind_of
from ledger.memories import LearningInvalidated, LineageState, RevisionState
from ledger.verified import Recorded, VerifiedLedger
from projections.edges import CORRECTS
from projections.lineage import QUERIES

LABEL_CHARS_MAX = 60
STEPS_APART_MAX = 8  # up to so many steps are read one after the other
FORESEEN_MAX = 5_000

Graph = tuple[tuple[LineageNode, ...], tuple[LineageEdge, ...]]


class Surroundings:
    """What lies around one lineage, as it is followed."""

    def __init__(
        self, ledger: VerifiedLedger, names: Names, references: References, viewing: Viewing, centre: LineageView
    ) -> None:
        self._ledger = ledger
        self._names = names
        self._references = references
        self._viewing = viewing
        self._centre = centre.lineage
        self._views: dict[str, LineageView] = {centre.lineage: centre}
        self._holders: dict[str, str] = dict.fromkeys(centre.state.revisions, centre.lineage)
        self._memories: dict[str, None] = {centre.lineage: None}
        self._revisions: dict[str, None] = dict.fromkeys(_in_order(centre))

    def follow(self, *, newer: bool, depth: int | None) -> None:
        """Take in what superseded the memory and its revisions, or what they superseded, at most `depth` steps away."""
        linked = newer_than if newer else older_than

        def memories(lineage: str) -> Iterable[str]:
            return linked(lineage, self._views[lineage].state)

        def revisions(revision: str) -> Iterable[str]:
            item = self._state(revision)
            return item.superseded_by if newer else item.supersedes

        if depth is None or depth > STEPS_APART_MAX:
            self._foresee(newer=newer)
        self._memories |= reached([self._centre], memories, load=self._read, depth=depth)
        inner = _in_order(self._views[self._centre])
        self._revisions |= reached(inner, revisions, load=self._locate, depth=depth)

    def graph(self) -> Graph:
        """Return the memories, nearest first, the revisions and the corrections that name one; and what joins them."""
        names = self._names.shown(sorted({*self._memories, *(self._holders[one] for one in self._revisions)}))
        corrections = self._corrections()
        nodes = (
            *(self._memory_node(one, names[one]) for one in self._memories),
            *(
                revision_node(self._views[self._holders[one]], one, names[self._holders[one]])
                for one in self._revisions
            ),
            *dict.fromkeys(node for node, _ in corrections),
        )
        pairs = {pair for one in self._memories for pair in self._views[one].state.links}
        links = (pair for pair in sorted(pairs) if set(pair) <= self._memories.keys())
        edges = (
            *(LineageEdge(source=names[new], target=names[old], kind="supersedes") for new, old in links),
            *(edge for one in self._revisions for edge in _leading_down(self._state(one), self._revisions)),
            *self._conflicts(),
            *(edge for _, edge in corrections),
        )
        return nodes, edges

    def _state(self, revision: str) -> RevisionState:
        return self._views[self._holders[revision]].state.revisions[revision]

    def _read(self, lineages: Iterable[str]) -> list[str]:
        """Read lineages, and return those that there are and that the reader sees."""
        asked = list(lineages)
        views = self._viewing.many(set(asked) - self._views.keys())
        self._views |= {one: view for one, view in views.items() if view.state.latest}
        return [one for one in asked if one in self._views]

    def _foresee(self, *, newer: bool) -> None:
        """Read at once what the read model says will be reached: one by one, a long chain is as many round trips.

        What it leaves out is read when it is reached, and what it adds is not shown.
        """
        ledger = self._ledger
        gen = ledger.head_row.gen if ledger.head_row else 0
        params = {"gen": gen, "ids": [self._centre, *self._holders], "limit": len(self._holders) + FORESEEN_MAX}
        rows = ledger.store.query(QUERIES["find_newer" if newer else "find_older"], params)
        found = {str(row[0]) for row in rows} - self._holders.keys()
        memories = {one for one in found if kind_of(one) == MEMORY}
        held = ledger.walk.lineages(found - memories)
        self._read({*memories, *held.values()})

    def _locate(self, revisions: Iterable[str]) -> list[str]:
        """Read the lineages of revisions, and return those revisions that there are and that the reader sees."""
        asked = list(revisions)
        found = self._ledger.walk.lineages(set(asked) - self._holders.keys())
        self._read(found.values())
        self._holders |= {
            one: lineage
            for one, lineage in found.items()
            if lineage in self._views and one in self._views[lineage].state.revisions
        }
        return [one for one in asked if one in self._holders]

    def _conflicts(self) -> Iterator[LineageEdge]:
        for lineage in dict.fromkeys(self._holders[one] for one in self._revisions):
            for newer, older in self._views[lineage].state.conflicts:
                if {newer, older} <= self._revisions.keys():
                    yield LineageEdge(source=newer, target=older, kind="conflicts")

    def _memory_node(self, lineage: str, shown: str) -> LineageNode:
        view = self._views[lineage]
        return LineageNode(
            id=shown,
            type="memory",
            state=_memory_state(view.state),
            label=_revision_label(view, view.state.head or view.state.latest or ""),
            version=len(view.state.revisions),
        )

    def _corrections(self) -> list[tuple[LineageNode, LineageEdge]]:
        """Return the corrections that the read model says touched a revision, as far as verified events say so too."""
        ledger = self._ledger
        gen = ledger.head_row.gen if ledger.head_row else 0
        params = {"gen": gen, "revisions": list(self._revisions), "kind": CORRECTS}
        rows = [(str(row[0]), str(row[1])) for row in ledger.store.query(QUERIES["find_correcting"], params)]
        histories = ledger.streams(correction for correction, _ in rows)
        states = {one: CORRECTION.fold(item.event for item in recorded) for one, recorded in histories.items()}
        shown = self._names.shown(sorted(states))
        pairs = [
            (correction, revision)
            for correction, revision in dict.fromkeys(rows)
            if self._is_seen(states[correction])
            and is_touched(self._views[self._holders[revision]], revision, correction, states[correction])
        ]
        untold = self._viewing.untold_about(about_of(states[correction]) for correction, _ in pairs)
        nodes = {
            one: correction_node(shown[one], states[one], histories[one], told=about_of(states[one]) not in untold)
            for one in dict.fromkeys(correction for correction, _ in pairs)
        }
        return [
            (nodes[correction], LineageEdge(source=shown[correction], target=revision, kind=CORRECTS))
            for correction, revision in pairs
        ]

    def _is_seen(self, state: CorrectionState) -> bool:
        return state.recorded is not None and self._references.holds_correction(state.recorded)


def about_of(state: CorrectionState) -> str | None:
    """Return the revision that a correction is about."""
    return None if state.recorded is None else state.recorded.revision


def is_touched(view: LineageView, revision: str, correction: str, state: CorrectionState) -> bool:
    """Report whether a correction that was recorded is about a revision of a view, or withdrew it."""
    if state.recorded is None:
        return False
    return state.recorded.revision == revision or any(
        isinstance(facts := item.entry.envelope.facts, LearningInvalidated)
        and facts.correction == correction
        and revision in {move.revision for move in facts.moves}
        for item in view.recorded.values()
    )


def reached(
    starts: Iterable[str],
    following: Callable[[str], Iterable[str]],
    *,
    load: Callable[[Iterable[str]], Iterable[str]],
    depth: int | None,
) -> dict[str, None]:
    """Return everything reachable, nearest first, the starts included.

    `load` is told each level before it is asked about, and says what of it is gone on with.
    """
    found = dict.fromkeys(starts)
    frontier, steps = list(found), 0
    while frontier and (depth is None or steps < depth):
        further = dict.fromkeys(other for one in frontier for other in following(one))
        frontier, steps = [one for one in further if one not in found], steps + 1
        frontier = list(load(frontier))
        found |= dict.fromkeys(frontier)
    return found


def _in_order(view: LineageView) -> list[str]:
    return [item.revision for item in sorted(view.state.revisions.values(), key=lambda item: item.version)]


def _leading_down(item: RevisionState, shown: Container[str]) -> list[LineageEdge]:
    """Return the edges from a revision to what it superseded, and to what it is held to replace."""
    edges = [LineageEdge(source=item.revision, target=older, kind="supersedes") for older in item.supersedes]
    if item.proposes and item.values.state == "processing":
        edges.append(LineageEdge(source=item.revision, target=item.proposes, kind="proposes"))
    return [edge for edge in edges if edge.target in shown]


def _memory_state(state: LineageState) -> str:
    """Return a memory's state in one word: that of its head, or what became of its latest revision."""
    if state.head is not None:
        return "active"
    latest = state.revisions[state.latest or ""].values
    return "revoked" if latest.trust == "revoked" else latest.state


def _revision_label(view: LineageView, revision: str) -> str:
    """Return the first line of what a revision says, or in parentheses why it is not shown."""
    state = view.state.revisions[revision].values.state
    return f"({state})" if revision in view.unseen else _label(view.text(revision).content)


def _label(content: str) -> str:
    line = " ".join(next(iter(content.strip().splitlines()), "").split())
    return line if len(line) <= LABEL_CHARS_MAX else line[: LABEL_CHARS_MAX - 1] + "…"


def revision_node(view: LineageView, revision: str, shown: str) -> LineageNode:
    """Return the node of a revision of a view, whose memory is shown by that name."""
    item = view.state.revisions[revision]
    return LineageNode(
        id=revision,
        type="revision",
        state="revoked" if item.values.trust == "revoked" else item.values.state,
        label=_revision_label(view, revision),
        version=item.version,
        memory_id=shown,
    )


def correction_node(shown: str, state: CorrectionState, recorded: Sequence[Recorded], *, told: bool) -> LineageNode:
    """Return the node of a correction with that history; untold, where it repeats what was forgotten."""
    if not told:
        return LineageNode(id=shown, type="correction", state=state.state or "", label="(forgotten)")
    item = next(item for item in recorded if item.entry.position == state.position)
    if item.payload is None:
        return LineageNode(id=shown, type="correction", state=state.state or "", label="(erased)")
    text = correction_text_of(item)
    field = f"{text.field}: " if text.field else ""
    label = _label(f"{field}{text.original_value} → {text.corrected_value}")
    return LineageNode(id=shown, type="correction", state=state.state or "", label=label)
