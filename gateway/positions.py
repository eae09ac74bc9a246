"""Positions as callers write them: `SEQ` of the present incarnation, or `INC.SEQ`."""

import re

from ledger.errors import failure, refuse

_POSITION = re.compile(r"(?:(\d{1,9})\.)?(\d{1,16})", re.ASCII)


def parse_position(text: str, *, incarnation: int) -> int:
    """Return the position, or VALIDATION_FAILED if it is none or of another incarnation."""
    found = _POSITION.fullmatch(str(text))
    if found is None:
        refuse("VALIDATION_FAILED", "A position is SEQ or INC.SEQ, two whole numbers; give one of those.")
    named, seq = found.groups()
    if named is not None and int(named) != incarnation:
        refuse(
            "VALIDATION_FAILED",
            f"The position is of incarnation {named}, and the ledger is at incarnation {incarnation}: it was restored "
            "meanwhile. Read again without a position.",
        )
    return int(seq)


def no_event(seq: int, last: int) -> Exception:
    """Return EVENT_NOT_FOUND for a position that the ledger has not reached."""
    return failure("EVENT_NOT_FOUND", f"There is no event at position {seq}; the last one is at {last}.", position=last)
