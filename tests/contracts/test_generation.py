"""A generation is whole and of this ledger's past, or not there: every way in which it can be otherwise."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ledger.errors import UnavailableError
from projections.index import snapshot
from projections.index.disk import SET_ASIDE_KEPT, writer_lock
from projections.index.faiss_index import FaissIndex
from projections.index.partitions import Contents, PartitionedIndex
from projections.index.snapshot import Loaded, Manifest, load, signatures

DIMENSION = 8
SIGNATURE = "provider=test;model=a"


def seal(manifest: bytes) -> str:
    """Return the seal that the key of the ledger of these tests makes."""
    return sha256(b"the key" + manifest).hexdigest()


def publish(root: Path, manifest: Manifest, contents: Contents) -> Path:
    """Publish with that seal."""
    return snapshot.publish(root, manifest, contents, seal=seal)


def link(position: int) -> bytes:
    """Return the link hash at a position of the ledger that these tests imagine."""
    return sha256(f"entry {position}".encode()).digest()


def manifest(position: int = 7, **changes: Any) -> Manifest:  # Any: a manifest's fields, whatever they are
    fields: dict[str, Any] = {
        "ledger": "ldg_1",
        "incarnation": "1",
        "position": position,
        "digest": link(position).hex(),
        "signature": SIGNATURE,
        "dimension": DIMENSION,
    }
    return Manifest(**{**fields, **changes})


def built(n: int = 30, seed: int = 1) -> PartitionedIndex:
    index = PartitionedIndex(DIMENSION, FaissIndex)
    rows = np.random.default_rng(seed).normal(size=(n, DIMENSION)).astype(np.float32)
    for number, row in enumerate(rows):
        index.put(f"partition {number % 3}", f"item-{number}é", row)
    return index


def read(root: Path, *, size: int = 10, **changes: Any) -> Loaded:  # Any: as in manifest
    fields: dict[str, Any] = {
        "ledger": "ldg_1",
        "incarnation": "1",
        "signature": SIGNATURE,
        "dimension": DIMENSION,
        "size": size,
        "digest_at": link,
        "seal": seal,
    }
    return load(root, **{**fields, **changes})


def plain(contents: Contents) -> dict[str, dict[str, bytes]]:
    return {
        key: {item: row.tobytes() for item, row in zip(items, rows, strict=True)}
        for key, (items, rows) in contents.items()
    }


def finished(root: Path) -> list[str]:
    return sorted(path.name for path in root.glob("generation-*") if path.suffix != ".set-aside")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "index"


def test_what_was_published_is_loaded_vector_for_vector(root: Path) -> None:
    """A generation gives back every item, its partition, the bits of its vector, and where it stands."""
    index = built()
    path = publish(root, manifest(), index.dump())
    loaded = read(root)
    assert loaded.generation is not None
    assert (loaded.why, loaded.generation.path) == ("", path)
    assert (loaded.generation.manifest.position, loaded.generation.manifest.count) == (7, 30)
    assert plain(loaded.generation.contents) == plain(index.dump())


def test_a_restored_index_answers_as_the_one_that_was_published(root: Path) -> None:
    """Restarting changes no answer."""
    index, again = built(), PartitionedIndex(DIMENSION, FaissIndex)
    publish(root, manifest(), index.dump())
    generation = read(root).generation
    assert generation is not None
    again.restore(generation.contents)
    keys = ["partition 0", "partition 2"]
    rows = [row for _, vectors in index.dump().values() for row in vectors]
    assert all(again.search(keys, row, 5) == index.search(keys, row, 5) for row in rows)


def test_an_empty_index_is_a_generation_too(root: Path) -> None:
    """Nothing indexed yet is a state, not damage."""
    publish(root, manifest(), PartitionedIndex(DIMENSION, FaissIndex).dump())
    generation = read(root).generation
    assert generation is not None
    assert dict(generation.contents) == {}


def test_where_nothing_was_published_nothing_is_loaded(root: Path) -> None:
    """The first start finds nothing, makes nothing, and says so."""
    assert read(root) == Loaded(None, "absent: no generation was published")
    assert not root.exists()


def test_a_newer_generation_takes_the_place_of_the_older(root: Path) -> None:
    """One generation is kept: the last."""
    publish(root, manifest(5), built(10).dump())
    newest = publish(root, manifest(9), built(20).dump())
    assert finished(root) == [newest.name]
    generation = read(root).generation
    assert generation is not None
    assert (generation.manifest.position, generation.manifest.count) == (9, 20)


def test_a_generation_is_readable_by_its_owner_only(root: Path) -> None:
    """Vectors tell of the texts that they were made from."""
    path = publish(root, manifest(), built().dump())
    assert {file.stat().st_mode & 0o777 for file in path.iterdir()} == {0o600}
    assert {root.stat().st_mode & 0o777, path.stat().st_mode & 0o777} == {0o700}


def truncate(name: str, path: Path) -> None:
    file = path / name
    file.write_bytes(file.read_bytes()[:-1])


def empty(name: str, path: Path) -> None:
    (path / name).write_bytes(b"")


def lengthen(name: str, path: Path) -> None:
    with (path / name).open("ab") as file:
        file.write(b"\0")


def delete(name: str, path: Path) -> None:
    (path / name).unlink()


def make_directory(name: str, path: Path) -> None:
    (path / name).unlink()
    (path / name).mkdir()


FILES = ["manifest.json", "items.json", "vectors.f32"]
HARMS = [truncate, empty, lengthen, delete, make_directory]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_file_sets_the_generation_aside(root: Path, harm: Callable[[str, Path], None], name: str) -> None:
    """A file cut, emptied, lengthened, deleted or replaced leaves no generation; the rest is kept apart."""
    path = publish(root, manifest(), built().dump())
    harm(name, path)
    loaded = read(root)
    assert loaded.generation is None
    assert loaded.why.startswith("damaged: ")
    assert not path.exists()
    assert path.with_name(f"{path.name}.set-aside").is_dir()
    assert read(root).why.startswith("absent")


@pytest.mark.parametrize("name", FILES)
def test_no_flipped_bit_gets_through(root: Path, name: str) -> None:
    """One bit changed in any byte of any file (every byte of the manifest, some of the others) is found."""
    contents = built().dump()
    kept = root.with_name("kept")
    shutil.copytree(publish(root, manifest(), contents), kept)
    content = (kept / name).read_bytes()
    for at in range(0, len(content), 1 if name == "manifest.json" else 37):
        shutil.rmtree(root)
        path = root / f"generation-{7:016d}-00000000"
        shutil.copytree(kept, path)
        (path / name).write_bytes(content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :])
        assert read(root).generation is None, f"byte {at}"


def rewrite(path: Path, change: Callable[[dict[str, Any]], None], *, resealed: bool = True) -> None:
    """Change a manifest as its own writer would have written it, digests of the files and seal included."""
    fields = json.loads((path / "manifest.json").read_bytes())
    change(fields)
    for name in fields["files"]:
        content = (path / name).read_bytes() if (path / name).exists() else b""
        fields["files"][name] = {"size": len(content), "sha256": sha256(content).hexdigest()}
    if resealed:
        whole = msgspec.convert(fields, Manifest)
        fields["seal"] = seal(whole.sealed)
    (path / "manifest.json").write_bytes(json.dumps(fields, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("items.json", b'[["partition 0",["item-0"]]]'),
        ("items.json", b'[["p",["a","b"]],["q",["a"]]]'),
        ("items.json", b'[["p",["a"]],["p",["b","c"]]]'),
        ("items.json", b'{"p":["a","b","c"]}'),
        ("items.json", b'[["p",["a","b",3]]]'),
        ("vectors.f32", b"\0" * 3 * DIMENSION * 4),
        ("vectors.f32", b"\xff" * 3 * DIMENSION * 4),
        ("vectors.f32", b"\0\0\x80\x3f" * 2 * DIMENSION),
        ("vectors.f32", b"\0\0\x80"),
    ],
    ids=["too few", "in two", "twice", "no list", "no text", "zeros", "not finite", "too short", "no float"],
)
def test_files_that_make_no_sense_are_not_loaded_though_their_digests_hold(
    root: Path, name: str, content: bytes
) -> None:
    """A digest shows that a file is as written, not that its writer was right."""
    path = publish(root, manifest(), built(3).dump())
    (path / name).write_bytes(content)
    rewrite(path, lambda fields: None)
    loaded = read(root)
    assert loaded.generation is None
    assert loaded.why.startswith("damaged: ")


def swap_vectors(path: Path) -> None:
    rows = np.frombuffer((path / "vectors.f32").read_bytes(), dtype="<f4").reshape(-1, DIMENSION)
    (path / "vectors.f32").write_bytes(rows[::-1].tobytes())


def swap_items(path: Path) -> None:
    partitions = json.loads((path / "items.json").read_bytes())
    (path / "items.json").write_bytes(json.dumps([[key, items[::-1]] for key, items in partitions]).encode())


@pytest.mark.parametrize("harm", [swap_vectors, swap_items])
def test_a_generation_that_was_written_by_somebody_without_the_key_is_set_aside(
    root: Path, harm: Callable[[Path], None]
) -> None:
    """OH-21: vectors or items exchanged and the manifest's digests made anew: the seal is not theirs to make."""
    path = publish(root, manifest(), built().dump())
    harm(path)
    rewrite(path, lambda fields: None, resealed=False)
    loaded = read(root)
    assert (loaded.generation, path.exists()) == (None, False)
    assert loaded.why == "damaged: the manifest does not carry the seal of this ledger's key"


def test_the_same_exchange_by_a_holder_of_the_key_is_not_told_from_an_index(root: Path) -> None:
    """So it is the seal that finds it above, not something else."""
    path = publish(root, manifest(), built().dump())
    swap_vectors(path)
    rewrite(path, lambda fields: None)
    assert read(root).generation is not None


def test_a_generation_sealed_with_another_key_is_set_aside(root: Path) -> None:
    """A home that was copied beside another ledger key brings nothing in."""
    publish(root, manifest(), built().dump())
    assert read(root, seal=lambda manifest: "another").why.startswith("damaged: the manifest does not carry the seal")


def test_a_manifest_cannot_name_a_file_elsewhere(root: Path) -> None:
    """No path in a manifest is followed."""
    path = publish(root, manifest(), built().dump())
    rewrite(path, lambda fields: fields["files"].update({"../../secret": {}}))
    assert read(root).why == "damaged: the manifest names other files"


def test_a_format_of_another_version_is_not_guessed_at(root: Path) -> None:
    """An unknown format is set aside, whatever it looks like."""
    path = publish(root, manifest(), built().dump())
    rewrite(path, lambda fields: fields.update(format=3))
    assert read(root).why == "foreign: format 3, this version reads 2"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"ledger": "ldg_2"}, "foreign"),
        ({"incarnation": "2"}, "foreign"),
        ({"size": 7}, "newer"),
        ({"size": 0}, "newer"),
        ({"digest_at": lambda position: None}, "newer"),
        ({"digest_at": lambda position: link(position + 1)}, "newer"),
    ],
    ids=[
        "ledger",
        "incarnation",
        "at the head",
        "no entries",
        "no entry",
        "other past",
    ],
)
def test_a_generation_of_something_else_is_set_aside(root: Path, changes: dict[str, Any], word: str) -> None:
    """A generation of another ledger or past, or ahead of a restored ledger, is never used."""
    path = publish(root, manifest(), built().dump())
    loaded = read(root, **changes)
    assert loaded.generation is None
    assert loaded.why.startswith(f"{word}: ")
    assert not path.exists()


@pytest.mark.parametrize("changes", [{"signature": "provider=test;model=b"}, {"dimension": DIMENSION + 1}])
def test_a_generation_of_another_embedder_is_not_used_and_stays(root: Path, changes: dict[str, Any]) -> None:
    """Whoever changed the model is told from what to what, and finds the former index where it was on going back."""
    path = publish(root, manifest(), built().dump())
    loaded = read(root, **changes)
    assert (loaded.generation, loaded.other) == (None, SIGNATURE)
    assert loaded.why == f"signature: built by {SIGNATURE}, configured is {changes.get('signature', SIGNATURE)}"
    assert (signatures(root), path.exists()) == ([SIGNATURE], True)
    assert read(root).generation is not None


def test_a_generation_that_holds_nothing_is_nobodys(root: Path) -> None:
    """An index that is still empty keeps nobody from choosing another embedder."""
    publish(root, manifest(), built(0).dump())
    loaded = read(root, signature="provider=test;model=b")
    assert (loaded.generation, loaded.other, signatures(root)) == (None, None, [])


def test_a_generation_behind_another_embedders_is_used(root: Path) -> None:
    """A swap that was interrupted before the former generation went leaves both; each embedder finds its own."""
    older = publish(root, manifest(5), built(10).dump())
    kept = root.with_name("kept")
    shutil.copytree(older, kept)
    publish(root, manifest(9, signature="provider=test;model=b"), built(20).dump())
    shutil.copytree(kept, older)
    loaded = read(root)
    assert loaded.generation is not None
    assert (loaded.generation.path, loaded.other) == (older, None)
    assert signatures(root) == ["provider=test;model=b", SIGNATURE]


def test_the_generation_at_the_ledgers_last_entry_is_loaded(root: Path) -> None:
    """A generation may be as new as the ledger, not newer."""
    publish(root, manifest(7), built().dump())
    assert read(root, size=8).generation is not None


def test_an_older_good_generation_serves_where_the_newest_is_damaged(root: Path) -> None:
    """What was not yet removed is still of use: its cursor is only farther back."""
    older = publish(root, manifest(5), built(10).dump())
    kept = root.with_name("kept")
    shutil.copytree(older, kept)
    truncate("vectors.f32", publish(root, manifest(9), built(20).dump()))
    shutil.copytree(kept, older)
    loaded = read(root)
    assert loaded.generation is not None
    assert loaded.generation.manifest.position == 5
    assert loaded.why.startswith("damaged: vectors.f32")


def test_only_the_last_generations_set_aside_are_kept(root: Path) -> None:
    """Damage that comes again and again does not fill the disk."""
    for position in range(1, 6):
        delete("items.json", publish(root, manifest(position), built().dump()))
        assert read(root).generation is None
    kept = sorted(path.name[11:27] for path in root.glob("*.set-aside"))
    assert (kept, SET_ASIDE_KEPT) == ([f"{4:016d}", f"{5:016d}"], 2)


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.contracts.test_generation import built, manifest, publish
from projections.index import snapshot

def killed(*_): os.kill(os.getpid(), signal.SIGKILL)
setattr(snapshot, sys.argv[2], killed)
publish(Path(sys.argv[1]), manifest(9), built(20).dump())
"""


@pytest.mark.parametrize("at", ["write_durably", "publish_directory", "retire"])
def test_a_writer_that_is_killed_leaves_the_last_good_generation(root: Path, at: str) -> None:
    """`kill -9` before the files, before the rename or after it: a reader finds a whole generation."""
    publish(root, manifest(5), built(10).dump())
    run = subprocess.run([sys.executable, "-c", KILLED, str(root), at], cwd=Path(__file__).parents[2], check=False)
    assert run.returncode == -9
    generation = read(root).generation
    assert generation is not None
    assert generation.manifest.position == (9 if at == "retire" else 5)
    newest = publish(root, manifest(9), built(20).dump())
    assert sorted(path.name for path in root.iterdir()) == [newest.name]


def test_a_writer_that_fails_leaves_the_last_good_generation(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is INDEX_UNAVAILABLE; nothing half-written stays, and the older generation serves on."""
    path = publish(root, manifest(5), built(10).dump())
    monkeypatch.setattr(os, "fsync", partial(_raise, OSError(28, "No space left on device")))
    with pytest.raises(UnavailableError, match="No space left") as refused:
        publish(root, manifest(9), built(20).dump())
    assert (refused.value.code, refused.value.details["reason"]) == ("INDEX_UNAVAILABLE", "unwritable")
    assert [child.name for child in root.iterdir()] == [path.name]
    assert read(root).generation is not None


def test_a_rename_that_fails_leaves_the_last_good_generation(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation that cannot be put in its place is INDEX_UNAVAILABLE, and the older one serves on."""
    path = publish(root, manifest(5), built(10).dump())
    with monkeypatch.context() as patched, pytest.raises(UnavailableError, match="Input/output error"):
        patched.setattr(Path, "rename", partial(_raise, OSError(5, "Input/output error")))
        publish(root, manifest(9), built(20).dump())
    assert [child.name for child in root.iterdir()] == [path.name]
    assert read(root).generation is not None


def test_a_generation_that_disappears_while_it_is_read_gives_way_to_the_newer(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that is overtaken by the writer looks again, and nothing is set aside."""
    publish(root, manifest(5), built(10).dump())
    overtaken: list[int] = []

    def digest_at(position: int) -> bytes:
        if not overtaken:
            overtaken.append(position)
            publish(root, manifest(9), built(20).dump())
        return link(position)

    loaded = read(root, digest_at=digest_at)
    assert loaded.generation is not None
    assert (loaded.generation.manifest.position, loaded.why, overtaken) == (9, "", [5])
    assert list(root.glob("*.set-aside")) == []


def test_what_the_ledger_says_is_not_swallowed(root: Path) -> None:
    """An error of the ledger is not damage of the index: it goes to the caller, and nothing is set aside."""
    path = publish(root, manifest(), built().dump())
    with pytest.raises(UnavailableError):
        read(root, digest_at=partial(_raise, UnavailableError("UNAVAILABLE", "no database")))
    assert path.is_dir()


def test_a_vector_that_no_index_would_hold_is_not_published(root: Path) -> None:
    """What could not be loaded again is refused when it is written."""
    with pytest.raises(UnavailableError):
        publish(root, manifest(), {"p": (["item"], np.zeros((1, DIMENSION), dtype=np.float32))})
    assert finished(root) == []


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """Return a path that cannot be a directory, for root too, whom permissions do not stop."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file"


def test_a_directory_that_cannot_be_written_is_named(unwritable: Path) -> None:
    """Publishing where it is impossible is INDEX_UNAVAILABLE with the place and what to do."""
    with pytest.raises(UnavailableError, match="make it writable") as refused:
        publish(unwritable / "index", manifest(), built().dump())
    assert str(unwritable) in refused.value.message


def test_a_directory_that_cannot_be_read_is_no_generation(unwritable: Path) -> None:
    """Loading never fails: without a readable generation the index is built again."""
    assert read(unwritable).why.startswith("unreadable: ")
    assert read(unwritable / "index").why.startswith("unreadable: ")


def test_a_generation_that_cannot_be_set_aside_is_still_not_loaded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a read-only disk the damaged generation stays where it is, and is refused every time."""
    path = publish(root, manifest(), built().dump())
    truncate("items.json", path)
    monkeypatch.setattr(Path, "rename", partial(_raise, PermissionError(30, "Read-only file system")))
    assert [read(root).generation, read(root).generation] == [None, None]
    assert path.is_dir()


def test_one_writer_at_a_time(root: Path) -> None:
    """The second who wants to write is told at once that another does, and may when that one is done."""
    with writer_lock(root) as first, writer_lock(root) as second:
        assert (first, second) == (True, False)
    with writer_lock(root) as third:
        assert third is True


def test_the_lock_goes_with_its_process(root: Path) -> None:
    """A writer that is killed leaves no lock behind."""
    code = (
        "import os, signal, sys; from pathlib import Path; from projections.index.disk import writer_lock\n"
        "with writer_lock(Path(sys.argv[1])) as held:\n assert held; os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(root)], cwd=Path(__file__).parents[2], check=False)
    assert run.returncode == -9
    with writer_lock(root) as held:
        assert held is True


def test_where_no_lock_can_be_had_nothing_is_written(unwritable: Path) -> None:
    """A home that cannot be written has no writer; that is no error."""
    with writer_lock(unwritable / "index") as held:
        assert held is False


def test_a_published_directory_has_its_final_name_and_all_that_was_written(tmp_path: Path) -> None:
    """The rename is one step: afterwards only the final name is there."""
    written = tmp_path / ".writing-1"
    written.mkdir()
    (written / "a").write_text("a")
    snapshot.publish_directory(written, tmp_path / "final")
    assert [path.name for path in tmp_path.iterdir()] == ["final"]
    assert (tmp_path / "final" / "a").read_text() == "a"


def _raise(error: Exception, *_: object, **__: object) -> None:
    raise error
