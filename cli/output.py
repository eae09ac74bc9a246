"""How an answer leaves: data on stdout, everything else on stderr.

With a machine format stdout is one document (`json`) or one line per item (`jsonl`), and no prose goes anywhere.
"""

import json
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.context import Session
from cli.text import inert, inert_json

if TYPE_CHECKING:
    from gateway.replies import Reply

Item = TypeVar("Item", bound="Reply")
Document = Mapping[str, Any]  # Any: JSON

_SCHEMA_VERSION = 1


class UnwrittenError(Exception):
    """Stdout did not take the answer; the message is the system's own reason."""


@contextmanager
def writing() -> Generator[None, None, None]:
    """Tell a stdout that takes nothing more from every other error of the system. A closed pipe stays one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnwrittenError(error.strerror or "stdout takes nothing more") from error


def print_text(text: str) -> None:
    """Write text for a person on stdout."""
    if text:
        _write(text + "\n")


def print_bytes(raw: bytes) -> None:
    """Write bytes on stdout as they are."""
    with writing():
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)


def flush() -> None:
    """Bring what was printed to its reader now: it may be long before there is more."""
    with writing():
        sys.stdout.flush()


def _write(text: str) -> None:
    with writing():
        sys.stdout.write(text)


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


def give_stream(session: Session, items: Iterable[Item], text: Callable[[Item], str], *, between: str = "") -> int:
    """Write a list of any length as it arrives, and return how long it was; with `json` it is still one document.

    `between` is what separates two items in text.
    """
    if session.output == "text":
        number = 0
        for number, item in enumerate(items, start=1):
            print_text(text(item) if number == 1 else between + text(item))
        return number
    documents = (as_document(item) for item in items)
    return _lines(documents) if session.output == "jsonl" else _streamed_list(documents)


def _lines(items: Iterable[Document]) -> int:
    count = 0
    for item in items:
        print_text(_dumps({"schema_version": _SCHEMA_VERSION, **item}))
        count += 1
    return count


def _streamed_list(items: Iterable[dict[str, Any]]) -> int:  # Any: JSON
    number = 0
    _write(f'{{"schema_version": {_SCHEMA_VERSION}, "items": [')
    for number, item in enumerate(items, start=1):
        item.pop("schema_version")
        _write((",\n" if number > 1 else "\n") + _dumps(item))
    _write('\n], "next_cursor": null, "truncated": false}\n')
    return number


def _dumps(value: Document, *, indent: int | None = None) -> str:
    return inert_json(json.dumps(value, ensure_ascii=False, indent=indent))


def text_only(session: Session, why: str) -> None:
    """Refuse a machine format where a command has none."""
    if session.machine:
        raise click.UsageError(f"{why}; leave out -o {session.output}.")
