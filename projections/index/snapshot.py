"""A generation: one durable copy of an index, that is either whole and of this ledger's past, or not there.

It is a cache. A generation is written aside, made durable, then renamed; whoever reads one believes nothing
of it that is not checked: every byte against the manifest, the manifest against the ledger and against its seal,
which only a holder of the ledger key can make. What does not hold is set aside for a person to look at, and the
index is built again. Never a partial load, never FAISS's own file format.
"""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from ledger.errors import UnavailableError
from projections.index import Vectors
from projections.index.disk import (
    StoredFile,
    aside,
    directories,
    publish_directory,
    retire,
    set_aside,
    write_durably,
)
from projections.index.partitions import Contents
from projections.index.ranking import usable

FORMAT = 2
LOADS_MAX = 3

_PREFIX = "generation-"
_MANIFEST = "manifest.json"
_ITEMS = "items.json"
_VECTORS = "vectors.f32"
_STORED = np.dtype("<f4")

Seal = Callable[[bytes], str]

_log = logging.getLogger(__name__)


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a generation holds and was built from. `count`, `files` and `seal` are filled in by `publish`.

    `position` is the cursor: the last ledger position whose effects are in. `digest` is the chain's link
    hash at that position, in hex, by which a generation of another history is known.
    """

    format: int = FORMAT
    ledger: str
    incarnation: str
    position: int
    digest: str
    signature: str
    dimension: int
    count: int = 0
    files: dict[str, StoredFile] = {}
    seal: str = ""

    @property
    def sealed(self) -> bytes:
        """Return the bytes that the seal is of: everything but the seal."""
        return msgspec.json.encode(msgspec.structs.replace(self, seal=""), order="deterministic")


class Generation(NamedTuple):
    """A generation that was read, checked and found good. `contents` is for PartitionedIndex.restore."""

    path: Path
    manifest: Manifest
    contents: Contents


class Loaded(NamedTuple):
    """What `load` found. `why` is empty if the newest generation was good, else says what became of it.

    It starts with `absent`, `unreadable`, `damaged`, `foreign`, `signature` or `newer`, then a colon. With a
    generation beside it, it tells of newer ones that are of no use. `other` is the signature of the newest one that is
    of no use only because another embedder built it, and holds something; such a one stays where it is.
    """

    generation: Generation | None
    why: str
    other: str | None = None


class Expected(NamedTuple):
    """What a generation must have been built from to be of use; see `load`."""

    ledger: str
    incarnation: str
    signature: str
    dimension: int
    size: int
    digest_at: Callable[[int], bytes | None]
    seal: Seal


class _Refused(Exception):
    """A generation must not be used, and why; never leaves this module."""


class _OtherEmbedder(_Refused):
    """A generation is whole and of this ledger's past, and another embedder's."""

    def __init__(self, manifest: Manifest, expected: str) -> None:
        super().__init__(f"signature: built by {manifest.signature}, configured is {expected}")
        self.manifest = manifest


def publish(root: Path, manifest: Manifest, contents: Contents, *, seal: Seal) -> Path:
    """Write `contents` as the newest generation under `root`, remove the older ones, return its directory.

    `seal` makes the seal of a manifest's bytes. The caller holds `disk.writer_lock`. Raises INDEX_UNAVAILABLE if it
    cannot be written, or holds a vector that is not usable; what was there stays.
    """
    final = root / f"{_name(manifest.position)}{secrets.token_hex(4)}"
    try:
        with aside(root) as written:
            _write(written, manifest, contents, seal)
            publish_directory(written, final)
    except OSError as error:
        raise _unwritable(root, error) from error
    for older in directories(root, _PREFIX):
        if older != final:
            retire(older)
    return final


def signatures(root: Path) -> list[str]:
    """Return the signatures that the generations under `root` were built by, as they say themselves, newest first.

    One that holds nothing was built by nobody.
    """
    return [signature for manifest in manifests(root) for signature in _signature(manifest)]


def manifests(root: Path) -> list[Manifest]:
    """Return what the generations under `root` say of themselves, newest first; nothing of it is checked."""
    found: list[Manifest] = []
    with suppress(OSError):
        for path in directories(root, _PREFIX):
            with suppress(OSError, _Refused):
                found.append(_read_manifest(path))
    return found


def load(
    root: Path,
    *,
    ledger: str,
    incarnation: str,
    signature: str,
    dimension: int,
    size: int,
    digest_at: Callable[[int], bytes | None],
    seal: Seal,
    only_look: bool = False,
) -> Loaded:
    """Return the newest generation under `root` that is whole, of this ledger's past and of this embedder.

    `size` is the ledger's number of entries; `digest_at` gives the link hash at a position, None if there
    is no such entry; `seal` makes the seal that a manifest's bytes should carry. Generations that fail are renamed
    aside, the last two of which are kept; with `only_look` they stay, and so does always what another embedder built.
    Raises only what `digest_at` raises.
    """
    expected = Expected(ledger, incarnation, signature, dimension, size, digest_at, seal)
    for _ in range(LOADS_MAX):
        loaded = _load_newest(root, expected, only_look=only_look)
        if loaded is not None:
            return loaded
    return Loaded(None, "unreadable: generations went while they were read")


def _load_newest(root: Path, expected: Expected, *, only_look: bool) -> Loaded | None:
    """Return what `load` returns, or None if a generation went while it was read, for a newer one."""
    try:
        found = directories(root, _PREFIX)
    except FileNotFoundError:
        found = []
    except OSError as error:
        return Loaded(None, f"unreadable: {error.strerror}")
    reasons: list[str] = []
    others: list[str] = []
    for path in found:
        try:
            return Loaded(_read(path, expected), "; ".join(reasons))
        except _Refused as refusal:
            if not path.exists():
                return None
            reasons.append(str(refusal))
            _log.warning("generation.refused", extra={"reason": str(refusal)})
            if isinstance(refusal, _OtherEmbedder):
                others += _signature(refusal.manifest)
            elif not only_look:
                set_aside(path)
    return Loaded(None, "; ".join(reasons) or "absent: no generation was published", next(iter(others), None))


def _read(path: Path, expected: Expected) -> Generation:
    """Return the generation at `path`, or raise _Refused."""
    try:
        manifest = _read_manifest(path)
        _check_origin(manifest, expected)
        items, vectors = (_read_file(path / name, manifest.files[name]) for name in (_ITEMS, _VECTORS))
    except OSError as error:
        raise _Refused(f"damaged: {error.strerror}") from error
    return Generation(path, manifest, _contents(manifest, items=items, vectors=vectors))


def _signature(manifest: Manifest) -> list[str]:
    return [manifest.signature] if manifest.count else []


def _read_manifest(path: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode((path / _MANIFEST).read_bytes(), type=Manifest)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise _Refused("damaged: the manifest is not one") from error
    if manifest.format != FORMAT:
        raise _Refused(f"foreign: format {manifest.format}, this version reads {FORMAT}")
    if set(manifest.files) != {_ITEMS, _VECTORS}:
        raise _Refused("damaged: the manifest names other files")
    return manifest


def _check_origin(manifest: Manifest, expected: Expected) -> None:
    """Refuse a generation of another ledger or embedder, not written with the key, or of a past that is not ours."""
    if (manifest.ledger, manifest.incarnation) != (expected.ledger, expected.incarnation):
        raise _Refused("foreign: it belongs to another ledger, or to another life of this one")
    if not hmac.compare_digest(manifest.seal.encode(), expected.seal(manifest.sealed).encode()):
        raise _Refused("damaged: the manifest does not carry the seal of this ledger's key")
    if manifest.position >= expected.size:
        raise _Refused(f"newer: built at position {manifest.position} of a ledger of {expected.size}")
    digest = expected.digest_at(manifest.position)
    if digest is None or digest.hex() != manifest.digest:
        raise _Refused(f"newer: the ledger has another past at position {manifest.position}")
    if (manifest.signature, manifest.dimension) != (expected.signature, expected.dimension):
        raise _OtherEmbedder(manifest, expected.signature)


def _read_file(path: Path, stored: StoredFile) -> bytes:
    content = path.read_bytes()
    if len(content) != stored.size:
        raise _Refused(f"damaged: {path.name} has {len(content)} bytes of {stored.size}")
    if hashlib.sha256(content).hexdigest() != stored.sha256:
        raise _Refused(f"damaged: {path.name} has another SHA-256 than when it was written")
    return content


def _contents(manifest: Manifest, *, items: bytes, vectors: bytes) -> Contents:
    """Return what the bytes hold, checked for sense too: a digest does not vouch for who wrote them."""
    try:
        partitions = msgspec.json.decode(items, type=list[tuple[str, list[str]]])
        rows = np.frombuffer(vectors, dtype=_STORED)
        checked = usable(rows.reshape(-1, manifest.dimension), shape=(manifest.count, manifest.dimension))
    except (msgspec.MsgspecError, ValueError, UnavailableError) as error:
        raise _Refused("damaged: items or vectors are not what the manifest says") from error
    every = [item for _, held in partitions for item in held]
    if not len(every) == len(set(every)) == manifest.count or len(dict(partitions)) != len(partitions):
        raise _Refused("damaged: items and vectors do not agree")
    return _sliced(partitions, checked)


def _sliced(partitions: list[tuple[str, list[str]]], rows: Vectors) -> Contents:
    contents: dict[str, tuple[list[str], Vectors]] = {}
    start = 0
    for key, items in partitions:
        contents[key] = (items, rows[start : start + len(items)])
        start += len(items)
    return contents


def _write(directory: Path, manifest: Manifest, contents: Contents, seal: Seal) -> None:
    """Write a generation's files into `directory`, the manifest last."""
    partitions = [(key, list(items)) for key, (items, _) in contents.items()]
    files = {
        _ITEMS: write_durably(directory / _ITEMS, [msgspec.json.encode(partitions)]),
        _VECTORS: write_durably(directory / _VECTORS, _stored_rows(contents, manifest.dimension)),
    }
    count = sum(len(items) for _, items in partitions)
    full = msgspec.structs.replace(manifest, count=count, files=files)
    sealed = msgspec.structs.replace(full, seal=seal(full.sealed))
    write_durably(directory / _MANIFEST, [msgspec.json.encode(sealed)])


def _stored_rows(contents: Contents, dimension: int) -> Iterable[bytes]:
    for items, vectors in contents.values():
        yield usable(vectors, shape=(len(items), dimension)).astype(_STORED).tobytes()


def _name(position: int) -> str:
    return f"{_PREFIX}{position:016d}-"


def _unwritable(root: Path, error: OSError) -> UnavailableError:
    return UnavailableError(
        "INDEX_UNAVAILABLE",
        f"The index's directory {root} should take a new generation; writing failed ({error.strerror}). "
        "The index goes on in memory and is built again at the next start; make room or make it writable.",
        reason="unwritable",
        errno=error.errno,
    )
