"""What can go wrong with the embedded server, as the registry's errors with one reason word each.

`details["reason"]` names the case for programs; the message says what was expected, what was found and what
to do next. Must never hold anything of a database's contents.
"""

import contextlib
import errno
import os
import pwd
from collections.abc import Generator
from pathlib import Path
from typing import Literal

from ledger.errors import CorrigendaError, failure

Reason = Literal[
    "NO_CLUSTER",
    "NO_SERVER",
    "START_FAILED",
    "NO_CONNECTION",
    "DISK_FULL",
    "NOT_DURABLE",
    "HOME_NOT_WRITABLE",
    "HOME_OF_ANOTHER",
    "HOME_COPIED",
    "HOME_DAMAGED",
    "UNSAFE_DIRECTORY",
    "NO_ACCOUNT",
    "OTHER_VERSION",
    "BUSY",
]

EXTERNAL = "set CORRIGENDA_DATABASE_URL to a PostgreSQL of your own"

_MEGABYTE = 1 << 20


class ServerGone(Exception):
    """The server went away while we looked: look again. Never leaves this package."""


def trouble(reason: Reason, message: str) -> CorrigendaError:
    """Return the registry's error for `reason`: another user's home is forbidden, all else unavailable.

    Data of another version stay that, so trying again is not offered for them.
    """
    code = "FORBIDDEN_ACTOR" if reason == "HOME_OF_ANOTHER" else "UNAVAILABLE"
    readable = message.encode("utf-8", "replace").decode()  # a path need not be UTF-8
    lasting = {"retriable": False} if reason == "OTHER_VERSION" else {}
    return failure(code, readable, reason=reason, **lasting)


def unwritable(path: Path, error: OSError) -> CorrigendaError:
    """Return what an OSError at `path` means: a full disk, a missing feature, or no permission."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full(path)
    if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
        return trouble(
            "HOME_NOT_WRITABLE",
            f"The file system of {path} has no file locks ({error.strerror}), and the embedded server needs "
            "them. Set CORRIGENDA_HOME to a directory on a local disk.",
        )
    return trouble(
        "HOME_NOT_WRITABLE",
        f"{path} must be writable by this user, and is not: {error.strerror}. Set CORRIGENDA_HOME to a "
        f"directory that this user owns and can write, or {EXTERNAL}.",
    )


def disk_full(path: Path, need_bytes: int = 0) -> CorrigendaError:
    """Return the error of a disk without room, with what is free and what is needed where that is known."""
    found = ""
    with contextlib.suppress(OSError):
        room = free_bytes(next(folder for folder in (path, *path.parents) if folder.exists()))
        needed = f", {need_bytes // _MEGABYTE} MB are needed" if need_bytes else ""
        found = f" ({room // _MEGABYTE} MB free{needed})"
    return trouble(
        "DISK_FULL",
        f"The disk that holds {path} is full{found}. Free some space and run the command again; what is "
        "stored is not damaged.",
    )


def cannot_become(account: pwd.struct_passwd) -> CorrigendaError:
    """Return the error of a root that may not change to the server's account."""
    return trouble(
        "NO_ACCOUNT",
        f"PostgreSQL does not run as root, and this root may not become {account.pw_name} (a container "
        f"without CAP_SETUID, or a user namespace of one id). Run as an ordinary user, or {EXTERNAL}.",
    )


def not_runnable(program: Path, account: pwd.struct_passwd, error: OSError) -> CorrigendaError:
    """Return what it means that `program` could not be run as `account`."""
    if error.errno in (errno.EPERM, errno.EINVAL):
        return cannot_become(account)
    return trouble(
        "NO_SERVER",
        f"{program} should run as {account.pw_name}, and does not: {error.strerror}. Let that account enter every "
        f"directory above it, on a disk and for a platform that may run it, or {EXTERNAL}.",
    )


def free_bytes(path: Path) -> int:
    """Return the bytes that an ordinary user may still write on the disk of `path`."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


@contextlib.contextmanager
def writing(path: Path) -> Generator[None, None, None]:
    """Turn any OSError of the body into the registry's error about `path`."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from error
