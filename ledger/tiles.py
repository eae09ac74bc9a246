"""The tree as files: which tiles a log of a size has, what they are called, and what is in them (FORMAT.md §13).

The layout is C2SP's tlog-tiles, unchanged, so that programs which we did not write can read a log that is nothing but a
directory. Here are leaf hashes and envelopes in, names and bytes out, one tile at a time: nothing is read, written or
kept, and memory does not grow with the log.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple

from ledger.digest import EMPTY_TREE, leaf
from ledger.tree import root

WIDTH = 256
HASH_BYTES = len(EMPTY_TREE)
LEVELS_MAX = 64
ENTRY_BYTES_MAX = 65_535

Leaves = Callable[[int, int], bytes]
"""`leaves(first, count)`: so many leaf hashes from a position on, 32 bytes each, one after the other."""

Envelopes = Callable[[int, int], Sequence[bytes]]
"""`envelopes(first, count)`: so many envelopes from a position on."""


class Tile(NamedTuple):
    """Up to 256 hashes, or entries, that lie side by side: the `number`th of its level, and how many it has.

    `level` 0 holds leaf hashes, each level above the roots of the full tiles below it; ENTRIES is the level of none.
    """

    level: int
    number: int
    width: int

    @property
    def is_full(self) -> bool:
        """Report whether it will never change again."""
        return self.width == WIDTH

    @property
    def first(self) -> int:
        """Return the position of the first entry below it."""
        return self.number * WIDTH ** (max(self.level, 0) + 1)


ENTRIES = -1  # the level of entry bundles, which are numbered as the tiles of level 0 are


class WrongWidth(ValueError):
    """What was given for a tile is more or less than belongs into it. The message says how, in a few words."""


def path(tile: Tile) -> str:
    """Return a tile's name below the log's prefix, `tile/<level>/<number>`, with `.p/<width>` while it is not full.

    The number is in groups of three digits, of which all but the last begin with an `x`.
    """
    if tile.level >= LEVELS_MAX or not 1 <= tile.width <= WIDTH or tile.number < 0:
        raise WrongWidth("a tile has a level below 64, a number from 0 and 1 to 256 hashes")
    groups = [f"{tile.number % 1000:03}"]
    above = tile.number // 1000
    while above:
        groups.insert(0, f"x{above % 1000:03}")
        above //= 1000
    level = "entries" if tile.level == ENTRIES else str(tile.level)
    return "/".join(["tile", level, *groups]) + ("" if tile.is_full else f".p/{tile.width}")


def of_size(size: int, level: int) -> Iterator[Tile]:
    """Yield the tiles of a level that a log of `size` entries has, in order; none of them is empty."""
    hashes = size // WIDTH ** max(level, 0)
    for number in range(hashes // WIDTH):
        yield Tile(level, number, WIDTH)
    if hashes % WIDTH:
        yield Tile(level, hashes // WIDTH, hashes % WIDTH)


def grow(size: int, leaves: Leaves) -> Generator[tuple[Tile, bytes]]:
    """Yield every tile of hashes of a log of `size` entries with its bytes, a level's first tiles first.

    A tile comes after all that it was made of. Leaves that are less or more than what was asked for are WrongWidth.
    """
    above: list[list[bytes]] = []
    for tile in of_size(size, 0):
        raw = leaves(tile.first, tile.width)
        yield tile, _checked(tile, raw)
        if tile.is_full:
            yield from _carry(above, tile, raw)
    for level, hashes in enumerate(above, start=1):
        if hashes:
            number = size // WIDTH ** (level + 1)
            tile = Tile(level, number, len(hashes))
            yield tile, _checked(tile, b"".join(hashes))


def _carry(above: list[list[bytes]], tile: Tile, raw: bytes) -> Generator[tuple[Tile, bytes]]:
    """Hand a full tile's root to the level above it, and the same from there where that fills a tile."""
    if tile.level == len(above):
        above.append([])
    row = above[tile.level]
    row.append(root(split(raw)))
    if len(row) == WIDTH:
        full = Tile(tile.level + 1, tile.number // WIDTH, WIDTH)
        raw = _checked(full, b"".join(row))
        row.clear()
        yield full, raw
        yield from _carry(above, full, raw)


def _checked(tile: Tile, raw: bytes) -> bytes:
    if len(raw) != tile.width * HASH_BYTES:
        raise WrongWidth(f"{tile.width} hashes were expected for {path(tile)}, and there are {len(raw)} bytes")
    return raw


def split(raw: bytes) -> list[bytes]:
    """Return the hashes of a tile, 32 bytes each."""
    return [raw[at : at + HASH_BYTES] for at in range(0, len(raw), HASH_BYTES)]


def bundle(tile: Tile, envelopes: Sequence[bytes]) -> bytes:
    """Return an entry bundle: each envelope after its length in two bytes, the high one first.

    Another number of envelopes than the tile's width, or one that the format has no room for, is WrongWidth.
    """
    if len(envelopes) != tile.width:
        raise WrongWidth(f"{tile.width} entries were expected for {path(tile)}, and there are {len(envelopes)}")
    if max(map(len, envelopes)) > ENTRY_BYTES_MAX:
        raise WrongWidth(f"an entry for {path(tile)} has more than {ENTRY_BYTES_MAX} bytes")
    return b"".join(len(raw).to_bytes(2, "big") + raw for raw in envelopes)


def unbundle(raw: bytes) -> list[bytes]:
    """Return the envelopes of an entry bundle. One that ends in the middle of an entry is WrongWidth."""
    found: list[bytes] = []
    at = 0
    while at < len(raw):
        end = at + 2 + int.from_bytes(raw[at : at + 2], "big")
        if at + 2 > len(raw) or end > len(raw):
            raise WrongWidth("an entry bundle ends in the middle of an entry")
        found.append(raw[at + 2 : end])
        at = end
    return found


def holds(raw: bytes, hashes: bytes) -> bool:
    """Report whether an entry bundle is made of the envelopes whose leaf hashes these are."""
    try:
        return b"".join(map(leaf, unbundle(raw))) == hashes
    except WrongWidth:
        return False
