"""Sweeping by itself: on the embedded server there is nobody else whose task it could be.

Whoever opens a ledger to use it removes, once a day, what `traces sweep` and `outbox sweep` would: for a quarter of a
second, and what is left then goes at the next opening. It must never keep anybody from opening a ledger.
"""

import logging
import os
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path

import psycopg

from gateway.traces import sweeping
from ledger.errors import CorrigendaError
from ledger.store import Database, Store
from ledger.verified import VerifiedLedger
from projections import replicas

EVERY_S = 24 * 60 * 60
BUDGET_S = 0.25

_log = logging.getLogger(__name__)


def tidy(ledger: VerifiedLedger, owner_url: str, home: Path, *, now: datetime) -> bool:
    """Sweep, as the owner, unless that was done within a day before `now`; report whether all is swept.

    The caller has caught up with the ledger. What goes wrong is said in the log, and tried again a day later.
    """
    mark = home / "swept" / ledger.store.ledger
    try:
        if not _is_due(mark, now):
            return True
        _touch(mark, now)  # before it begins: of several that are opened at once, one sweeps
        if _sweep(ledger, owner_url, now):
            return True
        mark.unlink(missing_ok=True)
    except (CorrigendaError, psycopg.Error, OSError) as error:
        _log.warning("not swept: %s", error.code if isinstance(error, CorrigendaError) else type(error).__name__)
    return False


def _sweep(ledger: VerifiedLedger, owner_url: str, now: datetime) -> bool:
    until = time.monotonic() + BUDGET_S
    with closing(Database(owner_url)) as database:
        store = Store(database, ledger.store.ledger)
        traces = sweeping.sweep(ledger, store, now=now, dry_run=False, until=until)
        rows = replicas.sweep(store, dry_run=False, until=until).rows
    _log.info("swept", extra={"traces": traces, "outbox_rows": rows})
    return time.monotonic() < until


def _is_due(mark: Path, now: datetime) -> bool:
    try:
        return abs(now.timestamp() - mark.stat().st_mtime) >= EVERY_S  # a clock may have been put back
    except FileNotFoundError:
        return True


def _touch(mark: Path, now: datetime) -> None:
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    os.utime(mark, (now.timestamp(), now.timestamp()))
