"""A whole log made a bundle: envelopes, payloads and the tree in tiles, written as the entries are told, one by one.

No entry has a file of its own, so a log of any length takes three files for 256 entries. One tile of entries is in
memory, the first events for the page, and what grows with the erasures and the names that the chain tells.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import notes, tiles
from ledger.bundle import chain, layout
from ledger.bundle.writing import About, Exported, Shown, event_of, finish, guide, put
from ledger.chain import broken
from ledger.digest import leaf
from ledger.erasure import Erased
from ledger.errors import refuse
from ledger.tree import Frontier

SHOWN_MAX, SHOWN_BYTES_MAX = 1_000, 8 * 1024 * 1024  # of the events that the page shows


class Counted(NamedTuple):
    """What a bundle tells: events, and of these how many payloads were withheld, and erased with a certificate."""

    events: int
    withheld: int
    erased: int


class Log(NamedTuple):
    """A whole log: every entry, ascending, and whether the chain tells it; names and erasures as all of it shows them.

    An entry that is not told comes without its payload.
    """

    entries: Iterable[tuple[Exported, bool]]
    names: Mapping[str, str]
    erased: Mapping[int, Erased]
    checkpoint: bytes
    origin: str
    report: Callable[[Counted], dict[str, Any]]  # Any: JSON
    prove: Callable[[int], list[bytes]]


def fill_tiled(folder: Path, log: Log, key: Ed25519PrivateKey) -> Counted:
    """Write the bundle of a whole log into an empty folder, sign the listing of its files, and say what it tells.

    Errors: VALIDATION_FAILED (the chain would be larger than a file of a bundle), INTEGRITY_BROKEN (the entries are not
    those of the checkpoint), OSError.
    """
    with _created(folder, layout.CHAIN) as file:
        tiling = _Tiling(folder, log, file)
        tiling.write()
    put(folder, layout.ERASURES, chain.erasures(tiling.erased))
    about = About(log.checkpoint, log.origin, log.report(tiling.counted), guide("VERIFY-tiled.md", log.origin))
    finish(folder, about, tiling.shown, tiling.counted.events, key)
    return tiling.counted


class _Tiling:
    """One writing of a log's tiles and of its chain."""

    def __init__(self, folder: Path, log: Log, file: IO[bytes]) -> None:
        self.shown: list[Shown] = []
        self.erased: list[Erased] = []
        self._folder = folder
        self._log = log
        self._file = file
        self._entries: Iterator[tuple[Exported, bool]] = iter(log.entries)
        self._lines = chain.Lines(log.names)
        self._grown = Frontier()
        self._shown_bytes = 0
        self._events = self._missing = 0

    @property
    def counted(self) -> Counted:
        """Return what was told so far."""
        return Counted(self._events, self._missing - len(self.erased), len(self.erased))

    def write(self) -> None:
        """Write every tile of the checkpoint's size; a tile of hashes after the entries that it was made of."""
        signed = notes.parse_checkpoint(notes.parse_note(self._log.checkpoint).text)
        for tile, raw in tiles.grow(signed.size, self._put_entries):
            put(self._folder, tiles.path(tile), raw)
        if next(self._entries, None) is not None or self._grown.root() != signed.root:
            raise broken(0, "tree", "the entries that the checkpoint is over", "others")

    def _put_entries(self, first: int, count: int) -> bytes:
        """Write a tile of entries and the one of their payloads, tell what is told of them, and return their leaves."""
        tile = tiles.Tile(tiles.ENTRIES, first // tiles.WIDTH, count)
        entries = list(islice(self._entries, count))
        if len(entries) != count:
            raise broken(first + len(entries), "chain", "the entry that was verified before", "none")
        put(self._folder, tiles.path(tile), tiles.bundle(tile, [one.entry.raw for one, _ in entries]))
        with _created(self._folder, layout.payload_tile(tile)) as file:
            for one, _ in entries:
                file.write(layout.format_record((one.salt or b"") + (one.body or b"")))
        for one, is_told in entries:
            if is_told:
                self._tell(one)
        leaves = [leaf(one.entry.raw) for one, _ in entries]
        self._grown.extend(leaves)
        return b"".join(leaves)

    def _tell(self, one: Exported) -> None:
        event = event_of(one, self._log.erased)
        self._file.write(self._lines.line(event))
        if self._file.tell() >= layout.FILE_BYTES_MAX:
            refuse(
                "VALIDATION_FAILED",
                "The readable chain of a bundle has at most 8 GiB, and this one would have more. Export the ledger as "
                "jsonl, which has no such bound, or the memories in question as a bundle of their own.",
                fields=[{"field": "format", "problem": "is a bundle"}],
            )
        self._events += 1
        self._missing += event.absence is not None
        if event.absence == "erased":
            self.erased.append(self._log.erased[one.entry.position])
        self._show(one)

    def _show(self, one: Exported) -> None:
        """Take an event for the page, if it is among the first ones."""
        self._shown_bytes += len(one.entry.raw) + len(one.body or b"")
        if self._events <= SHOWN_MAX and self._shown_bytes <= SHOWN_BYTES_MAX:
            self.shown.append(Shown(one, self._log.prove(one.entry.position)))


@contextmanager
def _created(folder: Path, name: str) -> Generator[IO[bytes]]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        yield file
