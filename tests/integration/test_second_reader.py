"""The second reader, which shares no code with the product, takes a ledger that it wrote, and no altered one."""

import ast
import json
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import corrigenda
import migrations
from gateway.bootstrap import open_bare
from gateway.settings import read_settings
from tests.conftest import fresh_database
from tests.golden.logs import read_directory, verifier_key
from tests.golden.reader import Dump, Keys, Row, derived, read
from tests.golden.shapes import NotCanonical, written
from tests.roles import as_writer

GOLDEN = Path(__file__).parents[1] / "golden"
Json = Any  # Any: JSON


class Ledger(NamedTuple):
    """What an outsider is given: the tables, the key file, a checkpoint, and the directory that shows it."""

    dump: Dump
    key_file: bytes
    note: bytes
    folder: Path

    @property
    def keys(self) -> Keys:
        """Return the ledger's keys as the second reader derives them."""
        return Keys(self.key_file, self.dump.ledger)


@pytest.fixture(scope="module")
def ledger(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """A ledger with an event of every type, written by the product, and read with SQL."""
    home = tmp_path_factory.mktemp("written")
    home.chmod(0o700)
    with fresh_database(server_url) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CORRIGENDA_EMBEDDER", "none")
        migrations.upgrade(url)
        _write(as_writer(url), home)
        with open_bare(database_url=as_writer(url), home=home) as bare:
            note = bare.sign_checkpoint(tiles=home / "tiles")["note"].encode()
        key_file = read_settings(database_url=url, home=home).keys.ledger.read_bytes()
        yield Ledger(_dump(url), key_file, note, home / "tiles")


def _write(url: str, home: Path) -> None:
    with corrigenda.open(url, home=home, project="atlas", actor="human:ana") as gateway:
        gateway.remember(
            'Die Büros schließen um 18 Uhr. 😀 "quoted" \\ \x07 \u2028 שלום',
            memory_id="office",
            tags=["ops", "été"],
            confidence="0.9",
            sources=["https://example.com/a"],
            run="run-1",
            valid_from="2026-01-01T00:00:00Z",
            idempotency_key="key-1",
        )
        gateway.remember("Prefers tea.", kind="preference", user="bo", agent="planner", session="s1", task_family="t")
        gateway.remember("Deploys happen on Tuesdays.", memory_id="deploys")
        corrected = gateway.correct("deploys", "Deploys happen on Wednesdays.", reason="they moved")
        gateway.link("deploys", "office", reason="newer")
        gateway.unlink("deploys", "office", reason="not so")
        gateway.retire("office", reason="outdated")
        gateway.restore("office", reason="it is not")
        gateway.revoke(str(corrected.revision_id), reason="never true")


def _dump(url: str) -> Dump:
    with psycopg.connect(url) as connection:
        ((tenant, ledger),) = connection.execute("SELECT name, ledger FROM corrigenda.tenant").fetchall()
        (head,) = connection.execute("SELECT seq, hash, incarnation FROM corrigenda.head").fetchall()
        events = connection.execute(
            "SELECT seq, stream, stream_seq, envelope, hash, seal, request FROM corrigenda.event ORDER BY seq"
        ).fetchall()
        payloads = connection.execute("SELECT seq, salt, body FROM corrigenda.payload").fetchall()
    return Dump(
        ledger=ledger,
        tenant=tenant,
        events=[Row(*row) for row in events],
        payloads={seq: (salt, body) for seq, salt, body in payloads},
        head=(head[0], head[1], head[2]),
    )


def failed(ledger: Ledger, dump: Dump, *, note: bool = False, key_file: bool = True) -> dict[str, int]:
    """Return the checks that fail on a dump, with their first bad positions."""
    return read(dump, ledger.key_file if key_file else None, ledger.note if note else None).failed()


def flipped(raw: bytes, at: int = 0) -> bytes:
    """Return bytes with one bit changed."""
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def forged(ledger: Ledger, envelopes: list[bytes], *, seal: Callable[[bytes], bytes] | None = None) -> Dump:
    """Return a ledger of these envelopes, with every link, column, hash and seal made anew.

    Bytes that are not canonical stay as they are. Without `seal` the forger has the ledger's key.
    """
    rows: list[Row] = []
    previous, streams = bytes(32), dict[str, bytes]()
    for raw in envelopes:
        try:
            said = json.loads(raw)
            said["prev_b3"] = previous.hex()
            said["stream_prev_b3"] = streams.get(said["stream"], bytes(32)).hex()
            raw = written(said).encode() if written(json.loads(raw)).encode() == raw else raw
        except (NotCanonical, ValueError, RecursionError):
            said = {"stream": "mem_", "stream_seq": 0, "request": None}
        previous = derived("event link", raw)
        streams[said["stream"]] = derived("stream link", raw)
        request = None if said["request"] is None else bytes.fromhex(said["request"])
        made = (seal or ledger.keys.seal)(previous)
        rows.append(Row(len(rows), said["stream"], said["stream_seq"], raw, previous, made, request))
    return replace(ledger.dump, events=rows, head=(len(rows) - 1, previous, 1))


def said(ledger: Ledger) -> list[dict[str, Json]]:
    """Return every envelope, parsed."""
    return [json.loads(row.envelope) for row in ledger.dump.events]


# ---------------------------------------------------------------- what holds


def test_it_is_independent() -> None:
    """It and its parts import the standard library, BLAKE3, and for a signature Ed25519: nothing of the product."""
    own = {"tests.golden.logs", "tests.golden.shapes"}
    for name in ("reader", "shapes", "logs"):
        for node in ast.walk(ast.parse((GOLDEN / f"{name}.py").read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for imported in names:
                root = imported.partition(".")[0]
                assert imported in own or root in sys.stdlib_module_names | {"blake3", "cryptography"}, imported
                assert root != "cryptography" or name == "logs"


def test_what_the_product_wrote_is_what_the_format_says(ledger: Ledger) -> None:
    """Form, links, stream links, seals, payloads, digests, head and checkpoint, of an event of every type."""
    report = read(ledger.dump, ledger.key_file, ledger.note)
    assert report.findings == []
    assert report.root.hex() == read(forged(ledger, [row.envelope for row in ledger.dump.events])).root.hex()
    assert {one["type"] for one in said(ledger)} == {
        *("ledger.opened.v1", "name.assigned.v1", "memory.remembered.v1", "revision.corrected.v1", "memory.retired.v1"),
        *("memory.restored.v1", "revision.revoked.v1", "lineage.linked.v1", "lineage.unlinked.v1"),
    }


def test_the_directory_shows_the_same_envelopes(ledger: Ledger) -> None:
    """From nothing but the files and the key's name: every entry, every tile, the signed root."""
    files = {
        str(path.relative_to(ledger.folder)): path.read_bytes() for path in ledger.folder.rglob("*") if path.is_file()
    }
    name, public = verifier_key(said(ledger)[0]["facts"]["public_key"])
    assert read_directory(files, name, public) == [row.envelope for row in ledger.dump.events]
    for path, raw in files.items():
        with pytest.raises(ValueError):
            read_directory({**files, path: flipped(raw, 40)}, name, public)


# ---------------------------------------------------------------- one field


COLUMNS: dict[str, tuple[str, Callable[[Any], Any]]] = {  # Any: the column's own
    "seq": ("chain", lambda value: value + 1),
    "stream": ("streams", lambda value: value[:-1] + ("0" if value[-1] != "0" else "1")),
    "stream_seq": ("streams", lambda value: value + 1),
    "hash": ("chain", flipped),
    "seal": ("seals", lambda value: flipped(value, 20)),
    "request": ("chain", lambda value: bytes(32) if value is None else None),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_of_every_event_is_checked(ledger: Ledger, column: str) -> None:
    """A value changed in a column is found at its position, and by no other check than its own."""
    check, change = COLUMNS[column]
    for position, row in enumerate(ledger.dump.events):
        events = list(ledger.dump.events)
        events[position] = row._replace(**{column: change(getattr(row, column))})
        assert failed(ledger, replace(ledger.dump, events=events)) == {check: position}


def test_every_byte_of_an_envelope_is_checked(ledger: Ledger) -> None:
    """Whichever byte of an entry is changed, its hash, its seal and the checkpoint are found wrong."""
    position = 3
    raw = ledger.dump.events[position].envelope
    for at in range(len(raw)):
        events = list(ledger.dump.events)
        events[position] = events[position]._replace(envelope=flipped(raw, at))
        found = failed(ledger, replace(ledger.dump, events=events), note=True)
        assert {"chain", "seals", "checkpoints"} <= found.keys() and found["seals"] == position


def places(value: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # Any: keys and indices
    """Yield the way to every value in a document."""
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in pairs:
        yield from places(one, (*path, key))


def changed(value: Json) -> Json:
    """Return another value of the same kind, or of another where there is only one."""
    match value:
        case str():
            return value[:-1] + ("0" if value[-1:] != "0" else "1")
        case int():
            return value + 1
        case None:
            return "0" * 64
        case list():
            return [*value, "0" * 64]
        case _:
            return {**value, "zzz": None}


def test_every_value_of_every_envelope_is_checked(ledger: Ledger) -> None:
    """Changed by somebody with the database, who made hash and columns anew: the seal is found wrong, at that entry."""
    for position, original in enumerate(said(ledger)):
        for path in places(original):
            envelope = deepcopy(original)
            inner = envelope
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = changed(inner[path[-1]])
            raw = written(envelope).encode()
            events = list(ledger.dump.events)
            events[position] = events[position]._replace(envelope=raw, hash=derived("event link", raw))
            found = failed(ledger, replace(ledger.dump, events=events))
            assert found.get("seals") == position, path


def test_every_value_is_under_the_checkpoint(ledger: Ledger) -> None:
    """Changed by somebody with the key, who made every link and seal anew: a checkpoint from before shows it."""
    originals = said(ledger)
    for position in (0, 4, len(originals) - 1):
        for key in originals[position]:
            envelopes = deepcopy(originals)
            envelopes[position][key] = changed(envelopes[position][key])
            dump = forged(ledger, [written(one).encode() for one in envelopes])
            unlinked = key in ("prev_b3", "stream_prev_b3")  # made anew, and so as they were
            assert ("checkpoints" in failed(ledger, dump, note=True)) is not unlinked


@pytest.mark.parametrize("part", ["salt", "body", "both", "missing"])
def test_every_payload_is_checked(ledger: Ledger, part: str) -> None:
    """Salt, bytes, another event's payload, or none."""
    positions = sorted(ledger.dump.payloads)
    for position in positions:
        salt, body = ledger.dump.payloads[position]
        payloads = dict(ledger.dump.payloads)
        other = payloads[positions[positions.index(position) - 1]]
        payloads[position] = {"salt": (flipped(salt), body), "body": (salt, flipped(body, 4)), "both": other}.get(
            part, (salt, body)
        )
        if part == "missing":
            del payloads[position]
        assert failed(ledger, replace(ledger.dump, payloads=payloads)) == {"payloads": position}


def test_a_payload_of_no_entry(ledger: Ledger) -> None:
    """What nobody committed to does not belong there."""
    size = len(ledger.dump.events)
    payloads = {**ledger.dump.payloads, size: (bytes(32), b'{"reason":null}')}
    assert failed(ledger, replace(ledger.dump, payloads=payloads)) == {"payloads": size}


@pytest.mark.parametrize("head", [None, (3, bytes(32), 1), "hash", "seq", "incarnation"])
def test_the_head_s_row_is_checked(ledger: Ledger, head: Json) -> None:
    """None, another place, another hash, another incarnation."""
    seq, own, incarnation = ledger.dump.head or (0, b"", 0)
    others = {"hash": (seq, flipped(own), 1), "seq": (seq - 1, own, 1), "incarnation": (seq, own, incarnation + 1)}
    assert failed(ledger, replace(ledger.dump, head=others.get(head, head))).keys() == {"chain"}


def test_the_ledger_s_own_names_are_checked(ledger: Ledger) -> None:
    """A ledger under another tenant's name, or under another id: nothing of it is this one's."""
    assert failed(ledger, replace(ledger.dump, tenant="other")) == {"payloads": 0}
    other = ledger.dump.ledger[:-1] + ("0" if ledger.dump.ledger[-1] != "0" else "1")
    found = failed(ledger, replace(ledger.dump, ledger=other))
    assert {"chain": 0, "seals": 0}.items() <= found.items()


def test_another_key_file(ledger: Ledger) -> None:
    """Another seal secret fails every seal; another naming secret fails every name and every text's digest."""
    for secret, check in (("seal", "seals"), ("naming", "payloads")):
        key_file = json.loads(ledger.key_file)
        key_file[secret] = "AAAA" + key_file[secret][4:]
        assert read(ledger.dump, json.dumps(key_file).encode()).failed().keys() == {check}


def test_every_byte_of_a_checkpoint_is_checked(ledger: Ledger) -> None:
    """One bit anywhere in the note, and it is none that this ledger's key signed."""
    for at in range(len(ledger.note)):
        assert read(ledger.dump, None, flipped(ledger.note, at)).failed().keys() == {"checkpoints"}


# ---------------------------------------------------------------- whole histories


def test_a_tail_that_was_cut(ledger: Ledger) -> None:
    """With the head's row set back nothing is wrong inside, and the checkpoint that was kept is not borne out."""
    cut = forged(ledger, [row.envelope for row in ledger.dump.events[:-1]])
    cut = replace(cut, payloads={seq: one for seq, one in cut.payloads.items() if seq < len(cut.events)})
    assert failed(ledger, cut) == {}
    assert failed(ledger, cut, note=True).keys() == {"checkpoints"}
    assert failed(ledger, replace(cut, head=ledger.dump.head)).keys() == {"chain"}


@pytest.mark.parametrize("where", ["head", "middle"])
def test_entries_that_were_cut_out(ledger: Ledger, where: str) -> None:
    """The beginning is not at 0, or a position is left out."""
    at = 0 if where == "head" else 5
    events = [row for row in ledger.dump.events if row.seq != at]
    found = failed(ledger, replace(ledger.dump, events=events))
    assert found["chain"] == at


def test_two_entries_that_changed_places(ledger: Ledger) -> None:
    """With their positions, or without."""
    events = list(ledger.dump.events)
    events[4], events[5] = events[5], events[4]
    assert failed(ledger, replace(ledger.dump, events=events))["chain"] == 4
    events = [row._replace(seq=position) for position, row in enumerate(events)]
    assert failed(ledger, replace(ledger.dump, events=events))["chain"] == 4


def test_a_history_made_anew_without_the_key(ledger: Ledger) -> None:
    """Every hash and link is right; the seals are not, from the entry on that was changed."""
    originals = said(ledger)
    at = next(one["seq"] for one in originals if one["type"] == "memory.retired.v1")
    originals[at]["actor"] = changed(originals[at]["actor"])
    old = {row.envelope: row.seal for row in ledger.dump.events}
    dump = forged(ledger, [written(one).encode() for one in originals], seal=lambda own: bytes(40))
    events = [row._replace(seal=old.get(row.envelope, row.seal)) for row in dump.events]
    assert failed(ledger, replace(dump, events=events)) == {"seals": at}
    assert failed(ledger, dump, key_file=False) == {}
    assert failed(ledger, dump, key_file=False, note=True).keys() == {"checkpoints"}


def test_an_event_that_was_appended_by_hand(ledger: Ledger) -> None:
    """Linked and hashed as it should be, with no seal, another entry's, or another key's."""
    last = {**said(ledger)[-1], "request": None, "request_fp": None, "payload_len": None, "payload_sha256": None}
    last |= {"seq": last["seq"] + 1, "stream_seq": last["stream_seq"] + 1, "request": "a" * 64, "request_fp": "b" * 64}
    envelopes = [*(row.envelope for row in ledger.dump.events), written(last).encode()]
    other = Keys(ledger.key_file, "0" * 26)
    size = len(ledger.dump.events)
    for seal in (lambda own: b"", lambda own: ledger.dump.events[-1].seal, other.seal):
        dump = forged(ledger, envelopes)
        events = [*dump.events[:-1], dump.events[-1]._replace(seal=seal(dump.events[-1].hash))]
        assert failed(ledger, replace(dump, events=events)) == {"seals": size}
    assert failed(ledger, forged(ledger, envelopes)) == {}


FORGERIES: dict[str, tuple[Callable[[dict[str, Json]], None], str]] = {
    "a request that was there before": (lambda one: one.update(request="REQUEST"), "chain"),
    "another ledger's name": (lambda one: one.update(log="other.example"), "chain"),
    "another position": (lambda one: one.update(seq=one["seq"] - 1), "chain"),
    "an append cut short": (lambda one: one.update(op_count=2), "chain"),
    "the second of an append": (lambda one: one.update(op_count=2, op_index=1), "chain"),
    "another place in its stream": (lambda one: one.update(stream_seq=one["stream_seq"] + 1), "streams"),
    "a stream of another kind": (lambda one: one.update(stream="name_" + "0" * 64, stream_seq=0), "canonical"),
    "no payload": (lambda one: one.update(payload_len=None, payload_sha256=None), "payloads"),
    "another length": (lambda one: one.update(payload_len=one["payload_len"] + 1), "payloads"),
    "too many bytes": (lambda one: one.update(authn="a" * 16_384), "canonical"),
    "a later scope": (lambda one: one.update(schema=2), "canonical"),
    "an unknown type": (lambda one: one.update(type="memory.forgotten.v1"), "canonical"),
    "facts of another type": (lambda one: one.update(type="memory.retired.v1"), "canonical"),
    "facts that point above": (lambda one: one["facts"]["moves"][0].update(since=999), "canonical"),
    "an unknown state": (lambda one: one["facts"]["moves"][0]["after"].__setitem__(0, "lost"), "canonical"),
    "a state too many": (lambda one: one["facts"]["moves"][0]["after"].append("active"), "canonical"),
    "an unknown fact": (lambda one: one["facts"].update(zzz=None), "canonical"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_even_the_key_does_not_make_right(ledger: Ledger, name: str) -> None:
    """The last entry, forged and sealed by a holder of the key: the format itself refuses it."""
    change, check = FORGERIES[name]
    envelopes = said(ledger)
    assert envelopes[-1]["type"] == "revision.revoked.v1"
    change(envelopes[-1])
    if envelopes[-1]["request"] == "REQUEST":
        envelopes[-1]["request"] = next(one["request"] for one in envelopes if one["request"])
    assert check in failed(ledger, forged(ledger, [written(one).encode() for one in envelopes]))


SPELLINGS = {
    "a float": (b'"op_index":0', b'"op_index":0.0'),
    "an exponent": (b'"op_count":1', b'"op_count":1e0'),
    "1e400": (b'"op_count":1', b'"op_count":1e400'),
    "5,000 digits": (b'"op_count":1', b'"op_count":' + b"9" * 5_000),
    "a key twice": (b'"v":1', b'"v":1,"v":1'),
    "a space": (b'"v":1', b'"v": 1'),
    "an escape": (b'"authn":"local"', b'"authn":"\\u006cocal"'),
    "a surrogate": (b'"authn":"local"', b'"authn":"\\ud800"'),
    "a NUL": (b'"authn":"local"', b'"authn":"\\u0000"'),
    "not UTF-8": (b'"authn":"local"', b'"authn":"\xff"'),
    "nothing": (b"{", b""),
    "nesting": (b'"facts":{', b'"facts":' + b"[" * 8_000 + b"{"),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_another_spelling_that_was_sealed(ledger: Ledger, name: str) -> None:
    """Bytes in another form are refused for their form, whoever sealed them, and break nothing in the reader."""
    old, new = SPELLINGS[name]
    envelopes = [row.envelope for row in ledger.dump.events]
    assert old in envelopes[-1]
    envelopes[-1] = envelopes[-1].replace(old, new, 1)
    assert failed(ledger, forged(ledger, envelopes))["canonical"] == len(envelopes) - 1
