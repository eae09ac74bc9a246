"""A page: appends that are decided one after the other on one head, each seeing what the ones before did.

Names come first in an append, then what is decided on lineages; positions inside it are counted from its own first
event until it is closed.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from gateway.lineages import Lineages
from gateway.names import Names
from ledger.governance import AssignedName, NameAssigned
from ledger.ids import NAME_PREFIXES
from ledger.memories import LINEAGE, Command, LineageState
from ledger.message import Event
from ledger.sealing import Draft
from ledger.verified import Recorded

AUTHN_LOCAL = "local"


class Page:
    """Appends under decision. More than one of them is decided only while the head is locked and the walk is at it."""

    def __init__(self, size: int, names: Names, lineages: Lineages, mint: Callable[[], str]) -> None:
        self.names = names
        self.mint = mint
        self.drafts: list[Draft] = []
        self._size = size
        self._lineages = lineages
        self._states: dict[str, LineageState] = {}
        self._named: dict[str, str] = {}

    def begin(self, *, actor: str, request: str | None = None, fingerprint: str | None = None) -> "Append":
        """Begin the next append, by the actor of that name."""
        return Append(self, actor=actor, request=request, fingerprint=fingerprint)

    def state(self, lineage: str) -> LineageState:
        """Return a lineage as the page's closed appends leave it."""
        return self._states.get(lineage) or self._lineages.state(lineage)

    def find_name(self, kind: str, parent: str, name: str) -> str | None:
        """Return the id that a name has, or that an append of this page gives it."""
        return self._named.get(self.names.stream(kind, parent, name)) or self.names.find(kind, parent, name)

    def keep(self) -> None:
        """Remember, for later decisions, what the page folded. Only after its transaction has ended well."""
        self.names.learn(self._named)
        self.remember(self._states)

    def remember(self, states: Mapping[str, LineageState]) -> None:
        """Remember lineages as events that were stored leave them."""
        for lineage, state in states.items():
            self._lineages.keep(lineage, state)

    def close(self, append: "Append") -> Draft:
        """Take an append into the page, with absolute positions."""
        events = tuple((stream, event.settled(self._size)) for stream, event in append.events)
        for stream, event in events:
            if isinstance(event.facts, NameAssigned):
                self._named[stream] = event.facts.id
            else:
                self._states[stream] = LINEAGE.evolve(self.state(stream), event)
        self._size += len(events)
        draft = append.draft(events)
        self.drafts.append(draft)
        return draft


class Append:
    """One append under decision. It remembers at which version it read each stream that it looked at."""

    def __init__(self, page: Page, *, actor: str, request: str | None, fingerprint: str | None) -> None:
        self.op = f"op_{page.mint()}"
        self.request = request
        self.fingerprint = fingerprint
        self.events: list[tuple[str, Event]] = []
        self.page = page
        self._bases: dict[str, LineageState] = {}
        self._states: dict[str, LineageState] = {}
        self._reads: dict[str, int] = {}
        self.actor = self.name("actor", page.names.root, actor)

    @property
    def standing(self) -> list[str]:
        """Return the lineages that the append changes and that had events before it."""
        return [lineage for lineage, state in self._bases.items() if state.version and lineage in self._states]

    def name(self, kind: str, parent: str, name: str) -> str:
        """Return the id of a name, assigned in this append if it has none. Only before anything else is decided."""
        found = self.page.find_name(kind, parent, name)
        stream = self.page.names.stream(kind, parent, name)
        for named, event in self.events:
            if named == stream and isinstance(event.facts, NameAssigned):
                return event.facts.id
        if found is not None:
            return found
        fresh = f"{NAME_PREFIXES[kind]}_{self.page.mint()}"
        facts = NameAssigned(id=fresh, kind=kind, parent=parent)
        self._reads[stream] = 0
        self.events.append((stream, Event(facts=facts, payload=AssignedName(name=name), position=self._next)))
        return fresh

    def state(self, lineage: str) -> LineageState:
        """Return a lineage as this append's decisions so far leave it."""
        if lineage not in self._bases:
            self._bases[lineage] = self.page.state(lineage)
            self._reads[lineage] = self._bases[lineage].version
        return self._states.get(lineage) or self._bases[lineage]

    def decide(self, lineage: str, command: Command) -> None:
        """Decide a command on a lineage, and take its events into the append; a refusal is raised."""
        state = self.state(lineage)
        for event in LINEAGE.decide(state, msgspec.structs.replace(command, first=self._next)):
            self.events.append((lineage, event))
            state = LINEAGE.evolve(state, event)
        self._states[lineage] = state

    def draft(self, events: tuple[tuple[str, Event], ...] | None = None) -> Draft:
        """Return the append as it is stored, with positions counted from its own first event, or as `events` has them.

        A page's events rest on one another and on a locked head, so they name no versions.
        """
        return Draft(
            op=self.op,
            actor=self.actor,
            authn=AUTHN_LOCAL,
            request=self.request,
            fingerprint=self.fingerprint,
            events=tuple(self.events) if events is None else events,
            reads=self._reads if events is None else {},
        )

    def keep(self, recorded: Sequence[Recorded]) -> None:
        """Remember, for later decisions, what the append left behind, as it was stored."""
        states: dict[str, LineageState] = {}
        for item in recorded:
            stream, facts = item.entry.envelope.stream, item.entry.envelope.facts
            if isinstance(facts, NameAssigned):
                self.page.names.learn({stream: facts.id})
            elif stream in self._bases:
                states[stream] = LINEAGE.evolve(states.get(stream) or self._bases[stream], item.event)
        self.page.remember(states)

    @property
    def _next(self) -> int:
        return -1 - len(self.events)
