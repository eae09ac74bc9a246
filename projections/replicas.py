"""Which replicas there are and how far each is, and the rows of the outbox that none of them needs any more.

What is removed is marked first. A replica below the mark, an old copy or one that was not seen for long, makes the rows
up to there again from the events, so nothing depends on who has reported.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path

from msgspec import Struct

from ledger import parking
from ledger.clock import is_past, new_ulid
from ledger.errors import CorrigendaError
from ledger.outbox import effects
from ledger.sql import load
from ledger.store import QUERIES as LEDGER
from ledger.store import OutboxRow, Store
from ledger.verified import VerifiedLedger
from ledger.wire import Row, Write

QUERIES = load("projections")

SWEPT = "swept"
LIVE_DAYS = 7  # how long after its last report a replica's rows are kept, and how old rows may become
_PAGE_EVENTS = 500
_PAGE_POSITIONS = 50_000


class Swept(Struct, frozen=True, kw_only=True):
    """Up to which position the outbox was removed, how many rows that were, and how many replicas nobody has seen."""

    mark: int
    rows: int
    replicas: int


def report(store: Store, home: Path, *, incarnation: int, cursor: int) -> None:
    """Say how far the durable generation of a home is. It is no harm if that cannot be said."""
    try:
        store.write("report_replica", id=_identity(home), incarnation=incarnation, cursor=cursor)
    except (CorrigendaError, OSError):
        return


def next_rows(ledger: VerifiedLedger, *, after: int, until: int, limit: int) -> tuple[list[OutboxRow], int]:
    """Return the next rows of the outbox, those that were removed made again, and the position that they reach."""
    marked = Write(LEDGER["read_carried"], {"ledger": ledger.store.ledger, "task": SWEPT})
    # The mark is read after the rows: it is set before they go.
    rows, reached, (((mark,),),) = ledger.store.outbox_page_and(after=after, until=until, limit=limit, beside=[marked])
    if mark <= after:
        return rows, reached
    reached = min(mark, until, after + _PAGE_EVENTS)
    made = (one for entry in ledger.entries(after + 1, reached + 1) for one in effects(entry))
    return [(one.position, one.revision, one.effect, one.lineage) for one in made], reached


def swept_up_to(store: Store) -> int:
    """Return up to which position rows were removed, −1 if none ever were."""
    return store.count("read_carried", task=SWEPT)


def upcoming(ledger: VerifiedLedger, *, after: int, most: int) -> list[OutboxRow]:
    """Return the first rows above a position, about `most` of them, those that were removed made again."""
    found, until = list[OutboxRow](), ledger.walk.position
    while len(found) < most and after < until:
        rows, after = next_rows(ledger, after=after, until=until, limit=most)
        found += rows
    return found


def behind(store: Store, after: int) -> int:
    """Return how many rows there are above a position, those that were removed included."""
    mark = swept_up_to(store)
    return store.count("count_outbox", after=max(mark, after)) + _removed_above(store, after, mark)


def counting(store: Store, positions: Iterable[int]) -> Write:
    """Return what asks, beside whatever else is read, for what `counted` then tells."""
    params = {"ledger": store.ledger, "swept": SWEPT, "positions": sorted(set(positions))}
    return Write(QUERIES["count_behind"], params)


def counted(rows: Sequence[Row]) -> dict[int, int]:
    """Return how many rows lie `behind` each position that was asked about, but where some of those were removed."""
    return {position: count for position, count, mark in rows if mark <= position}


def waiting(store: Store, signature: str | None, after: int) -> tuple[int, int]:
    """Return what `parking.waiting` does, with the rows that were removed and are made again for who needs them."""
    mark = swept_up_to(store)
    pending, parked = parking.waiting(store, signature, after, rows_after=max(mark, after))
    return pending + _removed_above(store, after, mark, signature=signature, only_open=True), parked


def sweep(store: Store, *, dry_run: bool, until: float | None = None) -> Swept:
    """Remove the outbox rows that every live replica has carried, or that are old; and replicas that nobody has seen.

    No page of rows is begun after the moment `until` of the monotonic clock: what is left is a later sweep's.
    `store` is the owner's, or that of a member of corrigenda_maintainer. Errors: FORBIDDEN_ACTOR.
    """
    with store.transaction() as connection:
        connection.execute(QUERIES["as_maintainer"].encode())
        gen = store.head().gen
        ((found,),) = store.query(QUERIES["find_mark"], {"gen": gen, "swept": SWEPT, "days": LIVE_DAYS})
        before = swept_up_to(store)
        mark = max(int(found), before)
        if dry_run:
            return Swept(mark=mark, rows=_rows_up_to(store, mark), replicas=_unseen(store, "count_unseen"))
        store.write("mark_carried", task=SWEPT, seq=mark)
    starts = takewhile(lambda _: not is_past(until), range(0, mark + 1, _PAGE_POSITIONS))
    rows = sum(_removed(store, first, min(first + _PAGE_POSITIONS - 1, mark)) for first in starts)
    with store.transaction() as connection:
        connection.execute(QUERIES["as_maintainer"].encode())
        return Swept(mark=mark, rows=rows, replicas=_unseen(store, "delete_unseen"))


def _removed_above(
    store: Store, after: int, mark: int, *, signature: str | None = None, only_open: bool = False
) -> int:
    if mark <= after:
        return 0
    params = {"gen": store.head().gen, "after": after, "until": mark, "signature": signature, "only_open": only_open}
    ((rows,),) = store.query(QUERIES["count_swept"], params)
    return int(rows)


def _removed(store: Store, first: int, last: int) -> int:
    with store.transaction() as connection:
        connection.execute(QUERIES["as_maintainer"].encode())
        ((rows,),) = store.query(QUERIES["delete_outbox"], {"first": first, "last": last})
        return int(rows)


def _rows_up_to(store: Store, mark: int) -> int:
    ((rows,),) = store.query(QUERIES["count_outbox_until"], {"until": mark})
    return int(rows)


def _unseen(store: Store, query: str) -> int:
    ((replicas,),) = store.query(QUERIES[query], {"days": LIVE_DAYS})
    return int(replicas)


def _identity(home: Path) -> str:
    """Return the name of a home's replica, given to it at its first report."""
    path = home / "replica"
    try:
        return path.read_text(encoding="ascii").strip() or _named(path)
    except FileNotFoundError:
        return _named(path)


def _named(path: Path) -> str:
    name = new_ulid()
    path.write_text(f"{name}\n", encoding="ascii")
    return name
