"""Start-up recovery by hand: carry what an interruption left in the outbox, keep it, and say what was done."""

from collections.abc import Callable

from msgspec import Struct

from projections.relay import Relay

GOOD = "the newest generation of the index is good"


class Recovered(Struct, frozen=True, kw_only=True):
    """What a recovery found and did. `action` is none, replayed or rebuilt.

    `settled` counts effects that had failed before, and are in now or not wanted any more.
    """

    replayed: int
    skipped: int
    pending: int
    settled: int = 0
    action: str
    why: str


def recover(
    relay: Relay, *, check_only: bool, outbox: bool = True, progress: Callable[[int, int], None] | None = None
) -> Recovered:
    """Bring the replica to the walk's head and make it durable; with `check_only`, only count what that would take.

    What an embedder fails on is tried until it is in or parked. Without `outbox` a good generation is left as it is:
    only one that cannot be used is made anew.
    """
    if relay.embedder is None:
        return Recovered(replayed=0, skipped=0, pending=0, action="none", why="there is no embedder, so no index")
    if check_only:
        waiting = relay.look()
        return Recovered(replayed=0, skipped=0, pending=waiting, action="none", why=f"waiting effects: {waiting}")
    relay.open()
    began = relay.cursor
    if not outbox and began >= 0:
        return Recovered(replayed=0, skipped=0, pending=relay.pending(), action="none", why=relay.opened_with or GOOD)
    drained = relay.drain(progress=progress, exhaust=True)
    relay.keep()
    if drained.carried == 0:
        why = "the index was at the ledger's head"
        return Recovered(replayed=0, skipped=0, pending=0, settled=drained.settled, action="none", why=why)
    return Recovered(
        replayed=drained.carried,
        skipped=drained.skipped,
        pending=drained.pending,
        settled=drained.settled,
        action="replayed" if began >= 0 else "rebuilt",
        why=relay.opened_with,
    )


def untouched(relay: Relay) -> Recovered:
    """Return what is said of an index that a recovery was not asked about."""
    return Recovered(replayed=0, skipped=0, pending=relay.look(), action="none", why="it was not asked for")
