"""The anchor: what has been verified of a ledger, kept off the database, where whoever rewrites the tables has no hand.

One SQLite file per ledger holds every entry's leaf hash, the roots of complete subtrees above them, where each stream
ends, which requests were carried out and which lineage each revision belongs to. It only ever grows, and only by
entries that somebody has verified. It knows no database and believes nothing on its own: a ledger below its anchor
has lost entries or was rolled back, and to say so is for whoever compares the two (`walk`, `verify`).
"""

import os
import sqlite3
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ledger import anchor_file, tree
from ledger.anchor_file import LEAF_BYTES, STATEMENTS, Faults, Transaction, Unusable, checksum
from ledger.anchor_growth import ROW_BITS, ROW_BYTES, ROW_LEAVES, End, Growth, Link, Row, root_of
from ledger.anchor_log import Log
from ledger.chain import Head, StreamHead

_WHOLE = (
    "read_state", "read_all_leaves", "read_all_subtrees", "read_all_streams", "read_all_requests",
    "read_all_revisions", "read_all_notes",
)  # fmt: skip


class AnchorState(Struct, frozen=True, kw_only=True):
    """How far the anchor reaches, the hash of the last entry there, and how trust in it began.

    `trust` is `opening` (kept since the ledger's first event), `checkpoint` (grown from a pinned one) or `first_use`
    (built from what the database held when there was no anchor: it shows nothing of what was done before).
    """

    size: int
    head: bytes
    incarnation: int
    trust: str

    @property
    def end(self) -> Head:
        """Return the head that the anchor has reached."""
        return Head(self.size, self.head)


class Anchor:
    """One ledger's anchor, shared by the processes of a host. Safe to use from several threads.

    `borrowed` says why what is added here is not kept: the file could not be written, and this is a copy in memory.
    Errors of every method: Unusable, with a sentence, if the file is not what was written, or cannot be written now.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None, borrowed: str | None = None) -> None:
        self.path = path
        self.borrowed = borrowed
        self._process = os.getpid()
        self._connection = connection
        self._faults = Faults(path)
        self._growth = Growth(connection)
        self._log = None if path is None or borrowed is not None else Log(connection, path)
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path, *, ledger: str, origin: str, trust: str = "first_use") -> "Anchor":
        """Open the anchor at a path, made if there is none; `trust` says how trust in a new one begins.

        Where it cannot be written, what it holds is borrowed; where there is none, what is verified is held in memory.
        """
        try:
            if not anchor_file.is_there(path):
                anchor_file.make(path, ledger=ledger, origin=origin, trust=trust)
            anchor_file.sweep(path)
            return cls.find(path, ledger=ledger, origin=origin)
        except Unusable as fault:
            if not fault.passing:
                raise
            return cls._borrowed(path, str(fault), ledger=ledger, origin=origin)

    @classmethod
    def find(cls, path: Path, *, ledger: str, origin: str) -> "Anchor":
        """Open an anchor that is there, after a look at whether it is whole and this ledger's."""
        if not anchor_file.is_there(path):
            raise Unusable("is not there", passing=True)
        connection = anchor_file.connect(path)
        try:
            anchor_file.check(connection, path, ledger=ledger, origin=origin)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    @classmethod
    def in_memory(cls, *, ledger: str, origin: str) -> "Anchor":
        """Return an anchor that ends with the process: it protects nothing that is older than this."""
        connection = anchor_file.in_memory()
        anchor_file.fill(connection, ledger=ledger, origin=origin, trust="first_use")
        return cls(connection, None)

    @classmethod
    def _borrowed(cls, path: Path, why: str, *, ledger: str, origin: str) -> "Anchor":
        if not anchor_file.is_there(path):
            held = cls.in_memory(ledger=ledger, origin=origin)._connection
        else:
            held = anchor_file.copied(path)
            anchor_file.check(held, path, ledger=ledger, origin=origin)
        return cls(held, path, why)

    def close(self) -> None:
        """Let go of the file. In a process that was forked off, that is left to the one that opened it."""
        if self._process == os.getpid():
            with self._lock:
                if self._log is not None:
                    self._log.close()
                self._connection.close()

    # ---------------------------------------------------------------- reading

    def state(self) -> AnchorState:
        """Return how far the anchor reaches."""
        ((size, head, incarnation, trust, crc),) = self._all("read_state")
        _check(crc, size, head, incarnation, trust)
        return AnchorState(size=size, head=head, incarnation=incarnation, trust=trust)

    def leaves(self, first: int, count: int) -> bytes:
        """Return the leaf hashes of at most `count` entries from a position on, 32 bytes each; fewer at the end."""
        found = self._read_leaves(first, count)
        if len(found) < count * LEAF_BYTES:
            reached = self.state().size
            found = self._read_leaves(first, count)  # again, after the size: another process may just have added some
            if len(found) // LEAF_BYTES < min(count, reached - first):
                raise Unusable("has lost leaves")
        return found

    def _read_leaves(self, first: int, count: int) -> bytes:
        rows = self._all("read_leaves", (first >> ROW_BITS, (first + max(count, 1) - 1) >> ROW_BITS))
        for number, (place, hashes, crc) in enumerate(rows):
            _check(crc, place, hashes)
            if place != (first >> ROW_BITS) + number or (len(hashes) != ROW_BYTES and number + 1 < len(rows)):
                raise Unusable("has lost leaves")
        joined, skipped = b"".join(hashes for _, hashes, _ in rows), (first & (ROW_LEAVES - 1)) * LEAF_BYTES
        return joined[skipped : skipped + count * LEAF_BYTES]

    def leaves_at(self, positions: Iterable[int]) -> dict[int, bytes]:
        """Return the leaf hash at each of some positions, wherever they lie; those beyond the end are left out."""
        wanted = [position for position in positions if position >= 0]
        found = self._read_leaves_at(wanted)
        if len(found) < len(wanted):
            reached = self.state().size
            found = self._read_leaves_at(wanted)  # again, as above
            if any(position < reached and position not in found for position in wanted):
                raise Unusable("has lost leaves")
        return found

    def _read_leaves_at(self, positions: Sequence[int]) -> dict[int, bytes]:
        rows: dict[int, bytes] = {}
        for place, hashes, crc in self._all("read_leaf_rows", (_json([*{one >> ROW_BITS for one in positions}]),)):
            _check(crc, place, hashes)
            rows[place] = hashes
        found: dict[int, bytes] = {}
        for position in positions:
            at = (position & (ROW_LEAVES - 1)) * LEAF_BYTES
            if leaf_hash := rows.get(position >> ROW_BITS, b"")[at : at + LEAF_BYTES]:
                found[position] = leaf_hash
        return found

    def root(self, size: int | None = None) -> bytes:
        """Return the root of the tree over the first `size` entries, all by default. Beyond them: ValueError."""
        return tree.joined(self.peaks(size))

    def peaks(self, size: int | None = None) -> list[bytes]:
        """Return the roots of that tree's complete subtrees, largest first: what it can be grown on from."""
        with self._reading():
            reached = self.state().size
            size = reached if size is None else size
            if not 0 <= size <= reached:
                raise ValueError(f"the anchor has {reached} entries")
            return self._peaks(size)

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """Return the proof that an entry is in the tree over the first `size` ones (RFC 6962 §2.1.1), lowest first.

        An index or a size beyond them is a ValueError.
        """
        with self._reading():
            if not 0 <= index < size <= self.state().size:
                raise ValueError(f"there is no entry {index} among {size} that the anchor holds")
            path: list[bytes] = []
            first = 0
            while size > 1:
                split = 1 << ((size - 1).bit_length() - 1)
                if index - first < split:
                    path.append(tree.joined(self._peaks(size - split, first + split)))
                    size = split
                else:
                    path.append(self._subtree(split.bit_length() - 1, first))
                    first, size = first + split, size - split
            return path[::-1]

    def known(self, streams: Iterable[str], requests: Iterable[str]) -> tuple[dict[str, StreamHead], dict[str, int]]:
        """Return where each stream ends, and at which position each request (hex digest) was carried out.

        A stream without events and a request that was never carried out are left out.
        """
        return self.look(streams, requests)[1:]

    def look(
        self, streams: Iterable[str], requests: Iterable[str]
    ) -> tuple[AnchorState, dict[str, StreamHead], dict[str, int]]:
        """Return how far the anchor reaches, and what `known` returns, all of one moment."""
        names, keys = [*streams], [*requests]
        if len(names) <= 1 and len(keys) <= 1:
            return self._look_at(next(iter(names), None), next(iter(keys), None))
        wanted = {"streams": _json(names), "requests": _json(keys)}
        (trust, size, incarnation, head, state_crc), *rows = self._all("read_known", wanted)
        _check(state_crc, size, head, incarnation, trust)
        ends: dict[str, StreamHead] = {}
        taken: dict[str, int] = {}
        for name, version, position, hash_, crc in rows:
            if hash_ is None:
                _check(crc, name, position)
                taken[name] = position
            else:
                _check(crc, name, version, position, hash_)
                ends[name] = StreamHead(version, position, bytes.fromhex(hash_))
        return AnchorState(size=size, head=head, incarnation=incarnation, trust=trust), ends, taken

    def _look_at(
        self, stream: str | None, request: str | None
    ) -> tuple[AnchorState, dict[str, StreamHead], dict[str, int]]:
        ((trust, size, incarnation, head, state_crc, *end, done, done_crc),) = self._all(
            "read_known_single", (stream, request)
        )
        _check(state_crc, size, head, incarnation, trust)
        ends: dict[str, StreamHead] = {}
        taken: dict[str, int] = {}
        version, position, hash_, crc = end
        if stream is not None and hash_ is not None:
            _check(crc, stream, version, position, hash_)
            ends[stream] = StreamHead(version, position, bytes.fromhex(hash_))
        if request is not None and done is not None:
            _check(done_crc, request, done)
            taken[request] = done
        return AnchorState(size=size, head=head, incarnation=incarnation, trust=trust), ends, taken

    def lineages(self, revisions: Iterable[str]) -> dict[str, str]:
        """Return the lineage of each revision that was ever born."""
        return _lineages(self._all("read_revisions", (_json([*revisions]),)))

    def beginning_with(self, prefix: str) -> dict[str, str]:
        """Return the lineage of each revision, and each stream as its own, whose id begins with `prefix`."""
        bounds = {"first": prefix, "beyond": prefix + "\U0010ffff"}
        return _lineages(self._all("find_beginning", bounds))

    def erasures(self, positions: Iterable[int]) -> dict[int, int]:
        """Return, for each of these positions whose payload an entry says is destroyed, where that entry stands.

        It is a hint of where to look: the entry itself says it.
        """
        return dict(self._all("read_erasures", (_json([*positions]),)))

    def note(self) -> bytes | None:
        """Return the last checkpoint that was signed here, or None."""
        for size, note, crc in self._all("read_note"):
            _check(crc, size, note)
            return note
        return None

    def requests_held(self) -> tuple[int, int]:
        """Return how far the anchor reaches and how many requests it holds; with streams set back, Unusable."""
        ((size, versions, requests),) = self._all("read_sums")
        if versions != size:
            raise Unusable(f"says where the streams of {versions} entries end, and holds {size}")
        return size, requests

    def examine(self) -> None:
        """Read everything that is held, or raise Unusable. It takes time for each entry."""
        self.requests_held()
        with self._reading():
            for (said,) in self._connection.execute(STATEMENTS["check_pages"]):
                if said != "ok":
                    raise Unusable(f"is damaged: {said}")
            for statement in _WHOLE:
                for *columns, crc in self._connection.execute(STATEMENTS[statement]):
                    _check(crc, *columns)
            self._examine_tree(self.state().size)

    # ---------------------------------------------------------------- growing

    def make_ready(self, links: Sequence[Link]) -> None:
        """Work out what it takes to `extend` by these, while there is time. Nothing is written, promised or refused."""
        if self._process == os.getpid():  # what is wrong with a fork is said by who extends
            with self._lock:
                self._growth.make_ready(links)

    def extend(self, links: Sequence[Link]) -> None:
        """Take consecutive entries that begin at or below the end; those that are here already must be the same.

        Two processes that followed the same entries extend it in either order. A different entry, or a gap before the
        first, is Unusable: one of the two is not what was written.
        """
        if not links:
            return
        if links[-1].position - links[0].position + 1 != len(links):
            raise ValueError("the entries are not consecutive")
        with self._own(), self._faults:
            if not self._growth.add(links):
                self._extend(links)
            if self._log is not None:
                self._log.grow(len(links))

    def _extend(self, links: Sequence[Link]) -> None:
        with self._writing():
            end = self._end()
            known = end.size - links[0].position
            if known < 0:
                raise Unusable(f"ends at {end.size}, and was longer before")
            self._check_same(links[:known])
            if 0 < known <= len(links) and links[known - 1].hash != end.head:
                raise Unusable(f"holds another entry than the ledger at position {end.size - 1}")
            if known < len(links):
                self._growth.add_to(end, links[known:])

    def keep_note(self, size: int, note: bytes) -> None:
        """Remember a checkpoint of that size as one that was signed here. Another one of that size is Unusable."""
        with self._writing():
            kept = self._all("read_note_of", (size,))
            if not kept:
                self._do("write_note", size, note, checksum(size, note))
            elif kept != [(note,)]:
                raise Unusable(f"keeps another checkpoint of size {size}")

    def try_writing(self) -> None:
        """Raise Unusable if the file cannot be written now."""
        with self._writing():
            pass

    def trust(self, began: str) -> None:
        """Say how trust in this anchor began, once that is known better than when it was made."""
        with self._writing():
            state = self.state()
            self._do("write_trust", began, checksum(state.size, state.head, state.incarnation, began))

    # ---------------------------------------------------------------- inside

    def _end(self) -> End:
        """Return where the anchor ends."""
        ((size, head, incarnation, trust, crc, last, last_crc),) = self._all("read_end")
        _check(crc, size, head, incarnation, trust)
        if last is not None:
            _check(last_crc, size >> ROW_BITS, last)
        if len(last or b"") != (size & (ROW_LEAVES - 1)) * LEAF_BYTES:
            raise Unusable("has lost leaves")
        peaks = tuple(self._peaks(size & -ROW_LEAVES))
        return End(size=size, head=head, incarnation=incarnation, trust=trust, leaves=last or b"", peaks=peaks)

    def _examine_tree(self, size: int) -> None:
        """Compute every subtree anew from the leaves."""
        grown = tree.Frontier()
        for place, hashes, _ in self._connection.execute(STATEMENTS["read_all_leaves"]):
            if place << ROW_BITS != grown.size:
                raise Unusable("has lost leaves")
            for at in range(0, len(hashes), LEAF_BYTES):
                grown.append(hashes[at : at + LEAF_BYTES])
            if len(hashes) == ROW_BYTES and tree.joined(self._peaks(grown.size)) != grown.root():
                raise Unusable(f"has another tree than that of its leaves, below {grown.size}")
        if grown.size != size:
            raise Unusable(f"says that it holds {size} entries, and holds {grown.size}")

    def _check_same(self, links: Sequence[Link]) -> None:
        if links:
            kept = self.leaves(links[0].position, len(links))
            for number, link in enumerate(links):
                if kept[number * LEAF_BYTES : (number + 1) * LEAF_BYTES] != link.leaf:
                    raise Unusable(f"holds another entry than the ledger at position {link.position}")

    def _peaks(self, size: int, first: int = 0) -> list[bytes]:
        """Return the roots of the complete subtrees of `size` entries from `first` on, which is a multiple of each."""
        peaks: list[bytes] = []
        for bit in range(size.bit_length() - 1, -1, -1):
            if size >> bit & 1:
                peaks.append(self._subtree(bit, first))
                first += 1 << bit
        return peaks

    def _subtree(self, level: int, first: int) -> bytes:
        """Return the root of the 2**level entries from `first` on, which is a multiple of that."""
        if level >= ROW_BITS:
            return self._stored_subtree(level, first >> level)
        return root_of(self.leaves(first, 1 << level))

    def _stored_subtree(self, level: int, place: int) -> bytes:
        rows = self._all("read_subtree", (level, place))
        if not rows:
            raise Unusable("has lost the root of a subtree")
        root, crc = rows[0]
        _check(crc, level, place, root)
        return root

    def _all(self, statement: str, params: tuple[object, ...] | dict[str, str] = ()) -> list[Row]:
        with self._own(), self._faults:
            return self._connection.execute(STATEMENTS[statement], params).fetchall()

    def _do(self, statement: str, *params: object) -> None:
        self._connection.execute(STATEMENTS[statement], params)

    @contextmanager
    def _reading(self) -> Generator[None]:
        with self._own(), self._faults, Transaction(self._connection, "BEGIN"):
            yield

    @contextmanager
    def _writing(self) -> Generator[None]:
        # IMMEDIATE: what is read here is what is extended. A transaction that begins as a reader and then wants to
        # write is refused, without waiting, when another process has written meanwhile.
        with self._own(), self._faults, Transaction(self._connection, "BEGIN IMMEDIATE"):
            yield

    def _own(self) -> AbstractContextManager[bool]:
        """Return the lock under which the file is used."""
        # SQLite's locks are the process's: a connection that is used on both sides of a fork damages the file.
        if self._process != os.getpid():
            raise Unusable("was opened before the process forked", passing=True)
        return self._lock


def _json(value: Sequence[object]) -> str:
    return msgspec.json.encode(value).decode()


def _lineages(rows: Iterable[Row]) -> dict[str, str]:
    """Return the lineage of each revision; of a stream, that is itself."""
    found: dict[str, str] = {}
    for known, lineage, crc in rows:
        if lineage is not None:
            _check(crc, known, lineage)
        found[known] = known if lineage is None else lineage
    return found


def _check(crc: object, *columns: Any) -> None:  # Any: whatever a damaged file gives
    if crc != checksum(*columns):
        raise Unusable("is damaged: a row is not what was written")


__all__ = ["Anchor", "AnchorState", "Link", "Unusable"]
