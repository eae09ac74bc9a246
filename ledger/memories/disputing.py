"""How a contradiction inside a lineage is stated and ended."""

from ledger.memories.commands import Contest, Promote, Reject
from ledger.memories.state import LineageState
from ledger.message import Event


def contest(state: LineageState, command: Contest) -> Event:
    """State that two revisions contradict each other."""
    raise NotImplementedError


def promote(state: LineageState, command: Promote) -> Event:
    """Let a contested revision win."""
    raise NotImplementedError


def reject(state: LineageState, command: Reject) -> Event:
    """Turn down a held or contested revision."""
    raise NotImplementedError
