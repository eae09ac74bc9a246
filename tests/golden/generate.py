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

from ledger import codec, digest, keys, notes, tiles, tree
from ledger.chain import EMPTY, NO_STREAM, follow, follow_stream
from ledger.digest import LedgerKeys
from ledger.governance import AssignedName, NameAssigned
from ledger.limits import INTEGER_MAX
from ledger.memories import LINEAGE, LineageState, Provenance, Remember, Retire, RevisionText
from ledger.message import Event, Reason, ScopeIds
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

# What is refused, and why. The strings and payloads are bytes, the integers and changes text.
REJECTED_STRINGS = {
    "letter_escaped": rb'"\u0061"',
    "slash_escaped": rb'"\/"',
    "delete_escaped": rb'"\u007f"',
    "accent_escaped": rb'"\u00e9"',
    "pair_escaped": rb'"\ud83d\ude00"',
    "newline_long": rb'"\u000a"',
    "hex_upper": rb'"\u001F"',
    "newline_raw": b'"\n"',
    "control_raw": b'"\x1f"',
    "nul_escaped": rb'"\u0000"',
    "nul_raw": b'"\x00"',
    "surrogate_high": rb'"\ud800"',
    "surrogate_low": rb'"\udc00"',
    "surrogate_utf8": b'"\xed\xa0\x80"',
    "not_utf8": b'"\xff"',
    "overlong": b'"\xc0\xaf"',
    "cut_utf8": b'"\xe2\x82"',
    "above_unicode": b'"\xf4\x90\x80\x80"',
    "escape_unknown": rb'"\x41"',
    "apostrophes": b"'a'",
    "unended": b'"a',
}
REJECTED_INTEGERS = {
    "minus_zero": "-0",
    "zero_before": "01",
    "plus": "+1",
    "fraction": "1.0",
    "exponent": "1e0",
    "too_large": "9007199254740992",
    "too_small": "-9007199254740992",
    "infinite": "1e400",
    "not_a_number": "NaN",
    "infinity": "Infinity",
    "hexadecimal": "0x1",
    "text": '"1"',
    "truth": "true",
}
REJECTED_PAYLOADS = {
    "null": b"null",
    "array": b"[]",
    "byte_order_mark": b'\xef\xbb\xbf{"reason":null}',
    "space_before": b' {"reason":null}',
    "space_inside": b'{"reason": null}',
    "line_after": b'{"reason":null}\n',
    "two_values": b'{"reason":null}{"reason":null}',
    "comma_after": b'{"reason":null,}',
    "comment": b'{"reason":null}//',
    "key_twice": b'{"reason":"a","reason":null}',
    "key_twice_equal": b'{"reason":null,"reason":null}',
    "key_missing": b"{}",
    "key_unknown": b'{"reason":null,"x":null}',
    "key_escaped": rb'{"re\u0061son":null}',
    "key_capital": b'{"Reason":null}',
    "key_bare": b"{reason:null}",
    "integer": b'{"reason":1}',
    "unended": b'{"reason":null',
}
REJECTED_ENVELOPES = {
    "version": ('"v":1', '"v":2'),
    "scope_version": ('"schema":1', '"schema":2'),
    "type_unknown": ("ledger.opened.v1", "ledger.opened.v2"),
    "facts_of_another_type": ("ledger.opened.v1", "name.assigned.v1"),
    "keys_in_another_order": ('"op_count":1,"op_index":0', '"op_index":0,"op_count":1'),
    "key_missing": ('"subjects":[],"type"', '"type"'),
    "key_unknown": ('"v":1', '"v":1,"w":1'),
    "key_twice": ('"v":1', '"v":1,"v":1'),
    "null_for_a_list": ('"subjects":[]', '"subjects":null'),
    "subjects_unsorted": ('"subjects":[]', '"subjects":["b","a"]'),
    "subjects_doubled": ('"subjects":[]', '"subjects":["a","a"]'),
    "position_below_0": ('"seq":0', '"seq":-1'),
    "append_of_none": ('"op_count":1', '"op_count":0'),
    "beyond_its_append": ('"op_index":0', '"op_index":1'),
    "half_a_commitment": ('"payload_len":18', '"payload_len":null'),
    "half_a_request": ('"request":null', '"request":"' + "0" * 64 + '"'),
    "hash_too_short": ('"stream_prev_b3":"00', '"stream_prev_b3":"'),
    "stream_of_another_kind": ('"stream":"led_', '"stream":"mem_'),
    "another_position": ('"seq":0', '"seq":1'),
    "another_actor": ('"actor":"system"', '"actor":"somebody"'),
    "another_hash_function": ("sha256-rfc6962", "sha512-rfc6962"),
    "another_form": ("jcs-closed-1", "jcs-closed-2"),
    "another_incarnation": ('"incarnation":1', '"incarnation":2'),
    "another_origin": ('"origin":"corrigenda.invalid/', '"origin":"example.invalid/'),
    "another_key_s_name": ('"public_key":"corrigenda.invalid/', '"public_key":"example.invalid/'),
    "no_key": ("+b3b8fd7f+", "+b3b8fd70+"),
    "time_without_fraction": (".000006Z", "Z"),
    "time_of_no_zone": (".000006Z", ".0000060"),
    "time_that_never_is": ("T03:04", "T24:04"),
    "space_inside": ('"v":1', '"v": 1'),
}

BLOCK = re.compile(r"<!-- vector: ([a-z0-9-]+) -->\n```text\n(.*?)```\n", re.DOTALL)


def ledger_keys() -> LedgerKeys:
    """Return the keys of the vectors' ledger."""
    return LedgerKeys(seal_secret=SEAL_SECRET, naming_secret=NAMING_SECRET, ledger=LEDGER)


def vectors() -> dict[str, Vector]:
    """Return every vector by name, each as named texts: UTF-8 text, or bytes in hex."""
    entries = _entries()
    envelopes = [one["envelope"] for one in entries.values()]
    return {**_forms(), **_lists(), **_hashes(), **_keyed(), **entries, **_tree(envelopes), **_tiles(envelopes)}


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


def _lists() -> dict[str, Vector]:
    """What a reader must take, and what it must not."""
    accepted = {
        "empty": "",
        "quote": '"',
        "backslash": "\\",
        "looks_like_an_escape": "\\u0000",
        "short_escapes": "\b\t\n\f\r",
        "controls": "".join(map(chr, range(1, 32))),
        "slash": "/",
        "delete": "\x7f",
        "next_line": "\x85",
        "separators": "\u2028\u2029",
        "one_code_point": "é",
        "two_code_points": "e\u0301",
        "right_to_left": "\u202e\u05e9\u05dc\u05d5\u05dd\u202c",
        "byte_order_mark": "\ufeff",
        "around_the_surrogates": "\ud7ff\ue000",
        "no_character": "\uffff",
        "astral": "😀",
        "last": "\U0010ffff",
    }
    integers = {"zero": 0, "one": 1, "minus_one": -1, "largest": INTEGER_MAX, "smallest": -INTEGER_MAX}
    changes = {name: f"{old} => {new}" for name, (old, new) in REJECTED_ENVELOPES.items()}
    return {
        "accept-strings": {name: codec.canonical(text).hex() for name, text in accepted.items()},
        "accept-integers": {name: codec.canonical(number).decode() for name, number in integers.items()},
        "reject-strings": {name: raw.hex() for name, raw in REJECTED_STRINGS.items()},
        "reject-integers": REJECTED_INTEGERS,
        "reject-payloads": {name: raw.hex() for name, raw in REJECTED_PAYLOADS.items()},
        "reject-envelopes": changes,
    }


def _hashes() -> dict[str, Vector]:
    envelope, salt, body = b"{}", bytes(range(96, 128)), codec.encode_payload(Reason(reason="outdated"))
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
    hidden = cast(Any, digest)  # private on purpose: only vectors ever show a naming key
    naming = cast(bytes, hidden._derive(hidden._NAMING_KEY, NAMING_SECRET, LEDGER))
    key_file = keys.LedgerKeyFile(format="corrigenda-ledger-key/1", naming=NAMING_SECRET, seal=SEAL_SECRET)
    event_hash = digest.link(b"{}")
    request = codec.canonical({"content": TEXTS["plain"], "operation": "remember"})
    content, signature, vector = made.content(PROJECT, TEXTS["plain"]), "example/1", b"\x00\x00\x80\x3f"
    vector_sha256 = hashlib.sha256(vector).hexdigest()
    return {
        "keys": {
            "key_file": msgspec.json.encode(key_file).decode(),
            "ledger": LEDGER,
            "seal_key": made.secret.hex(),
            "naming_key": naming.hex(),
            "key_id": made.key_id.hex(),
        },
        "seal": {"event_hash": event_hash.hex(), "seal": made.seal(event_hash).hex()},
        "name-digest": _framed("name", "memory", PROJECT, "pep-241")
        | {"stream": made.name("memory", PROJECT, "pep-241")},
        "content-digest": _framed("content", PROJECT, TEXTS["plain"]) | {"content": content},
        "evidence-digest": _framed("evidence", PROJECT, digest.public(b"receipt"))
        | {"stream": made.evidence(PROJECT, digest.public(b"receipt"))},
        "subject-digest": _framed("subject", "ana@example.com") | {"subject": made.subject("ana@example.com")},
        "tombstone-digest": _framed("tombstone", PROJECT, "mail", TEXTS["plain"])
        | {"stream": made.tombstone(PROJECT, "mail", TEXTS["plain"])},
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
        with patch("ledger.sealing.fresh_salt", salts.__next__):
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


def _tiles(envelopes: list[str]) -> dict[str, Vector]:
    """Return what tiles are called, and the files of the example ledger."""
    raws = [envelope.encode() for envelope in envelopes]
    leaves = b"".join(map(digest.leaf, raws))
    (bundle,) = tiles.of_size(len(raws), tiles.ENTRIES)
    (tile, hashes), *_ = tiles.grow(len(raws), lambda first, count: leaves[32 * first : 32 * (first + count)])
    return {
        "tile-names": {
            "entry_1234067_is_in": tiles.path(tiles.Tile(0, 1_234_067 // 256, 256)),
            "tile_1234067": tiles.path(tiles.Tile(0, 1_234_067, 256)),
            "bundle_1234067": tiles.path(tiles.Tile(tiles.ENTRIES, 1_234_067, 256)),
            **{
                f"last_of_level_{level}_at_size_70000": [*map(tiles.path, tiles.of_size(70_000, level))][-1]
                for level in range(3)
            },
        },
        "tile-files": {
            tiles.path(tile): hashes.hex(),
            tiles.path(bundle): tiles.bundle(bundle, raws).hex(),
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
    (event,) = LINEAGE.decide(LineageState(), _wish(f"rev_{_ulid('F')}", TEXTS["plain"], first=-2))
    stream = made.name("memory", PROJECT, "pep-241")
    return _draft("G", "key-1", (stream, named), (memory, event))


def _remember_and_retire() -> Draft:
    """A revision that is withdrawn in the append that records it, as an import does with what is history already."""
    memory, revision = f"mem_{_ulid('H')}", f"rev_{_ulid('J')}"
    (born,) = LINEAGE.decide(LineageState(), _wish(revision, "Café, 😀, שלום", first=-1))
    state = LINEAGE.fold([born])
    (gone,) = LINEAGE.decide(state, Retire(first=-2, revision=revision, cause="import", reason="status Withdrawn"))
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
