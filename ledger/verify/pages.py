"""The ledger's rows, page after page, each with its payloads; while one page is checked, the next is being read.

It holds two pages at a time, sized by what the last one weighed, so that long texts do not make it grow. It looks at
nothing: rows come as they lie.
"""

import sys
import threading
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple, cast

from ledger.store import Store

EVENTS_MAX = 1_000
FIRST_SIZE = EVENTS_MAX // 4
BYTES_WANTED = 4 << 20
TURN_S = 0.0005

# Whoever tampers with the tables may leave a column empty.
_Bytes = bytes | None
Row = tuple[int, str | None, int | None, _Bytes, _Bytes, _Bytes, _Bytes]
"""A row of the table of events: seq, stream, stream_seq, envelope, hash, seal, request."""
Payload = tuple[_Bytes, _Bytes]
"""Salt and body."""
NO_PAYLOAD: Payload = (None, None)


class Page(NamedTuple):
    """Rows in the order of their positions, and what payloads there are, by position."""

    rows: list[Row]
    payloads: Mapping[int, Payload]


def pages(store: Store, first: int, end: int | None) -> Generator[Page]:
    """Yield the rows from position `first` to `end`, or to the last one."""
    size = FIRST_SIZE
    with ThreadPoolExecutor(1, thread_name_prefix="verify") as reader:
        coming = reader.submit(read, store, first - 1, size)
        while (page := coming.result()).rows:
            top = page.rows[-1][0]
            if end is not None and top >= end:
                yield upto(end, page)
                return
            size = next_size(page)
            coming = reader.submit(read, store, top, size)
            yield page


class _Turns:
    """How long a thread waits for the interpreter: one value for the whole process, given back by the last user."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 0.0

    def shorten(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, TURN_S))

    def give_back(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setswitchinterval(self._before)


_turns = _Turns()


@contextmanager
def short_turns() -> Generator[None]:
    """Let threads take short turns: a page comes in some ten pieces, and who reads it waits a turn after each.

    With Python's 5 ms the next page is seldom there when it is wanted.
    """
    _turns.shorten()
    try:
        yield
    finally:
        _turns.give_back()


def read(store: Store, after: int, size: int) -> Page:
    """Return the rows of the next `size` positions; where rows were removed, those above the gap."""
    rows, payloads = store.whole_page(after, size)
    return Page(cast(list[Row], rows), {seq: (salt, body) for seq, salt, body in payloads})


def upto(end: int, page: Page) -> Page:
    """Return a page without the rows above a position."""
    return page if page.rows[-1][0] <= end else Page([row for row in page.rows if row[0] <= end], page.payloads)


def next_size(page: Page) -> int:
    """Return how many events the page after this one may have."""
    envelopes = sum(len(row[3] or b"") for row in page.rows)
    bodies = sum(len(body or b"") for _, body in page.payloads.values())
    weight = (envelopes + bodies) // len(page.rows) + 1
    return max(16, min(EVENTS_MAX, BYTES_WANTED // weight))
