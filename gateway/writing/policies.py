"""The settings of a policy: one table of what can be set, to which values, what holds unless set, and for whom.

Whoever decides by a setting reads it through its append, so that the append is stored only while it still holds.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from gateway.scope.names import Names
from gateway.scope.states import States
from gateway.writing.page import Append
from ledger.errors import failure
from ledger.limits import NAME_CHARS_MAX, SEARCH_K_MAX
from ledger.policy import POLICY, SetPolicy

ValueT = TypeVar("ValueT")
Value = str | tuple[str, ...]

EVERYBODY = "*"
NONE = "none"
POLICY_PREFIX = "pol"
_NAMES_MAX = 100
_WHOLE = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_FRACTION = re.compile(r"0(\.[0-9]{1,6})?|1(\.0{1,6})?", re.ASCII)
_SPAN = re.compile(r"([1-9][0-9]{0,4})d", re.ASCII)


@dataclass(frozen=True, slots=True)
class Setting(Generic[ValueT]):
    """One setting: `read` makes of its value what code decides by, and refuses with ValueError what is none.

    `default` holds unless it was set. A setting of the tenant is the same in all its projects.
    """

    name: str
    default: str
    allowed: str
    read: Callable[[Value], ValueT]
    of_tenant: bool = False

    def checked(self, value: Value) -> Value:
        """Return a value as it is recorded, or VALIDATION_FAILED."""
        try:
            self.read(value)
        except ValueError:
            raise failure(
                "VALIDATION_FAILED",
                f"The setting {self.name} takes {self.allowed}; give one of those.",
                fields=[{"field": self.name, "problem": f"is not {self.allowed}"}],
            ) from None
        return value


def _one_of(*words: str) -> Callable[[Value], str]:
    def read(value: Value) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError
        return value

    return read


def _is(word: str, other: str) -> Callable[[Value], bool]:
    read = _one_of(word, other)
    return lambda value: read(value) == word


def _matched(pattern: re.Pattern[str], value: Value) -> re.Match[str]:
    found = pattern.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    return found


def _whole(value: Value) -> int:
    number = int(_matched(_WHOLE, value)[0])
    if number > SEARCH_K_MAX:
        raise ValueError
    return number


def _fraction(value: Value) -> float:
    return float(_matched(_FRACTION, value)[0])


def _fraction_or_none(value: Value) -> float | None:
    return None if value == NONE else _fraction(value)


def _days(value: Value) -> int:
    return int(_matched(_SPAN, value)[1])


def _names(value: Value) -> frozenset[str] | None:
    """Return the names, or None for everybody's."""
    if value == EVERYBODY:
        return None
    if isinstance(value, str) or len(value) > _NAMES_MAX or len(set(value)) != len(value):
        raise ValueError
    if any(not name.strip() or len(name) > NAME_CHARS_MAX or "\x00" in name for name in value):
        raise ValueError
    return frozenset(value)


_FRACTIONS = "a decimal from 0 to 1 with at most 6 places, such as 0.85"

MODE = Setting("mode", "human_decides", "human_decides or agent_lifecycle", _one_of("human_decides", "agent_lifecycle"))
SELF_APPROVAL = Setting("self_approval", "deny", "deny or allow", _is("allow", "deny"))
VERIFIER_IS_PRODUCER = Setting("verifier_is_producer", "deny", "deny or allow", _is("allow", "deny"))
CORRECTIONS_AGENTS = Setting(
    "corrections.agents", EVERYBODY, f"* for all agents, or at most {_NAMES_MAX} names, each once", _names
)
CORRECTIONS_TOP_K = Setting("corrections.top_k", "3", f"a whole number from 1 to {SEARCH_K_MAX:,}", _whole)
CORRECTIONS_MIN_SCORE = Setting("corrections.min_score", NONE, f"none, or {_FRACTIONS}", _fraction_or_none)
INVALIDATE_CONTRADICTED = Setting("corrections.invalidate_contradicted", "true", "true or false", _is("true", "false"))
CONTRADICTION_THRESHOLD = Setting("corrections.contradiction_threshold", "0.85", _FRACTIONS, _fraction)
LOG_PUBLIC = Setting("log.public", "false", "true or false", _is("true", "false"), of_tenant=True)
MCP_ARGUMENT_ERRORS = Setting(
    "mcp.argument_errors", "protocol", "protocol or tool", _one_of("protocol", "tool"), of_tenant=True
)
TRACE_RETENTION = Setting("trace_retention", "90d", "a number of days from 1d to 99999d", _days)

SETTINGS: Mapping[str, Setting[Any]] = {
    setting.name: setting
    for setting in (  # Any: what each setting's own `read` makes of it
        MODE,
        SELF_APPROVAL,
        VERIFIER_IS_PRODUCER,
        CORRECTIONS_AGENTS,
        CORRECTIONS_TOP_K,
        CORRECTIONS_MIN_SCORE,
        INVALIDATE_CONTRADICTED,
        CONTRADICTION_THRESHOLD,
        LOG_PUBLIC,
        MCP_ARGUMENT_ERRORS,
        TRACE_RETENTION,
    )
}


class Policies:
    """The policy of one ledger's projects: as it stands at the walk's head, or as an append is held to it."""

    def __init__(self, names: Names, states: States) -> None:
        self._names = names
        self._states = states

    def now(self, setting: Setting[ValueT], project: str | None) -> ValueT:
        """Return what a setting says in a project; one that has no id yet has set nothing."""
        return setting.read(self.shown(setting, project)[0])

    def within(self, append: Append, setting: Setting[ValueT], project: str) -> ValueT:
        """Return what a setting says, for a decision of an append, which is stored only while it still says so."""
        state = append.of(POLICY, self.stream(setting, project))
        return setting.read(state.values.get(setting.name, setting.default))

    def shown(self, setting: Setting[ValueT], project: str | None) -> tuple[Value, bool]:
        """Return a setting's value as it is recorded, and whether it was set."""
        if project is None and not setting.of_tenant:
            return setting.default, False
        state = self._states.of(POLICY, self.stream(setting, project or ""))
        return state.values.get(setting.name, setting.default), setting.name in state.values

    def stream(self, setting: Setting[ValueT], project: str) -> str:
        """Return the stream that holds a setting: the project's, or the tenant's."""
        owner = self._names.root if setting.of_tenant else project
        return f"{POLICY_PREFIX}_{owner.partition('_')[2]}"


def parse(given: Mapping[str, object]) -> list[SetPolicy]:
    """Return the wishes that settings by name mean, or VALIDATION_FAILED.

    A value is text as on a command line, or a number, a truth value, None for `none`, or a list of names; `_` may stand
    for `.` in a name, so that a setting can be a keyword argument.
    """
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - as it comes from a caller
        raise _unknown("no names with their values were given")
    if not given:
        raise _unknown("none was named")
    return [_wish(name, value) for name, value in given.items()]


def _wish(name: str, value: object) -> SetPolicy:
    setting = SETTINGS.get(name) or next((one for key, one in SETTINGS.items() if key.replace(".", "_") == name), None)
    if setting is None:
        raise _unknown("another was named")
    checked = setting.checked(_recorded(setting, value))
    if isinstance(checked, str):
        return SetPolicy(setting=setting.name, value=checked, names=None)
    return SetPolicy(setting=setting.name, value=None, names=tuple(sorted(set(checked))))


def _recorded(setting: Setting[Any], value: object) -> Value:
    """Return the text, or the names, that a value given in any of its forms means; what has no form has no text."""
    match value:
        case None:
            return NONE
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            is_list = setting is CORRECTIONS_AGENTS and value != EVERYBODY
            return tuple(name.strip() for name in value.split(",")) if is_list else value
        case list() | tuple() | set() | frozenset():
            names = cast("Collection[object]", value)
            return tuple(name if isinstance(name, str) else "" for name in names)
        case _:
            return ""


def _unknown(found: str) -> Exception:
    return failure(
        "VALIDATION_FAILED",
        f"A setting has to be one of {', '.join(SETTINGS)}, and {found}. Nothing was stored.",
        fields=[{"field": "setting", "problem": "is not one of the policy's settings"}],
        settings=list(SETTINGS),
    )
