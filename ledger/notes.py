"""Signed notes and the checkpoints in them: what a ledger says of itself, once and for all, to whoever keeps it.

The formats are C2SP's signed-note and tlog-checkpoint. Each has one spelling here: what could be written in two ways
is refused, so a note that was changed anywhere is no note. Nothing here knows a ledger, or where keys lie.
"""

import base64
import binascii
import re
from collections.abc import Iterable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct

from ledger.digest import EMPTY_TREE, note_key_id
from ledger.limits import INTEGER_MAX, NOTE_BYTES_MAX, NOTE_SIGNATURES_MAX

_ED25519 = b"\x01"  # the type byte of an Ed25519 key
_KEY_BYTES, _KEY_ID_BYTES = 32, 4
_DASH = "\u2014 "
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")
_SIZE = re.compile(r"0|[1-9][0-9]{0,15}")


class NotANote(ValueError):
    """Text is no note, no checkpoint or no verifier key, or nobody who is known signed it. The message says why."""


class VerifierKey(Struct, frozen=True):
    """A name, and the 32 bytes of the Ed25519 public key that signs for it."""

    name: str
    public: bytes

    @property
    def key_id(self) -> bytes:
        """Return the 4 bytes by which a signature line says which key made it."""
        return note_key_id(self.name, _ED25519 + self.public)


class Signature(Struct, frozen=True):
    """One signature line: who signed, the 4-byte id of the key, and the signature's bytes."""

    name: str
    key_id: bytes
    signature: bytes


class Note(Struct, frozen=True):
    """A text, which ends with a line break, and its signatures, at least one. Read, not yet believed."""

    text: str
    signatures: tuple[Signature, ...]


class Checkpoint(Struct, frozen=True):
    """What a log says of itself: its origin, how many entries it has, and the root of the tree over them."""

    origin: str
    size: int
    root: bytes


def is_name(text: str) -> bool:
    """Report whether a key, and so a ledger, can have this name: one word without `+`, of no control characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return bool(text) and "+" not in text and not any(map(str.isspace, text)) and not _CONTROL.search(text)


# ---------------------------------------------------------------- verifier keys


def parse_verifier_key(text: str) -> VerifierKey:
    """Return the key that `name+id+base64` stands for, or raise NotANote."""
    name, *others = text.split("+", 2)
    if len(others) != 2 or not is_name(name):
        raise NotANote("a verifier key is a name, an id and a key, joined by `+`")
    raw = _decoded(others[1])
    if raw[:1] != _ED25519 or len(raw) != 1 + _KEY_BYTES:
        raise NotANote("the verifier key is not an Ed25519 key")
    key = VerifierKey(name, raw[1:])
    if others[0] != key.key_id.hex():
        raise NotANote("the verifier key's id is not that of its name and key")
    return key


def format_verifier_key(key: VerifierKey) -> str:
    """Return a key as C2SP writes it: `<name>+<key id in hex>+<base64 of type and key>`. A bad name is NotANote."""
    if not is_name(key.name):
        raise NotANote("a key's name is one word without `+`")
    return f"{key.name}+{key.key_id.hex()}+{_encoded(_ED25519 + key.public)}"


# ---------------------------------------------------------------- notes


def parse_note(raw: bytes, limit: int = NOTE_BYTES_MAX) -> Note:
    """Return the note that these bytes, at most `limit` of them, are, or raise NotANote. It checks no signature."""
    if len(raw) > limit:
        raise NotANote(f"it has more than {limit} bytes")
    end = raw.rfind(b"\n\n")  # the text may hold empty lines: the last one ends it
    if end < 0 or not raw.endswith(b"\n"):
        raise NotANote("it is not a text, an empty line and signature lines")
    try:
        # Decoded where they lie: a note may be long, and a copy of it is what a hostile one wants.
        text, lines = (str(part, "utf-8") for part in (memoryview(raw)[: end + 1], memoryview(raw)[end + 2 :]))
    except UnicodeDecodeError as error:
        raise NotANote("it is not UTF-8") from error
    if _CONTROL.search(text) or _CONTROL.search(lines):
        raise NotANote("it holds a control character")
    signatures = lines.removesuffix("\n").split("\n")
    if len(signatures) > NOTE_SIGNATURES_MAX:
        raise NotANote(f"it has more than {NOTE_SIGNATURES_MAX} signatures")
    return Note(text, tuple(map(_parse_signature, signatures)))


def format_note(note: Note, limit: int = NOTE_BYTES_MAX) -> bytes:
    """Return a note's bytes. One that cannot be written so that it is read again, in `limit` bytes, is NotANote."""
    try:
        raw = (note.text + "\n" + "".join(map(_format_signature, note.signatures))).encode()
    except UnicodeEncodeError as error:
        raise NotANote("its text is not Unicode") from error
    if parse_note(raw, limit) != note:
        raise NotANote("its text does not end with a line break, or its signatures are not such")
    return raw


def sign(text: str, name: str, key: Ed25519PrivateKey, limit: int = NOTE_BYTES_MAX) -> Note:
    """Return a text signed under a name. A text that no note can hold is NotANote."""
    public = VerifierKey(name, key.public_key().public_bytes_raw())
    note = Note(text, (Signature(name, public.key_id, key.sign(text.encode(errors="surrogatepass"))),))
    format_note(note, limit)
    return note


def open_note(raw: bytes, keys: Iterable[VerifierKey], limit: int = NOTE_BYTES_MAX) -> Note:
    """Return a note of which a known key is a signer, and no known key's signature is wrong, or raise NotANote."""
    note = parse_note(raw, limit)
    known = {(key.name, key.key_id): key for key in keys}
    signed = [(known[one.name, one.key_id], one) for one in note.signatures if (one.name, one.key_id) in known]
    if not signed:
        raise NotANote("none of its signatures is by a known key")
    for key, one in signed:
        try:
            Ed25519PublicKey.from_public_bytes(key.public).verify(one.signature, note.text.encode())
        except (InvalidSignature, ValueError) as error:
            raise NotANote("a signature under a known key's name is not that key's") from error
    return note


def _parse_signature(line: str) -> Signature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space or not is_name(name):
        raise NotANote("a signature line is a dash, a name and base64")
    raw = _decoded(encoded)
    if len(raw) <= _KEY_ID_BYTES:
        raise NotANote("a signature is shorter than its key's id")
    return Signature(name, raw[:_KEY_ID_BYTES], raw[_KEY_ID_BYTES:])


def _format_signature(one: Signature) -> str:
    return f"{_DASH}{one.name} {_encoded(one.key_id + one.signature)}\n"


# ---------------------------------------------------------------- checkpoints


def parse_checkpoint(text: str) -> Checkpoint:
    """Return what a note's text says as a checkpoint, or raise NotANote. Extension lines are refused."""
    lines = text.split("\n")
    if len(lines) != 4 or lines[3]:
        raise NotANote("a checkpoint is three lines: origin, size and root")
    origin, size, encoded = lines[:3]
    if not is_name(origin):
        raise NotANote("a checkpoint's origin is one word without `+`")
    if not _SIZE.fullmatch(size) or int(size) > INTEGER_MAX:
        raise NotANote("a checkpoint's size is a decimal number in its shortest form")
    root = _decoded(encoded)
    if len(root) != len(EMPTY_TREE):
        raise NotANote("a checkpoint's root has 32 bytes")
    return Checkpoint(origin, int(size), root)


def format_checkpoint(checkpoint: Checkpoint) -> str:
    """Return the text of a checkpoint's note. One that cannot be read again is NotANote."""
    text = f"{checkpoint.origin}\n{checkpoint.size}\n{_encoded(checkpoint.root)}\n"
    if parse_checkpoint(text) != checkpoint:
        raise NotANote("a checkpoint is an origin, a size and a root")
    return text


def sign_checkpoint(checkpoint: Checkpoint, key: Ed25519PrivateKey) -> bytes:
    """Return a checkpoint as a note that is signed under its own origin."""
    return format_note(sign(format_checkpoint(checkpoint), checkpoint.origin, key))


def open_checkpoint(raw: bytes, key: VerifierKey) -> Checkpoint:
    """Return the checkpoint that a key signed under its own name as the origin, or raise NotANote."""
    checkpoint = parse_checkpoint(open_note(raw, [key]).text)
    if checkpoint.origin != key.name:
        raise NotANote("its origin is not the name of the key that signed it")
    return checkpoint


# ---------------------------------------------------------------- base64


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _decoded(text: str) -> bytes:
    """Return the bytes of base64 in its one spelling: padded, and with nothing in the bits that do not count."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise NotANote("it holds base64 that is not") from error
    if _encoded(raw) != text:
        raise NotANote("it holds base64 in another spelling than the usual one")
    return raw
