"""Which decision belongs to which command of a lineage."""

from collections.abc import Sequence

from ledger.decider import Command, Decider
from ledger.memories import beginning, disputing, linking, mending, withdrawing
from ledger.memories.commands import (
    Admit,
    Contest,
    Correct,
    Forget,
    Invalidate,
    Patch,
    Promote,
    Publish,
    Reject,
    Remember,
    Restore,
    Retire,
    Revoke,
    StateLink,
    Supersede,
    WithdrawLink,
)
from ledger.memories.folding import evolve
from ledger.memories.state import LineageState
from ledger.message import Event


def decide(state: LineageState, command: Command) -> Sequence[Event]:
    """Return the events that a command makes of a lineage, or refuse it."""
    match command:
        case Patch():
            return mending.patch(state, command)
        case _:
            return [_decide(state, command)]


def _decide(state: LineageState, command: Command) -> Event:
    match command:
        case Remember():
            return beginning.remember(state, command)
        case Publish():
            return beginning.publish(state, command)
        case Correct():
            return beginning.correct(state, command)
        case Supersede():
            return beginning.supersede(state, command)
        case Forget():
            return withdrawing.forget(state, command)
        case Retire():
            return withdrawing.retire(state, command)
        case Invalidate():
            return withdrawing.invalidate(state, command)
        case Revoke():
            return withdrawing.revoke(state, command)
        case Restore():
            return withdrawing.restore(state, command)
        case Contest():
            return disputing.contest(state, command)
        case Promote():
            return disputing.promote(state, command)
        case Reject():
            return disputing.reject(state, command)
        case Admit():
            return mending.admit(state, command)
        case WithdrawLink():
            return linking.withdraw_link(state, command)
        case StateLink():
            return linking.state_link(state, command)
        case _:
            raise TypeError(f"{type(command).__name__} is no command of a lineage")


LINEAGE: Decider[Command, Event, LineageState] = Decider(LineageState(), decide, evolve)
