"""How many traces could not be stored, counted in the home: a database that refuses them cannot keep the count."""

import logging
import os
from pathlib import Path

_log = logging.getLogger(__name__)


class Losses:
    """How many traces of a ledger a home could not store, over all its processes: the size of a file."""

    def __init__(self, home: Path, ledger: str) -> None:
        self._path = home / "traces" / f"{ledger}.lost"

    def add(self, count: int) -> None:
        """Count some more. It is no harm if that cannot be written: the log has said it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(self._path, "ab") as file:
                file.write(b"." * count)
        except OSError as error:
            _log.warning("lost traces could not be counted: %s", error.strerror)

    @property
    def count(self) -> int:
        """Return how many there were."""
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0
