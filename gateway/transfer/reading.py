"""Files of lines and bundles, read as what a stranger gives us: line by line, each with its number, as often as asked.

Nothing is believed of a bundle before it was verified with a key that its reader had before. A line that cannot be read
does not end the reading: it comes through as what it is.
"""

import gzip
import stat
import tempfile
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, cast

import msgspec
from msgspec import Struct

from gateway.transfer.lines import LINE_BYTES_MAX, BadLine, End, Line, Told, parse, parse_head, told
from ledger import bundle, notes
from ledger.bundle import layout
from ledger.bundle.layout import Listed, Malformed, UnknownFormat
from ledger.bundle.source import unpacked
from ledger.digest import of_file
from ledger.errors import failure, refuse
from ledger.notes import NotANote, VerifierKey

JSONL, BUNDLE = "jsonl", "bundle"
TAMPERED = 14
_CHUNK = 1024 * 1024
_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"


class Origin(Struct, frozen=True, kw_only=True):
    """Where lines come from: the log, and the checkpoint that the file gives. `verified`: a key has signed that."""

    kind: str
    origin: str
    size: int
    root: str
    verified: bool
    whole: bool  # whether all lines of an append are in it


class Bad(NamedTuple):
    """A line that cannot be read, by its number, and why."""

    number: int
    why: str


class Source(Protocol):
    """What lines are read from, as often as they are asked for."""

    origin: Origin

    def lines(self) -> Iterator[Told | Bad]:
        """Yield each line that tells an event, or cannot be read, in order."""
        ...


class LineFile:
    """A file of lines, packed by gzip or not."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.origin = self._head()

    def lines(self) -> Iterator[Told | Bad]:
        """Yield each line that tells an event, or cannot be read; a file without its last line ends in one that is bad.

        Errors: VALIDATION_FAILED (it cannot be read any more).
        """
        number, events, bad, end, closed = 1, 0, 0, None, 0
        for number, raw in enumerate(self._raw(), start=1):
            if number == 1:
                continue
            try:
                if isinstance(raw, str):
                    raise BadLine(raw)
                if end is not None:
                    raise BadLine("stands behind the line that closes the file")
                found = parse(number, raw)
            except BadLine as error:
                bad += end is None  # which the closing line may have counted, or not
                yield Bad(number, str(error))
                continue
            if isinstance(found, End):
                end, closed = found, number
            else:
                events += 1
                yield found
        if end is None:
            yield Bad(number + 1, "is missing: the file is not whole")
        elif not events <= end.events <= events + bad:
            yield Bad(closed, "would close another file")

    def _head(self) -> Origin:
        raw = next(self._raw(), b"")
        try:
            if isinstance(raw, str):
                raise BadLine(raw)
            head = parse_head(raw.removeprefix(_MARK))
        except BadLine as error:
            refuse(
                "VALIDATION_FAILED",
                "A file of lines was expected, as `corrigenda export ledger --format jsonl` writes it, and its first "
                f"line {error}. Nothing was stored.",
                line=1,
            )
        return Origin(
            kind=JSONL, origin=head.origin, size=head.size, root=head.root, verified=False, whole=head.kind == "ledger"
        )

    def _raw(self) -> Iterator[bytes | str]:
        """Yield the bytes of each line without its line break, or what is wrong with it."""
        try:
            if not stat.S_ISREG(self._path.stat().st_mode):  # what comes through a pipe is there once, or without end
                raise OSError(None, "it is no plain file, and it is read twice")
            with self._path.open("rb") as file:
                packed = file.read(2) == _GZIP
                file.seek(0)
                yield from _split(cast(IO[bytes], gzip.GzipFile(fileobj=file)) if packed else file)
        except OSError as error:
            refuse(
                "VALIDATION_FAILED",
                f"A file of lines was expected at {self._path}, and it cannot be read: {error.strerror or error}.",
                fields=[{"field": "path", "problem": "cannot be read"}],
            )


def _split(file: IO[bytes]) -> Iterator[bytes | str]:
    try:
        while line := file.readline(LINE_BYTES_MAX + 1):
            if len(line) > LINE_BYTES_MAX:
                while not line.endswith(b"\n") and (line := file.readline(LINE_BYTES_MAX)):
                    pass
                yield f"has more than {LINE_BYTES_MAX:,} bytes"
            else:
                yield line.removesuffix(b"\n").removesuffix(b"\r")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        yield "is cut off: the file is no whole gzip file"


class BundleFile:
    """A bundle that was verified. `chain` is a copy of its readable chain, checked against what the key has signed."""

    def __init__(self, chain: Path, origin: Origin) -> None:
        self._chain = chain
        self.origin = origin

    def lines(self) -> Iterator[Told | Bad]:
        """Yield each event of the chain."""
        with self._chain.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                try:
                    yield told(number, _line(msgspec.json.decode(raw)))
                except BadLine as error:
                    yield Bad(number, str(error))


def _line(row: dict[str, Any]) -> Line:  # Any: JSON
    said = cast(dict[str, Any], row["said"] or {})  # Any: JSON
    return Line(
        key=row["op"],
        place=None,
        places=None,
        recorded_at=said.get("recorded_at") or row["at"],
        project=None,
        valid_from=None,
        valid_to=None,
        **{name: value for name, value in row.items() if name != "clock"},
    )


@contextmanager
def verified(path: Path, key: VerifierKey, origin: str | None) -> Generator[BundleFile]:
    """Verify a bundle with its issuer's key, and give its events.

    Errors: INTEGRITY_BROKEN (it is not what was signed: exit 14, or this key cannot show it: 15), VALIDATION_FAILED (it
    cannot be read).
    """
    try:
        report = bundle.verify_bundle(path, key, origin=origin)
        if not report.ok or report.origin is None or report.size is None or report.root is None:
            raise _refused(report.verdict, report.exit_code)
        found = Origin(
            kind=BUNDLE, origin=report.origin, size=report.size, root=report.root, verified=True, whole=False
        )
        with tempfile.TemporaryDirectory(prefix="corrigenda-import-") as aside:
            chain = Path(aside) / layout.CHAIN
            _copy_chain(path, key, chain)
            yield BundleFile(chain, found)
    except OSError as error:
        refuse(
            "VALIDATION_FAILED",
            f"A bundle was expected at {path}, and it cannot be read: {error.strerror or error}.",
            fields=[{"field": "path", "problem": "cannot be read"}],
        )


def _copy_chain(path: Path, key: VerifierKey, target: Path) -> None:
    """Copy the readable chain, as the signed listing has it: whatever became of the bundle since it was verified."""

    def listed(raw: bytes) -> Mapping[str, Listed]:
        note = notes.open_note(raw, [key], layout.LISTING_BYTES_MAX)
        return layout.parse_listing(note.text)[1]

    try:
        with unpacked(path, listed) as (folder, files):
            expected = files[layout.CHAIN]
            with folder.open(layout.CHAIN) as file, target.open("xb") as copy:
                while copy.tell() <= expected.size and (part := file.read(_CHUNK)):
                    copy.write(part)
        with target.open("rb") as copied:
            found = Listed(target.stat().st_size, of_file(copied))
    except (Malformed, UnknownFormat, NotANote, KeyError) as error:
        raise _refused("tampered", TAMPERED) from error
    if found != expected:
        raise _refused("tampered", TAMPERED)


def _refused(verdict: str, exit_code: int) -> Exception:
    return failure(
        "INTEGRITY_BROKEN" if exit_code == TAMPERED else "LEDGER_UNVERIFIED",
        f"A bundle is imported only if it is what its issuer's key has signed, and this one is {verdict}. Nothing was "
        "stored. `corrigenda verify --bundle` says what is wrong; get it, or the key, from its issuer again.",
        check="bundle",
        verdict=verdict,
        exit_code=exit_code,
    )
