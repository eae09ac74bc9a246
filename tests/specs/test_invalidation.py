"""What a correction may do to a learning, as a lineage sees it."""

import pytest

from ledger.memories import (
    LINEAGE,
    Command,
    Contradiction,
    Invalidate,
    LearningInvalidated,
    LineageState,
    Restore,
    Retire,
    RevisionAdmitted,
    Revoke,
)
from ledger.message import HEADLESS, Event, Move, Standing, Values
from tests.ledgers import correct, remember
from tests.specifications import Given, given

A, B, CORRECTION = "rev_a", "rev_b", "cor_01JZ8Q0000000000000000000C"
WHY = Contradiction(correction_hash="b3:c", learning_hash="b3:l", reason=None, similarity="0.912345")
INVALIDATE = Invalidate(revision=A, correction=CORRECTION, contradiction=WHY)


def history(*commands: Command) -> Given[Command, LineageState]:
    """Return a learning's history, after further commands."""
    return given(LINEAGE, remember(A, "holds are slow", kind="learning"), *commands)


def test_an_unverified_learning_is_retired_and_says_by_what() -> None:
    """AG-33, AG-54: the event names the correction and how near it was, and leaves the memory headless."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, LearningInvalidated)
        assert (facts.correction, event.payload, facts.standing) == (CORRECTION, WHY, HEADLESS)
        assert [(one.before, one.after.state) for one in facts.moves] == [
            (Values("active", "unverified", "verified"), "retired")
        ]
        assert state.revisions[A].withdrawals[-1].act == "invalidate"

    history().when(INVALIDATE).then(check)


def test_what_was_invalidated_can_be_restored() -> None:
    """AG-33: the invalidation is reversible: state and trust are again what they were."""

    def check(event: Event, state: LineageState) -> None:
        assert (state.head, state.revisions[A].values) == (A, Values("active", "unverified", "verified"))

    history(INVALIDATE).when(Restore(revision=A)).then(check)


@pytest.mark.parametrize(
    ("before", "code"),
    [
        ([INVALIDATE], "MEMORY_DELETED"),
        ([Retire(revision=A)], "MEMORY_DELETED"),
        ([Revoke(revision=A)], "MEMORY_REVOKED"),
        ([correct(A, B, "holds are quick")], "MEMORY_ALREADY_SUPERSEDED"),
    ],
)
def test_what_is_no_head_any_more_is_left_alone(before: list[Command], code: str) -> None:
    """A learning that was withdrawn or corrected meanwhile is not touched."""
    history(*before).when(INVALIDATE).refused(code)


def test_only_a_learning_can_be_invalidated() -> None:
    """AG-34: a fact is not, however near it is."""
    given(LINEAGE, remember(A, "holds are slow")).when(INVALIDATE).refused("INVALID_TRANSITION", state="active")


def test_a_verified_learning_is_left_alone() -> None:
    """AG-34: given a learning that somebody vouched for, it is not invalidated, however near it is."""
    before = Values("active", "unverified", "verified")
    after = Values("active", "verified", "verified")
    admitted = RevisionAdmitted(
        moves=(Move(after=after, before=before, revision=A, since=0, version=1),),
        standing=Standing(content_seq=0, floor="verified", head=A, meta_seq=0, trust="verified"),
    )
    known = Given(LINEAGE, (*history().history, Event(facts=admitted, payload=None, position=1)))
    known.when(INVALIDATE).refused("INVALID_TRANSITION", state="active")
