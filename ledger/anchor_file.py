"""The anchor's file: how it is made, opened and found to be whole; what SQLite says of it in the ledger's words.

It is made aside and put in place by `link(2)`, so a file that is there is whole: an empty or cut one was damaged.
"""

import os
import secrets
import sqlite3
import stat
import zlib
from contextlib import suppress
from pathlib import Path

from ledger.digest import GENESIS
from ledger.sql import load

FORMAT = "corrigenda-anchor/1"
BUSY_S = 10.0
# Where the log was not copied into the file before it is as long, the commit that finds it so does it (`anchor_log`).
CHECKPOINT_PAGES = 48_000

CACHE_KIB = 16_384

LEAVES_PER_ROW = 256
LEAF_BYTES = 32

STATEMENTS = load("ledger", "anchor.sql")
_JOINED = ["%r," * many for many in range(8)]
_TABLES = [name for name in STATEMENTS if name.startswith("make_")]


class Unusable(Exception):
    """An anchor that is not what was written, is another ledger's, or cannot be read or written now.

    The message completes "the anchor …". `passing` is true where only the moment or the rights are wrong: a full disk,
    a file that may not be written. Then nothing is known to be wrong with what it holds.
    """

    def __init__(self, found: str, *, passing: bool = False) -> None:
        super().__init__(found)
        self.passing = passing


def is_there(path: Path) -> bool:
    """Report whether there is an anchor at the path, after a look at whether it is one of ours to open.

    Anything but a plain file is refused, and one that others may write: what it holds could be theirs. One that others
    may only read is closed to them.
    """
    left = os.path.lexists(f"{path}-wal")  # before the look at the file, which is always made first
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        if left:
            raise Unusable(f"is gone, and the log of what was last written to it is still at {path}-wal") from None
        return False
    except OSError as error:
        raise Unusable(f"cannot be read: {error.strerror}", passing=True) from error
    if not stat.S_ISREG(found.st_mode):
        raise Unusable("is no file")
    if found.st_size == 0:
        raise Unusable("is an empty file")
    if found.st_mode & 0o022:
        raise Unusable(f"may be written by others (its mode is {stat.S_IMODE(found.st_mode):04o})")
    if found.st_mode & 0o055:
        _close_to_others(path)
    for beside in (f"{path}-wal", f"{path}-shm"):  # they were made with the file's mode: perhaps it was read-only then
        _close_to_others(beside)
    return True


def _close_to_others(path: Path | str) -> None:
    with suppress(OSError):
        if os.stat(path, follow_symlinks=False).st_mode & 0o777 != 0o600:
            os.chmod(path, 0o600)


def checksum(*columns: str | int | bytes) -> int:
    """Return what ends a row, so that bytes which a disk gives back wrong are noticed when they are read."""
    crc = 0
    for column in columns:
        crc = zlib.crc32(column if type(column) is bytes else f"{column!r},".encode(), crc)
    return crc


def checksum_of_texts(columns: tuple[str | int, ...]) -> int:
    """Return the same for columns without bytes, of which many rows are written at once, in half the time."""
    return zlib.crc32((_JOINED[len(columns)] % columns).encode())


def make(path: Path, *, ledger: str, origin: str, trust: str) -> None:
    """Make an anchor of nothing, mode 0600 in a folder of mode 0700, unless another process was first."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            with Faults(path):
                connection = sqlite3.connect(aside, isolation_level=None)
                try:
                    fill(connection, ledger=ledger, origin=origin, trust=trust)
                finally:
                    connection.close()
            _put_in_place(aside, path)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise Unusable(f"cannot be made: {error.strerror}", passing=True) from error


def fill(connection: sqlite3.Connection, *, ledger: str, origin: str, trust: str) -> None:
    """Write the tables of an anchor that has seen nothing yet."""
    with Transaction(connection, "BEGIN"):
        for table in _TABLES:
            connection.execute(STATEMENTS[table])
        connection.execute(
            STATEMENTS["insert_meta"], (FORMAT, ledger, origin, GENESIS, trust, checksum(0, GENESIS, 1, trust))
        )


def sweep(path: Path) -> None:
    """Remove what makers that were killed have left: the anchor is in its place, and nobody else's will get there."""
    with suppress(OSError):
        for left in path.parent.glob(f".{path.name}-*"):
            left.unlink(missing_ok=True)


def connect(path: Path) -> sqlite3.Connection:
    """Open a file that is there. It is shared with other processes, so it is set to write ahead."""
    with Faults(path):
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_S
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            # A statement of many rows keeps the pages that it changes until it ends: beyond 64 kB, in a file.
            connection.execute("PRAGMA temp_store = MEMORY")
            # A thousand requests, which are hashes, lie on nearly as many pages: what does not fit is written twice.
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        except BaseException:
            connection.close()
            raise
        return connection


def copied(path: Path) -> sqlite3.Connection:
    """Return a copy in memory of a file that may only be read.

    What was written last is in the log beside it. Without that it would end earlier than it did, and a ledger that was
    cut as far would look whole: the log is left out only where there is none.
    """
    with Faults(path):
        try:
            log = os.path.getsize(f"{path}-wal")
        except FileNotFoundError:
            log = 0
        source = sqlite3.connect(f"{path.as_uri()}?mode=ro{'' if log else '&immutable=1'}", uri=True, timeout=BUSY_S)
        try:
            held = in_memory()
            source.backup(held)
            return held
        finally:
            source.close()


def in_memory() -> sqlite3.Connection:
    """Return a database that nobody else sees."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def check(connection: sqlite3.Connection, path: Path, *, ledger: str, origin: str) -> None:
    """Refuse a file of another kind, of another ledger, or whose size and rows contradict each other."""
    with Faults(path), Transaction(connection, "BEGIN"):  # one sight of it: another process may be adding to it
        if connection.execute(STATEMENTS["read_format"]).fetchall() != [(FORMAT,)]:
            raise Unusable("is in no format that this version knows")
        ((found, named, size),) = connection.execute(STATEMENTS["read_meta"])
        if (found, named) != (ledger, origin):
            raise Unusable("belongs to another ledger")
        last = connection.execute(STATEMENTS["read_last_leaves"]).fetchall()
        leaves = last[0][0] * LEAVES_PER_ROW + last[0][1] // LEAF_BYTES if last else 0
        if leaves != size:
            raise Unusable(f"says that it holds {size} entries, and holds {leaves}")


class Faults:
    """Gives what SQLite or the system says about the file as Unusable, for as long as a block runs."""

    __slots__ = ("_path",)

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise Unusable(f"is not usable: {error}", passing=_passes(error)) from error
        if isinstance(error, OSError):
            raise Unusable(f"cannot be read: {error.strerror}", passing=True) from error


class Transaction:
    """Holds one transaction. One that an interrupt left open is undone first: nobody will end it."""

    __slots__ = ("_begin", "_connection")

    def __init__(self, connection: sqlite3.Connection, begin: str) -> None:
        self._connection = connection
        self._begin = begin

    def __enter__(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._connection.execute(self._begin)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            if error is None:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def _passes(error: sqlite3.Error) -> bool:
    """Report whether only the moment or the rights are wrong: all but a file that is damaged or no database at all."""
    if isinstance(error, sqlite3.ProgrammingError):
        return True  # it was closed
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH,
    )  # fmt: skip


def _put_in_place(aside: Path, path: Path) -> None:
    try:
        _sync(aside)
        os.link(aside, path)
    except OSError:
        if not os.path.lexists(path):
            raise
        return  # another process was first: its anchor is the one that counts, and it may have swept this one up
    _sync(path.parent)


def _sync(name: Path) -> None:
    descriptor = os.open(name, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
