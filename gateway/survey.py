"""One screen about a ledger and what is derived from it: counts and places, as they lie. Nothing is checked here."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway import anchor_report
from gateway.replies import Status
from ledger.parking import waiting
from ledger.store import Store
from projections.lineage import QUERIES

Document = dict[str, Any]  # Any: JSON


def survey(
    store: Store, *, tenant: str, home: Path, anchors: Path, chain: str = "ok", problem: str | None = None
) -> Status:
    """Return the screen; `chain` and `problem` are what the caller knows of the chain."""
    row = store.head()
    cursor, embedder, items = _generation(home / "index" / store.ledger)
    pending, parked = waiting(store, embedder, cursor)
    live = {"gen": row.gen}
    return Status(
        ledger={
            "id": store.ledger,
            "tenant": tenant,
            "size": row.seq + 1,
            "head": row.hash.hex(),
            "incarnation": row.incarnation,
            "chain": chain,
            "problem": problem,
        },
        anchor=anchor_report.look(store, anchors),
        projections={"generation": row.gen, "version": row.projector},
        index={"cursor": cursor, "embedder": embedder, "items": items},
        outbox={"pending": pending, "parked": parked},
        index_pending=pending,
        memories={state: count for state, count in store.query(QUERIES["count_states"], live)},
        conflicts_open=int(store.query(QUERIES["count_conflicts"], live)[0][0]),
        candidates={},
    )


def _generation(root: Path) -> tuple[int, str | None, int]:
    """Return cursor, embedder and number of items of the newest index generation of a ledger, as it says itself."""
    newest: Document = {}
    for manifest in root.glob("generation-*/manifest.json"):
        with suppress(OSError, ValueError):
            found: Document = json.loads(manifest.read_text(encoding="utf-8"))
            if found.get("position", -1) > newest.get("position", -1):
                newest = found
    return newest.get("position", -1), newest.get("signature"), newest.get("count", 0)
