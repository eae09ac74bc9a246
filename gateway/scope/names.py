"""Names and ids: what a caller calls things, and what the ledger calls them.

Name to id is read from the name's own stream, which is verified; id to name from the payload that the directory
points at, which is checked to be that id's. Reading never assigns.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from gateway.scope.states import States
from gateway.scope.visible import Visible
from ledger.corrections import CORRECTION, CorrectionRecorded
from ledger.errors import failure, refuse
from ledger.governance import AssignedName, NameAssigned
from ledger.ids import CORRECTION as CORRECTION_ID
from ledger.ids import MEMORY, REVISION, is_ours, kind_of
from ledger.memories import LineageState, RevisionState, last_head
from ledger.verified import Recorded, VerifiedLedger
from projections.lineage import QUERIES

STREAMS_MAX = 1_024


class Names:
    """The names of one ledger, as far as this process has verified it."""

    def __init__(self, ledger: VerifiedLedger) -> None:
        self._ledger = ledger
        self._ids: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self._streams = lru_cache(STREAMS_MAX)(ledger.keys.name)  # an act asks for those of its actor and project often

    @property
    def root(self) -> str:
        """Return the parent of projects and actors: the ledger's own stream."""
        return f"led_{self._ledger.store.ledger}"

    def stream(self, kind: str, parent: str, name: str) -> str:
        """Return the stream whose first event assigns the name."""
        return self._streams(kind, parent, name)

    def subject(self, name: str) -> str:
        """Return the digest of a person whom a text concerns, as it stands in envelopes."""
        return self._ledger.keys.subject(name)

    def find(self, kind: str, parent: str, name: str) -> str | None:
        """Return the id that a name has, or None."""
        stream = self.stream(kind, parent, name)
        if stream not in self._ids:
            head = self._ledger.walk.stream(stream)
            if head.version == 0:
                return None
            facts = self._ledger.at([head.position])[head.position].entry.envelope.facts
            if not isinstance(facts, NameAssigned):
                return None
            self._ids[stream] = facts.id
        self._shown.setdefault(self._ids[stream], name)
        return self._ids[stream]

    def learn(self, ids: Mapping[str, str]) -> None:
        """Remember ids by their names' streams, as events that were just committed assign them."""
        self._ids.update(ids)

    def shown(self, ids: Iterable[str]) -> Mapping[str, str]:
        """Return what to show for each id: the caller's name where one was given, else the id."""
        unknown = sorted({item for item in ids if item not in self._shown})
        if unknown:
            self._shown.update({item: item for item in unknown} | self._read(unknown))
        return self._shown

    def known(self, identifier: str) -> str:
        """Return what to show for an id as far as it has been read before: for one that has just been made."""
        return self._shown.get(identifier, identifier)

    def show(self, identifier: str) -> str:
        """Return what to show for one id."""
        known = self._shown.get(identifier)
        return self.shown([identifier])[identifier] if known is None else known

    def assigned(self, ids: Iterable[str]) -> dict[str, Recorded]:
        """Return the event that gave each of these ids its name, as far as there is one, checked to be that id's."""
        return self._assigned(sorted(set(ids)))

    def _read(self, ids: list[str]) -> dict[str, str]:
        found = self._assigned(ids)
        return {one: item.payload.name for one, item in found.items() if isinstance(item.payload, AssignedName)}

    def _assigned(self, ids: list[str]) -> dict[str, Recorded]:
        rows = self._ledger.store.query(QUERIES["find_names"], {"ids": ids})
        positions: dict[str, int] = {identifier: seq for identifier, seq in rows}
        verified = {item: seq for item, seq in positions.items() if 0 <= seq <= self._ledger.walk.position}
        found = self._ledger.at(verified.values())
        named: dict[str, Recorded] = {}
        for identifier, position in verified.items():
            facts = found[position].entry.envelope.facts
            if isinstance(facts, NameAssigned) and facts.id == identifier:
                named[identifier] = found[position]
        return named


class References:
    """What a caller means by an id or a name, in one project, of what the caller may see."""

    def __init__(
        self, ledger: VerifiedLedger, names: Names, states: States, project: str | None, visible: Visible
    ) -> None:
        self._ledger = ledger
        self._names = names
        self._states = states
        self._project_name = project
        self.visible = visible

    @property
    def project_name(self) -> str | None:
        """Return the project's name, or None if none was named."""
        return self._project_name

    @property
    def project(self) -> str | None:
        """Return the project's id, or None if it has none yet."""
        if self._project_name is None:
            return None
        return self._names.find("project", self._names.root, self._project_name)

    def lineage(self, reference: str) -> str:
        """Return the lineage that is meant, or MEMORY_NOT_FOUND: also for what is foreign or not visible."""
        return self.locate(reference)[0]

    def locate(self, reference: str) -> tuple[str, str | None]:
        """Return the lineage that is meant, and the revision if one was named."""
        lineage, revision = self.place(reference)
        self.check(self._states.lineage(lineage), revision)
        return lineage, revision

    def check(self, state: LineageState, revision: str | None) -> None:
        """Refuse what is of another project, or not visible, in the words for what there is not.

        It is a revision, or None for the memory: then the one that stands for it.
        """
        if not self.sees(state, revision):
            raise not_found()

    def sees(self, state: LineageState, revision: str | None = None) -> bool:
        """Report whether a revision of a memory is of the project and visible; without one, what stands for it."""
        if not self.holds(state):
            return False
        return self.visible.memory(state) if revision is None else self.visible.revision(state.revisions[revision])

    def seen(self, state: LineageState) -> Iterable[RevisionState]:
        """Return those revisions of a memory that are visible."""
        return self.visible.narrowed(state).revisions.values()

    def place(self, reference: str) -> tuple[str, str | None]:
        """Return what `locate` does, whosever it is: for whoever reads the lineage and checks it."""
        found: tuple[str, str | None] | None
        if not is_ours(reference):
            found = self._by_name(reference)
        elif kind_of(reference) == REVISION:
            found = self._by_revision(reference)
        elif kind_of(reference) == MEMORY and self._ledger.walk.stream(reference).version:
            found = (reference, None)
        else:
            found = None
        if found is None:
            raise not_found()
        return found

    def revision(self, reference: str) -> tuple[str, str]:
        """Return lineage and revision; a memory means its head, and INVALID_TRANSITION if it has none."""
        lineage, revision = self.locate(reference)
        revision = revision or self._states.lineage(lineage).head
        if revision is None:
            advice, allowed = _without_head(self._states.lineage(lineage))
            refuse(
                "INVALID_TRANSITION",
                f"The memory has no head at present, so it does not stand for a revision. {advice}",
                allowed=allowed,
            )
        return lineage, revision

    def correction(self, reference: str) -> str:
        """Return the correction that is meant, or CORRECTION_NOT_FOUND, also for one that is foreign or not visible."""
        ours = is_ours(reference) and kind_of(reference) == CORRECTION_ID
        recorded = self._states.of(CORRECTION, reference).recorded if ours else None
        if recorded is None or not self.holds_correction(recorded):
            refuse(
                "CORRECTION_NOT_FOUND",
                "There is no such correction in this project. Check the id and the project (--project, "
                "CORRIGENDA_PROJECT); `corrigenda corrections list` lists them.",
            )
        return reference

    def _by_name(self, name: str) -> tuple[str, None] | None:
        if self._project_name is None:
            raise no_project()
        project = self.project
        found = None if project is None else self._names.find("memory", project, name)
        return None if found is None else (found, None)

    def _by_revision(self, revision: str) -> tuple[str, str] | None:
        lineage = self._ledger.walk.lineages([revision]).get(revision)
        return None if lineage is None else (lineage, revision)

    def holds_correction(self, recorded: CorrectionRecorded) -> bool:
        """Report whether a correction is of the project, or there is none, and visible."""
        ours = self._project_name is None or recorded.scope.project == self.project
        return ours and self.visible.sees(recorded.visibility, recorded.scope)

    def holds(self, state: LineageState) -> bool:
        """Report whether a lineage is of the project; without a project any is that has begun."""
        if state.latest is None:
            return False
        return self._project_name is None or state.revisions[state.latest].scope.project == self.project


def _without_head(state: LineageState) -> tuple[str, list[str]]:
    """Return what can be done about a memory without a head, in words and as acts: only what would not be refused."""
    named = "Name the revision that is meant (its history lists them)"
    last = last_head(state)
    if last is not None and last.superseded_by:
        return f"It ended when {', '.join(last.superseded_by)} took its place: name that one instead.", []
    if last is not None and last.values.state in ("forgotten", "erased"):
        restoring = last.values.state == "forgotten"
        restore = "restore the memory (`corrigenda memories restore`), " if restoring else ""
        return f"{named}, {restore}or remember a new text under another id.", ["restore"] if restoring else []
    states = {item.values.state for item in state.revisions.values()}
    first = [act for act, of in (("promote", "conflicted"), ("publish", "processing")) if of in states]
    restore = ["restore"] if any(item.withdrawals for item in state.revisions.values()) else []
    return f"{named}, or remember a new text under the memory's id.", [*first, *restore, "remember"]


def not_found() -> Exception:
    """Return MEMORY_NOT_FOUND in the words that tell nothing about other projects."""
    return failure(
        "MEMORY_NOT_FOUND",
        "There is no such memory or revision in this project. Check the id and the project (--project, "
        "CORRIGENDA_PROJECT); a name has to be given exactly.",
    )


def no_such_project(code: str = "MEMORY_NOT_FOUND") -> Exception:
    """Return the refusal to read a project that holds nothing, so that nobody takes a mistyped one for an empty one."""
    return failure(
        code,
        "There is no such project: nothing was ever stored under this name. Check it (--project, CORRIGENDA_PROJECT); "
        "it has to be given exactly. A project begins with the first thing that is stored in it.",
    )


def no_project() -> Exception:
    """Return VALIDATION_FAILED for an act that belongs to a project, where none was named."""
    return failure(
        "VALIDATION_FAILED",
        "A project has to be named, and none was. Give one (--project, CORRIGENDA_PROJECT, or open(project=…)).",
        fields=[{"field": "project", "problem": "is missing"}],
    )
