"""Text that a terminal only shows: stored text made inert, measured, cut and set in columns. Pure.

Stored text is somebody else's: it must not move the cursor, turn the line around or pretend to be a line of ours.
"""

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Sequence

Paint = Callable[[str, str], str]

# Controls, line and paragraph separators, bidi marks and overrides, invisible joiners, tags, lone surrogates.
# The zero-width joiner and non-joiner stay: emoji and several scripts are spelt with them.
_ACTIVE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_MOMENT = re.compile("([0-9T:-]{19})[.]([0-9]{6})Z", re.ASCII)
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def inert(text: str) -> str:
    """Return `text` as one line that a terminal only shows: active characters are spelt as escapes."""
    return _ACTIVE.sub(lambda match: _SHORT.get(match[0]) or _escape(ord(match[0])), text)


def _escape(point: int) -> str:
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def block(text: str, *, gutter: str = "│ ") -> str:
    """Return `text` with its line breaks, each line inert and behind a gutter, so that none looks like ours."""
    return "\n".join(gutter + inert(line) for line in text.replace("\r\n", "\n").split("\n"))


def inert_json(text: str) -> str:
    """Return the same JSON document with its active characters written as JSON escapes."""
    return _ACTIVE.sub(lambda match: match[0] if match[0] == "\n" else _json_escape(match[0]), text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def width(text: str) -> int:
    """Return how many terminal columns `text` takes: wide characters two, combining ones none."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, columns: int | None) -> str:
    """Return `text` cut to at most `columns`, with an ellipsis; None cuts nothing."""
    if columns is None or width(text) <= columns:
        return text
    kept, used = "", 0
    for character in text:
        used += _columns(character)
        if used > columns - 1:
            break
        kept += character
    return kept + "…"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return aligned rows; the last column is not padded."""
    if not rows:
        return ""
    widths = [max(width(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    return "\n".join(_row(row, widths) for row in rows)


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (wide - width(cell)) for cell, wide in zip(row[:-1], widths, strict=True)]
    return "  ".join([*padded, row[-1]]).rstrip()


def pairs(rows: Iterable[tuple[str, str | None]]) -> str:
    """Return aligned, indented `name  value` lines, leaving out names without a value."""
    return "\n".join("  " + line for line in table([(name, value) for name, value in rows if value]).splitlines())


def wrapped(rows: Sequence[tuple[str, str]], *, columns: int) -> str:
    """Return aligned `name: value` lines; a value that does not fit in `columns` goes on below itself."""
    wide = max((width(name) for name, _ in rows), default=0) + 3
    lines: list[str] = []
    for name, value in rows:
        first, *rest = textwrap.wrap(value, columns - wide, break_on_hyphens=False) or [""]
        lines += [f"{name}:".ljust(wide) + first, *(" " * wide + more for more in rest)]
    return "\n".join(lines)


def count(number: int, noun: str) -> str:
    """Return a number of things in words: `1 event`, `2 events`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def moment(at: str) -> str:
    """Return a time of the ledger as people read it: no fraction where it is zero, else milliseconds."""
    match = _MOMENT.fullmatch(at)
    if not match:
        return inert(at)
    return match[1] + ("Z" if int(match[2]) == 0 else f".{match[2][:3]}Z")


def plain(style: str, text: str) -> str:
    """Return `text` without any colour: the `Paint` of a pipe."""
    return text
