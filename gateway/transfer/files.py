"""A file that appears whole or not at all: written aside, synced, and put in its place once nothing can go wrong.

Nothing is ever written over what is there.
"""

import gzip
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from gateway.audit import asides
from ledger.errors import refuse
from ledger.placing import place_file


class Aside:
    """A file under another name beside the one that it shall have."""

    def __init__(self, out: Path, path: Path, raw: IO[bytes]) -> None:
        self._out = out
        self._path = path
        self._raw = raw
        # Without a time and a name in its header, the same lines are packed into the same bytes.
        packed = out.name.endswith(".gz")
        self.file = cast(IO[bytes], gzip.GzipFile("", "wb", 6, raw, mtime=0)) if packed else raw

    def finish(self) -> int:
        """End the file and sync it; return its size in bytes."""
        if self.file is not self._raw:
            self.file.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        return self._path.stat().st_size

    def place(self) -> None:
        """Give the finished file its name. Errors: VALIDATION_FAILED (something is there)."""
        try:
            place_file(self._path, self._out)
        except FileExistsError:
            raise asides.taken(self._out) from None
        descriptor = os.open(self._out.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def aside(out: Path) -> Generator[Aside]:
    """Give a file to write, which is gone afterwards if it was not placed.

    Errors: VALIDATION_FAILED (something is there already), UNAVAILABLE (it cannot be written).
    """
    try:
        asides.check_free(out)
        with asides.beside(out) as path:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb", buffering=1024 * 1024) as raw:
                yield Aside(out, path, raw)
    except OSError as error:
        refuse(
            "UNAVAILABLE",
            f"The export cannot be written at {out}: {error.strerror or error}. Nothing lies there. Mend that, and try "
            "again.",
        )
