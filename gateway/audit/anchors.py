"""The anchor as it is found beside a ledger, never believed without a look; and made anew from a checkpoint only.

What cannot be used is given as what is wrong with it, so that a verification can report that, too.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from gateway.embedded import locate
from gateway.settings import Settings
from ledger import notes
from ledger.anchor import Anchor, Unusable
from ledger.anchor_file import is_there
from ledger.codec import NotCanonical, decode_envelope
from ledger.opening import anchor_path, check_not_lost, kept_anchor
from ledger.store import Store
from ledger.verified import VerifiedLedger
from ledger.walk import Told


def check_server(settings: Settings) -> None:
    """Refuse with INTEGRITY_BROKEN (exit 11) to go on without the embedded server's data where an anchor was kept."""
    if settings.database_url is None and locate(settings.home) is None:
        check_not_lost(kept_anchor(settings.anchors))


@contextmanager
def found(store: Store, folder: Path) -> Generator[Anchor | Unusable | None]:
    """Hold the ledger's anchor open: None where there is none, Unusable where it cannot be trusted or read."""
    anchor = _look(store, anchor_path(folder, store.ledger))
    try:
        yield anchor
    finally:
        if isinstance(anchor, Anchor):
            anchor.close()


def pin(ledger: VerifiedLedger, note: bytes) -> bool:
    """Let trust in a ledger's anchor begin with a checkpoint, whose signature was checked; report whether it does.

    It does if the anchor, followed to the ledger's head, has the checkpoint's root at its size. One that was kept since
    the ledger's opening is left as it is: that says more.
    """
    ledger.catch_up()
    anchor, claim = ledger.walk.anchor, notes.parse_checkpoint(notes.parse_note(note).text)
    with Told(anchor):
        state = anchor.state()
        if state.trust != "first_use" or claim.size > state.size or anchor.root(claim.size) != claim.root:
            return False
        anchor.trust("checkpoint")
    return True


def _look(store: Store, path: Path) -> Anchor | Unusable | None:
    try:
        if not is_there(path):
            return None
        return Anchor.open(path, ledger=store.ledger, origin=_origin(store))
    except Unusable as fault:
        return Unusable(f"at {path} {fault}", passing=fault.passing)
    except OSError as error:
        return Unusable(f"at {path} cannot be read: {error.strerror}", passing=True)


def _origin(store: Store) -> str:
    """Return the origin that the first event names; if it says nothing, the ledger is not the anchor's either."""
    with suppress(NotCanonical, psycopg.Error):  # tables that are gone are for the verification to find
        for stored in store.after(-1, 1):
            return decode_envelope(stored.envelope).log
    return ""
