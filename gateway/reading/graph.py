"""Links between memories: stated, withdrawn and followed through the memories' own states."""

from collections.abc import Callable, Iterable, Iterator

from gateway.writing.page import Append
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
    """Report whether `older` already supersedes `newer`, directly or through others.

    It is followed from both ends in turn, and known as soon as one side ends: everything on that side was read then, so
    that no link can be stated there meanwhile. A long chain that grows at its end is not followed each time.
    """
    below = levels(older, lambda item: older_than(item, state(item)))
    above = levels(newer, lambda item: newer_than(item, state(item)))
    return any(newer in down or older in up for down, up in zip(below, above, strict=False))


def levels(start: str, following: Callable[[str], Iterable[str]]) -> Iterator[list[str]]:
    """Yield what is reachable from `start`, step by step: itself first, nothing twice."""
    seen, frontier = {start}, [start]
    while frontier:
        yield frontier
        found = dict.fromkeys(item for near in frontier for item in following(near))
        frontier = [item for item in found if item not in seen]
        seen.update(frontier)


def _project(state: LineageState) -> str | None:
    return state.revisions[state.latest].scope.project if state.latest else None


def _ordered(state: LineageState) -> list[tuple[str, str]]:
    return sorted(state.links, key=lambda pair: state.links[pair])
