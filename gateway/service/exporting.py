"""What is handed to outsiders: bundles that they check without us."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from gateway import schemas
from gateway.exporting import Exporting, Made, Wanted, hand_out, measured
from gateway.past import Moment, Moments
from gateway.replies import Export, Receipt
from gateway.schemas import ExportRequest
from gateway.service.base import UseCases
from ledger.errors import NotFoundError, refuse
from ledger.governance import LEDGER, ExportMade

_NOT_YET = "OPERATION_NOT_FOUND"


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
        request = schemas.parse(
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
                return self._answer(request, wanted.out, earlier, measured(wanted.out))
            with self._exporting.made(wanted) as made:
                receipt = earlier or self._record(made, given, idempotency_key)
                return self._answer(request, wanted.out, receipt, hand_out(made, wanted.out), made)

    def _record(self, made: Made, given: dict[str, Any], key: str | None) -> Receipt:  # Any: JSON
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
        self, request: ExportRequest, out: Path, receipt: Receipt, size: int, made: Made | None = None
    ) -> Export:
        recorded = self._recorded(receipt)
        return Export(
            path=str(out),
            kind=recorded.kind,
            profile="complete" if request.complete else "proofs",
            events=recorded.count,
            payloads_withheld=None if made is None else made.report["payloads_withheld"],
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
        if request.complete and as_of is not None:
            refuse(
                "VALIDATION_FAILED",
                "A complete bundle holds all entries of the log, so what came later, too. Leave one of the two out.",
                fields=[{"field": "as_of", "problem": "does not go with complete"}],
            )
        last = self._reader.position if size is None else size - 1
        if as_of is not None:
            last = min(last, Moments(self._ledger).position(as_of, incarnation=self._reader.incarnation))
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

    def _revealed(self, asked: str | tuple[str, ...]) -> str | frozenset[str]:
        return asked if isinstance(asked, str) else frozenset(self._references.revision(one)[1] for one in asked)


def _listed(values: Any) -> Any:  # Any: whatever the caller gave, before it is checked
    return tuple(cast(list[Any], values)) if isinstance(values, list) else values


def _path(out: Any) -> Any:  # Any: as above
    return str(Path(out).expanduser().absolute()) if isinstance(out, str | Path) and str(out) else out
