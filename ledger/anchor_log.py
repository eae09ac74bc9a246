"""The log beside the anchor's file: copied into the file by a thread of its own, so that no append waits for that.

SQLite does it inside the commit that finds the log long, and one append in a hundred, or one caller in a hundred of
those who append together, then waits for thousands of pages. Here all but the last pages are copied beside whoever
writes; the next who writes copies those, and the log begins anew. Nothing that is read or written depends on it: where
no thread can do it, SQLite still does.
"""

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

from ledger import anchor_file
from ledger.anchor_file import STATEMENTS, Unusable

PAGES_MAX = 24_000  # written, until they are copied: as few pauses as 100 MB of log are worth
PAGES_OF_ALL = 5  # of a transaction, besides one for each entry


class Log:
    """What was written to one anchor's file. For one thread at a time: whoever holds the anchor's lock."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._pages = 0
        self._thread: threading.Thread | None = None

    def grow(self, entries: int) -> None:
        """Count a transaction that has just been committed, and see to it that the log does not grow without end."""
        self._pages += entries + PAGES_OF_ALL
        if self._thread is not None and not self._thread.is_alive():
            self._thread, self._pages = None, 0
            with suppress(sqlite3.Error):  # the log only stays longer than it might
                _fold(self._connection)
        elif self._thread is None and self._pages >= PAGES_MAX:
            self._thread = threading.Thread(target=_fold_beside, args=(self._path,), name="anchor", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait for what is being copied."""
        if self._thread is not None:
            self._thread.join()


def _fold_beside(path: Path) -> None:
    """Copy what the log holds now, and then what was added meanwhile: what is left after that is little."""
    with suppress(Unusable, sqlite3.Error), closing(anchor_file.connect(path)) as connection:
        _fold(connection)
        _fold(connection)


def _fold(connection: sqlite3.Connection) -> None:
    connection.execute(STATEMENTS["fold"]).fetchall()
