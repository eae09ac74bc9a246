"""What a search notices on its way: what to warn of, and what was near and is not served, with the reason."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from gateway.reading.reader import Reader
from gateway.searching.filtering import CorrectionQuestion, Question
from gateway.shapes.replies.corrections import CorrectionHit
from gateway.shapes.replies.searches import Excluded, Hit
from ledger.errors import IntegrityError
from ledger.message import ScopeIds
from ledger.scope import sees
from projections.items import Item

EXCLUDED_MAX = 100
FULL_TEXT = "full_text"  # the warning of an answer that was found by words, because no embedder answered


class Trail:
    """The notes of one search. What the reader may not see is not told, whatever an index says of it."""

    def __init__(self, scope: ScopeIds, reader: Reader, show: Callable[[str], str], *, wanted: bool) -> None:
        self.warnings: list[str] = []
        self._scope = scope
        self._reader = reader
        self._show = show
        self._wanted = wanted
        self.left_out: list[tuple[Item, float, str]] = []  # whoever is shown these is asked what it may see

    def warn(self, warning: str) -> None:
        """Add a warning, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def leave_out(self, item: Item, score: float, reason: str) -> None:
        """Note that something near is not served, and why."""
        self.left_out.append((item, score, reason))

    @property
    def excluded(self) -> tuple[Excluded, ...] | None:
        """Return what was left out, the nearest first and at most a hundred; None if nobody asked."""
        if not self._wanted:
            return None
        nearest = sorted(self.left_out, key=lambda one: -one[1])
        told = (one for one in nearest if self._is_visible(one[0]))
        return tuple(
            Excluded(memory_id=self._show(item.lineage), revision_id=item.revision, score=score, reason=reason)
            for item, score, reason in islice(told, EXCLUDED_MAX)
        )

    def _is_visible(self, item: Item) -> bool:
        try:
            found = self._reader.find(item.lineage, item.revision)
        except IntegrityError:
            return False
        return found is not None and sees(self._scope, visibility=found.visibility, scope=found.scope)


class Found(NamedTuple):
    """What a retrieval came to: what was near, the hits of it, how many of them are the answer, why there are none."""

    near: Sequence[tuple[Item, float]]
    hits: Sequence[Hit] | Sequence[CorrectionHit]
    served: int
    empty_reason: str | None


Record = Callable[[Question | CorrectionQuestion, Trail, Found], str | None]
