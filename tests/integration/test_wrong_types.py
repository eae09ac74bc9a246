"""Whatever is given to the Python API is taken, or refused in the words of the registry: nothing else comes of it."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import corrigenda
from corrigenda import Gateway
from ledger.errors import REGISTRY, CorrigendaError
from tests.house import last_position, refused

WRONG: tuple[object, ...] = (None, 5, b"x", object(), [], 2**70, -1, float("nan"), "\ud800", True)
GOOD: Mapping[str, object] = {
    "content": "a text", "revision": "m", "other": "n", "newer": "m", "older": "n", "revisions": ["m"],
    "contents": ["another"], "correction": "cor_01J9ZKAAAAAAAAAAAAAAAAAAAA", "reason": "r", "agent": "bot",
    "original_value": "a", "corrected_value": "b", "hash": f"b3:{'0' * 64}", "ids": ["m"], "query": "text",
    "reference": "m", "before": "m", "after": "n", "first": 0, "last": 1, "position": "1", "seq": 1,
    "trace": "op_01J9ZKAAAAAAAAAAAAAAAAAAAA", "prefix": "mem_", "older_than": "90d", "settings": {},
}  # fmt: skip
APART = frozenset({"close"})  # it ends the gateway, and takes nothing


def public_methods() -> dict[str, Callable[..., Any]]:
    """Return the methods of the gateway that a program may call, by name."""
    found = inspect.getmembers(Gateway, inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_") and name not in APART}


def cases() -> Iterator[tuple[str, str]]:
    """Yield each public method with each of its parameters."""
    for name, method in public_methods().items():
        for parameter in list(inspect.signature(method).parameters.values())[1:]:
            yield name, parameter.name


@pytest.fixture
def filled(gateway: Gateway) -> Gateway:
    """Return a gateway to the memories m and n."""
    gateway.remember("text m", memory_id="m")
    gateway.remember("text n", memory_id="n")
    return gateway


def test_a_wrong_type_is_refused_by_the_registry(filled: Gateway, tmp_path: Path) -> None:
    """LM-36: given something of another type for any parameter of any method, it is taken or refused, by a code."""
    methods = public_methods()
    strays: list[str] = []
    for name, wrong in cases():
        for value in WRONG:
            try:
                _called(methods[name], filled, tmp_path, wrong, value)
            except CorrigendaError as error:
                assert error.code in REGISTRY
            except Exception as stray:  # what must not come out
                strays.append(f"{name}({wrong}={value!r:.12}): {type(stray).__name__}: {stray}")
    assert not strays, "\n".join(strays)


def test_what_is_no_switch_or_number_is_no_wish(filled: Gateway, tmp_path: Path, ledger_url: str) -> None:
    """LM-36: given no truth value for a switch, or no number for one, it is refused by name, and nothing is done."""
    methods, before, counted = public_methods(), last_position(ledger_url), 0
    for name, wrong in cases():
        annotation = inspect.signature(methods[name]).parameters[wrong].annotation
        if annotation not in (bool, int, int | None, bool | None):
            continue
        for value in ("yes", b"x", [], 1.5, *([] if annotation in (int | None, bool | None) else [None])):
            with refused("VALIDATION_FAILED") as refusal:
                _called(methods[name], filled, tmp_path, wrong, value)
            assert [fault["field"] for fault in refusal.details["fields"]] == [wrong]
            counted += 1
    assert counted > 100
    assert last_position(ledger_url) == before


def _called(method: Callable[..., Any], gateway: Gateway, folder: Path, wrong: str, value: object) -> None:
    """Call a method with one wrong argument, dry where it can be, and read what it gives to its end."""
    asked: dict[str, Any] = {}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            asked |= {"anything": value} if parameter.name == wrong else {}
        elif parameter.name == wrong:
            asked[wrong] = value
        elif parameter.name == "dry_run":
            asked["dry_run"] = True
        elif parameter.default is inspect.Parameter.empty:
            good = 1 if parameter.annotation is int else GOOD.get(parameter.name, str(folder / "nothing"))
            asked[parameter.name] = good
    answer = method(gateway, **asked)
    if isinstance(answer, Iterator):
        for _ in answer:
            pass


def test_what_opens_a_ledger_refuses_by_the_registry_too(ledger_url: str, home: Path) -> None:
    """Given something of another type for a setting, opening a ledger or a bundle is refused by a code."""
    # Of an actor that none is, nothing is opened: what is looked at before is refused, or let through.
    opening: dict[str, Any] = {"database_url": ledger_url, "home": home, "actor": "system"}
    bundle: dict[str, Any] = {"path": home, "key": "k"}
    strays: list[str] = []
    for call, good in ((corrigenda.open, opening), (corrigenda.verify_bundle, bundle)):
        for name in inspect.signature(call).parameters:
            for value in WRONG[1:]:
                others = {**good, "actor": "human:ana"} if name == "permissions" and value != [] else good
                try:
                    call(**{**others, name: value})
                except CorrigendaError as error:
                    assert error.code in REGISTRY
                except Exception as stray:  # what must not come out
                    strays.append(f"{call.__name__}({name}={value!r:.12}): {type(stray).__name__}: {stray}")
                else:
                    strays.append(f"{call.__name__}({name}={value!r:.12}) was done")
    assert not strays, "\n".join(strays)
