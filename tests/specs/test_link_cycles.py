"""Whether a link would close a cycle: the same answer as trying all paths, without following a long chain each time."""

import itertools

from gateway.reading.graph import link_would_cycle
from ledger.memories import LineageState

Pair = tuple[str, str]


class Memories:
    """Lineages with these links, newer first; it notes whose state was asked for."""

    def __init__(self, *links: Pair) -> None:
        self.links = links
        self.read: list[str] = []

    def __call__(self, lineage: str) -> LineageState:
        """Return a lineage's state: the links that it is an end of."""
        self.read.append(lineage)
        ours = [pair for pair in self.links if lineage in pair]
        return LineageState(links={pair: place for place, pair in enumerate(ours)})


def leads(links: tuple[Pair, ...], start: str, end: str) -> bool:
    """Report whether a path leads down from one memory to another."""
    found = {start}
    for _ in range(len(links)):
        found |= {older for newer, older in links if newer in found}
    return end in found


def test_every_small_graph_is_decided_right() -> None:
    """Given all graphs of three links between four memories, then a cycle is seen exactly where a path leads back."""
    pairs = [(a, b) for a in "wxyz" for b in "wxyz" if a != b]
    for links in itertools.combinations(pairs, 3):
        for newer, older in pairs:
            assert link_would_cycle(Memories(*links), newer=newer, older=older) == leads(links, older, newer)


def test_a_chain_grows_at_either_end_without_being_followed() -> None:
    """Given a chain of a thousand memories, when it grows at an end, then only that end is looked at."""
    memories = Memories(*((f"m{n + 1}", f"m{n}") for n in range(1_000)))
    assert not link_would_cycle(memories, newer="fresh", older="m1000")
    assert not link_would_cycle(memories, newer="m0", older="fresh")
    assert len(memories.read) < 10


def test_the_side_that_ended_was_read_whole() -> None:
    """Given no cycle, then every memory above the newer one, or below the older one, was read."""
    memories = Memories(("a", "b"), ("b", "c"), ("d", "e"), ("e", "f"), ("f", "g"), ("g", "h"))
    assert not link_would_cycle(memories, newer="c", older="d")
    assert {"c", "b", "a"} <= set(memories.read) or {"d", "e", "f", "g", "h"} <= set(memories.read)
