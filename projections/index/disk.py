"""What a directory of generations needs of the file system: one writer, durable writes, orderly removal.

Nothing here knows what a generation holds. A name that starts with a dot is unfinished or on its way out,
and is never read.
"""

import fcntl
import hashlib
import logging
import os
import secrets
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import msgspec

SET_ASIDE_KEPT = 2

_LOCK = "lock"
_WRITING = ".writing-"
_LEAVING = ".leaving-"
_SET_ASIDE = ".set-aside"

_log = logging.getLogger(__name__)


class StoredFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file must be: its length in bytes and its SHA-256 in hex."""

    size: int
    sha256: str


@contextmanager
def writer_lock(root: Path) -> Generator[bool, None, None]:
    """Hold the right to write under `root` and yield True, or yield False at once if another has it.

    Also False, with a line in the log, where nothing can be written: an index can do without.
    """
    handle = _open_lock(root)
    try:
        yield handle is not None and _locked(handle)
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def aside(root: Path) -> Generator[Path, None, None]:
    """Yield a new directory under `root` to write in; it goes at the end, with those of killed writers."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for rest in [*root.glob(f"{_WRITING}*"), *root.glob(f"{_LEAVING}*")]:
        shutil.rmtree(rest, ignore_errors=True)
    path = root / f"{_WRITING}{secrets.token_hex(8)}"
    path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write_durably(path: Path, chunks: Iterable[bytes]) -> StoredFile:
    """Write the new file `path`, readable by its owner only, and return what it must be from now on."""
    digest = hashlib.sha256()
    size = 0
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for chunk in chunks:
            size += file.write(chunk)
            digest.update(chunk)
        file.flush()
        os.fsync(file.fileno())
    return StoredFile(size=size, sha256=digest.hexdigest())


def publish_directory(written: Path, final: Path) -> None:
    """Make the directory `written` appear under its `final` name, whole, at once and durably."""
    _sync(written)
    written.rename(final)
    _sync(final.parent)


def retire(path: Path) -> None:
    """Remove a directory that is no longer wanted. Renamed first, so that no reader finds it half gone."""
    leaving = path.with_name(f"{_LEAVING}{path.name}")
    try:
        path.rename(leaving)
    except OSError as error:
        _log.warning("generation.not_retired", extra={"errno": error.errno})
    shutil.rmtree(leaving, ignore_errors=True)


def set_aside(path: Path) -> None:
    """Rename `path` so that it is not read again, and keep the last two such. A failure is logged only."""
    try:
        path.rename(path.with_name(f"{path.name}{_SET_ASIDE}"))
    except OSError as error:
        _log.warning("generation.not_set_aside", extra={"errno": error.errno})
    for old in sorted(path.parent.glob(f"*{_SET_ASIDE}"), key=_changed_ns)[:-SET_ASIDE_KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def directories(root: Path, prefix: str) -> list[Path]:
    """Return the finished directories under `root` whose names start with `prefix`, greatest name first."""
    found = [path for path in root.iterdir() if path.name.startswith(prefix)]
    return sorted((path for path in found if not path.name.endswith(_SET_ASIDE)), reverse=True)


def _changed_ns(path: Path) -> tuple[int, str]:
    # The time of the last change of name; one that another process has just removed counts as the oldest.
    try:
        return (path.lstat().st_ctime_ns, path.name)
    except OSError:
        return (0, path.name)


def _open_lock(root: Path) -> int | None:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(root / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        _log.warning("generation.no_lock", extra={"errno": error.errno})
        return None


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
