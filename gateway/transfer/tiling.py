"""An export as the bundle of a whole log: written aside while it is told, recorded, and then put in its place.

It holds one page of events at a time, and the writer's lock for no longer than that.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from gateway.audit import asides, checkpoints
from gateway.audit.exporting import Exporting, set_aside
from gateway.shapes.requests import ExportAllRequest
from gateway.transfer.telling import Progress, Telling
from ledger import notes
from ledger.bundle.tiling import Counted, Log, fill_tiled
from ledger.bundle.writing import Ready, give, ready
from ledger.clock import Clock, stamp
from ledger.erasure import is_signed
from ledger.errors import refuse
from ledger.governance import HandedOut, LedgerOpened, RecordExport
from ledger.keys import KeyFiles
from ledger.notes import Checkpoint


class Tiled(Struct, frozen=True, kw_only=True):
    """A bundle that lies aside, with what the ledger is to know of it."""

    record: RecordExport
    withheld: int
    ready: Ready
    out: Path

    @property
    def bytes(self) -> int:
        """Return its size."""
        return self.ready.bytes

    def place(self) -> None:
        """Put the bundle where it was asked for. Errors: VALIDATION_FAILED (something is there meanwhile)."""
        try:
            give(self.ready, self.out)
        except FileExistsError:
            raise asides.taken(self.out) from None


class Tiling:
    """Writes the log up to a position into a bundle, with what is told of it."""

    def __init__(
        self,
        exporting: Exporting,
        told: Telling,
        request: ExportAllRequest,
        last: int,
        *,
        files: KeyFiles,
        clock: Clock,
        lock: threading.RLock,
    ) -> None:
        self._exporting = exporting
        self._told = told
        self._request = request
        self._last = last
        self._files = files
        self._clock = clock
        self._lock = lock

    @contextmanager
    def made(self, progress: Progress | None) -> Generator[Tiled]:
        """Write the bundle aside; it is gone again when the caller has not placed it.

        `progress` is told how many entries were read, and then how many were written; and of how many, each from 0 on.
        Errors: CONCURRENT_MODIFICATION (something was forgotten meanwhile), and those of `fill_tiled` and `set_aside`.
        """
        out = Path(self._request.out)
        with set_aside(out) as folder:
            with self._lock:
                opened = self._exporting.opened()
                note = self._exporting.checkpoint_of(self._last + 1)
            checkpoint = notes.parse_checkpoint(notes.parse_note(note).text)
            counted = self._fill(folder, note, checkpoint, opened, progress)
            record = RecordExport(
                kind=self._request.kind, count=counted.events, origin=checkpoint.origin, size=checkpoint.size,
                root=checkpoint.root.hex(), handed=HandedOut(ids=(), recipient=self._request.recipient),
            )  # fmt: skip
            made = Tiled(record=record, withheld=counted.withheld, ready=ready(folder, out), out=out)
            self._check_still()
            with self._lock:  # until the export is recorded: nothing is forgotten between the two
                self._check_still()
                yield made

    def _check_still(self) -> None:
        """Refuse to hand out what was forgotten while it was written."""
        if self._told.is_overtaken():
            refuse(
                "CONCURRENT_MODIFICATION",
                "A text was forgotten or erased while the bundle was written, and it may hold that. Nothing was handed "
                "out. Export it again.",
            )

    def _fill(
        self, folder: Path, note: bytes, checkpoint: Checkpoint, opened: LedgerOpened, progress: Progress | None
    ) -> Counted:
        signing, key = checkpoints.signing_key(self._files, opened), notes.parse_verifier_key(opened.public_key)
        found = self._told.surveyed(progress)
        size = checkpoint.size

        def report(counted: Counted) -> dict[str, Any]:  # Any: JSON
            return self._report(counted, checkpoint)

        def prove(position: int) -> list[bytes]:
            with self._lock:
                return self._exporting.inclusion(position, size)

        log = Log(
            entries=self._told.entries(found.chosen, progress),
            names=found.names,
            erased={one.position: one for one in found.erasures.certified(lambda said: is_signed(said, key))},
            checkpoint=note,
            origin=opened.origin,
            report=report,
            prove=prove,
        )
        return fill_tiled(folder, log, signing)

    def _report(self, counted: Counted, checkpoint: Checkpoint) -> dict[str, Any]:  # Any: JSON
        return {
            "kind": self._request.kind,
            "profile": "complete",
            "origin": checkpoint.origin,
            "size": checkpoint.size,
            "root": checkpoint.root.hex(),
            "made_at": stamp(self._clock()),
            "asked_for": [],
            "as_of": self._last,
            "events": counted.events,
            "payloads_withheld": counted.withheld,
            "payloads_erased": counted.erased,
            "recipient": self._request.recipient,
        }
