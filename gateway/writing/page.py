"""A page: appends that are decided one after the other on one head, each seeing what the ones before did.

Names come first in an append, then what is decided on lineages; positions inside it are counted from its own first
event until it is closed.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from gateway.scope.concerned import concerned
from gateway.scope.names import Names
from gateway.scope.states import States, StateT
from ledger import aggregates
from ledger.decider import Command, Decider, State
from ledger.governance import AssignedName, NameAssigned
from ledger.ids import NAME_PREFIXES
from ledger.memories import LINEAGE, LineageState
from ledger.message import Event
from ledger.sealing import Draft
from ledger.verified import Recorded

AUTHN_LOCAL = "local"
AUTHN_IMPORT = "import"  # the actor is who the imported file says it was


class Page:
    """Appends under decision. More than one of them is decided only while the head is locked and the walk is at it."""

    def __init__(self, size: int, names: Names, states: States, mint: Callable[[], str]) -> None:
        self.names = names
        self.mint = mint
        self.drafts: list[Draft] = []
        self._size = size
        self._known = states
        self._states: dict[str, State] = {}
        self._named: dict[str, str] = {}

    def begin(self, *, actor: str, request: str | None = None, fingerprint: str | None = None) -> "Append":
        """Begin the next append, by the actor of that name."""
        return Append(self, actor=actor, request=request, fingerprint=fingerprint)

    def take_over(self, op: str, *, request: str, fingerprint: str) -> "Append":
        """Begin the next append as one of another ledger, with the id that it has there; its actor is yet to be set."""
        append = Append(self, actor=None, request=request, fingerprint=fingerprint)
        append.op, append.authn = op, AUTHN_IMPORT
        return append

    def of(self, decider: Decider[Command, Event, StateT], stream: str) -> StateT:
        """Return the state of a stream of that aggregate as the page's closed appends leave it."""
        found = self._states.get(stream)
        return found if isinstance(found, type(decider.initial)) else self._known.of(decider, stream)

    def find_name(self, kind: str, parent: str, name: str) -> str | None:
        """Return the id that a name has, or that an append of this page gives it."""
        return self._named.get(self.names.stream(kind, parent, name)) or self.names.find(kind, parent, name)

    def keep(self) -> None:
        """Remember, for later decisions, what the page folded. Only after its transaction has ended well."""
        self.names.learn(self._named)
        self.remember(self._states)

    def remember(self, states: Mapping[str, State]) -> None:
        """Remember aggregates as events that were stored leave them."""
        for stream, state in states.items():
            self._known.keep(stream, state)

    def close(self, append: "Append") -> Draft:
        """Take an append into the page, with absolute positions."""
        events = tuple((stream, event.settled(self._size)) for stream, event in append.events)
        for stream, event in events:
            if isinstance(event.facts, NameAssigned):
                self._named[stream] = event.facts.id
            else:
                before = self._states.get(stream) or append.base(stream)
                self._states[stream] = aggregates.evolve(before, stream, event)
        self._size += len(events)
        draft = append.draft(events)
        self.drafts.append(draft)
        return draft


class Append:
    """One append under decision. It remembers at which version it read each stream that it looked at."""

    def __init__(self, page: Page, *, actor: str | None, request: str | None, fingerprint: str | None) -> None:
        self.op = f"op_{page.mint()}"
        self.authn = AUTHN_LOCAL
        self.request = request
        self.fingerprint = fingerprint
        self.events: list[tuple[str, Event]] = []
        self.warnings: Sequence[str] = ()
        self.page = page
        self._objects: dict[str, bytes] = {}
        self._bases: dict[str, State] = {}
        self._states: dict[str, State] = {}
        self._reads: dict[str, int] = {}
        self.about: tuple[str, str] | None = None  # the lineage and revision of an act that may change nothing
        self.subjects: tuple[str, ...] = ()  # the digests of those whom corrections of this append concern
        self.actor = "" if actor is None else self.name("actor", page.names.root, actor)

    @property
    def is_idle(self) -> bool:
        """Report whether nothing was decided: names that it would have given are not worth storing by themselves."""
        return all(isinstance(event.facts, NameAssigned) for _, event in self.events)

    @property
    def standing(self) -> list[str]:
        """Return the streams that the append changes and that had events before it."""
        return [stream for stream, state in self._bases.items() if state.version and stream in self._states]

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
        self.give(kind, parent, name, fresh)
        return fresh

    def give(self, kind: str, parent: str, name: str, identifier: str) -> None:
        """Give a name that has no id yet this one. Only before anything else is decided."""
        stream = self.page.names.stream(kind, parent, name)
        facts = NameAssigned(id=identifier, kind=kind, parent=parent)
        self._reads[stream] = 0
        self.events.append((stream, Event(facts=facts, payload=AssignedName(name=name), position=self._next)))

    def begin_lineage(self, lineage: str) -> str:
        """Return an id that was just made, taken for a lineage without events: were there any, nothing is stored."""
        self._bases[lineage], self._reads[lineage] = LINEAGE.initial, 0
        return lineage

    def state(self, lineage: str) -> LineageState:
        """Return a lineage as this append's decisions so far leave it."""
        return self.of(LINEAGE, lineage)

    def of(self, decider: Decider[Command, Event, StateT], stream: str) -> StateT:
        """Return the state of a stream of that aggregate as this append's decisions so far leave it.

        The append is stored only while the stream is still at the version at which it is read here.
        """
        if stream not in self._bases:
            self._bases[stream] = self.page.of(decider, stream)
            self._reads[stream] = self._bases[stream].version
        found = self._states.get(stream) or self._bases[stream]
        if not isinstance(found, type(decider.initial)):
            raise TypeError(f"a stream of another aggregate: {stream}")
        return found

    def base(self, stream: str) -> State:
        """Return a stream's state as it was before this append, which has read it."""
        return self._bases[stream]

    def decide(self, lineage: str, command: Command) -> None:
        """Decide a command on a lineage, and take its events into the append; a refusal is raised."""
        self.decide_on(LINEAGE, lineage, command)

    def decide_on(self, decider: Decider[Command, Event, StateT], stream: str, command: Command) -> None:
        """Decide a command on a stream of that aggregate, as `decide` does on a lineage."""
        state = self.of(decider, stream)
        for decided in decider.decide(state, msgspec.structs.replace(command, first=self._next)):
            subjects = concerned(state, decided, digest=self.page.names.subject, about=self.subjects)
            event = msgspec.structs.replace(decided, subjects=subjects) if subjects else decided
            self.events.append((stream, event))
            state = decider.evolve(state, event)
        self._states[stream] = state

    def attach(self, stream: str, body: bytes) -> None:
        """Store bytes with the append, under the stream of the evidence that it adds."""
        self._objects[stream] = body

    def draft(self, events: tuple[tuple[str, Event], ...] | None = None) -> Draft:
        """Return the append as it is stored, with positions counted from its own first event, or as `events` has them.

        A page's events rest on one another and on a locked head, so they name no versions.
        """
        return Draft(
            op=self.op,
            actor=self.actor,
            authn=self.authn,
            request=self.request,
            fingerprint=self.fingerprint,
            events=tuple(self.events) if events is None else events,
            reads=self._reads if events is None else {},
            objects=self._objects,
        )

    def keep(self, recorded: Sequence[Recorded]) -> None:
        """Remember, for later decisions, what the append left behind, as it was stored."""
        states: dict[str, State] = {}
        for item in recorded:
            stream, facts = item.entry.envelope.stream, item.entry.envelope.facts
            if isinstance(facts, NameAssigned):
                self.page.names.learn({stream: facts.id})
            elif stream in self._bases:
                states[stream] = aggregates.evolve(states.get(stream) or self._bases[stream], stream, item.event)
        self.page.remember(states)

    @property
    def _next(self) -> int:
        return -1 - len(self.events)
