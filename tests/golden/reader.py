"""A second reader of ledgers, which follows docs/FORMAT.md and shares no code with the product.

It takes a ledger as its tables hold it and says what is not as it was written: which check of §10, and where. It and
its parts, `shapes` and `logs`, need the standard library and BLAKE3, and for a checkpoint's signature Ed25519;
nothing of the product, and that is tested.
"""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import NamedTuple

from blake3 import blake3

from tests.golden.logs import mth, open_checkpoint, verifier_key
from tests.golden.shapes import KINDS, Json, NotCanonical, read_envelope, read_payload, written

ZEROS = "0" * 64


class Row(NamedTuple):
    """A row of `event`."""

    seq: int
    stream: str
    stream_seq: int
    envelope: bytes
    hash: bytes
    seal: bytes
    request: bytes | None


@dataclass
class Dump:
    """A ledger as §14 says: events in the order of positions, payloads by position, and the head's row."""

    ledger: str
    tenant: str
    events: list[Row]
    payloads: dict[int, tuple[bytes, bytes]]
    head: tuple[int, bytes, int] | None


class Finding(NamedTuple):
    """What is wrong: the check of §10, the position, and why."""

    check: str
    position: int
    why: str


@dataclass
class Report:
    """What was found, and the root over the envelopes as they lie."""

    findings: list[Finding] = field(default_factory=list)
    size: int = 0
    root: bytes = b""

    def failed(self) -> dict[str, int]:
        """Return the first bad position of each check that failed."""
        first: dict[str, int] = {}
        for one in self.findings:
            first[one.check] = min(one.position, first.get(one.check, one.position))
        return first


# ---------------------------------------------------------------- §4 to §8, hashes and keys


def derived(context: str, material: bytes) -> bytes:
    """Return a derived key."""
    return blake3(material, derive_key_context=f"corrigenda 2026 {context} v1").digest()


class Keys:
    """What a key file makes for one ledger (§6)."""

    def __init__(self, key_file: bytes, ledger: str) -> None:
        told = json.loads(key_file)
        if told.keys() != {"format", "naming", "seal"} or told["format"] != "corrigenda-ledger-key/1":
            raise ValueError("no key file")
        seal, naming = (base64.b64decode(told[name], validate=True) for name in ("seal", "naming"))
        self._seal = derived("seal key", seal + ledger.encode())
        self._naming = derived("naming key", naming + ledger.encode())

    def seal(self, own: bytes) -> bytes:
        """Return the seal of a hash."""
        return derived("key id", self._seal)[:8] + blake3(own, key=self._seal).digest()

    def digest(self, *parts: str) -> str:
        """Return the digest of what a caller says, in hex."""
        return blake3(written(list(parts)).encode(), key=self._naming).hexdigest()


# ---------------------------------------------------------------- §10, the pass


def read(dump: Dump, key_file: bytes | None = None, note: bytes | None = None) -> Report:
    """Check a ledger; without a key file its seals and digests stay unchecked, without a note its past."""
    run = _Pass(dump, None if key_file is None else Keys(key_file, dump.ledger))
    for row in dump.events:
        run.take(row)
    run.end()
    if note is not None:
        run.hold(note)
    return run.report


class _Pass:
    def __init__(self, dump: Dump, keys: Keys | None) -> None:
        self.report = Report()
        self._dump = dump
        self._keys = keys
        self._previous = ZEROS
        self._streams: dict[str, tuple[int, str]] = {}
        self._requests: set[str] = set()
        self._opened: dict[str, Json] = {}
        self._append: tuple[Json, ...] = ()
        self._left = 0
        self._leaves: list[bytes] = []
        self._bodies = set(dump.payloads)

    def _bad(self, check: str, position: int, why: str) -> None:
        self.report.findings.append(Finding(check, position, why))

    def _must(self, holds: bool, check: str, position: int, why: str) -> None:
        if not holds:
            self._bad(check, position, why)

    def take(self, row: Row) -> None:
        """Check one entry, and make it what the next one follows."""
        position, own = len(self._leaves), derived("event link", row.envelope)
        self._leaves.append(hashlib.sha256(b"\0" + row.envelope).digest())
        self._must(row.seq == position, "chain", position, "a gap, or entries in another order")
        self._must(row.hash == own, "chain", position, "another hash in the column")
        if self._keys is not None:
            self._must(row.seal == self._keys.seal(own), "seals", position, "not the key's seal")
        try:
            said = read_envelope(row.envelope)
        except NotCanonical as fault:
            self._bad("canonical", position, str(fault))
        else:
            self._follow(row, said, position)
            self._follow_stream(row, said, position)
            self._check_payload(said, position)
        self._previous = own.hex()

    def _follow(self, row: Row, said: dict[str, Json], position: int) -> None:
        if position == 0:
            self._check_opening(said)
        request = None if row.request is None else row.request.hex()
        self._must(said["seq"] == position, "chain", position, "the envelope of another position")
        self._must(said["request"] == request, "chain", position, "another request in the column")
        self._must(said["prev_b3"] == self._previous, "chain", position, "a link to another entry")
        self._must(said["log"] == self._opened.get("origin"), "chain", position, "another ledger's entry")
        asked = said["request"] is None or (said["op_index"] == 0 and position > 0)
        self._must(asked, "chain", position, "a request where none belongs")
        self._must(request not in self._requests, "chain", position, "a request that was there before")
        if request is not None:
            self._requests.add(request)
        append = tuple(said[key] for key in ("op", "op_count", "actor", "authn", "at"))
        expected = 0 if self._left == 0 else said["op_count"] - self._left
        self._must(said["op_index"] == expected, "chain", position, "another place in its append")
        self._must(self._left == 0 or append == self._append, "chain", position, "an append that does not agree")
        self._append, self._left = append, said["op_count"] - said["op_index"] - 1
        opens = said["type"] == "ledger.opened.v1"
        self._must(opens == (position == 0), "chain", position, "an opening where none belongs, or none")

    def _check_opening(self, said: dict[str, Json]) -> None:
        self._opened = said["facts"]
        self._must(said["stream"] == f"led_{self._dump.ledger}", "chain", 0, "another ledger's stream")

    def _follow_stream(self, row: Row, said: dict[str, Json], position: int) -> None:
        place = (said["stream"], said["stream_seq"])
        self._must(place == (row.stream, row.stream_seq), "streams", position, "another place in the columns")
        version, link = self._streams.get(said["stream"], (0, ZEROS))
        self._must(said["stream_seq"] == version, "streams", position, "another place in its stream")
        self._must(said["stream_prev_b3"] == link, "streams", position, "a link to another entry of its stream")
        self._streams[said["stream"]] = (version + 1, derived("stream link", row.envelope).hex())

    def _check_payload(self, said: dict[str, Json], position: int) -> None:
        self._bodies.discard(position)
        stored = self._dump.payloads.get(position)
        if said["payload_sha256"] is None or stored is None:
            self._must(said["payload_sha256"] is stored is None, "payloads", position, "a payload, or none")
            return
        salt, body = stored
        lengths = (len(salt), len(body)) == (32, said["payload_len"])
        self._must(lengths, "payloads", position, "a salt or a payload of another length")
        committed = hashlib.sha256(salt + body).hexdigest()
        self._must(committed == said["payload_sha256"], "payloads", position, "not what was committed to")
        try:
            payload = read_payload(said["type"], body)
        except NotCanonical as fault:
            self._bad("payloads", position, str(fault))
        else:
            self._check_digests(said, payload, position)

    def _check_digests(self, said: dict[str, Json], payload: dict[str, Json], position: int) -> None:
        facts = said["facts"]
        match said["type"]:
            case "ledger.opened.v1":
                self._must(payload["tenant"] == self._dump.tenant, "payloads", position, "another tenant's ledger")
            case "name.assigned.v1":
                assigned = facts["id"].startswith(f"{KINDS[facts['kind']]}_")
                self._must(assigned, "payloads", position, "an id of another kind")
                if self._keys is not None:
                    stream = "name_" + self._keys.digest("name", facts["kind"], facts["parent"], payload["name"])
                    self._must(said["stream"] == stream, "payloads", position, "another name's stream")
            case "memory.remembered.v1" | "revision.corrected.v1" if self._keys is not None:
                content = self._keys.digest("content", facts["scope"]["project"], payload["content"])
                self._must(facts["content"] == content, "payloads", position, "another text's digest")
            case _:
                pass

    def end(self) -> None:
        """Check what stands at the end: the head's row, whole appends, no payload without an entry, and the root."""
        size, head = len(self._leaves), self._dump.head
        self.report.size, self.report.root = size, mth(self._leaves)
        self._must(self._left == 0, "chain", size, "an append that is cut short")
        for position in self._bodies:
            self._bad("payloads", position, "a payload without an entry")
        if head is None:
            self._bad("chain", size, "no head row")
            return
        seq, own, incarnation = head
        self._must((seq, own.hex()) == (size - 1, self._previous), "chain", min(seq + 1, size), "another head")
        self._must(incarnation == self._opened.get("incarnation"), "chain", 0, "a head of another incarnation")

    def hold(self, note: bytes) -> None:
        """Check that the entries bear out a checkpoint (§12)."""
        try:
            name, public = verifier_key(str(self._opened.get("public_key")))
            origin, size, root = open_checkpoint(note, name, public)
        except ValueError as fault:
            self._bad("checkpoints", 0, str(fault))
            return
        self._must(origin == name, "checkpoints", 0, "another origin")
        self._must(size <= len(self._leaves), "checkpoints", len(self._leaves), "fewer entries than were signed")
        self._must(mth(self._leaves[:size]) == root, "checkpoints", 0, "another root")
