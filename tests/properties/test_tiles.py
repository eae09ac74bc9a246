"""Tiles are those of C2SP's tlog-tiles: named as it says, as wide as it says, and every hash the root that it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import tiles, tree
from ledger.digest import leaf
from ledger.tiles import ENTRIES, Tile, WrongWidth

LEAVES = [leaf(b"entry %d" % number) for number in range(66_000)]


def leaves(first: int, count: int) -> bytes:
    """Return leaf hashes as a ledger gives them."""
    return b"".join(LEAVES[first : first + count])


@pytest.mark.parametrize(
    ("tile", "name"),
    [
        (Tile(0, 1_234_067, 256), "tile/0/x001/x234/067"),
        (Tile(0, 0, 256), "tile/0/000"),
        (Tile(0, 273, 112), "tile/0/273.p/112"),
        (Tile(1, 1, 17), "tile/1/001.p/17"),
        (Tile(2, 999, 256), "tile/2/999"),
        (Tile(63, 1_000, 1), "tile/63/x001/000.p/1"),
        (Tile(0, 1_000_000, 255), "tile/0/x001/x000/000.p/255"),
        (Tile(ENTRIES, 5, 256), "tile/entries/005"),
        (Tile(ENTRIES, 1_005, 3), "tile/entries/x001/005.p/3"),
    ],
)
def test_names(tile: Tile, name: str) -> None:
    """The specification's examples, and the edges of a group of three digits."""
    assert tiles.path(tile) == name


@pytest.mark.parametrize("tile", [Tile(64, 0, 1), Tile(0, -1, 1), Tile(0, 0, 0), Tile(0, 0, 257)])
def test_what_is_no_tile_has_no_name(tile: Tile) -> None:
    """No level above 63, no empty tile, none of more than 256 hashes."""
    with pytest.raises(WrongWidth):
        tiles.path(tile)


def test_the_specification_s_example() -> None:
    """70,000 entries: 273 full tiles and one of 112, one full and one of 17 above them, and one of a single hash."""
    grown = [tile for tile, _ in tiles.grow(70_000, lambda _, count: bytes(32 * count))]
    full = [tile.level for tile in grown if tile.is_full]
    assert (full.count(0), full.count(1), full.count(2)) == (273, 1, 0)
    partial = {tiles.path(tile) for tile in grown if not tile.is_full}
    assert partial == {"tile/0/273.p/112", "tile/1/001.p/17", "tile/2/000.p/1"}


@pytest.mark.parametrize("size", [0, 1, 2, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 66_000])
def test_every_hash_is_the_root_that_its_place_says(size: int) -> None:
    """Hash i of tile n at level l is the root of 256^l entries from (256 n + i) 256^l on, and no tile is missing."""
    found: dict[int, int] = {}
    for tile, raw in tiles.grow(size, leaves):
        span = 256**tile.level
        assert len(raw) == 32 * tile.width
        for place, own in enumerate(tiles.split(raw), start=tile.number * 256):
            assert own == tree.root(LEAVES[place * span : (place + 1) * span])
        assert tile.number * 256 == found.get(tile.level, 0)
        found[tile.level] = tile.number * 256 + tile.width
    assert found == {level: size // 256**level for level in range(3) if size // 256**level}


@given(st.integers(1, 3_000))
def test_a_partial_tile_is_as_wide_as_the_size_leaves(size: int) -> None:
    """floor(size / 256^level) mod 256, for hashes and for entries."""
    for level in (ENTRIES, 0, 1):
        listed = list(tiles.of_size(size, level))
        below = 256 ** max(level, 0)
        assert sum(tile.width for tile in listed) == size // below
        assert [tile.width for tile in listed if not tile.is_full] == [w for w in [size // below % 256] if w]


@pytest.mark.parametrize("change", [-32, -1, 1, 32])
@pytest.mark.parametrize("at", [0, 256, 512])
def test_leaves_that_do_not_fit_are_refused(at: int, change: int) -> None:
    """A hash too few or too many, or a byte, in whichever tile: nothing of another width is handed out."""

    def odd(first: int, count: int) -> bytes:
        return (leaves(first, count) + bytes(32))[: 32 * count + (change if first == at else 0)]

    with pytest.raises(WrongWidth):
        list(tiles.grow(600, odd))


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=20))
def test_a_bundle_is_read_as_it_was_written(envelopes: list[bytes]) -> None:
    """Each entry after its length; its leaf hashes are those of the entries, and of no others."""
    raw = tiles.bundle(Tile(ENTRIES, 0, len(envelopes)), envelopes)
    assert tiles.unbundle(raw) == envelopes
    hashes = b"".join(map(leaf, envelopes))
    assert tiles.holds(raw, hashes)
    assert not tiles.holds(raw, hashes[:-32])
    assert not tiles.holds(raw, bytes([hashes[0] ^ 1]) + hashes[1:])


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5), st.data())
def test_a_bundle_that_was_cut_holds_nothing(envelopes: list[bytes], data: st.DataObject) -> None:
    """Wherever it ends, it is not the bundle of those entries."""
    raw = tiles.bundle(Tile(ENTRIES, 0, len(envelopes)), envelopes)
    cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
    assert not tiles.holds(cut, b"".join(map(leaf, envelopes)))


def test_a_bundle_s_entries_have_a_number_and_a_largest_size() -> None:
    """As many as the tile is wide, and at most what two bytes can count."""
    assert len(tiles.bundle(Tile(ENTRIES, 0, 1), [bytes(65_535)])) == 65_537
    for width, envelopes in ((1, [bytes(65_536)]), (2, [b"one"]), (1, [b"one", b"two"])):
        with pytest.raises(WrongWidth):
            tiles.bundle(Tile(ENTRIES, 0, width), envelopes)
