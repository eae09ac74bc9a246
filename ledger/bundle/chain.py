"""The chain for people and programs: a line of JSON for each event, made of the bundle's own bytes.

It is a function of the envelopes and payloads, so a verifier makes it anew and compares: no line can say what its event
does not.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ledger.chain import Entry
from ledger.digest import leaf
from ledger.erasure import Erased
from ledger.governance import AssignedName, NameAssigned
from ledger.message import Payload


class Event(msgspec.Struct, frozen=True):
    """One entry of a bundle, with its payload where that is given. `absence` says why it is not: withheld or erased."""

    entry: Entry
    payload: Payload | None
    absence: str | None

    @property
    def told(self) -> str:
        """Return what became of the payload: given, withheld, erased, or none if the event never had one."""
        return self.absence or ("none" if self.entry.envelope.payload_sha256 is None else "given")


def names_of(events: Iterable[Event]) -> dict[str, str]:
    """Return the name of each id that an event of the bundle names."""
    named: dict[str, str] = {}
    for event in events:
        facts = event.entry.envelope.facts
        if isinstance(facts, NameAssigned) and isinstance(event.payload, AssignedName):
            named[facts.id] = event.payload.name
    return named


def erasures(erased: Iterable[Erased]) -> bytes:
    """Return the lines of the payloads that are gone with a certificate, ascending by position."""
    return b"".join(one.line() for one in sorted(erased))


class Lines:
    """The lines of one bundle, made one after the other, ascending by position."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._before = ""

    def line(self, event: Event) -> bytes:
        """Return the line of the next event."""
        row = _row(event, self._names)
        row["clock"] = "back" if row["at"] < self._before else None
        self._before = row["at"]
        return msgspec.json.encode(row) + b"\n"


def lines(events: Iterable[Event], names: Mapping[str, str]) -> Iterator[bytes]:
    """Yield the line of each event, ascending by position."""
    yield from map(Lines(names).line, events)


def _row(event: Event, names: Mapping[str, str]) -> dict[str, Any]:  # Any: JSON
    envelope = event.entry.envelope
    return {
        "seq": envelope.seq,
        "at": envelope.at,
        "type": envelope.type,
        "actor": envelope.actor,
        "actor_name": names.get(envelope.actor),
        "op": envelope.op,
        "stream": envelope.stream,
        "stream_name": names.get(envelope.stream),
        "stream_seq": envelope.stream_seq,
        "hash": event.entry.hash.hex(),
        "leaf": leaf(event.entry.raw).hex(),
        "facts": msgspec.to_builtins(envelope.facts),
        "payload": event.told,
        "said": None if event.payload is None else msgspec.to_builtins(event.payload),
    }
