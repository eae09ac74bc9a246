"""The database's owner changes what is stored, one thing at a time: `verify` names position and check, and the walk
refuses what it covers.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import LiteralString

import pytest

from ledger import digest
from ledger.anchor import Anchor
from ledger.chain import broken
from ledger.errors import IntegrityError
from ledger.verified import VerifiedLedger
from tests.conftest import fresh_database
from tests.ledgers import WrittenLedger
from tests.roles import as_writer
from tests.tampering import FIRST, Tampering, failed, refused


@pytest.fixture
def ledger_url(server_url: str, migrated_template: str) -> Iterator[str]:
    """Return a database of the test's own: what is done to its tables here cannot be undone for the next test."""
    with fresh_database(server_url, template=migrated_template) as url:
        yield as_writer(url)


# ---------------------------------------------------------------- entries and payloads


@pytest.mark.parametrize("seq", [1, 4, 8])
def test_a_byte_of_an_envelope(tampering: Tampering, seq: int) -> None:
    """Early, middle or last: verify names the entry itself, not the one after it, and the walk stops there."""
    tampering.flip("event", "envelope", seq, byte=12)  # inside the actor's id: still canonical JSON
    assert failed(tampering.report()) == {"chain": seq, "seals": seq} | ({"streams": seq} if seq == 4 else {})
    assert refused(tampering) == (seq, "seals")


def test_a_byte_of_the_opening(tampering: Tampering) -> None:
    """Nothing in event 0 but ids, name and time may be otherwise: another actor is no opening at all."""
    tampering.flip("event", "envelope", 0, byte=12)
    found = failed(tampering.report())
    assert found.items() >= {"canonical": 0, "chain": 0, "seals": 0}.items()
    assert refused(tampering) == (0, "canonical")


def test_a_byte_that_makes_an_envelope_unreadable(tampering: Tampering) -> None:
    """What is no JSON any more is not canonical, and does not hide what comes after it."""
    tampering.flip("event", "envelope", 4, byte=0)
    tampering.flip("payload", "body", 8)
    report = failed(tampering.report())
    assert report == {"canonical": 4, "chain": 4, "seals": 4, "payloads": 8}
    assert refused(tampering) == (4, "canonical")


def test_an_envelope_in_another_spelling(tampering: Tampering) -> None:
    """A space more says the same, and is refused: one event has one sequence of bytes."""
    tampering.run("UPDATE corrigenda.event SET envelope = envelope || ' '::bytea WHERE ledger = %(ledger)s AND seq = 3")
    assert failed(tampering.report())["canonical"] == 3
    assert refused(tampering) == (3, "canonical")


def test_an_envelope_nested_without_end(tampering: Tampering) -> None:
    """Bytes made to exhaust a parser are a finding, never a crash."""
    envelope = b'{"actor":"a","at":"a","authn":"a","facts":' + b"[" * 100_000
    tampering.run(
        "UPDATE corrigenda.event SET envelope = %(envelope)s WHERE ledger = %(ledger)s AND seq = 3", envelope=envelope
    )
    assert failed(tampering.report())["canonical"] == 3
    assert refused(tampering) == (3, "canonical")


def test_an_envelope_with_its_hash_column(tampering: Tampering) -> None:
    """Who changes the hash with the envelope leaves the seal, and the link of the entry after."""
    entry = tampering.store.at([5])[0]
    forged = entry.envelope.replace(b'"authn":"local"', b'"authn":"token"')
    tampering.run(
        "UPDATE corrigenda.event SET envelope = %(envelope)s, hash = %(hash)s WHERE ledger = %(ledger)s AND seq = 5",
        envelope=forged,
        hash=digest.link(forged),
    )
    assert failed(tampering.report()) == {"chain": 5, "streams": 5, "seals": 5}
    assert refused(tampering) == (5, "seals")


@pytest.mark.parametrize("column", ["body", "salt"])
def test_a_byte_of_a_payload_or_its_salt(tampering: Tampering, column: str) -> None:
    """Only the payload's check fails. The walk does not read payloads; whoever reads this one is refused."""
    tampering.flip("payload", column, 4)
    assert failed(tampering.report()) == {"payloads": 4}
    anchor = Anchor.in_memory(ledger=tampering.store.ledger, origin=tampering.origin)
    with closing(VerifiedLedger(tampering.store, tampering.keys, tampering.origin, anchor)) as reader:
        reader.catch_up()
        with pytest.raises(IntegrityError) as caught:
            reader.at([4])
    assert str(caught.value) == str(broken(4, "payloads", "the payload that was committed to", "another"))


def test_a_byte_moved_from_a_payload_to_its_salt(tampering: Tampering) -> None:
    """The commitment's input stays the same; the lengths do not."""
    tampering.run(
        "UPDATE corrigenda.payload SET salt = salt || substring(body FROM 1 FOR 1), body = substring(body FROM 2) "
        "WHERE ledger = %(ledger)s AND seq = 4"
    )
    report = tampering.report()
    assert failed(report) == {"payloads": 4}
    assert report.checks["payloads"].found == "another"


def test_a_payload_removed(tampering: Tampering) -> None:
    """What was committed to has to be there."""
    tampering.run("DELETE FROM corrigenda.payload WHERE ledger = %(ledger)s AND seq = 7")
    report = tampering.report()
    assert failed(report) == {"payloads": 7}
    assert report.checks["payloads"].found == "none"


@pytest.mark.parametrize("byte", [3, 30])
def test_a_byte_of_a_seal(tampering: Tampering, byte: int) -> None:
    """Key id or keyed hash: the seal alone fails, and nothing is followed from there on."""
    tampering.flip("event", "seal", 6, byte=byte)
    assert failed(tampering.report()) == {"seals": 6}
    assert refused(tampering) == (6, "seals")


def test_a_byte_of_event_0_s_seal_is_no_foreign_key(tampering: Tampering) -> None:
    """Other entries carry the key's seal, so it is the entry that is wrong and not the key."""
    tampering.flip("event", "seal", 0, byte=3)
    assert failed(tampering.report()) == {"seals": 0}


def test_every_seal_altered_is_no_foreign_key(tampering: Tampering) -> None:
    """The seals still name the key, so what they say can be held against it: exit 10, not 15."""
    tampering.run("UPDATE corrigenda.event SET seal = substring(seal FROM 1 FOR 8) || hash WHERE ledger = %(ledger)s")
    assert failed(tampering.report()) == {"seals": 0}


def test_a_byte_of_a_hash_column(tampering: Tampering) -> None:
    """The column is a copy that nobody follows, and still has to be true."""
    tampering.flip("event", "hash", 5)
    assert failed(tampering.report()) == {"chain": 5}
    assert tampering.walk() == 8


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE corrigenda.event SET stream = 'mem_01JZ8Q0000000000000000000Z' WHERE ledger = %(ledger)s AND seq = 4",
        "UPDATE corrigenda.event SET stream_seq = 40 WHERE ledger = %(ledger)s AND seq = 4",
    ],
)
def test_a_stream_column(tampering: Tampering, written: WrittenLedger, change: LiteralString) -> None:
    """An entry that is filed under another stream or place is missed by whoever reads its stream."""
    tampering.run(change)
    assert failed(tampering.report()) == {"streams": 4}
    with pytest.raises(IntegrityError) as caught:
        written.ledger.stream(FIRST)
    assert caught.value.details["check"] == "streams"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE corrigenda.event SET request = NULL WHERE ledger = %(ledger)s AND seq = 4",
        "UPDATE corrigenda.event SET request = sha256('') WHERE ledger = %(ledger)s AND seq = 4",
    ],
)
def test_a_request_column(tampering: Tampering, change: LiteralString) -> None:
    """Without it a retry would have a second effect."""
    tampering.run(change)
    assert failed(tampering.report()) == {"chain": 4}


def test_two_rows_swapped(tampering: Tampering) -> None:
    """Two entries change places, payloads with them: the first of the two places is where it shows."""
    tampering.run(
        "UPDATE corrigenda.event SET seq = 1000 WHERE ledger = %(ledger)s AND seq = 3",
        "UPDATE corrigenda.event SET seq = 3 WHERE ledger = %(ledger)s AND seq = 4",
        "UPDATE corrigenda.event SET seq = 4 WHERE ledger = %(ledger)s AND seq = 1000",
        "UPDATE corrigenda.payload SET seq = 1000 WHERE ledger = %(ledger)s AND seq = 3",
        "UPDATE corrigenda.payload SET seq = 3 WHERE ledger = %(ledger)s AND seq = 4",
        "UPDATE corrigenda.payload SET seq = 4 WHERE ledger = %(ledger)s AND seq = 1000",
    )
    report = tampering.report()
    assert failed(report) == {"chain": 3}
    assert report.checks["chain"].found == "the one of position 4"
    assert refused(tampering) == (3, "chain")


@pytest.mark.parametrize(("seq", "streams"), [(0, {}), (3, {"streams": 5}), (7, {"streams": 8})])
def test_one_row_deleted(tampering: Tampering, seq: int, streams: dict[str, int]) -> None:
    """The gap is at its own position; its stream breaks where the stream goes on."""
    tampering.run(
        "DELETE FROM corrigenda.event WHERE ledger = %(ledger)s AND seq = %(seq)s",
        "DELETE FROM corrigenda.payload WHERE ledger = %(ledger)s AND seq = %(seq)s",
        seq=seq,
    )
    report = tampering.report()
    assert failed(report) == {"chain": seq, **streams}
    assert (report.events, report.size) == (8, 9)
    assert refused(tampering) == (seq, "chain")


def test_half_an_append_deleted_with_a_head_that_fits(tampering: Tampering) -> None:
    """A tail cut off cleanly leaves a good chain; an append cut in two does not."""
    entry = tampering.store.before(6, 1)[0]
    tampering.run(
        "DELETE FROM corrigenda.event WHERE ledger = %(ledger)s AND seq > 5",
        "DELETE FROM corrigenda.payload WHERE ledger = %(ledger)s AND seq > 5",
        "UPDATE corrigenda.head SET seq = 5, hash = %(hash)s WHERE ledger = %(ledger)s",
        hash=entry[2],
    )
    report = tampering.report()
    assert failed(report) == {"chain": 6}
    assert report.checks["chain"].expected == "the rest of an append"


# ---------------------------------------------------------------- the head


@pytest.mark.parametrize(
    ("change", "verified", "walked"),
    [
        ("UPDATE corrigenda.head SET hash = sha256(hash) WHERE ledger = %(ledger)s", 8, 8),
        ("UPDATE corrigenda.head SET seq = 12 WHERE ledger = %(ledger)s", 9, 9),
        (
            "UPDATE corrigenda.head SET seq = 6, hash = (SELECT hash FROM corrigenda.event WHERE seq = 6) "
            "WHERE ledger = %(ledger)s",
            7,
            7,
        ),
    ],
)
def test_the_head_row_changed(tampering: Tampering, change: LiteralString, verified: int, walked: int) -> None:
    """Another hash, a head above the last entry, and one below it, set back as far as the chain allows."""
    tampering.run(change)
    assert failed(tampering.report()) == {"chain": verified}
    assert refused(tampering) == (walked, "chain")


def test_a_process_that_has_seen_more_refuses_a_head_that_was_set_back(
    tampering: Tampering, written: WrittenLedger
) -> None:
    """What was verified once cannot be taken back."""
    tampering.run(
        "UPDATE corrigenda.head SET seq = 6, hash = (SELECT hash FROM corrigenda.event WHERE seq = 6) "
        "WHERE ledger = %(ledger)s"
    )
    with pytest.raises(IntegrityError) as caught:
        written.ledger.catch_up()
    assert (caught.value.details["check"], caught.value.exit_code) == ("anchor", 11)


def test_the_head_row_removed(tampering: Tampering) -> None:
    """Every entry is still checked; the head is what is missing."""
    tampering.run("DELETE FROM corrigenda.head WHERE ledger = %(ledger)s")
    report = tampering.report()
    assert failed(report) == {"chain": 8}
    assert (report.events, report.size, report.checks["chain"].expected) == (9, 9, "a head row")
    assert refused(tampering)[1] == "chain"


def test_everything_removed_but_the_head(tampering: Tampering) -> None:
    """An empty ledger is a finding at position 0."""
    tampering.run("DELETE FROM corrigenda.event WHERE ledger = %(ledger)s")
    report = tampering.report()
    assert failed(report) == {"chain": 0}
    assert (report.events, report.size) == (0, 9)


def test_a_row_moved_far_above_the_head(tampering: Tampering) -> None:
    """The gap is found, however wide it is, and so is what lies beyond it."""
    tampering.run("UPDATE corrigenda.event SET seq = 1000000 WHERE ledger = %(ledger)s AND seq = 5")
    assert failed(tampering.report()) == {"chain": 5, "streams": 6}
    assert [row[0] for row in tampering.store.whole_after(8, 100)] == [1_000_000]
    assert refused(tampering) == (5, "chain")
