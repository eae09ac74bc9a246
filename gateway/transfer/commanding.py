"""The command that makes an event of a memory which needs no more than itself. Pure: a file's facts in, a wish out.

Facts that no event of their type can state are refused, in words that repeat nothing of the file.
"""

from ledger.decider import Command
from ledger.errors import refuse
from ledger.memories import (
    Contest,
    Contradiction,
    Invalidate,
    LearningInvalidated,
    MemoryRetired,
    MetadataPatch,
    MetadataPatched,
    Patch,
    Promote,
    Publish,
    Reject,
    Retire,
    RevisionContested,
    RevisionPromoted,
    RevisionPublished,
    RevisionRejected,
    RevisionRevoked,
    RevisionSuperseded,
    Revoke,
    Supersede,
)
from ledger.message import Facts, Move, Payload

CAUSES = ("person", "prune", "correction", "import")


def command_of(facts: Facts, payload: Payload | None, *, head: str | None) -> Command:
    """Return the command, for a memory with this head. Errors: INVALID_INPUT."""
    reason = reason_of(payload)
    match facts, payload:
        case RevisionPublished(), _:
            return Publish(revision=moved(facts, "active"), reason=reason)
        case RevisionSuperseded(), _:
            revision = moved(facts, "superseded")
            newer = tuple(edge.newer for edge in facts.edges if edge.older == revision)
            return Supersede(revision=revision, successors=newer, reason=reason)
        case MetadataPatched(), MetadataPatch():
            return Patch(revision=facts.revision, patch=payload)
        case MemoryRetired(), _:
            return Retire(revision=moved(facts, "retired"), cause=cause_of(facts.cause), reason=reason)
        case RevisionContested(), _:
            return _contest(facts, reason)
        case RevisionPromoted(), _:
            return Promote(revision=moved(facts, "active"), expected=head, reason=reason)
        case RevisionRejected(), _:
            return Reject(revision=moved(facts, "rejected"), reason=reason)
        case RevisionRevoked(), _:
            return Revoke(revision=first_move(facts.moves).revision, reason=reason)
        case LearningInvalidated(), Contradiction():
            return Invalidate(revision=moved(facts, "retired"), correction=facts.correction, contradiction=payload)
        case _:
            refuse("INVALID_INPUT", "An event is of a type that is not taken over.")


def moved(facts: Facts, state: str) -> str:
    """Return the revision that an event moved into a state. Errors: INVALID_INPUT (none)."""
    moves: tuple[Move, ...] = getattr(facts, "moves", ())
    found = next((move.revision for move in moves if move.after.state == state), None)
    if found is None:
        refuse("INVALID_INPUT", "An event was to change a revision, and names none that it changes so.")
    return found


def first_move(moves: tuple[Move, ...]) -> Move:
    """Return the first of an event's moves. Errors: INVALID_INPUT (none)."""
    if not moves:
        refuse("INVALID_INPUT", "An event was to change a revision, and names none.")
    return moves[0]


def last_move(moves: tuple[Move, ...]) -> Move:
    """Return the last of an event's moves. Errors: INVALID_INPUT (none)."""
    first_move(moves)
    return moves[-1]


def cause_of(cause: str) -> str:
    """Return for what a revision was withdrawn. Errors: INVALID_INPUT (for nothing that there is)."""
    if cause not in CAUSES:
        refuse("INVALID_INPUT", "A revision was withdrawn for a cause that there is not.")
    return cause


def reason_of(payload: Payload | None) -> str | None:
    """Return the reason that an event gives."""
    return getattr(payload, "reason", None)


def _contest(facts: RevisionContested, reason: str | None) -> Contest:
    edges = [edge for edge in facts.edges if edge.kind == "conflicts"]
    if not edges:
        refuse("INVALID_INPUT", "A contradiction is told without the two revisions that contradict each other.")
    pair = edges[0].newer, edges[0].older
    second = facts.moves[0].revision if len(facts.moves) == 2 and facts.moves[0].revision in pair else pair[0]
    return Contest(first_revision=pair[1] if second == pair[0] else pair[0], second_revision=second, reason=reason)
