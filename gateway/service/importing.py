"""What comes from elsewhere: foreign histories, other ledgers' lines, and bundles."""

from pathlib import Path
from typing import Any

from gateway.audit.bundles import verifier_key
from gateway.imports.importing import PepImport, Progress
from gateway.service.base import UseCases
from gateway.shapes import requests
from gateway.shapes.replies.upkeep import ImportReport, Transfer
from gateway.shapes.requests import TransferRequest
from gateway.transfer.reading import LineFile, Source, verified
from gateway.transfer.taking import Taking


class Importing(UseCases):
    """Import files into the ledger."""

    def import_peps(
        self, path: str | Path, *, on_error: str = "stop", progress: Progress | None = None
    ) -> ImportReport:
        """Import a history of Python Enhancement Proposals; repeating it stores nothing twice.

        Errors: VALIDATION_FAILED (not a whole gzip file of JSON lines: nothing was stored; or a bad row, which stops
        the import before it and everything behind it unless `on_error` is `skip`).
        """
        self._require("admin")
        with self._writer.lock:
            run = PepImport(
                self._writer, self._ledger, Path(path),
                project=self._need_project(), actor=self._actor.name, on_error=on_error,
            )  # fmt: skip
            report = run.run(progress)
            self._relay.drain(progress=progress)
            self._relay.keep()
        return report

    def import_lines(self, path: str | Path, *, on_error: str = "stop", progress: Progress | None = None) -> Transfer:
        """Take over what a file of lines tells of another ledger (docs/JSONL.md); repeating it stores nothing twice.

        Each append keeps its id and is decided anew, as an act of whom the file names; what was verified there is
        unverified here, and all is recorded as taken over. What stands against one is in the answer. Errors:
        VALIDATION_FAILED (no such file, or a line that cannot be read, unless `on_error` is `skip`: nothing stored).
        """
        self._require("admin")
        request = requests.parse(TransferRequest, path=_path(path), on_error=on_error)
        return self._take_over(LineFile(Path(request.path)), request.on_error, progress)

    def import_bundle(
        self,
        path: str | Path,
        key: str,
        *,
        origin: str | None = None,
        on_error: str = "stop",
        progress: Progress | None = None,
    ) -> Transfer:
        """Take over what a bundle tells, once it is verified with its issuer's key; else as `import_lines`.

        Errors: as there, and INTEGRITY_BROKEN (it is not what was signed: exit 14), LEDGER_UNVERIFIED (the key cannot
        show that: exit 15); nothing was stored then.
        """
        self._require("admin")
        request = requests.parse(TransferRequest, path=_path(path), key=key, origin=origin, on_error=on_error)
        with verified(Path(request.path), verifier_key(request.key), request.origin) as source:
            return self._take_over(source, request.on_error, progress)

    def _take_over(self, source: Source, on_error: str, progress: Progress | None) -> Transfer:
        with self._writer.lock:
            self._ledger.catch_up()
            run = Taking(
                self._writer, self._ledger, self._names, self._reader, source,
                actor=self._actor.name, on_error=on_error,
            )  # fmt: skip
            report = run.run(progress)
            self._relay.drain(progress=progress)
            self._relay.keep()
            self._wrote = True
        return report


def _path(path: Any) -> Any:  # Any: whatever the caller gave, before it is checked
    return str(Path(path).expanduser()) if isinstance(path, str | Path) and str(path) else path
