"""When each event was recorded, of which type it is and whose, and where each append begins: for recorded times, `log
--since` and `show TRACE`.

The ledger's opening is not in it: the ledger floor writes that event before there is any read model.
"""

from collections.abc import Sequence

from ledger.chain import Envelope
from ledger.governance import LedgerOpened
from ledger.sql import load
from ledger.store import Write
from ledger.verified import Recorded

QUERIES = load("projections")


def begun_here(envelope: Envelope) -> str | None:
    """Return the append that begins with an event, or None."""
    return envelope.op if envelope.op_index == 0 else None


class LogProjector:
    """Writes `log_entry`, one row per event."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the one insert of a group."""
        envelopes = [item.entry.envelope for item in recorded]
        kept = [envelope for envelope in envelopes if not isinstance(envelope.facts, LedgerOpened)]
        if not kept:
            return []
        params = {
            "gen": gen,
            "seqs": [envelope.seq for envelope in kept],
            "ats": [envelope.at for envelope in kept],
            "types": [envelope.type for envelope in kept],
            "actors": [envelope.actor for envelope in kept],
            "ops": [begun_here(envelope) for envelope in kept],
        }
        return [Write(QUERIES["insert_log_entries"], params)]
