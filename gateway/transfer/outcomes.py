"""What became of each line of a file, counted, and named where it was rejected."""

from collections import Counter

from gateway.shapes.replies.upkeep import ImportItem, Transfer
from gateway.transfer.groups import REPLAYED, Group
from gateway.transfer.lines import Told
from gateway.transfer.naming import Naming
from gateway.transfer.reading import Origin
from ledger.errors import CorrigendaError
from ledger.governance import NameAssigned
from ledger.ids import kind_of
from ledger.memories import RevisionAdmitted

ITEMS_KEPT = 1_000
OUTCOMES = ("stored", "unchanged", "rejected", "left_out", "unverified")


class Outcomes:
    """The outcomes of one import, so far. Of each append the names are told by `naming`."""

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self._counts: Counter[str] = Counter()
        self._items: list[ImportItem] = []

    def report(self, origin: Origin, *, position: int, incarnation: int) -> Transfer:
        """Return all of them."""
        return Transfer(
            **{name: self._counts[name] for name in OUTCOMES},
            items=tuple(self._items),
            kind=origin.kind,
            origin=origin.origin,
            size=origin.size,
            root=origin.root,
            verified=origin.verified,
            position=position,
            incarnation=incarnation,
        )

    def count(self, group: Group, outcome: str) -> None:
        """Count the lines of an append whose events have this outcome."""
        self._count_names(group)
        for item in group.events:
            if isinstance(item.facts, NameAssigned):
                continue
            if kind_of(item.line.stream) in REPLAYED and not isinstance(item.facts, RevisionAdmitted):
                self._counts[outcome] += 1
            else:
                self._leave_out(item)

    def refuse(self, group: Group, refusal: CorrigendaError) -> None:
        """Count an append whose events were refused."""
        self._count_names(group)
        for item in group.events:
            if isinstance(item.facts, RevisionAdmitted):
                self._leave_out(item)
            elif not isinstance(item.facts, NameAssigned):
                self.reject(item.number, refusal.code, refusal.message)

    def reject(self, number: int, code: str, message: str) -> None:
        """Count and name one line that is rejected."""
        self._counts["rejected"] += 1
        if len(self._items) < ITEMS_KEPT:
            self._items.append(ImportItem(row=number, outcome="rejected", code=code, message=message))

    def _count_names(self, group: Group) -> None:
        for item in group.names:
            why = self._naming.refused.pop(item.number, None)
            if why is not None:
                self.reject(item.number, "INVALID_INPUT", why)
            else:
                self._counts["stored" if item.number in self._naming.given else "unchanged"] += 1
        self._naming.given.clear()

    def _leave_out(self, item: Told) -> None:
        self._counts["left_out"] += 1
        self._counts["unverified"] += isinstance(item.facts, RevisionAdmitted)
