"""Which event gave an id its name. The name itself stays in that event's payload, and is read and checked there."""

from collections.abc import Sequence

from ledger.governance import NameAssigned
from ledger.sql import load
from ledger.store import Write
from ledger.verified import Recorded

QUERIES = load("projections")


class DirectoryProjector:
    """Writes `directory`, one row per named id."""

    def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
        """Return the one insert of a group."""
        entries = [item.entry for item in recorded]
        named = [
            (entry.envelope.facts.id, entry.position)
            for entry in entries
            if isinstance(entry.envelope.facts, NameAssigned)
        ]
        if not named:
            return []
        params = {"gen": gen, "ids": [name for name, _ in named], "seqs": [position for _, position in named]}
        return [Write(QUERIES["insert_names"], params)]
