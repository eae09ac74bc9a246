"""One verification from its wish to its report: where it begins, what is read, and what is compared at the end."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import psycopg

from ledger.anchor import Anchor, Unusable
from ledger.chain import Envelope
from ledger.checkpoints import Watch
from ledger.digest import LedgerKeys, link
from ledger.errors import CorrigendaError, refuse
from ledger.store import QUERIES, Store
from ledger.verify import sharing
from ledger.verify.aside import Aside
from ledger.verify.beside import Beside
from ledger.verify.course import Start
from ledger.verify.entries import Ledger
from ledger.verify.gone import Sought
from ledger.verify.pages import FIRST_SIZE, pages, read, short_turns, upto
from ledger.verify.reading import Reading
from ledger.verify.report import CHECKS, LATER, Check, Findings, Progress, Report, exit_of
from ledger.verify.resuming import CannotResume, check_beginnings, start_at
from ledger.verify.sharing import Sharing

_NO_KEY = "the ledger key cannot be read, so no seal could be checked; restore the key file from its backup"
_FOREIGN_KEY = "no seal was made with the key that was given, so none could be checked; give this ledger's own key"
_NO_CHECKPOINT = "no checkpoint was given to compare with, and none was signed here"
_HELPER_ENDED = "a second process that read along ended early ({}), and its part was read by this one"
_MISSING = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedColumn)


class Wish(NamedTuple):
    """What was asked for: a range, progress, a checkpoint to compare with, one to begin at, a witness, processes."""

    first: int
    last: int | None
    progress: Progress | None
    checkpoint: bytes | None
    since: bytes | None
    witness: Callable[[Envelope], None] | None = None
    processes: int | None = None


class _HeadRow(NamedTuple):
    seq: int
    hash: bytes | None
    incarnation: int


class Verification:
    """One verification. `run` makes it, once."""

    def __init__(
        self,
        store: Store,
        keys: LedgerKeys | None,
        origin: str | None,
        anchor: Anchor | Unusable | None,
        wish: Wish,
        aside: Aside,
    ) -> None:
        self._store = store
        self._keys = keys
        self._origin = origin
        self._wish = wish
        self._aside = aside
        self._findings = Findings()
        # The anchor before the head row, always: what was lost is only what had been there when the anchor was read.
        self._beside = Beside(anchor, self._findings)
        self._watches = [Watch(note) for note in (wish.checkpoint, wish.since) if note is not None]
        self._head: _HeadRow | None = None
        self._limits: str | None = None  # what was not read, if not all was
        self._erased = 0
        self._trouble: str | None = None  # what became of a second process that read along
        self._note: str | None = None  # why it was, although a checkpoint was given to begin at

    def run(self) -> Report:
        """Read, compare, report."""
        reading, whole = self._reading(Start()), True
        try:
            self._head = self._read_head()
            whole = self._check_range()
            reading = self._reading(self._start(whole))
            with short_turns():
                self._read(reading)
            if whole:
                self._check_end(reading)
        except CorrigendaError as error:
            if not isinstance(error.__cause__, _MISSING):
                raise
            self._findings.bad("chain", self._wish.first, "the ledger's tables", "a table or a column that is missing")
        if not whole:
            self._limits = f"positions {self._wish.first} to {reading.last} only"
        return self._report(reading, whole)

    # ---------------------------------------------------------------- where it begins

    def _reading(self, start: Start) -> Reading:
        return Reading(
            Ledger(self._store.ledger, self._origin or start.origin, self._keys),
            start=start,
            findings=self._findings,
            aside=self._aside,
            beside=self._beside,
            watches=self._watches,
            witness=self._wish.witness,
        )

    def _read_head(self) -> _HeadRow | None:
        rows = self._store.query(QUERIES["read_head"], {})
        return _HeadRow(*rows[0][:3]) if rows else None

    def _check_range(self) -> bool:
        """Return whether the range is the whole ledger, or refuse it; a checkpoint needs the whole."""
        head, first, last = self._head, self._wish.first, self._wish.last
        top = last if head is None else head.seq
        if first < 0 or (last is not None and last < first) or (top is not None and (last or first) > top):
            refuse(
                "VALIDATION_FAILED",
                f"A range of positions was expected that this ledger has, 0 to {'?' if top is None else top}, and "
                f"{first} to {'its end' if last is None else last} was given.",
            )
        whole = first == 0 and (last is None or head is None or last == head.seq)
        if self._watches and not whole:
            refuse(
                "VALIDATION_FAILED",
                f"A checkpoint is compared with a whole ledger, and only positions {first} to "
                f"{top if last is None else last} were to be read. Leave out the range, or the checkpoint.",
            )
        return whole

    def _start(self, whole: bool) -> Start:
        if not whole:
            first = self._wish.first
            # A range that begins later takes its first link from the row before it.
            before = (link(row.envelope) for row in self._store.at([first - 1]))
            return Start(first, next(before, None)) if first else Start()
        if self._beside.note is not None:
            self._watches.append(Watch(self._beside.note))
        return Start() if self._wish.since is None else self._start_at(self._wish.since)

    def _start_at(self, since: bytes) -> Start:
        """Begin at a checkpoint, if everything holds that this relies on; else with the ledger, and say why."""
        try:
            start = start_at(since, self._store, self._keys, self._beside.anchor)
        except CannotResume as why:
            self._note = f"everything was read, because the checkpoint is nothing to begin at: {why}"
            return Start()
        self._limits = f"positions 0 to {start.first - 1} were not read again: the anchor bears out the checkpoint"
        for watch in self._watches:
            if -1 < watch.size < start.first:
                self._beside.show(watch)
        return start

    # ---------------------------------------------------------------- reading

    def _read(self, reading: Reading) -> None:
        first, last = reading.first, self._wish.last
        end = last if last is not None else (None if self._head is None else self._head.seq)
        if end is not None and end < first:
            return  # nothing new since the checkpoint, or less: the head is compared with the anchor's

        def told() -> None:
            if self._wish.progress is not None:
                self._wish.progress(reading.events, reading.events if end is None else end - first + 1)

        if end is not None and end - first + 1 >= sharing.SHARED_MIN:
            self._store.expect_pages()
        if end is not None and self._may_share(end - first + 1):
            self._read_shared(reading, end, told)
        for page in pages(self._store, reading.next, end):
            reading.take(page)
            told()
        if end is not None and reading.last < end:
            self._findings.bad(
                "chain", reading.next, f"an entry at position {reading.next}", f"none up to position {end}"
            )
            self._beside.missing(reading.next)
        reading.end()
        self._erased = Sought(self._store, self._keys, reading, self._findings).settle(end)
        if first and reading.start.is_anchored and self._beside.anchor is not None:
            check_beginnings(self._aside.beginnings(), self._store, self._beside, self._findings)

    def _may_share(self, events: int) -> bool:
        """Report whether a second process is of use; a witness has to see every entry, so it is in the way of that."""
        processes = sharing.processors() if self._wish.processes is None else self._wish.processes
        return processes > 1 and events >= sharing.SHARED_MIN and self._wish.witness is None

    def _read_shared(self, reading: Reading, end: int, told: Callable[[], None]) -> None:
        """Read with a helper as far as it is of use; the first page, by which the ledger is known, comes before."""
        with sharing.helper() as aid:
            page = read(self._store, reading.next - 1, FIRST_SIZE)
            if aid is None or not page.rows:
                return
            reading.take(upto(end, page))
            told()
            if reading.origin is None:
                return
            shared = Sharing(reading, self._store, self._keys, reading.origin, aid)
            shared.read(end, told)
            if shared.trouble is not None:
                self._trouble = _HELPER_ENDED.format(shared.trouble)

    def _check_end(self, reading: Reading) -> None:
        """Hold the head row against entries and anchor, and look for rows above it that no append can have left."""
        head, bad = self._head, self._findings.bad
        reading.check_complete()
        if head is None:
            bad("chain", max(reading.last, 0), "a head row", "none")
            return
        self._beside.check_head(head.seq + 1)
        if reading.first == 0:
            if not self._findings.found:  # of a ledger that was cut there are fewer, and that is said already
                self._beside.check_sums(reading.requests_below)
            self._check_named(reading, head)
        if reading.last == head.seq and reading.previous != head.hash:
            bad("chain", head.seq, "a head row with the last entry's hash", "another hash")
        elif self._store.whole_after(head.seq, 1):
            now = self._read_head()  # read after the row: whoever appended it has moved the head by then
            if now is None or now.seq <= head.seq:
                bad("chain", head.seq + 1, "no entry above the head", "one")
        if not self._findings.found:  # what a cut has left above it is no further finding
            self._check_above()

    def _check_named(self, reading: Reading, head: _HeadRow) -> None:
        """Hold the tenant's row and the head row's incarnation against event 0."""
        if reading.incarnation not in (None, head.incarnation):
            expected = f"a head row of incarnation {reading.incarnation}, as event 0 says"
            self._findings.bad("chain", 0, expected, f"one of {head.incarnation}")
        named = [name for (name,) in self._store.query(QUERIES["name_tenant"], {})]
        if reading.tenant is not None and named != [reading.tenant]:
            self._findings.bad("chain", 0, "a row of the tenant that event 0 names", "another, or none")

    def _check_above(self) -> None:
        """Look for payloads and effects above the head, which no append can have left there."""
        before = self._read_head()
        if before is None:
            return
        ((payload, effect),) = self._store.query(QUERIES["any_above"], {"after": before.seq})
        after = self._read_head()  # whoever has just appended them has moved the head by then
        if (payload or effect) and after is not None and after.seq <= before.seq:
            what = "payload" if payload else "effect in the outbox"
            self._findings.bad("payloads", before.seq + 1, f"no {what} above the head", "one")

    # ---------------------------------------------------------------- reporting

    def _report(self, reading: Reading, whole: bool) -> Report:
        head = self._head
        size, own = (reading.next, reading.previous) if head is None else (head.seq + 1, head.hash)
        complete = whole and reading.tree.size == reading.next == size > 0
        tail = self._beside.tail(size)  # asked before the checks are made up: it may find the anchor unusable
        checks = self._checks(reading, size, complete)
        exit_code = exit_of(checks)
        return Report(
            ok=exit_code == 0,
            exit_code=exit_code,
            events=reading.events,
            size=size,
            root=reading.tree.root().hex() if complete else None,
            head=None if own is None else own.hex(),
            checks=checks,
            unanchored_tail=tail,
            erased=self._erased,
        )

    def _checks(self, reading: Reading, size: int, complete: bool) -> Mapping[str, Check]:
        found = self._findings.found
        unsealed = (
            _NO_KEY if self._keys is None else _FOREIGN_KEY if reading.events and not reading.seals_seen else None
        )
        if unsealed is not None:
            found["seals"] = Check(status="failed", why=unsealed)
        if not complete:
            found["tree"] = Check(status="skipped", why=self._no_root())
        found["checkpoints"] = self._check_checkpoints(reading, size)
        found.setdefault("anchor", self._beside.check(self._limits))
        if "chain" not in found:
            found["chain"] = Check(status="ok", why=_joined(self._limits, reading.clock(), self._trouble))
        return {name: found.get(name) or self._unbroken(name) for name in CHECKS}

    def _check_checkpoints(self, reading: Reading, size: int) -> Check:
        for watch in self._watches:
            differs = watch.disagreement(size=size, public_key=reading.public_key)
            if differs is not None:
                position, expected, found = differs
                return Check(status="failed", first_bad_position=position, expected=expected, found=found)
        if not self._watches:
            return Check(status="skipped", why=_NO_CHECKPOINT)
        largest = max(watch.size for watch in self._watches)
        said = f"the first {largest} of {size} entries are those of the checkpoint"
        return Check(status="ok", why=_joined(said, self._note))

    def _no_root(self) -> str:
        if self._limits is None:
            return "entries are missing, so there is no root"
        return f"{self._limits}; a root needs all of them"

    def _unbroken(self, name: str) -> Check:
        return Check(status="skipped", why=LATER[name]) if name in LATER else Check(status="ok", why=self._limits)


def _joined(*parts: str | None) -> str | None:
    return "; ".join(part for part in parts if part) or None
