"""The events of a ledger as lines, told one after the other: a page of them is in memory, however many there are.

What may not be told is left out of its line as in a bundle: what the actor does not see, what was not asked for, and,
where that is asked for, the text of what was forgotten. The line itself always stays.
"""

import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from gateway.reading.reader import Reader
from gateway.scope.names import Names
from gateway.scope.visible import spoken_of
from gateway.transfer.lines import Line, Place, line_of
from ledger.bundle.writing import Exported
from ledger.chain import Entry
from ledger.corrections import CorrectionRecorded
from ledger.erasure import OF_ERASURES, Erasures
from ledger.evidence import EvidenceText
from ledger.governance import AssignedName, LedgerImported, NameAssigned, TakenOver
from ledger.ids import CORRECTION, kind_of
from ledger.message import ScopeIds
from ledger.store import Stored
from ledger.verified import Recorded, VerifiedLedger

PAGE = 500
NAMES_KEPT = 10_000
LEDGER, CORRECTIONS = "ledger", "corrections"
Progress = Callable[[int, int], None]


class Asked(Struct, frozen=True, kw_only=True):
    """What is told: a kind, up to which position, of which project (for corrections), and with which payloads."""

    kind: str
    last: int
    project: str | None
    payloads: str | frozenset[str]  # all, none, or the ids of revisions
    forgotten: bool


class Chosen(NamedTuple):
    """What a first pass over the facts finds: the streams to tell (None: all), and the revisions not to be told."""

    streams: frozenset[str] | None
    named: frozenset[str]
    forgotten: frozenset[str]


class Surveyed(NamedTuple):
    """What a first pass over a whole log finds, for a bundle of it: what is told, names by their ids, and erasures."""

    chosen: Chosen
    names: dict[str, str]
    erasures: Erasures


class Telling:
    """Tells the events of one ledger up to a position that was caught up with."""

    def __init__(
        self, ledger: VerifiedLedger, names: Names, reader: Reader, asked: Asked, lock: threading.RLock
    ) -> None:
        self._ledger = ledger
        self._names = names
        self._reader = reader
        self._asked = asked
        self._lock = lock
        self._shown: dict[str, str | None] = {}
        self._projects: list[str] = []
        self._leading = 0
        self._times: Iterator[str] = iter(())
        self.withheld = 0
        self._looked = 0

    def lines(self, progress: Progress | None = None) -> Iterator[Line]:
        """Yield the line of each event, ascending by position. The lock is held for a page at a time."""
        total = self._asked.last + 1
        chosen = self._choose()
        for first in range(0, total, PAGE):
            positions = range(first, min(first + PAGE, total))
            with self._lock:
                page = self._page(positions, chosen)
            yield from page
            if progress:
                progress(positions.stop, total)

    def surveyed(self, progress: Progress | None = None) -> Surveyed:
        """Go through the log once, for `entries`. The lock is held for a page at a time."""
        erasures, named, total = Erasures(), array("q"), self._asked.last + 1

        def watch(entry: Entry) -> None:
            if progress and (entry.position % PAGE == PAGE - 1 or entry.position == total - 1):
                progress(min(entry.position + 1, total), total)
            if entry.position > self._asked.last:
                return
            if entry.envelope.type in OF_ERASURES:
                erasures.see(entry.envelope)
            elif isinstance(entry.envelope.facts, NameAssigned):
                named.append(entry.position)

        chosen = self._choose(watch)
        names: dict[str, str] = {}
        for first in range(0, len(named), PAGE):
            for one, _ in self._offered(named[first : first + PAGE], chosen):
                if isinstance(one.payload, AssignedName) and isinstance(one.entry.envelope.facts, NameAssigned):
                    names[one.entry.envelope.facts.id] = one.payload.name
        return Surveyed(chosen, names, erasures)

    def entries(self, chosen: Chosen, progress: Progress | None = None) -> Iterator[tuple[Exported, bool]]:
        """Yield every entry up to the last that is asked for, and whether it is told; its payload where that is given.

        The lock is held for a page at a time.
        """
        total = self._asked.last + 1
        if progress:
            progress(0, total)
        for first in range(0, total, PAGE):
            positions = range(first, min(first + PAGE, total))
            yield from self._offered(positions, chosen)
            if progress:
                progress(positions.stop, total)

    def is_overtaken(self) -> bool:
        """Report whether a text was withdrawn from view after it was looked up which are: it may have been told."""
        with self._lock:
            first, self._looked = self._looked, self._ledger.catch_up() + 1
        moves = (
            move for one in self._entries(first, self._looked) for move in getattr(one.envelope.facts, "moves", ())
        )
        return any(move.after.state in ("forgotten", "erased") for move in moves)

    def _offered(self, positions: Sequence[int], chosen: Chosen) -> list[tuple[Exported, bool]]:
        with self._lock:
            return [self._offer(item, stored, chosen) for item, stored in self._ledger.whole(positions)]

    def _offer(self, item: Recorded, stored: Stored, chosen: Chosen) -> tuple[Exported, bool]:
        is_told = _is_told(item.entry, chosen)
        if not is_told or item.payload is None or self._is_withheld(item, chosen):
            return Exported(item.entry, None, None, None), is_told
        return Exported(item.entry, item.payload, stored.salt, stored.body), True

    def positions(self) -> list[int]:
        """Return the positions of all that is told, for a bundle."""
        chosen = self._choose()
        entries = self._ledger.entries(0, self._asked.last + 1)
        return [entry.position for entry in entries if _is_told(entry, chosen)]

    def _page(self, positions: range, chosen: Chosen) -> list[Line]:
        found = [item for item, _ in self._ledger.whole(positions)]
        self._learn_names([item for item in found if _is_told(item.entry, chosen)])
        lines: list[Line] = []
        for item, place in self._placed(found):
            recorded_at = self._recorded_at(item)
            project = self._project(item)
            if _is_told(item.entry, chosen):
                lines.append(self._line(item, place, recorded_at, project, chosen))
        return lines

    def _placed(self, found: Sequence[Recorded]) -> Iterator[tuple[Recorded, Place]]:
        """Yield each event with its place in its append: names stand first in it, and have none."""
        for number, item in enumerate(found):
            envelope = item.entry.envelope
            if envelope.op_index == 0:
                self._leading = self._count_names(found, number, envelope.op_count)
            is_name = isinstance(envelope.facts, NameAssigned)
            yield item, Place(None if is_name else envelope.op_index - self._leading, envelope.op_count - self._leading)

    def _count_names(self, page: Sequence[Recorded], number: int, count: int) -> int:
        """Return how many names an append begins with, by its place in a page, which may end before it does."""
        here = [item.entry for item in page[number : number + count]]
        first = here[0].position
        rest = () if len(here) == count else self._ledger.entries(first + len(here), first + count)
        return sum(1 for entry in chain(here, rest) if isinstance(entry.envelope.facts, NameAssigned))

    def _line(self, item: Recorded, place: Place, recorded_at: str, project: str | None, chosen: Chosen) -> Line:
        withheld = item.entry.envelope.payload_sha256 is not None and self._is_withheld(item, chosen)
        self.withheld += withheld
        envelope = item.entry.envelope
        names = {one: name for one in (envelope.actor, envelope.stream) if (name := self._shown.get(one)) is not None}
        return line_of(
            item,
            place=place,
            recorded_at=recorded_at,
            names=names,
            project=project,
            withheld=withheld,
        )

    def _is_withheld(self, item: Recorded, chosen: Chosen) -> bool:
        payloads, born = self._asked.payloads, _born(item.entry)
        if payloads == "none" or not self._reader.tells(item):
            return True
        if not self._asked.forgotten and self._repeats_forgotten(item, chosen):
            return True
        is_memory = item.entry.envelope.stream.startswith("mem_")
        return is_memory and not isinstance(payloads, str) and born not in payloads

    def _repeats_forgotten(self, item: Recorded, chosen: Chosen) -> bool:
        """Report whether an event says what was forgotten: only where the first pass leaves that open, it is read."""
        about = spoken_of(item.entry.envelope.facts)
        return not (about and chosen.forgotten.isdisjoint(about)) and self._reader.repeats_forgotten(item)

    # ---------------------------------------------------------------- the first pass

    def _choose(self, watch: Callable[[Entry], None] | None = None) -> Chosen:
        """Go through the facts once, where something in them decides what is told, or somebody is to `watch` them."""
        asked = self._asked
        if asked.kind == LEDGER and asked.forgotten and watch is None:
            return Chosen(None, frozenset(), frozenset())
        streams, named, forgotten = set[str](), set[str](), set[str]()
        # What was forgotten since is not told either, however far back the export ends.
        self._looked = end = asked.last + 1 if asked.forgotten else self._ledger.walk.head.size
        for entry in self._entries(0, end):
            if watch is not None:
                watch(entry)
            for move in getattr(entry.envelope.facts, "moves", ()):
                is_gone = move.after.state in ("forgotten", "erased")
                (forgotten.add if is_gone else forgotten.discard)(move.revision)
            if asked.kind == CORRECTIONS and entry.position <= asked.last and self._is_wanted(entry, streams):
                streams.add(entry.envelope.stream)
                named |= {entry.envelope.actor, *_scope(entry)}
        told = frozenset(streams) if asked.kind == CORRECTIONS else None
        return Chosen(told, frozenset(named), frozenset() if asked.forgotten else frozenset(forgotten))

    def _entries(self, first: int, end: int) -> Iterator[Entry]:
        """Yield the entries from `first` up to before `end`; the lock is held for a page at a time."""
        for at in range(first, end, PAGE):
            with self._lock:
                page = [*self._ledger.entries(at, min(at + PAGE, end))]
            yield from page

    def _is_wanted(self, entry: Entry, streams: set[str]) -> bool:
        """Report whether an event is of a correction that is told: of the project, or of any where none is named."""
        facts, stream = entry.envelope.facts, entry.envelope.stream
        if kind_of(stream) != CORRECTION:
            return False
        if isinstance(facts, CorrectionRecorded):
            return self._asked.project in (None, facts.scope.project)
        return stream in streams

    # ---------------------------------------------------------------- what a line says beside its event

    def _learn_names(self, items: Sequence[Recorded]) -> None:
        """Look up, at once, the names of the actors and streams of a page, as far as they are told."""
        if len(self._shown) > NAMES_KEPT:
            self._shown.clear()
        ids = {one for item in items for one in (item.entry.envelope.actor, item.entry.envelope.stream)}
        fresh = [one for one in ids if one not in self._shown and kind_of(one) not in ("name", "evd", "tomb", "led")]
        found = self._names.assigned(fresh)
        self._shown |= {one: self._told_name(found.get(one)) for one in fresh}

    def _told_name(self, item: Recorded | None) -> str | None:
        if item is None or item.entry.position > self._asked.last:
            return None
        if self._asked.payloads == "none" or not self._reader.tells(item):
            return None
        return getattr(item.payload, "name", None)

    def _recorded_at(self, item: Recorded) -> str:
        """Return when an event was first recorded: what was taken over says it of each entry that follows."""
        if isinstance(item.entry.envelope.facts, LedgerImported) and isinstance(item.payload, TakenOver):
            self._times = iter(item.payload.recorded_at)
            return item.entry.envelope.at
        return next(self._times, item.entry.envelope.at)

    def _project(self, item: Recorded) -> str | None:
        """Return the project that an event belongs to, where the event itself says it, or its evidence's stream."""
        facts = item.entry.envelope.facts
        if isinstance(facts, NameAssigned):
            if facts.kind == "project":
                self._projects.append(facts.id)
            return facts.id if facts.kind == "project" else facts.parent if facts.kind != "actor" else None
        if isinstance(item.payload, EvidenceText):
            keys, stream = self._ledger.keys, item.entry.envelope.stream
            hash_ = item.payload.hash
            return next((one for one in self._projects if keys.evidence(one, hash_) == stream), None)
        scope = getattr(facts, "scope", None)
        return scope.project if isinstance(scope, ScopeIds) else None


def _is_told(entry: Entry, chosen: Chosen) -> bool:
    if chosen.streams is None:
        return True
    facts = entry.envelope.facts
    if isinstance(facts, NameAssigned):
        return facts.id in chosen.named
    return entry.envelope.stream in chosen.streams


def _born(entry: Entry) -> str | None:
    """Return the revision that an event brought into being."""
    moves = getattr(entry.envelope.facts, "moves", ())
    return next((move.revision for move in moves if move.before is None), None)


def _scope(entry: Entry) -> set[str]:
    scope = getattr(entry.envelope.facts, "scope", None)
    if not isinstance(scope, ScopeIds):
        return set()
    return {one for one in (scope.agent, scope.project, scope.session, scope.task_family, scope.user) if one}
