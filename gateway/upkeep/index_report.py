"""What the newest durable generation of the index says of itself. It loads no vectors and no embedder, and vouches
for nothing: whoever uses a generation checks every byte of it.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.settings import Settings
from gateway.shapes.replies.models import IndexPartition, IndexStatus
from ledger.store import Store
from projections.replicas import behind


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of a manifest: up to which position, by which embedder, how many items."""

    position: int = -1
    signature: str | None = None
    count: int = 0


def look(settings: Settings, store: Store) -> IndexStatus:
    """Return what is known of the index of a ledger without opening it."""
    directory, said = newest(settings.home / "index" / store.ledger)
    return IndexStatus(
        engine=settings.index,
        embedder=settings.embedder,
        signature=said.signature,
        cursor=said.position,
        lag=behind(store, said.position),
        items=said.count,
        partitions=() if directory is None else _partitions(directory),
    )


def newest(root: Path) -> tuple[Path | None, Said]:
    """Return the newest generation under `root` that was not set aside, and what it says; without one, of nothing."""
    latest: tuple[Path | None, Said] = None, Said()
    for path in root.glob("generation-*/manifest.json"):
        with suppress(OSError, msgspec.MsgspecError, ValueError):
            said = msgspec.json.decode(path.read_bytes(), type=Said)
            if not path.parent.name.endswith(".set-aside") and said.position > latest[1].position:
                latest = path.parent, said
    return latest


def _partitions(directory: Path) -> tuple[IndexPartition, ...]:
    with suppress(OSError, msgspec.MsgspecError, ValueError):
        held = msgspec.json.decode((directory / "items.json").read_bytes(), type=list[tuple[str, list[str]]])
        return tuple(_partition(key, len(items)) for key, items in held)
    return ()


def _partition(key: str, items: int) -> IndexPartition:
    _, tier, *namespace = msgspec.json.decode(key, type=list[str | int])
    return IndexPartition(tier=str(tier), namespace=tuple(map(str, namespace)), items=items)
