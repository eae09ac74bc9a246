"""Events as they are committed: every one above a position, in order, once each, and then whatever comes.

Positions have no gaps and are in commit order, so the last one seen says where to go on: nothing is skipped and nothing
comes twice, whatever happens to the connection. It must never go on over a gap, or behind a ledger that was cut.
"""

import time
from collections.abc import Callable, Iterator

from ledger.chain import broken
from ledger.errors import CorrigendaError, UnavailableError
from ledger.store import Row, Store

POLL_S = 0.5
PAGE = 500

Waiting = Callable[[CorrigendaError], None]


def follow(store: Store, after: int, waiting: Waiting) -> Iterator[Row]:
    """Yield the rows above a position (as `Store.whole_after`), without end; `waiting` is told why it has to wait.

    It looks at most twice a second, and waits for a database that has answered before. Errors: UNAVAILABLE (it did
    not answer the first time), INTEGRITY_BROKEN (an event is missing, or the ledger has become shorter).
    """
    newest, last, silent = store.head().seq, after, False
    while True:
        try:
            newest = _grown(store, newest)
            rows = store.whole_after(last, PAGE)
            silent = False
        except UnavailableError as error:
            if not silent:
                waiting(error)
            silent = True
            time.sleep(POLL_S)
            continue
        for row in rows:
            last = _next(row[0], last)
            yield row
        if len(rows) < PAGE:
            if last < newest:  # committed with their head, so they were there to be read
                raise _missing(last + 1)
            time.sleep(POLL_S)


def _grown(store: Store, last: int) -> int:
    """Return the head's position, which is never below one that was seen."""
    found = store.head().seq
    if found < last:
        raise broken(found, "chain", f"a head at {last} or above, which was seen before", f"one at {found}")
    return found


def _next(position: int, last: int) -> int:
    if position != last + 1:
        raise _missing(last + 1)
    return position


def _missing(position: int) -> Exception:
    return broken(position, "chain", "an entry", "none")
