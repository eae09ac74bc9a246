"""A bundle made: its files in a folder of their own, then the signed listing, then the whole in its place at once.

Nothing lies under the name that was asked for before everything is written and synced. Tar files are plain (POSIX
ustar), begin with the listing and hold no times and no owners, so the same bundle is the same bytes.
"""

import gzip
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import notes
from ledger.bundle import chain, layout
from ledger.bundle.chain import Event
from ledger.bundle.layout import Listed
from ledger.chain import Entry
from ledger.digest import of_file
from ledger.erasure import Erased, Erasures, is_signed
from ledger.message import Payload
from ledger.placing import place_file

_SHIPPED = resources.files("ledger.bundle") / "shipped"
_DATA = "<!--DATA-->"


class Exported(NamedTuple):
    """One entry to be exported, with its payload; salt and bytes are None where the payload is withheld."""

    entry: Entry
    payload: Payload | None
    salt: bytes | None
    body: bytes | None


class Contents(NamedTuple):
    """What goes into a bundle: entries ascending by position, the checkpoint over them, the report to the reader."""

    entries: Sequence[Exported]
    checkpoint: bytes
    origin: str
    public_key: str
    report: dict[str, Any]  # Any: JSON
    prove: Callable[[int], Sequence[bytes]]


class Shown(NamedTuple):
    """One event as the page shows it: with the proof that it is in the tree."""

    one: Exported
    proof: Sequence[bytes]


class About(NamedTuple):
    """What a bundle says beside its events: the signed checkpoint, the report, and how all of it is checked."""

    checkpoint: bytes
    origin: str
    report: dict[str, Any]  # Any: JSON
    guide: bytes


def fill(folder: Path, contents: Contents, key: Ed25519PrivateKey) -> None:
    """Write a bundle's files into a folder, which may hold the log's tiles already, and sign the listing of all."""
    erased = erased_of(contents.entries, contents.public_key)
    events: list[Event] = []
    shown: list[Shown] = []
    for one in contents.entries:
        events.append(event_of(one, erased))
        position = one.entry.position
        proof = contents.prove(position)
        put(folder, layout.envelope(position), one.entry.raw)
        put(folder, layout.proof(position), layout.format_proof(position, proof, contents.checkpoint))
        if one.salt is not None and one.body is not None:
            put(folder, layout.payload(position), one.salt + one.body)
        shown.append(Shown(one, proof))
    put(folder, layout.CHAIN, b"".join(chain.lines(events, chain.names_of(events))))
    put(folder, layout.ERASURES, chain.erasures(erased.values()))
    said = guide("VERIFY.md", contents.origin, POSITION=str(contents.entries[0].entry.position))
    about = About(contents.checkpoint, contents.origin, contents.report, said)
    finish(folder, about, shown, len(shown), key)


def finish(folder: Path, about: About, shown: Sequence[Shown], told: int, key: Ed25519PrivateKey) -> None:
    """Put what each bundle has beside its events, the page with those that are `shown`, and sign the listing of all."""
    put(folder, layout.CHECKPOINT, about.checkpoint)
    put(folder, layout.REPORT, msgspec.json.format(msgspec.json.encode(about.report), indent=2) + b"\n")
    put(folder, layout.GUIDE, about.guide)
    put(folder, layout.VERIFIER, (_SHIPPED / "verify.py").read_bytes())
    put(folder, layout.VIEWER, _viewer(about, shown, told))
    listing = layout.format_listing(about.origin, _listed(folder))
    note = notes.sign(listing, about.origin, key, layout.LISTING_BYTES_MAX)
    put(folder, layout.FILES, notes.format_note(note, layout.LISTING_BYTES_MAX))


class Ready(NamedTuple):
    """A bundle that is on the disk whole, as a directory or as a packed file, and has only to be given its name."""

    path: Path
    bytes: int


def ready(folder: Path, target: Path) -> Ready:
    """Sync a filled folder, or pack it into a file beside it where `target` ends in .tar, .tar.gz or .tgz.

    `discard` removes what was not given a name. Errors: OSError.
    """
    if not is_packed(target):
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        _sync(folder)
        return Ready(folder, size)
    aside = _aside(folder)
    _pack(folder, aside, compressed=not target.name.endswith(".tar"))
    shutil.rmtree(folder)  # a log is large, and need not lie there twice
    return Ready(aside, aside.stat().st_size)


def give(made: Ready, target: Path) -> int:
    """Put what is ready where it was asked for, and return its bytes. Errors: FileExistsError, OSError."""
    if os.path.lexists(target):
        raise FileExistsError(target)
    if made.path.is_dir():
        made.path.rename(target)
    else:
        place_file(made.path, target)
    return made.bytes


def discard(folder: Path) -> None:
    """Remove what is left of a folder in which a bundle was made, and of the file that it was packed into."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        _aside(folder).unlink(missing_ok=True)


def place(folder: Path, target: Path) -> int:
    """Put a filled folder where it was asked for, packed if the name says so; return its bytes.

    Errors: FileExistsError (something is there), OSError.
    """
    if os.path.lexists(target):
        raise FileExistsError(target)
    try:
        return give(ready(folder, target), target)
    finally:
        discard(folder)


def is_packed(target: Path) -> bool:
    """Report whether a bundle of that name is one file."""
    return target.name.endswith((".tar", ".tar.gz", ".tgz"))


def erased_of(entries: Sequence[Exported], public_key: str) -> dict[int, Erased]:
    """Return which payloads are missing because they were erased, as the entries of the bundle themselves show it."""
    key, found = notes.parse_verifier_key(public_key), Erasures()
    for one in entries:
        found.see(one.entry.envelope)
    gone = {one.entry.position for one in entries if one.salt is None}
    certified = found.certified(lambda certificate: is_signed(certificate, key))
    return {one.position: one for one in certified if one.position in gone}


def _aside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.packed")


def event_of(one: Exported, erased: Mapping[int, Erased]) -> Event:
    """Return an event as the chain tells it, with what became of its payload."""
    missing = one.salt is None and one.entry.envelope.payload_sha256 is not None
    told = "erased" if one.entry.position in erased else "withheld"
    return Event(one.entry, None if missing else one.payload, told if missing else None)


def put(folder: Path, name: str, raw: bytes) -> None:
    """Write a file of a bundle."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)


def _listed(folder: Path) -> dict[str, Listed]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _measured(path) for path in paths}


def _measured(path: Path) -> Listed:
    with path.open("rb") as file:
        return Listed(path.stat().st_size, of_file(file))


def _sync(folder: Path) -> None:
    os.sync()
    descriptor = os.open(folder.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _pack(folder: Path, target: Path, *, compressed: bool) -> None:
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    names.remove(layout.FILES)
    with target.open("xb") as raw:
        # Without a time and a name in its header, the same files are packed into the same bytes.
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if compressed else io.BufferedWriter(raw)
        with packed, tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as tar:
            for name in (layout.FILES, *names):
                member = tarfile.TarInfo(name)
                member.size = (folder / name).stat().st_size
                with (folder / name).open("rb") as file:
                    tar.addfile(member, file)
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def guide(name: str, origin: str, **words: str) -> bytes:
    """Return one of the texts that say how a bundle is checked, for a bundle of this log."""
    text = (_SHIPPED / name).read_text(encoding="utf-8")
    for word, value in (("ORIGIN", origin), *words.items()):
        text = text.replace(f"@@{word}@@", value)
    return text.encode()


def _viewer(about: About, shown: Sequence[Shown], told: int) -> bytes:
    """Return the page with the bundle's own bytes in it, as data that no parser of HTML takes for anything else."""
    page = (_SHIPPED / "viewer.html").read_text(encoding="utf-8")
    data = {
        "origin": about.origin,
        "checkpoint": about.checkpoint.decode(),
        "report": about.report,
        "told": told,
        "events": [_shown(*one) for one in shown],
    }
    raw = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":
        raw = raw.replace(character, f"\\u{ord(character):04x}")
    before, _, after = page.partition(_DATA)
    return (before + raw + after).encode()


def _shown(one: Exported, proof: Sequence[bytes]) -> dict[str, Any]:  # Any: JSON
    return {
        "envelope": one.entry.raw.decode(),
        "proof": [sibling.hex() for sibling in proof],
        "salt": None if one.salt is None else one.salt.hex(),
        "payload": None if one.body is None else one.body.decode(),
    }
