"""Leaf hashes of many positions at once are those of each."""

from pathlib import Path

from ledger.opening import attach
from ledger.walk import Walk
from tests.ledgers import WrittenLedger


def test_many_leaves_are_read_as_each_alone(written: WrittenLedger, home: Path) -> None:
    """Given positions near and far, below all and beyond the head, each has the leaf hash that it has alone."""
    ours = written.ledger
    fresh = attach(written.database, ledger=ours.store.ledger, tenant="local", files=written.files)
    fresh.catch_up()
    for reader in (ours, fresh):
        for wanted in ([-1, 0, 1, 4, 8], [7, 8, 9, 400], [2, 2], [-5, -1], [9, 12], [*range(9)], []):
            assert reader.walk.leaves(wanted) == {one: alone(reader.walk, one) for one in wanted}
    assert None not in fresh.walk.leaves(range(9)).values()
    fresh.close()


def alone(walk: Walk, position: int) -> bytes | None:
    """Return the leaf hash at a position, as a page that begins there has it."""
    return walk.leaves_from(position, 1) or None if position >= 0 else None
