"""The only clock, and the only source of chance: times and new ids come from here and from nowhere else.

Everything that decides is handed its time and its ids, so that a decision can be made again and come out the
same. A recorded time is a 27-character UTC string with exactly six fraction digits (FORMAT.md §2).
"""

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

Clock = Callable[[], datetime]

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
_DRAWN = 64
_MILLISECONDS_MAX = 2**48 - 1
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_SHIFTS = range(100, -1, -10)
_LOW_BITS = 15
_LOW_MAX = (1 << _LOW_BITS) - 1


def system_clock() -> datetime:
    """Return the present moment, in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - this is the one clock


def is_past(deadline: float | None) -> bool:
    """Report whether a deadline of the monotonic clock has passed; None is no deadline."""
    return deadline is not None and time.monotonic() > deadline


def stamp(moment: datetime) -> str:
    """Return `moment` as the ledger writes it: `2026-01-02T03:04:05.000006Z`. A naive time is a ValueError."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone names no moment")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


class Chance:
    """Gives random bytes, `size` at a time, and draws for many times at once: asking lets go of the interpreter.

    Whoever does that with a lock in hand is met there by every other thread, one after the other.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._drawn: list[bytes] = []
        os.register_at_fork(after_in_child=self._drawn.clear)  # a child must never use its parent's

    def __call__(self) -> bytes:
        """Return bytes that nobody else gets. It takes no lock."""
        try:
            return self._drawn.pop()
        except IndexError:
            drawn = os.urandom(_DRAWN * self._size)
            first, *others = (drawn[at : at + self._size] for at in range(0, len(drawn), self._size))
            self._drawn.extend(others)
            return first


_chance = Chance(_RANDOM_BITS // 8)


class UlidMint:
    """Makes ULIDs (26 characters, 48 bits of milliseconds and 80 of chance) that only ever grow in a process.

    Within one millisecond, or when the clock is set back, the last id is counted up by one.
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self._now = _system_milliseconds if clock is system_clock else partial(_milliseconds, clock)
        self._lock = threading.Lock()
        # The last id as its milliseconds, which are before every moment at first, the high bits, and the 15 low ones.
        self._milliseconds, self._high, self._low = -1, 0, 0
        self._beginning = ""  # of ids that are counted up, all but the last three characters is the same

    def __call__(self) -> str:
        with self._lock:
            milliseconds = self._now()
            if milliseconds > self._milliseconds:
                self._begin(milliseconds << _RANDOM_BITS | int.from_bytes(_chance()))
            elif self._low < _LOW_MAX:
                self._low += 1
            else:
                self._begin((self._high << _LOW_BITS | self._low) + 1)
            return f"{self._beginning}{_PAIRS[self._low >> 5]}{_ALPHABET[self._low & 31]}"

    def _begin(self, number: int) -> None:
        """Go on with an id of another beginning."""
        high = number >> _LOW_BITS
        beginning = _ALPHABET[number >> 125] + "".join([_PAIRS[high >> shift & 1023] for shift in _SHIFTS])
        # All at once: an interrupt in between would leave a beginning that was used with numbers that were used.
        self._beginning, self._milliseconds = beginning, number >> _RANDOM_BITS
        self._high, self._low = high, number & _LOW_MAX


def _milliseconds(clock: Clock) -> int:
    return min(max(int(clock().timestamp() * 1000), 0), _MILLISECONDS_MAX)


def _system_milliseconds() -> int:
    # Of the one clock, too: a datetime that is made and taken apart again took half of an id's time.
    return time.time_ns() // 1_000_000


new_ulid = UlidMint()
