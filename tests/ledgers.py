"""Shared hands: a real ledger in a real database, written to by the product's own committer, without the gateway."""

from collections.abc import Sequence
from pathlib import Path

from ledger.chain import Entry
from ledger.clock import Clock, new_ulid, system_clock
from ledger.committer import Committer
from ledger.governance import AssignedName, NameAssigned
from ledger.memories import LINEAGE, Command, Correct, LineageState, Remember, RevisionText
from ledger.message import Event, ScopeIds
from ledger.opening import KeyFiles, open_ledger
from ledger.sealing import Draft
from ledger.store import Database
from ledger.verified import VerifiedLedger
from ledger.waiting import Appended
from projections.models import ALL

SCOPE = ScopeIds(agent=None, project="prj_01JZ8Q0000000000000000000B", session=None, task_family=None, user=None)


def text(content: str, *, reason: str | None = None) -> RevisionText:
    """Return a payload that says no more than `content`."""
    return RevisionText.plain(content, reason=reason)


def remember(revision: str, content: str, *, first: int = -1, kind: str = "fact", scope: ScopeIds = SCOPE) -> Remember:
    """Return the wish to remember a text; its digest is the text itself, which deciders cannot tell."""
    return Remember(
        first=first,
        revision=revision,
        content=content,
        kind=kind,
        origin="human",
        scope=scope,
        visibility="project",
        text=text(content),
    )


def correct(revision: str, successor: str, content: str, *, first: int = -1) -> Correct:
    """Return the wish to correct a revision; its digest is the text itself, as in `remember`."""
    return Correct(
        first=first, revision=revision, successor=successor, content=content, origin="human", text=text(content)
    )


class WrittenLedger:
    """A ledger that tests write to, one command or several in an append."""

    def __init__(self, url: str, home: Path, clock: Clock = system_clock) -> None:
        self.files = KeyFiles(home / "ledger.key", home / "signing.key")
        self.database = Database(url)
        self.ledger: VerifiedLedger = open_ledger(self.database, tenant="local", files=self.files, clock=clock)
        self.ledger.catch_up()
        self.committer = Committer(self.ledger, self.database.another(), ALL, clock)
        self._states: dict[str, LineageState] = {}

    def close(self) -> None:
        """Close the connections."""
        self.committer.close()
        self.ledger.close()
        self.database.close()

    def append(self, lineage: str, *commands: Command, name: str | None = None) -> list[Entry]:
        """Decide commands on a lineage, each on what the ones before leave, and store them as one append."""
        state = self._states.get(lineage, LineageState())
        events: list[tuple[str, Event]] = []
        if name is not None:
            assigned = NameAssigned(id=lineage, kind="memory", parent=SCOPE.project)
            event = Event(facts=assigned, payload=AssignedName(name=name), position=-1)
            events.append((self.ledger.keys.name("memory", SCOPE.project, name), event))
        for command in commands:
            for event in LINEAGE.decide(state, command):
                state = LINEAGE.evolve(state, event)
                events.append((lineage, event))
        entries = self._commit(events)
        self._states[lineage] = LINEAGE.fold(item.event for item in self.ledger.stream(lineage))
        return entries

    def _commit(self, events: Sequence[tuple[str, Event]]) -> list[Entry]:
        draft = Draft(
            op=f"op_{new_ulid()}",
            actor="pr_01JZ8Q0000000000000000000C",
            authn="local",
            request=self.ledger.keys.request(["human:ana", "test"], new_ulid()),
            fingerprint=self.ledger.keys.fingerprint(b"{}"),
            events=tuple(events),
        )
        stored = self.committer.submit(draft).result(30)
        assert isinstance(stored, Appended)
        return [item.entry for item in stored.recorded]
