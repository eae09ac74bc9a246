"""Shared hands: links as a ledger would have them, without a ledger; and anchors in files."""

from collections.abc import Sequence
from pathlib import Path

from ledger import digest
from ledger.anchor import Anchor, Link
from ledger.chain import StreamHead

LEDGER, ORIGIN = "01JZ8Q0000000000000000000A", "ledger.example.org/main"
STREAMS = 7


def link(position: int, text: str = "") -> Link:
    """Return what an anchor keeps of the entry at a position; another `text` makes it another entry."""
    stream = f"mem_{position % STREAMS}"
    raw = f"entry {position} {text}".encode()
    return Link(
        position=position,
        leaf=digest.leaf(raw),
        hash=digest.link(raw),
        stream=stream,
        end=StreamHead(position // STREAMS + 1, position, digest.stream_link(raw)),
        request=None if position % 3 == 2 else digest.link(b"request" + raw).hex(),
        revisions=() if position % 2 else (f"rev_{position}",),
    )


def links(first: int, last: int) -> list[Link]:
    """Return the links of the entries from `first` to below `last`."""
    return [link(position) for position in range(first, last)]


def file_of(folder: Path, size: int) -> Path:
    """Return the path of an anchor of that many entries, closed."""
    path = folder / f"{LEDGER}.sqlite"
    anchor = opened(path)
    if size:
        anchor.extend(links(0, size))
    anchor.close()
    return path


def opened(path: Path) -> Anchor:
    """Open the anchor at a path, made if there is none."""
    return Anchor.open(path, ledger=LEDGER, origin=ORIGIN)


def assert_holds(anchor: Anchor, expected: Sequence[Link]) -> None:
    """Fail unless every answer of an anchor is that of these entries."""
    state = anchor.state()
    assert state.size == len(expected)
    assert anchor.leaves(0, len(expected) + 5) == b"".join(one.leaf for one in expected)
    ends = {one.stream: one.end for one in expected}
    taken = {one.request: one.position for one in expected if one.request is not None}
    assert anchor.known([*ends, "mem_none"], [*taken, "00"]) == (ends, taken)
    born = {revision: one.stream for one in expected for revision in one.revisions}
    assert anchor.lineages([*born, "rev_none"]) == born
    if expected:
        assert state.head == expected[-1].hash
