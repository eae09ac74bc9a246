"""The index built anew beside the live one, from verified standing and stored vectors, then swapped in.

Only a text that stands and has no stored vector is embedded. Who searches meanwhile is answered from the live one, and
whoever writes waits for one batch at most.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from msgspec import Struct

from ledger.verified import VerifiedLedger
from projections.comparing import BATCH
from projections.embedders import Embedder
from projections.index.partitions import PartitionedIndex
from projections.items import standing, streams
from projections.relay import Relay
from projections.vectors import StoredVectors


class Reindexed(Struct, frozen=True, kw_only=True):
    """What a rebuild did: entries before and after, texts embedded, effects carried since, whether it was published."""

    entries_before: int
    entries: int
    embedded: int
    carried: int
    kept: bool


def reindex(
    ledger: VerifiedLedger,
    relay: Relay,
    *,
    alone: AbstractContextManager[object],
    progress: Callable[[int, int], None] | None = None,
) -> Reindexed | None:
    """Build and swap; None if there is no embedder. `alone` is the ledger's lock, taken for one batch at a time."""
    with alone:
        ledger.catch_up()
        position, index, embedder = ledger.walk.position, relay.empty(), relay.embedder
        if index is None or embedder is None:
            return None
        relay.open()
        names, before = streams(ledger), len(relay)
    embedded = 0
    for at in range(0, len(names), BATCH):
        with alone:
            embedded += _put(ledger, embedder, index, names[at : at + BATCH])
        if progress is not None:
            progress(min(at + BATCH, len(names)), len(names))
    with alone:
        ledger.catch_up()
        relay.swap(index, position)
        carried = relay.drain(exhaust=True).carried
        kept = relay.keep()
        return Reindexed(entries_before=before, entries=len(relay), embedded=embedded, carried=carried, kept=kept)


def _put(ledger: VerifiedLedger, embedder: Embedder, index: PartitionedIndex, names: list[str]) -> int:
    """Put what stands in some streams; return how many texts had to be embedded.

    A text that the embedder fails on is left out, as the outbox leaves it out.
    """
    where = standing(ledger, names)
    texts = {place.content: place.text for place in where.values()}
    stored = StoredVectors(ledger, embedder)
    found = stored.stored(texts)
    fresh = stored.tried({content: text for content, text in texts.items() if content not in found}).vectors
    vectors = {**found, **fresh}
    for item, place in where.items():
        if place.content in vectors:
            index.put(place.partition, str(item), vectors[place.content])
    return len(fresh)
