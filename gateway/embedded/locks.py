"""File locks that die with their holder: flock(2) on a descriptor, given up only by closing it.

A lock belongs to the open description, so a forked child or an heir of the descriptor keeps it, and a killed
process drops it without anybody's help. Standard library only: the watcher runs on this after its virtual
environment may have been deleted. Must never unlock a descriptor that another process shares.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

SHARED = fcntl.LOCK_SH
EXCLUSIVE = fcntl.LOCK_EX

_POLL_S = 0.02
_PATIENCE_S = 2.0


def open_lock(path: Path) -> int:
    """Return a descriptor of the lock file, made if it is missing. Never follows a link."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def try_lock(descriptor: int, how: int) -> bool:
    """Lock without waiting; report whether it was free. OSError where the file system has no locks."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock_own(descriptor: int) -> None:
    """Give up a lock whose descriptor no other process shares, and keep the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def try_take(path: Path, how: int = EXCLUSIVE) -> int | None:
    """Return a locked descriptor of `path`, or None where another holds it."""
    while True:
        descriptor = open_lock(path)
        try:
            if not try_lock(descriptor, how):
                os.close(descriptor)
                return None
            if _still_there(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def take(path: Path, how: int, *, waiting: Callable[[str], None] | None = None) -> int:
    """Return a locked descriptor of `path`, waiting for it without limit.

    After two seconds `waiting` is called, once, with the text its holder has left in the file (its pid).
    """
    began, told = time.monotonic(), waiting is None
    while (descriptor := try_take(path, how)) is None:
        if not told and waiting is not None and time.monotonic() - began > _PATIENCE_S:
            told = True
            waiting(holder(path))
        time.sleep(_POLL_S)
    return descriptor


def is_free(path: Path) -> bool:
    """Report whether nobody holds the lock."""
    descriptor = try_take(path)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def sign(descriptor: int) -> None:
    """Leave this process's pid in the file. It serves messages only: nobody is judged or signalled by it."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)


def holder(path: Path) -> str:
    """Return the pid that the last holder left in the file, or `?`."""
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace").strip()[:20] or "?"
    return "?"


def _still_there(descriptor: int, path: Path) -> bool:
    """Report whether the path still names the locked file: it may have been replaced while we waited."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
