"""How an answer leaves: data on stdout, everything else on stderr.

With a machine format stdout is one document (`json`) or one line per item (`jsonl`), and no prose goes anywhere.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.context import Session
from cli.text import inert, inert_json

if TYPE_CHECKING:
    from gateway.replies import Reply

Item = TypeVar("Item", bound="Reply")
Document = Mapping[str, Any]  # Any: JSON

_SCHEMA_VERSION = 1


def terminal_columns() -> int | None:
    """Return the width of the terminal that stdout is, or None if it is none: piped text is never cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_text(text: str) -> None:
    """Write text for a person on stdout."""
    sys.stdout.write(text + "\n" if text else "")


def note(session: Session, text: str) -> None:
    """Say something beside the data, on stderr; `-q` and machine formats keep silent."""
    if not session.quiet and not session.machine:
        sys.stderr.write(inert(text) + "\n")


def as_document(answer: "Reply | Mapping[str, Any]") -> dict[str, Any]:  # Any: JSON
    """Return the JSON form of an answer."""
    if isinstance(answer, Mapping):
        return {"schema_version": _SCHEMA_VERSION, **answer}
    from gateway.replies import document

    return document(answer)


def give(
    session: Session,
    answer: "Reply | Mapping[str, Any]",  # Any: JSON
    text: Callable[[], str],
    *,
    items: str | None = None,
) -> None:
    """Write one answer in the wanted format. `items` names the list that `jsonl` prints line by line."""
    if not session.machine:
        print_text(text())
        return
    body = as_document(answer)
    if session.output == "json":
        print_text(_dumps(body, indent=2))
    elif items is None:
        print_text(_dumps(body))
    else:
        _lines(body[items])


def give_stream(session: Session, items: Iterable[Item], text: Callable[[Item], str]) -> None:
    """Write a list of any length as it arrives; with `json` it is still one document."""
    if session.output == "text":
        for item in items:
            print_text(text(item))
    elif session.output == "jsonl":
        _lines(as_document(item) for item in items)
    else:
        _streamed_list(as_document(item) for item in items)


def _lines(items: Iterable[Document]) -> None:
    for item in items:
        print_text(_dumps({"schema_version": _SCHEMA_VERSION, **item}))


def _streamed_list(items: Iterable[dict[str, Any]]) -> None:  # Any: JSON
    sys.stdout.write(f'{{"schema_version": {_SCHEMA_VERSION}, "items": [')
    for number, item in enumerate(items):
        item.pop("schema_version")
        sys.stdout.write((",\n" if number else "\n") + _dumps(item))
    sys.stdout.write('\n], "next_cursor": null, "truncated": false}\n')


def _dumps(value: Document, *, indent: int | None = None) -> str:
    return inert_json(json.dumps(value, ensure_ascii=False, indent=indent))


def text_only(session: Session, why: str) -> None:
    """Refuse a machine format where a command has none."""
    if session.machine:
        raise click.UsageError(f"{why}; leave out -o {session.output}.")
