"""Folded lineages, kept by stream version: the state that a verified history leaves behind."""

from ledger.memories import LINEAGE, LineageState
from ledger.verified import VerifiedLedger

CACHED_MAX = 4_096


class Lineages:
    """The lineages of one ledger at the walk's head. A kept state is used only while its version is the stream's."""

    def __init__(self, ledger: VerifiedLedger) -> None:
        self._ledger = ledger
        self._kept: dict[str, LineageState] = {}

    def state(self, lineage: str) -> LineageState:
        """Return a lineage's state; the initial one if it has no events."""
        version = self._ledger.walk.stream(lineage).version
        kept = self._kept.get(lineage)
        if kept is not None and kept.version == version:
            return kept
        state = LINEAGE.fold(item.event for item in self._ledger.stream(lineage)) if version else LINEAGE.initial
        self.keep(lineage, state)
        return state

    def keep(self, lineage: str, state: LineageState) -> None:
        """Remember a state that has just been folded elsewhere, unless a later one is known."""
        known = self._kept.get(lineage)
        if known is not None and known.version > state.version:
            return
        if len(self._kept) >= CACHED_MAX:
            self._kept.clear()
        self._kept[lineage] = state
