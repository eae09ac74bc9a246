"""How one lineage is said to supersede another, with neither's states touched."""

from ledger.errors import refuse
from ledger.memories.commands import StateLink, WithdrawLink
from ledger.memories.facts import LineageLinked, LineageUnlinked
from ledger.memories.state import LineageState
from ledger.message import Edge, Event, Reason


def state_link(state: LineageState, command: StateLink) -> Event:
    if (command.newer, command.older) in state.links:
        refuse("NO_CHANGE", "This link is stated already; nothing was stored.")
    edge = Edge("supersedes", command.newer, command.older, None)
    facts = LineageLinked(edges=(edge,), role=command.role, standing=state.standing)
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def withdraw_link(state: LineageState, command: WithdrawLink) -> Event:
    since = state.links.get((command.newer, command.older))
    if since is None:
        refuse("MEMORY_NOT_FOUND", "No such link is stated, so none can be withdrawn.")
    edge = Edge("supersedes", command.newer, command.older, since)
    facts = LineageUnlinked(edges=(edge,), role=command.role, standing=state.standing)
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)
