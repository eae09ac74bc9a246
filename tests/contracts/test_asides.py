"""Where an export is written: gone with its writer, whoever that was, and nothing else is removed."""

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.audit import asides
from tests.faults.ledger_hands import ROOT
from tests.house import refused

KILLED = """
import os, signal, sys
from pathlib import Path
from gateway.audit import asides
with asides.beside(Path(sys.argv[1])) as path:
    if sys.argv[2] == "folder":
        path.mkdir()
        (path / "inner").mkdir()
        (path / "inner" / "file").write_text("half")
        (path / "link").symlink_to(sys.argv[3])
    else:
        path.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(out: Path, kind: str, linked: Path) -> Path:
    """Let a process be killed while it writes beside `out`, and return what it left."""
    subprocess.run([sys.executable, "-c", KILLED, out, kind, linked], cwd=ROOT, check=False)
    (left,) = (one for one in out.parent.iterdir() if one.name.startswith(f".{out.name}-"))
    assert (left / "export").exists()
    return left


def sweeps(directory: Path) -> None:
    """Write something else in a directory, and give it up."""
    with asides.beside(directory / "other") as path:
        path.write_text("other")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path, kind: str) -> None:
    """Given what it left, a file or a folder, then the next writer leaves nothing; what a link leads to stays."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    killed(tmp_path / "out", kind, kept)
    sweeps(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


def test_what_somebody_writes_is_left_alone(tmp_path: Path) -> None:
    """Given a writer that lives, when others write beside it, then its own is there until it ends, and not after."""
    with asides.beside(tmp_path / "out") as path:
        path.write_text("mine")
        sweeps(tmp_path)
        assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == []


def no_mark(left: Path) -> None:
    """Be a folder that somebody else made."""
    (left / asides.MARK).unlink()


def other_mark(left: Path) -> None:
    """Be a folder in which a file of the mark's name says something else."""
    (left / asides.MARK).write_text("mine")


def longer_mark(left: Path) -> None:
    """Be a folder whose mark begins like ours."""
    with (left / asides.MARK).open("a") as file:
        file.write("and more")


def linked_mark(left: Path) -> None:
    """Be a folder whose mark is a link to one."""
    (left / asides.MARK).rename(left.parent / "mark")
    (left / asides.MARK).symlink_to(left.parent / "mark")


def waiting_mark(left: Path) -> None:
    """Be a folder whose mark is a pipe."""
    (left / asides.MARK).unlink()
    os.mkfifo(left / asides.MARK)


def other_name(left: Path) -> None:
    """Be a folder whose name only looks like one of ours."""
    left.rename(left.with_name(f"{left.name}0"))


def linked(left: Path) -> None:
    """Be a link to a folder of ours, under such a name."""
    left.rename(left.parent / "elsewhere")
    left.symlink_to(left.parent / "elsewhere")


def other_user(left: Path) -> None:
    """Be a folder of somebody else's."""
    if os.geteuid() != 0:
        pytest.skip("a file can be given to somebody else by root only")
    os.chown(left, 12_345, -1)


CHANGES = [no_mark, other_mark, longer_mark, linked_mark, waiting_mark, other_name, linked, other_user]


@pytest.mark.parametrize("change", CHANGES, ids=[one.__name__ for one in CHANGES])
def test_what_is_not_ours_is_left_alone(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """Given a hidden folder that lacks one thing that ours has, then nothing in it is touched."""
    change(killed(tmp_path / "out", "file", tmp_path))
    before = sorted(tmp_path.rglob("*"))
    sweeps(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_of_such_a_name_is_left_alone(tmp_path: Path) -> None:
    """Given a hidden file whose name has the shape, then it stays."""
    (tmp_path / ".out-0123456789abcdef").write_text("mine")
    sweeps(tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_one_name_has_one_writer(tmp_path: Path) -> None:
    """Given a writer that lives, when another one wants its name, then that is refused; once it ended, it is not."""
    out = tmp_path / "out"
    with asides.beside(out) as path:
        path.write_text("mine")
        with refused("VALIDATION_FAILED") as refusal, asides.beside(out):
            pytest.fail("two writers have one name")
        assert "another one is being made there" in refusal.error.message
        assert path.read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
        with asides.beside(tmp_path / "out2"):
            assert len(list(tmp_path.iterdir())) == 2
    with asides.beside(out) as path:
        path.write_text("done")
        path.rename(out)
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def test_a_name_that_a_killed_writer_had_is_free(tmp_path: Path) -> None:
    """Given what a killed writer left, when its name is asked for again, then it is removed and the name given."""
    killed(tmp_path / "out", "file", tmp_path)
    with asides.beside(tmp_path / "out") as path:
        assert not path.exists() and len(list(tmp_path.iterdir())) == 1


def test_what_was_put_there_before_the_name_was_had_is_seen(tmp_path: Path) -> None:
    """Given that something lies there by the time that the name is had, then it is refused, and nothing is left."""
    out = tmp_path / "out"
    out.write_text("another's")
    with refused("VALIDATION_FAILED"), asides.beside(out):
        pytest.fail("the name was taken")
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("change", [no_mark, other_mark, linked_mark, waiting_mark, other_user])
def test_what_nobody_holds_keeps_no_name_from_anybody(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """Given a folder in the way, not ours to remove, that nobody holds, then the name is given all the same."""
    change(killed(tmp_path / "out", "file", tmp_path))
    before = sorted(tmp_path.rglob("*"))
    with asides.beside(tmp_path / "out") as path:
        path.write_text("mine")
    assert sorted(tmp_path.rglob("*")) == before


def test_where_no_file_can_be_locked_the_first_to_finish_has_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a file system without locks, then two writers go on, each in a folder of its own."""

    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with asides.beside(tmp_path / "out") as one, asides.beside(tmp_path / "out") as other:
        assert one != other
    assert list(tmp_path.iterdir()) == []
