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
    """The names that a setting lists, or None where its value stands in the facts; and why it was set."""

    names: tuple[str, ...] | None
    reason: str | None


class PolicyState(State, frozen=True, kw_only=True):
    """Every setting that was ever set, with its value or its names."""

    values: Mapping[str, str | tuple[str, ...]] = {}


def decide(state: PolicyState, command: Command) -> Sequence[Event]:
    """Return the event of a command; a value that holds already makes none."""
    match command:
        case SetPolicy(first=first, reason=reason, setting=setting, value=value, names=names):
            if (value is None) == (names is None):
                raise TypeError(f"a setting has a value or names, and {setting} has both or neither")
            if state.values.get(setting) == (names if value is None else value):
                return ()
            facts = PolicySet(setting=setting, value=value)
            return (Event(facts=facts, payload=PolicyNames(names=names, reason=reason), position=first),)
        case _:
            raise TypeError(f"a policy knows no {type(command).__name__}")


def evolve(state: PolicyState, event: Event) -> PolicyState:
    """Return the policy after an event. Names that were erased are nobody's: the list is empty."""
    match event.facts:
        case PolicySet(setting=setting, value=value):
            names = event.payload.names if isinstance(event.payload, PolicyNames) else None
            held = value if value is not None else names or ()
            return PolicyState(version=state.version + 1, values={**state.values, setting: held})
        case _:
            raise TypeError(f"a policy knows no {type(event.facts).__name__}")


POLICY: Decider[Command, Event, PolicyState] = Decider(PolicyState(), decide, evolve)
