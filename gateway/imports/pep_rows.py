"""The rows of a PEP history: read whole, checked one by one, and not a word of them in a message.

The file is a gzip of JSON lines, oldest first: one line for every change that a PEP made to its own claim. Rows are
numbered from 1 as they stand in the file, bad ones too. A file that is not whole gives no row at all.
"""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from ledger.clock import stamp
from ledger.errors import refuse
from ledger.limits import CONTENT_CHARS_MAX

DEAD = frozenset({"Rejected", "Withdrawn", "Superseded", "Replaced"})
UNPACKED_BYTES_MAX = 256 * 1024 * 1024
PEP_MAX = 999_999_999
LINKS_MAX = 100
AT_S_MAX = 253_402_300_799  # the last second of the year 9999
_GZIP_MAGIC = b"\x1f\x8b"
_Pep = Annotated[int, msgspec.Meta(ge=0, le=PEP_MAX)]
_Peps = Annotated[tuple[_Pep, ...], msgspec.Meta(max_length=LINKS_MAX)]
# In `content` every field has a line of its own: a line break in one could pass for another field.
_Line = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00\n\r]*\Z")]
_Text = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00]*\Z")]


class Edge(NamedTuple):
    """PEP `newer` supersedes PEP `older`."""

    newer: int
    older: int

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of the two lineages, the newer first."""
        return f"pep-{self.newer}", f"pep-{self.older}"

    def __str__(self) -> str:
        return f"PEP {self.newer} supersedes PEP {self.older}"


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of the file. `at`: Unix seconds; `changed`: the fields that differ from the row before."""

    at: Annotated[int, msgspec.Meta(ge=0, le=AT_S_MAX)]
    pep: _Pep
    title: _Line
    status: _Line
    type: _Line
    replaces: _Peps
    superseded_by: _Peps
    abstract: _Text
    changed: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the name of the claim's lineage: `pep-241`."""
        return f"pep-{self.pep}"

    @property
    def dead(self) -> bool:
        """Report whether the status, letter for letter, ends the claim."""
        return self.status in DEAD

    @property
    def valid_from(self) -> str:
        """Return the claim's own time, as the ledger writes times."""
        return stamp(datetime.fromtimestamp(self.at, UTC))

    @property
    def content(self) -> str:
        """Return the six claim fields as text, a line for each; different claims give different texts."""
        fields = {
            f"PEP {self.pep}": self.title,
            "Status": self.status,
            "Type": self.type,
            "Replaces": _listed(self.replaces),
            "Superseded by": _listed(self.superseded_by),
            "Abstract": self.abstract,
        }
        return "\n".join(f"{label}: {text}" if text else f"{label}:" for label, text in fields.items())

    @property
    def edges(self) -> "frozenset[Edge]":
        """Return the edges that this claim states."""
        older = {Edge(self.pep, replaced) for replaced in self.replaces}
        return frozenset(older | {Edge(successor, self.pep) for successor in self.superseded_by})


class ParsedRow(Claim, frozen=True, kw_only=True):
    """One good row.

    `number` is its line's place in the file, `place` its place among the good rows of its own PEP and
    `occurrence` that among lines of equal bytes, all from 1. `line` is without its line feed.
    """

    number: int
    place: int
    occurrence: int
    line: bytes


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be imported. `number` counts lines from 1; `message` holds nothing of the line."""

    number: int
    message: str
    code: str = "VALIDATION_FAILED"


def read_rows(path: Path, *, bytes_max: int = UNPACKED_BYTES_MAX) -> Iterator[ParsedRow | BadRow]:
    """Return the rows of the file at `path`, after the whole of it has been unpacked and found sound.

    A file that cannot be read, is not gzip, is cut or damaged, or unpacks to more than `bytes_max` bytes:
    VALIDATION_FAILED from this call, before any row is handed out.
    """
    return _rows(_unpack(path, bytes_max))


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(f"PEP {number}" for number in numbers) or "none"


def _unpack(path: Path, bytes_max: int) -> bytes:
    try:
        with open(path, "rb") as file:
            if not file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
                refuse(
                    "VALIDATION_FAILED",
                    f"Expected {path} to be JSON lines packed with gzip (.jsonl.gz), found something else; "
                    "nothing was stored. Pack the file with gzip, or name another.",
                )
            with gzip.GzipFile(fileobj=file) as unpacked:
                data = unpacked.read(bytes_max + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        refuse(
            "VALIDATION_FAILED",
            f"Expected {path} to unpack to its end, found it cut or damaged ({type(error).__name__}); "
            "nothing was stored. Fetch or pack the file again.",
        )
    except (OSError, ValueError) as error:
        where, why = (path, error.strerror) if isinstance(error, OSError) else ("the path given", "it is no path")
        refuse(
            "VALIDATION_FAILED",
            f"Expected a file to import at {where}, but it cannot be read ({why}); "
            "nothing was stored. Name a file that this user may read.",
        )
    if len(data) > bytes_max:
        refuse(
            "VALIDATION_FAILED",
            f"Expected {path} to unpack to at most {bytes_max} bytes, found more; nothing was stored. "
            "Import it in parts, each holding the whole history of its PEPs.",
        )
    return data


_DECODER = msgspec.json.Decoder(Claim)


def _rows(data: bytes) -> Iterator[ParsedRow | BadRow]:
    equal: Counter[bytes] = Counter()
    places: Counter[int] = Counter()
    for number, ended in enumerate(io.BytesIO(data), start=1):
        line = ended.removesuffix(b"\n")
        claim = _claim(number, line)
        if isinstance(claim, BadRow):
            yield claim
            continue
        equal[line] += 1
        places[claim.pep] += 1
        yield ParsedRow(
            number=number,
            place=places[claim.pep],
            occurrence=equal[line],
            line=line,
            **msgspec.structs.asdict(claim),
        )


def _claim(number: int, line: bytes) -> Claim | BadRow:
    try:
        claim = _DECODER.decode(line)
    except msgspec.ValidationError as error:
        return _bad(number, _fault(error))
    except msgspec.DecodeError:
        return _bad(number, "it is not one whole JSON object in UTF-8 without lone surrogates")
    chars = len(claim.content)
    if chars > CONTENT_CHARS_MAX:
        return _bad(number, f"its claim has {chars} characters of at most {CONTENT_CHARS_MAX}")
    return claim


def _fault(error: msgspec.ValidationError) -> str:
    """Say which field is at fault: of the decoder's words, which may quote the line, only a known name."""
    at = re.search(r"at `\$\.(\w+)", str(error))
    if at and at[1] in Claim.__struct_fields__:
        return f"its field {at[1]} has a wrong type, is out of bounds, or holds NUL or a line break"
    return "it lacks a field or has one too many"


def _bad(number: int, fault: str) -> BadRow:
    fields = ", ".join(Claim.__struct_fields__)
    return BadRow(
        number,
        f"Expected row {number} to be a JSON object with exactly the fields {fields}; found that {fault}. "
        "Nothing of this row was stored. Mend the row, or go past it with --on-error skip.",
    )
