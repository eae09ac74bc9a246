"""A bundle whose entries lie in files of their own: each proven to be in the tree, and of a complete one the whole log.

Memory grows with the entries of the bundle, of which there are few; each is read twice.
"""

from collections.abc import Callable, Iterator, Mapping

from ledger import tiles, tree
from ledger.bundle import chain, layout
from ledger.bundle.chain import Event
from ledger.bundle.findings import Stream, Tampered
from ledger.bundle.layout import Listed, Malformed
from ledger.bundle.source import Folder
from ledger.chain import Entry
from ledger.codec import NotCanonical, decode_envelope, decode_payload
from ledger.digest import GENESIS, SALT_BYTES, commitment, leaf, link, stream_link
from ledger.erasure import Erased, Erasures, is_signed
from ledger.limits import ENVELOPE_BYTES_MAX, PAYLOAD_BYTES_MAX
from ledger.notes import Checkpoint, VerifierKey
from ledger.tree import NotProven


class Single:
    """One check of a bundle whose listing and checkpoint are signed. Errors: Tampered, Malformed."""

    def __init__(
        self,
        folder: Folder,
        files: Mapping[str, Listed],
        signed: Checkpoint,
        note: bytes,
        key: VerifierKey,
        step: Callable[[], None],
    ) -> None:
        self.payloads: dict[str, int] = {"given": 0, "withheld": 0, "erased": 0, "none": 0}
        self._folder = folder
        self._files = files
        self._signed = signed
        self._note = note
        self._key = key
        self._step = step
        self._ends: dict[str, tuple[int, int, bytes]] = {}  # stream: events, last position, last stream hash
        self._erasures = Erasures()
        self._erased: dict[int, Erased] = {}
        self._names: dict[str, str] = {}

    def check(self) -> None:
        """Check entries, proofs, payloads and chain, and what else there is of the log."""
        self._check_events()
        if any(name.startswith("tile/") for name in self._files):
            self._check_tree()
        self._find_erased()
        self._check_lines()

    @property
    def erased(self) -> list[Erased]:
        """Return the payloads that were erased with a certificate."""
        return [*self._erased.values()]

    @property
    def stream_count(self) -> int:
        """Return how many streams there are."""
        return len(self._ends)

    def streams(self) -> tuple[Stream, ...]:
        """Return the streams, and where each ends."""
        return tuple(Stream(name, count, last) for name, (count, last, _) in sorted(self._ends.items()))

    # ---------------------------------------------------------------- events

    def _check_events(self) -> None:
        positions = layout.positions(self._files, "envelopes")
        if not positions:
            raise Tampered("files", "envelopes", "an entry at least", "none")
        for folder in ("proofs", "payloads"):
            for position in sorted(set(layout.positions(self._files, folder)) - set(positions)):
                raise Tampered("files", f"{folder}/{position}", "an envelope beside it", "none")
        before: Entry | None = None
        for event in self._read(positions):
            self._follow(event.entry, before)
            self.payloads[event.told] += 1
            self._erasures.see(event.entry.envelope)
            if event.told == "withheld":
                self._erasures.miss(event.entry.position)
            self._names |= chain.names_of([event])
            before = event.entry

    def _read(self, positions: list[int]) -> Iterator[Event]:
        """Yield each event, its form, its place in the tree and its payload checked."""
        for position in positions:
            entry = self._entry(position)
            self._check_proof(entry)
            yield self._event(entry)
            self._step()

    def _entry(self, position: int) -> Entry:
        name = layout.envelope(position)
        raw = self._folder.read(name, ENVELOPE_BYTES_MAX)
        try:
            envelope = decode_envelope(raw)
        except NotCanonical as error:
            raise Tampered("canonical", name, "an envelope in canonical form", str(error)) from error
        if (envelope.seq, envelope.log) != (position, self._signed.origin):
            raise Tampered("chain", name, f"position {position} of this log", "another position, or another log")
        return Entry(envelope=envelope, raw=raw, hash=link(raw), stream_hash=stream_link(raw), seal=b"")

    def _check_proof(self, entry: Entry) -> None:
        name = layout.proof(entry.position)
        try:
            proof = layout.parse_proof(self._folder.read(name, layout.PROOF_BYTES_MAX))
            if (proof.index, proof.checkpoint) != (entry.position, self._note):
                raise Tampered("tree", name, "a proof of this entry at the checkpoint", "another proof")
            tree.check_inclusion(leaf(entry.raw), proof.index, self._signed.size, proof.hashes, self._signed.root)
        except (Malformed, NotProven) as error:
            raise Tampered("tree", name, "a proof that the entry is in the signed tree", str(error)) from error

    def _event(self, entry: Entry) -> Event:
        name, envelope = layout.payload(entry.position), entry.envelope
        if name not in self._files:
            absence = "erased" if entry.position in self._erased else "withheld"
            return Event(entry, None, None if envelope.payload_sha256 is None else absence)
        raw = self._folder.read(name, SALT_BYTES + PAYLOAD_BYTES_MAX)
        salt, body = raw[:SALT_BYTES], raw[SALT_BYTES:]
        if (commitment(salt, body), len(body)) != (envelope.payload_sha256, envelope.payload_len):
            raise Tampered("payloads", name, "the payload that the entry committed to", "another")
        try:
            return Event(entry, decode_payload(envelope.type, body), None)
        except NotCanonical as error:
            raise Tampered("payloads", name, "a payload in canonical form", str(error)) from error

    def _follow(self, entry: Entry, before: Entry | None) -> None:
        """Check the links: to the entry before it where that is here or there is none, and to the stream's last one."""
        envelope, place = entry.envelope, layout.envelope(entry.position)
        place_before, linked = (-1, GENESIS) if before is None else (before.position, before.hash)
        if place_before + 1 == entry.position and envelope.prev_b3 != linked.hex():
            raise Tampered("chain", place, "a link to the entry before", "another link")
        count, _, last = self._ends.get(envelope.stream, (0, -1, GENESIS))
        if (envelope.stream_seq, envelope.stream_prev_b3) != (count, last.hex()):
            raise Tampered("streams", place, f"event {count} of its stream", f"event {envelope.stream_seq}, or a gap")
        self._ends[envelope.stream] = (count + 1, entry.position, entry.stream_hash)

    # ---------------------------------------------------------------- the whole log

    def _check_tree(self) -> None:
        """Check that the tiles are those of the signed tree, and that no entry of a stream is left out."""
        grown, counted, before = tree.Frontier(), dict.fromkeys(self._ends, 0), GENESIS
        for tile in tiles.of_size(self._signed.size, tiles.ENTRIES):
            entries = self._entries(tile)
            grown.extend([leaf(raw) for raw in entries])
            for position, raw in enumerate(entries, start=tile.first):
                before = self._check_in_order(position, raw, before, counted)
            self._step()
        if grown.root() != self._signed.root:
            raise Tampered("tree", "tile/entries", "the entries of the signed tree", "others")
        for stream, count in counted.items():
            if count != self._ends[stream][0]:
                raise Tampered("streams", stream, f"its {count} events", f"{self._ends[stream][0]} of them")
        self._check_tiles()

    def _entries(self, tile: tiles.Tile) -> list[bytes]:
        name = tiles.path(tile)
        try:
            found = tiles.unbundle(self._folder.read(name, tiles.WIDTH * (tiles.ENTRY_BYTES_MAX + 2)))
        except tiles.WrongWidth as error:
            raise Tampered("tree", name, "a bundle of entries", str(error)) from error
        if len(found) != tile.width:
            raise Tampered("tree", name, f"{tile.width} entries", f"{len(found)}")
        return found

    def _check_in_order(self, position: int, raw: bytes, before: bytes, counted: dict[str, int]) -> bytes:
        try:
            envelope = decode_envelope(raw)
        except NotCanonical as error:
            raise Tampered("canonical", f"entry {position}", "an envelope in canonical form", str(error)) from error
        if (envelope.seq, envelope.prev_b3) != (position, before.hex()):
            raise Tampered("chain", f"entry {position}", "the next entry of the chain", "another")
        if envelope.stream in counted:
            counted[envelope.stream] += 1
        return link(raw)

    def _check_tiles(self) -> None:
        def leaves(first: int, count: int) -> bytes:
            tile = tiles.Tile(tiles.ENTRIES, first // tiles.WIDTH, count)
            return b"".join(map(leaf, self._entries(tile)))

        grown = {tiles.path(tile) for tile in tiles.of_size(self._signed.size, tiles.ENTRIES)}
        for tile, raw in tiles.grow(self._signed.size, leaves):
            name = tiles.path(tile)
            grown.add(name)
            if self._folder.read(name, tiles.WIDTH * tiles.HASH_BYTES) != raw:
                raise Tampered("tree", name, "the hashes of the signed tree", "others")
        for name in sorted(name for name in self._files if name.startswith("tile/") and name not in grown):
            raise Tampered("files", name, "a tile of a log of this size", "another")

    # ---------------------------------------------------------------- what is told

    def _find_erased(self) -> None:
        """Tell what was erased from what was withheld, as the events say it."""
        for one in self._erasures.certified(lambda certificate: is_signed(certificate, self._key)):
            if one.position in self._erasures.absent:
                self._erased[one.position] = one
            elif layout.payload(one.position) in self._files:
                expected = "no payload: a certificate says that it was erased"
                raise Tampered("erasures", layout.payload(one.position), expected, "one")
        self.payloads["erased"] = len(self._erased)
        self.payloads["withheld"] -= len(self._erased)

    def _check_lines(self) -> None:
        """Check that the readable chain says what the events say, and nothing else."""
        events = self._read(layout.positions(self._files, "envelopes"))
        with self._folder.open(layout.CHAIN) as file:
            for number, line in enumerate(chain.lines(events, self._names), start=1):
                if file.read(len(line)) != line:
                    raise Tampered("chain.jsonl", f"line {number}", "what its event says", "something else")
            if file.read(1):
                raise Tampered("chain.jsonl", layout.CHAIN, "a line for each event", "more")
