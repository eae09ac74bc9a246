"""The index anew by the configured embedder, beside the live one, and then in its place.

Until the swap the live generation serves as before, and whatever is embedded meanwhile is stored: an interrupted run,
or a second one, asks the embedder for no text whose vector is there. It never touches the vectors of another embedder,
so going back is another run that embeds next to nothing.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from msgspec import Struct

from ledger.errors import refuse
from ledger.verified import VerifiedLedger
from projections.embedders import Embedder, Vectors
from projections.relay import Relay

TURN_WAIT_S = 10.0
_TURN_POLL_S = 0.1


class Reembedded(Struct, frozen=True, kw_only=True):
    """What was put in place of what: signatures, items in the new generation, texts that had to be embedded."""

    signature: str
    signature_before: str | None
    items: int
    embedded: int
    parked: int
    position: int


class _Counted:
    """An embedder that counts what it is asked for."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.signature = inner.signature
        self.dimension = inner.dimension
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return what the inner embedder makes."""
        made = self._inner.embed(texts)
        self.texts += len(texts)
        return made


def reembed(
    ledger: VerifiedLedger,
    relay: Relay,
    *,
    alone: Callable[[], AbstractContextManager[object]],
    progress: Callable[[int, int], None] | None = None,
) -> Reembedded:
    """Build a generation by the configured embedder from what stands, and make it the live one and the replica's.

    `alone` gives the lock, which is held for a page of effects at a time; `progress` is told how many are carried, and
    how many there are. Errors: EMBEDDER_UNAVAILABLE (none is configured, or it does not answer: the live generation
    stays, and what was embedded is kept), INDEX_UNAVAILABLE (it cannot be written, or another process does not stop
    writing).
    """
    with alone():
        counted = _Counted(_configured(relay))
        before, beside = relay.live_signature(), relay.beside(counted)
        ledger.catch_up()
        total = beside.pending()
    more = True
    while more:
        with alone():
            ledger.catch_up()
            more = beside.carry_page()
            left = beside.pending()
        if progress:
            progress(max(0, total - left), max(total, left))
    _swap(relay, beside, alone)
    with alone():
        parked = relay.parked()
    return Reembedded(
        signature=counted.signature,
        signature_before=before,
        items=len(relay),
        embedded=counted.texts,
        parked=parked,
        position=relay.cursor,
    )


def _configured(relay: Relay) -> Embedder:
    embedder = relay.embedder
    if embedder is None:
        refuse(
            "EMBEDDER_UNAVAILABLE",
            "An embedder is needed to embed anew, and none is configured. Set CORRIGENDA_EMBEDDER, then try again.",
            reason="none",
            retriable=False,
        )
    return embedder


def _swap(relay: Relay, beside: Relay, alone: Callable[[], AbstractContextManager[object]]) -> None:
    until = time.monotonic() + TURN_WAIT_S
    while True:
        with alone():
            if relay.take_over(beside):
                return
        if time.monotonic() > until:
            refuse(
                "INDEX_UNAVAILABLE",
                f"The new generation was expected to be published within {TURN_WAIT_S:g} s; another process is "
                "writing, or nothing can be written there. The live one stays. Run `corrigenda index reembed` again: "
                "nothing is embedded twice.",
                reason="busy",
            )
        time.sleep(_TURN_POLL_S)
