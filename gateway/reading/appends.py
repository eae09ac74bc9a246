"""Which events an append has, by its id: a receipt's `trace_id`.

A read model says where an append begins; it is believed only of an entry that says so itself, and the entry says how
many there are. What the read model leaves out is not found.
"""

from collections.abc import Mapping, Sequence

from ledger.errors import failure
from ledger.ids import OP, is_ours, kind_of
from ledger.verified import Recorded, VerifiedLedger
from projections.lineage import QUERIES

LISTED_MAX = 10
_AFTER_ALL = "~"  # after every character of an id


class Traces:
    """Finds the appends of one ledger. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger) -> None:
        self._ledger = ledger

    def events(self, trace: str) -> Sequence[Recorded]:
        """Return the events of an append, in order. Errors: TRACE_NOT_FOUND."""
        first = self._first(trace) if is_ours(trace) and kind_of(trace) == OP else None
        if first is None:
            raise failure(
                "TRACE_NOT_FOUND",
                "There is no such trace in this ledger. A receipt names the trace of what it stored; a dry run stores "
                "nothing, and so has none.",
            )
        count = self._ledger.at([first])[first].entry.envelope.op_count
        found = self._ledger.at(range(first, first + count))
        return [found[position] for position in sorted(found)]

    def beginning_with(self, prefix: str) -> tuple[str, ...]:
        """Return the ids of appends that begin so, sorted: at most ten."""
        return tuple(sorted(self._begun(prefix, prefix + _AFTER_ALL)))

    def _first(self, trace: str) -> int | None:
        if self._ledger.at([0])[0].entry.envelope.op == trace:
            return 0  # the ledger's opening, of which no read model tells
        return self._begun(trace, trace).get(trace)

    def _begun(self, first: str, last: str) -> Mapping[str, int]:
        """Return where appends begin, as far as the entries there say so too."""
        ledger = self._ledger
        gen = ledger.head_row.gen if ledger.head_row else 0
        params = {"gen": gen, "first": first, "last": last, "limit": LISTED_MAX}
        rows = {int(seq): str(op) for op, seq in ledger.store.query(QUERIES["find_appends"], params)}
        found = ledger.at(seq for seq in rows if 0 <= seq <= ledger.walk.position)
        envelopes = {seq: item.entry.envelope for seq, item in found.items()}
        return {one.op: seq for seq, one in envelopes.items() if (one.op, one.op_index) == (rows[seq], 0)}
