"""An export as a file of lines: written aside while it is told, recorded, and then put in its place.

It holds one page of events at a time, and knows at the end how many there were.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from gateway.audit.exporting import Exporting
from gateway.shapes.requests import ExportAllRequest
from gateway.transfer import cells, lines
from gateway.transfer.files import Aside, aside
from gateway.transfer.telling import Progress, Telling
from ledger import notes
from ledger.clock import Clock, stamp
from ledger.errors import refuse
from ledger.governance import HandedOut, RecordExport


class Written(Struct, frozen=True, kw_only=True):
    """A file of lines that lies aside, with what the ledger is to know of it."""

    record: RecordExport
    withheld: int
    bytes: int
    aside: Aside

    def place(self) -> None:
        """Put the file where it was asked for. Errors: VALIDATION_FAILED (something is there meanwhile)."""
        self.aside.place()


class Writing:
    """Writes what is told up to a position into a file, as JSON or as a table."""

    def __init__(
        self,
        exporting: Exporting,
        told: Telling,
        request: ExportAllRequest,
        last: int,
        size: int | None,
        clock: Clock,
    ) -> None:
        if last < 0:
            refuse("EVENT_NOT_FOUND", "Nothing had been recorded at that time. Name a later one, or none.")
        self._exporting = exporting
        self._told = told
        self._request = request
        self._last = last
        self._size = size
        self._clock = clock

    @contextmanager
    def made(self, progress: Progress | None) -> Generator[Written]:
        """Write the file aside; it is gone again when the caller has not placed it."""
        note = self._exporting.checkpoint(self._last, self._size)
        checkpoint = notes.parse_checkpoint(notes.parse_note(note).text)
        request = self._request
        head = lines.Head(
            format=lines.FORMAT, kind=request.kind, origin=checkpoint.origin, size=checkpoint.size,
            root=checkpoint.root.hex(), as_of=self._last, made_at=stamp(self._clock()), checkpoint=note.decode(),
        )  # fmt: skip
        with aside(Path(request.out)) as file:
            count = self._write(file, head, progress)
            record = RecordExport(
                kind=f"{request.kind}.{request.form}", count=count, origin=head.origin, size=head.size, root=head.root,
                handed=HandedOut(ids=(), recipient=request.recipient),
            )  # fmt: skip
            yield Written(record=record, withheld=self._told.withheld, bytes=file.finish(), aside=file)

    def _write(self, file: Aside, head: lines.Head, progress: Progress | None) -> int:
        count, is_table = 0, self._request.form == "csv"
        write = file.file.write
        write(cells.header(head.kind) if is_table else lines.encode(head))
        for line in self._told.lines(progress):
            count += 1
            write(cells.row(line, head.kind) if is_table else lines.encode(line))
        if not is_table:
            write(lines.encode(lines.End(format=lines.FORMAT, events=count)))
        return count
