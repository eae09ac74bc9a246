"""The log as a graph: a column for each stream that is alive, a dot for each event in its stream's. Pure.

A stream is alive from its first line to its last one, whose dot is open: what stands below it in the column is another
stream. Where the last one is not known, because the log goes on, the stream that has been silent longest gives up its
column when there are too many. Events of one append in several streams, as of a merge, are joined across the columns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.shapes.replies.log import LogItem

OPEN_COLUMNS_MAX = 12
_BAR, _DOT, _END = "│", "●", "○"


def draw(
    items: Iterable["LogItem"], text: Callable[["LogItem"], str], *, last: Mapping[str, int] | None
) -> Iterator[str]:
    """Yield the lines of each event, as one string; `last` says at which position each stream is listed last."""
    columns: list[str | None] = []
    seen: dict[str, int] = {}
    append, first_at = "", 0  # the append whose events are being drawn, and the column of its first one
    for count, item in enumerate(items):
        at = _column(columns, item.stream, seen, bounded=last is None)
        seen[item.stream] = count
        first, *further = text(item).split("\n")
        ends = not item.stream or (last is not None and last.get(item.stream) == item.seq)
        if not item.trace_id or item.trace_id != append:
            append, first_at = item.trace_id, at
        line = f"{_cells(columns, at, _END if ends else _DOT, joined=first_at)}  {first}"
        if ends:
            _leave(columns, at)
        yield "\n".join([line, *(f"{_cells(columns)}  {rest}".rstrip() for rest in further)])


def _column(columns: list[str | None], stream: str, seen: Mapping[str, int], *, bounded: bool) -> int:
    """Return the stream's column: the one that it has, the leftmost free one, a new one, or the quietest one's."""
    if stream in columns:
        return columns.index(stream)
    if None in columns:
        at = columns.index(None)
    elif bounded and len(columns) >= OPEN_COLUMNS_MAX:
        at = min(range(len(columns)), key=lambda column: seen[columns[column] or ""])
    else:
        at = len(columns)
        columns.append(None)
    columns[at] = stream
    return at


def _leave(columns: list[str | None], at: int) -> None:
    columns[at] = None
    while columns and columns[-1] is None:
        columns.pop()


def _cells(columns: list[str | None], at: int | None = None, dot: str = _DOT, *, joined: int | None = None) -> str:
    """Draw one line of cells; the dot is joined with another column, which may have ended and gone since."""
    if at is None or joined is None or joined == at:
        return " ".join(dot if n == at else " " if stream is None else _BAR for n, stream in enumerate(columns))
    low, high = min(at, joined), max(at, joined)
    cells: list[str] = []
    for n in range(max(len(columns), high + 1)):
        alive = n < len(columns) and columns[n] is not None
        if n == at:
            cell = dot
        elif n == joined:
            cell = ("├" if alive else "╰") if joined < at else ("┤" if alive else "╯")
        elif low < n < high:
            cell = "┼" if alive else "─"
        else:
            cell = _BAR if alive else " "
        cells.append(cell + ("─" if low <= n < high else " "))
    return "".join(cells).rstrip()
