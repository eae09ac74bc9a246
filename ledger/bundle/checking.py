"""A bundle held against a key that its reader had before: what it proves, and what it does not (BUNDLE.md §4).

The key and the origin come from the caller, the size and the root from the checkpoint that the key signed, everything
else from envelopes whose place in the tree is proven. Nothing needs a database or a network.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ledger import notes, tiles, tree
from ledger.bundle import chain, layout
from ledger.bundle.chain import Event
from ledger.bundle.findings import TAMPERED, UNVERIFIABLE, BundleReport, Finding, Stream, Tampered
from ledger.bundle.layout import Listed, Malformed, UnknownFormat
from ledger.bundle.source import Folder, unpacked
from ledger.bundle.tiled import Tiled
from ledger.chain import Entry
from ledger.codec import NotCanonical, decode_envelope, decode_payload
from ledger.digest import GENESIS, SALT_BYTES, commitment, leaf, link, of_file, stream_link
from ledger.erasure import Erased, Erasures, is_signed
from ledger.limits import ENVELOPE_BYTES_MAX, NOTE_BYTES_MAX, PAYLOAD_BYTES_MAX
from ledger.notes import Checkpoint, NotANote, VerifierKey
from ledger.tree import NotProven

Progress = Callable[[int, int], None]


class _Unverifiable(Exception):
    """The bundle may be what was written, and this key cannot show it."""


def verify_bundle(
    path: Path, key: VerifierKey, *, origin: str | None = None, progress: Progress | None = None
) -> BundleReport:
    """Check a bundle, in a directory or a tar file, with a key and for the origin that is its name or is given.

    `progress` is told how many of the files, entries and lines were checked, and how many there are in all.
    Errors: OSError (it is not there, or cannot be read).
    """
    try:
        if key.name != (origin or key.name):
            raise _Unverifiable("the key is of another origin than the one that was asked for")
        with unpacked(path, lambda raw: _listing(raw, key)) as (folder, files):
            return _Check(folder, files, key, progress).report()
    except _Unverifiable as error:
        return _unverifiable(str(error))
    except UnknownFormat as error:
        return _unverifiable(str(error))
    except Malformed as error:
        return _tampered(Finding("files", "bundle", "a bundle", str(error)))
    except Tampered as error:
        return _tampered(error.finding)


def _listing(raw: bytes, key: VerifierKey) -> Mapping[str, Listed]:
    """Return what the note `files` lists, after its signature was checked."""
    origin, files = layout.parse_listing(_signed(raw, key, layout.FILES, layout.LISTING_BYTES_MAX))
    if origin != key.name:
        raise Tampered("files", layout.FILES, "the origin that is the key's name", "another")
    return files


def _signed(raw: bytes, key: VerifierKey, name: str, limit: int = NOTE_BYTES_MAX) -> str:
    """Return the text of a note that the key signed; one that others signed cannot be verified."""
    try:
        note = notes.parse_note(raw, limit)
    except NotANote as error:
        raise Tampered("signature", name, "a signed note", str(error)) from error
    if all((one.name, one.key_id) != (key.name, key.key_id) for one in note.signatures):
        named = any(one.name == key.name for one in note.signatures)
        raise _Unverifiable(
            "another key of the same origin signed it: compare the key that you were given with its owner"
            if named
            else "it was signed for another origin, not by this key"
        )
    try:
        return notes.open_note(raw, [key], limit).text
    except NotANote as error:
        raise Tampered("signature", name, "the key's signature over the text", str(error)) from error


class _Check:
    """One pass over a bundle whose listing is signed."""

    def __init__(
        self, folder: Folder, files: Mapping[str, Listed], key: VerifierKey, progress: Progress | None
    ) -> None:
        self._folder = folder
        self._files = files
        self._key = key
        self._note = b""
        self._signed = Checkpoint("", 0, b"")
        self._ends: dict[str, tuple[int, int, bytes]] = {}  # stream: events, last position, last stream hash
        self._payloads: dict[str, int] = {"given": 0, "withheld": 0, "erased": 0, "none": 0}
        self._erasures = Erasures()
        self._erased: dict[int, Erased] = {}
        self._names: dict[str, str] = {}
        self._stream_count = 0
        self._progress = progress
        entries = sum(name.startswith(("tile/entries/", layout.PAYLOAD_TILES)) for name in files)
        self._done, self._parts = 0, len(files) + 2 * len(layout.positions(files, "envelopes")) + entries

    def _step(self) -> None:
        """Count a file, an event, a line, or a tile of entries as checked."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._parts)

    def report(self) -> BundleReport:
        """Check everything, and say what that shows."""
        self._check_files()
        self._check_checkpoint()
        tiled = layout.is_tiled(self._files)
        streams = self._check_tiled() if tiled else self._check_single()
        complete = any(name.startswith("tile/") for name in self._files)
        return BundleReport(
            ok=True,
            exit_code=0,
            verdict=self._verdict(),
            says=(*self._proven(), *self._not_excluded(complete=complete), *self._listed(streams)),
            profile="complete" if complete else "proofs",
            origin=self._signed.origin,
            size=self._signed.size,
            root=self._signed.root.hex(),
            key_id=self._key.key_id.hex(),
            events=sum(self._payloads.values()),
            streams=streams,
            payloads=self._payloads,
        )

    def _check_single(self) -> tuple[Stream, ...]:
        """Check a bundle whose entries lie in files of their own, and return its streams."""
        self._check_events()
        if any(name.startswith("tile/") for name in self._files):
            self._check_tree()
        self._check_erasures()
        self._check_lines()
        self._stream_count = len(self._ends)
        return tuple(Stream(name, count, last) for name, (count, last, _) in sorted(self._ends.items()))

    def _check_tiled(self) -> tuple[Stream, ...]:
        """Check the bundle of a whole log, and return its first streams."""
        log = Tiled(self._folder, self._files, self._signed, self._key, self._step)
        log.check()
        self._erased = {one.position: one for one in log.erased}
        self._check_erasure_lines()
        self._payloads, self._stream_count = log.payloads, log.stream_count
        return log.streams()

    # ---------------------------------------------------------------- files and checkpoint

    def _check_files(self) -> None:
        there = self._folder.names() - {layout.FILES}
        for name in sorted(there ^ self._files.keys()):
            listed = name in self._files
            raise Tampered("files", name, "a listed file" if listed else "no such file", "none" if listed else "one")
        for name, one in self._files.items():
            found = self._measured(name, one.size)
            self._step()
            if found != one:
                raise Tampered("files", name, f"{one.size} bytes, {one.sha256}", f"{found.size} bytes, {found.sha256}")

    def _measured(self, name: str, size: int) -> Listed:
        with self._folder.open(name) as file:
            there = os.fstat(file.fileno()).st_size
            return Listed(there, of_file(file) if there == size else "not read")

    def _check_checkpoint(self) -> None:
        self._note = self._folder.read(layout.CHECKPOINT, NOTE_BYTES_MAX)
        try:
            self._signed = notes.parse_checkpoint(_signed(self._note, self._key, layout.CHECKPOINT))
        except NotANote as error:
            raise Tampered("checkpoint", layout.CHECKPOINT, "a checkpoint", str(error)) from error
        if self._signed.origin != self._key.name:
            raise Tampered("checkpoint", layout.CHECKPOINT, "the origin that is the key's name", "another")

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
            self._payloads[event.told] += 1
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
        if envelope.payload_sha256 is None or commitment(salt, body) != envelope.payload_sha256:
            raise Tampered("payloads", name, "the payload that the entry committed to", "another")
        try:
            return Event(entry, decode_payload(envelope.type, body), None)
        except NotCanonical as error:
            raise Tampered("payloads", name, "a payload in canonical form", str(error)) from error

    def _follow(self, entry: Entry, before: Entry | None) -> None:
        """Check the links: to the entry before it where that is here, and to the stream's last one."""
        envelope, place = entry.envelope, layout.envelope(entry.position)
        if before is not None and before.position + 1 == entry.position and envelope.prev_b3 != before.hash.hex():
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

    # ---------------------------------------------------------------- erasures

    def _check_erasures(self) -> None:
        """Tell what was erased from what was withheld: the list of it is made anew from the events and compared."""
        for one in self._erasures.certified(lambda certificate: is_signed(certificate, self._key)):
            if one.position in self._erasures.absent:
                self._erased[one.position] = one
            elif layout.payload(one.position) in self._files:
                expected = "no payload: a certificate says that it was erased"
                raise Tampered("erasures", layout.payload(one.position), expected, "one")
        self._check_erasure_lines()
        self._payloads["erased"] = len(self._erased)
        self._payloads["withheld"] -= len(self._erased)

    def _check_erasure_lines(self) -> None:
        expected = chain.erasures(self._erased.values())
        with self._folder.open(layout.ERASURES) as file:
            if file.read(len(expected) + 1) != expected:
                raise Tampered(
                    "erasures", layout.ERASURES, "a line for each payload that a certificate accounts for", "others"
                )

    # ---------------------------------------------------------------- what it says

    def _verdict(self) -> str:
        told = ["with payloads withheld"] if self._payloads["withheld"] else []
        told += ["with payloads erased with certificate"] if self._payloads["erased"] else []
        return ", ".join(["verified", *told])

    def _check_lines(self) -> None:
        """Check that the readable chain says what the events say, and nothing else."""
        events = self._read(layout.positions(self._files, "envelopes"))
        with self._folder.open(layout.CHAIN) as file:
            for number, line in enumerate(chain.lines(events, self._names), start=1):
                if file.read(len(line)) != line:
                    raise Tampered("chain.jsonl", f"line {number}", "what its event says", "something else")
            if file.read(1):
                raise Tampered("chain.jsonl", layout.CHAIN, "a line for each event", "more")

    def _proven(self) -> tuple[str, ...]:
        return (
            f"Each event is in the log {self._signed.origin} at the size {self._signed.size} that the key signed.",
            "The links of each stream are unbroken from its first event to the last one in the bundle.",
            "Each payload that is given is the one that its event committed to.",
            *self._gone(),
        )

    def _listed(self, streams: tuple[Stream, ...]) -> tuple[str, ...]:
        if len(streams) == self._stream_count:
            return ()
        return (f"It tells {self._stream_count} streams, of which the first {len(streams)} are listed here.",)

    def _gone(self) -> tuple[str, ...]:
        if not self._erased:
            return ()
        return (
            f"{len(self._erased)} payloads were erased, and certificates that the key signed say so. Copies that were "
            "handed out before, and whatever else a certificate lists as not reached, are not covered.",
        )

    def _not_excluded(self, *, complete: bool) -> tuple[str, ...]:
        if complete:
            return (f"Nothing of these streams is missing up to size {self._signed.size}.",)
        return (
            "Later events of these streams are not excluded by this bundle: how many there are up to that size is the "
            "issuer's word (report.json). A complete export shows it.",
        )


def _tampered(finding: Finding) -> BundleReport:
    says = "The bundle is not what was written, or was never one. Do not rely on anything in it."
    return BundleReport(ok=False, exit_code=TAMPERED, verdict="tampered", says=(says,), finding=finding)


def _unverifiable(why: str) -> BundleReport:
    says = f"Nothing is shown, for or against the bundle: {why}."
    return BundleReport(ok=False, exit_code=UNVERIFIABLE, verdict="unverifiable", says=(says,))
