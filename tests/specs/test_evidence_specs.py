"""What is decided about evidence: once per project, and bytes may follow their mention."""

from ledger.evidence import EVIDENCE, AddEvidence, EvidenceAdded, EvidenceState, EvidenceText
from ledger.message import Event
from tests.specifications import given

TEXT = EvidenceText(hash="b3:" + "0" * 64, name="a.txt", uri=None)
BYTES = AddEvidence(external=False, media_type="text/plain", size=3, text=TEXT)
MENTION = AddEvidence(external=True, media_type=None, size=0, text=TEXT)


def test_added_bytes_are_an_event() -> None:
    """Given nothing, when bytes are added, then the fact says their size and type, and the payload their hash."""

    def check(event: Event, after: EvidenceState) -> None:
        added = EvidenceAdded(external=False, media_type="text/plain", size=3)
        assert (event.facts, event.payload) == (added, TEXT)
        assert after == EvidenceState(version=1, added=added, position=0)

    given(EVIDENCE).when(BYTES).then(check)


def test_what_is_kept_is_not_added_again() -> None:
    """Given bytes, when they are added or mentioned again, then nothing happens; nor when a mention is repeated."""
    assert [*EVIDENCE.decide(given(EVIDENCE, BYTES).state, BYTES)] == []
    assert [*EVIDENCE.decide(given(EVIDENCE, BYTES).state, MENTION)] == []
    assert [*EVIDENCE.decide(given(EVIDENCE, MENTION).state, MENTION)] == []


def test_bytes_may_follow_their_mention() -> None:
    """Given a mention, when the bytes come, then they are added."""

    def check(event: Event, after: EvidenceState) -> None:
        assert after.version == 2 and after.added is not None and not after.added.external

    given(EVIDENCE, MENTION).when(BYTES).then(check)
