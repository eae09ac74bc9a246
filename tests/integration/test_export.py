"""A memory's history handed to an outsider: the bundle proves what it says, and nothing that was altered passes.

Every check is made by two programs that share no code: ours, and the one file of Python that lies in each bundle.
"""

import contextlib
import gzip
import importlib.util
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from corrigenda import CorrigendaError
from gateway.audit.bundles import verify_bundle
from gateway.service import Gateway
from gateway.upkeep.bare import open_bare
from ledger import keys, notes
from ledger.bundle import layout
from ledger.bundle import writing as bundle_writing
from tests.conftest import fresh_database
from tests.house import last_position, refused, rows
from tests.integration.conftest import Here
from tests.roles import as_writer

SECRET = "The door code is 4711."
VERIFIED, WITHHELD = "verified", "verified, with payloads withheld"


class Handed(NamedTuple):
    """A bundle, the key that checks it, and the file of the private one that signed it."""

    path: Path
    key: str
    signing: Path


def remembered(gateway: Gateway) -> None:
    """Make a memory of three versions, one of which says something secret, and another memory beside it."""
    first = gateway.remember("Deploys happen on Mondays.", memory_id="deploys", tags=["ops"])
    gateway.remember("Nothing to do with it.")
    second = gateway.correct(first.revision_id or "", SECRET, reason="overheard")
    gateway.correct(second.revision_id or "", "Deploys happen on Tuesdays.", reason="asked Ben")
    gateway.revoke("deploys", reason="Ben left")
    gateway.restore("deploys")


def key_of(here: Here) -> str:
    """Return the ledger's verifier key, as its owner would print it."""
    with open_bare(database_url=here.ledger_url, home=here.home) as bare:
        return bare.public_key()["public_key"]


def handed(here: Here, path: Path, **settings: Any) -> Handed:  # Any: what export_supersession takes
    """Return the bundle of the memory, made on a ledger that holds nothing else yet."""
    gateway = here()
    remembered(gateway)
    gateway.export_supersession(["deploys"], path, **settings)
    return Handed(path, key_of(here), here.home / "keys" / "signing.pem")


class Originals(NamedTuple):
    """One ledger's bundle with proofs, and its complete one, both in directories."""

    proofs: Handed
    complete: Handed


@pytest.fixture(scope="module")
def originals(server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Originals]:
    """Return two bundles of one ledger; tests take copies of them."""
    made = tmp_path_factory.mktemp("bundles")
    with fresh_database(server_url, template=migrated_template) as owner:
        here = Here(as_writer(owner), made / "home")
        gateway = here(embedder="none")
        remembered(gateway)
        gateway.export_supersession(["deploys"], made / "proofs")
        gateway.export_supersession(["deploys"], made / "complete", complete=True)
        key, signing = key_of(here), here.home / "keys" / "signing.pem"
        here.close()
        yield Originals(Handed(made / "proofs", key, signing), Handed(made / "complete", key, signing))


@pytest.fixture
def bundle(originals: Originals, tmp_path: Path) -> Handed:
    """Return a bundle with proofs and all payloads, in a directory of the test's own."""
    return originals.proofs._replace(path=Path(shutil.copytree(originals.proofs.path, tmp_path / "bundle")))


@pytest.fixture
def complete(originals: Originals, tmp_path: Path) -> Handed:
    """Return a bundle that holds every entry of the log, in a directory of the test's own."""
    return originals.complete._replace(path=Path(shutil.copytree(originals.complete.path, tmp_path / "bundle")))


def alone(path: Path) -> ModuleType:
    """Return the program that lies in a bundle, as it lies there."""
    spec = importlib.util.spec_from_file_location("verify_alone", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ALONE = alone(Path(bundle_writing.__file__).parent / "shipped" / "verify.py")


def exits(path: Path, key: str) -> tuple[int, int]:
    """Return the exits of both programs for one bundle."""
    with contextlib.redirect_stdout(io.StringIO()):
        return verify_bundle(path, key).exit_code, ALONE.main([key, str(path)])


def resigned(bundle: Handed, change: Callable[[str], str] = lambda text: text, key: Path | None = None) -> None:
    """Sign the listing of what lies in a bundle now, as its issuer could, whatever the files are."""
    origin = bundle.key.split("+")[0]
    files = {path: path.relative_to(bundle.path).as_posix() for path in bundle.path.rglob("*") if path.is_file()}
    listed = {
        name: layout.Listed(path.stat().st_size, bundle_writing._measured(path).sha256)
        for path, name in files.items()
        if name != layout.FILES
    }
    text = change(layout.format_listing(origin, listed))
    signed = notes.sign(text, origin, keys.read_signing_key(key or bundle.signing))
    (bundle.path / layout.FILES).write_bytes(notes.format_note(signed))


# ---------------------------------------------------------------- what is proven


def test_a_bundle_is_verified_by_two_programs(bundle: Handed) -> None:
    """RC-37: every link with ids, versions, actors, reasons and times, and both programs find all of it proven."""
    found = verify_bundle(bundle.path, bundle.key)
    assert (found.verdict, found.exit_code, found.profile) == (VERIFIED, 0, "proofs")
    assert exits(bundle.path, bundle.key) == (0, 0)
    lines = [json.loads(line) for line in (bundle.path / layout.CHAIN).read_text().splitlines()]
    told = [line for line in lines if line["stream"].startswith("mem_")]
    assert [line["type"] for line in told] == [
        "memory.remembered.v1",
        "revision.corrected.v1",
        "revision.corrected.v1",
        "revision.revoked.v1",
        "memory.restored.v1",
    ]
    assert [line["said"]["reason"] for line in told] == [None, "overheard", "asked Ben", "Ben left", None]
    assert {(line["actor_name"], line["stream_name"]) for line in told} == {("human:ana", "deploys")}
    assert [line["facts"]["moves"][-1]["version"] for line in told] == [1, 2, 3, 3, 3]
    assert "Nothing to do with it." not in (bundle.path / layout.CHAIN).read_text()


def test_a_bundle_says_what_it_does_not_exclude(bundle: Handed) -> None:
    """Proofs of single entries do not show that no later ones exist, and the verdict says so."""
    assert any("Later events of these streams are not excluded" in one for one in verify_bundle(*bundle[:2]).says)


def test_a_complete_bundle_leaves_nothing_open(complete: Handed) -> None:
    """With every entry of the log, nothing of the streams can be missing."""
    found = verify_bundle(complete.path, complete.key)
    assert (found.verdict, found.profile) == (VERIFIED, "complete")
    assert f"Nothing of these streams is missing up to size {found.size}." in found.says
    assert exits(complete.path, complete.key) == (0, 0)


@pytest.mark.parametrize("name", ["bundle.tar", "bundle.tar.gz", "bundle.tgz"])
def test_a_bundle_may_be_one_file(open_here: Here, tmp_path: Path, name: str) -> None:
    """Packed, it is the same bundle; and nothing but it is left where it was made."""
    made = handed(open_here, tmp_path / name)
    assert exits(made.path, made.key) == (0, 0)
    assert [path.name for path in tmp_path.iterdir() if path != open_here.home] == [name]


def test_texts_can_be_withheld(open_here: Here, tmp_path: Path) -> None:
    """Data is withheld by leaving payloads out: the chain is proven, and no file holds a text."""
    made = handed(open_here, tmp_path / "bundle", with_payloads="none")
    found = verify_bundle(made.path, made.key)
    assert (found.verdict, found.exit_code, found.payloads["given"]) == (WITHHELD, 0, 0)
    assert exits(made.path, made.key) == (0, 0)
    everything = b"".join(path.read_bytes() for path in made.path.rglob("*") if path.is_file())
    assert SECRET.encode() not in everything and b"human:ana" not in everything


def test_some_texts_can_be_shown(open_here: Here, tmp_path: Path) -> None:
    """Named revisions are shown with their texts, the others without."""
    gateway = open_here()
    remembered(gateway)
    head = gateway.show("deploys").revision_id
    gateway.export_supersession(["deploys"], tmp_path / "bundle", with_payloads=[head])
    everything = b"".join(path.read_bytes() for path in (tmp_path / "bundle").rglob("*") if path.is_file())
    assert b"Deploys happen on Tuesdays." in everything and SECRET.encode() not in everything
    assert verify_bundle(tmp_path / "bundle", key_of(open_here)).verdict == WITHHELD


def test_the_past_can_be_exported(open_here: Here, tmp_path: Path) -> None:
    """As of a position, what came later is left out; the report says how long the stream is."""
    gateway = open_here()
    remembered(gateway)
    second = gateway.history("deploys").items[1]
    gateway.export_supersession(["deploys"], tmp_path / "bundle", as_of=str(second.position))
    (stream,) = (
        one for one in verify_bundle(tmp_path / "bundle", key_of(open_here)).streams
        if str(one["stream"]).startswith("mem_")
    )  # fmt: skip
    assert (stream["events"], stream["last"]) == (2, second.position)
    assert json.loads((tmp_path / "bundle" / layout.REPORT).read_text())["streams"] == {stream["stream"]: 5}


def test_a_past_that_is_complete_or_empty_is_refused(open_here: Here, tmp_path: Path) -> None:
    """All entries of the log are not the past; and before a memory was there, there is nothing of it to hand out."""
    gateway = open_here()
    remembered(gateway)
    for position, whole, code in (("3", True, "VALIDATION_FAILED"), ("0", False, "MEMORY_NOT_FOUND")):
        with pytest.raises(CorrigendaError) as caught:
            gateway.export_supersession(["deploys"], tmp_path / "bundle", as_of=position, complete=whole)
        assert caught.value.code == code
    assert not (tmp_path / "bundle").exists()


# ---------------------------------------------------------------- the export is an event


def test_an_export_is_recorded(open_here: Here, tmp_path: Path) -> None:
    """Who handed out what, to whom, at which checkpoint stands in the ledger."""
    gateway = open_here()
    remembered(gateway)
    made = gateway.export_supersession(["deploys"], tmp_path / "bundle", recipient="auditor@example.org")
    event = gateway.show_event(made.position)
    assert (event.type, event.actor) == ("export.made.v1", "human:ana")
    assert event.payload == {"ids": ("deploys",), "recipient": "auditor@example.org"}
    assert event.facts == {
        "count": made.events, "kind": "supersession", "origin": made.origin, "root": made.root, "size": made.size,
    }  # fmt: skip


def test_what_cannot_be_written_is_not_recorded(open_here: Here, tmp_path: Path) -> None:
    """A target that is taken, or that cannot be, leaves no event and nothing half made."""
    gateway = open_here()
    remembered(gateway)
    before = rows(open_here.ledger_url, "SELECT count(*) FROM corrigenda.event")
    (tmp_path / "taken").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "no")
    for target in (tmp_path / "taken", tmp_path / "link", tmp_path / "no" / "where"):
        with pytest.raises(CorrigendaError) as caught:
            gateway.export_supersession(["deploys"], target)
        assert caught.value.code == "VALIDATION_FAILED"
    assert rows(open_here.ledger_url, "SELECT count(*) FROM corrigenda.event") == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".taken")]


EXPORTS: dict[str, Callable[..., Any]] = {  # Any: as each of them takes
    "supersession": lambda gateway, out, **more: gateway.export_supersession(["deploys"], out, **more),
    "lines": lambda gateway, out, **more: gateway.export_ledger(out, form="jsonl", **more),
    "bundle": lambda gateway, out, **more: gateway.export_ledger(out, **more),
    "complete": lambda gateway, out, **more: gateway.export_ledger(out, complete=True, **more),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [("supersession", "b"), ("bundle", "b.tar"), ("lines", "b"), ("complete", "b"), ("complete", "b.tar")],
)
def test_of_two_exports_to_one_name_one_is_made_and_recorded(
    open_here: Here, tmp_path: Path, kind: str, name: str
) -> None:
    """Given an export that is being written, when another one wants its name, then it is refused, and not recorded."""
    export, out = EXPORTS[kind], tmp_path / name
    gateway, other = open_here(embedder="none"), open_here(embedder="none")
    remembered(gateway)
    told: list[str] = []

    def meanwhile(_done: int, _total: int) -> None:
        if not told:
            with refused("VALIDATION_FAILED") as refusal:
                export(other, out)
            told.append(refusal.error.message)

    made = export(gateway, out, progress=meanwhile)

    assert "another one is being made there" in told[0]
    recorded = rows(open_here.ledger_url, "SELECT seq FROM corrigenda.log_entry WHERE type = 'export.made.v1'")
    assert recorded == [(made.position,)] and last_position(open_here.ledger_url) == made.position
    assert {path.name for path in tmp_path.iterdir()} == {"home", name}
    with refused("VALIDATION_FAILED"):
        export(other, out)


def test_an_export_that_is_asked_for_again_is_the_same(open_here: Here, tmp_path: Path) -> None:
    """RC-14: the same key hands out what was recorded, also where the bundle is gone by now, and records nothing."""
    gateway = open_here()
    remembered(gateway)
    target = tmp_path / "bundle.tar"
    again: dict[str, Any] = {"idempotency_key": "k1", "recipient": "ana"}
    first = gateway.export_supersession(["deploys"], target, **again)
    kept = gateway.export_supersession(["deploys"], target, **again)
    gateway.correct("deploys", "Deploys happen on Fridays.")
    target.unlink()
    made = gateway.export_supersession(["deploys"], target, **again)
    assert [one.replayed for one in (first, kept, made)] == [False, True, True]
    assert {(one.position, one.size, one.root, one.events) for one in (first, kept, made)} == {
        (first.position, first.size, first.root, first.events)
    }
    found = verify_bundle(target, key_of(open_here))
    assert (found.exit_code, found.size, found.root) == (0, first.size, first.root)
    counted = rows(open_here.ledger_url, "SELECT count(*) FROM corrigenda.log_entry WHERE type = 'export.made.v1'")
    assert counted == [(1,)]


def test_a_key_is_not_used_for_another_export(open_here: Here, tmp_path: Path) -> None:
    """RC-16: for another recipient, or with other texts, a used key is refused, and nothing is handed out."""
    gateway = open_here()
    remembered(gateway)
    gateway.export_supersession(["deploys"], tmp_path / "a", with_payloads="none", idempotency_key="k1")
    shutil.rmtree(tmp_path / "a")
    others: list[dict[str, Any]] = [{"with_payloads": "all"}, {"with_payloads": "none", "recipient": "bob"}]
    for settings in others:
        with pytest.raises(CorrigendaError) as caught:
            gateway.export_supersession(["deploys"], tmp_path / "a", idempotency_key="k1", **settings)
        assert caught.value.code == "IDEMPOTENCY_KEY_REUSED"
    assert not (tmp_path / "a").exists()


MISTAKES: dict[str, dict[str, Any]] = {
    "ids": {"ids": None},
    "letters": {"ids": "deploys"},
    "out": {"out": 5},
    "zip": {"out": "bundle.zip"},
    "payloads": {"with_payloads": 5},
    "complete": {"complete": "no"},
    "as_of": {"as_of": b"x"},
}


@pytest.mark.parametrize("what", MISTAKES)
def test_an_export_is_checked_at_the_door(open_here: Here, tmp_path: Path, what: str) -> None:
    """Whatever cannot be asked is VALIDATION_FAILED, and no other error."""
    gateway = open_here()
    remembered(gateway)
    settings: dict[str, Any] = {"ids": ["deploys"], "out": tmp_path / "bundle", **MISTAKES[what]}
    with pytest.raises(CorrigendaError) as caught:
        gateway.export_supersession(**settings)
    assert caught.value.code == "VALIDATION_FAILED"


def test_a_future_is_not_exported(open_here: Here, tmp_path: Path) -> None:
    """A position that the ledger has not reached is not the present."""
    gateway = open_here()
    remembered(gateway)
    with pytest.raises(CorrigendaError) as caught:
        gateway.export_supersession(["deploys"], tmp_path / "bundle", as_of="999999")
    assert caught.value.code == "EVENT_NOT_FOUND"


def test_who_may_not_export_gets_nothing(open_here: Here, tmp_path: Path) -> None:
    """XC-09: an agent does not export, and nothing is written."""
    remembered(open_here())
    with pytest.raises(CorrigendaError) as caught:
        open_here(actor="agent:bot").export_supersession(["deploys"], tmp_path / "bundle")
    assert (caught.value.code, caught.value.details["permission"]) == ("FORBIDDEN_ACTOR", "export")
    assert not (tmp_path / "bundle").exists()


# ---------------------------------------------------------------- what is altered


def test_a_changed_byte_in_any_file_is_found(complete: Handed, tmp_path: Path) -> None:
    """RC-37, XC-04: one byte in each file of a bundle in turn, and neither program calls it verified."""
    names = sorted(path.relative_to(complete.path).as_posix() for path in complete.path.rglob("*") if path.is_file())
    assert len(names) > 20
    for name in names:
        path = complete.path / name
        raw = path.read_bytes()
        if not raw:
            continue
        path.write_bytes(bytes([raw[0] ^ 1]) + raw[1:])
        assert all(code in (14, 15) for code in exits(complete.path, complete.key)), name
        path.write_bytes(raw)
    assert exits(complete.path, complete.key) == (0, 0)


@pytest.mark.parametrize("act", ["missing", "doubled", "swapped"])
@pytest.mark.parametrize("folder", ["envelopes", "payloads", "proofs", "tile/0"])
def test_even_the_issuer_cannot_tell_another_story(complete: Handed, folder: str, act: str) -> None:
    """The listing is signed anew over files that are missing, doubled or swapped: the tree does not bear them out."""
    first, second, *_ = [*sorted(path for path in (complete.path / folder).rglob("*") if path.is_file()), None, None]
    assert first is not None
    if act == "missing":
        first.unlink()
    elif act == "doubled":
        shutil.copy(first, first.with_name(first.name.replace(first.name.split(".")[0], "999")))
    elif second is not None:
        a, b = first.read_bytes(), second.read_bytes()
        first.write_bytes(b)
        second.write_bytes(a)
    else:
        first.write_bytes(first.read_bytes()[::-1])
    resigned(complete)
    ours, theirs = exits(complete.path, complete.key)
    # A payload that is left out is withheld, and that is said; the tiles are no part of the small program's check.
    if (folder, act) == ("payloads", "missing"):
        assert verify_bundle(complete.path, complete.key).exit_code == 14  # the readable chain still tells it
    else:
        assert ours == 14
    assert theirs == 14 or folder in ("tile/0", "payloads")


def test_a_readable_line_says_what_its_event_says(bundle: Handed) -> None:
    """The readable chain is compared with the events: even its issuer cannot reword it."""
    path = bundle.path / layout.CHAIN
    path.write_text(path.read_text().replace("asked Ben", "asked Joe"))
    resigned(bundle)
    found = verify_bundle(bundle.path, bundle.key)
    assert found.exit_code == 14 and found.finding is not None and found.finding["check"] == "chain.jsonl"


# ---------------------------------------------------------------- keys


def another_key(origin: str) -> tuple[Ed25519PrivateKey, str]:
    """Return a key that is no ledger's, as if it were that origin's."""
    made = Ed25519PrivateKey.generate()
    return made, keys.verifier_key(origin, made)


def test_a_key_of_another_origin_shows_nothing(bundle: Handed) -> None:
    """Whoever has the wrong key is told that nothing is shown, and not that the bundle was altered."""
    assert exits(bundle.path, another_key("example.org/other")[1]) == (15, 15)


def test_another_key_of_the_same_origin_shows_nothing(bundle: Handed) -> None:
    """A checkpoint and a listing signed by another key under the same name are not verified."""
    assert exits(bundle.path, another_key(bundle.key.split("+")[0])[1]) == (15, 15)


def test_a_bundle_brings_no_key_of_its_own(bundle: Handed, tmp_path: Path) -> None:
    """A bundle that somebody signed anew with a fresh key, under our name, is not verified with ours."""
    made, _ = another_key(bundle.key.split("+")[0])
    keys._write_once(tmp_path / "fresh", keys_pem(made))
    resigned(bundle, key=tmp_path / "fresh")
    assert exits(bundle.path, bundle.key) == (15, 15)


def keys_pem(key: Ed25519PrivateKey) -> bytes:
    """Return a private key as its file holds it."""
    return key.private_bytes(keys.Encoding.PEM, keys.PrivateFormat.PKCS8, keys.NoEncryption())


def test_another_version_is_not_judged(bundle: Handed) -> None:
    """A bundle of a format that nobody here knows is neither verified nor tampered with."""
    resigned(bundle, lambda text: text.replace("corrigenda-bundle/1", "corrigenda-bundle/2"))
    assert exits(bundle.path, bundle.key) == (15, 15)


@pytest.mark.parametrize("key", ["", "nonsense", "a+b+c", "corrigenda.invalid/x+00000000+AAAA"])
def test_a_key_that_is_none_is_a_mistake_of_the_caller(bundle: Handed, key: str) -> None:
    """A key that cannot be one is refused before anything is read: exit 2."""
    with pytest.raises(CorrigendaError) as caught:
        verify_bundle(bundle.path, key)
    assert (caught.value.code, caught.value.exit_code) == ("VALIDATION_FAILED", 2)
    with contextlib.redirect_stdout(io.StringIO()):
        assert ALONE.main([key, str(bundle.path)]) == 2


# ---------------------------------------------------------------- files that an enemy made


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Return a tar file of these members."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """Return the header of a tar file's member."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def hostile(listing: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield tar files that are not what they seem; the listing is a true one."""
    first = (member("files"), listing)
    yield "nothing", b""
    yield "zeros", bytes(10_240)
    yield "noise", bytes(range(256)) * 40
    yield "listing_only", tar_of(first)
    yield "listing_later", tar_of((member("checkpoint"), b"x"), first)
    yield "parent", tar_of(first, (member("../escaped"), b"x"))
    yield "absolute", tar_of(first, (member("/tmp/escaped"), b"x"))
    yield "link", tar_of(first, (member("checkpoint", tarfile.SYMTYPE, "/etc/passwd"), b""))
    yield "hard_link", tar_of(first, (member("checkpoint", tarfile.LNKTYPE, "files"), b""))
    yield "device", tar_of(first, (member("checkpoint", tarfile.CHRTYPE), b""))
    yield "pax", tar_of(first, (member("x" * 200), b"x"))
    yield "cut_gzip", gzip.compress(tar_of(first))[:-20]
    yield "bomb", gzip.compress(tar_of((member("files"), bytes(200_000_000))), compresslevel=1)
    yield "bomb_behind", gzip.compress(tar_of(first, (member("checkpoint"), bytes(200_000_000))), compresslevel=1)


def test_a_hostile_file_does_no_harm(bundle: Handed, tmp_path: Path) -> None:
    """Bombs, links, devices and other paths end as tampered, and leave nothing behind anywhere."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name, raw in hostile((bundle.path / layout.FILES).read_bytes()):
        (folder / name).write_bytes(raw)
        assert exits(folder / name, bundle.key) == (14, 14), name
        (folder / name).unlink()
    assert not list(folder.iterdir()) and not Path("/tmp/escaped").exists()


SIGNED_NONSENSE = {
    "size_too_large": lambda text: text.replace("\n", "\n18446744073709551615 " + "0" * 64 + " checkpoint\n", 1),
    "size_with_zeros": lambda text: text.replace("\n", "\n007 " + "0" * 64 + " payloads/7\n", 2),
    "name_outside": lambda text: text + "1 " + "0" * 64 + " ../escaped\n",
    "name_twice": lambda text: text + text.splitlines()[-1] + "\n",
    "no_files": lambda text: "\n".join(text.splitlines()[:2]) + "\n",
}


@pytest.mark.parametrize("what", SIGNED_NONSENSE)
def test_a_signed_listing_is_read_strictly(bundle: Handed, what: str) -> None:
    """Sizes, names and order have one spelling, whoever signed them."""
    resigned(bundle, SIGNED_NONSENSE[what])
    assert all(code == 14 for code in exits(bundle.path, bundle.key))


def test_a_link_in_a_directory_is_refused(bundle: Handed, tmp_path: Path) -> None:
    """A file of a bundle is a file: where one is a link, even to the same bytes, it is no bundle."""
    path = bundle.path / layout.CHECKPOINT
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert exits(bundle.path, bundle.key) == (14, 14)


def test_an_empty_directory_is_no_part_of_a_bundle(bundle: Handed) -> None:
    """Nothing else lies in a bundle, not even nothing."""
    (bundle.path / "more").mkdir()
    assert verify_bundle(bundle.path, bundle.key).exit_code == 14


def test_a_directory_is_no_listing(bundle: Handed) -> None:
    """What lies in the place of the listing and is no file is tampering, and no mistake of the caller's."""
    (bundle.path / layout.FILES).unlink()
    (bundle.path / layout.FILES).mkdir()
    assert verify_bundle(bundle.path, bundle.key).exit_code == 14


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_a_tar_file_is_plain_and_ends(bundle: Handed, tmp_path: Path, form: int) -> None:
    """Another dialect of tar, and a file without its end, are no bundle."""
    names = sorted(path.relative_to(bundle.path).as_posix() for path in bundle.path.rglob("*") if path.is_file())
    names.remove(layout.FILES)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=form) as tar:
        for name in (layout.FILES, *names):
            content = (bundle.path / name).read_bytes()
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    whole = raw.getvalue()
    (tmp_path / "whole.tar").write_bytes(whole)
    assert verify_bundle(tmp_path / "whole.tar", bundle.key).exit_code == (0 if form == tarfile.USTAR_FORMAT else 14)
    (tmp_path / "cut.tar").write_bytes(whole.rstrip(b"\0"))
    assert verify_bundle(tmp_path / "cut.tar", bundle.key).exit_code == 14


def test_a_tar_file_of_any_length_is_a_bundle(bundle: Handed, tmp_path: Path) -> None:
    """Whatever is left of the record that it ends in, a packed bundle is read to its end, by both programs."""
    for blocks in range(20):
        (bundle.path / layout.REPORT).write_bytes(bytes(512 * blocks))
        resigned(bundle)
        copy = Path(shutil.copytree(bundle.path, tmp_path / "copy"))
        bundle_writing.place(copy, tmp_path / "packed.tar.gz")
        assert exits(tmp_path / "packed.tar.gz", bundle.key) == (0, 0), blocks
        (tmp_path / "packed.tar.gz").unlink()


def test_an_empty_origin_is_a_mistake_of_the_caller(bundle: Handed) -> None:
    """An origin that was asked for and is empty, as an unset variable gives, does not switch the check off."""
    with pytest.raises(CorrigendaError) as caught:
        verify_bundle(bundle.path, bundle.key, origin="")
    assert caught.value.code == "VALIDATION_FAILED"


def test_ten_thousand_signatures_are_too_many(bundle: Handed) -> None:
    """A note has at most a hundred signature lines; more of them are refused before any is checked."""
    path = bundle.path / layout.CHECKPOINT
    note = path.read_bytes()
    path.write_bytes(note + note.splitlines(keepends=True)[-1] * 10_000)
    resigned(bundle)
    assert verify_bundle(bundle.path, bundle.key).exit_code == 14
