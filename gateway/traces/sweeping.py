"""Removing traces that their projects do not keep any longer, as the maintainer: the policy `trace_retention` says so.

A trace's id tells when it was made, so nothing has to be read of what goes. It goes in groups, so that nobody waits.
"""

from datetime import datetime, timedelta

from gateway.scope.names import Names
from gateway.scope.states import States
from gateway.traces.traced import QUERIES, first_id
from gateway.writing.policies import TRACE_RETENTION, Policies
from ledger.clock import is_past
from ledger.governance import NameAssigned
from ledger.store import Store
from ledger.verified import VerifiedLedger
from projections.lineage import QUERIES as PROJECTIONS

GROUP = 10_000


def sweep(ledger: VerifiedLedger, store: Store, *, now: datetime, dry_run: bool, until: float | None = None) -> int:
    """Remove what is older than its project keeps traces, and return how many; with `dry_run`, only count them.

    No group is begun after the moment `until` of the monotonic clock: what is left is a later sweep's.
    `store` is the owner's, or that of a member of corrigenda_maintainer. The caller has caught up with the ledger.
    Errors: FORBIDDEN_ACTOR.
    """
    policies = Policies(Names(ledger), States(ledger))
    removed = 0
    for project in _projects(store):
        days = policies.now(TRACE_RETENTION, _id_of(ledger, project))
        before = first_id(now - timedelta(days=days))
        if dry_run:
            removed += _one(store, "count_old_traces", project, before)
            continue
        while not is_past(until) and (gone := _one(store, "delete_old_traces", project, before)):
            removed += gone
    return removed


def _projects(store: Store) -> list[str]:
    with store.transaction() as connection:
        connection.execute(PROJECTIONS["as_maintainer"].encode())
        return [str(project) for (project,) in store.query(QUERIES["trace_projects"], {})]


def _one(store: Store, query: str, project: str, before: str) -> int:
    with store.transaction() as connection:
        connection.execute(PROJECTIONS["as_maintainer"].encode())
        params = {"project": project, "before": before}
        ((count,),) = store.query(QUERIES[query], {**params, "limit": GROUP} if "delete" in query else params)
        return int(count)


def _id_of(ledger: VerifiedLedger, stream: str) -> str | None:
    """Return the id of the project whose name has this stream; None if it has none yet, and so has set nothing."""
    head = ledger.walk.stream(stream)
    if not head.version:
        return None
    facts = ledger.at([head.position])[head.position].entry.envelope.facts
    return facts.id if isinstance(facts, NameAssigned) else None
