"""A lock that many searches may share, and one mutation holds alone.

FAISS lets the interpreter's lock go during every call, so threads really meet inside it: unguarded, adding
while searching crashed the process, and removing while searching gave wrong items without a word. Never ask
for it again while holding it.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager


class SharedLock:
    """Readers together or one writer alone; a waiting writer goes before readers that come after it."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._readers = 0
        self._writing = False
        self._writers_waiting = 0

    @contextmanager
    def shared(self) -> Generator[None, None, None]:
        """Hold the lock together with other readers."""
        with self._changed:
            self._changed.wait_for(lambda: not self._writing and not self._writers_waiting)
            self._readers += 1
        try:
            yield
        finally:
            self._leave_shared()

    @contextmanager
    def alone(self) -> Generator[None, None, None]:
        """Hold the lock with nobody else."""
        with self._changed:
            self._writers_waiting += 1
            try:
                self._changed.wait_for(lambda: not self._writing and not self._readers)
                self._writing = True
            finally:
                self._writers_waiting -= 1
                # An interrupted wait must not leave readers asleep behind a writer that never came.
                self._changed.notify_all()
        try:
            yield
        finally:
            self._leave_alone()

    def _leave_shared(self) -> None:
        with self._changed:
            self._readers -= 1
            if not self._readers:
                self._changed.notify_all()

    def _leave_alone(self) -> None:
        with self._changed:
            self._writing = False
            self._changed.notify_all()
