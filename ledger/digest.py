"""Every hash of the ledger, each with the context that keeps it apart from the others (FORMAT.md §4 to §8, §11, §12).

No other module calls a hash function on ledger bytes. Two families: *public* digests, which anyone can compute from
the bytes, and *keyed* ones, which only a holder of the ledger key can compute or guess against.
"""

import hashlib
import hmac
from collections.abc import Sequence
from typing import IO

import msgspec
from blake3 import blake3

GENESIS = bytes(32)
EMPTY_TREE = hashlib.sha256(b"").digest()
SALT_BYTES = 32
SEAL_BYTES = 40
_CHUNK = 1024 * 1024

_LINK = "corrigenda 2026 event link v1"
_STREAM_LINK = "corrigenda 2026 stream link v1"
_SEAL_KEY = "corrigenda 2026 seal key v1"
_NAMING_KEY = "corrigenda 2026 naming key v1"
_KEY_ID = "corrigenda 2026 key id v1"

# Copied for every event: a hasher that has its context, or its key, already begins in half the time.
_LINKS = blake3(derive_key_context=_LINK)
_STREAM_LINKS = blake3(derive_key_context=_STREAM_LINK)

_encoded = msgspec.json.Encoder().encode


def link(envelope: bytes) -> bytes:
    """Return the 32-byte link hash of an envelope: the event's hash, and the next event's `prev_b3`."""
    return _LINKS.copy().update(envelope).digest()


def stream_link(envelope: bytes) -> bytes:
    """Return the 32-byte hash that the stream's next event names as `stream_prev_b3`."""
    return _STREAM_LINKS.copy().update(envelope).digest()


def links(envelopes: Sequence[bytes]) -> list[bytes]:
    """Return the link hashes of many envelopes; one hasher for all costs an eighth less than one for each."""
    return _hashes(_LINKS.copy(), envelopes)


def stream_links(envelopes: Sequence[bytes]) -> list[bytes]:
    """Return the stream hashes of many envelopes."""
    return _hashes(_STREAM_LINKS.copy(), envelopes)


def _hashes(hasher: blake3, envelopes: Sequence[bytes]) -> list[bytes]:
    found: list[bytes] = []
    for envelope in envelopes:
        hasher.reset()
        found.append(hasher.update(envelope).digest())
    return found


def commitment(salt: bytes, payload: bytes) -> str:
    """Return the hex SHA-256 of a 32-byte salt followed by the canonical payload bytes."""
    return hashlib.sha256(salt + payload).hexdigest()


def leaf(envelope: bytes) -> bytes:
    """Return the 32-byte hash of an envelope as a leaf of the tree: SHA-256 after a byte 00 (RFC 6962 §2.1)."""
    return hashlib.sha256(b"\x00" + envelope).digest()


def leaves(envelopes: Sequence[bytes]) -> list[bytes]:
    """Return the leaf hashes of many envelopes."""
    return [hashlib.sha256(b"\x00" + envelope).digest() for envelope in envelopes]


def node(left: bytes, right: bytes) -> bytes:
    """Return the 32-byte hash of two subtrees' hashes: SHA-256 after a byte 01 (RFC 6962 §2.1)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def note_key_id(name: str, typed_key: bytes) -> bytes:
    """Return the 4-byte id of a note's key: of its name and of its type byte with its bytes (C2SP signed-note)."""
    return hashlib.sha256(name.encode() + b"\n" + typed_key).digest()[:4]


def of_file(file: IO[bytes]) -> str:
    """Return the hex SHA-256 of what is left of a file, as `sha256sum` prints it."""
    made = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        made.update(chunk)
    return made.hexdigest()


def part(salt: str, text: str) -> int:
    """Return the number that a part of a row adds to its table's digest: 64 bits, signed, as the database has them."""
    return int.from_bytes(hashlib.sha256((salt + text).encode()).digest()[:8], "big", signed=True)


def public(body: bytes) -> str:
    """Return the hash that callers see, `b3:` and 64 hex digits: plain BLAKE3, as `b3sum` prints it."""
    return "b3:" + blake3(body).hexdigest()


class SealKey:
    """The key of one ledger that shows who could write an event, for whoever needs no other."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret  # for a process of our own, that is handed it through a pipe
        self.key_id = blake3(secret, derive_key_context=_KEY_ID).digest()[:8]
        self._seals = blake3(key=secret)

    def seal(self, event_hash: bytes) -> bytes:
        """Return the 40-byte seal of an event: 8 bytes of key id, 32 of keyed hash."""
        return self.key_id + self._seals.copy().update(event_hash).digest()

    def seals(self, event_hashes: Sequence[bytes]) -> list[bytes]:
        """Return the seals of many events."""
        key_id, copy = self.key_id, self._seals.copy
        return [key_id + copy().update(one).digest() for one in event_hashes]

    def is_sealed(self, event_hash: bytes, seal: bytes) -> bool:
        """Report whether the seal is this ledger key's for this event."""
        return hmac.compare_digest(self.seal(event_hash), seal)


class LedgerKeys(SealKey):
    """The keys of one ledger, derived from a key file's two secrets and the ledger's id.

    The seal key shows who could write an event; the naming key makes every look-up digest, so that none of them
    survives an erasure as something to guess at, or tells one tenant about another.
    """

    def __init__(self, *, seal_secret: bytes, naming_secret: bytes, ledger: str) -> None:
        super().__init__(_derive(_SEAL_KEY, seal_secret, ledger))
        self._names = blake3(key=_derive(_NAMING_KEY, naming_secret, ledger))

    def keyed(self, purpose: str, *parts: str) -> bytes:
        """Return the 32-byte look-up digest of `parts`, framed as a JSON array that begins with the purpose."""
        return self._names.copy().update(_encoded((purpose, *parts))).digest()

    def name(self, kind: str, parent: str, name: str) -> str:
        """Return the stream of a name: two processes that assign it meet in the same stream."""
        return "name_" + self.keyed("name", kind, parent, name).hex()

    def evidence(self, project: str, public_hash: str) -> str:
        """Return the stream of an object of evidence in a project, by its public hash."""
        return "evd_" + self.keyed("evidence", project, public_hash).hex()

    def subject(self, name: str) -> str:
        """Return the hex digest by which the events that concern a person are found, whatever the project."""
        return self.keyed("subject", name).hex()

    def tombstone(self, project: str, source: str, content: str) -> str:
        """Return the stream of the tombstone for a text from a source; the source may be empty."""
        return "tomb_" + self.keyed("tombstone", project, source, content).hex()

    def content(self, project: str, content: str) -> str:
        """Return the hex digest under which a text's vectors and equal texts of a project are found."""
        return self.keyed("content", project, content).hex()

    def request(self, scope: Sequence[str], key: str) -> str:
        """Return the hex digest of an idempotency key within its scope (principal and operation)."""
        return self.keyed("request", *scope, key).hex()

    def fingerprint(self, request: bytes) -> str:
        """Return the hex digest of a request's canonical bytes, by which a reused key is told from a retry."""
        return self.keyed("fingerprint", request.decode()).hex()

    def vector(self, content_digest: str, signature: str, vector: bytes) -> bytes:
        """Return the 40-byte seal of a stored vector, so that an edited or swapped one is found."""
        return self.seal(self.keyed("vector", content_digest, signature, hashlib.sha256(vector).hexdigest()))

    def trace(self, trace: str, body: bytes) -> bytes:
        """Return the 32-byte digest of a trace, by its id and its bytes: an edited or swapped one is found."""
        return self.keyed("trace", trace, hashlib.sha256(body).hexdigest())

    def generation(self, manifest: bytes) -> str:
        """Return the seal, in hex, of an index generation's manifest, so that a rewritten one is found."""
        return self.seal(self.keyed("generation", hashlib.sha256(manifest).hexdigest())).hex()

    def index_entry(self, partition: str, item: str, vector: bytes) -> int:
        """Return the number that an entry adds to the digest of an index: nobody without the key finds two that fit."""
        return int.from_bytes(self.keyed("index entry", partition, item, hashlib.sha256(vector).hexdigest()), "big")


def _derive(context: str, secret: bytes, ledger: str) -> bytes:
    return blake3(secret + ledger.encode(), derive_key_context=context).digest()
