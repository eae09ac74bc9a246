"""Holds callers in Python to the switches, numbers, paths and callables that a method takes.

Texts, lists and documents are the requests' to check. It sees to what would otherwise reach Python itself: a number
that is none is refused by a code, and `dry_run=[]` does not store. It must never change what it lets through.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

from ledger.errors import failure

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Rule = Callable[[object], bool]

_KINDS: Mapping[object, tuple[str, _Rule]] = {
    NoneType: ("None", lambda value: value is None),
    bool: ("True or False", lambda value: isinstance(value, bool)),
    int: ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    float: ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    bytes: ("bytes", lambda value: isinstance(value, bytes)),
    Path: ("a path", lambda value: isinstance(value, Path)),
    Callable: ("a callable", callable),
}
_TEXT: tuple[str, _Rule] = ("a text", lambda value: isinstance(value, str))


def typed(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return the method, refusing with VALIDATION_FAILED what its annotations say that it does not take."""
    kinds = {name: found for name, one in method.__annotations__.items() if (found := _kinds(one))}
    code = method.__code__
    positional = code.co_varnames[: code.co_argcount]

    @wraps(method)
    def checked(*args: _P.args, **named: _P.kwargs) -> _R:
        for name, value in (*zip(positional, args, strict=False), *named.items()):
            if name in kinds and not any(is_one(value) for _, is_one in kinds[name]):
                raise _wrong(name, " or ".join(word for word, _ in kinds[name] if word != "None"))
        return method(*args, **named)

    return checked if kinds else method


def _kinds(annotation: Any) -> tuple[tuple[str, _Rule], ...]:  # Any: whatever stands behind a colon
    """Return what a parameter takes, each in words and as a rule; nothing where a schema has to say it."""
    is_union = isinstance(annotation, UnionType) or get_origin(annotation) is Union
    members: list[object] = [get_origin(one) or one for one in (get_args(annotation) if is_union else (annotation,))]
    known = {**_KINDS, str: _TEXT} if Path in members else _KINDS
    return tuple(known[one] for one in members) if all(one in known for one in members) else ()


def _wrong(name: str, what: str) -> Exception:
    return failure(
        "VALIDATION_FAILED",
        f"The request cannot be taken: {name} is not {what}. Mend that and ask again.",
        fields=[{"field": name, "problem": f"is not {what}"}],
    )
