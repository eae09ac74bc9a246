"""How long the caller at hand is willing to wait for an embedder that is far away.

A deadline belongs to who asks, not to the embedder that is asked: a writer that is about to exit waits for five
seconds, a rebuild as long as it takes. It never makes anybody wait longer than the embedder would by itself.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def at_most(seconds: float | None) -> Generator[None, None, None]:
    """Let what is embedded in this block, and this thread, take `seconds` altogether; None sets no bound."""
    outer = _deadline.get()
    mine = None if seconds is None else time.monotonic() + seconds
    token = _deadline.set(min((end for end in (outer, mine) if end is not None), default=None))
    try:
        yield
    finally:
        _deadline.reset(token)


def deadline_within(seconds: float) -> float:
    """Return the moment, on the monotonic clock, at which to give up: in `seconds`, or when the caller wants to."""
    end, mine = _deadline.get(), time.monotonic() + seconds
    return mine if end is None else min(end, mine)
