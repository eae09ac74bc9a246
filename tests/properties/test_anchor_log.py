"""The log beside the anchor's file: it is copied beside whoever writes, begins anew, and nothing depends on that."""

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from ledger import anchor_file, anchor_log
from ledger.anchor import Anchor, Unusable
from tests.anchors import LEDGER, assert_holds, links, opened

ALL = links(0, 400)
LONG = 200  # pages of 4 kB: the entries below, one by one, write more than 1,600


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the log be copied after some ten entries."""
    monkeypatch.setattr(anchor_log, "PAGES_MAX", 60)


def grown(path: Path) -> Anchor:
    """Return an anchor that was given all entries, one by one; whatever is copied beside that is waited for."""
    anchor = opened(path)
    for one in ALL:
        anchor.extend([one])
        for thread in threading.enumerate():
            if thread.name == "anchor":
                thread.join(10)
    return anchor


def pages_of_log(path: Path) -> int:
    """Return how long the log beside a file has ever been."""
    return os.path.getsize(f"{path}-wal") // 4_096


def test_the_log_begins_anew(tmp_path: Path) -> None:
    """Given a writer that goes on and on, then the log stays short, and what it held is in the file."""
    path = tmp_path / f"{LEDGER}.sqlite"
    anchor = grown(path)

    assert pages_of_log(path) < LONG
    assert_holds(anchor, ALL)
    anchor.examine()
    anchor.close()


@pytest.mark.parametrize("reached", [True, False])
def test_nothing_depends_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: bool) -> None:
    """Given a log that cannot be copied, then it grows, and every entry is held all the same."""
    path = tmp_path / f"{LEDGER}.sqlite"
    opened(path).close()
    anchor = opened(path)

    def no_file(_: object) -> None:
        raise Unusable("is gone", passing=True)

    def no_disk(_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    if not reached:
        monkeypatch.setattr(anchor_file, "connect", no_file)
    monkeypatch.setattr(anchor_log, "_fold", no_disk)
    for one in ALL:
        anchor.extend([one])

    assert pages_of_log(path) > LONG
    assert_holds(anchor, ALL)
    anchor.close()


def test_a_reader_of_an_older_state_is_not_disturbed(tmp_path: Path) -> None:
    """Given who reads on while entries are added and copied, then it sees what there was, and later all of them."""
    path = tmp_path / f"{LEDGER}.sqlite"
    first = opened(path)
    first.extend(ALL[:10])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    (before,) = reader.execute("SELECT size FROM meta")
    first.close()

    anchor = grown(path)

    assert before == (10,) and [*reader.execute("SELECT size FROM meta")] == [before]
    reader.execute("COMMIT")
    reader.close()
    assert_holds(anchor, ALL)
    anchor.close()


def test_who_closes_waits_for_what_is_being_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a copy that takes its time, when the anchor is closed, then it is over: the file may be taken away."""
    fold, over = vars(anchor_log)["_fold"], threading.Event()

    def slowly(connection: sqlite3.Connection) -> None:
        threading.Event().wait(0.1)
        fold(connection)
        over.set()

    monkeypatch.setattr(anchor_log, "_fold", slowly)
    anchor = opened(tmp_path / f"{LEDGER}.sqlite")
    anchor.extend(ALL)

    anchor.close()

    assert over.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name == "anchor"]
