"""Writes the golden vectors: `python -m tests.golden.generate`, from the root of the repository.

Everything is made by the product's own code from fixed secrets, salts, ids and times, so that a second run changes no
byte. It writes `vectors.json`, `events.schema.json`, and the vectors' blocks in `docs/FORMAT.md`.
"""

import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import codec, digest, keys, memories, notes, tree
from ledger.chain import EMPTY, NO_STREAM, follow, follow_stream
from ledger.digest import LedgerKeys
from ledger.governance import AssignedName, NameAssigned
from ledger.memories import Provenance, Remember, Retire, RevisionText
from ledger.message import Event, ScopeIds
from ledger.notes import Checkpoint
from ledger.opening import opening_entry
from ledger.sealing import Draft, Sealed, Sealer, Tip, prepare
from ledger.verified import Recorded

Vector = dict[str, str]

HERE = Path(__file__).parent
VECTORS, SCHEMA = HERE / "vectors.json", HERE / "events.schema.json"
FORMAT = HERE.parents[1] / "docs" / "FORMAT.md"

SEAL_SECRET, NAMING_SECRET, SIGNING_SEED = bytes(range(32)), bytes(range(32, 64)), bytes(range(64, 96))
LEDGER = "01JZ8Q0000000000000000000A"
ORIGIN = f"corrigenda.invalid/{LEDGER}"
AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
AT_TEXT = "2026-01-02T03:04:05.000006Z"
PROJECT, ACTOR = "prj_01JZ8Q0000000000000000000B", "pr_01JZ8Q0000000000000000000C"
TEXTS = {
    "plain": "Deploys happen on Tuesdays.",
    "escaped": 'quote " backslash \\ newline \n tab \t bell \x07 slash / delete \x7f',
    "unicode": "é, e\u0301, 😀, \u05e9\u05dc\u05d5\u05dd, \u2028",
}

BLOCK = re.compile(r"<!-- vector: ([a-z0-9-]+) -->\n```text\n(.*?)```\n", re.DOTALL)


def ledger_keys() -> LedgerKeys:
    """Return the keys of the vectors' ledger."""
    return LedgerKeys(seal_secret=SEAL_SECRET, naming_secret=NAMING_SECRET, ledger=LEDGER)


def vectors() -> dict[str, Vector]:
    """Return every vector by name, each as named texts: UTF-8 text, or bytes in hex."""
    entries = _entries()
    return {**_forms(), **_hashes(), **_keyed(), **entries, **_tree([one["envelope"] for one in entries.values()])}


def schema() -> dict[str, Any]:  # Any: JSON schema
    """Return the JSON schema of the facts and the payload of every event type."""
    kinds = [kind for pair in codec.EVENT_TYPES.values() for kind in pair if kind is not None]
    _, components = msgspec.json.schema_components(dict.fromkeys(kinds), ref_template="#/components/{name}")
    types = {
        tag: {"facts": facts.__name__, "payload": None if payload is None else payload.__name__}
        for tag, (facts, payload) in codec.EVENT_TYPES.items()
    }
    return {"components": components, "types": types}


def render(vector: Vector) -> str:
    """Return a vector as it stands in FORMAT.md: one `name value` line each."""
    width = max(map(len, vector))
    return "".join(f"{name:<{width}}  {value}\n" for name, value in vector.items())


def blocks(text: str) -> dict[str, str]:
    """Return the vectors' blocks in a document by name."""
    return dict(BLOCK.findall(text))


def write() -> None:
    """Write all three files."""
    made = vectors()
    VECTORS.write_text(json.dumps(made, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    SCHEMA.write_text(json.dumps(schema(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    text = FORMAT.read_text(encoding="utf-8")
    FORMAT.write_text(BLOCK.sub(lambda found: _block(found[1], made[found[1]]), text), encoding="utf-8")


def _block(name: str, vector: Vector) -> str:
    return f"<!-- vector: {name} -->\n```text\n{render(vector)}```\n"


def _forms() -> dict[str, Vector]:
    """Texts and their canonical JSON strings."""
    return {
        f"string-{name}": {"text_hex": text.encode().hex(), "json_hex": codec.canonical(text).hex()}
        for name, text in TEXTS.items()
    }


def _hashes() -> dict[str, Vector]:
    envelope, salt, body = b"{}", bytes(range(96, 128)), codec.encode_payload(memories.Reason(reason="outdated"))
    return {
        "link": {"envelope": envelope.decode(), "hash": digest.link(envelope).hex()},
        "stream-link": {"envelope": envelope.decode(), "stream_hash": digest.stream_link(envelope).hex()},
        "commitment": {
            "salt": salt.hex(),
            "payload": body.decode(),
            "payload_sha256": digest.commitment(salt, body),
        },
        "public-hash": {"text": TEXTS["plain"], "content_hash": digest.public(TEXTS["plain"].encode())},
    }


def _keyed() -> dict[str, Vector]:
    made = ledger_keys()
    key_file = keys.LedgerKeyFile(format="corrigenda-ledger-key/1", naming=NAMING_SECRET, seal=SEAL_SECRET)
    event_hash = digest.link(b"{}")
    request = codec.canonical({"content": TEXTS["plain"], "operation": "remember"})
    content, signature, vector = made.content(PROJECT, TEXTS["plain"]), "example/1", b"\x00\x00\x80\x3f"
    vector_sha256 = hashlib.sha256(vector).hexdigest()
    return {
        "keys": {
            "key_file": msgspec.json.encode(key_file).decode(),
            "ledger": LEDGER,
            "seal_key": cast(Any, made)._seal_key.hex(),  # private on purpose: only vectors ever show a key
            "naming_key": cast(Any, made)._naming_key.hex(),
            "key_id": made.key_id.hex(),
        },
        "seal": {"event_hash": event_hash.hex(), "seal": made.seal(event_hash).hex()},
        "name-digest": _framed("name", "memory", PROJECT, "pep-241")
        | {"stream": made.name("memory", PROJECT, "pep-241")},
        "content-digest": _framed("content", PROJECT, TEXTS["plain"]) | {"content": content},
        "request-digest": _framed("request", "human:ana", "remember", "key-1")
        | {"request": made.request(["human:ana", "remember"], "key-1")},
        "fingerprint": _framed("fingerprint", request.decode()) | {"request_fp": made.fingerprint(request)},
        "vector-seal": {"vector_hex": vector.hex()}
        | _framed("vector", content, signature, vector_sha256)
        | {"seal": made.vector(content, signature, vector).hex()},
    }


def _framed(purpose: str, *parts: str) -> Vector:
    return {"framed": codec.canonical([purpose, *parts]).decode()}


# ---------------------------------------------------------------- appends


def _entries() -> dict[str, Vector]:
    """Return the opening of a ledger and two appends, as they are sealed."""
    made = ledger_keys()
    signing = Ed25519PrivateKey.from_private_bytes(SIGNING_SEED)
    entry, salt, body = opening_entry(
        LEDGER,
        "local",
        ORIGIN,
        keys.verifier_key(ORIGIN, signing),
        AT_TEXT,
        made.seal,
        lambda: _ulid("D"),
        _salt(0),
    )
    sealer = Sealer(made, ORIGIN)
    tip = Tip(EMPTY, {})
    tip.head = follow(tip.head, entry, made.is_sealed)
    tip.ends[entry.envelope.stream] = follow_stream(NO_STREAM, entry)
    named = {"opening": [Sealed(Recorded(entry, None), salt, body)]}
    for name, draft in (("remember", _remember()), ("retire", _remember_and_retire())):
        first = tip.head.size
        salts = (_salt(position) for position in range(first, first + len(draft.events)))
        with patch("ledger.sealing.os.urandom", lambda _size, salts=salts: next(salts)):
            prepared = prepare(draft)
        named[name] = sealer.seal(prepared, tip, AT_TEXT)
    return {
        f"{name}-{number}": _vector(item.entry, item.salt, item.body or b"")
        for name, sealed in named.items()
        for number, item in enumerate(sealed)
    }


def _tree(envelopes: list[str]) -> dict[str, Vector]:
    """Return what stands over the example ledger: leaves, roots, a proof of each kind, and a signed checkpoint."""
    leaves = [digest.leaf(envelope.encode()) for envelope in envelopes]
    size, signing = len(leaves), Ed25519PrivateKey.from_private_bytes(SIGNING_SEED)
    checkpoint = Checkpoint(ORIGIN, size, tree.root(leaves))
    text, note = notes.format_checkpoint(checkpoint), notes.sign_checkpoint(checkpoint, signing)
    key = notes.parse_verifier_key(keys.verifier_key(ORIGIN, signing))
    return {
        "tree-hashes": {
            "envelope": "{}",
            "leaf": digest.leaf(b"{}").hex(),
            "node_of_it_twice": digest.node(digest.leaf(b"{}"), digest.leaf(b"{}")).hex(),
            "empty_tree": digest.EMPTY_TREE.hex(),
        },
        "tree-leaves": {f"leaf_{number}": leaf.hex() for number, leaf in enumerate(leaves)},
        "tree-roots": {f"root_of_{n}": tree.root(leaves[:n]).hex() for n in range(1, size + 1)},
        "inclusion": {"index": "2", "size": str(size), "proof": _joined(tree.inclusion(2, leaves))},
        "consistency": {"old": "3", "new": str(size), "proof": _joined(tree.consistency(3, leaves))},
        "verifier-key": {
            "name": key.name,
            "public": key.public.hex(),
            "key_id": key.key_id.hex(),
            "verifier_key": notes.format_verifier_key(key),
        },
        "checkpoint": {
            "signing_seed": SIGNING_SEED.hex(),
            "text_hex": text.encode().hex(),
            "signature_line": note.decode().splitlines()[-1],
            "note_hex": note.hex(),
        },
    }


def _joined(proof: tree.Proof) -> str:
    return " ".join(one.hex() for one in proof)


def _vector(entry: codec.Entry, salt: bytes, body: bytes) -> Vector:
    return {
        "envelope": entry.raw.decode(),
        "hash": entry.hash.hex(),
        "stream_hash": entry.stream_hash.hex(),
        "seal": entry.seal.hex(),
        "salt": salt.hex(),
        "payload": body.decode(),
    }


def _remember() -> Draft:
    """A name, and the first revision of the memory that it was given to."""
    memory, made = f"mem_{_ulid('E')}", ledger_keys()
    assigned = NameAssigned(id=memory, kind="memory", parent=PROJECT)
    named = Event(facts=assigned, payload=AssignedName(name="pep-241"), position=-1)
    (event,) = memories.decide(memories.LineageState(), _wish(f"rev_{_ulid('F')}", TEXTS["plain"], first=-2))
    stream = made.name("memory", PROJECT, "pep-241")
    return _draft("G", "key-1", (stream, named), (memory, event))


def _remember_and_retire() -> Draft:
    """A revision that is withdrawn in the append that records it, as an import does with what is history already."""
    memory, revision = f"mem_{_ulid('H')}", f"rev_{_ulid('J')}"
    (born,) = memories.decide(memories.LineageState(), _wish(revision, "Café, 😀, שלום", first=-1))
    state = memories.LINEAGE.fold([born])
    (gone,) = memories.decide(state, Retire(first=-2, revision=revision, cause="import", reason="status Withdrawn"))
    return _draft("K", "key-2", (memory, born), (memory, gone))


def _wish(revision: str, content: str, *, first: int) -> Remember:
    return Remember(
        first=first,
        revision=revision,
        content=ledger_keys().content(PROJECT, content),
        kind="fact",
        origin="human",
        scope=ScopeIds(agent=None, project=PROJECT, session=None, task_family=None, user=None),
        visibility="project",
        text=RevisionText(
            applies=None,
            confidence="0.9",
            content=content,
            evidence=(),
            institutional=None,
            provenance=Provenance(run=None, session=None, sources=("https://example.com/a",)),
            reason=None,
            recorded_at=None,
            review_by=None,
            subjects=(),
            tags=("ops",),
            valid_from="2026-01-01T00:00:00.000000Z",
            valid_to=None,
        ),
    )


def _draft(op: str, key: str, *events: tuple[str, Event]) -> Draft:
    made = ledger_keys()
    return Draft(
        op=f"op_{_ulid(op)}",
        actor=ACTOR,
        authn="local",
        request=made.request(["human:ana", "remember"], key),
        fingerprint=made.fingerprint(codec.canonical({"content": TEXTS["plain"], "operation": "remember"})),
        events=events,
    )


def _ulid(last: str) -> str:
    return LEDGER[:-1] + last


def _salt(position: int) -> bytes:
    return bytes([position]) * digest.SALT_BYTES


if __name__ == "__main__":
    write()
