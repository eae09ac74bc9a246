"""Lines by their append: what of it is decided anew, and what an append that is here already says."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from gateway.transfer.lines import Told
from gateway.transfer.surveying import AGGREGATES
from ledger.codec import canonical
from ledger.governance import NameAssigned
from ledger.ids import kind_of
from ledger.memories import LineageLinked, LineageUnlinked, RevisionAdmitted
from ledger.message import Payload
from ledger.verified import Recorded

REPLAYED = (*AGGREGATES, "evd", "tomb")  # what is decided anew, or follows from what is


class Group(NamedTuple):
    """The lines of one append."""

    op: str
    events: tuple[Told, ...]

    @property
    def names(self) -> list[Told]:
        """Return the lines that give names."""
        return [item for item in self.events if isinstance(item.facts, NameAssigned)]

    @property
    def replayed(self) -> list[Told]:
        """Return the lines that are decided anew, those that follow from others among them."""
        own = [item for item in self.events if kind_of(item.line.stream) in REPLAYED]
        return [item for item in own if not isinstance(item.facts, RevisionAdmitted)]

    @property
    def streams(self) -> list[str]:
        """Return the memories and corrections that the append changes."""
        return [item.line.stream for item in self.replayed if kind_of(item.line.stream) in AGGREGATES]

    @property
    def is_link(self) -> bool:
        """Report whether nothing in it changes how a memory stands."""
        return all(isinstance(item.facts, LineageLinked | LineageUnlinked) for item in self.replayed)


Said = Mapping[tuple[str, str], bytes]


class Known(NamedTuple):
    """An append that is here: how many events of it each stream has, and what they say, by stream and type."""

    streams: Mapping[str, int]
    said: Said


def groups(items: Iterable[Told]) -> Iterator[Group]:
    """Yield the appends that lines tell, in order."""
    for op, events in groupby(items, key=lambda item: item.line.op):
        yield Group(op, tuple(events))


def known(recorded: Sequence[Recorded]) -> Known:
    """Return what is known of an append by its entries."""
    return Known(
        Counter(item.entry.envelope.stream for item in recorded),
        {
            (item.entry.envelope.stream, item.entry.envelope.type): _comparable(item.payload)
            for item in recorded
            if kind_of(item.entry.envelope.stream) in AGGREGATES
        },
    )


def said(events: Iterable[Told]) -> Said:
    """Return what the events of memories and corrections say, those left out that are withheld or not taken over."""
    return {
        (item.line.stream, item.line.type): _comparable(item.payload)
        for item in events
        if kind_of(item.line.stream) in AGGREGATES
        and item.payload is not None
        and not isinstance(item.facts, RevisionAdmitted)
    }


def _comparable(payload: Payload | None) -> bytes:
    """Return what a payload says, but for when it was first recorded: that is said by whoever takes it over."""
    told: dict[str, Any] = {} if payload is None else msgspec.to_builtins(payload)  # Any: JSON
    return canonical({name: value for name, value in told.items() if name != "recorded_at"})
