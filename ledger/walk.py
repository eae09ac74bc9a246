"""What this process has verified of the chain: its head, every entry's leaf, every stream's end, every request.

The walk only ever goes forward, over entries that are sealed and linked, from where the anchor ends. Whatever is read
from the database later is held against it, so an edited, moved or removed event cannot get past it. What it has just
followed is its tail, until the anchor holds it; other processes that share the anchor may take it further meanwhile.
"""

import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ledger.anchor import Anchor, AnchorState, Link, Unusable
from ledger.chain import NO_STREAM, Entry, Head, StreamHead, broken, follow, follow_stream
from ledger.codec import read_entry
from ledger.digest import LedgerKeys, leaf
from ledger.errors import CorrigendaError, failure
from ledger.store import HeadRow, Store, Stored
from ledger.wire import Row, Write

PAGE = 5_000
LEAF_BYTES = 32
ANCHOR_MISMATCH = 11
PRESENT_MAX = 16_384  # streams
CHECKED_MAX = 8_192  # entries
CHECKED_BYTES_MAX = 4_096  # of one of them
WRITE_AGAIN_S = 1.0  # how long an anchor that cannot be written is left alone


@dataclass(slots=True)
class Ahead:
    """Where some streams end at a verified head, and the events that whoever asked will want to see of them.

    Their rows come with the next look at the head, and are checked by whoever uses them. They are good for the answer
    that is given at that head, and for no other one. With them come the answers to what is asked `beside`, unchecked.
    """

    head: Head
    ends: Mapping[str, StreamHead]
    positions: set[int]
    rows: Mapping[int, Stored] = field(default_factory=dict[int, Stored])
    beside: Sequence[Write] = ()
    answers: Sequence[Sequence[Row]] = ()


class Checked:
    """The entries that were last read at verified positions and found to be what was verified; no payload is kept.

    A walk never goes back, so what was right at a position once, stays it. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._new: dict[int, Entry] = {}
        self._old: dict[int, Entry] = {}

    def get(self, position: int) -> Entry | None:
        """Return the entry at a position, if it is kept."""
        return self._new.get(position) or self._old.get(position)

    def add(self, entry: Entry) -> None:
        """Keep an entry, and forget the older half when it is full."""
        if len(entry.raw) > CHECKED_BYTES_MAX:
            return
        if len(self._new) >= CHECKED_MAX // 2:
            self._old, self._new = self._new, {}
        self._new[entry.position] = entry


class Walk:
    """A verified prefix of one ledger. Safe to use from several threads."""

    def __init__(self, origin: str, keys: LedgerKeys, anchor: Anchor) -> None:
        self.anchor = anchor
        self.lock = threading.RLock()
        self._origin = origin
        self._keys = keys
        self._tail: list[Link] = []
        self._ends: dict[str, StreamHead] = {}
        self._requests: dict[str, int] = {}
        self._lineages: dict[str, str] = {}
        self._erased: dict[int, int] = {}
        self._unwritable = anchor.borrowed
        self._write_again = 0.0
        self._told = Told(anchor)
        self._checked = Checked()
        self._present: dict[str, StreamHead] = {}  # where streams end at the head, as far as it was asked for
        with self._told:
            state = anchor.state()
        self._head, self._incarnation = state.end, state.incarnation

    # ---------------------------------------------------------------- what is known

    @property
    def head(self) -> Head:
        """Return the size and last hash of what has been verified."""
        return self._head

    @property
    def position(self) -> int:
        """Return the last verified position, −1 before the first."""
        return self._head.size - 1

    @property
    def unanchored(self) -> str | None:
        """Return why the anchor does not hold what was verified, or None while it does."""
        return self._unwritable

    def stream(self, stream: str) -> StreamHead:
        """Return a stream's end; NO_STREAM for one without events."""
        return self.ends([stream])[stream]

    def ends(self, streams: Iterable[str]) -> dict[str, StreamHead]:
        """Return the end of each stream; NO_STREAM for one without events."""
        return self.known(streams, ())[0]

    def carried_out(self, requests: Iterable[str]) -> dict[str, int]:
        """Return the position of each of these requests that was carried out, by its hex digest."""
        return self.known((), requests)[1]

    def known(
        self, streams: Iterable[str], requests: Iterable[str | None]
    ) -> tuple[dict[str, StreamHead], dict[str, int]]:
        """Return the ends of streams and the positions of requests, as `ends` and `carried_out` do, in one look."""
        with self.lock, self._told:
            asked, named = set(streams), {request for request in requests if request is not None}
            kept, taken = self.anchor.known(asked - self._ends.keys(), named - self._requests.keys())
            return self._with_tail(asked, kept), taken | self._in_tail(named)

    def tip(
        self, streams: Iterable[str], requests: Iterable[str | None]
    ) -> tuple[Head, dict[str, StreamHead], dict[str, int]]:
        """Return the head that is to be built on, after `adopt`, and what is `known` there, all in one look."""
        with self.lock, self._told:
            asked, named = set(streams), {request for request in requests if request is not None}
            state, kept, taken = self.anchor.look(asked, named)
            self._adopt(state)
            return self._head, self._with_tail(asked, kept), taken | self._in_tail(named)

    def present(self, streams: Iterable[str]) -> tuple[Head, dict[str, StreamHead]]:
        """Return the head and where each stream ends there, as `tip` does; what is known already is not looked up."""
        asked = set(streams)
        with self.lock:
            if asked <= self._present.keys():
                self.adopt()
            if not asked <= self._present.keys():  # also where another process took the anchor beyond our head
                ends = self.tip(asked, ())[1]
                if len(self._present) > PRESENT_MAX:
                    self._present.clear()
                self._present |= ends
            return self._head, {stream: self._present[stream] for stream in asked}

    def _with_tail(self, streams: set[str], kept: dict[str, StreamHead]) -> dict[str, StreamHead]:
        return {stream: self._ends.get(stream) or kept.get(stream, NO_STREAM) for stream in streams}

    def _in_tail(self, requests: set[str]) -> dict[str, int]:
        return {one: self._requests[one] for one in requests & self._requests.keys()}

    def lineages(self, revisions: Iterable[str]) -> dict[str, str]:
        """Return the lineage of each of these revisions that there is."""
        with self.lock, self._told:
            wanted = set(revisions)
            found = {revision: self._lineages[revision] for revision in wanted & self._lineages.keys()}
            return found | self.anchor.lineages(wanted - found.keys())

    def beginning_with(self, prefix: str) -> dict[str, str]:
        """Return the lineage of each revision and stream whose id begins with `prefix`; a stream is its own."""
        with self.lock, self._told:
            known = {**self._lineages, **{stream: stream for stream in self._ends}}
            fresh = {one: lineage for one, lineage in known.items() if one.startswith(prefix)}
            return self.anchor.beginning_with(prefix) | fresh

    def erased_by(self, position: int) -> int | None:
        """Return where an entry stands that may say a payload was destroyed, or None. Read it, and check it."""
        with self.lock, self._told:
            found = self._erased.get(position)
            return self.anchor.erasures([position]).get(position) if found is None else found

    def leaf_at(self, position: int) -> bytes | None:
        """Return the leaf hash of the entry at a position, or None beyond what has been verified."""
        return self.leaves([position])[position]

    def leaves(self, positions: Iterable[int]) -> dict[int, bytes | None]:
        """Return the leaf hash at each position, in one look; None beyond what has been verified."""
        wanted = set(positions)
        with self.lock, self._told:
            first = self._head.size - len(self._tail)
            fresh = {one: self._tail[one - first].leaf for one in wanted if first <= one < self._head.size}
            # Another process may have taken the anchor further than this walk: where a stream ends is read there, too.
            kept = self.anchor.leaves_at(wanted - fresh.keys()) if wanted - fresh.keys() else {}
            return {one: fresh.get(one) or kept.get(one) for one in wanted}

    def leaves_from(self, first: int, count: int) -> bytes:
        """Return the leaf hashes of at most `count` verified entries from a position on, 32 bytes each."""
        with self.lock, self._told:
            kept = self.anchor.leaves(first, count)
            at = first + len(kept) // LEAF_BYTES - (self._head.size - len(self._tail))
            further = self._tail[at : at + count - len(kept) // LEAF_BYTES] if at >= 0 else []
            return kept + b"".join(link.leaf for link in further)

    # ---------------------------------------------------------------- going forward

    def catch_up(self, store: Store, ahead: Ahead | None = None) -> HeadRow:
        """Follow the ledger to its present head, or raise INTEGRITY_BROKEN. Return the head row.

        What is wanted `ahead` is read with the head, in the same round trip.
        Nothing of the database is waited for while the lock is held: whoever has locked the head waits for that lock.
        """
        while True:
            with self.lock:
                self.adopt()  # before the head is read: only so does a head below it mean that something was lost
                known = self.position
            wanted, beside = ((), ()) if ahead is None else (ahead.positions, ahead.beside)
            row, last, page, rows, answers = store.tip(known, PAGE, wanted, beside)
            if ahead is not None:
                ahead.rows, ahead.answers = rows, answers
            further = row.seq - known <= PAGE and last > row.seq
            with self.lock:
                self.follow_page([one for one in page if self.position < one.seq <= row.seq])
                self.keep()
                if known <= row.seq < self.position:  # another thread or process has followed it further meanwhile
                    return row._replace(seq=self.position, hash=self._head.hash)
                if self.position == row.seq or row.seq < known or not page:
                    self.check_head(row)
                    if not further:
                        return row
            if further:
                raise broken(row.seq + 1, "chain", "nothing above the head", "an entry")

    def adopt(self) -> None:
        """Take over what other processes have anchored beyond this walk's head."""
        with self.lock, self._told:
            self._adopt(self.anchor.state())

    def _adopt(self, state: AnchorState) -> None:
        first = self._head.size - len(self._tail)
        if state.size < first:
            raise Unusable(f"ends at {state.size}, and reached {first} before")
        both = self._tail[: state.size - first]
        if both and self.anchor.leaves(first, len(both)) != b"".join(link.leaf for link in both):
            raise Unusable(f"holds other entries than were verified from position {first} on")
        if state.size == self._head.size and state.head != self._head.hash:
            raise Unusable(f"holds another entry than was verified at position {self.position}")
        if state.size > self._head.size:  # by entries that were not seen here
            self._present.clear()
        if state.size >= self._head.size:
            self._settle(state.end)

    def keep(self) -> None:
        """Bring the tail into the anchor. If it cannot be written now, the tail stays, and `unanchored` says why."""
        with self.lock:
            if not self._tail or time.monotonic() < self._write_again:
                return
            try:
                self.anchor.extend(self._tail)
            except Unusable as fault:
                self._unwritable, self._write_again = str(fault), time.monotonic() + WRITE_AGAIN_S
                if not fault.passing:
                    raise unfit(self.anchor, fault) from fault
            else:
                self._unwritable = self.anchor.borrowed
                self._settle(self._head)

    def take(self, entries: Sequence[Entry], links: Sequence[Link] = ()) -> None:
        """Take entries that this process has just sealed on the head and stored; the others are passed over.

        `links` are theirs, where there was time to make them. They are in the tail then; to `keep` them is for whoever
        gives the answers.
        """
        links = links or [*map(Link.of, entries)]
        with self.lock, self._growing():
            for entry, link in zip(entries, links, strict=True):
                # What was sealed on this very head needs no second look; else somebody followed it.
                if (entry.position, entry.envelope.prev_b3) == (self._head.size, self._head.hash.hex()):
                    self._add(link)

    def follow(self, entries: Sequence[Entry]) -> None:
        """Take the next entries, or raise INTEGRITY_BROKEN and stay at the last good one."""
        if not entries:
            return
        with self.lock, self._growing():
            while True:
                envelopes = [entry.envelope for entry in entries]
                ends, taken = self.known((one.stream for one in envelopes), (one.request for one in envelopes))
                if all(at < self._head.size for at in (*(end.position for end in ends.values()), *taken.values())):
                    break
                self.adopt()  # another process has followed some of these meanwhile, and anchored them
                entries = [entry for entry in entries if entry.position >= self._head.size]
            for entry in entries:
                self._follow_one(entry, ends, taken)

    def _follow_one(self, entry: Entry, ends: dict[str, StreamHead], taken: dict[str, int]) -> None:
        envelope = entry.envelope
        if envelope.log != self._origin:
            raise broken(self._head.size, "chain", "an entry of this ledger", "one of another")
        follow(self._head, entry, self._keys.is_sealed)
        if envelope.request is not None and envelope.request in taken:
            raise broken(entry.position, "chain", "a request of its own", "one that was carried out before")
        ends[envelope.stream] = follow_stream(ends[envelope.stream], entry)
        self._add(Link.of(entry))
        if envelope.request is not None:
            taken[envelope.request] = entry.position

    def _add(self, link: Link) -> None:
        self._tail.append(link)
        self._ends[link.stream] = link.end
        if link.stream in self._present:
            self._present[link.stream] = link.end
        if link.request is not None:
            self._requests[link.request] = link.position
        for revision in link.revisions:
            self._lineages[revision] = link.stream
        for position in link.erased:
            self._erased[position] = link.position
        self._head = Head(link.position + 1, link.hash)

    @contextmanager
    def _growing(self) -> Generator[None]:
        """Go back to the anchor when interrupted: what was half taken would be kept as if it were whole."""
        try:
            yield
        except CorrigendaError:
            raise
        except BaseException:
            self._checked, self._present = Checked(), {}
            self._settle(self.anchor.state().end)
            raise

    def _settle(self, head: Head) -> None:
        """Forget the tail: the anchor holds everything up to `head`."""
        self._tail, self._ends, self._requests, self._lineages, self._erased = [], {}, {}, {}, {}
        self._head = head

    def follow_page(self, page: Iterable[Stored]) -> None:
        """Follow stored entries that come next, as far as they are what was written."""
        with self.lock:
            entries: list[Entry] = []
            try:
                for number, stored in enumerate(page):
                    entries.append(read_entry(stored.envelope, stored.seal, position=self._head.size + number))
            finally:  # an entry before the first unreadable one may be the first that is wrong
                self.follow(entries)

    # ---------------------------------------------------------------- holding against it

    def kept(self, position: int) -> Entry | None:
        """Return the entry that was checked at a position before, if it is kept: a hint of what it is about."""
        return self._checked.get(position)

    def checked(self, stored: Stored) -> Entry | None:
        """Return the entry that was checked at this position before, if this is what was checked, byte for byte."""
        entry = self._checked.get(stored.seq)
        return entry if entry and entry.raw == stored.envelope and entry.seal == stored.seal else None

    def check(self, stored: Stored, verified: bytes | None = None) -> Entry:
        """Return the entry that was read again at a verified position, or raise INTEGRITY_BROKEN.

        `verified` is its leaf hash, where `leaves` has been asked for it.
        """
        entry = read_entry(stored.envelope, stored.seal, position=stored.seq)
        if leaf(entry.raw) != (verified or self.leaf_at(stored.seq)):
            raise broken(stored.seq, "chain", "the entry that was verified before", "another")
        if not self._keys.is_sealed(entry.hash, entry.seal):
            raise broken(stored.seq, "seals", "a seal of this ledger's key", "none or another")
        self._checked.add(entry)
        return entry

    def check_head(self, row: HeadRow) -> None:
        """Refuse a head row of another incarnation, below what was verified, or with another last entry."""
        if row.incarnation != self._incarnation:
            raise failure(
                "INTEGRITY_BROKEN",
                f"The head row should be of incarnation {self._incarnation}, as the anchor is, and it is of "
                f"incarnation {row.incarnation}. Nothing is served or written. Put the head row right, or restore the "
                "newest backup.",
                position=row.seq,
                check="anchor",
                expected=f"incarnation {self._incarnation}",
                found=f"incarnation {row.incarnation}",
                exit_code=ANCHOR_MISMATCH,
            )
        if row.seq < self.position:
            raise failure(
                "INTEGRITY_BROKEN",
                f"The ledger has lost entries or was put back to an earlier state: it was verified up to position "
                f"{self.position} before, and its head is at {row.seq} now. Nothing is served or written. Restore the "
                "newest backup; there is no way yet to accept a copy that ends earlier.",
                position=row.seq + 1,
                check="anchor",
                expected=f"a head at {self.position}",
                found=f"one at {row.seq}",
                exit_code=ANCHOR_MISMATCH,
            )
        if row.seq > self.position:
            raise broken(self._head.size, "chain", "an entry", "none, and the head is above it")
        if self._head.hash != row.hash:
            raise broken(row.seq, "chain", "a head row with the last entry's hash", "another hash")


class Told:
    """Gives what is wrong with an anchor as an error of the registry, naming its file, for as long as a block runs."""

    __slots__ = ("_anchor",)

    def __init__(self, anchor: Anchor) -> None:
        self._anchor = anchor

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Unusable):
            raise unfit(self._anchor, error) from error


def unfit(anchor: Anchor, fault: Unusable) -> Exception:
    """Return INTEGRITY_BROKEN for an anchor that is not what was written, UNAVAILABLE for one that does not answer."""
    return unfit_file(anchor.path, fault)


def unfit_file(path: Path | None, fault: Unusable) -> Exception:
    """Return the same for the file at a path, which may not have been opened."""
    if fault.passing:
        return failure("UNAVAILABLE", f"The anchor is needed at {path}, and it {fault}. Mend that, and try again.")
    return failure(
        "INTEGRITY_BROKEN",
        f"The anchor at {path} should be the one that was kept of this ledger, and it {fault}. It is not trusted, and "
        "nothing is served or written. Put it back from a backup; or move it away, and verify the ledger against a "
        "checkpoint that was kept elsewhere (`corrigenda verify --checkpoint FILE`).",
        check="anchor",
        file=str(path),
        found=str(fault),
        exit_code=ANCHOR_MISMATCH,
    )
