"""The small part of the PEP history that ships with the program, and the command that cuts it from the whole:

    python -m gateway.imports.excerpt pep-history.jsonl.gz gateway/imports/pep-excerpt.jsonl.gz

It holds whole histories: those of every PEP that a link names, of some that are well known, and of the lowest
numbers until `LINEAGES` are reached. Only facts are kept: number, title, status, type, links, time. Abstracts
are left empty, and a row that says nothing new without its abstract is left out. From the same input come the
same bytes.

The facts come from the public git history of github.com/python/peps, 2000 to 2026. PEPs are placed in the
public domain or under CC0-1.0-Universal by their authors.

It must never change a fact: apart from the abstracts, what it writes stands in the history letter for letter.
"""

import gzip
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from gateway.imports.pep_rows import BadRow, Claim, ParsedRow, read_rows
from ledger.errors import CorrigendaError, refuse

EXCERPT = Path(__file__).with_name("pep-excerpt.jsonl.gz")

LINEAGES = 210

WELL_KNOWN = frozenset({373, 404, 434, 484, 526, 572, 604, 695, 703, 810, 3000, 3003, 3099, 3105, 3131, 8016})

_FIELDS = ("title", "status", "type", "replaces", "superseded_by", "abstract")  # as `changed` orders them


def choose(claims: Iterable[Claim]) -> frozenset[int]:
    """Return the numbers of the PEPs whose histories are kept."""
    seen: set[int] = set()
    wanted: set[int] = set(WELL_KNOWN)
    for claim in claims:
        seen.add(claim.pep)
        wanted.update(end for edge in claim.edges for end in edge)
    kept = wanted & seen
    return frozenset(kept | set(sorted(seen - kept)[: max(0, LINEAGES - len(kept))]))


def facts(claims: Iterable[Claim]) -> list[Claim]:
    """Return the chosen claims without abstracts, and without those that then repeat the one before."""
    claims = list(claims)
    chosen = choose(claims)
    last: dict[int, Claim] = {}
    kept: list[Claim] = []
    for claim in claims:
        if claim.pep not in chosen:
            continue
        changed = _changed(last.get(claim.pep), bare := msgspec.structs.replace(claim, abstract=""))
        if changed:
            last[claim.pep] = bare
            kept.append(msgspec.structs.replace(bare, changed=changed))
    return kept


def pack(claims: Iterable[Claim]) -> bytes:
    """Return the claims as JSON lines in a gzip that carries neither time nor name."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as lines:
        for claim in claims:
            lines.write(msgspec.json.encode(claim) + b"\n")
    return packed.getvalue()


def main(arguments: Sequence[str]) -> int:
    """Cut the history at the first path into the second. A bad file or row: exit 2, nothing written."""
    if len(arguments) != 2:
        print("usage: python -m gateway.imports.excerpt HISTORY.jsonl.gz EXCERPT.jsonl.gz", file=sys.stderr)
        return 2
    try:
        packed = pack(facts(_claims(read_rows(Path(arguments[0])))))
    except CorrigendaError as error:
        print(error.message, file=sys.stderr)
        return error.exit_code
    Path(arguments[1]).write_bytes(packed)
    return 0


def _claims(rows: Iterable[ParsedRow | BadRow]) -> Iterator[Claim]:
    for row in rows:
        if isinstance(row, BadRow):
            refuse(row.code, row.message)
        yield Claim(**{name: getattr(row, name) for name in Claim.__struct_fields__})


def _changed(before: Claim | None, after: Claim) -> tuple[str, ...]:
    return tuple(name for name in _FIELDS if before is None or getattr(before, name) != getattr(after, name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
