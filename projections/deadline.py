"""An embedder with a deadline: whoever waits for it stops waiting, whether it answers or not.

What comes too late is dropped. While a call hangs, no other one is begun, so that no threads pile up behind it.
"""

import contextvars
import threading
import time
from collections.abc import Sequence
from typing import NoReturn

from ledger.errors import refuse
from projections.embedders import Embedder, Vectors

TOO_SLOW = "too_slow"


class _Call:
    """One call, and what has come of it."""

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        self._embedder = embedder
        self._texts = texts
        self.answer: Vectors | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        """Make the call, in a thread of its own."""
        try:
            self.answer = self._embedder.embed(self._texts)
        except Exception as error:  # whatever it is, it is the waiting caller's
            self.error = error


class Deadline:
    """Asks one embedder, until a moment of the monotonic clock."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._hanging: threading.Thread | None = None

    def embed(self, texts: Sequence[str], until: float | None) -> Vectors:
        """Return the embedder's answer, or raise what it raised; EMBEDDER_UNAVAILABLE after `until`, if that is given.

        The error's `reason` is then `too_slow`.
        """
        if until is None:
            return self._embedder.embed(texts)
        if self._hanging is not None and self._hanging.is_alive():
            _too_slow()
        call = _Call(self._embedder, texts)
        # The caller's own bound, which a far embedder keeps to by itself, holds in that thread too.
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(call.run,), name="corrigenda-embed", daemon=True)
        thread.start()
        thread.join(max(until - time.monotonic(), 0.0))
        self._hanging = thread if thread.is_alive() else None
        if call.error is not None:
            raise call.error
        if call.answer is None:
            _too_slow()
        return call.answer


def _too_slow() -> NoReturn:
    refuse(
        "EMBEDDER_UNAVAILABLE",
        "The embedder was expected to answer in time, and has not answered yet. What waits for it stays in the outbox; "
        "check the embedder, then try again.",
        reason=TOO_SLOW,
    )
