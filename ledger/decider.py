"""Decisions as values: an aggregate is an initial state, `decide` and `evolve`, all three pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

State = TypeVar("State")
Command = TypeVar("Command")
Event = TypeVar("Event")


@dataclass(frozen=True, slots=True)
class Decider(Generic[Command, Event, State]):
    """`decide` refuses by raising and knows no clock, no database and no chance; `evolve` refuses nothing."""

    initial: State
    decide: Callable[[State, Command], Sequence[Event]]
    evolve: Callable[[State, Event], State]

    def fold(self, events: Iterable[Event]) -> State:
        """Return the state that a history leaves behind."""
        return reduce(self.evolve, events, self.initial)
