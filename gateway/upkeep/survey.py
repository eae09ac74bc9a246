"""One screen about a ledger and what is derived from it: counts and places, as they lie. Nothing is checked here."""

from pathlib import Path

from gateway.audit import anchor_report
from gateway.shapes.replies.upkeep import Status
from gateway.traces.losses import Losses
from gateway.traces.traced import oldest
from gateway.upkeep import index_report
from ledger.store import Store
from projections.lineage import QUERIES
from projections.replicas import waiting


def survey(
    store: Store, *, tenant: str, home: Path, anchors: Path, chain: str = "ok", problem: str | None = None
) -> Status:
    """Return the screen; `chain` and `problem` are what the caller knows of the chain."""
    row = store.head()
    _, generation = index_report.newest(home / "index" / store.ledger)
    cursor = generation.position
    pending, parked = waiting(store, generation.signature, cursor)
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
        index={"cursor": cursor, "embedder": generation.signature, "items": generation.count},
        outbox={"pending": pending, "parked": parked},
        index_pending=pending,
        memories={state: count for state, count in store.query(QUERIES["count_states"], live)},
        conflicts_open=int(store.query(QUERIES["count_conflicts"], live)[0][0]),
        candidates={},
        traces={"oldest": oldest(store), "lost": Losses(home, store.ledger).count},
    )
