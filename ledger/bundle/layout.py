"""What lies in a bundle, under which names and up to which sizes (BUNDLE.md §2, §3).

`files` is a signed note that lists every other file with its size and SHA-256. It comes first and is believed first, so
whatever else is read has a size that the issuer signed.
"""

import base64
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

from msgspec import Struct

from ledger import tiles
from ledger.digest import SALT_BYTES
from ledger.limits import ENVELOPE_BYTES_MAX, INTEGER_MAX, NOTE_BYTES_MAX, PAYLOAD_BYTES_MAX
from ledger.notes import is_name

FORMAT = "corrigenda-bundle/1"
FILES, CHECKPOINT, CHAIN, ERASURES, REPORT = "files", "checkpoint", "chain.jsonl", "erasures.ndjson", "report.json"
GUIDE, VERIFIER, VIEWER = "VERIFY.md", "verify.py", "viewer.html"
PAYLOAD_TILES = "tile/payloads/"
LISTING_BYTES_MAX = 64 * 1024 * 1024
FILE_BYTES_MAX = 8 * 1024 * 1024 * 1024
UNPACKED_MAX = 100  # times the packed size, and a listing's beside: hashes do not pack, so no honest bundle has more
PROOF_HASHES_MAX = 64
PROOF_BYTES_MAX = NOTE_BYTES_MAX + 8 * 1024

_PROOF_HEADER = "c2sp.org/tlog-proof@v1"
_NUMBER = "(0|[1-9][0-9]{0,15})"
_LINE = re.compile(rf"{_NUMBER} ([0-9a-f]{{64}}) (\S+)")
_TILE = r"tile/(entries|payloads|[0-9]{1,2})/(x[0-9]{3}/){0,6}[0-9]{3}(\.p/[0-9]{1,3})?"
_NAME = re.compile(
    rf"checkpoint|chain\.jsonl|erasures\.ndjson|report\.json|VERIFY\.md|verify\.py|viewer\.html"
    rf"|(envelopes|payloads)/{_NUMBER}|proofs/{_NUMBER}\.tlog-proof|{_TILE}"
)
# What one file can hold at most, by how its name begins; of what is derived from others the listing's word is taken.
_BYTES_MAX = {
    "envelopes/": ENVELOPE_BYTES_MAX,
    "payloads/": SALT_BYTES + PAYLOAD_BYTES_MAX,
    "proofs/": PROOF_BYTES_MAX,
    "tile/entries/": tiles.WIDTH * (tiles.ENTRY_BYTES_MAX + 2),
    "tile/payloads/": tiles.WIDTH * (4 + SALT_BYTES + PAYLOAD_BYTES_MAX),
    "tile/": tiles.WIDTH * tiles.HASH_BYTES,
    CHECKPOINT: NOTE_BYTES_MAX,
}
_INDEX = re.compile(f"index {_NUMBER}")
_LENGTH_BYTES = 4


class Malformed(ValueError):
    """A bundle is not what one can be. The message says where, in a few words."""


class UnknownFormat(ValueError):
    """A bundle is of a version that this program does not know."""


class Listed(Struct, frozen=True):
    """One file as the listing has it: its size in bytes and its SHA-256 in hex."""

    size: int
    sha256: str


class Proof(Struct, frozen=True):
    """The proof that an entry is in the tree of a checkpoint: its index, the hashes from the leaf up, and the note."""

    index: int
    hashes: tuple[bytes, ...]
    checkpoint: bytes


def envelope(position: int) -> str:
    """Return the name of the file with an entry's envelope."""
    return f"envelopes/{position}"


def payload(position: int) -> str:
    """Return the name of the file with an entry's salt and payload."""
    return f"payloads/{position}"


def proof(position: int) -> str:
    """Return the name of the file with an entry's proof of inclusion."""
    return f"proofs/{position}.tlog-proof"


def payload_tile(tile: tiles.Tile) -> str:
    """Return the name of the file with the payloads of a tile of entries."""
    return tiles.path(tile._replace(level=tiles.ENTRIES)).replace("tile/entries/", PAYLOAD_TILES, 1)


def is_tiled(names: Iterable[str]) -> bool:
    """Report whether a bundle of these files has its entries and payloads in tiles, and none in a file of its own."""
    return any(name.startswith(PAYLOAD_TILES) for name in names)


def is_file_name(name: str) -> bool:
    """Report whether a bundle can hold a file of that name: no other is ever opened."""
    return _NAME.fullmatch(name) is not None


def bytes_max(name: str) -> int:
    """Return how many bytes a file of that name can have."""
    return next((most for begin, most in _BYTES_MAX.items() if name.startswith(begin)), FILE_BYTES_MAX)


# ---------------------------------------------------------------- the listing


def format_listing(origin: str, files: Mapping[str, Listed]) -> str:
    """Return the text of the note `files`."""
    lines = [f"{one.size} {one.sha256} {name}" for name, one in sorted(files.items())]
    return "\n".join([FORMAT, origin, *lines, ""])


def parse_listing(text: str) -> tuple[str, dict[str, Listed]]:
    """Return the origin and the files that a listing names. Errors: Malformed, UnknownFormat."""
    version, _, rest = text.partition("\n")
    if version != FORMAT:
        raise UnknownFormat("the listing is of another format, or a newer one")
    origin, _, rest = rest.partition("\n")
    if not is_name(origin) or not rest.endswith("\n"):
        raise Malformed("the listing is not an origin and a line for each file")
    files: dict[str, Listed] = {}
    for line in rest.removesuffix("\n").split("\n"):
        match = _LINE.fullmatch(line)
        if not match or not is_file_name(match[3]) or not int(match[1]) <= bytes_max(match[3]):
            raise Malformed("the listing has a line that is not a size, a hash and a name that a bundle has")
        files[match[3]] = Listed(int(match[1]), match[2])
    if text != format_listing(origin, files):
        raise Malformed("the listing names a file twice, or not in order")
    return origin, files


# ---------------------------------------------------------------- payloads in tiles


def format_record(content: bytes) -> bytes:
    """Return the place of one entry in a tile of payloads: a length, then salt and payload; of none, nothing."""
    return len(content).to_bytes(_LENGTH_BYTES, "big") + content


def read_record(file: IO[bytes], *, skip: bool = False) -> bytes | None:
    """Read one place of a tile of payloads, and of nothing more than its length says; else Malformed.

    None where no payload is given. `skip` goes on to the next place, and answers nothing of this one.
    """
    length = file.read(_LENGTH_BYTES)
    size = int.from_bytes(length, "big")
    if len(length) != _LENGTH_BYTES or not (size == 0 or SALT_BYTES < size <= SALT_BYTES + PAYLOAD_BYTES_MAX):
        raise Malformed("a tile of payloads ends too early, or holds a length that none has")
    if skip:
        file.seek(size, os.SEEK_CUR)
    content = b"" if skip else file.read(size)
    if not skip and len(content) != size:
        raise Malformed("a tile of payloads ends too early")
    return content or None


# ---------------------------------------------------------------- proofs


def format_proof(index: int, hashes: Sequence[bytes], checkpoint: bytes) -> bytes:
    """Return a proof of inclusion as C2SP's tlog-proof writes it."""
    lines = [_PROOF_HEADER, f"index {index}", *(base64.b64encode(one).decode() for one in hashes), "", ""]
    return "\n".join(lines).encode() + checkpoint


def parse_proof(raw: bytes) -> Proof:
    """Return the proof that these bytes are, in its one spelling and without the optional `extra`; else Malformed."""
    if len(raw) > PROOF_BYTES_MAX:
        raise Malformed("a proof is too large")
    head, _, checkpoint = raw.partition(b"\n\n")
    try:
        header, index, *encoded = head.decode("ascii").split("\n")
        hashes = tuple(base64.b64decode(one, validate=True) for one in encoded)
    except ValueError as error:  # too few lines, no ASCII, no base64
        raise Malformed("a proof is not a header, an index and hashes") from error
    match = _INDEX.fullmatch(index)
    if header != _PROOF_HEADER or match is None or int(match[1]) > INTEGER_MAX or len(hashes) > PROOF_HASHES_MAX:
        raise Malformed("a proof is not a header, an index and hashes")
    found = Proof(int(match[1]), hashes, checkpoint)
    if format_proof(found.index, found.hashes, found.checkpoint) != raw or any(len(one) != 32 for one in hashes):
        raise Malformed("a proof is in another spelling than the usual one")
    return found


def positions(names: Iterable[str], folder: str) -> list[int]:
    """Return the positions of the files in one of the folders, ascending."""
    found = (name.removeprefix(f"{folder}/").split(".")[0] for name in names if name.startswith(f"{folder}/"))
    return sorted(map(int, found))
