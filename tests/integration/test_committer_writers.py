"""Other writers beside the committer: other processes, whoever holds the head, and more callers than it takes."""

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger import storing
from ledger.errors import UnavailableError
from ledger.limits import ENVELOPE_BYTES_MAX, QUEUE_MAX
from ledger.sealing import Draft
from tests.appends import (
    DEADLINE_S,
    Appends,
    head_held,
    positions,
    replayed,
    results,
    transactions,
    waiter,
    whole,
)
from tests.house import last_position, refused


def test_what_other_processes_stored_is_followed_under_the_lock(appends: Appends, ledger_url: str, home: Path) -> None:
    """XC-08: given appends of another process, when this one appends next, it links to theirs and knows their keys."""
    with whole(ledger_url, home) as other:
        for number in range(4):
            other.store("s", key=f"theirs {number}")
        assert appends.store("s") == [5]
        assert other.store("s") == [6]
        assert replayed(appends.submit("s", key="theirs 2").result(DEADLINE_S)) == 3
    assert appends.ledger.stream("name_s")[-1].entry.position == 6


def test_writers_that_meet_take_turns(ledger_url: str, home: Path, no_settings: None) -> None:
    """LM-42, XC-01: given two processes with a lot to store at once, then each append is stored, without a gap."""
    with whole(ledger_url, home) as one, whole(ledger_url, home) as other:
        futures = [by.submit("s", "t") for _ in range(100) for by in (one, other)]
        found = [position for outcome in results(futures) for position in positions(outcome)]

    assert sorted(found) == [*range(1, 401)]


@pytest.mark.parametrize("behind", [6, 7, 8, 30])
def test_a_gap_of_more_than_a_page_is_followed_before_the_lock(
    appends: Appends, ledger_url: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: int
) -> None:
    """Given more entries of others than are followed under the lock, they are followed first, and the append stored."""
    monkeypatch.setattr(storing, "GAP_MAX", 7)
    monkeypatch.setenv("CORRIGENDA_ANCHOR", str(tmp_path / "elsewhere"))
    with whole(ledger_url, home) as other:
        for _ in range(behind):
            other.store("s")
    monkeypatch.delenv("CORRIGENDA_ANCHOR")

    assert appends.store("s") == [behind + 1]
    assert appends.store("s") == [behind + 2]


def test_who_holds_the_head_comes_between_groups(appends: Appends, ledger_url: str) -> None:
    """Given a page that is decided on the locked head, it is stored on it, and what is submitted meanwhile after it."""
    with appends.committer.hold() as held:
        waiting = appends.submit("s")
        stored = held.store([appends.draft("s"), appends.draft("s", "t")])
        assert not waiting.done()

    assert [[item.entry.position for item in one] for one in stored] == [[1], [2, 3]]
    assert positions(waiting.result(DEADLINE_S)) == [4]
    assert transactions(ledger_url) == [[1, 2, 3], [4]]


def test_a_held_page_that_fails_leaves_nothing(appends: Appends, ledger_url: str) -> None:
    """XC-01, RC-27: given a failure after a page was stored, before its end, nothing of it is there."""
    with pytest.raises(RuntimeError), appends.committer.hold() as held:
        held.store([appends.draft("s")])
        raise RuntimeError("changed my mind")

    assert last_position(ledger_url) == 0
    assert appends.store("s") == [1]


def test_the_last_page_of_a_hold_is_committed_with_it(appends: Appends, ledger_url: str) -> None:
    """XC-01: given a page that is the last thing a block does, what the block raises behind it undoes nothing."""
    drafts = [appends.draft(f"s{number % 7}") for number in range(storing.PART_APPENDS + 10)]
    with pytest.raises(RuntimeError), appends.committer.hold() as held:
        held.store(drafts, last=True)
        assert last_position(ledger_url) == len(drafts)
        assert appends.ledger.walk.head.size == len(drafts) + 1
        raise RuntimeError("too late")

    assert transactions(ledger_url) == [[*range(1, len(drafts) + 1)]]
    assert appends.store("s0") == [len(drafts) + 1]


def test_a_hold_whose_last_page_is_empty_lets_go_of_the_head(appends: Appends, ledger_url: str) -> None:
    """Given a last page of nothing, nothing is stored, and the next append is."""
    with appends.committer.hold() as held:
        assert held.store([], last=True) == []

    assert last_position(ledger_url) == 0
    assert appends.store("s") == [1]


def refusal_of(appends: Appends, draft: Draft) -> tuple[str, int | None, bool]:
    """Submit an append that is refused at once, and return what the refusal says to programs."""
    try:
        appends.committer.submit(draft)
    except UnavailableError as error:
        return error.code, error.retry_after_ms, error.retriable
    raise AssertionError("it was taken")


def test_a_held_page_of_several_parts_is_one_transaction(appends: Appends, ledger_url: str) -> None:
    """XC-01: given a page of more appends than go in one part, then each follows the one before, in one commit."""
    drafts = [appends.draft(f"s{number % 7}") for number in range(2 * storing.PART_APPENDS + 10)]
    with appends.committer.hold() as held:
        stored = held.store(drafts)

    last = len(drafts)
    assert [item.entry.position for group in stored for item in group] == [*range(1, last + 1)]
    assert transactions(ledger_url) == [[*range(1, last + 1)]]
    assert appends.store("s0") == [last + 1]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("bad", [0, storing.PART_APPENDS - 1, storing.PART_APPENDS, 2 * storing.PART_APPENDS])
def test_a_held_page_with_one_that_is_too_large_leaves_nothing(
    appends: Appends, ledger_url: str, bad: int, *, last: bool
) -> None:
    """Given a page in whose parts one envelope is too large, then all of it is refused, and the next is stored."""
    drafts = [
        appends.draft("s", kind="k" * ENVELOPE_BYTES_MAX if number == bad else "user")
        for number in range(2 * storing.PART_APPENDS + 1)
    ]
    with refused("PAYLOAD_TOO_LARGE"), appends.committer.hold() as held:
        held.store(drafts, last=last)

    assert last_position(ledger_url) == 0
    assert appends.store("s") == [1]


@pytest.mark.parametrize("last", [False, True])
def test_a_page_with_more_to_come_is_anchored_with_the_next(appends: Appends, *, last: bool) -> None:
    """Given pages with more to come, the anchor has each once the next is committed, and the last once it is asked."""
    anchor = appends.ledger.walk.anchor
    reached: list[int] = []
    for _ in range(3):
        with appends.committer.hold(more=True) as held:
            held.store([appends.draft("s"), appends.draft("t")], last=last)
        reached.append(anchor.state().size)
    assert (reached, appends.ledger.walk.head.size) == ([1, 3, 5], 7)

    appends.committer.settle()
    assert anchor.state().size == 7


def test_an_append_behind_a_page_is_answered_when_the_anchor_holds_both(appends: Appends) -> None:
    """Given a page with more to come, when another append is answered instead, then the anchor holds the page, too."""
    with appends.committer.hold(more=True) as held:
        held.store([appends.draft("s")])
    assert appends.store("s") == [2]
    assert appends.ledger.walk.anchor.state().size == 3


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("made", [0, 1, storing.PART_APPENDS, 2 * storing.PART_APPENDS + 1])
def test_a_page_that_cannot_be_decided_to_its_end_leaves_nothing(
    appends: Appends, ledger_url: str, made: int, *, last: bool
) -> None:
    """XC-01: given appends that are decided while others are stored, when that fails, nothing is there."""

    def decided() -> Iterator[Draft]:
        for _ in range(made):
            yield appends.draft("s")
        raise RuntimeError("cannot decide")

    with pytest.raises(RuntimeError, match="cannot decide"), appends.committer.hold() as held:
        held.store(decided(), last=last)

    assert last_position(ledger_url) == 0
    assert appends.store("s") == [1]


def test_a_full_queue_refuses_and_takes_no_memory(ledger_url: str, home: Path, no_settings: None) -> None:
    """RC-21: given 4,096 that wait, 100,000 further ones are QUEUE_FULL, in ≤ 20 MB; what was taken is stored."""
    with whole(ledger_url, home) as appends:
        with head_held(ledger_url):
            futures = [appends.submit("s")]
            waiter(ledger_url)
            futures += [appends.submit("s") for _ in range(QUEUE_MAX)]
            draft = appends.draft("s")
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()
            refusals = Counter(refusal_of(appends, draft) for _ in range(100_000))
            grown = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
        assert refusals == {("QUEUE_FULL", 100, True): 100_000}
        assert grown <= 20_000_000
        assert len({position for outcome in results(futures) for position in positions(outcome)}) == QUEUE_MAX + 1
        assert appends.store("s") == [QUEUE_MAX + 2]
