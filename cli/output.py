"""How an answer leaves: data on stdout, everything else on stderr.

With a machine format stdout is one document (`json`, `yaml`) or a line per item (`jsonl`, `csv`, `name`), and no prose
goes anywhere; where lines leave no place for the cursor of a page, it is a line on stderr.
"""

import json
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli import formats
from cli.context import Session
from cli.text import inert, inert_json

if TYPE_CHECKING:
    from gateway.shapes.replies.base import Reply

Item = TypeVar("Item", bound="Reply")
Document = Mapping[str, Any]  # Any: JSON

_SCHEMA_VERSION = 1
_WHOLE = ("json", "yaml")


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


def note_next(session: Session, cursor: str | None) -> None:
    """Say where a page goes on, if it does: on stderr, in one line, where the answer itself has no place for it."""
    if cursor is None or session.quiet or session.output in _WHOLE:
        return
    said = f"next_cursor: {cursor}" if session.machine else f"there are more: --cursor {cursor}"
    sys.stderr.write(inert(said) + "\n")


def as_document(answer: "Reply | Mapping[str, Any]") -> dict[str, Any]:  # Any: JSON
    """Return the JSON form of an answer."""
    if isinstance(answer, Mapping):
        return {"schema_version": _SCHEMA_VERSION, **answer}
    from gateway.shapes.replies.documents import document

    return document(answer)


def give(
    session: Session,
    answer: "Reply | Mapping[str, Any]",  # Any: JSON
    text: Callable[[], str],
    *,
    items: str | None = None,
) -> None:
    """Write one answer in the wanted format. `items` names the list whose items are its lines."""
    if session.tells:
        print_text(text())
        return
    body = as_document(answer)
    if session.output not in _WHOLE:
        _lines(session, [body] if items is None else body[items])
        return
    kept = _Chosen(session.fields)
    inner = kept(body) if items is None else {**body, items: kept.all(body[items])}
    whole = {"schema_version": _SCHEMA_VERSION, **inner}
    print_text(_dumps(whole, indent=2) if session.output == "json" else "\n".join(formats.yaml(whole)))


def give_stream(session: Session, items: Iterable[Item], text: Callable[[Item], str], *, between: str = "") -> int:
    """Write a list of any length as it arrives, and return how long it was; what is one document stays one.

    `between` is what separates two items in text.
    """
    if session.tells:
        number = 0
        for number, item in enumerate(items, start=1):
            print_text(text(item) if number == 1 else between + text(item))
        return number
    documents = (as_document(item) for item in items)
    if session.output not in _WHOLE:
        return _lines(session, documents)
    kept = _Chosen(session.fields)
    return (_json_list if session.output == "json" else _yaml_list)(map(kept, documents))


class _Chosen:
    """Keeps of each document the fields that `--fields` names, in that order; all but its version if it names none."""

    def __init__(self, fields: str | None) -> None:
        self._fields = [name.strip() for name in fields.split(",")] if fields is not None else None

    def __call__(self, document: Document) -> Document:
        known = {name: value for name, value in document.items() if name != "schema_version"}
        unknown = [name for name in self._fields or () if name not in known]
        if unknown:
            raise click.UsageError(f"There is no field {unknown[0]!r} here; there are {', '.join(known)}.")
        return known if self._fields is None else {name: known[name] for name in self._fields}

    def all(self, documents: Iterable[Document]) -> list[Document]:
        """Return what is kept of each."""
        return [self(document) for document in documents]


def _lines(session: Session, items: Iterable[Document]) -> int:
    """Write a line for each document, where cells need it under a line with their names; return how many they were."""
    kept, count = _Chosen(session.fields), 0
    for count, document in enumerate(items, start=1):
        if session.output == "name":
            print_text(_name(document))
            continue
        chosen = kept(document)
        if session.output == "jsonl":
            print_text(_dumps({"schema_version": _SCHEMA_VERSION, **chosen}))
            continue
        line = formats.csv_line if session.output == "csv" else formats.tabbed_line
        if count == 1:
            print_text(line([*chosen]))
        print_text(line([*chosen.values()]))
    return count


def _name(document: Document) -> str:
    name = formats.name_of(document)
    if name is None:
        raise click.UsageError("This answer is nothing that has a name; leave out -o name.")
    return name


def _json_list(items: Iterable[Document]) -> int:
    number, head = 0, f'{{"schema_version": {_SCHEMA_VERSION}, "items": ['
    for number, item in enumerate(items, start=1):  # nothing is begun before the first item was found to be good
        _write((",\n" if number > 1 else f"{head}\n") + _dumps(item))
    _write(("" if number else head) + '\n], "next_cursor": null, "truncated": false}\n')
    return number


def _yaml_list(items: Iterable[Document]) -> int:
    number, head = 0, f"schema_version: {_SCHEMA_VERSION}\nitems:"
    for number, item in enumerate(items, start=1):
        print_text("\n".join([*([head] if number == 1 else []), *formats.item(item)]))
    print_text(("" if number else f"{head} []\n") + "next_cursor: null\ntruncated: false")
    return number


def _dumps(value: Document, *, indent: int | None = None) -> str:
    return inert_json(json.dumps(value, ensure_ascii=False, indent=indent))


def text_only(session: Session, why: str) -> None:
    """Refuse a machine format where a command has none."""
    if session.machine:
        raise click.UsageError(f"{why}; leave out -o {session.output}.")
