"""The bundle of a whole log, checked tile by tile: that its bytes make the signed tree, then what it tells of them.

Each tile is read twice. Memory grows with the streams that are told, a stream's end each, and with names and erasures;
never with the entries.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from heapq import nsmallest
from struct import Struct
from typing import IO

from ledger import tiles, tree
from ledger.bundle import chain, layout
from ledger.bundle.chain import Event
from ledger.bundle.findings import Stream, Tampered
from ledger.bundle.layout import Listed
from ledger.bundle.source import Folder
from ledger.chain import Entry, Envelope
from ledger.codec import NotCanonical, decode_payload, scan_envelope
from ledger.digest import GENESIS, SALT_BYTES, commitment, leaf, link, stream_link
from ledger.erasure import OF_ERASURES, Erased, Erasures, is_signed
from ledger.governance import AssignedName, NameAssigned
from ledger.limits import ENVELOPE_BYTES_MAX, PAYLOAD_BYTES_MAX
from ledger.message import Payload
from ledger.notes import Checkpoint, VerifierKey
from ledger.tiles import ENTRIES, Tile

STREAMS_LISTED = 1_000
_LINE_BYTES_MAX = ENVELOPE_BYTES_MAX + PAYLOAD_BYTES_MAX + 16 * 1024
_SEQ = re.compile(rb'\{"seq":(0|[1-9][0-9]{0,15}),')
_END = Struct(">QQ32s")  # of a stream: how many events, where the last one stands, its stream hash
_NAMES = b'"type":"name.assigned.v1"'
_WANTED = tuple(f'"type":"{tag}"'.encode() for tag in OF_ERASURES)  # in canonical form, no text can hold such bytes


class Tiled:
    """One check of a bundle of a whole log, whose listing and checkpoint are signed. Errors: Tampered, Malformed."""

    def __init__(
        self,
        folder: Folder,
        files: Mapping[str, Listed],
        signed: Checkpoint,
        key: VerifierKey,
        step: Callable[[], None],
    ) -> None:
        self.payloads: dict[str, int] = {"given": 0, "withheld": 0, "erased": 0, "none": 0}
        self.erased: list[Erased] = []
        self._folder = folder
        self._files = files
        self._signed = signed
        self._key = key
        self._step = step
        self._ends: dict[str, bytes] = {}
        self._names: dict[str, str] = {}
        self._erasures = Erasures()
        self._gone: dict[int, Erased] = {}

    def check(self) -> None:
        """Check tree, entries, payloads and chain."""
        self._check_files()
        self._check_tree()
        self._gone = {one.position: one for one in self._erasures.certified(lambda one: is_signed(one, self._key))}
        self._check_entries()

    def streams(self) -> tuple[Stream, ...]:
        """Return the first streams, and where each ends."""
        first = nsmallest(STREAMS_LISTED, self._ends)
        return tuple(Stream(name, *_END.unpack(self._ends[name])[:2]) for name in first)

    @property
    def stream_count(self) -> int:
        """Return how many streams are told."""
        return len(self._ends)

    # ---------------------------------------------------------------- the first reading: bytes

    def _check_files(self) -> None:
        for name in self._files:
            if name.startswith(("envelopes/", "proofs/", "payloads/")):
                raise Tampered("files", name, "entries and payloads in tiles only", "one in a file of its own")

    def _check_tree(self) -> None:
        """Check that the entries make the signed tree, and that the tiles are its own and those of the payloads."""
        expected = {layout.payload_tile(tile) for tile in self._tiles()}
        expected |= {tiles.path(tile) for tile in self._tiles()}
        grown = tree.Frontier()
        for tile, raw in tiles.grow(self._signed.size, lambda first, count: self._leaves(first, count, grown)):
            name = tiles.path(tile)
            expected.add(name)
            if self._folder.read(name, tiles.WIDTH * tiles.HASH_BYTES) != raw:
                raise Tampered("tree", name, "the hashes of the signed tree", "others")
        if grown.root() != self._signed.root:
            raise Tampered("tree", "tile/entries", "the entries of the signed tree", "others")
        for name in sorted(name for name in self._files if name.startswith("tile/") and name not in expected):
            raise Tampered("files", name, "a tile of a log of this size", "another")

    def _tiles(self) -> Iterator[Tile]:
        """Yield the tiles of entries that the signed size asks for, as long as they are listed."""
        for tile in tiles.of_size(self._signed.size, ENTRIES):
            if tiles.path(tile) not in self._files:
                raise Tampered("files", tiles.path(tile), "a listed tile of entries", "none")
            yield tile

    def _leaves(self, first: int, count: int, grown: tree.Frontier) -> bytes:
        """Return the leaf hashes of a tile of entries, and note what it says of names and erasures."""
        tile = Tile(ENTRIES, first // tiles.WIDTH, count)
        leaves: list[bytes] = []
        with self._folder.open(layout.payload_tile(tile)) as payloads:
            for position, raw in enumerate(self._entries(tile), start=first):
                leaves.append(leaf(raw))
                content = layout.read_record(payloads, skip=_NAMES not in raw)
                if content is not None:
                    self._learn(self._envelope(position, raw), content)
                elif any(one in raw for one in _WANTED):
                    self._erasures.see(self._envelope(position, raw))
            if payloads.read(1):
                raise Tampered("files", layout.payload_tile(tile), f"{count} payloads", "more")
        grown.extend(leaves)
        self._step()
        return b"".join(leaves)

    def _entries(self, tile: Tile) -> list[bytes]:
        name = tiles.path(tile)
        try:
            found = tiles.unbundle(self._folder.read(name, layout.bytes_max(name)))
        except tiles.WrongWidth as error:
            raise Tampered("tree", name, "a bundle of entries", str(error)) from error
        if len(found) != tile.width:
            raise Tampered("tree", name, f"{tile.width} entries", f"{len(found)}")
        return found

    def _learn(self, envelope: Envelope, content: bytes) -> None:
        """Take note of a name. That its payload is the one that was committed to is seen in the second reading."""
        payload = _payload(envelope, content)
        if isinstance(envelope.facts, NameAssigned) and isinstance(payload, AssignedName):
            self._names[envelope.facts.id] = payload.name

    # ---------------------------------------------------------------- the second reading: what they say

    def _check_entries(self) -> None:
        before = GENESIS
        with self._folder.open(layout.CHAIN) as file:
            told = _Told(file, chain.Lines(self._names))
            for tile in tiles.of_size(self._signed.size, ENTRIES):
                with self._folder.open(layout.payload_tile(tile)) as payloads:
                    for position, raw in enumerate(self._entries(tile), start=tile.first):
                        before = self._check_entry(position, raw, before, layout.read_record(payloads), told)
                self._step()
            told.end()
        if not sum(self.payloads.values()):
            raise Tampered("chain.jsonl", layout.CHAIN, "a line at least", "none")

    def _check_entry(self, position: int, raw: bytes, before: bytes, content: bytes | None, told: "_Told") -> bytes:
        """Check an entry, in the order of the log, and return its link."""
        envelope = self._envelope(position, raw)
        if envelope.prev_b3 != before.hex():
            raise Tampered("chain", f"entry {position}", "a link to the entry before", "another link")
        entry = Entry(envelope=envelope, raw=raw, hash=link(raw), stream_hash=stream_link(raw), seal=b"")
        if told.position == position:
            self._follow(entry)
            told.check(self._event(entry, content))
        elif content is not None:
            raise Tampered("payloads", f"payload {position}", "none of an entry that chain.jsonl does not tell", "one")
        elif envelope.stream in self._ends:
            raise Tampered("streams", f"entry {position}", "a line of each event of its stream", "none of this one")
        return entry.hash

    def _envelope(self, position: int, raw: bytes) -> Envelope:
        try:
            envelope = scan_envelope(raw)
        except NotCanonical as error:
            raise Tampered("canonical", f"entry {position}", "an envelope in canonical form", str(error)) from error
        if (envelope.seq, envelope.log) != (position, self._signed.origin):
            raise Tampered("chain", f"entry {position}", f"position {position} of this log", "another")
        return envelope

    def _follow(self, entry: Entry) -> None:
        envelope = entry.envelope
        end = self._ends.get(envelope.stream)
        count, _, last = (0, 0, GENESIS) if end is None else _END.unpack(end)
        if (envelope.stream_seq, envelope.stream_prev_b3) != (count, last.hex()):
            raise Tampered(
                "streams", f"entry {entry.position}", f"event {count} of its stream", f"event {envelope.stream_seq}"
            )
        self._ends[envelope.stream] = _END.pack(count + 1, entry.position, entry.stream_hash)

    def _event(self, entry: Entry, content: bytes | None) -> Event:
        """Return an event with what became of its payload, which is counted."""
        place = f"payload {entry.position}"
        payload, erased = None, self._gone.get(entry.position)
        if content is not None:
            payload = _payload(entry.envelope, content)
            committed = (entry.envelope.payload_sha256, entry.envelope.payload_len)
            if (commitment(content[:SALT_BYTES], content[SALT_BYTES:]), len(content) - SALT_BYTES) != committed:
                raise Tampered("payloads", place, "the payload that the entry committed to", "another")
            if erased is not None:
                raise Tampered("erasures", place, "no payload: a certificate says that it was erased", "one")
        missing = content is None and entry.envelope.payload_sha256 is not None
        if missing and erased is not None:
            self.erased.append(erased)
        event = Event(entry, payload, ("withheld" if erased is None else "erased") if missing else None)
        self.payloads[event.told] += 1
        return event


class _Told:
    """The readable chain, held against the events that its lines name: one line in memory, and of bounded length."""

    def __init__(self, file: IO[bytes], lines: chain.Lines) -> None:
        self._file = file
        self._lines = lines
        self._number = 0
        self._line = b""
        self.position: int | None = None
        self._next()

    def check(self, event: Event) -> None:
        """Check that the line says what its event says, and go on to the next one."""
        if self._lines.line(event) != self._line:
            raise Tampered("chain.jsonl", f"line {self._number}", "what its event says", "something else")
        self._next()

    def end(self) -> None:
        """Check that no line is left."""
        if self._line:
            raise Tampered("chain.jsonl", f"line {self._number}", "a later event of the log", "another")

    def _next(self) -> None:
        self._number += 1
        self._line = self._file.readline(_LINE_BYTES_MAX)
        match = _SEQ.match(self._line)
        if self._line and match is None:
            raise Tampered("chain.jsonl", f"line {self._number}", "a position", "something else")
        self.position = int(match[1]) if match else None


def _payload(envelope: Envelope, content: bytes) -> Payload:
    place = f"payload {envelope.seq}"
    if envelope.payload_sha256 is None:
        raise Tampered("payloads", place, "none: its entry has none", "one")
    try:
        return decode_payload(envelope.type, content[SALT_BYTES:])
    except NotCanonical as error:
        raise Tampered("payloads", place, "a payload in canonical form", str(error)) from error
