"""How a text takes another's place: held and published, replaced, merged, split.

Positions count from 0 in these histories, one event per command.
"""

import msgspec
import pytest

from ledger.memories import (
    FRESH,
    HELD,
    Command,
    Correct,
    LineageState,
    MemoryRemembered,
    Publish,
    Retire,
    RevisionCorrected,
    RevisionPublished,
    RevisionRejected,
    RevisionSuperseded,
    Revoke,
    Supersede,
    last_head,
)
from ledger.memories.rules import allowed
from ledger.message import HEADLESS, Edge, Event, Reason, Values
from tests.histories import (
    SUPERSEDED,
    A,
    B,
    C,
    D,
    Wish,
    forgotten,
    happened,
    held,
    history,
    instead,
    move,
    standing,
)
from tests.ledgers import correct, remember

ONE = history(remember(A, "one"))
TWO = history(remember(A, "one"), correct(A, B, "two"))
WAITING = history(remember(A, "one"), held(B, "two", A))
MERGED = history(remember(A, "one"), Supersede(revision=A, successors=("rev_m", "rev_n")))

# ---------------------------------------------------------------- remember in the place of a head


def test_a_text_takes_the_place_of_the_head_that_it_names() -> None:
    """LM-16: a predecessor that is the head is superseded, in one event, as by a correction."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, RevisionCorrected)
        assert facts.moves == (
            move(A, FRESH, SUPERSEDED, since=0, version=1),
            move(B, None, FRESH, since=None, version=2),
        )
        assert facts.edges == (Edge("supersedes", B, A, None),)
        assert (facts.standing, state.head) == (standing(B, 1), B)

    ONE.when(instead(B, "two", A)).then(check)


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize(
    ("before", "predecessor", "head"),
    [
        (TWO, A, B),
        (ONE, None, A),
        (ONE, "rev_foreign", A),
        (history(remember(A, "one"), Retire(revision=A)), A, None),
        (history(remember(A, "one"), Revoke(revision=A)), A, None),
        (history(), A, None),
    ],
)
def test_a_predecessor_is_the_head_or_nothing_is_stored(
    before: Wish, predecessor: str | None, head: str | None, hold: bool
) -> None:
    """LM-17: what is not the head now is STALE_PREDECESSOR, which names the head; a held text needs it as well."""
    before.when(instead(C, "three", predecessor, held=hold)).refused("STALE_PREDECESSOR", head=head)


@pytest.mark.parametrize("hold", [True, False])
def test_a_text_in_the_place_of_the_same_text_changes_nothing(hold: bool) -> None:
    """RC-25: as for a correction, NO_CHANGE."""
    ONE.when(instead(B, "one", A, held=hold)).refused("NO_CHANGE")


@pytest.mark.parametrize("hold", [True, False])
def test_a_text_in_the_place_of_another_is_of_its_kind(hold: bool) -> None:
    """RC-35: kind and project are the memory's for life."""
    ONE.when(instead(B, "two", A, held=hold, kind="decision")).refused("INVALID_INPUT")


def test_a_memory_that_ended_elsewhere_does_not_begin_anew() -> None:
    """Superseded by revisions of other memories: the refusal names them."""
    MERGED.when(remember(B, "two")).refused("MEMORY_ALREADY_SUPERSEDED", superseded_by=["rev_m", "rev_n"], head=None)
    forgotten(MERGED, A).when(remember(B, "two")).refused("MEMORY_ALREADY_SUPERSEDED")


def test_a_memory_that_was_forgotten_does_not_begin_anew() -> None:
    """RC-10: whoever wants it back restores it."""
    forgotten(ONE, A).when(remember(B, "two")).refused("MEMORY_DELETED", kind="forgotten", revision_id=A)
    forgotten(forgotten(ONE, A), A).when(held(B, "two")).refused("MEMORY_DELETED")


def test_what_was_no_head_does_not_keep_a_memory_from_beginning_anew() -> None:
    """A retired memory goes on, though an older version or a held text of it was forgotten since."""
    older = forgotten(history(remember(A, "one"), correct(A, B, "two"), Retire(revision=B)), A)
    never = forgotten(history(remember(A, "one"), held(B, "two", A), Retire(revision=A)), B)
    for before in (older, never):
        before.when(remember(C, "three")).then(lambda _, state: None)


def test_the_last_head_is_the_one_that_no_other_followed() -> None:
    """A superseded or held revision is not what a headless lineage ended with."""
    ended = history(remember(A, "one"), correct(A, B, "two"), held(C, "three", B), Retire(revision=B)).state
    assert (last_head(ended) or ONE.state.revisions[A]).revision == B
    assert last_head(history(held(A, "one")).state) is None


# ---------------------------------------------------------------- hold and publish


def test_a_held_text_changes_nothing_yet() -> None:
    """LM-16: it is of the memory, in processing, and says whose place it is to take; the head stays."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, MemoryRemembered)
        assert facts.moves == (move(B, None, HELD, since=None, version=2),)
        assert facts.edges == (Edge("proposes", B, A, None),)
        assert facts.standing == standing(A, 0)
        assert (state.head, state.revisions[B].proposes, state.revisions[A].superseded_by) == (A, A, ())

    ONE.when(held(B, "two", A)).then(check)


def test_a_held_text_may_begin_a_memory() -> None:
    """The memory has no head until it is published."""

    def check(event: Event, state: LineageState) -> None:
        assert (state.standing, state.latest) == (HEADLESS, A)

    history().when(held(A, "one")).then(check)


def test_publishing_lets_the_held_text_take_its_place() -> None:
    """The edge `proposes` is withdrawn from where it was stated, `supersedes` is stated, and the head demoted."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, RevisionPublished)
        assert facts.moves == (
            move(A, FRESH, SUPERSEDED, since=0, version=1),
            move(B, HELD, FRESH, since=1, version=2),
        )
        assert facts.edges == (Edge("proposes", B, A, 1), Edge("supersedes", B, A, None))
        assert (facts.standing, state.head) == (standing(B, 1), B)
        assert (state.revisions[B].supersedes, state.revisions[B].proposes) == ((A,), None)
        assert state.revisions[A].superseded_by == (B,)
        assert event.payload == Reason(reason="asked")

    WAITING.when(Publish(revision=B, reason="asked")).then(check)


def test_publishing_the_first_text_of_a_memory() -> None:
    """It takes nobody's place, so no edge is stated."""

    def check(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, RevisionPublished)
        assert (event.facts.edges, state.head) == ((), A)

    history(held(A, "one")).when(Publish(revision=A)).then(check)


@pytest.mark.parametrize(
    "since",
    [correct(A, C, "three"), Retire(revision=A), Revoke(revision=A), Supersede(revision=A, successors=("rev_m",))],
)
def test_a_held_text_whose_head_went_stays_held(since: Command) -> None:
    """LM-17: the head that it was held to replace is not the head now: STALE_PREDECESSOR."""
    history(remember(A, "one"), held(B, "two", A), since).when(Publish(revision=B)).refused("STALE_PREDECESSOR")


def test_of_two_held_texts_one_is_published() -> None:
    """The second finds another head than the one that it was held to replace."""
    both = history(remember(A, "one"), held(B, "two", A), held(C, "three", A), Publish(revision=C))
    both.when(Publish(revision=B)).refused("STALE_PREDECESSOR", head=C)


def test_a_held_beginning_is_overtaken_by_a_head() -> None:
    """What was held to begin the memory does not replace who did."""
    history(held(A, "one"), remember(B, "two")).when(Publish(revision=A)).refused("STALE_PREDECESSOR", head=B)


def test_a_text_held_for_a_memory_that_was_forgotten_since() -> None:
    """Nor does it bring back what was withdrawn from view."""
    before = history(held(A, "one"), remember(B, "two"))
    forgotten(before, B).when(Publish(revision=A)).refused("MEMORY_DELETED", revision_id=B)


@pytest.mark.parametrize(
    ("before", "revision", "code"),
    [
        (ONE, A, "INVALID_TRANSITION"),
        (TWO, A, "MEMORY_ALREADY_SUPERSEDED"),
        (forgotten(WAITING, B), B, "MEMORY_DELETED"),
        (history(remember(A, "one"), held(B, "two", A), Revoke(revision=B)), B, "MEMORY_REVOKED"),
        (ONE, C, "MEMORY_NOT_FOUND"),
    ],
)
def test_only_a_held_text_is_published(before: Wish, revision: str, code: str) -> None:
    """The refusal says what became of the others."""
    before.when(Publish(revision=revision)).refused(code)


def test_a_rejected_text_never_becomes_active() -> None:
    """LM-22: whichever of two reviewers comes second is refused."""
    moves = (move(B, HELD, Values("rejected", "unverified", "verified"), since=1, version=2),)
    edges = (Edge("proposes", B, A, 1),)
    rejected = happened(WAITING, RevisionRejected(edges=edges, moves=moves, standing=WAITING.state.standing))

    rejected.when(Publish(revision=B)).refused("INVALID_TRANSITION", state="rejected")
    assert (rejected.state.head, rejected.state.revisions[B].proposes) == (A, None)


def test_a_held_text_is_no_head() -> None:
    """RC-42: it cannot be corrected or superseded, and the refusal lists what can be done."""
    for wish in (correct(B, C, "three"), Supersede(revision=B, successors=("rev_m",))):
        WAITING.when(wish).refused("INVALID_TRANSITION", state="processing")
    assert "publish" in allowed(WAITING.state.revisions[B])


# ---------------------------------------------------------------- merge and split


def test_a_merge_and_split_state_every_edge_of_the_lineage() -> None:
    """RC-43: the first successor over all predecessors, the further ones over this lineage's own."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, RevisionCorrected)
        assert facts.edges == (
            Edge("supersedes", B, A, None),
            Edge("supersedes", B, "rev_x", None),
            Edge("supersedes", "rev_n", A, None),
        )
        assert [item.revision for item in facts.moves] == [A, B]
        assert state.revisions[A].superseded_by == (B, "rev_n")
        assert state.revisions[B].supersedes == (A, "rev_x")

    wish = Correct(
        revision=A, successor=B, content="two", origin="human", text=remember(B, "two").text,
        merged=("rev_x",), split=("rev_n",),
    )  # fmt: skip
    ONE.when(wish).then(check)


def test_a_merge_may_keep_the_text() -> None:
    """Another memory ends in it, so something changed all the same."""

    def check(event: Event, state: LineageState) -> None:
        assert state.head == B
        assert state.revisions[B].content == state.revisions[A].content
        assert state.revisions[B].supersedes == (A, "rev_x")

    wish = msgspec.structs.replace(correct(A, B, "one"), merged=("rev_x",))
    ONE.when(wish).then(check)


def test_a_further_successor_begins_a_memory_over_all_predecessors() -> None:
    """RC-43: its first event names them, though they are of other streams."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, MemoryRemembered)
        assert facts.edges == (Edge("supersedes", A, "rev_x", None), Edge("supersedes", A, "rev_y", None))
        assert state.revisions[A].supersedes == ("rev_x", "rev_y")

    history().when(msgspec.structs.replace(remember(A, "one"), supersedes=("rev_x", "rev_y"))).then(check)


def test_a_further_predecessor_ends_its_memory() -> None:
    """RC-43: the revision knows all its successors, in order, and the lineage has no head."""

    def check(event: Event, state: LineageState) -> None:
        facts = event.facts
        assert isinstance(facts, RevisionSuperseded)
        assert facts.moves == (move(A, FRESH, SUPERSEDED, since=0, version=1),)
        assert facts.edges == (Edge("supersedes", "rev_m", A, None), Edge("supersedes", "rev_n", A, None))
        assert (facts.standing, event.payload) == (HEADLESS, Reason(reason="one thing"))
        assert state.revisions[A].superseded_by == ("rev_m", "rev_n")

    ONE.when(Supersede(revision=A, successors=("rev_m", "rev_n"), reason="one thing")).then(check)


@pytest.mark.parametrize(
    ("before", "revision", "code"),
    [
        (TWO, A, "MEMORY_ALREADY_SUPERSEDED"),
        (MERGED, A, "MEMORY_ALREADY_SUPERSEDED"),
        (forgotten(ONE, A), A, "MEMORY_DELETED"),
        (history(remember(A, "one"), Revoke(revision=A)), A, "MEMORY_REVOKED"),
    ],
)
def test_only_heads_are_superseded_and_the_refusal_names_the_stale_one(before: Wish, revision: str, code: str) -> None:
    """RC-43, RC-09: of several predecessors the caller learns which one it was."""
    before.when(Supersede(revision=revision, successors=("rev_m",))).refused(code, revision_id=revision)
    before.when(correct(revision, D, "four")).refused(code, revision_id=revision)
