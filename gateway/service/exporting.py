"""What is handed out: bundles that outsiders check without us, and files of lines for programs and people."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from gateway.audit.exporting import Exporting, Made, Wanted, hand_out, measured
from gateway.reading.reader import NOBODY
from gateway.scope.names import no_such_project
from gateway.scope.past import Moment
from gateway.service.base import UseCases
from gateway.shapes import requests
from gateway.shapes.replies.audit import Export
from gateway.shapes.replies.writes import Receipt
from gateway.shapes.requests import ExportAllRequest, ExportRequest
from gateway.transfer import telling
from gateway.transfer.telling import Asked, Progress, Telling
from gateway.transfer.tiling import Tiled, Tiling
from gateway.transfer.writing import Writing, Written
from ledger.errors import NotFoundError, refuse
from ledger.governance import LEDGER, ExportMade

_NOT_YET = "OPERATION_NOT_FOUND"
BUNDLED_MAX = 20_000  # events: each of them takes up to three files, and some of its bytes in memory


class ExportActs(UseCases):
    """Export what outsiders may see, and record that it was handed out."""

    def export_supersession(
        self,
        ids: Sequence[str],
        out: str | Path,
        *,
        complete: bool = False,
        as_of: Moment | None = None,
        with_payloads: str | Sequence[str] = "all",
        recipient: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> Export:
        """Write the history of memories, and of those that they superseded, into a bundle at `out`.

        `out` is a directory, or a file if its name ends in .tar, .tar.gz or .tgz; nothing may be there yet. `complete`
        adds every entry of the log. `as_of` is a position or a time: what came later is left out. `with_payloads` is
        all, none, or the revisions whose texts may be seen; what was forgotten is never among them. The same request
        with the same key hands out what was recorded the first time, and records nothing more. Errors:
        MEMORY_NOT_FOUND, EVENT_NOT_FOUND (`as_of` is above the head), VALIDATION_FAILED, IDEMPOTENCY_KEY_REUSED,
        LEDGER_UNVERIFIED (no signing key), UNAVAILABLE (it cannot be written).
        """
        self._require("export")
        request = requests.parse(
            ExportRequest, ids=_listed(ids), out=_path(out), complete=complete, with_payloads=_listed(with_payloads),
            recipient=recipient,
        )  # fmt: skip
        given = {**request.model_dump(), "as_of": None if as_of is None else str(as_of)}
        with self._writer.lock:
            self._ledger.catch_up()
            earlier = self._earlier(given, idempotency_key)
            size = None if earlier is None else self._recorded(earlier).size
            wanted = self._wanted(request, as_of, size)
            if earlier is not None and wanted.out.exists():
                return self._answer(_profile(request), wanted.out, earlier, measured(wanted.out))
            with self._exporting.made(wanted, progress) as made:
                receipt = earlier or self._record(made, given, idempotency_key)
                return self._answer(_profile(request), wanted.out, receipt, hand_out(made, wanted.out), made)

    def export_ledger(
        self,
        out: str | Path,
        *,
        form: str = "bundle",
        complete: bool = False,
        as_of: Moment | None = None,
        with_payloads: str | Sequence[str] = "all",
        without_forgotten: bool = False,
        recipient: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> Export:
        """Write every event of the ledger to `out`: as a `bundle`, as lines of JSON (`jsonl`), or as a table (`csv`).

        Lines are what `import_lines` reads: a copy of the ledger, so the texts of what was forgotten are among them,
        for an actor with the permission `admin` and unless `without_forgotten`; in a bundle and a table they never are.
        A file appears whole, or not at all; a name that ends in .gz is packed. The rest is as in `export_supersession`.
        A bundle that is not `complete` has at most 20,000 events; a complete one, any number.
        Errors: as there, and VALIDATION_FAILED (a bundle of more events than that).
        """
        return self._export_all(
            {
                "kind": telling.LEDGER, "form": form, "out": _path(out), "complete": complete,
                "with_payloads": _listed(with_payloads), "without_forgotten": without_forgotten,
                "recipient": recipient,
            },
            as_of, idempotency_key, progress,
        )  # fmt: skip

    def export_corrections(
        self,
        out: str | Path,
        *,
        form: str = "bundle",
        complete: bool = False,
        as_of: Moment | None = None,
        with_payloads: str = "all",
        recipient: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> Export:
        """Write the events of the project's corrections, or of all where no project is named, as `export_ledger` does.

        The events that gave names to the ids in them go with them. `with_payloads` is all or none. Errors: as there,
        and CORRECTION_NOT_FOUND (no such project).
        """
        return self._export_all(
            {
                "kind": telling.CORRECTIONS, "form": form, "out": _path(out), "complete": complete,
                "with_payloads": with_payloads, "recipient": recipient,
            },
            as_of, idempotency_key, progress,
        )  # fmt: skip

    def _export_all(
        self, fields: dict[str, Any], as_of: Moment | None, key: str | None, progress: Progress | None
    ) -> Export:  # Any: JSON
        self._require("export")
        request = requests.parse(ExportAllRequest, **fields)
        given = {**request.model_dump(), "as_of": None if as_of is None else str(as_of)}
        with self._writer.lock:
            self._ledger.catch_up()
            if request.kind == telling.CORRECTIONS and self._references.project_name and not self._references.project:
                raise no_such_project("CORRECTION_NOT_FOUND")
            earlier = self._earlier(given, key)
            out = Path(request.out)
            if earlier is not None and out.exists():
                return self._answer(_profile(request), out, earlier, measured(out))
            size = None if earlier is None else self._recorded(earlier).size
            last = self._last(as_of, size, complete=request.complete)
            told = Telling(self._ledger, self._names, self._reader, self._asked(request, last), self._writer.lock)
            if request.form == "bundle" and not request.complete:
                return self._bundle(request, told.positions(), last, size, given, key, earlier, progress)
        with self._writing(told, request, last, size).made(progress) as written:
            with self._writer.lock:
                receipt = earlier or self._record(written, given, key)
            written.place()
            with self._writer.lock:
                return self._answer(_profile(request), out, receipt, written.bytes, written)

    def _writing(self, told: Telling, request: ExportAllRequest, last: int, size: int | None) -> Writing | Tiling:
        """Return what writes an export without holding the lock for longer than a page of it."""
        if request.form == "bundle":
            return Tiling(
                self._exporting, told, request, last, files=self._files, clock=self._clock, lock=self._writer.lock
            )
        return Writing(self._exporting, told, request, last, size, self._clock)

    def _bundle(
        self,
        request: ExportAllRequest,
        positions: Sequence[int],
        last: int,
        size: int | None,
        given: dict[str, Any],  # Any: JSON
        key: str | None,
        earlier: Receipt | None,
        progress: Progress | None,
    ) -> Export:
        if len(positions) > BUNDLED_MAX:
            refuse(
                "VALIDATION_FAILED",
                f"A bundle has up to three files for each event, and these are {len(positions):,} of them, more than "
                f"{BUNDLED_MAX:,}. Use `--complete`, which has no such bound: with the whole log in it, none of them "
                "needs a file of its own. Or export them as jsonl, which proves nothing.",
                fields=[{"field": "format", "problem": "is a bundle"}],
            )
        wanted = Wanted(
            ids=(), lineages=(), kind=request.kind, positions=positions, out=Path(request.out),
            complete=request.complete, last=last, size=size, payloads=self._revealed(request.with_payloads),
            recipient=request.recipient,
        )  # fmt: skip
        with self._exporting.made(wanted, progress) as made:
            receipt = earlier or self._record(made, given, key)
            return self._answer(_profile(request), wanted.out, receipt, hand_out(made, wanted.out), made)

    def _asked(self, request: ExportAllRequest, last: int) -> Asked:
        is_single = request.form == "bundle" and not request.complete
        tells_forgotten = request.form == "jsonl" and not request.without_forgotten
        return Asked(
            kind=request.kind,
            last=last,
            project=self._references.project if self._project is None else self._references.project or NOBODY,
            payloads=self._revealed(request.with_payloads),
            # Of a bundle with a file for each event, what was forgotten is found when its payload is looked at.
            forgotten=is_single or (tells_forgotten and "admin" in self._actor.permissions),
        )

    def _record(self, made: Made | Written | Tiled, given: dict[str, Any], key: str | None) -> Receipt:  # Any: JSON
        return self._write(
            "export", "export", given,
            lambda append: append.decide_on(LEDGER, self._names.root, made.record),
            key, dry_run=False,
        )  # fmt: skip

    def _earlier(self, given: dict[str, Any], key: str | None) -> Receipt | None:  # Any: JSON
        """Return the receipt of this very request's first time: before a refusal is answered, the key is looked up."""
        if key is None:
            return None
        try:
            return self._write("export", "export", given, lambda _: refuse(_NOT_YET, "No such export."), key, False)
        except NotFoundError as error:
            if error.code != _NOT_YET:
                raise
            return None

    def _recorded(self, receipt: Receipt) -> ExportMade:
        facts = self._ledger.at([receipt.position])[receipt.position].entry.envelope.facts
        return msgspec.convert(msgspec.to_builtins(facts), ExportMade)

    def _answer(
        self, profile: str, out: Path, receipt: Receipt, size: int, made: Made | Written | Tiled | None = None
    ) -> Export:
        recorded = self._recorded(receipt)
        return Export(
            path=str(out),
            kind=recorded.kind.partition(".")[0],
            profile=profile,
            events=recorded.count,
            payloads_withheld=None if made is None else made.withheld,
            origin=recorded.origin,
            size=recorded.size,
            root=recorded.root,
            bytes=size,
            position=receipt.position,
            incarnation=receipt.incarnation,
            trace_id=receipt.trace_id,
            replayed=receipt.replayed,
            warnings=receipt.warnings,
        )

    @property
    def _exporting(self) -> Exporting:
        return Exporting(self._ledger, self._names, self._states, self._reader, self._files, self._clock)

    def _wanted(self, request: ExportRequest, as_of: Moment | None, size: int | None) -> Wanted:
        """Return what is to be exported: as of a position, and again as it was recorded at a size of the log."""
        last = self._last(as_of, size, complete=request.complete)
        return Wanted(
            ids=request.ids,
            lineages=self._exporting.connected({self._references.lineage(one) for one in request.ids}),
            out=Path(request.out),
            complete=request.complete,
            last=last,
            size=size,
            payloads=self._revealed(request.with_payloads),
            recipient=request.recipient,
        )

    def _last(self, as_of: Moment | None, size: int | None, *, complete: bool) -> int:
        """Return the last position to be exported."""
        if complete and as_of is not None:
            refuse(
                "VALIDATION_FAILED",
                "A complete bundle holds all entries of the log, so what came later, too. Leave one of the two out.",
                fields=[{"field": "as_of", "problem": "does not go with complete"}],
            )
        last = self._reader.position if size is None else size - 1
        if as_of is not None:
            last = min(last, self._reader.position_of(as_of, "as_of"))
        return last

    def _revealed(self, asked: str | tuple[str, ...]) -> str | frozenset[str]:
        return asked if isinstance(asked, str) else frozenset(self._references.revision(one)[1] for one in asked)


def _profile(request: ExportRequest | ExportAllRequest) -> str:
    if isinstance(request, ExportAllRequest) and request.form != "bundle":
        return request.form
    return "complete" if request.complete else "proofs"


def _listed(values: Any) -> Any:  # Any: whatever the caller gave, before it is checked
    return tuple(cast(list[Any], values)) if isinstance(values, list) else values


def _path(out: Any) -> Any:  # Any: as above
    return str(Path(out).expanduser().absolute()) if isinstance(out, str | Path) and str(out) else out
