"""Which position is meant by a moment of the past: a position, or a time that the ledger recorded.

A time means the greatest position whose own time is not after it. A position inside an append means the end of the
append before it, since nobody ever saw a half of one. The read model says where to look; what it says is held against
the entries themselves, and where it says nothing, they are gone through.
"""

from datetime import datetime

from gateway.shapes import requests
from gateway.shapes.positions import is_position, no_event, parse_position
from ledger.chain import Entry
from ledger.verified import VerifiedLedger
from projections.lineage import QUERIES

BEFORE_ALL = -1
PAGE = 2_000

Moment = int | str | datetime


class Moments:
    """Finds positions in one ledger. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger) -> None:
        self._ledger = ledger

    def position(self, moment: Moment, *, incarnation: int, field: str = "at") -> int:
        """Return the position of the last append that was whole at a moment, −1 if there was none.

        `field` is what the caller calls the moment: so do the refusals.

        Errors: VALIDATION_FAILED (neither a position nor a time with its zone), EVENT_NOT_FOUND (above the head).
        """
        if isinstance(moment, int) or (isinstance(moment, str) and is_position(moment)):
            seq, last = parse_position(str(moment), incarnation=incarnation, field=field), self._ledger.walk.position
            if seq > last:
                raise no_event(seq, last)
            return self._whole(seq)
        return self._whole(self._recorded_by(requests.parse_moment(moment, field)))

    def _whole(self, position: int) -> int:
        if position < 0:
            return position
        envelope = self._entry(position).envelope
        return position if envelope.op_index == envelope.op_count - 1 else position - envelope.op_index - 1

    def _recorded_by(self, at: str) -> int:
        """Return the greatest position whose time is at most `at`, −1 if there is none."""
        ledger = self._ledger
        gen = ledger.head_row.gen if ledger.head_row else 0
        rows = ledger.store.query(QUERIES["find_moment"], {"gen": gen, "at": at})
        hint = rows[0][0] if rows else None
        return hint if hint is not None and self._bears_out(hint, at) else self._gone_through(at)

    def _bears_out(self, hint: int, at: str) -> bool:
        """Report whether the entry at a position is not after `at`, and the one behind it, if there is one, is."""
        last = self._ledger.walk.position
        if not 0 <= hint <= last or self._entry(hint).envelope.at > at:
            return False
        return hint == last or self._entry(hint + 1).envelope.at > at

    def _gone_through(self, at: str) -> int:
        end = self._ledger.walk.position + 1
        while end > 0:
            first = max(end - PAGE, 0)
            found = [entry.position for entry in self._ledger.entries(first, end) if entry.envelope.at <= at]
            if found:
                return found[-1]
            end = first
        return BEFORE_ALL

    def _entry(self, position: int) -> Entry:
        return next(self._ledger.entries(position, position + 1))
