"""Cursors: what was given out goes on where it ended; whatever else somebody writes is refused."""

import string

from hypothesis import given
from hypothesis import strategies as st

from gateway.shapes.cursors import Cursors, Place
from ledger.digest import LedgerKeys
from tests.house import refused

KEYS = LedgerKeys(seal_secret=bytes(32), naming_secret=b"n" * 32, ledger="01JZ8Q0000000000000000000A")
OTHERS = LedgerKeys(seal_secret=bytes(32), naming_secret=b"n" * 32, ledger="01JZ8Q0000000000000000000B")
CURSORS = Cursors(KEYS, 1)
WANTED = {"list": "memories", "states": ["active"], "kind": None}
CURSOR = CURSORS.make(Place(812, 40), WANTED)
ALPHABET = string.ascii_letters + string.digits + "-_=+/ \n.é"


@given(st.integers(0, 2**53), st.integers(-1, 2**53))
def test_a_cursor_says_where_a_list_goes_on(position: int, last: int) -> None:
    """LM-10: given any place, when its cursor is read for the same question, then it is that place."""
    assert CURSORS.read(CURSORS.make(Place(position, last), WANTED), WANTED) == Place(position, last)


def test_no_edit_of_a_character_passes() -> None:
    """LM-12: given a cursor, when any character of it is changed, dropped or doubled, then CURSOR_INVALID."""
    for at in range(len(CURSOR)):
        for character in ALPHABET:
            if character != CURSOR[at]:
                with refused("CURSOR_INVALID"):
                    CURSORS.read(CURSOR[:at] + character + CURSOR[at + 1 :], WANTED)
        for edited in (CURSOR[:at] + CURSOR[at + 1 :], CURSOR[:at] + CURSOR[at] + CURSOR[at:]):
            with refused("CURSOR_INVALID"):
                CURSORS.read(edited, WANTED)


@given(st.text())
def test_nothing_else_is_a_cursor(text: str) -> None:
    """LM-12: given any text, when it is read as a cursor, then CURSOR_INVALID."""
    with refused("CURSOR_INVALID"):
        CURSORS.read(text, WANTED)


def test_a_cursor_is_of_one_question() -> None:
    """LM-11: given a cursor, when the filter differs in anything, then CURSOR_FILTER_MISMATCH."""
    for other in ({**WANTED, "kind": "fact"}, {**WANTED, "states": ["processing"]}, {"list": "memories"}):
        with refused("CURSOR_FILTER_MISMATCH"):
            CURSORS.read(CURSOR, other)


def test_a_cursor_is_of_one_ledger_and_incarnation() -> None:
    """LM-12: given another ledger of the same keys, or the same one restored, then CURSOR_INVALID."""
    for cursors in (Cursors(OTHERS, 1), Cursors(KEYS, 2)):
        with refused("CURSOR_INVALID"):
            cursors.read(CURSOR, WANTED)
