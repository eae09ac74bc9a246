"""When a search carries what waits before it answers, and when it leaves that to a later one.

Whatever this process wrote, and whatever a caller has named a position of, is always carried first. What others write
all the time is not to be paid by every search: then searches carry at most half of the time, and those in between
answer from an index that is a moment old, and say so. It is about what is found, never about what is true: every hit is
confirmed at the ledger's head either way.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple

FEW = 8  # events that are carried at once, whenever
REST_S = 0.25
SLICE_S = 0.125  # of what others write without pause, so much is carried at once
CALM_S = 1.0  # after a rest; who carries nothing for so long carries all the next time


class Due(NamedTuple):
    """What a search carries before it answers: whatever lies up to `position`, however long that takes.

    With a `slice_s` it begins no further page after so many seconds: then nothing is owed, and the rest may wait.
    """

    position: int
    slice_s: float | None = None


class Pace:
    """How one process keeps up. Used under the ledger's lock, but for `carrying`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rests_until = float("-inf")

    @property
    def rests(self) -> bool:
        """Report whether a search was carrying a moment ago, so that this one may leave that to a later one."""
        return self._clock() < self._rests_until

    @property
    def slice_s(self) -> float | None:
        """Return for how long a search carries that owes nothing: None, as long as it takes, after a calm."""
        return SLICE_S if self._clock() < self._rests_until + CALM_S else None

    def may_wait(self, *, head: int, carried: int, owed: int) -> bool:
        """Report whether a search at `head` may leave what lies above `carried`; what lies up to `owed` it may not."""
        return carried >= owed and head - carried > FEW and self.rests

    @contextmanager
    def carrying(self) -> Generator[None]:
        """Take the time of what is carried in the block: as long, and at least a quarter of a second, is rested."""
        began = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self._rests_until = max(self._rests_until, ended + max(REST_S, ended - began))
