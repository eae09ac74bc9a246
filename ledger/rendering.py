"""A log rendered into a directory, from which anybody can check it with programs of their own (FORMAT.md §13).

Nothing is written before the leaves have led to the signed root, nothing that is there is overwritten but an older
checkpoint of the same log, and the new one comes last: whenever this stops, the directory is a whole log, and the next
run goes on from there. It takes one tile at a time, so memory does not grow with the log.
"""

import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from ledger import notes, tiles
from ledger.chain import broken
from ledger.digest import leaf
from ledger.errors import CorrigendaError, failure
from ledger.limits import NOTE_BYTES_MAX
from ledger.notes import Checkpoint, NotANote, VerifierKey
from ledger.tiles import ENTRIES, Envelopes, Leaves, Tile
from ledger.tree import Frontier

CHECKPOINT = "checkpoint"
MISMATCH = 11  # the exit of a checkpoint that is not borne out
_ASIDE = ".aside-"
_LEAVES_AT_ONCE = 4_096
_BUNDLE_BYTES_MAX = tiles.WIDTH * (tiles.ENTRY_BYTES_MAX + 2)

Progress = Callable[[int, int], None]


class Rendered(Struct, frozen=True, kw_only=True):
    """What a run did: the checkpoint that the directory shows now, and how many files it wrote and found there."""

    size: int
    root: bytes
    written: int
    kept: int


def render(
    folder: Path,
    note: bytes,
    key: VerifierKey,
    *,
    leaves: Leaves,
    envelopes: Envelopes,
    progress: Progress | None = None,
) -> Rendered:
    """Make a directory show the log of a checkpoint, which this key signed under its own name.

    `envelopes` is asked for what the directory lacks, `leaves` for every entry, twice. `progress` is told how many
    entries are done and how many there are. Errors: NotANote (not this key's checkpoint), VALIDATION_FAILED (the place
    is no directory, or another log's), INTEGRITY_BROKEN (leaves, envelopes or files that do not belong to the
    checkpoint; exit 11 where it is a file or the checkpoint that was there), UNAVAILABLE (it cannot be written, or
    another process is at it). Whatever is raised, what the directory showed before it still shows.
    """
    checkpoint = notes.open_checkpoint(note, key)
    with _reported(folder), _held(folder):
        earlier = _earlier(folder / CHECKPOINT, key)
        _check_roots(leaves, checkpoint, earlier)
        target = _Target(folder)
        for tile, raw in _grown(checkpoint.size, leaves):
            if tile.level == 0:
                _put_entries(target, tile, raw, envelopes)
            target.put(tile, raw)
            if progress is not None and tile.level == 0:
                progress(tile.first + tile.width, checkpoint.size)
        target.show(note)
    return Rendered(size=checkpoint.size, root=checkpoint.root, written=target.written, kept=target.kept)


# ---------------------------------------------------------------- what is checked first


def _earlier(path: Path, key: VerifierKey) -> Checkpoint | None:
    """Return the checkpoint that the directory shows, if it is this log's; another one is refused."""
    raw = _read(path, NOTE_BYTES_MAX)
    if raw is None:
        return None
    try:
        claim = notes.parse_checkpoint(notes.parse_note(raw).text)
    except NotANote as fault:
        raise _foreign(path, f"it is no checkpoint: {fault}") from fault
    if claim.origin != key.name:
        raise _foreign(path, "it is another log's checkpoint")
    try:
        return notes.open_checkpoint(raw, key)
    except NotANote as fault:
        raise _mismatch(f"{path} to be signed by this log's key", f"that it is not: {fault}") from fault


def _check_roots(leaves: Leaves, checkpoint: Checkpoint, earlier: Checkpoint | None) -> None:
    """Refuse leaves that do not lead to the signed root, or that leave what the directory showed before."""
    if earlier is not None and earlier.size > checkpoint.size:
        raise _mismatch(f"at least the {earlier.size} entries that the directory shows", f"{checkpoint.size}")
    wanted = [(checkpoint, "the checkpoint")]
    if earlier is not None:
        wanted.insert(0, (earlier, "the checkpoint that the directory shows"))
    grown = Frontier()
    for one, what in wanted:
        while grown.size < one.size:
            count = min(_LEAVES_AT_ONCE, one.size - grown.size)
            raw = leaves(grown.size, count)
            if len(raw) != count * tiles.HASH_BYTES:
                raise broken(grown.size, "tree", f"{count} leaf hashes", f"{len(raw)} bytes")
            for own in tiles.split(raw):
                grown.append(own)
        if grown.root() != one.root:
            expected = f"root {one.root.hex()} of the first {one.size} entries, as {what} says"
            raise _mismatch(expected, f"root {grown.root().hex()}")


def _grown(size: int, leaves: Leaves) -> Iterator[tuple[Tile, bytes]]:
    """Yield every tile of hashes, of the widths that belong to the size."""
    try:
        yield from tiles.grow(size, leaves)
    except tiles.WrongWidth as fault:
        raise broken(0, "tree", "as many leaf hashes as before", str(fault)) from fault


def _put_entries(target: "_Target", tile: Tile, hashes: bytes, envelopes: Envelopes) -> None:
    """Put the envelopes of a tile of leaf hashes beside it; one that is not what was hashed is refused."""
    entries = tile._replace(level=ENTRIES)
    found = target.read(entries)
    if found is not None:
        if not tiles.holds(found, hashes):
            raise target.other(entries, found)
        target.keep(entries)
        return
    raws = envelopes(tile.first, tile.width)
    for position, (raw, own) in enumerate(zip(raws, tiles.split(hashes), strict=False), start=tile.first):
        if leaf(raw) != own:
            raise broken(position, "tree", "the envelope that the leaf hash is of", "another")
    try:
        target.put(entries, tiles.bundle(entries, raws))
    except tiles.WrongWidth as fault:
        raise broken(tile.first, "tree", "the envelopes that the leaf hashes are of", str(fault)) from fault


# ---------------------------------------------------------------- the directory


class _Target:
    """The directory, held by this process: files come into being whole, and only a checkpoint is ever replaced."""

    def __init__(self, folder: Path) -> None:
        self.written = 0
        self.kept = 0
        self._folder = folder
        self._folders: set[Path] = {folder}
        for left in folder.glob(f"{_ASIDE}*"):  # a run that was killed left it, and nobody reads it
            left.unlink()

    def read(self, tile: Tile) -> bytes | None:
        """Return what is there under a tile's name, or None; longer than any tile, only the beginning."""
        return _read(self._folder / tiles.path(tile), _BUNDLE_BYTES_MAX + 1)

    def put(self, tile: Tile, raw: bytes) -> None:
        """Write a tile, unless it is there already; with other bytes it is refused."""
        found = self.read(tile)
        if found is not None and found != raw:
            raise self.other(tile, found)
        if found is not None:
            self.keep(tile)
            return
        path = self._folder / tiles.path(tile)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._place(path, raw)
        self.written += 1
        self._settle(tile)

    def keep(self, tile: Tile) -> None:
        """Leave a tile as it is."""
        self.kept += 1
        self._settle(tile)

    def show(self, note: bytes) -> None:
        """Replace the checkpoint, once everything that it covers is on the disk."""
        for folder in self._folders:
            _sync(folder)
        path = self._folder / CHECKPOINT
        if _read(path, NOTE_BYTES_MAX) != note:
            self._place(path, note)
            _sync(self._folder)

    def other(self, tile: Tile, found: bytes) -> CorrigendaError:
        """Return the refusal of a file that holds something else."""
        path = self._folder / tiles.path(tile)
        return _mismatch(
            f"{path} to hold what this ledger has there",
            f"{len(found)} bytes of something else; a tile is never overwritten. If a crash left the file, or it was "
            "altered, remove it and repeat this; if the directory is another ledger's, name another one",
        )

    def _place(self, path: Path, raw: bytes) -> None:
        aside = self._folder / f"{_ASIDE}{secrets.token_hex(8)}"
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            with os.fdopen(descriptor, "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(descriptor)
            aside.replace(path)
        except BaseException:
            with suppress(OSError):
                aside.unlink()
            raise

    def _settle(self, tile: Tile) -> None:
        """Note the folders that have to be synced, and remove the narrower forms of a tile that is full now.

        Who looks for one of those finds the full tile instead.
        """
        path = self._folder / tiles.path(tile)
        for folder in path.parents:
            if folder in self._folders:
                break
            self._folders.add(folder)
        narrow = path.with_name(f"{path.name}.p")
        if not tile.is_full or not narrow.is_dir():
            return
        for width in range(1, tiles.WIDTH):
            (narrow / str(width)).unlink(missing_ok=True)
        with suppress(OSError):
            narrow.rmdir()


def _read(path: Path, bytes_max: int) -> bytes | None:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            return file.read(bytes_max)
    except FileNotFoundError:
        return None


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _held(folder: Path) -> Generator[None]:
    """Make the directory if it is not there, and keep other processes from rendering into it."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------- refusals


@contextmanager
def _reported(folder: Path) -> Generator[None]:
    """Turn what the file system says into the refusals of the registry."""
    try:
        yield
    except BlockingIOError as error:
        raise failure(
            "UNAVAILABLE", f"Another process is writing tiles to {folder} now. Repeat this when it has ended."
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG):
            raise _foreign(
                Path(error.filename or folder), f"something else is in its way ({error.strerror})"
            ) from error
        raise failure(
            "UNAVAILABLE",
            f"Tiles were to be written to {folder}, and that failed: {error.strerror}. What the directory showed "
            "before it still shows. Make room, or give this user a directory to write to, and repeat this: it goes on "
            "from what is there.",
            directory=str(folder),
        ) from error


def _foreign(path: Path, found: str) -> CorrigendaError:
    return failure(
        "VALIDATION_FAILED",
        f"A directory was expected that is new or shows this ledger's log; {path} does not belong there: {found}. "
        "Nothing that was there was changed. Name another directory.",
        file=str(path),
    )


def _mismatch(expected: str, found: str) -> CorrigendaError:
    return failure(
        "INTEGRITY_BROKEN",
        f"Ledger and tile directory were expected to agree on {expected}; found was {found}. Nothing that was there "
        "was changed.",
        check="checkpoints",
        expected=expected,
        found=found,
        exit_code=MISMATCH,
    )
