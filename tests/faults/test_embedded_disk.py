"""The embedded server on a disk that is full or read-only: refused with DISK_FULL, and the data stay whole."""

import contextlib
import os
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.embedded_home import House, caller, kill, needs_root, ordinary, until

pytestmark = needs_root

# The first start asks for 128 MB, a later one for 32 MB; initdb itself writes about 39 MB.
TOO_SMALL_MB, TOO_SMALL_FOR_INITDB_MB, ENOUGH_MB = 100, 20, 400


@dataclass
class Disk:
    """A disk of its own for one house: the user's home lies on it, or root's base directory."""

    house: House
    path: Path
    roots: bool

    def visit(self, *options: str) -> Any:
        """Run a client whose data lie on this disk."""
        if self.roots:
            base = self.path / "base"
            return self.house.visit(*options, variables={"EMBEDDED_BASE": str(base)})
        return self.house.visit(*options, home=self.path / "home")

    def resize(self, megabytes: int) -> None:
        """Make the disk this large, plus what a copy of the binaries takes on root's."""
        binaries = self.path / "base" / "bin"
        taken = sum(path.lstat().st_size for path in binaries.rglob("*")) >> 20 if binaries.exists() else 0
        self.remount(f"size={megabytes + taken + (4 if taken else 0)}m")

    def remount(self, options: str) -> None:
        """Change the mount."""
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.path)], check=True)

    def fill(self) -> Path:
        """Fill what is left with one file; return it."""
        filler = self.path / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 65536)
        return filler

    def drafts(self) -> list[Path]:
        """Return whatever is left of a half-made cluster."""
        return [*self.path.rglob("data.new-*"), *self.path.rglob("data")]


@pytest.fixture(params=[pytest.param("caller", marks=pytest.mark.soak), "ordinary"])
def disk(request: pytest.FixtureRequest) -> Generator[Disk, None, None]:
    """A small disk in memory; skipped where none can be mounted."""
    roots = request.param == "caller"
    with House(caller() if roots else ordinary()) as house:
        path = house.folder / "disk"
        path.mkdir()
        house.folder.chmod(0o755)  # the server's account must reach the disk
        line = ["mount", "-t", "tmpfs", "-o", f"size={TOO_SMALL_MB}m,mode=755", "tmpfs", str(path)]
        if subprocess.run(line, capture_output=True).returncode:
            pytest.skip("no disk can be mounted here")
        try:
            if not roots:
                os.chown(path, house.person.account.pw_uid, house.person.account.pw_gid)
            yield Disk(house, path, roots)
        finally:
            house.end_servers()
            subprocess.run(["umount", str(path)], check=True)


def test_a_first_start_on_a_small_disk_is_refused(disk: Disk) -> None:
    """Before anything is made, the room is looked at; nothing half-made is left."""
    answer = disk.visit()
    assert (answer.error, answer.reason) == ("UNAVAILABLE", "DISK_FULL")
    assert "MB are needed" in answer.text
    assert not disk.drafts()


def test_initdb_that_meets_a_full_disk_leaves_nothing(disk: Disk) -> None:
    """The disk fills after the look: the same error, nothing half-made, and it works once there is room."""
    disk.visit()
    before = idle_segments()
    disk.resize(TOO_SMALL_FOR_INITDB_MB)
    refused = disk.visit("--unchecked-disk")
    assert refused.reason == "DISK_FULL", refused
    assert not disk.drafts()
    assert until(lambda: idle_segments() <= before, 5), "initdb's shared memory was left behind"
    disk.resize(ENOUGH_MB)
    assert disk.visit().postmaster


def idle_segments() -> set[str]:
    """Return the numbers of the shared memory segments that no process is attached to."""
    rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[6] == "0"}


def test_a_full_disk_does_not_hurt_what_is_stored(disk: Disk) -> None:
    """A killed server cannot recover on a full disk, and loses nothing by the attempt."""
    disk.resize(ENOUGH_MB)
    first = disk.visit()
    disk.house.sql(first, "CREATE TABLE kept AS SELECT generate_series(1, 10000) AS number")
    kill(first.postmaster)
    filler = disk.fill()
    assert disk.visit().reason == "DISK_FULL"
    attempt = disk.visit("--unchecked-disk")
    assert attempt.error is None or attempt.reason == "DISK_FULL", attempt.text
    filler.unlink()
    assert disk.house.sql(disk.visit(), "SELECT count(*) FROM kept") == [[10000]]


def test_a_read_only_disk_is_named(disk: Disk) -> None:
    """Not writable, said as such."""
    disk.resize(ENOUGH_MB)
    answer = disk.visit()
    disk.house.end_servers()
    assert answer.postmaster
    disk.remount("ro")
    assert disk.visit().reason == "HOME_NOT_WRITABLE"
