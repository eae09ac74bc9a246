"""Positions as callers write them: `SEQ` of the present incarnation, or `INC.SEQ`."""

import re
import time
from collections.abc import Callable

from ledger.errors import failure, refuse

WAIT_S = 2.0
POLL_S = 0.02

_POSITION = re.compile(r"(?:(\d{1,9})\.)?(\d{1,16})", re.ASCII)


def is_position(text: str) -> bool:
    """Report whether a text has the shape of a position."""
    return _POSITION.fullmatch(text) is not None


def parse_position(text: str, *, incarnation: int, field: str = "min_position") -> int:
    """Return the position, or VALIDATION_FAILED, by that name, if it is none or of another incarnation."""
    found = _POSITION.fullmatch(str(text))
    if found is None:
        refuse(
            "VALIDATION_FAILED",
            f"A position ({field}) is SEQ or INC.SEQ, two whole numbers; give one of those.",
            fields=[{"field": field, "problem": "is no position"}],
        )
    named, seq = found.groups()
    if named is not None and int(named) != incarnation:
        refuse(
            "VALIDATION_FAILED",
            f"The position is of incarnation {named}, and the ledger is at incarnation {incarnation}: it was restored "
            "meanwhile. Read again without a position.",
        )
    return int(seq)


def wait_until_at(position: int, reached: Callable[[], int]) -> None:
    """Wait at most two seconds until `reached` says a position, else UNAVAILABLE."""
    until = time.monotonic() + WAIT_S
    while (at := reached()) < position:
        if time.monotonic() > until:
            refuse(
                "UNAVAILABLE",
                f"The answer was asked for at position {position}, and the ledger is at {at}. Check that the position "
                "comes from this ledger, and try again.",
                position=at,
            )
        time.sleep(POLL_S)


def no_event(seq: int, last: int) -> Exception:
    """Return EVENT_NOT_FOUND for a position that the ledger has not reached."""
    return failure("EVENT_NOT_FOUND", f"There is no event at position {seq}; the last one is at {last}.", position=last)
