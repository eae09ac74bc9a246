"""Leaf hashes of many positions at once are those of each."""

from pathlib import Path

import pytest

from ledger import walk
from ledger.opening import attach
from tests.ledgers import WrittenLedger


@pytest.mark.parametrize("gap", [0, 1, 3, 256])
def test_many_leaves_are_read_as_each_alone(
    written: WrittenLedger, home: Path, monkeypatch: pytest.MonkeyPatch, gap: int
) -> None:
    """Given positions near and far, below all and beyond the head, each has the leaf hash that it has alone."""
    monkeypatch.setattr(walk, "_RUN_GAP", gap)
    ours = written.ledger
    fresh = attach(written.database, ledger=ours.store.ledger, tenant="local", files=written.files)
    fresh.catch_up()
    for reader in (ours, fresh):
        for wanted in ([-1, 0, 1, 4, 8], [7, 8, 9, 400], [2, 2], [-5, -1], [9, 12], [*range(9)], []):
            assert reader.walk.leaves(wanted) == {one: reader.walk.leaf_at(one) for one in wanted}
    assert None not in fresh.walk.leaves(range(9)).values()
    fresh.close()
