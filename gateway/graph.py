"""Links between memories: stated, withdrawn and followed through the memories' own states."""

from collections.abc import Callable, Iterable

from gateway.page import Append
from ledger.errors import refuse
from ledger.memories import LineageState, StateLink, WithdrawLink


def state_link(append: Append, pair: tuple[str, str], reason: str | None) -> None:
    """Decide a link in both lineages' streams; refuse one to itself, to another project, or that closes a cycle."""
    newer, older = pair
    if newer == older:
        refuse("INVALID_INPUT", "A memory cannot supersede itself. Name two memories.")
    if _project(append.state(newer)) != _project(append.state(older)):
        refuse("INVALID_INPUT", "A memory supersedes only memories of its own project. Name two of one project.")
    if (newer, older) not in append.state(newer).links and link_would_cycle(append.state, newer=newer, older=older):
        refuse(
            "INVALID_TRANSITION",
            "This link would close a cycle: the older memory already supersedes the newer one, directly or through "
            "others. Withdraw one of those links first.",
            allowed=["unlink"],
        )
    append.decide(newer, StateLink(newer=newer, older=older, role="newer", reason=reason))
    append.decide(older, StateLink(newer=newer, older=older, role="older", reason=reason))


def withdraw_link(append: Append, pair: tuple[str, str], reason: str | None) -> None:
    """Decide the withdrawal of a link in both lineages' streams."""
    newer, older = pair
    append.decide(newer, WithdrawLink(newer=newer, older=older, role="newer", reason=reason))
    append.decide(older, WithdrawLink(newer=newer, older=older, role="older", reason=reason))


def newer_than(lineage: str, state: LineageState) -> list[str]:
    """Return the memories that supersede this one by a link, oldest statement first."""
    return [newer for newer, older in _ordered(state) if older == lineage]


def older_than(lineage: str, state: LineageState) -> list[str]:
    """Return the memories that this one supersedes by a link, oldest statement first."""
    return [older for newer, older in _ordered(state) if newer == lineage]


def link_would_cycle(state: Callable[[str], LineageState], *, newer: str, older: str) -> bool:
    """Report whether `older` already supersedes `newer`, directly or through others."""
    return newer in reach(older, lambda item: older_than(item, state(item)))


def reach(start: str, following: Callable[[str], Iterable[str]], depth: int | None = None) -> dict[str, int]:
    """Return everything reachable from `start`, itself included, with its distance, nearest first."""
    distance = {start: 0}
    frontier = [start]
    while frontier and (depth is None or distance[frontier[0]] < depth):
        found = [item for near in frontier for item in following(near)]
        frontier = [item for item in dict.fromkeys(found) if item not in distance]
        distance.update(dict.fromkeys(frontier, max(distance.values()) + 1))
    return distance


def _project(state: LineageState) -> str | None:
    return state.revisions[state.latest].scope.project if state.latest else None


def _ordered(state: LineageState) -> list[tuple[str, str]]:
    return sorted(state.links, key=lambda pair: state.links[pair])
