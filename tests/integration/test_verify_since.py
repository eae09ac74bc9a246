"""A verification that begins at a checkpoint: it costs the new events, and believes nothing that it did not check."""

from collections.abc import Iterator

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import notes
from ledger.anchor import Anchor, Unusable
from ledger.errors import CorrigendaError
from ledger.keys import read_signing_key
from ledger.notes import Checkpoint
from ledger.verify import Report
from tests.conftest import fresh_database
from tests.forging import anchored, appended, cut, put, rechain, root_of
from tests.ledgers import WrittenLedger
from tests.roles import as_writer
from tests.sharing import verify
from tests.tampering import Tampering, failed


@pytest.fixture
def ledger_url(server_url: str, migrated_template: str) -> Iterator[str]:
    """Return a database of the test's own: what is done to its tables here cannot be undone for the next test."""
    with fresh_database(server_url, template=migrated_template) as url:
        yield as_writer(url)


class Night:
    """A checkpoint of five events that was signed last night, and the anchor as it is now."""

    def __init__(self, tampering: Tampering, written: WrittenLedger) -> None:
        self.tampering = tampering
        self.files = written.files
        self.note = self.signed(5, root_of(tampering, 5))
        self.anchor = anchored(tampering)

    def signed(self, size: int, root: bytes, key: Ed25519PrivateKey | None = None) -> bytes:
        """Return a checkpoint by the ledger's signing key, or another."""
        checkpoint = Checkpoint(self.tampering.origin, size, root)
        return notes.sign_checkpoint(checkpoint, key or read_signing_key(self.files.signing))

    def report(
        self,
        note: bytes | None = None,
        anchor: Anchor | Unusable | None = None,
        checkpoint: bytes | None = None,
    ) -> Report:
        """Verify from the checkpoint on."""
        store, keys = self.tampering.store, self.tampering.keys
        return verify(store, keys, anchor=anchor or self.anchor, since=note or self.note, checkpoint=checkpoint)


@pytest.fixture
def night(tampering: Tampering, written: WrittenLedger) -> Night:
    """Return last night's checkpoint of the ledger of nine entries."""
    return Night(tampering, written)


# ---------------------------------------------------------------- what it costs and says


def test_only_the_new_events_are_read(night: Night) -> None:
    """Four of nine events are read, the root is that of all nine, and every check says what it did not read."""
    report = night.report()
    assert failed(report) == {}
    assert (report.events, report.size, report.unanchored_tail) == (4, 9, 0)
    assert report.root == root_of(night.tampering, 9).hex()
    assert report.checks["checkpoints"].status == "ok"
    for name in ("canonical", "chain", "streams", "seals", "payloads", "anchor"):
        assert "0 to 4 were not read again" in (report.checks[name].why or "")


def test_nothing_new(night: Night) -> None:
    """A checkpoint of the whole ledger leaves nothing to read, and the head is still compared."""
    note = night.signed(9, root_of(night.tampering, 9))
    report = night.report(note)
    assert failed(report) == {}
    assert (report.events, report.root) == (0, root_of(night.tampering, 9).hex())
    night.tampering.run("UPDATE corrigenda.head SET hash = sha256(hash)")
    assert failed(night.report(note)) == {"chain": 8}


def test_events_that_the_anchor_does_not_hold_yet(night: Night) -> None:
    """Streams go on where the anchor says that they end, above it too."""
    report = night.report(anchor=anchored(night.tampering, 7))
    assert failed(report) == {}
    assert (report.events, report.unanchored_tail) == (4, 2)


def test_another_checkpoint_is_held_against_it_too(night: Night) -> None:
    """A checkpoint below the one where the reading began is borne out by the anchor, one above by what was read."""
    for size in (3, 7):
        assert night.report(checkpoint=night.signed(size, root_of(night.tampering, size))).ok
        wrong = night.report(checkpoint=night.signed(size, root_of(night.tampering, 2)))
        assert (wrong.exit_code, wrong.events) == (11, 4)


# ---------------------------------------------------------------- when it cannot begin there


@pytest.mark.parametrize("why", ["no anchor", "bad anchor", "short anchor", "another key", "no note", "another root"])
def test_everything_is_read_if_the_checkpoint_cannot_be_begun_at(night: Night, why: str) -> None:
    """Whatever is missing for it, the ledger is read from its first event, and the report says why."""
    root = root_of(night.tampering, 5)
    stranger = Ed25519PrivateKey.from_private_bytes(bytes(32))
    bad = Unusable("is no database")
    note = {"another key": night.signed(5, root, stranger), "no note": b"x", "another root": night.signed(5, bytes(32))}
    if why == "no anchor":
        report = verify(night.tampering.store, night.tampering.keys, since=night.note)
    else:
        anchors = {"bad anchor": bad, "short anchor": anchored(night.tampering, 4)}
        report = night.report(note.get(why), anchors.get(why))
    assert (report.events, report.root) == (9, root_of(night.tampering, 9).hex())
    assert report.exit_code == (11 if why in (*note, "bad anchor") else 0)
    if report.ok:
        assert "everything was read" in (report.checks["checkpoints"].why or "")


@pytest.mark.parametrize("seq", [0, 4])
def test_the_entries_that_it_rests_on_are_checked(night: Night, seq: int) -> None:
    """Event 0 and the last one below the checkpoint are held against the anchor; another one there, and all is read."""
    night.tampering.flip("event", "envelope", seq, byte=12)
    report = night.report()
    assert (report.events, report.exit_code) == (9, 10)
    assert report.checks["anchor"].first_bad_position == seq


@pytest.mark.parametrize("seq", [0, 4])
def test_a_seal_is_not_enough_for_them(night: Night, seq: int) -> None:
    """Made anew with the key, they are others than the anchor holds all the same."""
    rechain(night.tampering, seq, lambda envelope: msgspec.structs.replace(envelope, authn="token"))
    report = night.report()
    assert (report.events, report.exit_code) == (9, 11)
    assert report.checks["anchor"].first_bad_position == seq


def test_a_range_and_a_checkpoint_to_begin_at(night: Night) -> None:
    """Two beginnings are one too many."""
    with pytest.raises(CorrigendaError) as caught:
        verify(night.tampering.store, night.tampering.keys, anchor=night.anchor, first=3, last=5, since=night.note)
    assert caught.value.code == "VALIDATION_FAILED"


# ---------------------------------------------------------------- what it still finds


def test_what_was_altered_above(night: Night) -> None:
    """Above the checkpoint nothing is taken on trust."""
    night.tampering.flip("payload", "body", 8)
    night.tampering.flip("event", "seal", 6)
    assert failed(night.report()) == {"payloads": 8, "seals": 6}


def test_what_was_altered_below_is_found_where_it_is_joined(night: Night) -> None:
    """Entry 5 goes on with the stream that entry 3 ends, so entry 3 is read after all, and held against its leaf."""
    night.tampering.flip("event", "envelope", 3, byte=12)
    report = night.report()
    assert (report.events, report.checks["anchor"].first_bad_position) == (4, 3)
    assert report.exit_code == 10


def test_what_is_not_joined_is_not_read_again(night: Night) -> None:
    """That is the price, and the report says so: only a whole pass finds it."""
    night.tampering.flip("payload", "body", 2)
    assert night.report().ok
    assert failed(verify(night.tampering.store, night.tampering.keys, anchor=night.anchor)) == {"payloads": 2}


def test_a_rechain_below_with_its_own_checkpoint(night: Night) -> None:
    """Rewritten with every key in hand, and signed anew: the anchor has another root, so it is no place to begin."""
    rechain(night.tampering, 3, lambda envelope: msgspec.structs.replace(envelope, authn="token"))
    report = night.report(night.signed(5, root_of(night.tampering, 5)))
    assert (report.events, report.exit_code) == (9, 11)
    assert report.checks["anchor"].first_bad_position == 3


def test_a_ledger_cut_below_the_checkpoint(night: Night) -> None:
    """The head is compared with checkpoint and anchor, whatever is left to read."""
    cut(night.tampering, 4)
    report = night.report()
    assert report.exit_code == 11
    assert report.checks["anchor"].first_bad_position == 4
    assert report.checks["checkpoints"].first_bad_position == 4


@pytest.mark.parametrize(("model", "place"), [(4, 0), (4, 7), (1, 0), (1, 5)])
def test_a_stream_that_goes_on_elsewhere_above_the_anchor(night: Night, model: int, place: int) -> None:
    """An entry above the anchor takes a place that its stream has used, or skips some.

    Entry 4's stream goes on in what is read; of entry 1's only the anchor says where it ends.
    """
    position = appended(night.tampering, model, place=place)
    report = night.report()
    assert report.checks["streams"].first_bad_position == position


def test_a_request_carried_out_below_the_checkpoint(night: Night) -> None:
    """A second carrying out is found although the first was not read."""
    position = appended(night.tampering, 4, keep_request=True)
    report = night.report()
    assert failed(report) == {"chain": position}
    assert report.checks["chain"].found == "one that was carried out before"


def test_an_entry_put_in_another_s_place_above(night: Night) -> None:
    """Bytes that are none are found above the checkpoint as everywhere."""
    put(night.tampering, 6, b"{}")
    assert night.report().checks["canonical"].first_bad_position == 6
