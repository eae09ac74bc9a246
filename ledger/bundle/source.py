"""Where a bundle's bytes come from: a directory, or a tar file, whole or compressed. Read strictly, and never trusted.

Nothing is opened but regular files with names that a bundle has; a link, a device or another path is refused. Of a tar
file only what the signed listing names is unpacked, into a folder of our own, each file no longer than it says.
"""

import gzip
import os
import stat
import tempfile
import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from ledger.bundle.layout import FILES, LISTING_BYTES_MAX, UNPACKED_MAX, Listed, Malformed, is_file_name

_BLOCK = 512
_CHUNK = 1024 * 1024
_PADDING_BLOCKS_MAX = 21  # two that end the file, the first of which may be the last of a record of 20
_GZIP = b"\x1f\x8b"

Lister = Callable[[bytes], Mapping[str, Listed]]  # checks the note `files`, and returns what it lists


class Folder:
    """The files of a bundle in a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> set[str]:
        """Return the names of all files; anything else that lies there is Malformed."""
        found: set[str] = set()
        waiting = [""]
        while waiting:
            prefix = waiting.pop()
            with os.scandir(self.root / prefix) as entries:
                empty = True
                for entry in entries:
                    empty = False
                    name = prefix + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{name}/")
                    elif entry.is_file(follow_symlinks=False) and (name == FILES or is_file_name(name)):
                        found.add(name)
                    else:
                        raise Malformed("it holds something that is no file of a bundle")
                if empty:
                    raise Malformed("it holds an empty directory")
        return found

    @contextmanager
    def open(self, name: str) -> Generator[IO[bytes]]:
        """Open a file that lies there itself, not behind a link. Missing: Malformed."""
        try:
            descriptor = os.open(self.root / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise Malformed(f"the file {name} is missing, or is a link") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Malformed(f"{name} is no file")
        with os.fdopen(descriptor, "rb") as file:
            yield file

    def read(self, name: str, limit: int) -> bytes:
        """Return a file's bytes; more than `limit` of them are Malformed."""
        with self.open(name) as file:
            raw = file.read(limit + 1) if os.fstat(file.fileno()).st_size <= limit else b""
            if len(raw) > limit or file.tell() < os.fstat(file.fileno()).st_size:
                raise Malformed(f"the file {name} is larger than {limit} bytes")
            return raw


@contextmanager
def unpacked(path: Path, listed: Lister) -> Generator[tuple[Folder, Mapping[str, Listed]]]:
    """Open the bundle at a path, its listing checked by `listed` before anything else is read.

    Errors: those of `listed`, Malformed, OSError (it is not there, or cannot be read).
    """
    if path.is_dir():
        folder = Folder(path)
        yield folder, listed(folder.read(FILES, LISTING_BYTES_MAX))
        return
    if path.exists() and not path.is_file():
        raise Malformed("it is neither a directory nor a file")
    with path.open("rb") as raw, tempfile.TemporaryDirectory(prefix="corrigenda-bundle-") as aside:
        compressed = raw.read(2) == _GZIP
        raw.seek(0)
        file = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if compressed else raw
        try:
            most = UNPACKED_MAX * path.stat().st_size + LISTING_BYTES_MAX
            files = _unpack(file, Path(aside), listed, most)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise Malformed("it is no whole gzip file") from error
        yield Folder(Path(aside)), files


def _unpack(file: IO[bytes], root: Path, listed: Lister, most: int) -> Mapping[str, Listed]:
    name, size = _header(file)
    if name != FILES or size > LISTING_BYTES_MAX:
        raise Malformed("it is no tar file that begins with the listing")
    note = _exactly(file, size)
    _skip_padding(file, size)
    files = listed(note)
    if sum(one.size for one in files.values()) > most:
        raise Malformed("it would become far larger than it is")
    (root / FILES).write_bytes(note)
    for name, one in sorted(files.items()):
        if _header(file) != (name, one.size):
            raise Malformed(f"where the file {name} was expected, the tar file holds another one")
        _write(file, root / name, one.size)
        _skip_padding(file, one.size)
    _check_end(file)
    return files


def _header(file: IO[bytes]) -> tuple[str, int]:
    """Return the name and size of the next member, a plain file (POSIX ustar); of anything else, Malformed."""
    block = _exactly(file, _BLOCK)
    try:
        name = block[:100].rstrip(b"\0").decode("ascii")
        size = int(block[124:136].rstrip(b"\0 ") or b"0", 8)
        checksum = int(block[148:156].rstrip(b"\0 ") or b"0", 8)
    except ValueError as error:
        raise Malformed("it is no plain tar file") from error
    counted = sum(block[:148]) + 8 * 0x20 + sum(block[156:])
    plain = block[156:157] == b"0" and block[257:265] == b"ustar\x0000" and not block[345:500].strip(b"\0")
    if checksum != counted or size < 0 or not plain:
        raise Malformed("the tar file holds something that is no plain file")
    return name, size


def _write(file: IO[bytes], path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as target:
        while size:
            chunk = _exactly(file, min(size, _CHUNK))
            target.write(chunk)
            size -= len(chunk)


def _skip_padding(file: IO[bytes], size: int) -> None:
    if _exactly(file, -size % _BLOCK).strip(b"\0"):
        raise Malformed("the tar file has bytes between its files")


def _check_end(file: IO[bytes]) -> None:
    rest = file.read(_BLOCK * _PADDING_BLOCKS_MAX + 1)
    if not 2 * _BLOCK <= len(rest) <= _BLOCK * _PADDING_BLOCKS_MAX or rest.strip(b"\0"):
        raise Malformed("the tar file does not end behind what the listing names")


def _exactly(file: IO[bytes], size: int) -> bytes:
    raw = file.read(size)
    if len(raw) != size:
        raise Malformed("it ends too early")
    return raw
