"""A log rendered into a directory: whatever stands in the way, what the directory showed before it still shows."""

import errno
import fcntl
import os
import resource
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import notes, tiles, tree
from ledger.digest import leaf
from ledger.errors import CorrigendaError
from ledger.notes import Checkpoint, VerifierKey
from ledger.rendering import Rendered, render
from tests.house import refused

ORIGIN = "ledger.example.org/main"


class Log:
    """A signed log of entries that are made up, as long as is asked for."""

    def __init__(self, *, origin: str = ORIGIN, seed: int = 1, word: str = "entry") -> None:
        self._signing = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        self.key = VerifierKey(origin, self._signing.public_key().public_bytes_raw())
        self._word = word

    def entry(self, position: int) -> bytes:
        """Return an entry."""
        return f"{self._word} {position}".encode()

    def envelopes(self, first: int, count: int) -> list[bytes]:
        """Return entries as a ledger gives them."""
        return [self.entry(position) for position in range(first, first + count)]

    def leaves(self, first: int, count: int) -> bytes:
        """Return leaf hashes as a ledger gives them."""
        return b"".join(leaf(self.entry(position)) for position in range(first, first + count))

    def note(self, size: int) -> bytes:
        """Return the checkpoint of the first entries."""
        root = tree.root(tiles.split(self.leaves(0, size)))
        return notes.sign_checkpoint(Checkpoint(self.key.name, size, root), self._signing)

    def render(self, folder: Path, size: int, **others: Any) -> Rendered:  # Any: as `render` takes them
        """Render the first entries."""
        source = {"leaves": self.leaves, "envelopes": self.envelopes, **others}
        return render(folder, self.note(size), self.key, **source)


LOG = Log()


def files(folder: Path) -> dict[str, bytes]:
    """Return every file below a directory."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def shown(folder: Path, log: Log = LOG) -> int:
    """Return the size that a directory shows, after reading it whole as an outsider does."""
    checkpoint = notes.open_checkpoint((folder / "checkpoint").read_bytes(), log.key)
    entries: list[bytes] = []
    for tile in tiles.of_size(checkpoint.size, tiles.ENTRIES):
        entries += tiles.unbundle(_found(folder, tile))
    assert entries == log.envelopes(0, checkpoint.size)
    for tile, raw in tiles.grow(checkpoint.size, log.leaves):
        assert _found(folder, tile)[: len(raw)] == raw
    return checkpoint.size


def _found(folder: Path, tile: tiles.Tile) -> bytes:
    """Return a tile's bytes, of its full form where the narrower one is gone; then only what belongs to the size."""
    narrow, full = (folder / tiles.path(one) for one in (tile, tile._replace(width=256)))
    if narrow.exists():
        return narrow.read_bytes()
    if tile.level == tiles.ENTRIES:
        return tiles.bundle(tile, tiles.unbundle(full.read_bytes())[: tile.width])
    return full.read_bytes()[: 32 * tile.width]


# ---------------------------------------------------------------- what comes out


def test_a_log_is_rendered_whole(tmp_path: Path) -> None:
    """Checkpoint, entries and hashes, and nothing else; a second run changes nothing."""
    done = LOG.render(tmp_path / "new" / "log", 600)
    made = files(tmp_path / "new" / "log")
    assert sorted(made) == [
        "checkpoint", "tile/0/000", "tile/0/001", "tile/0/002.p/88", "tile/1/000.p/2",
        "tile/entries/000", "tile/entries/001", "tile/entries/002.p/88",
    ]  # fmt: skip
    assert (done.size, done.written, done.kept) == (600, 7, 0)
    assert shown(tmp_path / "new" / "log") == 600
    again = LOG.render(tmp_path / "new" / "log", 600)
    assert (again.written, again.kept) == (0, 7)
    assert files(tmp_path / "new" / "log") == made


@pytest.mark.parametrize(("before", "after"), [(1, 2), (255, 256), (256, 257), (300, 511), (300, 900)])
def test_a_directory_grows(tmp_path: Path, before: int, after: int) -> None:
    """Full tiles stay as they are; a partial one stays as long as there is no full one, and goes then."""
    LOG.render(tmp_path / "grown", before)
    old = files(tmp_path / "grown")
    LOG.render(tmp_path / "grown", after)
    LOG.render(tmp_path / "fresh", after)
    grown, fresh = files(tmp_path / "grown"), files(tmp_path / "fresh")
    assert shown(tmp_path / "grown") == after
    assert {name: grown[name] for name in fresh} == fresh
    left = {name for name in grown if name not in fresh}
    assert left == {name for name in old if ".p/" in name and name.split(".p/")[0] not in fresh and name not in fresh}
    assert not [path for path in (tmp_path / "grown").rglob("*.p") if (path.parent / path.name[:-2]).exists()]


def test_what_is_there_is_not_read_from_the_ledger_again(tmp_path: Path) -> None:
    """Envelopes are asked for only where the directory lacks them: a checkpoint a minute does not read the ledger."""
    asked: list[int] = []

    def envelopes(first: int, count: int) -> list[bytes]:
        asked.append(first)
        return LOG.envelopes(first, count)

    LOG.render(tmp_path, 600)
    LOG.render(tmp_path, 700, envelopes=envelopes)
    assert asked == [512]


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Four times the entries take no more memory."""
    LOG.render(tmp_path / "first", 300)  # what is loaded or kept once for all
    peaks: list[int] = []
    for size in (10_000, 40_000):
        note = LOG.note(size)
        tracemalloc.start()
        render(tmp_path / str(size), note, LOG.key, leaves=LOG.leaves, envelopes=LOG.envelopes)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000, peaks


def test_progress_is_told(tmp_path: Path) -> None:
    """After each tile: how many entries are done, and of how many."""
    told: list[tuple[int, int]] = []
    LOG.render(tmp_path, 600, progress=lambda done, of: told.append((done, of)))
    assert told == [(256, 600), (512, 600), (600, 600)]


# ---------------------------------------------------------------- the disk


class Disk:
    """Lets the n-th call of a kind fail, before it has taken effect or after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.calls = 0

    def fail(self, name: str, nth: int, error: int, *, after: bool) -> None:
        """Let a call of `os.<name>` fail; of `open`, only those that make a file count."""
        real: Callable[..., Any] = getattr(os, name)
        self.calls = 0

        def failing(*args: Any, **named: Any) -> Any:  # Any: as the real one
            if name == "open" and not args[1] & os.O_CREAT:
                return real(*args, **named)
            self.calls += 1
            if self.calls != nth:
                return real(*args, **named)
            if after:
                real(*args, **named)
            raise OSError(error, os.strerror(error))

        self._patch.setattr(os, name, failing)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk that can be made to fail."""
    return Disk(monkeypatch)


@pytest.mark.parametrize("after", [False, True], ids=["undone", "done"])
@pytest.mark.parametrize(
    ("name", "error"),
    [("open", errno.EROFS), ("fsync", errno.ENOSPC), ("replace", errno.EIO), ("mkdir", errno.EACCES)],
)
def test_a_disk_that_fails_loses_nothing(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch, name: str, error: int, after: bool
) -> None:
    """At every step of a run that makes 300 entries 600: the old log is whole, and the next run finishes the new."""
    nth, fresh = 1, tmp_path / "fresh"
    LOG.render(fresh, 600)
    while True:
        folder = tmp_path / f"step-{nth}"
        LOG.render(folder, 300)
        with monkeypatch.context() as patch:
            disk = Disk(patch)
            disk.fail(name, nth, error, after=after)
            try:
                LOG.render(folder, 600)
            except CorrigendaError as fault:
                assert (fault.code, fault.exit_code) == ("UNAVAILABLE", 7)
                assert os.strerror(error) in fault.message and str(folder) in fault.message
            if disk.calls < nth:
                break
        assert shown(folder) in (300, 600)
        LOG.render(folder, 600)
        assert shown(folder) == 600
        made = files(folder)
        assert {at: made[at] for at in files(fresh)} == files(fresh)
        assert not [at for at in made if "aside" in at]
        nth += 1
    assert nth > 1


@contextmanager
def small_files() -> Iterator[None]:
    """Let the system itself refuse files of more than 4 KiB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_the_system_refuses(tmp_path: Path) -> None:
    """No half of a tile is left under its name, and what was shown is shown."""
    LOG.render(tmp_path, 100)
    with small_files(), refused("UNAVAILABLE"):
        LOG.render(tmp_path, 600)
    assert shown(tmp_path) == 100
    assert not [name for name, raw in files(tmp_path).items() if "aside" in name or len(raw) > 4_096]
    LOG.render(tmp_path, 600)
    assert shown(tmp_path) == 600


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a disk of 128 KiB in memory; skipped where none can be mounted."""
    path = tmp_path / "disk"
    path.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=128k,mode=755", "tmpfs", str(path)]
    if os.getuid() or subprocess.run(line, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_a_disk_that_is_full(small_disk: Path) -> None:
    """A real one: the log that it holds is whole, and goes on once there is room."""
    LOG.render(small_disk, 1_000)
    with refused("UNAVAILABLE") as refusal:
        LOG.render(small_disk, 5_000)
    assert os.strerror(errno.ENOSPC) in refusal.error.message and refusal.error.exit_code == 7
    assert shown(small_disk) == 1_000
    subprocess.run(["mount", "-o", "remount,size=2m", str(small_disk)], check=True)
    LOG.render(small_disk, 5_000)
    assert shown(small_disk) == 5_000


def test_a_disk_that_is_read_only(small_disk: Path) -> None:
    """A real one, with a log that is up to date or not, or none."""
    LOG.render(small_disk / "log", 300)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for folder in (small_disk / "log", small_disk / "new"):
        with refused("UNAVAILABLE") as refusal:
            LOG.render(folder, 600)
        assert os.strerror(errno.EROFS) in refusal.error.message
    assert LOG.render(small_disk / "log", 300).written == 0
    assert shown(small_disk / "log") == 300


def test_what_a_killed_run_left_is_cleared_away(tmp_path: Path) -> None:
    """A file written aside has no name that anybody asks for."""
    (tmp_path / ".aside-0123456789abcdef").write_bytes(b"half")
    LOG.render(tmp_path, 300)
    assert not list(tmp_path.glob(".aside*"))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """Else the slower one could put an older checkpoint over a newer."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with refused("UNAVAILABLE") as refusal:
            LOG.render(tmp_path, 5)
    finally:
        os.close(descriptor)
    assert "process" in refusal.error.message and files(tmp_path) == {}


# ---------------------------------------------------------------- what belongs to another log, or to nobody


@contextmanager
def unchanged(folder: Path, code: str, exit_code: int) -> Iterator[None]:
    """Expect a refusal that leaves every file as it was."""
    before = files(folder)
    with refused(code) as refusal:
        yield
    assert refusal.error.exit_code == exit_code
    assert files(folder) == before


def test_another_ledger_s_directory_is_left_alone(tmp_path: Path) -> None:
    """Its checkpoint tells whose it is, whichever of the two is longer."""
    for number, size in enumerate((3, 300, 700)):
        folder = tmp_path / str(number)
        Log(origin="other.example", seed=2).render(folder, size)
        with unchanged(folder, "VALIDATION_FAILED", 2):
            LOG.render(folder, 300)


def test_a_checkpoint_by_another_key_is_no_beginning(tmp_path: Path) -> None:
    """The name alone does not make it ours."""
    Log(seed=2).render(tmp_path, 300)
    with unchanged(tmp_path, "INTEGRITY_BROKEN", 11):
        LOG.render(tmp_path, 600)


def test_a_forked_log_does_not_go_on_where_the_other_ended(tmp_path: Path) -> None:
    """The same key and other entries: nothing is added to what was published."""
    Log(word="forked").render(tmp_path, 300)
    with unchanged(tmp_path, "INTEGRITY_BROKEN", 11):
        LOG.render(tmp_path, 600)


def test_a_shorter_log_does_not_take_a_longer_one_s_place(tmp_path: Path) -> None:
    """A published checkpoint is never taken back."""
    LOG.render(tmp_path, 600)
    with unchanged(tmp_path, "INTEGRITY_BROKEN", 11):
        LOG.render(tmp_path, 599)


def test_tiles_of_another_log_without_its_checkpoint(tmp_path: Path) -> None:
    """A directory that another ledger left half-written: the first tile that differs is named, and stays."""
    Log(word="other").render(tmp_path, 600)
    (tmp_path / "checkpoint").unlink()
    with unchanged(tmp_path, "INTEGRITY_BROKEN", 11):
        LOG.render(tmp_path, 700)


@pytest.mark.parametrize("name", ["tile/0/000", "tile/0/002.p/88", "tile/1/000.p/2", "tile/entries/001"])
@pytest.mark.parametrize("change", ["flip", "cut", "empty", "more"])
def test_an_altered_or_half_written_file_is_named_and_kept(tmp_path: Path, name: str, change: str) -> None:
    """Evidence is not overwritten; without the file the next run makes it anew."""
    LOG.render(tmp_path, 600)
    path = tmp_path / name
    raw = path.read_bytes()
    changed = {"flip": bytes([raw[0] ^ 1]) + raw[1:], "cut": raw[:-1], "empty": b"", "more": raw + bytes(32)}
    path.write_bytes(changed[change])
    before = files(tmp_path)
    with refused("INTEGRITY_BROKEN") as refusal:
        LOG.render(tmp_path, 600)
    assert str(path) in refusal.error.message and refusal.error.exit_code == 11
    assert files(tmp_path) == before
    path.unlink()
    LOG.render(tmp_path, 600)
    assert shown(tmp_path) == 600


@pytest.mark.parametrize("checkpoint", [b"", b"somebody's letter\n", b"\xff" * 2_000_000])
def test_a_directory_of_somebody_else_s_is_left_alone(tmp_path: Path, checkpoint: bytes) -> None:
    """A file that happens to be called checkpoint is not replaced."""
    (tmp_path / "checkpoint").write_bytes(checkpoint)
    with unchanged(tmp_path, "VALIDATION_FAILED", 2):
        LOG.render(tmp_path, 5)


@pytest.mark.parametrize("place", ["", "tile", "tile/0", "tile/entries"])
def test_a_file_where_a_directory_belongs(tmp_path: Path, place: str) -> None:
    """The thing in the way is named and kept."""
    path = tmp_path / "log" / place if place else tmp_path / "log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"mine")
    with refused("VALIDATION_FAILED") as refusal:
        LOG.render(tmp_path / "log", 5)
    assert str(path) in refusal.error.message and path.read_bytes() == b"mine"


def test_a_directory_where_a_tile_belongs(tmp_path: Path) -> None:
    """The other way round."""
    (tmp_path / "tile" / "0" / "000").mkdir(parents=True)
    with refused("VALIDATION_FAILED"):
        LOG.render(tmp_path, 256)


# ---------------------------------------------------------------- what the ledger gives


def test_nothing_is_written_of_leaves_that_do_not_lead_to_the_root(tmp_path: Path) -> None:
    """A flipped bit in a leaf hash would be in every proof from then on."""

    def flipped(first: int, count: int) -> bytes:
        raw = LOG.leaves(first, count)
        return raw[:-1] + bytes([raw[-1] ^ 1])

    with refused("INTEGRITY_BROKEN"):
        LOG.render(tmp_path, 600, leaves=flipped)
    assert files(tmp_path) == {}


@pytest.mark.parametrize("missing", [1, 600])
def test_nothing_is_written_of_fewer_leaves(tmp_path: Path, missing: int) -> None:
    """A source that ends early is told where."""
    with refused("INTEGRITY_BROKEN"):
        LOG.render(tmp_path, 600, leaves=lambda first, count: LOG.leaves(first, count)[: -32 * missing])
    assert files(tmp_path) == {}


def test_an_envelope_that_is_not_the_leaf_s_is_told_by_its_position(tmp_path: Path) -> None:
    """What was hashed is what is published."""

    def other(first: int, count: int) -> list[bytes]:
        return [raw + b" " if raw == b"entry 300" else raw for raw in LOG.envelopes(first, count)]

    with refused("INTEGRITY_BROKEN") as refusal:
        LOG.render(tmp_path, 600, envelopes=other)
    assert refusal.details["position"] == 300
    assert not (tmp_path / "checkpoint").exists() and not (tmp_path / "tile/entries/001").exists()


def test_fewer_envelopes_than_leaves(tmp_path: Path) -> None:
    """An entry that is gone meanwhile."""
    with refused("INTEGRITY_BROKEN"):
        LOG.render(tmp_path, 600, envelopes=lambda first, count: LOG.envelopes(first, count - 1))
    assert not (tmp_path / "checkpoint").exists()
