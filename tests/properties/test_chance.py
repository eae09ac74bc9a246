"""Chance that is drawn many times at once: nobody gets what another got, in any thread and in any process."""

import os
from concurrent.futures import ThreadPoolExecutor

from ledger.clock import Chance

SIZE = 16


def of_child(draw: Chance, times: int) -> list[bytes]:
    """Return what a forked process draws."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            for _ in range(times):
                os.write(writing, draw())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        whole = answer.read()
    os.wait()
    return [whole[at : at + SIZE] for at in range(0, len(whole), SIZE)]


def test_nothing_is_given_out_twice() -> None:
    """Given many threads, when they draw more often than is drawn at once, no two get the same, and all get enough."""
    chance = Chance(SIZE)
    with ThreadPoolExecutor(8) as pool:
        drawn = [one for some in pool.map(lambda _: [chance() for _ in range(500)], range(8)) for one in some]

    assert len(set(drawn)) == len(drawn) == 4_000
    assert {len(one) for one in drawn} == {SIZE}


def test_a_forked_process_draws_anew() -> None:
    """Given chance that was drawn and not yet given out, when the process forks, the two get nothing alike."""
    chance = Chance(SIZE)
    chance()

    theirs = of_child(chance, 100)

    assert len(theirs) == 100
    assert set(theirs).isdisjoint(chance() for _ in range(100))
