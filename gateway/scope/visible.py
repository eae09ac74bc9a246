"""Who sees which record: the one rule by which everything that is read or written by id asks.

Whoever has the permission `admin` sees all of a project. Everybody else reads as what its actor is: `agent:NAME` as the
agent NAME, `human:NAME` as the user NAME. What is not visible is answered as what there is not, in the same words; of
an event of it the facts are shown and the payload is not. Nothing here looks into a text.
"""

from collections.abc import Callable

import msgspec

from gateway.scope.permissions import Actor
from ledger.memories import Birth, LineageState, MetadataPatched, RevisionState
from ledger.message import Facts, Move, ScopeIds
from ledger.scope import sees

NOBODY = "none"  # an id that nothing has: what a name stands for that was never assigned

_SEGMENT_OF_KIND = {"agent": "agent", "human": "user"}


class Visible:
    """What one actor sees, or a reader that it names. `find` gives the id of a name of some kind under a parent."""

    def __init__(
        self, actor: Actor, find: Callable[[str, str, str], str | None], named: ScopeIds | None = None
    ) -> None:
        self._actor = actor
        self._find = find
        self._named = named

    def named(self, reader: ScopeIds) -> "Visible":
        """Return what a reader sees whom the actor has named."""
        return Visible(self._actor, self._find, reader)

    def everything(self) -> "Visible":
        """Return what sees all, for whoever asks itself what each record's reader may see."""
        return Visible(Actor(name=self._actor.name, permissions=frozenset({"admin"})), self._find)

    @property
    def whole(self) -> bool:
        """Report whether all of a project is seen."""
        return self._named is None and "admin" in self._actor.permissions

    def reader(self, project: str) -> ScopeIds:
        """Return the scope that is read with in a project: that of the reader who is named, else the actor's own."""
        if self._named is not None:
            return msgspec.structs.replace(self._named, project=project)
        kind, _, name = self._actor.name.partition(":")
        nobody = ScopeIds(agent=None, project=project, session=None, task_family=None, user=None)
        segment = _SEGMENT_OF_KIND.get(kind)
        if segment is None:
            return nobody
        return msgspec.structs.replace(nobody, **{segment: self._find(segment, project, name) or NOBODY})

    def sees(self, visibility: str, scope: ScopeIds) -> bool:
        """Report whether the actor sees a record of that visibility and scope."""
        return self.whole or sees(self.reader(scope.project), visibility=visibility, scope=scope)

    def revision(self, item: RevisionState) -> bool:
        """Report whether the actor sees a revision."""
        return self.sees(item.visibility, item.scope)

    def memory(self, state: LineageState) -> bool:
        """Report whether the actor sees a memory: the revision that stands for it, its head or else its latest."""
        stands = state.head or state.latest
        return stands is not None and self.revision(state.revisions[stands])

    def narrowed(self, state: LineageState) -> LineageState:
        """Return a memory without those of its revisions that the actor does not see; as it is, if it sees all."""
        if self.whole:
            return state
        seen = {name: item for name, item in state.revisions.items() if self.revision(item)}
        if len(seen) == len(state.revisions):
            return state
        head = state.standing if state.head in seen else msgspec.structs.replace(state.standing, head=None)
        return msgspec.structs.replace(
            state,
            standing=head,
            latest=max(seen, key=lambda name: seen[name].version, default=None),
            revisions=seen,
            conflicts={pair: since for pair, since in state.conflicts.items() if set(pair) <= seen.keys()},
        )

    def tells(self, facts: Facts, state: LineageState) -> bool:
        """Report whether the actor sees what an event of a memory says in its payload; `state` is the whole memory.

        It speaks of the revision that it brought into being, or else of all that it changes; a link speaks of the
        memory.
        """
        if self.whole:
            return True
        about = spoken_of(facts)
        return all(self.revision(state.revisions[one]) for one in about) if about else self.memory(state)


def spoken_of(facts: Facts) -> list[str]:
    """Return the revisions that an event of a memory speaks of in its payload; none where it speaks of the memory."""
    if isinstance(facts, Birth):
        return [facts.moves[-1].revision]
    moves: tuple[Move, ...] = getattr(facts, "moves", ())
    return [facts.revision] if isinstance(facts, MetadataPatched) else [move.revision for move in moves]
