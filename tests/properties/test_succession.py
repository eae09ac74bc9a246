"""Whatever is merged, split and otherwise done to several lineages: no circle, no fork, and every end knows the others.

Appends are decided as the gateway decides them, on states that are folded anew from the events.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.writing.succession import Successor, supersede
from ledger.errors import CorrigendaError
from ledger.memories import LINEAGE, Command, LineageState
from ledger.message import Event
from tests.ledgers import SCOPE, remember, text
from tests.strategies import commands, with_new_id

STREAMS = ["mem_0", "mem_1", "mem_2", "mem_3"]
REVISIONS = [f"rev_{number}" for number in range(8)]


class Act(NamedTuple):
    """A wish about one lineage."""

    lineage: str
    command: Command


class Succession(NamedTuple):
    """The wish that the heads of some lineages end, and so many texts take their place."""

    lineages: tuple[str, ...]
    texts: int


WISHES = st.lists(
    st.one_of(
        st.builds(Act, st.sampled_from(STREAMS), commands(REVISIONS)),
        st.builds(Succession, st.lists(st.sampled_from(STREAMS), min_size=1, max_size=3).map(tuple), st.integers(1, 3)),
    ),
    max_size=20,
)


class Ledger:
    """Several lineages. An append is taken whole, or not at all."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Event]] = []
        self.born = 0

    def carry_out(self, wish: Act | Succession) -> None:
        """Carry a wish out, unless it is refused."""
        append = Append(self.states(), len(self.events))
        self.born = sum(len(state.revisions) for state in self.states().values())
        try:
            if isinstance(wish, Act):
                append.decide(wish.lineage, with_new_id(wish.command, self.fresh("rev")))
            else:
                self.supersede(append, wish)
        except CorrigendaError:
            return
        self.events += append.events

    def supersede(self, append: "Append", wish: Succession) -> None:
        """Decide a merge or split of heads, as ids come."""
        heads = [(lineage, append.state(lineage).head) for lineage in wish.lineages]
        predecessors = [(lineage, head) for lineage, head in heads if head is not None]
        if not predecessors:
            return
        lineages = [predecessors[0][0], *(self.fresh("mem") for _ in range(wish.texts - 1))]
        successors = [
            Successor(
                lineage=lineage, revision=self.fresh("rev"), content=f"new {lineage}", kind="fact", text=text("new")
            )
            for lineage in lineages
        ]
        supersede(append, predecessors, successors, origin="human", scope=SCOPE, reason=None)

    def fresh(self, prefix: str) -> str:
        """Return an id that nothing has, counted by the revisions that there are."""
        self.born += 1
        return f"{prefix}_{self.born - 1}" if prefix == "rev" else f"{prefix}_{self.born + len(STREAMS)}"

    def states(self) -> dict[str, LineageState]:
        """Return every lineage, folded from its own events."""
        streams = dict.fromkeys(stream for stream, _ in self.events)
        return {name: LINEAGE.fold(event for stream, event in self.events if stream == name) for name in streams}


class Append:
    """One append under decision, as `gateway.writing.page` has it."""

    def __init__(self, states: dict[str, LineageState], first: int) -> None:
        self.events: list[tuple[str, Event]] = []
        self._states = states
        self._first = first

    def state(self, lineage: str) -> LineageState:
        """Return a lineage as the decisions so far leave it."""
        return self._states.get(lineage, LINEAGE.initial)

    def decide(self, lineage: str, command: Command) -> None:
        """Decide a command on a lineage."""
        for decided in LINEAGE.decide(self.state(lineage), replace(command, first=-1 - len(self.events))):
            event = decided.settled(self._first)
            self.events.append((lineage, event))
            self._states[lineage] = LINEAGE.evolve(self.state(lineage), event)


def written(wishes: Sequence[Act | Succession]) -> Ledger:
    """Return the ledger that wishes leave behind."""
    ledger = Ledger()
    for wish in wishes:
        ledger.carry_out(wish)
    return ledger


@given(WISHES)
def test_every_lineage_has_at_most_one_head(wishes: list[Act | Succession]) -> None:
    """LM-43: whatever was merged into it, split from it or published in it."""
    for state in written(wishes).states().values():
        live = [item.revision for item in state.revisions.values() if item.values.is_live]
        assert live == ([] if state.head is None else [state.head])


@given(WISHES)
def test_no_revision_supersedes_itself_through_others(wishes: list[Act | Succession]) -> None:
    """RC-36: a successor is always younger than what it supersedes, so there is no circle."""
    states = written(wishes).states()
    born = {item.revision: item.content_seq for state in states.values() for item in state.revisions.values()}
    for older, newer in edges(states):
        assert newer not in born or born[older] < born[newer]


@given(WISHES)
def test_both_ends_of_a_succession_know_each_other(wishes: list[Act | Succession]) -> None:
    """RC-43: each stream, folded alone, names all successors and predecessors of its revisions."""
    states = written(wishes).states()
    forwards = set(edges(states))
    backwards = {
        (older, item.revision) for state in states.values() for item in state.revisions.values()
        for older in item.supersedes
    }  # fmt: skip
    known = {item for state in states.values() for item in state.revisions}
    assert {pair for pair in forwards ^ backwards if known.issuperset(pair)} == set()


@given(WISHES)
def test_a_revision_is_superseded_if_and_only_if_it_has_successors(wishes: list[Act | Succession]) -> None:
    """Nothing ends without a successor, and nothing that has one is live."""
    for state in written(wishes).states().values():
        for item in state.revisions.values():
            before = item.withdrawals[0].before.state if item.withdrawals else item.values.state
            assert (before == "superseded" or item.values.state == "superseded") == bool(item.superseded_by)


def edges(states: Mapping[str, LineageState]) -> list[tuple[str, str]]:
    """Return (older, newer) for everything that is superseded."""
    return [
        (item.revision, newer) for state in states.values() for item in state.revisions.values()
        for newer in item.superseded_by
    ]  # fmt: skip


def test_the_wishes_above_merge_and_split() -> None:
    """The properties are about something: of three heads two texts are made, in lineages of their own."""
    heads = [Act(lineage, remember("rev_new", "one")) for lineage in STREAMS[:3]]
    ledger = written([*heads, Succession(tuple(STREAMS[:3]), 2)])
    states = ledger.states()
    assert [state.head is None for state in states.values()] == [False, True, True, False]
    assert len(edges(states)) == 6
