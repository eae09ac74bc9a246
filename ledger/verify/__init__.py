"""One pass over everything that is stored, and a report of what is not as it was written (FORMAT.md §10).

Made to be believed when nothing else is: it reads the tables themselves, never through the walk, and bad data never
stops it. Each check reports its first bad position. `reading` is the pass; `pages` feeds it, `entries` looks at one
entry by itself, `course` at those that follow each other, `glance` at some of them together, `aside` remembers what
went before in constant memory, `beside` holds the anchor against it, and `resuming` says when the pass may begin at a
checkpoint. `sharing` lets a second process look at pages, as `stretch` has it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import psycopg

from ledger.chain import Envelope
from ledger.digest import LedgerKeys
from ledger.errors import failure
from ledger.store import Store
from ledger.verify.aside import Aside
from ledger.verify.report import CHAIN_BROKEN, CHECKPOINT_MISMATCH, CHECKS, NOT_VERIFIED, Check, Progress, Report

if TYPE_CHECKING:
    from ledger.anchor import Anchor, Unusable

__all__ = [
    "CHAIN_BROKEN", "CHECKPOINT_MISMATCH", "CHECKS", "NOT_VERIFIED", "Check", "Progress", "Report", "verify",
]  # fmt: skip


def verify(
    store: Store,
    keys: LedgerKeys | None,
    origin: str | None = None,
    *,
    anchor: "Anchor | Unusable | None" = None,
    first: int = 0,
    last: int | None = None,
    progress: Progress | None = None,
    checkpoint: bytes | None = None,
    since: bytes | None = None,
    witness: Callable[[Envelope], None] | None = None,
    processes: int | None = None,
) -> Report:
    """Check the ledger, or its positions `first` to `last` (both included), and report. Findings are never raised.

    Without `keys` no seal can be checked: exit 15, unless something else is broken. `origin` is event 0's when left
    out. `anchor` is the ledger's, or what is wrong with the one that was found. `progress` is told, after each page,
    how many events have been read and how many there are to read. `checkpoint` is a signed note: the ledger must bear
    it out, with the key of its own event 0. `since` is another, where reading may begin if the anchor bears it out;
    else everything is read, and the report says why. `witness` is handed each envelope that is read, in order, for
    whoever has a use of its own for it. A long ledger without a witness is read by two processes, where there are two
    processors; `processes` says how many. Errors: VALIDATION_FAILED (no such range, or a checkpoint for a part of the
    ledger), UNAVAILABLE (the database does not answer, or there is no room for a temporary file).
    """
    from ledger.verify.verification import Verification, Wish  # the second process looks at pages, and needs none of it

    wish = Wish(first, last, progress, checkpoint, since, witness, processes)
    try:
        with Aside() as aside:
            return Verification(store, keys, origin, anchor, wish, aside).run()
    except psycopg.Error as error:
        said = " ".join(str(error).split())[:300]
        raise failure(
            "UNAVAILABLE",
            f"The ledger was to be read for checking, and the database refused ({said}). Nothing can be said about it "
            "until the database answers.",
        ) from error
