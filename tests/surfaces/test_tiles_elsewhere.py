"""A program that we did not write reads a log from the directory that we rendered, and refuses an altered one.

Go's checksum database reads the tiles themselves. Without Go, PyPI's proofbundle is given proofs that are made of the
tiles' bytes alone. Each test's name says which of the two it was.
"""

import base64
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from others import NO_GO, build, install_proofbundle, run

from gateway.audit import checkpoints
from gateway.upkeep.bare import open_bare
from ledger import notes, tiles, tree
from ledger.digest import leaf
from ledger.memories import Command
from ledger.notes import Checkpoint
from ledger.rendering import render
from tests.conftest import fresh_database
from tests.integration.conftest import Here
from tests.ledgers import WrittenLedger, correct, remember
from tests.roles import as_writer

pytestmark = pytest.mark.soak

FIRST, SECOND = "mem_01JZ8Q0000000000000000000D", "mem_01JZ8Q0000000000000000000E"
WHO = "go" if NO_GO is None else "proofbundle"


class Shown(NamedTuple):
    """A directory, the key that its checkpoint is checked with, an older checkpoint, and how many entries a proof."""

    folder: Path
    key: str
    older: Path
    stride: int = 1


Reader = Callable[[Shown], tuple[int, str]]


def revisions(lineage: str, count: int) -> list[Command]:
    """Return the wishes that make so many revisions of a memory in one append."""
    names = [f"rev_{lineage[-1]}{number}" for number in range(count)]
    pairs = enumerate(pairwise(names), start=1)
    corrected = [correct(old, new, f"It is {number}.", first=-1 - number) for number, (old, new) in pairs]
    return [remember(names[0], "It is 0."), *corrected]


@pytest.fixture(scope="module")
def rendered(server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """A ledger's log at 301 entries, and rendered again into the same directory at 601."""
    made = tmp_path_factory.mktemp("log")
    with (
        fresh_database(server_url, template=migrated_template) as url,
        closing(WrittenLedger(url, made)) as written,
    ):
        store, folder = written.ledger.store, made / "tiles"
        written.append(FIRST, *revisions(FIRST, 300))
        old = checkpoints.sign(store, written.files, tiles=folder)
        written.append(SECOND, *revisions(SECOND, 300))
        new = checkpoints.sign(store, written.files, tiles=folder)
        (made / "older").write_text(old["note"])
        assert (old["size"], new["size"]) == (301, 601)
        yield Shown(folder, new["public_key"], made / "older")


@pytest.fixture(scope="module")
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """What reads the directory: its exit, and its words."""
    made = tmp_path_factory.mktemp("reader")
    if request.param == "go":
        program = build(Path(__file__).with_name("tiles.go"), made)
        return lambda shown: run(program, shown.key, shown.folder, shown.older, str(shown.stride))
    command = install_proofbundle(made)
    if command is None:
        pytest.skip(f"{NO_GO}, and PyPI's proofbundle could not be had")
    return lambda shown: _read_by_proofs(command, shown, made)


def _read_by_proofs(command: Path, shown: Shown, made: Path) -> tuple[int, str]:
    """Let proofbundle check some entries, each with a proof made of the directory's bytes alone."""
    note = (shown.folder / "checkpoint").read_text(encoding="utf-8")
    size = int(note.split("\n")[1])
    leaves = [one for tile in tiles.of_size(size, 0) for one in tiles.split(_bytes(shown, tile))]
    for index in sorted(one for one in {0, 1, 255, 256, 300, 511, 512, size - 1} if one < size):
        proof = [base64.b64encode(one).decode() for one in tree.inclusion(index, leaves)]
        lines = ["c2sp.org/tlog-proof@v1", f"index {index}", *proof, "", note]
        (made / "proof").write_text("\n".join(lines), encoding="utf-8")
        bundle = next(tile for tile in tiles.of_size(size, tiles.ENTRIES) if tile.first <= index < tile.first + 256)
        (made / "entry").write_bytes(tiles.unbundle(_bytes(shown, bundle))[index - bundle.first])
        origin = ("--log-vkey", shown.key, "--expected-origin", note.split("\n")[0])
        code, said = run(command, "verify-proof", "--payload-file", made / "entry", *origin, made / "proof")
        if code:
            return code, said
    return 0, f"ok {int(shown.older.read_text(encoding='utf-8').split(chr(10))[1])} {size}"


def _bytes(shown: Shown, tile: tiles.Tile) -> bytes:
    return (shown.folder / tiles.path(tile)).read_bytes()


@pytest.mark.parametrize("reader", [WHO], indirect=True)
def test_our_tiles_are_read_by_others(reader: Reader, rendered: Shown) -> None:
    """Signature, origin, size, root, every entry's inclusion; and Go, that the log extends its older checkpoint."""
    assert reader(rendered) == (0, "ok 301 601")


@pytest.mark.parametrize("reader", [WHO], indirect=True)
@pytest.mark.parametrize("name", ["checkpoint", "tile/0/000", "tile/0/002.p/89", "tile/entries/001"])
def test_others_refuse_tiles_that_were_altered(reader: Reader, rendered: Shown, name: str, tmp_path: Path) -> None:
    """The check can fail: one bit in whichever file, and it is no log any more."""
    shutil.copytree(rendered.folder, tmp_path / "tiles")
    path = tmp_path / "tiles" / name
    raw = bytearray(path.read_bytes())
    raw[20] ^= 1
    path.write_bytes(raw)
    assert reader(rendered._replace(folder=tmp_path / "tiles"))[0] != 0


@pytest.mark.parametrize("reader", [WHO], indirect=True)
def test_others_refuse_another_key(reader: Reader, rendered: Shown) -> None:
    """Whose log it is comes from whoever reads it, never from the directory."""
    other = notes.format_verifier_key(notes.VerifierKey(rendered.key.split("+")[0], bytes(32)))
    assert reader(rendered._replace(key=other))[0] != 0


@pytest.mark.parametrize("reader", [WHO], indirect=True)
def test_a_bundle_of_a_whole_log_is_such_a_directory(
    reader: Reader, server_url: str, migrated_template: str, tmp_path: Path
) -> None:
    """RC-37: whoever reads tiles reads a bundle that holds them, and finds that it extends an earlier one."""
    with fresh_database(server_url, template=migrated_template) as owner:
        here = Here(as_writer(owner), tmp_path / "home")
        gateway = here(embedder="none")
        for number in range(130):
            gateway.remember(f"It is {number}.", memory_id=f"number-{number}")
        older = gateway.export_ledger(tmp_path / "older", complete=True)
        newer = gateway.export_ledger(tmp_path / "newer", complete=True)
        here.close()
        with open_bare(database_url=here.ledger_url, home=here.home) as bare:
            key = bare.public_key()["public_key"]
    shown = Shown(tmp_path / "newer", key, tmp_path / "older" / "checkpoint")
    assert reader(shown) == (0, f"ok {older.size} {newer.size}")


@pytest.mark.parametrize("reader", [WHO], indirect=True)
def test_others_read_a_log_of_many_levels(reader: Reader, tmp_path: Path) -> None:
    """256,300 entries: three levels of tiles, and more than a thousand of them, whose names have two groups."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    verifier = notes.VerifierKey("ledger.example.org/main", key.public_key().public_bytes_raw())
    leaves = [leaf(b"%d" % position) for position in range(256_300)]

    def signed(size: int) -> bytes:
        return notes.sign_checkpoint(Checkpoint(verifier.name, size, tree.root(leaves[:size])), key)

    def envelopes(first: int, count: int) -> list[bytes]:
        return [b"%d" % position for position in range(first, first + count)]

    def hashes(first: int, count: int) -> bytes:
        return b"".join(leaves[first : first + count])

    (tmp_path / "older").write_bytes(signed(70_000))
    render(tmp_path / "tiles", signed(256_300), verifier, leaves=hashes, envelopes=envelopes)
    assert (tmp_path / "tiles/tile/0/x001/001.p/44").exists()
    shown = Shown(tmp_path / "tiles", notes.format_verifier_key(verifier), tmp_path / "older", stride=1_009)
    assert reader(shown) == (0, "ok 70000 256300")
