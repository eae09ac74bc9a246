"""What a contradiction inside a memory does to its revisions, its head and the edges between them."""

import pytest

from ledger.errors import CorrigendaError
from ledger.memories import (
    LINEAGE,
    Command,
    Contest,
    Forget,
    LineageState,
    Promote,
    Reject,
    Restore,
    RevisionContested,
    RevisionPromoted,
    RevisionRejected,
    Revoke,
)
from ledger.message import HEADLESS, Edge, Event
from tests.ledgers import correct, remember
from tests.specifications import Given
from tests.specs.lineages import A, B, C, D, admit, held, history, then

PAIR = held(history(remember(A, "one")), B)
CONFLICTED = then(PAIR, Contest(first_revision=A, second_revision=B))  # A–B since 2
THREE = then(held(CONFLICTED, C), Contest(first_revision=C, second_revision=B))  # and B–C since 4
WITH_HEAD = then(CONFLICTED, remember(C, "three"))


def states(state: LineageState) -> dict[str, str]:
    """Return the state of each revision."""
    return {name: item.values.state for name, item in state.revisions.items()}


# ---------------------------------------------------------------- contest


def test_contest_clears_the_head_and_states_the_edge() -> None:
    """LM-23: both are conflicted, the memory has no head, and the edge goes from the newer to the older."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, RevisionContested)
        assert facts.edges == (Edge("conflicts", B, A, None),)
        assert [move.revision for move in facts.moves] == [B, A]
        assert (facts.standing, state.head, states(state)) == (HEADLESS, None, {A: "conflicted", B: "conflicted"})
        assert state.conflicts == {(B, A): 2}

    PAIR.when(Contest(first_revision=A, second_revision=B)).then(check)


def test_contest_of_two_that_do_not_hold_leaves_the_head() -> None:
    """LM-23: two held revisions contradict each other while a third one is served."""
    before = held(held(history(remember(A, "one")), B), C)

    def check(event: Event, state: LineageState) -> None:
        assert state.head == A
        assert states(state) == {A: "active", B: "conflicted", C: "conflicted"}

    before.when(Contest(first_revision=B, second_revision=C)).then(check)


def test_contest_moves_only_what_is_not_conflicted_yet() -> None:
    """LM-42: a second contradiction of a conflicted revision is one more edge and one move."""

    def check(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, RevisionContested)
        assert [move.revision for move in event.facts.moves] == [C]
        assert state.conflicts == {(B, A): 2, (C, B): 4}

    held(CONFLICTED, C).when(Contest(first_revision=C, second_revision=B)).then(check)


def test_contest_with_itself_is_refused() -> None:
    """LM-24: nothing contradicts itself."""
    PAIR.when(Contest(first_revision=A, second_revision=A)).refused("INVALID_INPUT")


@pytest.mark.parametrize("pair", [(A, B), (B, A)])
def test_contest_says_a_thing_once(pair: tuple[str, str]) -> None:
    """The same contradiction, in whichever order, is no second event."""
    CONFLICTED.when(Contest(first_revision=pair[0], second_revision=pair[1])).refused("NO_CHANGE")


def test_contest_with_what_cannot_hold_any_more_is_refused() -> None:
    """LM-26: neither a superseded nor a rejected revision contradicts anything, whichever is named first."""
    superseded = history(remember(A, "one"), correct(A, B, "two"))
    superseded.when(Contest(first_revision=B, second_revision=A)).refused("INVALID_TRANSITION", state="superseded")
    rejected = held(then(CONFLICTED, Reject(revision=A)), C)
    rejected.when(Contest(first_revision=C, second_revision=A)).refused("INVALID_TRANSITION", state="rejected")


def test_contest_of_what_is_not_there_is_refused() -> None:
    """LM-35: an unknown revision is unknown on either side."""
    PAIR.when(Contest(first_revision=A, second_revision=D)).refused("MEMORY_NOT_FOUND")
    PAIR.when(Contest(first_revision=D, second_revision=A)).refused("MEMORY_NOT_FOUND")


# ---------------------------------------------------------------- promote


def test_promote_rejects_the_partner_in_the_same_event() -> None:
    """LM-29: without a head expected, the winner is the head, the other is rejected, and their edge is withdrawn."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, RevisionPromoted)
        assert facts.edges == (Edge("conflicts", B, A, 2),)
        assert [move.revision for move in facts.moves] == [A, B]
        assert (state.head, states(state), state.conflicts) == (B, {A: "rejected", B: "active"}, {})
        assert (facts.standing.head, facts.standing.content_seq) == (B, 1)

    CONFLICTED.when(Promote(revision=B, expected=None)).then(check)


def test_promote_supersedes_the_head_that_was_expected() -> None:
    """LM-30: the counterpart is rejected, the old head superseded by the winner, with an edge."""

    def check(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, RevisionPromoted)
        assert event.facts.edges == (Edge("conflicts", B, A, 2), Edge("supersedes", B, C, None))
        assert states(state) == {A: "rejected", B: "active", C: "superseded"}
        assert (state.head, state.revisions[C].superseded_by, state.revisions[B].supersedes) == (B, (B,), (C,))

    WITH_HEAD.when(Promote(revision=B, expected=C)).then(check)


def test_promote_needs_the_head_to_be_named() -> None:
    """LM-31: a head that was not expected is not replaced."""
    WITH_HEAD.when(Promote(revision=B, expected=None)).refused("EXPECTED_ACTIVE_MISMATCH", head=C)


def test_promote_needs_the_right_head_to_be_named() -> None:
    """LM-32: no head, or another one than was expected."""
    CONFLICTED.when(Promote(revision=B, expected=A)).refused("EXPECTED_ACTIVE_MISMATCH", head=None)
    WITH_HEAD.when(Promote(revision=B, expected=A)).refused("EXPECTED_ACTIVE_MISMATCH", head=C)


def test_promote_leaves_the_partner_of_a_partner_conflicted() -> None:
    """Of A–B–C the promoted A rejects B alone; C has no edge any more, and can still be promoted or rejected."""

    def check(_: Event, state: LineageState) -> None:
        assert states(state) == {A: "active", B: "rejected", C: "conflicted"}
        assert state.conflicts == {}

    THREE.when(Promote(revision=A, expected=None)).then(check)
    then(THREE, Promote(revision=A, expected=None)).when(Promote(revision=C, expected=A)).then(lambda *_: None)


def test_promote_passes_over_a_partner_that_was_withdrawn() -> None:
    """What was forgotten stays forgotten; restored, it is conflicted with nobody."""
    before = then(CONFLICTED, Forget(revision=A), Promote(revision=B, expected=None))
    assert states(before.state) == {A: "forgotten", B: "active"}

    def check(_: Event, state: LineageState) -> None:
        assert (states(state), state.head, state.conflicts) == ({A: "conflicted", B: "active"}, B, {})

    before.when(Restore(revision=A)).then(check)


def test_a_promoted_revision_keeps_its_trust() -> None:
    """Somebody vouched for it before it was contested, and that still holds."""
    before = then(held(history(remember(A, "one"), admit(A)), B), Contest(first_revision=A, second_revision=B))

    def check(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, RevisionPromoted)
        assert (state.revisions[A].values.trust, event.facts.standing.trust) == ("verified", "verified")

    before.when(Promote(revision=A, expected=None)).then(check)


def test_what_a_held_revision_proposed_ends_with_the_conflict() -> None:
    """Promoted or rejected, it waits for nothing any more: the edge `proposes` is withdrawn, once."""
    before = then(held(history(remember(A, "one")), B, proposes=A), Contest(first_revision=A, second_revision=B))
    edges = (Edge("conflicts", B, A, 2), Edge("proposes", B, A, 1))

    def promoted(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, RevisionPromoted)
        assert (event.facts.edges, state.revisions[B].proposes) == (edges, None)

    def rejected(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, RevisionRejected)
        assert (event.facts.edges, state.revisions[B].proposes) == (edges, None)

    before.when(Promote(revision=B, expected=None)).then(promoted)
    before.when(Reject(revision=B)).then(rejected)


# ---------------------------------------------------------------- reject


def test_reject_leaves_a_lone_partner_conflicted() -> None:
    """LM-18: the rejected one's edges are withdrawn; the other waits for somebody to promote it."""

    def check(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, RevisionRejected)
        assert event.facts.edges == (Edge("conflicts", B, A, 2),)
        assert (states(state), state.conflicts) == ({A: "rejected", B: "conflicted"}, {})

    CONFLICTED.when(Reject(revision=A)).then(check)
    then(CONFLICTED, Reject(revision=A)).when(Promote(revision=B, expected=None)).then(lambda *_: None)


def test_reject_of_what_is_held_leaves_the_head() -> None:
    """LM-18: a revision that waited is rejected; what holds goes on holding."""

    def check(event: Event, state: LineageState) -> None:
        assert (state.head, states(state)) == (A, {A: "active", B: "rejected"})

    PAIR.when(Reject(revision=B)).then(check)


def test_reject_of_an_active_revision_names_both_ways() -> None:
    """LM-19, LM-45: what holds is corrected or contested, and the refusal says so."""
    with pytest.raises(CorrigendaError) as caught:
        LINEAGE.decide(PAIR.state, Reject(revision=A))
    assert caught.value.code == "INVALID_INPUT"
    assert "correct" in caught.value.message and "contest" in caught.value.message


# ---------------------------------------------------------------- forgotten, revoked, admitted


def test_forget_does_not_bring_the_predecessor_back() -> None:
    """RC-30: the head is gone, the memory has none, and what it had superseded stays superseded."""
    before = history(remember(A, "one"), correct(A, B, "two"))

    def check(event: Event, state: LineageState) -> None:
        assert (state.head, states(state)) == (None, {A: "superseded", B: "forgotten"})

    before.when(Forget(revision=B)).then(check)


def test_forget_in_the_middle_leaves_the_chain() -> None:
    """RC-31: the forgotten revision keeps its place between its neighbours, and the head stays."""
    before = history(remember(A, "one"), correct(A, B, "two"), correct(B, C, "three"))

    def check(event: Event, state: LineageState) -> None:
        middle = state.revisions[B]
        assert (state.head, middle.supersedes, middle.superseded_by) == (C, (A,), (C,))
        assert state.standing == before.state.standing

    before.when(Forget(revision=B)).then(check)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (history(remember(A, "one")), "active unverified"),
        (history(remember(A, "one"), admit(A)), "active verified"),
        (CONFLICTED, "conflicted unverified"),
        (then(CONFLICTED, Reject(revision=A)), "rejected unverified"),
        (history(remember(A, "one"), Revoke(revision=A)), "active revoked"),
    ],
)
def test_restore_of_the_forgotten_gives_back_what_was(before: Given[Command, LineageState], expected: str) -> None:
    """Whatever state a revision was forgotten in, it returns to just that."""
    back = then(before, Forget(revision=A), Restore(revision=A)).state

    assert f"{back.revisions[A].values.state} {back.revisions[A].values.trust}" == expected
    assert back.standing == before.state.standing


def test_undoing_a_revocation_does_not_undo_a_rejection() -> None:
    """Trust was all that the revocation took, so it is all that comes back."""
    before = then(CONFLICTED, Revoke(revision=A), Promote(revision=B, expected=None))
    assert states(before.state) == {A: "rejected", B: "active"}

    back = then(before, Restore(revision=A)).state

    assert (states(back)[A], back.revisions[A].values.trust, back.head) == ("rejected", "unverified", B)


def test_admit_says_so_in_the_standing() -> None:
    """The head is verified from this event on, its text where it was."""

    def check(event: Event, state: LineageState) -> None:
        assert (state.standing.trust, state.standing.head, state.standing.content_seq) == ("verified", A, 0)

    history(remember(A, "one")).when(admit(A)).then(check)
