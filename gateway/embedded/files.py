"""Directories that are ours alone and files that are there whole or not at all.

Must never follow a link, nor take over what belongs to somebody else.
"""

import contextlib
import errno
import os
import pwd
import secrets
import stat
from pathlib import Path

from gateway.embedded.failures import cannot_become, trouble, writing


def own_directory(path: Path, mode: int, owner: pwd.struct_passwd) -> None:
    """Make or check `path`: a real directory of `owner` with exactly `mode`. A stranger's is refused."""
    with writing(path):
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() != owner.pw_uid:
            _give(path, owner)
            found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner.pw_uid:
            raise trouble(
                "UNSAFE_DIRECTORY",
                f"{path} must be a directory of {owner.pw_name}, and is something else or belongs to user id "
                f"{found.st_uid}. Remove it or give it back to its owner; nothing was changed.",
            )
        if stat.S_IMODE(found.st_mode) != mode:
            path.chmod(mode)


def _give(path: Path, owner: pwd.struct_passwd) -> None:
    try:
        os.chown(path, owner.pw_uid, owner.pw_gid)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EINVAL):
            raise cannot_become(owner) from error
        raise


def write_whole(path: Path, content: str, mode: int) -> None:
    """Replace `path` by `content` durably: a crash leaves the old file or the new one."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.fsencode(content))
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Bring a file, or a directory's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
