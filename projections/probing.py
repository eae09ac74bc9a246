"""Content probes: an entry's own stored vector has to bring it up first. What a digest cannot see, a search shows."""

import random

import numpy as np
from msgspec import Struct

from ledger.verified import VerifiedLedger
from projections.embedders import Embedder
from projections.index.partitions import PartitionedIndex
from projections.items import Item, placed, streams_of
from projections.vectors import StoredVectors

PROBES = 16


class Probed(Struct, frozen=True):
    """How many entries were asked for by their own vectors, and which of them did not come first."""

    probed: int
    failed: tuple[str, ...]


def probe(ledger: VerifiedLedger, embedder: Embedder, index: PartitionedIndex, count: int = PROBES) -> Probed:
    """Ask for a few entries, drawn anew each time. The caller holds the ledger's lock.

    Only an entry that stands and has a stored vector is asked for. One with an equal vector may come in its place.
    """
    held = index.items()
    drawn = [Item.parse(name) for name in random.sample(sorted(held), min(count, len(held)))]
    known = streams_of(ledger, (item.revision for item in drawn))
    where = placed(ledger, (item for item in drawn if known.get(item.revision) == item.lineage))
    stored = StoredVectors(ledger, embedder).stored({place.content for place in where.values()})
    asked = {str(item): stored[place.content] for item, place in where.items() if place.content in stored}
    failed: list[str] = []
    for name, vector in asked.items():
        first = index.search([where[Item.parse(name)].partition], vector, 1)
        rows = index.entries([first[0].item]) if first else {}
        if not any(np.array_equal(row, vector) for _, row in rows.values()):
            failed.append(name)
    return Probed(len(asked), tuple(failed))
