"""Entries looked at by columns: sound ones are taken that way, and whoever looks at each has nothing more to say.

That reports are the same whatever was tampered with is held by all tests that verify through `tests.sharing`.
"""

import sys

import pytest

from ledger.chain import Envelope
from ledger.verify import course, verify
from ledger.verify.glance import Glance, Place
from ledger.verify.pages import TURN_S, short_turns
from tests.tampering import Tampering, failed

FEW = 3


@pytest.fixture
def glances(monkeypatch: pytest.MonkeyPatch) -> list[Glance | None]:
    """Return what comes of each few entries that a verification looks at."""
    found: list[Glance | None] = []
    glance = course.glance

    def seen(page: course.Page, place: Place, ledger: course.Ledger) -> Glance | None:
        found.append(glance(page, place, ledger))
        return found[-1]

    monkeypatch.setattr(course, "AT_ONCE", FEW)
    monkeypatch.setattr(course, "glance", seen)
    return found


def test_sound_entries_are_taken_at_a_glance(tampering: Tampering, glances: list[Glance | None]) -> None:
    """All but those beside the opening, and the witness is handed every envelope in its order."""
    seen: list[Envelope] = []
    report = verify(tampering.store, tampering.keys, witness=seen.append, processes=1)
    assert failed(report) == {}
    assert [one is None for one in glances] == [True, False, False]
    assert [envelope.seq for envelope in seen] == [*range(9)]


def test_only_the_unsound_are_looked_at_closely(tampering: Tampering, glances: list[Glance | None]) -> None:
    """An altered payload is named, and those behind it are taken at a glance again."""
    tampering.flip("payload", "body", 4)
    report = verify(tampering.store, tampering.keys, processes=1)
    assert failed(report) == {"payloads": 4}
    assert [one is None for one in glances] == [True, True, False]


def test_short_turns_last_as_long_as_anybody_reads() -> None:
    """The last of several verifications gives back what the program had, and one that fails does too."""
    before = sys.getswitchinterval()
    with pytest.raises(KeyError), short_turns():
        with short_turns():
            assert sys.getswitchinterval() == pytest.approx(TURN_S)
        assert sys.getswitchinterval() == pytest.approx(TURN_S)
        raise KeyError
    assert sys.getswitchinterval() == before > TURN_S
