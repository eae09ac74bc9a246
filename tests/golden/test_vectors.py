"""The golden vectors: the product still makes them, the specification shows them, and they hold without the product."""

import base64
import hashlib
import json
from itertools import pairwise
from typing import Any

import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ledger import codec
from tests.golden import generate, shapes
from tests.golden.logs import read_directory, verifier_key
from tests.golden.reader import Dump, Row, read

VECTORS: dict[str, dict[str, str]] = json.loads(generate.VECTORS.read_text(encoding="utf-8"))
ENTRIES = ["opening-0", "remember-0", "remember-1", "retire-0", "retire-1"]
ZEROS = "0" * 64


def derived(context: str, material: bytes) -> bytes:
    """Return BLAKE3's derived key."""
    return blake3(material, derive_key_context=f"corrigenda 2026 {context} v1").digest()


def secret(name: str) -> bytes:
    """Return a secret of the vectors' key file."""
    return base64.b64decode(json.loads(VECTORS["keys"]["key_file"])[name])


def key(name: str) -> bytes:
    """Derive one of the ledger's keys from the key file."""
    return derived(f"{name} key", secret(name) + VECTORS["keys"]["ledger"].encode())


def seal(digest: bytes) -> str:
    """Return the seal of a hash, in hex."""
    return (derived("key id", key("seal"))[:8] + blake3(digest, key=key("seal")).digest()).hex()


def canonical(value: Any) -> str:  # Any: JSON
    """Write JSON as section 2 of the specification says, by other means than the product's."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def envelope(name: str) -> dict[str, Any]:  # Any: JSON
    """Return the envelope of an entry, parsed."""
    return json.loads(VECTORS[name]["envelope"])


# ---------------------------------------------------------------- made by the product


def test_the_product_makes_the_vectors() -> None:
    """A second generation changes no byte; if this fails, the format has changed, and ledgers break."""
    assert generate.vectors() == VECTORS


def test_the_schema_of_events_has_not_changed() -> None:
    """No field of a stored event is added, renamed, reordered or made optional under the same type."""
    assert generate.schema() == json.loads(generate.SCHEMA.read_text(encoding="utf-8"))


def test_the_specification_shows_every_vector_and_no_other_value() -> None:
    """FORMAT.md holds exactly these values."""
    shown = generate.blocks(generate.FORMAT.read_text(encoding="utf-8"))
    assert shown == {name: generate.render(vector) for name, vector in VECTORS.items()}


# ---------------------------------------------------------------- checked without it


@pytest.mark.parametrize("name", ["string-plain", "string-escaped", "string-unicode"])
def test_a_text_has_one_spelling(name: str) -> None:
    """Strings escape what they must and nothing else."""
    text = bytes.fromhex(VECTORS[name]["text_hex"]).decode()
    assert canonical(text).encode().hex() == VECTORS[name]["json_hex"]


def test_links_and_commitment_are_plain_hashes() -> None:
    """Link, stream link, commitment and public hash are what their sections say."""
    assert derived("event link", VECTORS["link"]["envelope"].encode()).hex() == VECTORS["link"]["hash"]
    stream = VECTORS["stream-link"]
    assert derived("stream link", stream["envelope"].encode()).hex() == stream["stream_hash"]
    salted = bytes.fromhex(VECTORS["commitment"]["salt"]) + VECTORS["commitment"]["payload"].encode()
    assert hashlib.sha256(salted).hexdigest() == VECTORS["commitment"]["payload_sha256"]
    public = VECTORS["public-hash"]
    assert "b3:" + blake3(public["text"].encode()).hexdigest() == public["content_hash"]


def test_keys_are_derived_from_the_key_file_and_the_ledger() -> None:
    """Seal key, naming key and key id come from the two secrets."""
    keys = VECTORS["keys"]
    assert key("seal").hex() == keys["seal_key"]
    assert key("naming").hex() == keys["naming_key"]
    assert derived("key id", key("seal"))[:8].hex() == keys["key_id"]
    assert seal(bytes.fromhex(VECTORS["seal"]["event_hash"])) == VECTORS["seal"]["seal"]


@pytest.mark.parametrize(
    ("name", "field", "prefix"),
    [
        ("name-digest", "stream", "name_"),
        ("content-digest", "content", ""),
        ("request-digest", "request", ""),
        ("fingerprint", "request_fp", ""),
    ],
)
def test_keyed_digests_are_keyed_hashes_of_their_frame(name: str, field: str, prefix: str) -> None:
    """A digest of what a caller says is the keyed hash of a canonical array."""
    framed = VECTORS[name]["framed"]
    assert canonical(json.loads(framed)) == framed
    assert prefix + blake3(framed.encode(), key=key("naming")).hexdigest() == VECTORS[name][field]


def test_a_vector_s_seal_covers_its_bytes() -> None:
    """The frame holds the SHA-256 of the vector, and the seal is made of the frame's digest."""
    found = VECTORS["vector-seal"]
    assert json.loads(found["framed"])[-1] == hashlib.sha256(bytes.fromhex(found["vector_hex"])).hexdigest()
    assert seal(blake3(found["framed"].encode(), key=key("naming")).digest()) == found["seal"]


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_is_canonical_hashed_sealed_and_committed(name: str) -> None:
    """Each entry of the example ledger holds by itself."""
    vector, parsed = VECTORS[name], envelope(name)
    raw, body = vector["envelope"].encode(), vector["payload"].encode()
    assert canonical(parsed) == vector["envelope"]
    assert canonical(json.loads(body)) == vector["payload"]
    own = derived("event link", raw)
    assert (own.hex(), derived("stream link", raw).hex()) == (vector["hash"], vector["stream_hash"])
    assert seal(own) == vector["seal"]
    assert hashlib.sha256(bytes.fromhex(vector["salt"]) + body).hexdigest() == parsed["payload_sha256"]
    assert len(body) == parsed["payload_len"]


def test_the_entries_are_one_chain() -> None:
    """Positions count up, and each entry names the hash of the one before."""
    assert [envelope(name)["seq"] for name in ENTRIES] == list(range(len(ENTRIES)))
    assert envelope("opening-0")["prev_b3"] == ZEROS
    for before, after in pairwise(ENTRIES):
        assert envelope(after)["prev_b3"] == VECTORS[before]["hash"]


def test_each_stream_is_a_chain_of_its_own() -> None:
    """Within its stream, an entry counts up from the one before and names its stream hash."""
    ends: dict[str, tuple[int, str]] = {}
    for name in ENTRIES:
        parsed = envelope(name)
        version, link = ends.get(parsed["stream"], (0, ZEROS))
        assert (parsed["stream_seq"], parsed["stream_prev_b3"]) == (version, link)
        ends[parsed["stream"]] = (version + 1, VECTORS[name]["stream_hash"])
    assert sorted(version for version, _ in ends.values()) == [1, 1, 1, 2]


@pytest.mark.parametrize("append", [("opening-0",), ("remember-0", "remember-1"), ("retire-0", "retire-1")])
def test_the_entries_of_an_append_agree(append: tuple[str, ...]) -> None:
    """One op, counted from 0; the request on the first entry alone."""
    parsed = [envelope(name) for name in append]
    assert [one["op_index"] for one in parsed] == list(range(len(append)))
    assert {(one["op"], one["op_count"], one["at"], one["actor"]) for one in parsed} == {
        (parsed[0]["op"], len(append), parsed[0]["at"], parsed[0]["actor"])
    }
    assert [one["request"] for one in parsed[1:]] == [None] * (len(append) - 1)


def test_the_example_uses_the_digests_of_the_sections_before() -> None:
    """The named memory, its text and its request are those of the keyed digests."""
    named, remembered = envelope("remember-0"), envelope("remember-1")
    assert named["stream"] == VECTORS["name-digest"]["stream"]
    assert named["request"] == VECTORS["request-digest"]["request"]
    assert named["request_fp"] == VECTORS["fingerprint"]["request_fp"]
    assert remembered["facts"]["content"] == VECTORS["content-digest"]["content"]


def sha256(*parts: bytes) -> bytes:
    """Return the SHA-256 of the parts, joined."""
    return hashlib.sha256(b"".join(parts)).digest()


def mth(leaves: list[bytes]) -> bytes:
    """Return the root as FORMAT.md §11 defines it."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha256(b"\x01", mth(leaves[:half]), mth(leaves[half:]))


def test_the_tree_s_hashes() -> None:
    """A leaf and a node begin with a byte that tells them apart; the empty tree is the hash of nothing."""
    found = VECTORS["tree-hashes"]
    own = sha256(b"\x00", found["envelope"].encode())
    assert (own.hex(), sha256(b"\x01", own, own).hex()) == (found["leaf"], found["node_of_it_twice"])
    assert sha256().hex() == found["empty_tree"]


def test_the_roots_of_the_example_ledger() -> None:
    """Each entry is a leaf, in order, and each root is that of the first entries."""
    leaves = [sha256(b"\x00", VECTORS[name]["envelope"].encode()) for name in ENTRIES]
    assert list(VECTORS["tree-leaves"].values()) == [leaf.hex() for leaf in leaves]
    assert list(VECTORS["tree-roots"].values()) == [mth(leaves[:size]).hex() for size in range(1, len(leaves) + 1)]


def test_the_proofs_lead_to_the_roots() -> None:
    """Entry 2 is in the tree of 5, and the tree of 5 extends that of 3; folded here by hand, as §11 says."""
    leaf = [bytes.fromhex(one) for one in VECTORS["tree-leaves"].values()]
    right, left, last = (bytes.fromhex(one) for one in VECTORS["inclusion"]["proof"].split())
    root_3, root_5 = (VECTORS["tree-roots"][f"root_of_{size}"] for size in (3, 5))
    assert sha256(b"\x01", sha256(b"\x01", left, sha256(b"\x01", leaf[2], right)), last).hex() == root_5
    seed, right, left, last = (bytes.fromhex(one) for one in VECTORS["consistency"]["proof"].split())
    assert sha256(b"\x01", left, seed).hex() == root_3
    assert sha256(b"\x01", sha256(b"\x01", left, sha256(b"\x01", seed, right)), last).hex() == root_5


def test_the_verifier_key_is_event_0_s() -> None:
    """Its id is the beginning of a hash over name and key, and event 0 names it."""
    found = VECTORS["verifier-key"]
    typed = b"\x01" + bytes.fromhex(found["public"])
    assert sha256(found["name"].encode(), b"\n", typed)[:4].hex() == found["key_id"]
    assert found["verifier_key"] == f"{found['name']}+{found['key_id']}+{base64.b64encode(typed).decode()}"
    assert envelope("opening-0")["facts"]["public_key"] == found["verifier_key"]


def test_the_checkpoint_is_signed_over_its_text() -> None:
    """Origin, size and root; then one line whose base64 is the key's id and an Ed25519 signature of that text."""
    found, key_ = VECTORS["checkpoint"], VECTORS["verifier-key"]
    text = bytes.fromhex(found["text_hex"])
    origin, size, root, end = text.decode().split("\n")
    assert (origin, size, end) == (key_["name"], str(len(ENTRIES)), "")
    assert base64.b64decode(root).hex() == VECTORS["tree-roots"][f"root_of_{size}"]
    assert bytes.fromhex(found["note_hex"]) == text + b"\n" + f"{found['signature_line']}\n".encode()
    dash, name, encoded = found["signature_line"].split(" ")
    raw = base64.b64decode(encoded)
    assert (dash, name, raw[:4].hex()) == ("\u2014", origin, key_["key_id"])
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(key_["public"])).verify(raw[4:], text)


# ---------------------------------------------------------------- the two lists, for both readers


def listed(name: str) -> list[tuple[str, str]]:
    """Return a list's entries by name."""
    return list(VECTORS[name].items())


def taken(reader: Any, *given: Any) -> bool:  # Any: a reader, and what it reads
    """Report whether a reader takes bytes; it must answer in one of the two ways."""
    try:
        reader(*given)
    except (codec.NotCanonical, shapes.NotCanonical):
        return False
    return True


def reason(text: bytes) -> bytes:
    """Return the payload that has these bytes in the place of a text."""
    return b'{"reason":' + text + b"}"


@pytest.mark.parametrize(("name", "raw"), listed("accept-strings") + listed("reject-strings"))
def test_both_readers_take_a_string_or_refuse_it(name: str, raw: str) -> None:
    """Wherever a text may stand, the product and the second reader agree with the lists."""
    wanted = VECTORS["accept-strings"].get(name) == raw
    body = reason(bytes.fromhex(raw))
    assert taken(codec.decode_payload, "memory.retired.v1", body) is wanted
    assert taken(shapes.read_payload, "memory.retired.v1", body) is wanted


@pytest.mark.parametrize(
    ("name", "text"), [*listed("accept-integers"), *listed("reject-integers"), ("no_end", "9" * 5_000)]
)
def test_both_readers_take_an_integer_or_refuse_it(name: str, text: str) -> None:
    """In the place of a position in facts; what the value may be there is another matter than its form."""
    wanted = name in VECTORS["accept-integers"]
    raw = VECTORS["retire-1"]["envelope"].replace('"since":3', f'"since":{text}').encode()
    assert taken(codec.decode_envelope, raw) is wanted
    assert taken(shapes.canonical, raw) is (wanted or name == "text")


@pytest.mark.parametrize(("name", "raw"), [*listed("reject-payloads"), ("nothing", "")])
def test_both_readers_refuse_a_payload(name: str, raw: str) -> None:
    """White space, keys, values and ends that do not belong; without the change it would be taken."""
    assert taken(codec.decode_payload, "memory.retired.v1", b'{"reason":null}')
    assert not taken(codec.decode_payload, "memory.retired.v1", bytes.fromhex(raw))
    assert not taken(shapes.read_payload, "memory.retired.v1", bytes.fromhex(raw))


@pytest.mark.parametrize(("name", "change"), listed("reject-envelopes"))
def test_both_readers_refuse_an_envelope(name: str, change: str) -> None:
    """Each change of the opening makes it none; unchanged, both take it."""
    old, new = change.split(" => ")
    envelope = VECTORS["opening-0"]["envelope"]
    assert taken(codec.decode_envelope, envelope.encode()) and taken(shapes.read_envelope, envelope.encode())
    assert envelope.count(old) >= 1
    raw = envelope.replace(old, new, 1).encode()
    assert not taken(codec.decode_envelope, raw)
    assert not taken(shapes.read_envelope, raw)


@pytest.mark.parametrize(("size", "wanted"), [(16_384, True), (16_385, False)])
def test_both_readers_know_an_envelope_s_largest_size(size: int, wanted: bool) -> None:
    """16 KiB, to the byte."""
    envelope = VECTORS["opening-0"]["envelope"]
    raw = envelope.replace('"authn":"local"', f'"authn":"local{"a" * (size - len(envelope))}"').encode()
    assert len(raw) == size
    assert taken(codec.decode_envelope, raw) is wanted
    assert taken(shapes.read_envelope, raw) is wanted


@pytest.mark.parametrize(("size", "wanted"), [(262_144, True), (262_145, False)])
def test_both_readers_know_a_payload_s_largest_size(size: int, wanted: bool) -> None:
    """256 KiB, to the byte."""
    body = reason(b'"' + b"a" * (size - len(reason(b'""'))) + b'"')
    assert len(body) == size
    assert taken(codec.decode_payload, "memory.retired.v1", body) is wanted
    assert taken(shapes.read_payload, "memory.retired.v1", body) is wanted


@pytest.mark.parametrize("nested", [b"[" * 100_000, b"[" * 8_000, b'{"a":' * 2_500])
def test_both_readers_survive_nesting(nested: bytes) -> None:
    """Too deep to be read is refused, and nothing else happens."""
    raw = VECTORS["opening-0"]["envelope"].encode().replace(b'"facts":{', b'"facts":' + nested + b"{")
    assert not taken(codec.decode_envelope, raw)
    assert not taken(shapes.read_envelope, raw)


# ---------------------------------------------------------------- the second reader over all of it


def example() -> Dump:
    """Return the example ledger as its tables would hold it."""
    rows: list[Row] = []
    for name in ENTRIES:
        vector, parsed = VECTORS[name], envelope(name)
        request = None if parsed["request"] is None else bytes.fromhex(parsed["request"])
        own, made = bytes.fromhex(vector["hash"]), bytes.fromhex(vector["seal"])
        place = (parsed["seq"], parsed["stream"], parsed["stream_seq"])
        rows.append(Row(*place, vector["envelope"].encode(), own, made, request))
    payloads = {
        number: (bytes.fromhex(VECTORS[name]["salt"]), VECTORS[name]["payload"].encode())
        for number, name in enumerate(ENTRIES)
    }
    return Dump(VECTORS["keys"]["ledger"], "local", rows, payloads, (rows[-1].seq, rows[-1].hash, 1))


def test_the_second_reader_takes_the_example_ledger() -> None:
    """With its key file and its checkpoint, nothing is found."""
    note = bytes.fromhex(VECTORS["checkpoint"]["note_hex"])
    report = read(example(), VECTORS["keys"]["key_file"].encode(), note)
    assert report.findings == []
    assert report.root.hex() == VECTORS["tree-roots"]["root_of_5"]


def test_the_second_reader_takes_the_example_directory() -> None:
    """The two files and the checkpoint show the five entries."""
    files = {name: bytes.fromhex(raw) for name, raw in VECTORS["tile-files"].items()}
    files["checkpoint"] = bytes.fromhex(VECTORS["checkpoint"]["note_hex"])
    name, public = verifier_key(VECTORS["verifier-key"]["verifier_key"])
    assert read_directory(files, name, public) == [VECTORS[name]["envelope"].encode() for name in ENTRIES]


def test_the_names_of_tiles() -> None:
    """Groups of three digits, all but the last with an `x`; entry 1,234,067 is in tile 4,820."""
    names = VECTORS["tile-names"]
    assert names["tile_1234067"] == "tile/0/x001/x234/067"
    assert names["bundle_1234067"] == "tile/entries/x001/x234/067"
    assert int("".join(names["entry_1234067_is_in"].split("/")[2:]).replace("x", "")) == 1_234_067 // 256
    widths = [names[f"last_of_level_{level}_at_size_70000"].split(".p/")[1] for level in range(3)]
    assert widths == [str(70_000 // 256**level % 256) for level in range(3)]
