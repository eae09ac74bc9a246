"""How a revision is withdrawn, and how that is undone, the latest withdrawal first."""

from ledger.errors import refuse
from ledger.memories.commands import Forget, Invalidate, Restore, Retire, Revoke
from ledger.memories.facts import MemoryRestored, MemoryRetired, RevisionRevoked
from ledger.memories.rules import allowed, known, live, moved, standing
from ledger.memories.state import LineageState
from ledger.message import HEADLESS, Event, Reason, Values


def retire(state: LineageState, command: Retire) -> Event:
    old = live(state, command.revision, "retired")
    moves = (moved(old, Values("retired", old.values.trust, old.values.floor)),)
    facts = MemoryRetired(cause=command.cause, moves=moves, standing=HEADLESS)
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def revoke(state: LineageState, command: Revoke) -> Event:
    old = known(state, command.revision)
    if old.values.trust == "revoked":
        refuse("MEMORY_REVOKED", "This revision is revoked already.", revision_id=command.revision)
    moves = (moved(old, Values(old.values.state, "revoked", old.values.floor)),)
    left = HEADLESS if state.head == command.revision else state.standing
    return Event(
        facts=RevisionRevoked(moves=moves, standing=left),
        payload=Reason(reason=command.reason),
        position=command.first,
    )


def restore(state: LineageState, command: Restore) -> Event:
    old = known(state, command.revision)
    if not old.withdrawals:
        refuse(
            "INVALID_TRANSITION",
            "Nothing was withdrawn of this revision, so there is nothing to restore.",
            state=old.values.state,
            allowed=allowed(old),
        )
    undone = old.withdrawals[-1]
    back = Values(undone.before.state, undone.before.trust, old.values.floor)
    left = state.standing
    if back.is_live:
        if state.head is not None:
            refuse(
                "EXPECTED_ACTIVE_MISMATCH",
                f"Restoring this revision would give its memory a second head beside {state.head}. Retire that first.",
                head=state.head,
            )
        left = standing(old.revision, old.content_seq, old.meta_seq, back)
    facts = MemoryRestored(moves=(moved(old, back),), standing=left, undoes=undone.position)
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def forget(state: LineageState, command: Forget) -> Event:
    """Withdraw a revision from view, whatever its state."""
    raise NotImplementedError


def invalidate(state: LineageState, command: Invalidate) -> Event:
    """Retire an unverified learning that a correction contradicts."""
    raise NotImplementedError
