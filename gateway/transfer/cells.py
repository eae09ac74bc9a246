"""Lines as rows of CSV (RFC 4180), for people with a spreadsheet; no text in it begins a formula.

It is for reading, not for importing: a cell cannot tell a text that began with a quote from one that was given one.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.shapes.formulas import guarded
from gateway.transfer.lines import Line
from gateway.transfer.telling import CORRECTIONS

_ALWAYS = ("seq", "at", "recorded_at", "type", "actor", "actor_name", "stream", "stream_name", "stream_seq", "project")
_MEMORY = ("revision", "version", "state", "trust", "kind", "origin", "visibility", "valid_from", "valid_to")
_SAID = ("content", "tags", "reason")
_CORRECTION = ("state", "origin", "visibility", "entity_key", "field", "original_value", "corrected_value", "reason")
_LAST = ("payload", "facts", "said", "op", "hash", "key")


def columns(kind: str) -> tuple[str, ...]:
    """Return the names of the columns."""
    own = _CORRECTION if kind == CORRECTIONS else (*_MEMORY, *_SAID)
    return (*_ALWAYS, *own, *_LAST)


def header(kind: str) -> bytes:
    """Return the first line of a table."""
    return _encoded(columns(kind))


def row(line: Line, kind: str) -> bytes:
    """Return one event as a line of a table."""
    values = _values(line)
    return _encoded([_cell(values.get(name)) for name in columns(kind)])


def _values(line: Line) -> Mapping[str, object]:
    facts: dict[str, Any] = line.facts  # Any: JSON
    said = cast(dict[str, Any], line.said or {})  # Any: JSON
    moves = cast(Sequence[dict[str, Any]], facts.get("moves") or ({},))  # Any: JSON
    standing = cast(dict[str, Any], facts.get("standing") or {})  # Any: JSON
    move = moves[-1]
    after = cast(Sequence[str | None], move.get("after") or (standing.get("state"), None, None))
    own = {name: getattr(line, name) for name in (*_ALWAYS, *_LAST)}
    return {
        **{name: facts.get(name) for name in ("kind", "origin", "visibility")},
        **said,
        **own,
        "revision": move.get("revision") or facts.get("revision"),
        "version": move.get("version"),
        "state": after[0],
        "trust": after[1],
        "valid_from": line.valid_from,
        "valid_to": line.valid_to,
    }


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return guarded(value)
        case bool() | dict() | list() | tuple():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _encoded(cells: Sequence[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue().encode()
