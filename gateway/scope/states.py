"""Folded aggregates, kept by stream version: the state that a verified history leaves behind."""

from collections.abc import Iterable
from typing import TypeVar

from ledger.decider import Command, Decider, State
from ledger.memories import LINEAGE, LineageState
from ledger.message import Event
from ledger.verified import VerifiedLedger

CACHED_MAX = 4_096
StateT = TypeVar("StateT", bound=State)


class States:
    """The aggregates of one ledger at the walk's head. A kept state is used only while its version is the stream's."""

    def __init__(self, ledger: VerifiedLedger) -> None:
        self._ledger = ledger
        self._kept: dict[str, State] = {}

    def lineage(self, stream: str) -> LineageState:
        """Return a lineage's state; the initial one if it has no events."""
        return self.of(LINEAGE, stream)

    def lineages(self, streams: Iterable[str]) -> dict[str, LineageState]:
        """Return the states of some lineages by their streams; those that are not kept are read at once."""
        found = {stream: self._now(LINEAGE, stream) for stream in streams}
        for stream, recorded in self._ledger.streams(one for one, state in found.items() if state is None).items():
            found[stream] = LINEAGE.fold(item.event for item in recorded)
            self.keep(stream, found[stream] or LINEAGE.initial)
        return {stream: state or LINEAGE.initial for stream, state in found.items()}

    def of(self, decider: Decider[Command, Event, StateT], stream: str) -> StateT:
        """Return the state of a stream of that aggregate; the initial one if it has no events."""
        state = self._now(decider, stream)
        if state is None:
            state = decider.fold(item.event for item in self._ledger.stream(stream))
            self.keep(stream, state)
        return state

    def _now(self, decider: Decider[Command, Event, StateT], stream: str) -> StateT | None:
        """Return the state of a stream, as far as that is known without reading it."""
        version = self._ledger.walk.stream(stream).version
        if not version:
            return decider.initial
        kept = self._kept.get(stream)
        return kept if isinstance(kept, type(decider.initial)) and kept.version == version else None

    def keep(self, stream: str, state: State) -> None:
        """Remember a state that has just been folded elsewhere, unless a later one is known."""
        known = self._kept.get(stream)
        if known is not None and known.version > state.version:
            return
        if len(self._kept) >= CACHED_MAX:
            self._kept.clear()
        self._kept[stream] = state
