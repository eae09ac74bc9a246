"""What a memory allows, sentence by sentence. Positions count from 0 in these histories, one event per command."""

from typing import Any

import pytest

from ledger.governance import NameAssigned
from ledger.memories import (
    FRESH,
    LINEAGE,
    Command,
    LineageLinked,
    LineageState,
    LineageUnlinked,
    MemoryRemembered,
    MemoryRestored,
    MemoryRetired,
    Restore,
    Retire,
    RevisionCorrected,
    RevisionRevoked,
    Revoke,
    StateLink,
    WithdrawLink,
)
from ledger.message import HEADLESS, Edge, Event, Move, Reason, ScopeIds, Standing, Values
from tests.ledgers import SCOPE, correct, remember
from tests.specifications import Given, given

A, B, C = "rev_a", "rev_b", "rev_c"
THIS, THAT = "mem_this", "mem_that"
SUPERSEDED, RETIRED = Values("superseded", "unverified", "verified"), Values("retired", "unverified", "verified")
REVOKED = Values("active", "revoked", "verified")
SUPERSEDED_REVOKED = Values("superseded", "revoked", "verified")
LINK = StateLink(newer=THIS, older=THAT, role="newer", reason="it says more")
UNLINK = WithdrawLink(newer=THIS, older=THAT, role="newer", reason="it does not")


def history(*commands: Command) -> Given[Command, LineageState]:
    """Return the history that commands make of a lineage."""
    return given(LINEAGE, *commands)


def standing(head: str, position: int) -> Standing:
    """Return the standing of a head whose text came at a position."""
    return Standing(content_seq=position, floor="verified", head=head, meta_seq=position, trust="unverified")


def move(revision: str, before: Values | None, after: Values, *, since: int | None, version: int) -> Move:
    """Return one revision's move."""
    return Move(after=after, before=before, revision=revision, since=since, version=version)


NEW = history()
ONE = history(remember(A, "one"))
TWO = history(remember(A, "one"), correct(A, B, "two"))
GONE = history(remember(A, "one"), Retire(revision=A))
DISTRUSTED = history(remember(A, "one"), Revoke(revision=A))


# ---------------------------------------------------------------- remember


def test_remember_begins_a_lineage() -> None:
    """The first revision is active, unverified and the head."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, MemoryRemembered)
        assert facts.moves == (move(A, None, FRESH, since=None, version=1),)
        assert (facts.edges, facts.standing) == ((), standing(A, 0))
        assert (state.head, state.latest, state.version) == (A, A, 1)

    NEW.when(remember(A, "one")).then(check)


def test_remember_does_not_replace_a_head() -> None:
    """A memory with a head is corrected, not remembered again."""
    ONE.when(remember(B, "two")).refused("STALE_PREDECESSOR", head=A)


@pytest.mark.parametrize("headless", [GONE, DISTRUSTED])
def test_remember_gives_a_headless_lineage_a_new_head(headless: Given[Command, LineageState]) -> None:
    """Versions go on, and nothing is superseded: what was withdrawn stays withdrawn."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, MemoryRemembered)
        assert facts.moves == (move(B, None, FRESH, since=None, version=2),)
        assert (facts.edges, facts.standing) == ((), standing(B, 2))
        assert state.revisions[A] == headless.state.revisions[A]
        assert state.head == B

    headless.when(remember(B, "two")).then(check)


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "preference"},
        {"scope": ScopeIds(agent=None, project="prj_x", session=None, task_family=None, user=None)},
    ],
)
def test_remember_keeps_kind_and_project(other: dict[str, Any]) -> None:  # Any: one field of the wish
    """A memory is of one kind and one project for life, heads or not."""
    GONE.when(remember(B, "two", **other)).refused("INVALID_INPUT")


# ---------------------------------------------------------------- correct


def test_correct_supersedes_the_head_in_its_own_lineage() -> None:
    """One event demotes the old revision, brings in the new one, and states the edge between them."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, RevisionCorrected)
        assert facts.moves == (
            move(A, FRESH, SUPERSEDED, since=0, version=1),
            move(B, None, FRESH, since=None, version=2),
        )
        assert facts.edges == (Edge("supersedes", B, A, None),)
        assert facts.standing == standing(B, 1)
        assert (facts.kind, facts.scope, facts.visibility) == ("fact", SCOPE, "project")
        assert state.revisions[A].superseded_by == (B,)
        assert state.revisions[B].supersedes == (A,)

    ONE.when(correct(A, B, "two")).then(check)


def test_correct_names_the_position_at_which_the_old_values_began() -> None:
    """`since` of a demotion is where the revision last moved, not where it was born."""
    restored = history(remember(A, "one"), Retire(revision=A), Restore(revision=A))

    def check(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, RevisionCorrected)
        assert event.facts.moves[0].since == 2

    restored.when(correct(A, B, "two")).then(check)


def test_correct_with_the_same_content_changes_nothing() -> None:
    """A correction has to say something else."""
    ONE.when(correct(A, B, "one")).refused("NO_CHANGE")


def test_correct_refuses_what_has_been_superseded() -> None:
    """The refusal names the successor and the head, so that the caller can go on."""
    TWO.when(correct(A, C, "three")).refused("MEMORY_ALREADY_SUPERSEDED", superseded_by=[B], head=B)


def test_correct_refuses_what_has_been_retired() -> None:
    """Withdrawn knowledge is restored or remembered anew, not corrected."""
    GONE.when(correct(A, B, "two")).refused("MEMORY_DELETED", kind="retired")


def test_correct_refuses_what_has_been_revoked() -> None:
    """A revoked revision is no head."""
    DISTRUSTED.when(correct(A, B, "two")).refused("MEMORY_REVOKED")


def test_correct_refuses_what_is_not_there() -> None:
    """A revision of another memory is as unknown as none."""
    ONE.when(correct(C, B, "two")).refused("MEMORY_NOT_FOUND")


# ---------------------------------------------------------------- retire


def test_retire_leaves_the_lineage_headless() -> None:
    """The head is withdrawn, and says since when it had stood."""

    def check(event: Event, state: LineageState) -> None:
        assert event.facts == MemoryRetired(
            cause="person", moves=(move(B, FRESH, RETIRED, since=1, version=2),), standing=HEADLESS
        )
        assert event.payload == Reason(reason="moved on")
        assert (state.head, state.latest) == (None, B)

    TWO.when(Retire(revision=B, reason="moved on")).then(check)


@pytest.mark.parametrize(
    ("before", "revision", "code"),
    [
        (TWO, A, "MEMORY_ALREADY_SUPERSEDED"),
        (GONE, A, "MEMORY_DELETED"),
        (DISTRUSTED, A, "MEMORY_REVOKED"),
        (ONE, C, "MEMORY_NOT_FOUND"),
    ],
)
def test_retire_is_for_heads_alone(before: Given[Command, LineageState], revision: str, code: str) -> None:
    """Whatever is no head any more is refused with what became of it."""
    before.when(Retire(revision=revision)).refused(code)


# ---------------------------------------------------------------- revoke


def test_revoke_of_the_head_leaves_the_lineage_headless() -> None:
    """Trust goes, the state stays."""

    def check(event: Event, state: LineageState) -> None:
        assert event.facts == RevisionRevoked(moves=(move(A, FRESH, REVOKED, since=0, version=1),), standing=HEADLESS)
        assert (state.head, state.revisions[A].values) == (None, REVOKED)

    ONE.when(Revoke(revision=A)).then(check)


def test_revoke_of_a_superseded_revision_leaves_the_head() -> None:
    """What is not the head loses its trust for those who look back."""

    def check(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, RevisionRevoked)
        assert event.facts.moves == (move(A, SUPERSEDED, SUPERSEDED_REVOKED, since=1, version=1),)
        assert event.facts.standing == standing(B, 1)
        assert state.head == B

    TWO.when(Revoke(revision=A)).then(check)


def test_revoke_of_a_retired_revision() -> None:
    """State and trust are two axes: what is retired can still be revoked."""

    def check(_: Event, state: LineageState) -> None:
        assert state.revisions[A].values == Values("retired", "revoked", "verified")

    GONE.when(Revoke(revision=A)).then(check)


def test_revoke_twice_is_refused() -> None:
    """There is no more trust to withdraw."""
    DISTRUSTED.when(Revoke(revision=A)).refused("MEMORY_REVOKED")


def test_revoke_refuses_what_is_not_there() -> None:
    """A revision of another memory is as unknown as none."""
    NEW.when(Revoke(revision=A)).refused("MEMORY_NOT_FOUND")


# ---------------------------------------------------------------- restore


@pytest.mark.parametrize("withdrawn", [GONE, DISTRUSTED])
def test_restore_brings_the_head_back(withdrawn: Given[Command, LineageState]) -> None:
    """State and trust return to what they were; the text is still where it was first written."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, MemoryRestored)
        assert (facts.undoes, facts.standing) == (1, standing(A, 0))
        (back,) = facts.moves
        assert (back.before, back.after, back.since) == (withdrawn.state.revisions[A].values, FRESH, 1)
        assert state.revisions[A].withdrawals == ()

    withdrawn.when(Restore(revision=A)).then(check)


def test_restore_undoes_the_last_withdrawal_first() -> None:
    """Retired, then revoked: the first restore gives trust back, and only the second one the head."""
    both = history(remember(A, "one"), Retire(revision=A), Revoke(revision=A))

    def once(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, MemoryRestored)
        assert (event.facts.undoes, event.facts.standing) == (2, HEADLESS)
        assert state.revisions[A].values == RETIRED

    def twice(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, MemoryRestored)
        assert (event.facts.undoes, state.head) == (1, A)

    both.when(Restore(revision=A)).then(once)
    history(remember(A, "one"), Retire(revision=A), Revoke(revision=A), Restore(revision=A)).when(
        Restore(revision=A)
    ).then(twice)


def test_restore_of_a_superseded_revision_leaves_the_head() -> None:
    """It gets its trust back, not its place."""
    before = history(remember(A, "one"), correct(A, B, "two"), Revoke(revision=A))

    def check(_: Event, state: LineageState) -> None:
        assert (state.revisions[A].values, state.head) == (SUPERSEDED, B)

    before.when(Restore(revision=A)).then(check)


def test_restore_never_makes_a_second_head() -> None:
    """Somebody else has become the head meanwhile."""
    before = history(remember(A, "one"), Retire(revision=A), remember(B, "two"))
    before.when(Restore(revision=A)).refused("EXPECTED_ACTIVE_MISMATCH", head=B)


def test_restore_needs_a_withdrawal() -> None:
    """The refusal lists what the revision does allow."""
    acts = ["correct", "supersede", "patch", "retire", "contest", "forget", "admit", "revoke"]
    ONE.when(Restore(revision=A)).refused("INVALID_TRANSITION", state="active", allowed=acts)
    TWO.when(Restore(revision=A)).refused("INVALID_TRANSITION", state="superseded", allowed=["forget", "revoke"])


def test_restore_refuses_what_is_not_there() -> None:
    """A revision of another memory is as unknown as none."""
    NEW.when(Restore(revision=A)).refused("MEMORY_NOT_FOUND")


# ---------------------------------------------------------------- links


def test_a_link_touches_no_revision() -> None:
    """That one lineage supersedes another is a statement beside their states."""

    def check(event: Event, state: LineageState) -> None:
        assert event.facts == LineageLinked(
            edges=(Edge("supersedes", THIS, THAT, None),), role="newer", standing=standing(A, 0)
        )
        assert state.revisions == ONE.state.revisions
        assert state.links == {(THIS, THAT): 1}

    ONE.when(LINK).then(check)


def test_a_link_may_be_stated_of_a_headless_lineage() -> None:
    """It stays headless."""

    def check(event: Event, state: LineageState) -> None:
        assert state.standing == HEADLESS

    GONE.when(LINK).then(check)


def test_a_link_is_stated_once() -> None:
    """A second time changes nothing; the other way round is another link."""
    linked = history(remember(A, "one"), LINK)
    linked.when(LINK).refused("NO_CHANGE")
    linked.when(StateLink(newer=THAT, older=THIS, role="older")).then(lambda _, state: None)


def test_a_link_is_withdrawn_with_the_position_that_stated_it() -> None:
    """So that the interval in which it held can be read from one event."""

    def check(event: Event, state: LineageState) -> None:
        assert event.facts == LineageUnlinked(
            edges=(Edge("supersedes", THIS, THAT, 1),), role="newer", standing=standing(B, 2)
        )
        assert state.links == {}

    history(remember(A, "one"), LINK, correct(A, B, "two")).when(UNLINK).then(check)


def test_a_link_that_is_not_stated_cannot_be_withdrawn() -> None:
    """Nor can it be withdrawn twice."""
    ONE.when(UNLINK).refused("MEMORY_NOT_FOUND")
    history(remember(A, "one"), LINK, UNLINK).when(UNLINK).refused("MEMORY_NOT_FOUND")


def test_a_withdrawn_link_can_be_stated_again() -> None:
    """With a new beginning."""

    def check(_: Event, state: LineageState) -> None:
        assert state.links == {(THIS, THAT): 3}

    history(remember(A, "one"), LINK, UNLINK).when(LINK).then(check)


# ---------------------------------------------------------------- reasons, strangers


@pytest.mark.parametrize(
    ("before", "command"),
    [
        (ONE, Retire(revision=A, reason="why")),
        (ONE, Revoke(revision=A, reason="why")),
        (GONE, Restore(revision=A, reason="why")),
        (ONE, StateLink(newer=THIS, older=THAT, role="newer", reason="why")),
        (history(remember(A, "one"), LINK), WithdrawLink(newer=THIS, older=THAT, role="newer", reason="why")),
    ],
)
def test_a_reason_stands_in_the_payload(before: Given[Command, LineageState], command: Command) -> None:
    """It is text, and text can be erased."""

    def check(event: Event, _: LineageState) -> None:
        assert event.payload == Reason(reason="why")

    before.when(command).then(check)


def test_an_event_of_another_aggregate_is_a_mistake_in_the_program() -> None:
    """It is never folded in silently."""
    foreign = Event(facts=NameAssigned(id="prj_x", kind="project", parent="led_x"), payload=None, position=0)
    with pytest.raises(TypeError, match="NameAssigned"):
        LINEAGE.evolve(LineageState(), foreign)
    with pytest.raises(TypeError, match="Command"):
        LINEAGE.decide(LineageState(), Command())
