"""A ledger that two processes read: both take part, neither changes the report, and one that ends early is told of.

That reports are the same whatever was tampered with is held by all tests that verify through `tests.sharing`.
"""

import subprocess
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue
from typing import Any

import pytest

from ledger.digest import LedgerKeys
from ledger.store import Store
from ledger.verify import Report, sharing, verify
from ledger.verify.helper import Job, Span
from tests.sharing import in_a_thread, short_pages
from tests.tampering import Tampering, failed

READY_S = 30.0
_DIES = sharing.BEGIN.replace(
    "main()", "import os, ledger.verify.helper as h; h.stretch_of = lambda *_: os.kill(os.getpid(), 9); main()"
)
_BABBLES = "import sys; sys.stdout.buffer.write(b'\\0\\0\\0\\2{}'); sys.stdout.flush(); sys.stdin.read()"


class Heard(Queue[Any]):
    """A queue that says when something has been put into it."""

    def __init__(self, has_spoken: threading.Event) -> None:
        super().__init__()
        self._has_spoken = has_spoken

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put it, and say so."""
        super().put(item, block, timeout)
        self._has_spoken.set()


class Watched:
    """A verification in pages of one event that waits until its helper is ready, and sees what that is told."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        short_pages(patch, size=1)
        self.told: list[Job | Span] = []
        self._has_spoken = threading.Event()
        self._begin: Callable[..., Any] = sharing.helper
        patch.setattr(sharing, "helper", self._helping)
        patch.setattr(sharing, "SimpleQueue", lambda: Heard(self._has_spoken))

    @contextmanager
    def _helping(self) -> Generator[sharing.Helper | None]:
        with self._begin() as aid:
            if aid is not None:
                self._tell, aid.tell = aid.tell, self._see
            yield aid

    def _see(self, message: Job | Span) -> None:
        self.told.append(message)
        self._tell(message)

    def wait(self, *_: int) -> None:
        """Once it has its job, wait until the helper has said its first word, or its last."""
        assert not self.told or self._has_spoken.wait(READY_S), "the helper said nothing"

    def verify(self, store: Store, keys: LedgerKeys | None) -> Report:
        """Verify with the helper's part in it."""
        return verify(store, keys, processes=2, progress=self.wait)

    @property
    def spans(self) -> list[Span]:
        """Return the pages that the helper was to look at."""
        return [message for message in self.told if isinstance(message, Span)]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Return a verification that is shared with a second process."""
    return Watched(monkeypatch)


def test_two_processes_say_what_one_says(tampering: Tampering, watched: Watched) -> None:
    """The helper looks at pages of the ledger, in a program with threads too, and the report is that of one reader."""
    alone = verify(tampering.store, tampering.keys, processes=1)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(watched.verify, tampering.store, tampering.keys).result() == alone
    assert failed(alone) == {}
    assert watched.spans


def test_what_a_helper_sees_is_reported(tampering: Tampering, watched: Watched) -> None:
    """An entry that only the helper was given is named with its position, in the words of one reader."""
    tampering.flip("payload", "body", 4)
    alone = verify(tampering.store, tampering.keys, processes=1)
    assert watched.verify(tampering.store, tampering.keys) == alone
    assert failed(alone) == {"payloads": 4}
    assert any(span.first <= 4 <= span.last for span in watched.spans)


def test_without_the_key_nothing_else_is_left_out(tampering: Tampering, watched: Watched) -> None:
    """A helper without a key checks all but seals, as one reader does."""
    alone = verify(tampering.store, None, processes=1)
    assert watched.verify(tampering.store, None) == alone
    assert (alone.exit_code, alone.checks["chain"].status) == (15, "ok")
    assert watched.spans


@pytest.mark.parametrize("is_tampered", [False, True])
def test_a_helper_that_is_killed(
    tampering: Tampering, watched: Watched, monkeypatch: pytest.MonkeyPatch, is_tampered: bool
) -> None:
    """What it had in hand is read by the other process, whatever lies there, and the report says that it ended."""
    if is_tampered:
        tampering.flip("payload", "body", 8)
    monkeypatch.setattr(sharing, "BEGIN", _DIES)
    report = watched.verify(tampering.store, tampering.keys)
    assert watched.spans
    assert failed(report) == ({"payloads": 8} if is_tampered else {})
    assert report.events == 9
    assert "ended early (signal 9)" in str(report.checks["chain"].why)


def test_a_helper_that_says_what_is_no_answer(
    tampering: Tampering, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not listened to any further, and nobody waits for it."""
    monkeypatch.setattr(sharing, "BEGIN", _BABBLES)
    report = watched.verify(tampering.store, tampering.keys)
    assert failed(report) == {}
    assert (report.events, watched.spans) == (9, [])
    assert "ended early" in str(report.checks["chain"].why)


def test_a_helper_that_cannot_reach_the_database(
    tampering: Tampering, monkeypatch: pytest.MonkeyPatch, watched: Watched
) -> None:
    """What the database said to it is told; the ledger is read by the process that can."""
    monkeypatch.setattr(sharing, "Job", _job_nowhere)
    report = watched.verify(tampering.store, tampering.keys)
    assert failed(report) == {}
    assert watched.spans
    assert "no connection to it could be made" in str(report.checks["chain"].why)


def _job_nowhere(_: str, *others: Any) -> Job:
    return Job("host=/nowhere dbname=none", *others)


def test_where_no_process_can_be_begun(tampering: Tampering, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is read alone; and neither key nor URL were to be seen in the command or in the environment."""
    begun: list[tuple[Any, Any]] = []

    def refuse(command: list[str], **also: Any) -> None:
        begun.append((command, also))
        raise OSError("no room for a process")

    short_pages(monkeypatch)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    report = verify(tampering.store, tampering.keys, processes=2)
    assert (failed(report), report.events, report.checks["chain"].why) == ({}, 9, None)
    ((command, also),) = begun
    assert "env" not in also
    assert not {tampering.keys.secret.hex(), tampering.store.database.url} & {*command}


def test_a_long_row_of_unsound_pages_is_read_alone(tampering: Tampering, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the key of another ledger nothing can be looked at beforehand, and the report is still that of one."""
    short_pages(monkeypatch, size=1)
    monkeypatch.setattr(sharing, "UNSOUND_MAX", 2)
    monkeypatch.setattr(sharing, "helper", in_a_thread)
    foreign = LedgerKeys(seal_secret=bytes(32), naming_secret=bytes(32), ledger="another")
    alone = verify(tampering.store, foreign, processes=1)
    assert verify(tampering.store, foreign, processes=2) == alone
    assert (alone.exit_code, alone.events) == (15, 9)
