"""Policy: how a project, or the whole tenant, wants things done. Each change is an event."""

from collections.abc import Mapping, Sequence

from ledger.decider import Command, Decider, State
from ledger.message import Event, Facts, Payload


class SetPolicy(Command, frozen=True, kw_only=True):
    """Set one key. `value` is an enum's or a number's text, `names` a list of callers' names; one of them is None."""

    setting: str
    value: str | None
    names: tuple[str, ...] | None


class PolicySet(Facts, frozen=True, kw_only=True):
    """A setting was set; its value stands here where it is an enum or a number."""

    setting: str
    value: str | None


class PolicyNames(Payload, frozen=True, kw_only=True):
    """The names that a setting lists, or None where its value stands in the facts."""

    names: tuple[str, ...] | None


class PolicyState(State, frozen=True, kw_only=True):
    """Every setting that was ever set, with its value or its names."""

    values: Mapping[str, str | tuple[str, ...]] = {}


def decide(state: PolicyState, command: Command) -> Sequence[Event]:
    """Return the event of a command; a value that holds already makes none."""
    raise NotImplementedError


def evolve(state: PolicyState, event: Event) -> PolicyState:
    """Return the policy after an event."""
    raise NotImplementedError


POLICY: Decider[Command, Event, PolicyState] = Decider(PolicyState(), decide, evolve)
