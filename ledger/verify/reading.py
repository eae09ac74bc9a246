"""The pass itself: the course of the entries, and beside it the tree, the anchor and what is kept of streams.

What it reads comes as pages, in order, or as stretches that were checked elsewhere and still have to join.
"""

from collections.abc import Callable, Sequence

from ledger import codec
from ledger.chain import Envelope
from ledger.checkpoints import Watch
from ledger.erasure import Erasures
from ledger.verify.aside import Aside, Part, Request
from ledger.verify.beside import Beside
from ledger.verify.course import Course, Start
from ledger.verify.entries import Ledger
from ledger.verify.pages import Page
from ledger.verify.report import Findings
from ledger.verify.stretch import Stretch

_LEAF_BYTES = 32


class Reading(Course):
    """One pass over the entries from `start` on."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        start: Start,
        findings: Findings,
        aside: Aside,
        beside: Beside,
        watches: list[Watch],
        witness: Callable[[Envelope], None] | None = None,
    ) -> None:
        super().__init__(ledger, start=start, findings=findings, witness=witness)
        self.start = start
        self.tree = start.tree
        self.erasures = Erasures()
        self.requests_below = 0  # those that the anchor should hold
        self._aside = aside
        self._beside = beside
        self._watches = watches

    def take(self, page: Page) -> None:
        """Check a page, and make it what the next one has to follow."""
        leaves = self.look(page)
        for position in self.absent:
            self.erasures.miss(position)
        for envelope in self.erasing:
            self.erasures.see(envelope)
        self._put([row[0] for row in page.rows], leaves, self.parts, self.requests)
        self.parts, self.requests, self.absent, self.erasing = {}, [], [], []

    def join(self, stretch: Stretch) -> bool:
        """Take over a stretch if it follows; if not, or if that cannot be said, return False: its page has to be taken.

        What was checked in the stretch is what `take` checks of a page, but for what comes before its first entry.
        """
        opening = codec.scan_envelope(stretch.opening)
        if not self.is_followed_by(opening):
            return False
        self._follow_time(opening.at, stretch.first)
        self.clock_back = stretch.clock_back if self.clock_back is None else self.clock_back
        self.clock_backs += stretch.clock_backs
        count = stretch.last - stretch.first + 1
        self.events, self.next, self.last = self.events + count, stretch.last + 1, stretch.last
        self.seals_seen += count
        self.previous, self._suspect, self.at = stretch.previous, None, stretch.at
        self.append, self.append_left = stretch.append, stretch.append_left
        for position in stretch.absent:
            self.erasures.miss(position)
        for raw in stretch.erasing:
            self.erasures.see(codec.scan_envelope(raw))
        leaves = [stretch.leaves[at : at + _LEAF_BYTES] for at in range(0, len(stretch.leaves), _LEAF_BYTES)]
        parts = {part.stream: part for part in stretch.parts}
        self._put(range(stretch.first, stretch.last + 1), leaves, parts, stretch.requests)
        return True

    def _put(
        self, positions: Sequence[int], leaves: list[bytes], parts: dict[str, Part], requests: list[Request]
    ) -> None:
        """Bring what was checked into the tree, before the anchor, and aside."""
        self._grow(leaves)
        self.requests_below += sum(request.position < self._beside.size for request in requests)
        self._beside.compare(positions, leaves)
        if self.first:
            self._beside.check_requests(requests)
        self._aside.keep(parts, requests)

    def _gap(self, seq: int) -> None:
        missing = self.next
        super()._gap(seq)
        self._beside.missing(missing)

    def _grow(self, leaves: list[bytes]) -> None:
        """Let the tree grow, and tell whoever waits for it to have a size."""
        grown = 0
        for watch in sorted(self._watches, key=lambda watch: watch.size):
            upto = watch.size - self.tree.size
            if 0 < upto <= len(leaves) - grown:
                self.tree.extend(leaves[grown : grown + upto])
                grown += upto
            if watch.size == self.tree.size:
                watch.reached(self.tree)
        self.tree.extend(leaves[grown:])

    def end(self) -> None:
        """Say what only shows when everything has been read."""
        if (repeated := self._aside.repeated()) is not None:
            self._bad("chain", repeated, "a request of its own", "one that was carried out before")
        for position, place, version, suspect in self._aside.breaks(whole=self.first == 0):
            blamed = position if suspect is None else suspect
            if place != version:
                self._bad("streams", blamed, f"entry {version} of the stream next", f"entry {place}")
            else:
                self._bad("streams", blamed, "an entry that the stream's next one links to", "another")

    def check_complete(self) -> None:
        """Say so if the last append is not there to its end; for a reading that went to the ledger's."""
        self._grow([])
        if self.append_left:
            self._bad("chain", self.next, "the rest of an append", "none")

    def clock(self) -> str | None:
        """Return what there is to say about the times of the entries: order is by position, so it is no failure."""
        if not self.clock_backs:
            return None
        more = f" and {self.clock_backs - 1} more" if self.clock_backs > 1 else ""
        return f"clock: back at position {self.clock_back}{more}"
