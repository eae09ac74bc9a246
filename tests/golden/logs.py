"""The second reader's part for §11 to §13 of FORMAT.md: the tree, checkpoints, and a directory of tiles."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence

INTEGER_MAX, NOTE_MAX, SIGNATURES_MAX = 2**53 - 1, 1_000_000, 100


# ---------------------------------------------------------------- §11 and §12, tree and checkpoints


def mth(leaves: Sequence[bytes]) -> bytes:
    """Return the root over some leaves."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return hashlib.sha256(b"\1" + mth(leaves[:half]) + mth(leaves[half:])).digest()


def verifier_key(text: str) -> tuple[str, bytes]:
    """Return name and public key, or raise ValueError."""
    name, _, rest = text.partition("+")
    key_id, _, encoded = rest.partition("+")
    typed = _base64(encoded)
    if len(typed) != 33 or typed[0] != 1 or not _is_name(name):
        raise ValueError("no Ed25519 verifier key")
    if hashlib.sha256(name.encode() + b"\n" + typed).hexdigest()[:8] != key_id:
        raise ValueError("a verifier key with another id")
    return name, typed[1:]


def open_checkpoint(note: bytes, name: str, public: bytes) -> tuple[str, int, bytes]:
    """Return origin, size and root that this key signed, or raise ValueError."""
    whole = note.decode("utf-8")
    text, blank, lines = whole.rpartition("\n\n")
    if len(note) > NOTE_MAX or not blank or not lines.endswith("\n") or re.search(r"[\x00-\x09\x0b-\x1f]", whole):
        raise ValueError("no note")
    signed = False
    signatures = lines.removesuffix("\n").split("\n")
    key_id = hashlib.sha256(name.encode() + b"\n\1" + public).digest()[:4]
    for line in signatures:
        dash, signer, raw = _signature(line)
        if dash and (signer, raw[:4]) == (name, key_id):
            _check_signature(public, raw[4:], f"{text}\n".encode())
            signed = True
    if not signed or len(signatures) > SIGNATURES_MAX:
        raise ValueError("not signed by this key, or by too many")
    origin, size, root, *more = text.split("\n")
    if more or not re.fullmatch("0|[1-9][0-9]{0,15}", size) or int(size) > INTEGER_MAX or len(_base64(root)) != 32:
        raise ValueError("no checkpoint")
    return origin, int(size), _base64(root)


def _signature(line: str) -> tuple[bool, str, bytes]:
    dash, _, rest = line.partition(" ")
    name, _, encoded = rest.partition(" ")
    raw = _base64(encoded)
    if dash != "\u2014" or not _is_name(name) or len(raw) <= 4:
        raise ValueError("no signature line")
    return True, name, raw


def _check_signature(public: bytes, signature: bytes, text: bytes) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
    except InvalidSignature as error:
        raise ValueError("another signature") from error


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and not any(map(str.isspace, name)) and min(map(ord, name)) >= 0x20


def _base64(text: str) -> bytes:
    raw = base64.b64decode(text, validate=True)
    if base64.b64encode(raw).decode() != text:
        raise ValueError("base64 in another spelling")
    return raw


# ---------------------------------------------------------------- §13, tiles


def read_directory(files: Mapping[str, bytes], name: str, public: bytes) -> list[bytes]:
    """Return the envelopes that a directory of tiles shows, or raise ValueError; `files` is what lies in it."""
    origin, size, root = open_checkpoint(files["checkpoint"], name, public)
    envelopes: list[bytes] = []
    for number in range((size + 255) // 256):
        envelopes += _bundle(_file(files, "entries", number, min(256, size - 256 * number)))[: size - 256 * number]
    leaves = [hashlib.sha256(b"\0" + raw).digest() for raw in envelopes]
    if (origin, len(leaves), mth(leaves)) != (name, size, root):
        raise ValueError("entries that do not lead to the root")
    level, hashes = 0, leaves
    while hashes:
        for number in range((len(hashes) + 255) // 256):
            part = hashes[256 * number : 256 * number + 256]
            if _file(files, str(level), number, len(part))[: 32 * len(part)] != b"".join(part):
                raise ValueError(f"another tile {number} at level {level}")
        full = len(hashes) // 256
        level, hashes = level + 1, [mth(hashes[256 * at : 256 * at + 256]) for at in range(full)]
    return envelopes


def _file(files: Mapping[str, bytes], level: str, number: int, width: int) -> bytes:
    groups = re.findall("...", f"{number:0{(len(str(number)) + 2) // 3 * 3}}")
    full = "/".join(["tile", level, *(f"x{one}" for one in groups[:-1]), groups[-1]])
    return files[full] if width == 256 or full in files else files[f"{full}.p/{width}"]


def _bundle(raw: bytes) -> list[bytes]:
    found: list[bytes] = []
    while raw:
        end = 2 + int.from_bytes(raw[:2], "big")
        if end > len(raw):
            raise ValueError("an entry that is cut off")
        found.append(raw[2:end])
        raw = raw[end:]
    return found
