"""What is handed to outsiders: bundles that they check without us."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from gateway import schemas
from gateway.exporting import ALL, NONE, Exporting, Wanted, hand_out
from gateway.replies import Export
from gateway.service.base import UseCases
from ledger.clock import stamp
from ledger.errors import refuse
from ledger.governance import LEDGER


class ExportActs(UseCases):
    """Export what outsiders may see, and record that it was handed out."""

    def export_supersession(
        self,
        ids: Sequence[str],
        out: str | Path,
        *,
        complete: bool = False,
        as_of: str | None = None,
        with_payloads: str | Sequence[str] = ALL,
        recipient: str | None = None,
        idempotency_key: str | None = None,
    ) -> Export:
        """Write the history of memories, and of those that they superseded, into a bundle at `out`.

        `out` is a directory, or a file if its name ends in .tar, .tar.gz or .tgz; nothing may be there yet. `complete`
        adds every entry of the log. `as_of` is a position or a time: what came later is left out. `with_payloads` is
        all, none, or the revisions whose texts may be seen; what was forgotten is never among them. Errors:
        MEMORY_NOT_FOUND, VALIDATION_FAILED, LEDGER_UNVERIFIED (no signing key), UNAVAILABLE (it cannot be written).
        """
        self._require("export")
        request = schemas.parse(schemas.ExportRequest, ids=tuple(ids), recipient=recipient)
        target = Path(out).expanduser().absolute()
        with self._writer.lock:
            self._ledger.catch_up()
            wanted = self._wanted(request.ids, target, complete, as_of, with_payloads, recipient)
            with self._exporting.made(wanted) as made:
                given = {"ids": list(request.ids), "out": str(target), "complete": complete, "as_of": wanted.last}
                receipt = self._write(
                    "export",
                    "export",
                    given,
                    lambda append: append.decide_on(LEDGER, self._names.root, made.record),
                    idempotency_key,
                    dry_run=False,
                )
                size = hand_out(made, target)
        return Export(
            path=str(target),
            kind=made.record.kind,
            profile="complete" if complete else "proofs",
            events=made.record.count,
            payloads_withheld=made.report["payloads_withheld"],
            origin=made.record.origin,
            size=made.record.size,
            root=made.record.root,
            bytes=size,
            position=receipt.position,
            incarnation=receipt.incarnation,
            trace_id=receipt.trace_id,
            warnings=receipt.warnings,
        )

    @property
    def _exporting(self) -> Exporting:
        return Exporting(self._ledger, self._names, self._states, self._files, self._clock)

    def _wanted(
        self,
        ids: tuple[str, ...],
        out: Path,
        complete: bool,
        as_of: str | None,
        with_payloads: str | Sequence[str],
        recipient: str | None,
    ) -> Wanted:
        if complete and as_of is not None:
            refuse(
                "VALIDATION_FAILED",
                "A complete bundle holds all entries of the log, so what came later, too. Leave one of the two out.",
                fields=[{"field": "as_of", "problem": "does not go with complete"}],
            )
        lineages = self._exporting.connected({self._references.lineage(one) for one in ids})
        return Wanted(
            ids=ids,
            lineages=lineages,
            out=out,
            complete=complete,
            last=self._reader.position if as_of is None else self._position_at(as_of, lineages),
            payloads=self._revealed(with_payloads),
            recipient=recipient,
        )

    def _revealed(self, with_payloads: str | Sequence[str]) -> str | frozenset[str]:
        if with_payloads in (ALL, NONE):
            return str(with_payloads)
        if isinstance(with_payloads, str):
            refuse("VALIDATION_FAILED", "Payloads are given as all, none, or a list of revisions. Give one of these.")
        return frozenset(self._references.revision(one)[1] for one in with_payloads)

    def _position_at(self, as_of: str, lineages: Sequence[str]) -> int:
        """Return the position that is meant: one, or that of the last event of the lineages until a time."""
        if re.fullmatch("[0-9]{1,16}", as_of):
            return int(as_of)
        try:
            moment = stamp(datetime.fromisoformat(as_of))
        except (ValueError, OverflowError):
            refuse("VALIDATION_FAILED", "The past is named by a position, or a time with its zone. Give one of these.")
        events = (item.entry.envelope for lineage in lineages for item in self._ledger.stream(lineage))
        return max((envelope.seq for envelope in events if envelope.at <= moment), default=-1)
