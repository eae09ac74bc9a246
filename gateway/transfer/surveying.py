"""The first pass over a file: whether all of it can be read, and which histories in it are not whole.

A history of which a part is missing or withheld is not taken over at all: it might end with something that the rest
does not show, and stand for what was withdrawn long ago. What an append joins is taken over together or not at all.
"""

from typing import NamedTuple

from gateway.transfer.lines import ERASED, WITHHELD
from gateway.transfer.reading import Bad, Source
from ledger.ids import CORRECTION, MEMORY, kind_of
from ledger.memories import LineageLinked, LineageUnlinked, RevisionAdmitted

AGGREGATES = (MEMORY, CORRECTION)
WITHHELD_FROM_US = "its history holds a payload that was withheld or erased, so it cannot be told whole"
BAD_KEPT = 1_000
MISSING = "lines of its history are missing before this one"


class Survey(NamedTuple):
    """What a file holds: how many lines that tell events, those that cannot be read, and why a stream is left out."""

    events: int
    bad: tuple[Bad, ...]
    why: "Joined"


class Joined:
    """Streams that share a fate, and those that are left out with the reason."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._why: dict[str, str] = {}

    def join(self, streams: "list[str]") -> None:
        """Let streams share what becomes of them."""
        for stream in streams[1:]:
            one, other = self._root(streams[0]), self._root(stream)
            if one != other:
                self._parents[other] = one
                if other in self._why:
                    self._why.setdefault(one, self._why.pop(other))

    def leave_out(self, stream: str, why: str) -> None:
        """Leave a stream out, and all that it shares its fate with."""
        self._why.setdefault(self._root(stream), why)

    def why(self, stream: str) -> str | None:
        """Return why a stream is left out, or None."""
        return self._why.get(self._root(stream)) if self._why else None

    def _root(self, stream: str) -> str:
        while (parent := self._parents.get(stream)) is not None:
            stream = parent
        return stream


def survey(source: Source) -> Survey:
    """Go through a source once. Of lines that cannot be read at most a thousand are named."""
    joined, following = Joined(), dict[str, int]()
    events, bad, op, streams = 0, list[Bad](), "", list[str]()
    for item in source.lines():
        if isinstance(item, Bad):
            if len(bad) < BAD_KEPT:
                bad.append(item)
            continue
        events += 1
        line = item.line
        if kind_of(line.stream) not in AGGREGATES:
            continue
        if line.op != op:
            joined.join(streams)
            op, streams = line.op, []
        if not isinstance(item.facts, LineageLinked | LineageUnlinked):  # a link changes neither end
            streams.append(line.stream)
        if line.stream_seq != following.get(line.stream, 0):
            joined.leave_out(line.stream, MISSING)
        following[line.stream] = line.stream_seq + 1
        if line.payload in (WITHHELD, ERASED) and not isinstance(item.facts, RevisionAdmitted):
            joined.leave_out(line.stream, WITHHELD_FROM_US)
    joined.join(streams)
    return Survey(events, tuple(bad), joined)
