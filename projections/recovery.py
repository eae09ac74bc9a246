"""Start-up recovery by hand: carry what an interruption left in the outbox, hold the index against the ledger, mend it.

The outbox says what is new, and a row that is lost says nothing: only the comparison shows what an index lacks.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from msgspec import Struct

from ledger.verified import VerifiedLedger
from projections.comparing import Compared, Comparison
from projections.probing import Probed, probe
from projections.relay import Drained, Relay

Progress = Callable[[int, int], None]
GOOD = "the newest generation of the index is good"


class Recovered(Struct, frozen=True, kw_only=True):
    """What a recovery found and did. `action` is none, replayed or rebuilt.

    `repaired` counts entries that were not what the ledger says, and effects that had failed and are settled now.
    """

    replayed: int
    skipped: int
    pending: int
    repaired: int
    action: str
    why: str


class Examined(Struct, frozen=True, kw_only=True):
    """An index replica as it was compared: up to which position it was carried, what was found, what probes showed."""

    cursor: int
    entries: int
    compared: Compared
    probed: Probed


def recover(
    ledger: VerifiedLedger,
    relay: Relay,
    *,
    alone: AbstractContextManager[object],
    check_only: bool,
    outbox: bool = True,
    progress: Progress | None = None,
) -> Recovered:
    """Bring the replica to the walk's head, mend it and make it durable; with `check_only`, say what that would take.

    What an embedder fails on is tried until it is in or parked. Without `outbox` a good generation is mended where it
    is, and only one that cannot be used is made anew. `alone` is the ledger's lock; while the index is compared, it is
    taken for one batch at a time.
    """
    with alone:
        ledger.catch_up()
        if relay.embedder is None:
            return _nothing("there is no embedder, so no index")
    if check_only:
        return _only_looked(ledger, relay, alone)
    with alone:
        relay.open()
        began, why = relay.cursor, relay.opened_with
        drained = relay.drain(progress=progress, exhaust=True) if outbox or began < 0 else _left(relay)
        relay.keep()
    repaired = drained.settled + _mend(ledger, relay, alone)
    if drained.carried == 0 and repaired == 0:
        return _nothing("the index was at the ledger's head" if drained.pending == 0 else why or GOOD, drained.pending)
    return Recovered(
        replayed=drained.carried,
        skipped=drained.skipped,
        pending=drained.pending,
        repaired=repaired,
        action="rebuilt" if began < 0 else "replayed" if drained.carried else "none",
        why=why or (_mended(repaired) if repaired else ""),
    )


def untouched() -> Recovered:
    """Return what is said of an index that a recovery was not asked about, and did not look at."""
    return _nothing("it was not asked for")


def _left(relay: Relay) -> Drained:
    return Drained(0, 0, relay.pending())


def _mend(ledger: VerifiedLedger, relay: Relay, alone: AbstractContextManager[object]) -> int:
    """Compare the replica, put it right, and keep it if that changed it; return how many entries were not right."""
    found = examine(ledger, relay, alone=alone, repair=True)
    repaired = 0 if found is None else found.compared.repaired
    if repaired:
        with alone:
            relay.changed()
            relay.keep()
    return repaired


def examine(
    ledger: VerifiedLedger,
    relay: Relay,
    *,
    alone: AbstractContextManager[object],
    repair: bool = False,
    progress: Progress | None = None,
) -> Examined | None:
    """Compare the replica with the ledger, both ways, and probe it; None if there is no embedder or it is frozen.

    Without `repair` nothing changes: a replica that is not open is read from its newest good generation.
    """
    with alone:
        ledger.catch_up()
        peeked, embedder = relay.peeked(), relay.named
        if peeked is None or embedder is None or (repair and relay.frozen):
            return None
        index, cursor = peeked
        live = relay.replica is index
        comparison = Comparison(
            ledger, embedder, index, lambda: relay.cursor if live else cursor, repair=repair and live
        )
    more = True
    while more:
        with alone:
            more = comparison.step()
        if progress is not None:
            progress(comparison.done, comparison.total)
    with alone:
        return Examined(
            cursor=relay.cursor if live else cursor,
            entries=len(index),
            compared=comparison.result(),
            probed=probe(ledger, embedder, index),
        )


def sound_out(ledger: VerifiedLedger, relay: Relay, *, alone: AbstractContextManager[object]) -> Probed | None:
    """Probe the replica, or the newest good generation, and change nothing; None if there is no embedder."""
    with alone:
        ledger.catch_up()
        peeked, embedder = relay.peeked(), relay.named
        return None if peeked is None or embedder is None else probe(ledger, embedder, peeked[0])


def _only_looked(ledger: VerifiedLedger, relay: Relay, alone: AbstractContextManager[object]) -> Recovered:
    with alone:
        waiting = relay.look()
    found = examine(ledger, relay, alone=alone)
    wrong = 0 if found is None else found.compared.drifted
    return _nothing(f"waiting effects: {waiting}" + (f"; entries to repair: {wrong}" if wrong else ""), waiting)


def _nothing(why: str, pending: int = 0) -> Recovered:
    return Recovered(replayed=0, skipped=0, pending=pending, repaired=0, action="none", why=why)


def _mended(repaired: int) -> str:
    return f"{repaired} entries were not what the ledger says, and were put right"
