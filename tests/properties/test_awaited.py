"""Callers who are answered together: each is woken once, whoever of them has left or was interrupted."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from ledger import waiting
from ledger.sealing import Draft, prepare
from ledger.waiting import Awaited, Conflicted, Outcome, Waiting, answer_all

CALLERS = 12
DEADLINE_S = 20.0
SOON_S = 5.0
LEAVES_S = 0.05


@pytest.fixture
def group() -> list[Waiting]:
    """Give a group of appends, each with a caller's future of the lighter kind."""
    draft = Draft(op="op", actor="pr", authn="local", request=None, fingerprint=None, events=())
    return [Waiting(prepare(draft), Awaited()) for _ in range(CALLERS)]


def told(group: list[Waiting]) -> list[tuple[Waiting, Outcome]]:
    """Return an outcome for each, told apart by its stream."""
    return [(one, Conflicted(str(number))) for number, one in enumerate(group)]


def asked(group: list[Waiting], *, patience: Callable[[int], float]) -> list["Future[str]"]:
    """Let each be waited for in a thread of its own, the n-th so long at most; TimeoutError shows as `left`."""

    def wait(number: int) -> str:
        try:
            outcome = group[number].future.result(patience(number))
        except (TimeoutError, KeyboardInterrupt):
            return "left"
        assert isinstance(outcome, Conflicted)
        return outcome.stream

    pool = ThreadPoolExecutor(len(group))
    futures = [pool.submit(wait, number) for number in range(len(group))]
    pool.shutdown(wait=False)
    return futures


def test_all_who_are_answered_together_have_their_own_answer(group: list[Waiting]) -> None:
    """Given callers who wait, and some who only will, when all are answered at once, each has what is its own."""
    early = asked(group[: CALLERS // 2], patience=lambda _: DEADLINE_S)
    answer_all(told(group))
    late = asked(group[CALLERS // 2 :], patience=lambda _: DEADLINE_S)

    assert [one.result(DEADLINE_S) for one in (*early, *late)] == [str(number) for number in range(CALLERS)]


def test_one_who_was_answered_before_keeps_that(group: list[Waiting]) -> None:
    """Given one of a group who has an answer, when all are answered, it keeps its own and the others get theirs."""
    group[3].answer(Conflicted("before"))
    answer_all(told(group))

    found = [one.result(DEADLINE_S) for one in asked(group, patience=lambda _: DEADLINE_S)]
    assert found == ["before" if number == 3 else str(number) for number in range(CALLERS)]


@pytest.mark.parametrize("leaving", [{0}, {5}, {CALLERS - 1}, {0, 1, 2}, {4, 5, 11}, set(range(CALLERS))])
def test_who_has_left_keeps_nobody_waiting(
    group: list[Waiting], leaving: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given callers who lost patience before the answer, the others are woken, and need not look for it themselves."""
    monkeypatch.setattr(waiting, "LOOK_S", DEADLINE_S)
    callers = asked(group, patience=lambda number: LEAVES_S if number in leaving else DEADLINE_S)
    for number in leaving:
        assert callers[number].result(DEADLINE_S) == "left"
    answer_all(told(group))

    for number, one in enumerate(callers):
        assert one.result(SOON_S) == ("left" if number in leaving else str(number))


class Struck:
    """A caller's lock during which a signal comes, before or after it was taken."""

    def __init__(self, lock: threading.Lock, *, taken: bool) -> None:
        self._lock, self._taken = lock, taken
        self.release = lock.release

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Be interrupted, unless it is only looked whether the lock is free."""
        if not blocking:
            return self._lock.acquire(blocking=False)
        if self._taken:
            self._lock.acquire(timeout=timeout)
        raise KeyboardInterrupt


@pytest.mark.parametrize("taken", [False, True])
def test_one_who_is_interrupted_keeps_nobody_waiting_for_long(group: list[Waiting], taken: bool) -> None:
    """Given a signal to one of them while it waits, or just when it was woken, the others have their answers soon."""
    struck = group[4].future
    assert isinstance(struck, Awaited)
    struck._given = Struck(struck._given, taken=taken)  # pyright: ignore[reportAttributeAccessIssue] - stands for it
    callers = asked(group, patience=lambda _: DEADLINE_S)
    answer_all(told(group))

    found = [one.result(SOON_S) for one in callers]
    assert found == ["left" if number == 4 else str(number) for number in range(CALLERS)]
