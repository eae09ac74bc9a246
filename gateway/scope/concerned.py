"""Whom an event concerns: digests in the envelope, by which whatever was said about a person can be found, and erased.

The names stand in payloads alone, which are erasable. A text states its own; what happens to it later concerns the same
persons, and so does a correction of it. Pure.
"""

from collections.abc import Callable, Iterable

from ledger.corrections import CorrectionState
from ledger.decider import State
from ledger.memories import LineageState, RevisionText
from ledger.message import Event, Move


def concerned(
    state: State, event: Event, *, digest: Callable[[str], str], about: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the digests of those whom an event concerns that was decided on a state, ascending.

    `about` are those of what the whole append is about; a memory's events are about their own revisions.
    """
    if isinstance(event.payload, RevisionText):
        return tuple(sorted(set(map(digest, event.payload.subjects))))
    if isinstance(state, LineageState):
        return _of_revisions(state, event)
    return tuple(sorted({*about, *state.subjects})) if isinstance(state, CorrectionState) else ()


def _of_revisions(state: LineageState, event: Event) -> tuple[str, ...]:
    moves: tuple[Move, ...] = getattr(event.facts, "moves", ())
    patched: str | None = getattr(event.facts, "revision", None)
    named = [*(move.revision for move in moves), *([] if patched is None else [patched])]
    known = [state.revisions[name] for name in named if name in state.revisions]
    return tuple(sorted({one for revision in known for one in revision.subjects}))
