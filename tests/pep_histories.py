"""The PEP histories that tests import: the excerpt that ships, and the whole, which is not part of the project."""

import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.imports import peps

EXCERPT = Path(peps.__file__).with_name("pep-excerpt.jsonl.gz")
WHOLE = Path(
    os.environ.get("CORRIGENDA_PEP_HISTORY")
    or Path(__file__).resolve().parents[2] / "shared" / "data" / "pep-history.jsonl.gz"
)


@dataclass(frozen=True)
class History:
    """A file, and what has to be in a ledger after it was imported. The links are the same in both."""

    path: Path
    rows: int
    lineages: int
    remembered: int
    retired: int
    heads: int

    @property
    def corrected(self) -> int:
        """Return how many rows replace a head."""
        return self.rows - self.remembered


HISTORIES = {
    "excerpt": History(EXCERPT, rows=665, lineages=210, remembered=233, retired=103, heads=130),
    "whole": History(WHOLE, rows=2_702, lineages=738, remembered=823, retired=312, heads=511),
}
LINKS, UNLINKS = 51, 4


def available(name: str) -> History:
    """Return one of the histories; the test is skipped, and says why, where it cannot be had."""
    found = HISTORIES[name]
    if not found.path.exists():
        pytest.skip("the PEP history is not part of the project; CORRIGENDA_PEP_HISTORY may name it")
    return found


def lines_of(path: Path) -> list[bytes]:
    """Return a history's lines."""
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def packed(path: Path, lines: Sequence[bytes]) -> Path:
    """Write lines as a file that can be imported, and return its path."""
    path.write_bytes(gzip.compress(b"".join(lines)))
    return path
