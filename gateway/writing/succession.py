"""Merges and splits: one act over several lineages, decided stream by stream in one append, or not at all.

Every stream that it touches is told of it, so each can be folded alone: the first predecessor's lineage goes on with
the first successor, each further successor begins a lineage, and each further predecessor's lineage ends.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ledger.decider import Command
from ledger.memories import Correct, LineageState, Remember, RevisionText, Supersede
from ledger.message import ScopeIds


class Deciding(Protocol):
    """What decides commands on lineages one after the other, each on what the ones before left behind."""

    def decide(self, lineage: str, command: Command) -> None:
        """Decide a command on a lineage."""
        ...

    def state(self, lineage: str) -> LineageState:
        """Return a lineage as the decisions so far leave it."""
        ...


class Successor(Struct, frozen=True, kw_only=True):
    """One text that takes the place of others: its lineage and revision, and what it says. `content` is its digest."""

    lineage: str
    revision: str
    content: str
    kind: str
    text: RevisionText


def supersede(
    append: Deciding,
    predecessors: Sequence[tuple[str, str]],
    successors: Sequence[Successor],
    *,
    origin: str,
    scope: ScopeIds,
    reason: str | None,
) -> None:
    """Decide that successors take the place of predecessors, each of those a (lineage, revision).

    The first successor is of the first predecessor's lineage. A refusal names the predecessor that it is about.
    """
    (lineage, old), *others = predecessors
    first, *further = successors
    visibility = append.state(lineage).revisions[old].visibility
    append.decide(
        lineage,
        Correct(
            revision=old,
            successor=first.revision,
            content=first.content,
            origin=origin,
            text=first.text,
            merged=tuple(revision for _, revision in others),
            split=tuple(item.revision for item in further),
            scope=scope,
        ),
    )
    for item in further:
        append.decide(
            item.lineage,
            Remember(
                revision=item.revision,
                content=item.content,
                kind=item.kind,
                origin=origin,
                scope=scope,
                visibility=visibility,
                text=item.text,
                supersedes=tuple(revision for _, revision in predecessors),
            ),
        )
    for other, revision in others:
        newer = tuple(item.revision for item in successors)
        append.decide(other, Supersede(revision=revision, successors=newer, reason=reason))
