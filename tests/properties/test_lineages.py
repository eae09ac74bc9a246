"""Whatever anybody asks of a lineage, in whatever order: it keeps its shape."""

from collections.abc import Sequence

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from ledger import codec
from ledger.errors import CorrigendaError
from ledger.memories import LINEAGE, Command, LineageState, Restore, Retire, RevisionRevoked
from ledger.message import HEADLESS, Edge, Event, Move, settled
from tests.ledgers import remember
from tests.strategies import WISHES, Drawn, commands, with_new_id

SEQUENCES = st.lists(commands(), max_size=25)


def carry_out(wishes: Sequence[Command], *, start: int = 0) -> list[Event]:
    """Return the history of the wishes that are not refused, at the positions from `start`.

    A new revision is called after its number, so that later wishes can mean it.
    """
    history: list[Event] = []
    state = LineageState()
    for wish in wishes:
        try:
            decided = LINEAGE.decide(state, with_new_id(wish, f"rev_{len(state.revisions)}"))
        except CorrigendaError:
            continue
        for event in decided:
            history.append(event.settled(start + len(history)))
            state = LINEAGE.evolve(state, history[-1])
    return history


@given(SEQUENCES)
@example([remember("", "one"), Retire(revision="rev_0"), remember("", "two"), Restore(revision="rev_0")])
def test_a_lineage_has_at_most_one_live_revision_and_its_standing_names_it(wishes: list[Command]) -> None:
    """After every single event: one head or none, and the standing says which, and where its text is."""
    state = LineageState()
    for event in carry_out(wishes):
        state = LINEAGE.evolve(state, event)
        live = [item for item in state.revisions.values() if item.values.is_live]
        assert len(live) <= 1
        if not live:
            assert state.standing == HEADLESS
            continue
        (head,) = live
        found = state.standing
        assert (found.head, found.content_seq, found.meta_seq) == (head.revision, head.content_seq, head.meta_seq)
        assert (found.trust, found.floor) == (head.values.trust, head.values.floor)


@given(SEQUENCES)
def test_versions_are_dense(wishes: list[Command]) -> None:
    """Revisions are counted 1, 2, 3 in the order in which they came."""
    revisions = LINEAGE.fold(carry_out(wishes)).revisions.values()
    assert [item.version for item in sorted(revisions, key=lambda item: item.content_seq)] == [
        number + 1 for number in range(len(revisions))
    ]


@given(SEQUENCES)
def test_every_history_folds(wishes: list[Command]) -> None:
    """Folding what was decided never fails, counts every event, and comes out the same twice."""
    history = carry_out(wishes)
    assert LINEAGE.fold(history).version == len(history)
    assert LINEAGE.fold(history) == LINEAGE.fold(history)


@given(SEQUENCES)
def test_moves_join_end_to_end(wishes: list[Command]) -> None:
    """A move begins with the values, and at the position, with which the revision's last move ended."""
    ends: dict[str, tuple[int, Move]] = {}
    for event in carry_out(wishes):
        moves: tuple[Move, ...] = getattr(event.facts, "moves", ())
        for move in moves:
            before = ends.get(move.revision)
            assert (move.since, move.before) == ((None, None) if before is None else (before[0], before[1].after))
            assert before is None or before[1].version == move.version
            ends[move.revision] = (event.position, move)


@given(SEQUENCES)
def test_a_restore_gives_back_what_was_taken(wishes: list[Command]) -> None:
    """Whatever a withdrawal changed is as it was before, once it has been undone; of a revocation, the trust alone."""
    history = carry_out(wishes)
    states = [LINEAGE.fold(history[:end]) for end in range(len(history) + 1)]
    for event in history:
        undoes = getattr(event.facts, "undoes", None)
        if undoes is not None:
            (move,) = getattr(event.facts, "moves")  # noqa: B009 - the type is not narrowed by a field
            before, after = states[undoes], states[event.position + 1]
            found, lost = after.revisions[move.revision].values, before.revisions[move.revision].values
            assert found.trust == lost.trust
            assert found == lost or isinstance(history[undoes].facts, RevisionRevoked)


@given(SEQUENCES, st.integers(0, 2**53 - 200))
def test_settled_facts_hold_absolute_positions_of_the_past(wishes: list[Command], start: int) -> None:
    """Wherever an append lands, nothing negative is left, nothing points ahead, and it can be encoded."""
    for event in carry_out(wishes, start=start):
        found = positions(event)
        assert all(0 <= position <= event.position for position in found)
        assert settled(event.facts, 7) == event.facts
        codec.canonical(msgspec.to_builtins(event.facts))


@given(SEQUENCES)
def test_an_append_of_several_commands_settles_like_several_appends(wishes: list[Command]) -> None:
    """Deciding on unsettled events and settling at the end gives the facts that settling one by one gives."""
    settled_one_by_one = carry_out(wishes)
    state, unsettled = LineageState(), []
    for wish in wishes:
        wish = with_new_id(wish, f"rev_{len(state.revisions)}")
        try:
            decided = LINEAGE.decide(state, msgspec.structs.replace(wish, first=-1 - len(unsettled)))
        except CorrigendaError:
            continue
        for event in decided:
            unsettled.append(event)
            state = LINEAGE.evolve(state, event)
    assert [event.settled(0) for event in unsettled] == settled_one_by_one


def positions(event: Event) -> list[int]:
    """Return every position that an event's facts hold."""
    found: list[int | None] = [event.position, *(getattr(event.facts, name, None) for name in ("undoes", "since"))]
    parts: tuple[Move | Edge, ...] = (*getattr(event.facts, "moves", ()), *getattr(event.facts, "edges", ()))
    found += [part.since for part in parts]
    standing = getattr(event.facts, "standing", HEADLESS)
    found += [standing.content_seq, standing.meta_seq]
    return [position for position in found if position is not None]


# For each wish of the table: the wishes before it, and what it is about, so that it is carried out.
REACHED: dict[str, tuple[list[str], str]] = {
    "remember": ([], ""),
    "replace": (["remember"], "rev_0"),
    "hold": ([], ""),
    "hold for": (["remember"], "rev_0"),
    "publish": (["hold"], "rev_0"),
    "correct": (["remember"], "rev_0"),
    "merge": (["remember"], "rev_0"),
    "supersede": (["remember"], "rev_0"),
    "patch": (["remember"], "rev_0"),
    "retire": (["remember"], "rev_0"),
    "revoke": (["remember"], "rev_0"),
    "restore": (["remember", "retire"], "rev_0"),
    "forget": (["remember"], "rev_0"),
    "contest": (["hold", "hold"], "rev_1"),
    "promote": (["hold", "hold", "contest"], "rev_1"),
    "reject": (["hold"], "rev_0"),
    "admit": (["remember"], "rev_0"),
    "link": (["remember"], ""),
    "unlink": (["remember", "link"], ""),
}


def test_the_wishes_above_are_carried_out() -> None:
    """The properties are not about empty histories: each wish of the table makes an event once it may."""
    assert REACHED.keys() == WISHES.keys() - {"promote over"}  # a partner and a head are more than a wish names
    for wish, (before, revision) in REACHED.items():
        names = [*before, wish]
        wishes = [
            WISHES[name](Drawn(revision or "rev_0", f"text {number}", "mem_0", "mem_1"))
            for number, name in enumerate(names)
        ]
        assert len(carry_out(wishes)) == len(names), wish
