"""A small ledger, and somebody who tampers with it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.ledgers import WrittenLedger
from tests.tampering import Tampering, write_nine


@pytest.fixture
def written(ledger_url: str, home: Path) -> Iterator[WrittenLedger]:
    """Return a ledger of nine entries, as `write_nine` describes it."""
    with closing(WrittenLedger(ledger_url, home)) as ledger:
        write_nine(ledger)
        yield ledger


@pytest.fixture
def tampering(written: WrittenLedger, ledger_url: str) -> Tampering:
    """Return the owner's hands on that ledger."""
    return Tampering(written, ledger_url)
