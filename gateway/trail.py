"""What a search notices on its way: what to warn of, and what was near and is not served, with the reason."""

from collections.abc import Callable

from gateway.reading import Reader
from gateway.replies import Excluded
from ledger.errors import IntegrityError
from ledger.message import ScopeIds
from ledger.scope import sees
from projections.items import Item

EXCLUDED_MAX = 100


class Trail:
    """The notes of one search. What the reader may not see is not noted, whatever an index says of it."""

    def __init__(self, scope: ScopeIds, reader: Reader, show: Callable[[str], str], *, wanted: bool) -> None:
        self.warnings: list[str] = []
        self._scope = scope
        self._reader = reader
        self._show = show
        self._wanted = wanted
        self._excluded: list[Excluded] = []

    def warn(self, warning: str) -> None:
        """Add a warning, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def leave_out(self, item: Item, score: float, reason: str) -> None:
        """Note that something near is not served, and why; the first hundred are named, if they were asked for."""
        if self._wanted and len(self._excluded) < EXCLUDED_MAX and self._is_visible(item):
            self._excluded.append(
                Excluded(memory_id=self._show(item.lineage), revision_id=item.revision, score=score, reason=reason)
            )

    @property
    def excluded(self) -> tuple[Excluded, ...] | None:
        """Return what was left out, the nearest first; None if nobody asked."""
        return tuple(sorted(self._excluded, key=lambda one: -one.score)) if self._wanted else None

    def _is_visible(self, item: Item) -> bool:
        try:
            found = self._reader.find(item.lineage, item.revision)
        except IntegrityError:
            return False
        return found is not None and sees(self._scope, visibility=found.visibility, scope=found.scope)
