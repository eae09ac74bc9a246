"""Names that another ledger gave, and what its ids mean here.

An id is kept where the name has none here. A project, an actor, or a part of a scope that has one is the one that it is
here; a memory keeps its id in any case, and goes without a name that another one bears.
"""

from collections.abc import Collection, Mapping, Sequence

from gateway.scope.names import Names
from gateway.transfer.lines import Told
from gateway.transfer.surveying import Survey
from gateway.transfer.vetting import vet_name
from gateway.writing.page import Append, Page
from ledger.errors import CorrigendaError
from ledger.governance import AssignedName, NameAssigned
from ledger.ids import NAME_PREFIXES, is_ours, kind_of
from ledger.verified import VerifiedLedger

NAMED_RECORDS = ("memory", "correction")
NOT_TAKEN_OVER = "A name is of something that is not taken over."
TOP = ("project", "actor")  # their parent is the ledger


class Naming:
    """Gives the names of a file. Of the append at hand, `given` are the lines that did, and `refused` says why not."""

    def __init__(self, ledger: VerifiedLedger, names: Names, kept: Mapping[str, int], ended: Collection[str]) -> None:
        self.here: dict[str, str] = {}
        self.refused: dict[int, str] = {}
        self.given: set[int] = set()
        self._ledger = ledger
        self._names = names
        self._kept = kept
        self._ended = ended
        self._given: dict[str, str] = {}

    def take(self, page: Page, append: Append | None, items: Sequence[Told], found: Survey) -> None:
        """Give the names of one append in one of ours; without one, only learn what the ids mean."""
        for item in items:
            why = self._take(page, append, item, found)
            if why is not None:
                self.refused[item.number] = why

    def _take(self, page: Page, append: Append | None, item: Told, found: Survey) -> str | None:
        facts, said = item.facts, item.payload
        if not isinstance(facts, NameAssigned) or not isinstance(said, AssignedName):
            return "A name was withheld, so nothing can be found here by it."
        if NAME_PREFIXES.get(facts.kind) != kind_of(facts.id) or not is_ours(facts.id):
            return "A name was given to something that is no id of ours, of the kind that it says."
        parent = self._names.root if facts.kind in TOP else self.here.get(facts.parent)
        if parent is None:
            return "A name was given in a project that no line before it names."
        try:
            vet_name(facts.kind, said.name)
        except CorrigendaError as error:
            return error.message
        known = page.find_name(facts.kind, parent, said.name)
        if facts.kind in NAMED_RECORDS:
            return self._record(append, item, facts, said, parent, known, found)
        if known is None:
            if self._is_taken(facts.id, self._names.stream(facts.kind, parent, said.name)):
                return "A name was given to an id that has another name here."
            if append is None:
                return "A name was not taken over with its append."
            append.give(facts.kind, parent, said.name, facts.id)
            self.given.add(item.number)
        self.here[facts.id] = known or facts.id
        return None

    def _record(
        self,
        append: Append | None,
        item: Told,
        facts: NameAssigned,
        said: AssignedName,
        parent: str,
        known: str | None,
        found: Survey,
    ) -> str | None:
        if known == facts.id:
            return None
        if known is not None:
            return "A memory has this name here already, so the one of the file goes by its id only."
        if found.why.why(facts.id) is not None or facts.id in self._ended:
            return NOT_TAKEN_OVER
        begun = self._ledger.walk.stream(facts.id).version
        if (begun and not self._kept[facts.id]) or self._is_taken(
            facts.id, self._names.stream(facts.kind, parent, said.name)
        ):
            return "A name was given to an id that is something else here."
        if append is not None:
            append.give(facts.kind, parent, said.name, facts.id)
            self.given.add(item.number)
        return None

    def _is_taken(self, identifier: str, stream: str) -> bool:
        """Report whether an id has been given to another name, here or by this file."""
        if self._given.setdefault(identifier, stream) != stream:
            return True
        return bool(self._names.assigned([identifier]))
