"""A bundle held against a key that its reader had before: what it proves, and what it does not (BUNDLE.md §4).

The key and the origin come from the caller, the size and the root from the checkpoint that the key signed, everything
else from envelopes whose place in the tree is proven. Nothing needs a database or a network.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ledger import notes
from ledger.bundle import chain, layout
from ledger.bundle.findings import TAMPERED, UNVERIFIABLE, BundleReport, Finding, Tampered
from ledger.bundle.layout import Listed, Malformed, UnknownFormat
from ledger.bundle.single import Single
from ledger.bundle.source import Folder, unpacked
from ledger.bundle.tiled import Tiled
from ledger.digest import of_file
from ledger.erasure import Erased
from ledger.limits import NOTE_BYTES_MAX
from ledger.notes import Checkpoint, NotANote, VerifierKey

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
        events = self._found()
        events.check()
        self._check_erasures(events.erased)
        streams, payloads = events.streams(), events.payloads
        complete = any(name.startswith("tile/") for name in self._files)
        return BundleReport(
            ok=True,
            exit_code=0,
            verdict=_verdict(payloads),
            says=(
                *self._proven(),
                *_gone(len(events.erased)),
                *self._open(complete=complete),
                *_listed(events),
            ),
            profile="complete" if complete else "proofs",
            origin=self._signed.origin,
            size=self._signed.size,
            root=self._signed.root.hex(),
            key_id=self._key.key_id.hex(),
            events=sum(payloads.values()),
            streams=streams,
            stream_count=events.stream_count,
            payloads=payloads,
        )

    def _found(self) -> Single | Tiled:
        """Return what checks the events, by where they lie."""
        if layout.is_tiled(self._files):
            return Tiled(self._folder, self._files, self._signed, self._key, self._step)
        return Single(self._folder, self._files, self._signed, self._note, self._key, self._step)

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

    # ---------------------------------------------------------------- erasures

    def _check_erasures(self, erased: Sequence[Erased]) -> None:
        """Check that the list of what was erased is what the events make of it."""
        expected = chain.erasures(erased)
        with self._folder.open(layout.ERASURES) as file:
            if file.read(len(expected) + 1) != expected:
                raise Tampered(
                    "erasures", layout.ERASURES, "a line for each payload that a certificate accounts for", "others"
                )

    # ---------------------------------------------------------------- what it says

    def _proven(self) -> tuple[str, ...]:
        return (
            f"Each event is in the log {self._signed.origin} at the size {self._signed.size} that the key signed.",
            "The links of each stream are unbroken from its first event to the last one in the bundle.",
            "Each payload that is given is the one that its event committed to.",
        )

    def _open(self, *, complete: bool) -> tuple[str, ...]:
        if complete:
            return (f"Nothing of these streams is missing up to size {self._signed.size}.",)
        return (
            "Later events of these streams are not excluded by this bundle: how many there are up to that size is the "
            "issuer's word (report.json). A complete export shows it.",
        )


def _verdict(payloads: Mapping[str, int]) -> str:
    told = ["with payloads withheld"] if payloads["withheld"] else []
    told += ["with payloads erased with certificate"] if payloads["erased"] else []
    return ", ".join(["verified", *told])


def _gone(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (
        f"{count} payloads were erased, and certificates that the key signed say so. Copies that were handed out "
        "before, and whatever else a certificate lists as not reached, are not covered.",
    )


def _listed(events: Single | Tiled) -> tuple[str, ...]:
    listed = len(events.streams())
    if listed == events.stream_count:
        return ()
    return (f"It tells {events.stream_count} streams, of which the first {listed} are listed here.",)


def _tampered(finding: Finding) -> BundleReport:
    says = "The bundle is not what was written, or was never one. Do not rely on anything in it."
    return BundleReport(ok=False, exit_code=TAMPERED, verdict="tampered", says=(says,), finding=finding)


def _unverifiable(why: str) -> BundleReport:
    says = f"Nothing is shown, for or against the bundle: {why}."
    return BundleReport(ok=False, exit_code=UNVERIFIABLE, verdict="unverifiable", says=(says,))
