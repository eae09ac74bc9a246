"""Carries out an import's plan, page by page: each page is one transaction, each row one append under its own key.

The key of a row is made of the row's bytes, so whoever imports the file, however often and however far an earlier
run came, each row is stored once. What is stored already is looked up under the head's lock, before anything of the
page is decided.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from itertools import islice
from pathlib import Path

from gateway.deciding.burying import refuse_buried
from gateway.imports.pep_rows import BadRow, Edge, ParsedRow, read_rows
from gateway.imports.peps import KeyMaterial, Link, Step, Store, Unlink, plan, settled
from gateway.reading.graph import state_link, withdraw_link
from gateway.shapes.replies.upkeep import ImportItem, ImportReport
from gateway.writing.page import Append, Page
from gateway.writing.writer import Writer
from ledger.codec import canonical
from ledger.digest import public
from ledger.errors import CorrigendaError, IntegrityError, UnavailableError, refuse
from ledger.memories import Command, Correct, Remember, Retire, RevisionText
from ledger.message import ScopeIds
from ledger.sealing import Draft
from ledger.verified import VerifiedLedger

Progress = Callable[[int, int], None]
Act = Store | Link | Unlink

STEPS_PER_PAGE = 300
SOURCE = "peps"
# What a plan made from another cut of the file may find done already, or overtaken by a later row.
_DONE_ALREADY = {Store: {"NO_CHANGE"}, Link: {"NO_CHANGE"}, Unlink: {"MEMORY_NOT_FOUND"}}


class PepImport:
    """One run of an import into one project."""

    def __init__(
        self, writer: Writer, ledger: VerifiedLedger, path: Path, *, project: str, actor: str, on_error: str
    ) -> None:
        if on_error not in ("stop", "skip"):
            refuse("VALIDATION_FAILED", "After a bad row an import does one of stop, skip. Give one of them.")
        self._writer = writer
        self._ledger = ledger
        self._project = project
        self._actor = actor
        self._stops = on_error == "stop"
        self._rows = list(read_rows(path))
        self._good = [row for row in self._rows if isinstance(row, ParsedRow)]
        self._counts = {"stored": 0, "unchanged": 0, "links": 0, "unlinks": 0}
        self._refused: list[ImportItem] = []

    def run(self, progress: Progress | None = None) -> ImportReport:
        """Carry the plan out, and report."""
        done = 0
        try:
            for steps in _pages(plan(self._rows)):
                self._carry_out(steps)
                done += sum(1 for step in steps if isinstance(step, Store))
                if progress:
                    progress(done, len(self._rows))
                if self._has_stopped:
                    break
        finally:
            self._writer.settle()
        row = self._ledger.store.head()
        return ImportReport(
            **self._counts,
            rejected=len(self._refused),
            items=tuple(self._refused),
            waiting=len(self._waiting()),
            position=row.seq,
            incarnation=row.incarnation,
        )

    @property
    def _has_stopped(self) -> bool:
        return self._stops and bool(self._refused)

    def _waiting(self) -> tuple[Edge, ...]:
        """Return the links that wait for a memory, as far as the import came."""
        steps = plan(self._rows[: self._refused[0].row - 1] if self._has_stopped else self._rows)
        for _ in steps:
            pass
        return steps.waiting

    def _carry_out(self, steps: Sequence[Step]) -> None:
        """Decide and store one page of steps, those left out that are stored already; end early if that was asked."""
        acts = [step for step in steps if not isinstance(step, BadRow)]
        with self._writer.hold(more=True) as (held, page):
            known = self._ledger.walk.carried_out(self._request(act.key) for act in acts)
            held.store(self._decided(page, steps, known.keys(), self._behind(acts)), last=True)

    def _decided(self, page: Page, steps: Sequence[Step], known: Set[str], behind: Set[int]) -> Iterator[Draft]:
        """Yield the appends of a page of steps, each decided when it is asked for."""
        for step in steps:
            if isinstance(step, BadRow):
                self._refuse(step.number, step.code, step.message)
            elif self._request(step.key) in known or (isinstance(step, Store) and step.row.number in behind):
                self._count(step, stored=False)
            else:
                before = len(page.drafts)
                self._decide(page, step)
                yield from page.drafts[before:]
            if self._has_stopped:
                return

    def _behind(self, acts: Sequence[Act]) -> frozenset[int]:
        """Return the numbers of rows that are stored, or lie behind a stored row of their lineage."""
        peps = {act.row.pep for act in acts if isinstance(act, Store)}
        related = [row for row in self._good if row.pep in peps]
        requests = {row.number: self._request(Store(row).key) for row in related}
        known = self._ledger.walk.carried_out(requests.values())
        return settled(related, {number for number, request in requests.items() if request in known})

    def _decide(self, page: Page, act: Act) -> None:
        key = act.key
        fingerprint = self._ledger.keys.fingerprint(canonical({"act": key.act, "line": public(key.line)}))
        append = page.begin(actor=self._actor, request=self._request(key), fingerprint=fingerprint)
        try:
            match act:
                case Store():
                    self._store(page, append, act)
                case Link():
                    state_link(append, self._ends(append, act), act.reason)
                case Unlink():
                    withdraw_link(append, self._ends(append, act), act.reason)
        except (IntegrityError, UnavailableError):
            raise
        except CorrigendaError as error:
            if error.code in _DONE_ALREADY[type(act)]:
                self._count(act, stored=False)
            else:
                self._refuse(act.row.number, error.code, error.message)
        else:
            page.close(append)
            self._count(act, stored=True)

    def _store(self, page: Page, append: Append, act: Store) -> None:
        row = act.row
        project = append.name("project", page.names.root, self._project)
        lineage = append.name("memory", project, row.name)
        revision = f"rev_{page.mint()}"
        refuse_buried(
            append, self._ledger.keys, project=project, origin="import", content=row.content, sources=(row.name,)
        )
        append.decide(lineage, self._claim(append.state(lineage).head, revision, project, row))
        if act.retire:
            reason = f"Row {row.number} of the imported file gives the status {row.status}."
            append.decide(lineage, Retire(revision=revision, cause="import", reason=reason))

    def _claim(self, head: str | None, revision: str, project: str, row: ParsedRow) -> Command:
        content = self._ledger.keys.content(project, row.content)
        if head is not None:
            return Correct(revision=head, successor=revision, content=content, origin="import", text=_text(row))
        return Remember(
            revision=revision,
            content=content,
            kind="fact",
            origin="import",
            scope=ScopeIds(agent=None, project=project, session=None, task_family=None, user=None),
            visibility="project",
            text=_text(row),
        )

    def _ends(self, append: Append, act: Link | Unlink) -> tuple[str, str]:
        names = append.page.names
        project = append.name("project", names.root, self._project)
        newer, older = (append.name("memory", project, name) for name in act.edge.names)
        return newer, older

    def _request(self, key: KeyMaterial) -> str:
        scope = ["import", SOURCE, self._project, key.act]
        return self._ledger.keys.request(scope, f"{public(key.line)} {key.occurrence}")

    def _refuse(self, number: int, code: str, message: str) -> None:
        self._refused.append(ImportItem(row=number, outcome="rejected", code=code, message=message))

    def _count(self, act: Act, *, stored: bool) -> None:
        match act:
            case Store():
                self._counts["stored" if stored else "unchanged"] += 1
            case Link():
                self._counts["links"] += stored
            case Unlink():
                self._counts["unlinks"] += stored


def _pages(steps: Iterator[Step]) -> Iterator[list[Step]]:
    while page := list(islice(steps, STEPS_PER_PAGE)):
        yield page


def _text(row: ParsedRow) -> RevisionText:
    return RevisionText.plain(row.content, sources=(row.name,), valid_from=row.valid_from)
