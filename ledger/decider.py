"""Decisions as values: an aggregate is an initial state, `decide` and `evolve`, all three pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

from msgspec import Struct


class Command(Struct, frozen=True, kw_only=True):
    """A wish. `first` is the place that its first event takes in the append: −1−i for the i-th."""

    first: int = -1
    reason: str | None = None


class State(Struct, frozen=True, kw_only=True):
    """What an aggregate's events leave behind. `version` is their number."""

    version: int = 0


StateT = TypeVar("StateT")
CommandT = TypeVar("CommandT")
EventT = TypeVar("EventT")


@dataclass(frozen=True, slots=True)
class Decider(Generic[CommandT, EventT, StateT]):
    """`decide` refuses by raising and knows no clock, no database and no chance; `evolve` refuses nothing."""

    initial: StateT
    decide: Callable[[StateT, CommandT], Sequence[EventT]]
    evolve: Callable[[StateT, EventT], StateT]

    def fold(self, events: Iterable[EventT]) -> StateT:
        """Return the state that a history leaves behind."""
        return reduce(self.evolve, events, self.initial)
