"""The one way to write: look the key up, decide on what is known, and let the committer store it if that still holds.

A decision is made without holding the ledger. The committer refuses it if a stream that it read has moved, and then it
is made again; a refusal is believed only at the ledger's present head, after the key was looked up there: a retry is
told what its first attempt did, even if by now the same wish would be refused. What changes nothing is believed like a
refusal, and stores nothing.
"""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from gateway.scope.names import Names
from gateway.scope.states import States
from gateway.shapes.replies.writes import Receipt
from gateway.writing.page import Append, Page
from gateway.writing.receipts import receipt, unchanged
from ledger.chain import broken
from ledger.clock import Clock, UlidMint
from ledger.codec import canonical
from ledger.committer import Committer
from ledger.errors import CorrigendaError, IntegrityError, UnavailableError, failure, refuse
from ledger.limits import APPEND_ATTEMPTS_MAX, CALL_PATIENCE_S
from ledger.sealing import Draft
from ledger.storing import Held
from ledger.verified import Recorded, VerifiedLedger
from ledger.waiting import Appended, Outcome, Replayed


class Wish(Struct, frozen=True, kw_only=True):
    """One command before it is decided: what it is called, who wants it, its request as given, and how to decide it.

    `warn` gives what its receipt warns of beside what every receipt does, also when it is told again.
    """

    operation: str
    actor: str
    request: Mapping[str, Any]  # Any: JSON
    key: str | None
    decide: Callable[[Append], None]
    dry_run: bool = False
    warn: Callable[[], Sequence[str]] = tuple


class _Keyed(Struct, frozen=True):
    """A wish with the digests of its idempotency key and of its request."""

    wish: Wish
    request: str
    fingerprint: str


class Writer:
    """Writes to one ledger. Its lock guards what decisions read; it is free while an append waits to be stored."""

    def __init__(
        self, ledger: VerifiedLedger, committer: Committer, names: Names, states: States, clock: Clock
    ) -> None:
        self.mint = UlidMint(clock)
        self.lock = threading.RLock()
        self._ledger = ledger
        self._committer = committer
        self._names = names
        self._states = states
        self._in_flight: set[str] = set()
        self.reached = -1  # the position up to which this process has written

    def write(self, wish: Wish) -> Receipt:
        """Carry out one wish: its receipt, or that of the same request's first time, or the refusal."""
        key = self.mint() if wish.key is None else wish.key
        keyed = _Keyed(
            wish,
            self._ledger.keys.request([wish.actor, wish.operation], key),
            self._ledger.keys.fingerprint(canonical({"operation": wish.operation, **wish.request})),
        )
        with self._flight(keyed):
            if wish.dry_run:
                return self._write_held(keyed)
            for _ in range(APPEND_ATTEMPTS_MAX - 1):
                answer = self._write_once(keyed)
                if answer is not None:
                    return answer
            return self._write_held(keyed)  # others were faster each time: now they wait

    @property
    def is_idle(self) -> bool:
        """Report whether no append waits to be stored."""
        return self._committer.is_idle

    def close(self) -> None:
        """Store what waits."""
        self._committer.close()

    @contextmanager
    def hold(self, *, more: bool = False) -> Generator[tuple[Held, Page]]:
        """Lock the head for a page of appends; what they leave is remembered once they are committed.

        With `more` to come, `settle` has to be called before any of them is answered.
        """
        with self.lock:
            with self._committer.hold(more=more) as held:
                page = self._page()
                yield held, page
            if held.stored:
                page.keep()
                self.reached = self._ledger.walk.position

    def settle(self) -> None:
        """Give the anchor what pages with more to come have left."""
        self._committer.settle()

    def _write_once(self, keyed: _Keyed) -> Receipt | None:
        """Decide and store; None if what was decided on has changed meanwhile."""
        with self.lock:
            decided = self._decide_now(keyed)
        if isinstance(decided, Receipt):
            return decided
        match self._outcome(decided.draft()):
            case Appended(recorded):
                return self._stored(decided, recorded)
            case Replayed(position):
                with self.lock:
                    return self._told(keyed, position)
            case _:
                with self.lock:
                    self._ledger.catch_up()
                return None

    def _outcome(self, draft: Draft) -> Outcome:
        try:
            return self._committer.append(draft, CALL_PATIENCE_S)
        except TimeoutError as error:
            raise failure(
                "UNAVAILABLE",
                f"The write was not answered within {CALL_PATIENCE_S:.0f} s. Whether it took effect is not known: "
                "repeat it with the same idempotency key.",
            ) from error

    def _decide_now(self, keyed: _Keyed) -> Append | Receipt:
        """Return the append that is wished for, or what the request's first time did; or raise the refusal.

        The key is looked up where nothing is to be stored: all else is stored under its key, and the committer answers
        where that was carried out. Hence the lock is mostly held without letting go of the interpreter.
        """
        while True:
            known = self._ledger.walk.position
            try:
                append = self._decide(self._page(), keyed)
                if not append.is_idle:
                    return append
            except CorrigendaError as refusal:
                if (first := self._first(keyed)) is not None:
                    return self._told(keyed, first)
                if isinstance(refusal, (IntegrityError, UnavailableError)) or self._ledger.catch_up() == known:
                    raise
            else:
                if (first := self._first(keyed)) is not None:
                    return self._told(keyed, first)
                if self._ledger.catch_up() == known:
                    return self._unchanged(append)

    def _write_held(self, keyed: _Keyed) -> Receipt:
        """Decide while nobody else can append: what is decided then holds, and is stored or only tried."""
        with self.hold() as (held, page):
            first = self._first(keyed)
            if first is not None:
                return self._replay(keyed, first)
            append = self._decide(page, keyed)
            if append.is_idle:
                return self._unchanged(append)
            if keyed.wish.dry_run:
                return self._receipt(held.would_be(append.draft()), append.warnings, dry_run=True)
            (recorded,) = held.store([page.close(append)])
        return self._receipt(recorded, append.warnings)

    def _decide(self, page: Page, keyed: _Keyed) -> Append:
        append = page.begin(actor=keyed.wish.actor, request=keyed.request, fingerprint=keyed.fingerprint)
        keyed.wish.decide(append)
        append.warnings = keyed.wish.warn()
        # The receipt shows these names, and then nothing may fail any more.
        self._names.shown([*append.standing, *(append.about or ())[:1]])
        return append

    def _stored(self, append: Append, recorded: Sequence[Recorded]) -> Receipt:
        with self.lock:
            append.keep(recorded)
            self.reached = max(self.reached, recorded[-1].entry.position)
            return self._receipt(recorded, append.warnings)

    def _receipt(self, recorded: Sequence[Recorded], warnings: Sequence[str], *, dry_run: bool = False) -> Receipt:
        return receipt(
            recorded,
            self._names.known,
            incarnation=self._incarnation,
            dry_run=dry_run,
            unanchored=self._ledger.walk.unanchored,
            warnings=warnings,
        )

    def _unchanged(self, append: Append) -> Receipt:
        """Return the receipt of an act after which all is as before. Nothing is stored, its key neither."""
        return unchanged(
            append.op,
            append.about,
            self._names.known,
            position=self._ledger.walk.position,
            incarnation=self._incarnation,
            unanchored=self._ledger.walk.unanchored,
        )

    def _first(self, keyed: _Keyed) -> int | None:
        """Return the position at which this very request was carried out before."""
        if keyed.wish.key is None:
            return None
        return self._ledger.walk.carried_out([keyed.request]).get(keyed.request)

    def _told(self, keyed: _Keyed, first: int) -> Receipt:
        self._ledger.catch_up()  # it is told of a ledger that is whole, like any other answer
        return self._replay(keyed, first)

    def _replay(self, keyed: _Keyed, first: int) -> Receipt:
        """Return the receipt of an append that has been made, or refuse a key that was used for something else."""
        opening = self._ledger.at([first])[first].entry.envelope
        if opening.request != keyed.request:
            raise broken(first, "anchor", "the event of this request", "another's")
        if opening.request_fp != keyed.fingerprint:
            refuse(
                "IDEMPOTENCY_KEY_REUSED",
                "This idempotency key was used before, for another request. Nothing was stored. Use a key of its own "
                "for each request, and the same one only to repeat the very same request.",
                position=first,
            )
        positions = range(first, first + opening.op_count)
        found = self._ledger.at(positions)
        group = [found[position] for position in positions]
        return receipt(
            group, self._names.show, incarnation=self._incarnation, replayed=True, warnings=keyed.wish.warn()
        )

    def _page(self) -> Page:
        return Page(self._ledger.walk.head.size, self._names, self._states, self.mint)

    @property
    def _incarnation(self) -> int:
        row = self._ledger.head_row
        return 1 if row is None else row.incarnation

    @contextmanager
    def _flight(self, keyed: _Keyed) -> Generator[None]:
        """Let one request with a key of the caller's through at a time: a second one would only wait for the first."""
        if keyed.wish.key is None:
            yield
            return
        with self.lock:
            if keyed.request in self._in_flight:
                raise _in_flight()
            self._in_flight.add(keyed.request)
        try:
            yield
        finally:
            with self.lock:
                self._in_flight.discard(keyed.request)


def _in_flight() -> Exception:
    return failure(
        "REQUEST_IN_FLIGHT",
        "A request with this idempotency key is being carried out at this moment. Repeat it shortly: the answer will "
        "be that of the first.",
        retry_after_ms=50,
    )
