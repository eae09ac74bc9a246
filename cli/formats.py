"""The machine formats beside JSON: CSV, YAML and bare names. Pure: documents in, text out.

CSV is opened by spreadsheets, which take a cell for a formula by its first character; no text that somebody stored may
begin one. YAML is written with every text in double quotes, so that none is read as something else.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from cli.text import inert

Document = Mapping[str, Any]  # Any: JSON

_NAMES = (
    "revision_id", "correction_id", "candidate_id", "episode_id", "seq", "hash", "memory_id", "name", "id",
    "trace_id",
)  # fmt: skip
_PLAIN = re.compile("[a-z_]{4,}")  # keys that need no quotes; shorter ones may be what YAML takes for a truth value
_WORDS = ("null", "true", "false")


def name_of(document: Document) -> str | None:
    """Return what a document is called by in another command, on one line; None if it is nothing that has a name."""
    found = (document.get(name) for name in _NAMES)
    return next((inert(str(value)) for value in found if value is not None), None)


def csv_line(cells: Sequence[object]) -> str:
    """Return one line of CSV (RFC 4180, without its line break)."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([cell(value) for value in cells])
    return line.getvalue()


def tabbed_line(cells: Sequence[object]) -> str:
    """Return one line of cells with a tab between them, for a terminal and for tools that cut."""
    return "\t".join(inert(value) if isinstance(value, str) else cell(value) for value in cells)


def cell(value: object) -> str:
    """Return a value as a cell of one line: texts inert and never a formula, lists and objects as JSON."""
    match value:
        case None:
            return ""
        case bool() | dict() | list() | tuple():
            return inert(json.dumps(value, ensure_ascii=False))
        case str():
            # Imported here because help and typing errors load nothing of the gateway.
            from gateway.shapes.formulas import guarded

            return inert(guarded(value))
        case _:
            return str(value)


def yaml(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the lines of a value as YAML 1.2 in blocks; YAML 1.1 reads the same."""
    pad = "  " * depth
    match value:
        case dict() if value:
            for key, inner in cast("Mapping[str, object]", value).items():
                yield from _entry(f"{pad}{_key(key)}:", inner, depth + 1)
        case list() | tuple() if value:
            for inner in cast("Sequence[object]", value):
                yield from item(inner, depth)
        case _:
            yield pad + _scalar(value)


def item(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the lines of an item of a list."""
    first, *rest = yaml(value, depth + 1)
    yield f"{'  ' * depth}- {first.lstrip()}"
    yield from rest


def _entry(head: str, value: object, depth: int) -> Iterator[str]:
    lines = list(yaml(value, depth))
    if len(lines) == 1 and lines[0].lstrip() == _scalar(value):
        yield f"{head} {_scalar(value)}"
    else:
        yield head
        yield from lines


def _scalar(value: object) -> str:
    match value:
        case str():
            return _quoted(value)
        case dict():
            return "{}"
        case list() | tuple():
            return "[]"
        case _:
            return json.dumps(value)


def _key(key: str) -> str:
    return key if _PLAIN.fullmatch(key) and key not in _WORDS else _quoted(key)


def _quoted(text: str) -> str:
    """Return a text in double quotes, with the escapes that JSON and YAML share, and YAML's own for what is active."""
    return inert(json.dumps(text, ensure_ascii=False))
