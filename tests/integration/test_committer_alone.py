"""Appends that are waited for: who finds nobody else at it stores it in their own thread, who does not in a group."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger.waiting import Outcome
from tests.appends import (
    DEADLINE_S,
    Appends,
    conflicted,
    head_held,
    on_stream,
    positions,
    replayed,
    transactions,
    whole,
)
from tests.house import refused


def append(appends: Appends, stream: str, *, patience_s: float = 60.0, **words: object) -> Outcome:
    """Append to a stream and wait."""
    draft = appends.draft(stream, **words)  # pyright: ignore[reportArgumentType] - as they come
    return appends.committer.append(draft, patience_s)


def threads() -> list[str]:
    """Return the names of the committers' threads that run."""
    return [one.name for one in threading.enumerate() if one.name == "committer"]


def test_who_is_alone_needs_no_other_thread(ledger_url: str, home: Path, no_settings: None) -> None:
    """Given one caller, when it appends again and again, each is a transaction, and no thread was ever begun for it."""
    with whole(ledger_url, home) as appends:
        appends.ledger.catch_up()
        stored = [positions(append(appends, "s", reads={"s": number})) for number in range(3)]
        assert threads() == []

    assert stored == [[1], [2], [3]]
    assert transactions(ledger_url) == stored


def test_who_is_alone_is_answered_as_in_a_group(appends: Appends, ledger_url: str) -> None:
    """RC-13, RC-14: given a key that was used and a version that has passed, then a caller alone is told so."""
    done = positions(append(appends, "s", key="k"))

    assert [replayed(append(appends, "s", key="k"))] == done
    assert conflicted(append(appends, "s", reads={"s": 0})) == "s"
    assert transactions(ledger_url) == [done]


def test_who_is_not_alone_shares_a_commit(appends: Appends, ledger_url: str) -> None:
    """XC-01: given callers that wait behind another one, when it is done, then they are stored in one transaction."""
    with ThreadPoolExecutor(8) as pool:
        with appends.waiting():
            futures = [pool.submit(append, appends, "s") for _ in range(8)]
            while appends.committer._line._queue.qsize() < 8:
                time.sleep(0.01)
        stored = sorted(positions(future.result(DEADLINE_S)) for future in futures)

    assert stored == [[number] for number in range(2, 10)]
    assert transactions(ledger_url)[1:] == [[*range(2, 10)]]


def test_a_deadline_is_kept_while_the_head_is_held(appends: Appends, ledger_url: str) -> None:
    """RC-21: given a caller in a hurry and a head that is held, it waits no longer than it said; all is stored."""
    appends.store("s")
    with head_held(ledger_url):
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            append(appends, "t", key="k", patience_s=0.2)
        assert time.monotonic() - began < 2

    assert [replayed(append(appends, "t", key="k"))] == on_stream(ledger_url, "t")


def test_who_is_alone_lets_a_holder_of_the_head_come_next(appends: Appends, ledger_url: str) -> None:
    """XC-01: given a caller that appends without a pause, when others hold the head, they come between its appends."""
    stop, held_at = threading.Event(), list[int]()

    def without_a_pause() -> list[int]:
        stored: list[int] = []
        while not stop.is_set():
            stored += positions(append(appends, "s"))
        return stored

    with ThreadPoolExecutor(1) as pool:
        mine = pool.submit(without_a_pause)
        for _ in range(10):
            with appends.committer.hold() as held:
                ((item,),) = held.store([appends.draft("t")])
                held_at.append(item.entry.position)
        stop.set()
        stored = mine.result(DEADLINE_S)

    assert on_stream(ledger_url, "t") == held_at
    assert sorted(stored + held_at) == [*range(1, len(stored) + len(held_at) + 1)]


def test_nothing_is_stored_after_the_end(ledger_url: str, home: Path, no_settings: None) -> None:
    """Given a committer that was closed, when a caller appends alone, then it is refused, and nothing is stored."""
    with whole(ledger_url, home) as appends:
        append(appends, "s")
        appends.committer.close()
        with refused("UNAVAILABLE"):
            append(appends, "s")

    assert on_stream(ledger_url, "s") == [1]
