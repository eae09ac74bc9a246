"""Pruning: old learnings that machines made and nobody vouched for are withdrawn, by events, page by page.

A row of the read model only says where to look; what is withdrawn is decided on the lineage's own events, while nobody
else can append. Each learning is an append of its own, and what is withdrawn is not found again: a pruning that was
interrupted is finished by repeating it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from gateway.deciding.burying import Graveyard
from gateway.reading.reader import Reader
from gateway.scope.names import Names, References
from gateway.scope.visible import NOBODY
from gateway.shapes.replies.writes import Pruned
from gateway.shapes.requests import PruneRequest
from gateway.writing.page import Page
from gateway.writing.writer import Writer
from ledger.clock import stamp
from ledger.memories import LINEAGE, Command, Forget, Retire, RevisionState
from ledger.verified import VerifiedLedger
from projections.lineage import QUERIES

ROWS_PER_PAGE = 200
CAUSE = "prune"
_MADE_BY_MACHINES = frozenset({"llm_extracted", "agent"})
_UNTAGGED = "import"


class _Row(NamedTuple):
    revision: str
    lineage: str
    content_seq: int


class Prune:
    """One pruning of one project."""

    def __init__(
        self,
        *,
        writer: Writer,
        ledger: VerifiedLedger,
        names: Names,
        references: References,
        reader: Reader,
        actor: str,
    ) -> None:
        self._writer = writer
        self._ledger = ledger
        self._names = names
        self._references = references
        self._reader = reader
        self._actor = actor
        self._graveyard = Graveyard(ledger.keys, reader)
        self._retired: list[str] = []
        self._forgotten: list[str] = []

    def run(self, request: PruneRequest, *, now: datetime, dry_run: bool) -> Pruned:
        """Withdraw what is old enough, or with `dry_run` only say what it would be."""
        after: int | None = -1
        while after is not None:
            with self._writer.hold() as (held, page):
                after = self._carry_out(page, request, _cutoff(now, request.older_than), after)
                if not dry_run:
                    held.store(page.drafts)
        return Pruned(
            retired=tuple(self._retired),
            forgotten=tuple(self._forgotten),
            position=self._ledger.walk.position,
            incarnation=self._reader.incarnation,
        )

    def _carry_out(self, page: Page, request: PruneRequest, cutoff: str, after: int) -> int | None:
        """Decide one page of rows; return where the next one begins, or None after the last one worth reading."""
        project = self._references.project
        rows = [] if project is None else self._rows(project, after)
        written = self._written([row.content_seq for row in rows])
        old = [row for row in rows if written[row.content_seq] < cutoff]
        user = request.user and (self._names.find("user", project or NOBODY, request.user) or NOBODY)
        for row in old:
            item = page.of(LINEAGE, row.lineage).revisions.get(row.revision)
            if item is not None and _is_of(item, user, untagged=request.include_untagged):
                self._withdraw(page, row.lineage, item, request.reason)
        return rows[-1].content_seq if old and len(rows) == ROWS_PER_PAGE else None

    def _rows(self, project: str, after: int) -> list[_Row]:
        """Return the next rows whose texts lie in the verified part of the ledger."""
        store = self._ledger.store
        params = {"gen": store.head().gen, "project": project, "after": after, "limit": ROWS_PER_PAGE}
        found = [_Row(*row) for row in store.query(QUERIES["list_prunable"], params)]
        return [row for row in found if row.content_seq <= self._ledger.walk.position]

    def _written(self, positions: Sequence[int]) -> Mapping[int, str]:
        """Return when the events at these positions were recorded."""
        return {position: item.entry.envelope.at for position, item in self._ledger.at(positions).items()}

    def _withdraw(self, page: Page, lineage: str, item: RevisionState, reason: str | None) -> None:
        if item.values.is_live and item.values.trust == "unverified":
            self._append(page, lineage, Retire(revision=item.revision, cause=CAUSE, reason=reason))
            self._retired.append(item.revision)
        elif item.values.state == "retired" and any(one.act == "invalidate" for one in item.withdrawals):
            wish = Forget(revision=item.revision, cause=CAUSE, reason=reason)
            self._append(page, lineage, wish, bury=item.revision)
            self._forgotten.append(item.revision)

    def _append(self, page: Page, lineage: str, command: Command, *, bury: str | None = None) -> None:
        append = page.begin(actor=self._actor)
        append.decide(lineage, command)
        if bury is not None:
            self._graveyard.bury(append, lineage, bury)
        page.close(append)


def _is_of(item: RevisionState, user: str | None, *, untagged: bool) -> bool:
    """Report whether a revision is a learning that may go: a machine's, and that user's if one was named."""
    machines = _MADE_BY_MACHINES | {_UNTAGGED} if untagged else _MADE_BY_MACHINES
    return item.kind == "learning" and item.origin in machines and user in (None, item.scope.user)


def _cutoff(now: datetime, age: timedelta) -> str:
    """Return the recorded time before which something is older than that."""
    try:
        return stamp(now - age)
    except OverflowError:
        return ""  # nothing is as old as that
