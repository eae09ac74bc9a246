"""How what is known about a revision changes while its text stays."""

from collections.abc import Sequence

from ledger.memories.commands import Admit, Patch
from ledger.memories.state import LineageState
from ledger.message import Event


def patch(state: LineageState, command: Patch) -> Sequence[Event]:
    """Mend a revision's metadata; equal metadata makes no event."""
    raise NotImplementedError


def admit(state: LineageState, command: Admit) -> Event:
    """Make a revision verified."""
    raise NotImplementedError
