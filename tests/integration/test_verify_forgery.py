"""Forged events and planted bytes: `verify` names them, and so does whoever reads them next.

`put` gives whatever is planted the hash that fits and the seal of the key, so that only its form can betray it.
"""

import re
from collections.abc import Callable, Iterator

import msgspec
import pytest

from ledger import codec
from ledger.codec import NotCanonical
from ledger.errors import IntegrityError
from ledger.limits import ENVELOPE_BYTES_MAX
from ledger.message import Payload
from tests.conftest import fresh_database
from tests.forging import anchored, appended, put, rechain
from tests.ledgers import WrittenLedger
from tests.roles import as_writer
from tests.sharing import verify
from tests.tampering import Tampering, failed, refused


@pytest.fixture
def ledger_url(server_url: str, migrated_template: str) -> Iterator[str]:
    """Return a database of the test's own: what is done to its tables here cannot be undone for the next test."""
    with fresh_database(server_url, template=migrated_template) as url:
        yield as_writer(url)


# ---------------------------------------------------------------- events that nobody appended


@pytest.mark.parametrize("seal", ["none", "another event's", "of zeros"])
def test_a_forged_event_appended_by_sql(tampering: Tampering, written: WrittenLedger, seal: str) -> None:
    """Linked to the last event, named by the head row, with no seal or another's: not followed, not believed."""
    seals = {"none": b"", "another event's": tampering.store.at([4])[0].seal, "of zeros": bytes(40)}
    position = appended(tampering, 4, seal=seals[seal])
    assert failed(tampering.report()) == {"seals": position}
    assert refused(tampering) == (position, "seals")
    with pytest.raises(IntegrityError) as caught:  # a process that has been here all the time
        written.ledger.catch_up()
    assert caught.value.details["check"] == "seals"


def test_a_second_carrying_out_of_a_request(tampering: Tampering) -> None:
    """Sealed by the key itself, an event that repeats a request is a second effect of it."""
    position = appended(tampering, 4, keep_request=True)
    assert failed(tampering.report()) == {"chain": position}
    assert tampering.report().checks["chain"].found == "one that was carried out before"
    assert refused(tampering) == (position, "chain")


@pytest.mark.parametrize("place", [0, 1, 9])
def test_a_place_in_a_stream_that_is_not_the_next(tampering: Tampering, place: int) -> None:
    """Taken twice or skipped: the stream forks or has a gap, and the entry that does it is named."""
    position = appended(tampering, 4, place=place)
    assert failed(tampering.report()) == {"streams": position}
    assert refused(tampering) == (position, "streams")


# ---------------------------------------------------------------- bytes in no canonical form


def _first_key_twice(raw: bytes) -> bytes:
    return re.sub(rb'^\{("actor":"[^"]*",)', rb"{\1\1", raw)


def _large(raw: bytes, size: int) -> bytes:
    """Return an envelope of exactly that many bytes, in canonical form, by the sources that its facts rest on."""
    room = size - len(raw)
    filler = b'"' + b"s" * (room - 2) + b'"'
    return raw.replace(b'"supports":[]', b'"supports":[' + filler + b"]")


PLANTED: dict[str, Callable[[bytes], bytes]] = {
    "a float": lambda raw: raw.replace(b'"schema":1', b'"schema":1.0'),
    "an exponent": lambda raw: raw.replace(b'"schema":1', b'"schema":1e0'),
    "1e400": lambda raw: raw.replace(b'"schema":1', b'"schema":1e400'),
    "5,000 digits": lambda raw: raw.replace(b'"schema":1', b'"schema":' + b"9" * 5_000),
    "a negative zero": lambda raw: raw.replace(b'"op_index":0', b'"op_index":-0'),
    "2 to the 53rd": lambda raw: raw.replace(b'"schema":1', b'"schema":9007199254740992'),
    "a key twice": _first_key_twice,
    "a key too many": lambda raw: raw.replace(b'"v":1}', b'"v":1,"w":1}'),
    "a key too few": lambda raw: raw.replace(b'"subjects":[],', b""),
    "keys in another order": lambda raw: raw.replace(b'"subjects":[],', b"").replace(
        b'"v":1}', b'"v":1,"subjects":[]}'
    ),
    "an escape too many": lambda raw: raw.replace(b'"local"', b'"loc\\u0061l"'),
    "a NUL character": lambda raw: raw.replace(b'"local"', b'"loc\\u0000l"'),
    "half a surrogate pair": lambda raw: raw.replace(b'"local"', b'"\\ud800"'),
    "bytes that are no text": lambda raw: raw.replace(b'"local"', b'"\xff"'),
    "a byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "a second document": lambda raw: raw + raw,
    "an unknown version": lambda raw: raw.replace(b'"v":1}', b'"v":2}'),
    "an unknown type": lambda raw: raw.replace(b"revision.corrected.v1", b"revision.corrected.v9"),
    "another type's facts": lambda raw: raw.replace(b"revision.corrected.v1", b"memory.retired.v1"),
    "a type behind a quote": lambda raw: raw.replace(b'"revision.corrected.v1', b'"x\\"revision.corrected.v1'),
    "16 KiB and 1 byte": lambda raw: _large(raw, ENVELOPE_BYTES_MAX + 1),
    "a line break behind": lambda raw: raw + b"\n",
    "nothing": lambda raw: b"",
}


@pytest.mark.parametrize("what", PLANTED)
def test_bytes_planted_under_a_seal(tampering: Tampering, what: str) -> None:
    """A holder of the key cannot make a reader take what has no place in the format; nothing crashes either."""
    raw = tampering.store.at([4])[0].envelope
    planted = PLANTED[what](raw)
    assert planted != raw
    put(tampering, 4, planted)
    found = failed(tampering.report())
    assert found["canonical"] == 4
    assert "seals" not in found
    assert refused(tampering) == (4, "canonical")


def test_an_envelope_of_16_kib_is_one(tampering: Tampering) -> None:
    """The cap is the last size that is taken."""
    put(tampering, 8, _large(tampering.store.at([8])[0].envelope, ENVELOPE_BYTES_MAX))
    assert "canonical" not in failed(tampering.report())


@pytest.mark.parametrize("what", PLANTED)
def test_the_quick_reader_is_the_strict_one(written: WrittenLedger, what: str) -> None:
    """`verify` parses by a quicker way than the readers do, and the two take and refuse the same, word for word."""
    raw = written.ledger.store.at([4])[0].envelope
    assert codec.encode_envelope(codec.scan_envelope(raw)) == raw
    said: list[str] = []
    for read in (codec.scan_envelope, codec.decode_envelope):
        with pytest.raises(NotCanonical) as caught:
            read(PLANTED[what](raw))
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert codec.scan_envelopes([raw, PLANTED[what](raw), raw]) is None


@pytest.mark.parametrize("what", ["a space", "a float", "a NUL character", "a text of 256 KiB"])
def test_a_payload_that_is_committed_to_and_in_no_form(tampering: Tampering, what: str) -> None:
    """The commitment is right, the form is not: `is_payload`, `are_payloads` and `decode_payload` agree."""
    body = codec.encode_payload(_payload(tampering))
    planted = {
        "a space": body + b" ",
        "a float": body.replace(b'"confidence":null', b'"confidence":0.5'),
        "a NUL character": body.replace(b"Wednesdays", b"Wed\\u0000days"),
        "a text of 256 KiB": body.replace(b"Wednesdays", b"W" * (256 * 1024)),
    }[what]
    tag = "revision.corrected.v1"
    assert codec.is_payload(tag, body) and not codec.is_payload(tag, planted)
    assert codec.are_payloads([tag] * 2, [body] * 2) and not codec.are_payloads([tag] * 3, [body, planted, body])
    with pytest.raises(NotCanonical):
        codec.decode_payload(tag, planted)


def _payload(tampering: Tampering) -> Payload:
    stored = tampering.store.at([4])[0]
    return codec.decode_payload("revision.corrected.v1", stored.body or b"")


def test_rows_swapped_with_everything_that_names_them(tampering: Tampering) -> None:
    """Two entries that changed places are known by their leaves, whatever the columns were made to say."""
    anchor = anchored(tampering)
    tampering.run(
        "UPDATE corrigenda.event SET seq = 1000 + seq WHERE ledger = %(ledger)s AND seq IN (3, 7)",
        "UPDATE corrigenda.event SET seq = 10 - (seq - 1000) WHERE ledger = %(ledger)s AND seq > 999",
    )
    report = verify(tampering.store, tampering.keys, anchor=anchor)
    assert (report.checks["chain"].first_bad_position, report.checks["anchor"].first_bad_position) == (3, 3)


def test_an_append_that_begins_in_its_middle(tampering: Tampering) -> None:
    """Sealed and linked, an entry that says it is the second of two has to have a first."""
    rechain(tampering, 3, lambda envelope: msgspec.structs.replace(envelope, op_index=1, op_count=2))
    report = tampering.report()
    assert failed(report) == {"chain": 3}
    assert report.checks["chain"].expected == "the first entry of an append"


def test_an_append_that_goes_on_as_another(tampering: Tampering) -> None:
    """An entry that says that one more follows is followed by it, not by another append."""
    rechain(tampering, 3, lambda envelope: msgspec.structs.replace(envelope, op_count=2))
    report = tampering.report()
    assert failed(report) == {"chain": 4}
    assert report.checks["chain"].expected == "the next entry of the same append"
