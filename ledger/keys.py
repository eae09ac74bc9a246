"""Key files: the ledger key that seals and names, and the signing key for checkpoints. Both outside the database.

A file is made once and never overwritten: written aside, fsynced, and put in place by `link(2)`, which fails if
somebody else was first; then theirs counts. Mode 0600, and a file that others may read is refused.
"""

import fcntl
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from ledger import notes
from ledger.digest import LedgerKeys
from ledger.errors import failure

_FORMAT = "corrigenda-ledger-key/1"
_ASIDE_BYTES = 8
_HEX_DIGIT = "[0-9a-f]"


class KeyFiles(msgspec.Struct, frozen=True):
    """Where the two keys lie."""

    ledger: Path
    signing: Path


class LedgerKeyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON in a ledger key file: two secrets of 32 bytes, base64."""

    format: str
    naming: bytes
    seal: bytes

    def for_ledger(self, ledger: str) -> LedgerKeys:
        """Derive the keys of one ledger."""
        return LedgerKeys(seal_secret=self.seal, naming_secret=self.naming, ledger=ledger)


def read_ledger_key(path: Path) -> LedgerKeyFile:
    """Read a ledger key file. Missing, unreadable, readable by others or malformed: LEDGER_UNVERIFIED."""
    raw = _read(path, "ledger key")
    try:
        found = msgspec.json.decode(raw, type=LedgerKeyFile)
    except msgspec.MsgspecError as error:
        raise _unusable(path, "ledger key", "it is not a ledger key file") from error
    if found.format != _FORMAT or len(found.naming) != 32 or len(found.seal) != 32:
        raise _unusable(path, "ledger key", "its format is unknown")
    return found


def make_ledger_key(path: Path) -> LedgerKeyFile:
    """Make the key file if there is none, and read what is there then."""
    if not path.exists():
        fresh = LedgerKeyFile(format=_FORMAT, naming=secrets.token_bytes(32), seal=secrets.token_bytes(32))
        _write_once(path, msgspec.json.encode(fresh) + b"\n")
    return read_ledger_key(path)


def make_signing_key(path: Path) -> Ed25519PrivateKey:
    """Make the checkpoint signing key (PKCS#8, PEM) if there is none, and read what is there then."""
    if not path.exists():
        fresh = Ed25519PrivateKey.generate()
        _write_once(path, fresh.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return read_signing_key(path)


def read_signing_key(path: Path) -> Ed25519PrivateKey:
    """Read a signing key file. Missing, unreadable or malformed: LEDGER_UNVERIFIED."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    raw = _read(path, "signing key")
    try:
        key = load_pem_private_key(raw, password=None)
    except ValueError as error:
        raise _unusable(path, "signing key", "it is not a PEM private key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _unusable(path, "signing key", "it is not an Ed25519 key")
    return key


def verifier_key(origin: str, key: Ed25519PrivateKey) -> str:
    """Return the public half as a C2SP verifier key: `<name>+<key id in hex>+<base64 of type and key>`."""
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return notes.format_verifier_key(notes.VerifierKey(origin, raw))


def _read(path: Path, what: str) -> bytes:
    try:
        with open(path, "rb", opener=_unwaiting) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise _unusable(path, what, "it is not a regular file")
            raw = file.read(64 * 1024)
    except FileNotFoundError as error:
        raise _unusable(path, what, "there is no such file") from error
    except OSError as error:
        raise _unusable(path, what, f"it cannot be read ({error.strerror})") from error
    if stat.S_IMODE(mode) & 0o077:
        raise _unusable(path, what, "other users may read it (chmod 600 mends that)")
    return raw


def _unwaiting(path: str, flags: int) -> int:
    """Open a file that may be a FIFO nobody writes to."""
    return os.open(path, flags | os.O_NONBLOCK)


def sweep(files: KeyFiles) -> None:
    """Remove the unfinished key files that a killed process has left beside the two; a living one's are locked."""
    for path in (files.ledger, files.signing):
        for leftover in path.parent.glob(f".{path.name}-{_HEX_DIGIT * 2 * _ASIDE_BYTES}"):
            with suppress(OSError), open(leftover, opener=_unwaiting) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                leftover.unlink()


def _aside(path: Path) -> tuple[Path, int]:
    """Return a new file beside `path`, and its descriptor, locked: so that nobody takes it for a killed process's."""
    while True:
        aside = path.with_name(f".{path.name}-{secrets.token_hex(_ASIDE_BYTES)}")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with suppress(OSError):  # a file system without locks; there nothing is swept either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:  # else it was swept before it was locked
            return aside, descriptor
        os.close(descriptor)


def _write_once(path: Path, body: bytes) -> None:
    try:
        for folder in (*reversed(path.parent.parents), path.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        aside, descriptor = _aside(path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(descriptor)
                try:
                    os.link(aside, path)
                except FileExistsError:
                    return  # another process was first: its key is the one that counts
        finally:
            aside.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise failure(
            "UNAVAILABLE",
            f"A new key file was to be written to {path}, and it could not be: {error.strerror}. Set CORRIGENDA_HOME "
            "to a directory that this user owns and can write.",
        ) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(path: Path, what: str, found: str) -> Exception:
    details: dict[str, Any] = {"file": str(path)}  # Any: JSON
    return failure(
        "LEDGER_UNVERIFIED",
        f"The {what} is needed at {path}, and {found}. Nothing can be checked or written without it: restore the file "
        "from its backup, or name its place (CORRIGENDA_LEDGER_KEY_FILE, CORRIGENDA_SIGNING_KEY_FILE).",
        **details,
    )
