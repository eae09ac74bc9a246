"""One pass over everything that is stored, and a report of what is not as it was written (FORMAT.md §10).

Made to be believed when nothing else is: it reads the tables themselves, never through the walk, and bad data never
stops it. Each check reports its first bad position. After a break it goes on from the bytes that are there, so that
one altered entry is one finding and not a thousand.
"""

from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, cast

import psycopg
from msgspec import Struct

from ledger import codec, digest
from ledger.chain import Envelope
from ledger.checkpoints import Watch
from ledger.digest import LedgerKeys
from ledger.errors import failure, refuse
from ledger.governance import LedgerOpened
from ledger.store import QUERIES, Store
from ledger.tree import Frontier

PAGE = 4_000

CHECKS = (
    "canonical", "chain", "streams", "seals", "tree", "payloads", "anchor", "checkpoints", "projections", "index"
)  # fmt: skip
LATER = {
    "anchor": "this version keeps no anchor outside the database",
    "checkpoints": "no checkpoint was given to compare with",
    "projections": "`corrigenda verify` of this version does not compare the read models",
    "index": "`corrigenda verify` of this version does not compare the index",
}
CHAIN_BROKEN, CHECKPOINT_MISMATCH, NOT_VERIFIED = 10, 11, 15
_NO_KEY = "the ledger key cannot be read, so no seal could be checked; restore the key file from its backup"
_FOREIGN_KEY = "no seal was made with the key that was given, so none could be checked; give this ledger's own key"

Progress = Callable[[int, int], None]


class Check(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one check: `status` is ok, failed or skipped; `why` says what limits it."""

    status: str
    first_bad_position: int | None = None
    expected: str | None = None
    found: str | None = None
    why: str | None = None


class Report(Struct, frozen=True, kw_only=True):
    """What a verification found.

    `events` were read; `size` and `head` are the ledger's, as its head row states them. `root` is that of the tree over
    the envelopes as they lie, null where not all of them were there to read. `exit_code` is 0, 10 (a check failed), 11
    (nothing failed but a checkpoint) or 15 (no seal could be checked).
    """

    ok: bool
    exit_code: int
    events: int
    size: int
    root: str | None
    head: str | None
    checks: Mapping[str, Check]
    unanchored_tail: int
    erased: int


def verify(
    store: Store,
    keys: LedgerKeys | None,
    origin: str | None = None,
    *,
    first: int = 0,
    last: int | None = None,
    progress: Progress | None = None,
    checkpoint: bytes | None = None,
) -> Report:
    """Check the ledger, or its positions `first` to `last` (both included), and report. Findings are never raised.

    Without `keys` no seal can be checked: exit 15, unless something else is broken. `origin` is event 0's when left
    out. `progress` is told, after each page, how many events have been read and how many there are to read.
    `checkpoint` is a signed note: the ledger must bear it out, with the key of its own event 0. Errors:
    VALIDATION_FAILED (no such range, or a checkpoint for a part of the ledger), UNAVAILABLE (the database does not
    answer).
    """
    findings = _Findings()
    head: _HeadRow | None = None
    watch = None if checkpoint is None else Watch(checkpoint)
    try:
        head = _read_head(store)
        run = _Pass(findings, keys, store, origin, first, watch)
        whole = _check_range(head, first, last, watch)
        _read(run, store, head, last, progress)
        if whole:
            _check_end(run, store, head)
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedColumn):
        findings.bad("chain", first, "the ledger's tables", "a table or a column that is missing")
        run = _Pass(findings, keys, store, origin, first, watch)
        whole = True
    except psycopg.Error as error:
        said = " ".join(str(error).split())[:300]
        raise failure(
            "UNAVAILABLE",
            f"The ledger was to be read for checking, and the database refused ({said}). Nothing can be said about it "
            "until the database answers.",
        ) from error
    return _report(run, head, None if whole else f"positions {first} to {run.last} only")


# A row as `read_whole_after` gives it: seq, stream, stream_seq, envelope, hash, seal, request, salt, body. Whoever
# tampers with the tables may leave a column empty.
_Bytes = bytes | None
_Row = tuple[int, str | None, int | None, _Bytes, _Bytes, _Bytes, _Bytes, _Bytes, _Bytes]


class _HeadRow(NamedTuple):
    seq: int
    hash: bytes | None


class _StreamEnd(Struct, frozen=True, gc=False):
    """The end of a stream as far as it was read; `hash` is None if its bytes say nothing, `suspect` where they lie."""

    version: int
    hash: bytes | None
    suspect: int | None


class _Findings:
    """The first bad position of each check."""

    def __init__(self) -> None:
        self.found: dict[str, Check] = {}

    def bad(self, check: str, position: int, expected: str, found: str) -> None:
        """Record a finding, unless the check failed at or below that position already."""
        known = self.found.get(check)
        if known is None or known.first_bad_position is None or position < known.first_bad_position:
            self.found[check] = Check(status="failed", first_bad_position=position, expected=expected, found=found)


class _Pass:
    """The state of one pass: what the next entry has to follow. None stands for what a break left unknown."""

    def __init__(
        self,
        findings: _Findings,
        keys: LedgerKeys | None,
        store: Store,
        origin: str | None,
        first: int,
        watch: Watch | None,
    ) -> None:
        self.findings = findings
        self.events = 0
        self.next: int = first
        self.last: int = first - 1
        self.previous: bytes | None = digest.GENESIS if first == 0 else None
        self.seals_seen = 0
        self.keys = keys
        self.tree = Frontier()
        self.watch = watch
        self.public_key: str | None = None
        self._watched = -1 if watch is None else watch.size
        self._bad = findings.bad
        self._ledger = store.ledger
        self._origin = origin
        self._first = first
        self._suspect: int | None = None
        self._streams: dict[str, _StreamEnd] = {}
        self._requests: set[str] = set()
        self._append: tuple[object, ...] | None = None
        self._append_left: int | None = 0 if first == 0 else None

    def take(self, row: _Row) -> None:
        """Check one row, and make it what the next one has to follow."""
        seq, stream, stream_seq, raw, hash_, seal, request, salt, body = row
        if seq != self.next:
            self._bad("chain", self.next, f"an entry at position {self.next}", f"none below position {seq}")
            self.previous = self._suspect = self._append_left = None
        raw = raw or b""
        self.tree.append(digest.leaf(raw))  # whatever is wrong with it: the root is that of the stored bytes
        if self.watch is not None and self.tree.size == self._watched:
            self.watch.reached(self.tree)
        own = digest.link(raw)
        sound = self._check_seal(seq, own, seal)
        if own != hash_:
            self._bad("chain", seq, "the envelope's hash in its column", "another")
            sound = False
        try:
            envelope = codec.decode_envelope(raw)
        except codec.NotCanonical as error:
            self._bad("canonical", seq, "an envelope in canonical form", str(error))
            if stream is not None and stream_seq is not None:
                self._streams[stream] = _StreamEnd(stream_seq + 1, None, seq)
            self._append_left = None
            sound = False
        else:
            self._check_columns(envelope, seq, stream, stream_seq, request)
            self._check_link(envelope, seq)
            self._follow_stream(envelope, seq, digest.stream_link(raw), None if sound else seq)
            self._follow_append(envelope, seq)
            self._check_payload(envelope, seq, salt, body)
        self.previous, self._suspect = own, None if sound else seq
        self.events, self.next, self.last = self.events + 1, seq + 1, seq

    def end(self) -> None:
        """Say so if the last append is not there to its end."""
        if self._append_left:
            self._bad("chain", self.next, "the rest of an append", "none")

    def _check_seal(self, seq: int, own: bytes, seal: bytes | None) -> bool:
        if self.keys is None:
            return True
        expected = self.keys.seal(own)
        if seal == expected:
            self.seals_seen += 1
            return True
        self._bad("seals", seq, "a seal of this ledger's key", "none or another")
        self.seals_seen += seal is not None and seal[:8] == expected[:8]
        return False

    def _check_columns(
        self, envelope: Envelope, seq: int, stream: str | None, stream_seq: int | None, request: bytes | None
    ) -> None:
        if envelope.seq != seq:
            self._bad("chain", seq, f"the entry of position {seq}", f"the one of position {envelope.seq}")
        if (envelope.stream, envelope.stream_seq) != (stream, stream_seq):
            self._bad("streams", seq, "the envelope's stream in the columns", "another place or stream")
        if (None if request is None else request.hex()) != envelope.request:
            self._bad("chain", seq, "the envelope's request in its column", "another")
        if envelope.request is not None:
            if envelope.request in self._requests:
                self._bad("chain", seq, "a request of its own", "one that was carried out before")
            self._requests.add(envelope.request)
        if self._origin is None:
            self._origin = envelope.log
        if envelope.log != self._origin:
            self._bad("chain", seq, "an entry of this ledger", "one of another")
        if seq == 0 or envelope.type == "ledger.opened.v1":
            self._check_opening(envelope, seq)

    def _check_opening(self, envelope: Envelope, seq: int) -> None:
        facts = envelope.facts
        if not isinstance(facts, LedgerOpened):
            self._bad("chain", seq, "the opening of the ledger", "another event")
        elif seq != 0:
            self._bad("chain", seq, "no second opening", "one")
        elif (facts.origin, envelope.stream) != (envelope.log, f"led_{self._ledger}"):
            self._bad("chain", seq, "the opening of this ledger", "that of another")
        else:
            self.public_key = facts.public_key

    def _check_link(self, envelope: Envelope, seq: int) -> None:
        if self.previous is not None and envelope.prev_b3 != self.previous.hex():
            blamed = seq if self._suspect is None else self._suspect
            self._bad("chain", blamed, "an entry that the one after it links to", "another")

    def _follow_stream(self, envelope: Envelope, seq: int, own: bytes, suspect: int | None) -> None:
        known = self._streams.get(envelope.stream)
        if known is None and (self._first == 0 or envelope.stream_seq == 0):
            known = _StreamEnd(0, digest.GENESIS, None)
        if known is not None:
            blamed = seq if known.suspect is None else known.suspect
            if envelope.stream_seq != known.version:
                found = f"entry {envelope.stream_seq}"
                self._bad("streams", blamed, f"entry {known.version} of the stream next", found)
            elif known.hash is not None and envelope.stream_prev_b3 != known.hash.hex():
                self._bad("streams", blamed, "an entry that the stream's next one links to", "another")
        self._streams[envelope.stream] = _StreamEnd(envelope.stream_seq + 1, own, suspect)

    def _follow_append(self, envelope: Envelope, seq: int) -> None:
        """Entries of one append lie side by side, and agree in all that an append has once."""
        append = (envelope.op, envelope.op_count, envelope.actor, envelope.authn, envelope.at)
        index, left = envelope.op_index, self._append_left
        if left == 0 and index != 0:
            self._bad("chain", seq, "the first entry of an append", f"entry {index}")
        elif left and (append != self._append or index != envelope.op_count - left):
            self._bad("chain", seq, "the next entry of the same append", "another")
        elif index and (envelope.request, envelope.request_fp) != (None, None):
            self._bad("chain", seq, "no request beyond an append's first entry", "one")
        self._append, self._append_left = append, max(0, envelope.op_count - index - 1)

    def _check_payload(self, envelope: Envelope, seq: int, salt: bytes | None, body: bytes | None) -> None:
        committed = envelope.payload_sha256
        if committed is None:
            if (envelope.payload_len, salt, body) != (None, None, None):
                self._bad("payloads", seq, "no payload", "one")
        elif salt is None or body is None:
            self._bad("payloads", seq, "the payload that was committed to", "none")
        elif (len(salt), len(body)) != (digest.SALT_BYTES, envelope.payload_len) or (
            digest.commitment(salt, body) != committed
        ):
            self._bad("payloads", seq, "the payload that was committed to", "another")
        else:
            try:
                codec.decode_payload(envelope.type, body)
            except codec.NotCanonical as error:
                self._bad("payloads", seq, "a payload in canonical form", str(error))


def _read_head(store: Store) -> _HeadRow | None:
    rows = store.query(QUERIES["read_head"], {})
    return _HeadRow(rows[0][0], rows[0][1]) if rows else None


def _check_range(head: _HeadRow | None, first: int, last: int | None, watch: Watch | None) -> bool:
    """Return whether the range is the whole ledger, or refuse it; a checkpoint needs the whole."""
    top = last if head is None else head.seq
    if first < 0 or (last is not None and last < first) or (top is not None and (last or first) > top):
        refuse(
            "VALIDATION_FAILED",
            f"A range of positions was expected that this ledger has, 0 to {'?' if top is None else top}, and "
            f"{first} to {'its end' if last is None else last} was given.",
        )
    whole = first == 0 and (last is None or head is None or last == head.seq)
    if watch is not None and not whole:
        refuse(
            "VALIDATION_FAILED",
            f"A checkpoint is compared with a whole ledger, and only positions {first} to "
            f"{top if last is None else last} were to be read. Leave out the range, or the checkpoint.",
        )
    return whole


def _read(run: _Pass, store: Store, head: _HeadRow | None, last: int | None, progress: Progress | None) -> None:
    """Take every row of the range; a range that begins later takes its first link from the row before it."""
    first = run.next
    if first:
        run.previous = next((digest.link(row.envelope) for row in store.at([first - 1])), None)
    end = last if last is not None else (None if head is None else head.seq)
    for page in _pages(store, first, end):
        for row in page:
            run.take(row)
        if progress is not None:
            progress(run.events, run.events if end is None else end - first + 1)
    if end is not None and run.last < end:
        run.findings.bad("chain", run.next, f"an entry at position {run.next}", f"none up to position {end}")


def _pages(store: Store, first: int, end: int | None) -> Generator[list[_Row]]:
    """Yield the rows from `first` to `end`; while one page is checked, the next one is already being read."""
    with ThreadPoolExecutor(1, thread_name_prefix="verify") as reader:
        coming = reader.submit(store.whole_after, first - 1, PAGE)
        while rows := cast(list[_Row], coming.result()):  # the columns of the query, in its order
            top = rows[-1][0]
            if end is not None and top >= end:
                yield [row for row in rows if row[0] <= end]
                return
            coming = reader.submit(store.whole_after, top, PAGE)
            yield rows


def _check_end(run: _Pass, store: Store, head: _HeadRow | None) -> None:
    """Hold the head row against the last entry, and look for rows above it that no append can have left."""
    run.end()
    if head is None:
        run.findings.bad("chain", max(run.last, 0), "a head row", "none")
    elif run.last == head.seq and run.previous != head.hash:
        run.findings.bad("chain", head.seq, "a head row with the last entry's hash", "another hash")
    elif store.whole_after(head.seq, 1):
        now = _read_head(store)  # read after the row: whoever appended it has moved the head by then
        if now is None or now.seq <= head.seq:
            run.findings.bad("chain", head.seq + 1, "no entry above the head", "one")


def _report(run: _Pass, head: _HeadRow | None, limits: str | None) -> Report:
    found = run.findings.found
    unsealed = _NO_KEY if run.keys is None else _FOREIGN_KEY if run.events and not run.seals_seen else None
    if unsealed is not None:
        found.pop("seals", None)
    size, own = (run.next, run.previous) if head is None else (head.seq + 1, head.hash)
    complete = limits is None and run.tree.size == run.next == size > 0
    checkpoints = _check_checkpoint(run, size)
    failed = checkpoints.status == "failed"
    exit_code = CHAIN_BROKEN if found else CHECKPOINT_MISMATCH if failed else NOT_VERIFIED if unsealed else 0
    if unsealed is not None:
        found["seals"] = Check(status="failed", why=unsealed)
    tree = Check(status="ok") if complete else Check(status="skipped", why=_no_root(limits))
    found |= {"tree": tree, "checkpoints": checkpoints}
    return Report(
        ok=exit_code == 0,
        exit_code=exit_code,
        events=run.events,
        size=size,
        root=run.tree.root().hex() if complete else None,
        head=None if own is None else own.hex(),
        checks={name: found.get(name) or _unbroken(name, limits) for name in CHECKS},
        unanchored_tail=size,
        erased=0,
    )


def _check_checkpoint(run: _Pass, size: int) -> Check:
    if run.watch is None:
        return Check(status="skipped", why=LATER["checkpoints"])
    differs = run.watch.disagreement(size=size, public_key=run.public_key)
    if differs is None:
        return Check(status="ok", why=f"the first {run.watch.size} of {size} entries are those of the checkpoint")
    position, expected, found = differs
    return Check(status="failed", first_bad_position=position, expected=expected, found=found)


def _no_root(limits: str | None) -> str:
    return "entries are missing, so there is no root" if limits is None else f"{limits}; a root needs all of them"


def _unbroken(name: str, limits: str | None) -> Check:
    return Check(status="skipped", why=LATER[name]) if name in LATER else Check(status="ok", why=limits)
