"""What has to be remembered of a ledger of any length while it is read: each stream's course, and every request.

Records go into buckets by their key, and beyond a number of them into a temporary file, so a verification needs the
same memory for a million streams as for ten. Nothing is looked up while reading: a page leaves one record a stream, and
what does not join is found once, at the end, a bucket at a time. A look-up a stream in a table would cost as much again
as all the hashing, and several times that for streams named by hashes (benchmarks/verify_rate.py).
"""

import os
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO, Generic, NamedTuple, Self, TypeVar

import msgspec
from msgspec import Struct

from ledger.errors import failure

BUCKETS = 512  # at the end one bucket is held whole: 200,000 records for a hundred million streams
HELD_MAX = 40_000


class Part(Struct, array_like=True, gc=False):
    """What one page held of a stream: from `position` on, at `place` in the stream, to its `version` after the page.

    `link` is the hash that the first entry names as the stream's last, in hex, None if it begins its stream as it
    should; `hash` is that of the last entry. None stands for what cannot be known. `suspect` is the last entry's
    position if it is not what was written: a link that does not match is then its fault.
    """

    stream: str
    position: int
    place: int | None
    link: str | None
    version: int
    hash: bytes | None
    suspect: int | None


class Request(Struct, array_like=True, gc=False):
    """A request that the entry at `position` carried out, as the 32 bytes that its hex stands for."""

    request: bytes
    position: int


class Break(NamedTuple):
    """A part that does not begin where its stream had ended; `suspect` is the position of a last entry that is bad."""

    position: int
    place: int
    version: int
    suspect: int | None


RecordT = TypeVar("RecordT", Part, Request)


class Buckets(Generic[RecordT]):
    """Records in the order in which they came, apart by the hash of their key."""

    def __init__(self, decoder: "msgspec.msgpack.Decoder[list[RecordT]]", file: IO[bytes]) -> None:
        self._file = file
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = decoder
        self._held: list[list[RecordT]] = [[] for _ in range(BUCKETS)]
        self._count = 0
        self._blocks: list[list[tuple[int, int]]] = [[] for _ in range(BUCKETS)]

    def add(self, keys: Iterable[str | bytes], records: Collection[RecordT]) -> None:
        """Take records with their keys. Python's hash of a key is salted, so nobody can fill one bucket on purpose."""
        held = self._held
        for place, record in zip(map(hash, keys), records, strict=True):
            held[place % BUCKETS].append(record)
        self._count += len(records)
        if self._count > HELD_MAX:
            self._spill()

    def __iter__(self) -> Iterator[list[RecordT]]:
        """Yield each bucket's records."""
        for blocks, held in zip(self._blocks, self._held, strict=True):
            yield [*self._records(blocks), *held]

    def _records(self, blocks: list[tuple[int, int]]) -> Iterator[RecordT]:
        for place, size in blocks:
            with _room():
                self._file.seek(place)
                block = self._file.read(size)
            yield from self._decoder.decode(block)

    def _spill(self) -> None:
        with _room():
            place = self._file.seek(0, os.SEEK_END)
            for blocks, held in zip(self._blocks, self._held, strict=True):
                block = self._encoder.encode(held)
                self._file.write(block)
                blocks.append((place, len(block)))
                place += len(block)
                held.clear()
            self._file.flush()
        self._count = 0


class Aside:
    """What one verification remembers. A context manager; the temporary file is gone afterwards."""

    def __enter__(self) -> Self:
        with _room():
            self._file = TemporaryFile(prefix="corrigenda-verify-")
        self._parts = Buckets(msgspec.msgpack.Decoder(list[Part]), self._file)
        self._requests = Buckets(msgspec.msgpack.Decoder(list[Request]), self._file)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # what could not be written is of no use any more
            self._file.close()

    def keep(self, parts: dict[str, Part], requests: list[Request]) -> None:
        """Keep what a page held: the part of each stream, and each request with its position."""
        self._parts.add(parts, parts.values())
        self._requests.add([record.request for record in requests], requests)

    def breaks(self, *, whole: bool) -> Iterator[Break]:
        """Yield every part that does not join what was read of its stream before; with `whole`, all was read."""
        for bucket in self._parts:
            ends: dict[str, Part] = {}
            for part in bucket:
                before = ends.get(part.stream)
                ends[part.stream] = part
                if before is None and part.place == 0 and part.link is None:
                    continue  # as nearly all begin
                if part.place is None:
                    continue
                if before is None:
                    if part.place == 0 and part.link is not None:
                        yield Break(part.position, 0, 0, None)
                    elif part.place and whole:
                        yield Break(part.position, part.place, 0, None)
                elif part.place != before.version or (before.hash is not None and part.link != before.hash.hex()):
                    yield Break(part.position, part.place, before.version, before.suspect)

    def beginnings(self) -> Iterator[list[Part]]:
        """Yield the first part of each stream whose beginning can be checked, a bucket at a time."""
        for bucket in self._parts:
            first: dict[str, Part] = {}
            for part in bucket:
                first.setdefault(part.stream, part)
            yield [part for part in first.values() if part.place is not None]

    def repeated(self) -> int | None:
        """Return the first position with a request that was carried out before, or None."""
        found: list[int] = []
        for bucket in self._requests:
            if len({record.request for record in bucket}) == len(bucket):
                continue
            seen: set[bytes] = set()
            for record in bucket:
                if record.request in seen:
                    found.append(record.position)
                    break
                seen.add(record.request)
        return min(found, default=None)


@contextmanager
def _room() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise failure(
            "UNAVAILABLE",
            "A verification keeps what it has seen of a long ledger in a temporary file, and that failed "
            f"({error.strerror}). Make room, or name another folder in TMPDIR; nothing was changed.",
        ) from error
