"""One signer at a time: of two that verified the same ledger at different moments, each has to see the other's note."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ledger.errors import failure

PATIENCE_S = 10.0
PAUSE_S = 0.05


@contextmanager
def alone(key: Path) -> Generator[None]:
    """Be the only one on this host that signs with the key in a file; it ends with the process that is.

    Errors: UNAVAILABLE (another one is, for as long as is waited).
    """
    try:
        descriptor = os.open(key, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        yield  # there is no key to sign with: whoever reads it says what is wrong with it
        return
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise failure(
                    "UNAVAILABLE",
                    f"Another process on this host has been signing with this key for {PATIENCE_S:.0f} s. Nothing was "
                    "signed; try again when it is done.",
                ) from error
        time.sleep(PAUSE_S)
