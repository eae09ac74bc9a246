"""How metadata is patched. Positions count from 0 in these histories, one event per command."""

import pytest

from ledger.memories import (
    LINEAGE,
    LineageState,
    MetadataPatched,
    Publish,
    Restore,
    Retire,
    Revoke,
)
from ledger.message import Event
from tests.histories import A, B, Wish, forgotten, held, history, patch, standing
from tests.ledgers import correct, remember

ONE = history(remember(A, "one"))
TWO = history(remember(A, "one"), correct(A, B, "two"))
WAITING = history(remember(A, "one"), held(B, "two", A))


def test_a_patch_moves_nothing_and_becomes_the_metadata() -> None:
    """RC-28: no revision moves; the standing says where the metadata is now, and the event what it was."""

    def check(event: Event, state: LineageState) -> None:
        assert event.facts == MetadataPatched(revision=A, since=0, standing=standing(A, 0, 1))
        assert event.payload == patch(A, "t").patch
        assert (state.revisions[A].meta_seq, state.revisions[A].content_seq) == (1, 0)
        assert state.revisions[A].since == 0

    ONE.when(patch(A, "t")).then(check)


def test_a_second_patch_replaces_the_first() -> None:
    """`since` is where the metadata that it replaces came from."""

    def check(event: Event, state: LineageState) -> None:
        assert isinstance(event.facts, MetadataPatched)
        assert (event.facts.since, event.facts.standing) == (1, standing(A, 0, 2))

    history(remember(A, "one"), patch(A, "t")).when(patch(A, "u")).then(check)


def test_metadata_survives_what_happens_to_the_revision() -> None:
    """A head that comes back has the metadata that it had."""

    def check(_: Event, state: LineageState) -> None:
        assert state.standing == standing(A, 0, 1)

    history(remember(A, "one"), patch(A, "t"), Retire(revision=A)).when(Restore(revision=A)).then(check)


def test_a_published_text_has_the_metadata_that_was_mended_while_it_was_held() -> None:
    """A held text can be patched, and the head's standing stays as it was."""

    def patched(event: Event, state: LineageState) -> None:
        assert (state.standing, state.revisions[B].meta_seq) == (standing(A, 0), 2)

    def published(_: Event, state: LineageState) -> None:
        assert state.standing == standing(B, 1, 2)

    WAITING.when(patch(B, "t")).then(patched)
    history(remember(A, "one"), held(B, "two", A), patch(B, "t")).when(Publish(revision=B)).then(published)


def test_equal_metadata_makes_no_event() -> None:
    """RC-25: there is nothing to record."""
    assert LINEAGE.decide(ONE.state, patch(A)) == ()


@pytest.mark.parametrize(
    ("before", "revision", "code"),
    [
        (TWO, A, "MEMORY_ALREADY_SUPERSEDED"),
        (history(remember(A, "one"), Retire(revision=A)), A, "MEMORY_DELETED"),
        (forgotten(ONE, A), A, "MEMORY_DELETED"),
        (history(remember(A, "one"), Revoke(revision=A)), A, "MEMORY_REVOKED"),
        (ONE, B, "MEMORY_NOT_FOUND"),
    ],
)
def test_what_holds_no_more_is_not_patched(before: Wish, revision: str, code: str) -> None:
    """RC-29: as a correction is refused, and so is a patch that would change nothing."""
    before.when(patch(revision, "t")).refused(code)
    before.when(patch(revision)).refused(code)
