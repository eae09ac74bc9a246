"""Start-up recovery by hand: carry what an interruption left in the outbox, keep it, and say what was done."""

from collections.abc import Callable

from msgspec import Struct

from projections.relay import Relay


class Recovered(Struct, frozen=True, kw_only=True):
    """What a recovery found and did. `action` is none, replayed or rebuilt."""

    replayed: int
    skipped: int
    pending: int
    action: str
    why: str


def recover(relay: Relay, *, check_only: bool, progress: Callable[[int, int], None] | None = None) -> Recovered:
    """Bring the replica to the walk's head and make it durable; with `check_only`, only count what that would take."""
    if relay.embedder is None:
        return Recovered(replayed=0, skipped=0, pending=0, action="none", why="there is no embedder, so no index")
    if check_only:
        waiting = relay.look()
        return Recovered(replayed=0, skipped=0, pending=waiting, action="none", why=f"waiting effects: {waiting}")
    relay.open()
    began = relay.cursor
    drained = relay.drain(progress=progress)
    relay.keep()
    if drained.carried == 0:
        return Recovered(replayed=0, skipped=0, pending=0, action="none", why="the index was at the ledger's head")
    action = "replayed" if began >= 0 else "rebuilt"
    return Recovered(
        replayed=drained.carried, skipped=drained.skipped, pending=drained.pending, action=action, why=relay.opened_with
    )
