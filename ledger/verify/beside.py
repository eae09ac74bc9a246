"""The anchor held against the entries, while they are read and when all have been.

The anchor is read before the head row: only so does a head below it mean that something was lost. What it says of one
position is believed as far as it goes: its leaf is the entry's, or one of the two is not what was written.
"""

from collections.abc import Sequence

from ledger.anchor import Anchor, Unusable
from ledger.checkpoints import Watch
from ledger.tree import Frontier
from ledger.verify.aside import Request
from ledger.verify.report import Check, Findings

NO_ANCHOR = "there is no anchor yet, so nothing outside the database shows what was removed: it is trust on first use"
REQUEST_BYTES = 32


class Beside:
    """One ledger's anchor during one verification; what was found in its place is Unusable, or None for nothing."""

    def __init__(self, anchor: Anchor | Unusable | None, findings: Findings) -> None:
        self.size = 0
        self.trust = ""
        self.note: bytes | None = None
        self._findings = findings
        self._anchor = anchor if isinstance(anchor, Anchor) else None
        self._fault = anchor if isinstance(anchor, Unusable) else None
        self._below = 0
        if self._anchor is not None:
            try:
                state = self._anchor.state()
                self.size, self.trust = state.size, state.trust
                self.note = self._anchor.note()
            except Unusable as fault:
                self.lose(fault)

    @property
    def anchor(self) -> Anchor | None:
        """Return the anchor while it can be used."""
        return self._anchor

    def compare(self, positions: Sequence[int], leaves: Sequence[bytes]) -> None:
        """Hold the leaves of the entries at some positions, in their order, against the anchor's."""
        if self._anchor is None or not positions or positions[0] >= self.size:
            return
        first = positions[0]
        below = leaves[: self.size - first]
        unbroken = positions[-1] == first + len(positions) - 1
        try:
            if unbroken and self._anchor.leaves(first, len(below)) == b"".join(below):
                return
            for position, leaf in zip(positions, leaves, strict=True):
                if position < self.size and self._anchor.leaves(position, 1) != leaf:
                    self._findings.bad("anchor", position, "the entry whose leaf the anchor holds", "another")
                    return
        except Unusable as fault:
            self.lose(fault)

    def missing(self, position: int) -> None:
        """Take note that the ledger has nothing at a position."""
        if position < self.size:
            self._findings.bad("anchor", position, "the entry whose leaf the anchor holds", "none")

    def check_head(self, size: int) -> None:
        """Hold the ledger's size, as its head row states it, against the anchor's."""
        if size < self.size:
            expected = f"{self.size} entries at least, as the anchor holds"
            self._findings.bad("anchor", size, expected, f"{size}: the ledger was cut, or an old copy was put back")

    def check_sums(self, requests: int) -> None:
        """Hold what the anchor says of streams and requests together against what was read."""
        if self._anchor is None:
            return
        try:
            size, held = self._anchor.requests_held()
        except Unusable as fault:
            self.lose(fault)
            return
        if size == self.size and held != requests:
            self._findings.bad("anchor", size - 1, f"{requests} requests in the anchor, as in the entries", f"{held}")

    def check_requests(self, requests: Sequence[Request]) -> None:
        """Find requests of entries just read that were carried out before anything was read."""
        if self._anchor is None:
            return
        asked = {record.request.hex(): record.position for record in requests if len(record.request) == REQUEST_BYTES}
        try:
            _, known = self._anchor.known((), asked)
        except Unusable as fault:
            self.lose(fault)
            return
        for request, position in known.items():
            if position < asked[request]:
                self._findings.bad("chain", asked[request], "a request of its own", "one that was carried out before")

    def show(self, watch: Watch) -> None:
        """Tell a checkpoint the root of its size, for entries that are not read."""
        if self._anchor is not None and watch.size <= self.size:
            try:
                watch.reached(Frontier(watch.size, self._anchor.peaks(watch.size)))
            except Unusable as fault:
                self.lose(fault)

    def tail(self, size: int) -> int:
        """Return how many of a ledger's last entries the anchor does not hold now."""
        if self._anchor is None:
            return size
        try:
            return max(0, size - max(self.size, self._anchor.state().size))
        except Unusable as fault:
            self.lose(fault)
            return size

    def check(self, limits: str | None) -> Check:
        """Return what the anchor's check comes to, if nothing was found against it."""
        if self._fault is not None:
            if self._fault.passing:
                return Check(status="failed", why=f"the anchor {self._fault}, so nothing was held against it")
            return Check(status="failed", expected="an anchor that can be trusted", found=f"one that {self._fault}")
        if self._anchor is None:
            return Check(status="skipped", why=NO_ANCHOR)
        parts = [limits, _FIRST_USE if self.trust == "first_use" else None, self._anchor.borrowed]
        return Check(status="ok", why="; ".join(part for part in parts if part) or None)

    def lose(self, fault: Unusable) -> None:
        """Go on without the anchor, and say so at the end."""
        self._anchor, self._fault, self.size = None, fault, 0


_FIRST_USE = "the anchor was built from what the database held when there was none: it shows nothing of what was before"
