"""How a revision is withdrawn, and how that is undone, the latest withdrawal first."""

from ledger.errors import refuse
from ledger.memories.commands import Forget, Invalidate, Restore, Retire, Revoke
from ledger.memories.facts import (
    LearningInvalidated,
    MemoryForgotten,
    MemoryRestored,
    MemoryRetired,
    RevisionRevoked,
)
from ledger.memories.rules import known, left_by, live, moved, present, refuse_state, standing
from ledger.memories.state import LineageState, Withdrawal
from ledger.message import HEADLESS, Event, Reason, Values


def retire(state: LineageState, command: Retire) -> Event:
    old = live(state, command.revision, "retired")
    moves = (moved(old, Values("retired", old.values.trust, old.values.floor)),)
    facts = MemoryRetired(cause=command.cause, moves=moves, standing=HEADLESS)
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def revoke(state: LineageState, command: Revoke) -> Event:
    """Withdraw trust from a revision in whatever state, unless nobody relies on it any more."""
    old = present(state, command.revision, "revoked", restorable=("forgotten", "erased"))
    if old.values.state == "rejected":
        refuse_state(old, "What was rejected was never relied on, so there is no trust to revoke.")
    if old.values.trust == "revoked":
        refuse("MEMORY_REVOKED", "This revision is revoked already.", revision_id=command.revision)
    facts = RevisionRevoked(
        moves=(moved(old, Values(old.values.state, "revoked", old.values.floor)),),
        standing=left_by(state, command.revision),
    )
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def forget(state: LineageState, command: Forget) -> Event:
    """Withdraw a revision from view, whatever its state. Its predecessor does not become the head for it."""
    old = present(state, command.revision, "forgotten", restorable=("forgotten", "erased"))
    facts = MemoryForgotten(
        cause=command.cause,
        moves=(moved(old, Values("forgotten", old.values.trust, old.values.floor)),),
        standing=left_by(state, command.revision),
    )
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def restore(state: LineageState, command: Restore) -> Event:
    old = known(state, command.revision)
    if not old.withdrawals:
        refuse_state(old, "Nothing was withdrawn of this revision, so there is nothing to restore.")
    undone = old.withdrawals[-1]
    back = _before(old.values, undone)
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


def _before(values: Values, undone: Withdrawal) -> Values:
    """Return what a revision's values become when a withdrawal is undone.

    A revocation took trust alone, and what was rejected meanwhile stays so.
    """
    state = values.state if undone.act == "revoke" else undone.before.state
    return Values(state, undone.before.trust, values.floor)


def invalidate(state: LineageState, command: Invalidate) -> Event:
    """Retire an unverified learning that a correction contradicts."""
    old = live(state, command.revision, "invalidated")
    if (old.kind, old.values.trust) != ("learning", "unverified"):
        refuse_state(
            old, f"Only an unverified learning can be invalidated, and this is a {old.values.trust} {old.kind}."
        )
    facts = LearningInvalidated(
        correction=command.correction,
        moves=(moved(old, Values("retired", old.values.trust, old.values.floor)),),
        standing=HEADLESS,
    )
    return Event(facts=facts, payload=command.contradiction, position=command.first)
