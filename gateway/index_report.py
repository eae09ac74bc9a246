"""What the newest durable generation of the index says of itself. It loads no vectors and no embedder, and vouches
for nothing: whoever uses a generation checks every byte of it.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway.replies import IndexPartition, IndexStatus
from gateway.settings import Settings
from ledger.store import Store

Document = dict[str, Any]  # Any: JSON


def look(settings: Settings, store: Store) -> IndexStatus:
    """Return what is known of the index of a ledger without opening it."""
    directory, manifest = _newest(settings.home / "index" / store.ledger)
    cursor = int(manifest.get("position", -1))
    return IndexStatus(
        engine=settings.index,
        embedder=settings.embedder,
        signature=manifest.get("signature"),
        cursor=cursor,
        lag=store.count("count_outbox", after=cursor),
        items=int(manifest.get("count", 0)),
        partitions=() if directory is None else _partitions(directory),
    )


def _newest(root: Path) -> tuple[Path | None, Document]:
    newest: tuple[Path | None, Document] = None, {}
    for path in root.glob("generation-*/manifest.json"):
        with suppress(OSError, ValueError):
            found: Document = json.loads(path.read_text(encoding="utf-8"))
            if not path.parent.name.endswith(".set-aside") and found["position"] > newest[1].get("position", -1):
                newest = path.parent, found
    return newest


def _partitions(directory: Path) -> tuple[IndexPartition, ...]:
    found: list[IndexPartition] = []
    with suppress(OSError, ValueError):
        for key, items in json.loads((directory / "items.json").read_text(encoding="utf-8")):
            _, tier, *namespace = json.loads(key)
            found.append(IndexPartition(tier=tier, namespace=tuple(namespace), items=len(items)))
    return tuple(found)
