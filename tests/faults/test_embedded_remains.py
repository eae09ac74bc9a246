"""What is cleared away after servers: shared memory, old copies of the binaries, clusters of deleted homes."""

import os
import time
from pathlib import Path

import pytest

from gateway.embedded import abandoned, places, remains, stop, wheel
from gateway.embedded.locks import EXCLUSIVE, SHARED, take
from tests.faults.embedded_home import House, kill, needs_root, open_files

MONTH_S = 30 * 24 * 3600


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A base directory of root's that only this test uses."""
    monkeypatch.setattr(places, "BASE", tmp_path / "base")
    (tmp_path / "base" / "bin").mkdir(parents=True)
    return tmp_path / "base"


@pytest.mark.skipif(not Path("/proc/sysvipc/shm").exists(), reason="needs Linux")
def test_no_shared_memory_outlives_removed_data(house: House) -> None:
    """A killed postmaster leaves a segment that only a later start would recycle: removing the data removes it."""
    answer = house.visit()
    inode = (answer.state / "data").stat().st_ino
    kill(answer.postmaster)
    assert _segments(inode)
    stop(house.home, remove=True)
    assert not _segments(inode)


def test_shared_memory_in_use_is_left_alone(lived_in: House) -> None:
    """A segment with processes attached is a running server's."""
    _, answer = lived_in.stay()
    data = answer.state / "data"
    remains.remove_shared_memory(data)
    assert _segments(data.stat().st_ino)
    assert lived_in.sql(answer, "SELECT 1") == [[1]]


def test_an_old_copy_of_the_binaries_is_removed(base: Path) -> None:
    """A copy that nobody has used for a week goes; a fresh one stays."""
    old, fresh = _copy(base, "17.1-aaaaaaaa", MONTH_S), _copy(base, "18.1-bbbbbbbb", 0)
    assert wheel.remove_unused() == [old]
    assert not old.exists() and fresh.exists()


def test_a_copy_that_a_server_runs_is_kept(base: Path) -> None:
    """However old: every server holds a shared lock on its copy."""
    old = _copy(base, "17.1-aaaaaaaa", MONTH_S)
    lock = take(old.with_name(f".{old.name}.lock"), SHARED)
    try:
        assert wheel.remove_unused() == []
    finally:
        os.close(lock)
    assert wheel.remove_unused() == [old]


@needs_root
def test_a_running_server_holds_its_copy(lived_in: House) -> None:
    """The postmaster itself keeps the lock on its binaries, whoever started it."""
    answer = lived_in.visit()
    copy = Path(os.readlink(f"/proc/{answer.postmaster}/exe")).parents[3]
    assert str(copy.with_name(f".{copy.name}.lock")) in open_files(answer.postmaster)


def test_a_cluster_of_a_deleted_temporary_home_is_removed(base: Path, tmp_path: Path) -> None:
    """A home that lay in a temporary directory, is gone, and was not visited for a week."""
    state = _cluster(base, "0" * 16, tmp_path / "gone", MONTH_S)
    assert remains.remove_abandoned() == [state]
    assert not state.exists()


def test_a_cluster_that_may_still_be_wanted_is_kept(base: Path, tmp_path: Path) -> None:
    """Recently used, with its home in place, or of a home that was not temporary: kept, and named for `doctor`."""
    recent = _cluster(base, "1" * 16, tmp_path / "gone", 60)
    at_home = _cluster(base, "2" * 16, tmp_path / "there", MONTH_S)
    (tmp_path / "there" / "postgres").mkdir(parents=True)
    (tmp_path / "there" / "postgres" / "id").write_text("2" * 16 + "\n")
    lasting = _cluster(base, "3" * 16, Path("/home/somebody/corrigenda"), MONTH_S)
    assert remains.remove_abandoned() == []
    assert all(state.exists() for state in (recent, at_home, lasting))
    assert not list(base.rglob("start.lock")), "passing by must not take locks"
    assert abandoned() == [recent, lasting]


@pytest.mark.parametrize("lock", ["start.lock", "clients.lock", "watcher.lock", "server.lock"])
def test_a_cluster_that_somebody_uses_is_kept(base: Path, tmp_path: Path, lock: str) -> None:
    """Any of the four locks protects it, whatever its home and age."""
    state = _cluster(base, "0" * 16, tmp_path / "gone", MONTH_S)
    held = take(state / lock, SHARED if lock == "clients.lock" else EXCLUSIVE)
    try:
        assert remains.remove_abandoned() == []
    finally:
        os.close(held)
    assert (state / "data").exists()


def _segments(inode: int) -> list[str]:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return [line for line in lines if int(line.split()[0]) & 0xFFFFFFFF == inode & 0xFFFFFFFF]


def _copy(base: Path, name: str, age_s: float) -> Path:
    target = base / "bin" / name
    target.mkdir()
    _aged(target.with_name(f".{name}.lock"), age_s)
    return target


def _cluster(base: Path, number: str, home: Path, age_s: float) -> Path:
    state = base / number
    (state / "data").mkdir(parents=True)
    (state / "home").write_text(str(home))
    _aged(state / "clients.lock", age_s)
    return state


def _aged(path: Path, age_s: float) -> None:
    path.touch()
    then = time.time() - age_s  # noqa: TID251 - compared with the file system's own clock
    os.utime(path, (then, then))
