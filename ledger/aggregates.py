"""Which aggregate a stream belongs to, by the prefix of its name."""

from typing import Any

from ledger.corrections import CORRECTION
from ledger.decider import Command, Decider, State
from ledger.erasure import ERASURE
from ledger.evidence import EVIDENCE
from ledger.governance import LEDGER
from ledger.memories import LINEAGE
from ledger.message import Event
from ledger.policy import POLICY
from ledger.tombstones import TOMBSTONE

_BY_PREFIX: dict[str, Decider[Command, Event, Any]] = {  # Any: each aggregate's own state
    "cor": CORRECTION,
    "era": ERASURE,
    "evd": EVIDENCE,
    "led": LEDGER,
    "mem": LINEAGE,
    "pol": POLICY,
    "tomb": TOMBSTONE,
}


def evolve(state: State, stream: str, event: Event) -> State:
    """Return the state of a stream's aggregate after an event."""
    return _BY_PREFIX[stream.partition("_")[0]].evolve(state, event)
