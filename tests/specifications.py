"""`given(…).when(…).then(…)` for deciders: a specification is a sentence about events, without a database."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pytest

from ledger.decider import Decider
from ledger.errors import CorrigendaError
from ledger.message import Event

State = TypeVar("State")
Command = TypeVar("Command")


@dataclass(frozen=True)
class Given(Generic[Command, State]):
    """A history, made by commands: each has been decided on what the ones before left behind."""

    decider: Decider[Command, Event, State]
    history: tuple[Event, ...]

    @property
    def state(self) -> State:
        """Return what the history leaves behind."""
        return self.decider.fold(self.history)

    def when(self, command: Command) -> "When[Command, State]":
        """Wish for something."""
        return When(self, command)


@dataclass(frozen=True)
class When(Generic[Command, State]):
    """A wish that meets a history."""

    given: Given[Command, State]
    command: Command

    def then(self, check: Callable[[Event, State], None]) -> None:
        """Expect one event; `check` is given the event, settled at its position, and the state that it leaves."""
        after = happened(self.given, self.command)
        assert len(after.history) == len(self.given.history) + 1
        check(after.history[-1], after.state)

    def refused(self, code: str, **details: Any) -> None:  # Any: as in CorrigendaError
        """Expect a refusal with this code, and these among its details."""
        with pytest.raises(CorrigendaError) as caught:
            self.given.decider.decide(self.given.state, self.command)
        assert caught.value.code == code
        assert {name: caught.value.details.get(name) for name in details} == details


def given(decider: Decider[Command, Event, State], *commands: Command) -> Given[Command, State]:
    """Return the history that commands make, one append each."""
    history: Given[Command, State] = Given(decider, ())
    for command in commands:
        history = happened(history, command)
    return history


def happened(before: Given[Command, State], command: Command) -> Given[Command, State]:
    """Return the history with what the command makes of it, settled at the positions that come next."""
    decided: Sequence[Event] = before.decider.decide(before.state, command)
    first = len(before.history)
    return Given(before.decider, (*before.history, *(event.settled(first) for event in decided)))
