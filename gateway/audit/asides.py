"""Where an export is written before it has its name: a hidden folder beside it, that dies with its writer.

The folder holds a mark, on which its writer has a lock for as long as it lives. Its name is made of the export's, so of
two writers to one name the later one is refused before it has done anything. A writer that was killed leaves both, and
the next export into the same directory removes them. Nothing else is ever removed: only a folder of this user,
whose name has the shape, which is no link, and which holds our mark with a lock that nobody has.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ledger import digest
from ledger.errors import failure

MARK = "corrigenda-export"
_MARKED = b"An export was being written here. Its writer holds a lock on this file, or has died.\n"
_SHAPE = re.compile(r"\..{1,40}-[0-9a-f]{16}", re.DOTALL)
_NO_WAIT = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@contextmanager
def beside(out: Path) -> Generator[Path]:
    """Give a path on `out`'s file system under which nothing lies; what has not left it afterwards is removed.

    Until then nobody else is given one for `out`. What writers that were killed have left in `out`'s directory is
    removed first. Errors: VALIDATION_FAILED (somebody has `out`, or is about to), OSError (no folder there).
    """
    sweep(out.parent)
    folder = _hidden(out, secrets.token_hex(8))
    folder.mkdir(mode=0o700)
    try:
        with open(folder / MARK, "xb", buffering=0) as mark:
            if _lock(mark):
                folder = _reserved(out, folder)
            check_free(out)  # whoever had the name reserved until now may have put an export there
            yield folder / "export"
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # what was wrong is said by whoever wrote, and is wrong here too


def check_free(out: Path) -> None:
    """Refuse to write over what is there, or into no folder at all.

    Errors: VALIDATION_FAILED; OSError (nothing can have that name).
    """
    if not out.parent.is_dir():
        raise failure(
            "VALIDATION_FAILED",
            f"An export was to be made at {out}, and there is no folder {out.parent}. Make it, or give another name.",
            fields=[{"field": "out", "problem": "is in no folder"}],
        )
    with suppress(FileNotFoundError):
        out.lstat()
        raise taken(out)


def taken(out: Path) -> Exception:
    """Return the refusal to write over what is there."""
    return failure(
        "VALIDATION_FAILED",
        f"An export was to be made at {out}, and something is there. Give another name.",
        fields=[{"field": "out", "problem": "is taken"}],
    )


def sweep(directory: Path) -> None:
    """Remove what killed writers left in a directory, as far as that can be done."""
    with suppress(OSError), os.scandir(directory) as found:
        left = [one.path for one in found if _SHAPE.fullmatch(one.name) and one.is_dir(follow_symlinks=False)]
        for path in left:
            with suppress(OSError):
                _remove(path)


def _hidden(out: Path, ending: str) -> Path:
    """Return a name beside `out`, whose own may be as long as the file system allows: only a part of it is in it."""
    return out.with_name(f".{out.name[:40]}-{ending}")


def _lock(mark: IO[bytes]) -> bool:
    """Lock the mark and write its words, without which nobody takes the folder for one that was left.

    Where files cannot be locked there are no words, and what a killed writer leaves stays there.
    """
    try:
        fcntl.flock(mark, fcntl.LOCK_EX)
    except OSError:
        return False
    mark.write(_MARKED)
    return True


def _reserved(out: Path, folder: Path) -> Path:
    """Give a marked folder the one name that stands for `out`, and return where it is now.

    Where that name is taken by what no writer holds, and what could not be removed, the folder keeps its own.
    """
    reserved = _hidden(out, digest.public(os.fsencode(out.name))[-16:])
    try:
        folder.rename(reserved)  # fails if a folder with anything in it is there
    except OSError:
        if not _is_held(reserved / MARK):
            return folder
        raise failure(
            "VALIDATION_FAILED",
            f"An export was to be made at {out}, and another one is being made there, or cleared away after it was "
            "killed. Give another name, or try again when that has ended.",
            fields=[{"field": "out", "problem": "is being written"}],
        ) from None
    return reserved


def _is_held(path: Path) -> bool:
    """Report whether somebody has a lock on a mark."""
    try:
        mark = os.open(path, os.O_RDONLY | _NO_WAIT)
    except OSError:
        return False
    try:
        fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    finally:
        os.close(mark)
    return False


def _remove(path: str) -> None:
    """Remove a folder, if it is one that a killed writer left.

    All is looked at and removed by the folder's descriptor, so nobody can put another folder in its place meanwhile.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _NO_WAIT)
    try:
        mark = os.open(MARK, os.O_RDWR | _NO_WAIT, dir_fd=folder)
        try:
            if not _is_left(folder, mark):
                return
            with os.scandir(folder) as found:
                names = [(one.name, one.is_dir(follow_symlinks=False)) for one in found if one.name != MARK]
            for name, is_folder in names:
                shutil.rmtree(name, dir_fd=folder) if is_folder else os.unlink(name, dir_fd=folder)
            os.unlink(MARK, dir_fd=folder)  # last: what is removed in part only is known again the next time
        finally:
            os.close(mark)
    finally:
        os.close(folder)
    os.rmdir(path)  # of an empty folder only


def _is_left(folder: int, mark: int) -> bool:
    """Report whether a folder and its mark are this user's and ours, and nobody writes there any more."""
    if {os.fstat(folder).st_uid, os.fstat(mark).st_uid} != {os.geteuid()}:
        return False
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.read(mark, len(_MARKED) + 1) == _MARKED
