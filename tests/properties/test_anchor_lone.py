"""Entries that are added to the anchor one by one, by one hand or by several: never over what another has written."""

import random
import sqlite3
from pathlib import Path

import pytest

from ledger import anchor
from ledger.anchor import Anchor, Unusable
from tests.anchors import LEDGER, ORIGIN, assert_holds, links, opened

ALL = links(0, 600)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where an anchor is to be."""
    return tmp_path / f"{LEDGER}.sqlite"


def test_it_takes_no_transaction_of_many_statements(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given nobody else, then only the first entry takes one, also where rows of leaves fill up."""
    begun: list[str] = []

    class Counted(anchor.Transaction):
        def __init__(self, connection: sqlite3.Connection, begin: str) -> None:
            begun.append(begin)
            super().__init__(connection, begin)

    one = opened(path)
    monkeypatch.setattr(anchor, "Transaction", Counted)
    for each in ALL:
        one.extend([each])
    assert begun == ["BEGIN IMMEDIATE"]
    one.close()


def test_two_who_take_turns(path: Path) -> None:
    """Given two connections that follow the same entries, one ahead of the other, then each is there once."""
    pair, chance = (opened(path), opened(path)), random.Random(5)
    reached = [0, 0]
    while min(reached) < len(ALL):
        who = chance.randrange(2)
        if reached[who] < len(ALL):
            pair[who].extend([ALL[reached[who]]])
            reached[who] += 1
    for one in pair:
        assert_holds(one, ALL)
        one.examine()
        one.close()


@pytest.mark.parametrize("elsewhere", [True, False])
def test_what_else_is_said_of_it_stays(path: Path, elsewhere: bool) -> None:
    """Given a trust that is known better meanwhile, and a note, when the next entry is added, then both stay."""
    one = opened(path)
    other = opened(path) if elsewhere else one
    one.extend(ALL[:1])
    one.extend(ALL[1:2])
    other.trust("checkpoint")
    other.keep_note(2, b"note")
    one.extend(ALL[2:3])

    one.examine()
    assert (one.state().trust, one.note(), one.state().size) == ("checkpoint", b"note", 3)
    one.close()
    other.close()


@pytest.mark.parametrize("edit", ["UPDATE meta SET crc = crc + 1", "UPDATE leaf SET crc = crc + 1"])
def test_a_file_that_was_edited_is_not_written_over(path: Path, edit: str) -> None:
    """Given a row that somebody else has edited meanwhile, when the next entry comes, then the anchor is damaged."""
    one = opened(path)
    for each in ALL[:10]:
        one.extend([each])
    edited = sqlite3.connect(path)
    edited.execute(edit)
    edited.commit()
    edited.close()

    with pytest.raises(Unusable, match="damaged"):
        one.extend([ALL[10]])
    one.close()


def test_what_contradicts_it_is_refused_and_leaves_nothing() -> None:
    """Given a request that was carried out before, or a gap, then nothing of it is added; the next entry is."""
    one = Anchor.in_memory(ledger=LEDGER, origin=ORIGIN)
    for each in ALL[:10]:
        one.extend([each])
    again = anchor.Link(
        position=10,
        leaf=ALL[10].leaf,
        hash=ALL[10].hash,
        stream=ALL[10].stream,
        end=ALL[10].end,
        request=ALL[0].request,
        revisions=("rev_other",),
    )
    with pytest.raises(Unusable):
        one.extend([again])
    with pytest.raises(Unusable, match="longer before"):
        one.extend([ALL[11]])

    assert_holds(one, ALL[:10])
    assert one.lineages(["rev_other"]) == {}
    one.extend([ALL[10]])
    assert_holds(one, ALL[:11])
