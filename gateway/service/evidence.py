"""Evidence: bytes, or a mention of bytes that lie elsewhere, by their hash."""

from pathlib import Path

from gateway.reading.evidence import EvidenceReader
from gateway.service.base import UseCases
from gateway.shapes import requests
from gateway.shapes.replies.memories import Evidence
from gateway.writing.page import Append
from ledger.digest import public
from ledger.errors import InvalidInputError, failure
from ledger.limits import EVIDENCE_BYTES_MAX, NAME_CHARS_MAX


class EvidenceUse(UseCases):
    """Keep and show evidence."""

    def add_evidence(
        self,
        source: bytes | str | Path | None = None,
        *,
        hash: str | None = None,
        uri: str | None = None,
        media_type: str | None = None,
        name: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Evidence:
        """Keep bytes, or a file's by its path, at most 16 MiB; or mention by `hash` and `uri` what lies elsewhere.

        What the project has already is kept once, and the answer is what is known of it. `name` is what people call it;
        a file's own name if none is given. Errors: VALIDATION_FAILED, PAYLOAD_TOO_LARGE.
        """
        self._require("write")
        self._need_project()
        if (source is None) != (hash is not None and uri is not None) or (source is not None and (hash or uri)):
            raise failure(
                "VALIDATION_FAILED",
                "Evidence is bytes or the path of a file, or else the hash and the uri of what lies elsewhere; give "
                "one of the two.",
            )
        body = None if source is None else _read(source)
        if isinstance(source, str | Path):
            name = name or _file_name(source)
        known = hash or public(body or b"")
        request = requests.parse(requests.EvidenceRequest, hash=known, uri=uri, media_type=media_type, name=name)
        return self._add(request, body, idempotency_key, dry_run)

    def show_evidence(self, hash: str, *, min_position: str | None = None) -> Evidence:
        """Return what is known of evidence by its hash. Errors: EVIDENCE_NOT_FOUND, another project's the same."""
        request = requests.parse(requests.EvidenceRequest, hash=hash)
        return self._read(min_position, lambda: EvidenceReader(self._ledger).show(self._of_project(), request.hash))

    def read_evidence(self, hash: str, *, min_position: str | None = None) -> bytes:
        """Return the bytes of evidence, held against their hash. Errors: EVIDENCE_NOT_FOUND, INTEGRITY_BROKEN."""
        request = requests.parse(requests.EvidenceRequest, hash=hash)
        return self._read(min_position, lambda: EvidenceReader(self._ledger).read(self._of_project(), request.hash))

    def _add(self, request: requests.EvidenceRequest, body: bytes | None, key: str | None, dry_run: bool) -> Evidence:
        def decide(append: Append) -> None:
            self._decisions.add_evidence(append, request, body)

        given = {"external": body is None, **request.model_dump()}
        try:
            self._write("evidence_add", "write", given, decide, key, dry_run)
        except InvalidInputError as refusal:
            if refusal.code != "NO_CHANGE":
                raise
            dry_run = False  # it is there: what is known of it can be said
        if dry_run:
            return Evidence(
                hash=request.hash, size=len(body or b""), stored=False, media_type=request.media_type,
                name=request.name, uri=request.uri, added_at=None, added=None,
                position=self._reader.position, incarnation=self._reader.incarnation,
            )  # fmt: skip
        return self._read(None, lambda: EvidenceReader(self._ledger).show(self._of_project(), request.hash))

    def _of_project(self) -> str | None:
        self._need_project()
        return self._references.project


def _read(source: bytes | str | Path) -> bytes:
    if isinstance(source, bytes):
        body = source
    elif not isinstance(source, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance] - a number would be a file descriptor
        raise failure("VALIDATION_FAILED", "Evidence is bytes, or the path of a file. Give one of these.")
    else:
        try:
            with open(source, "rb") as file:
                body = file.read(EVIDENCE_BYTES_MAX + 1)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "that is no path"
            raise failure("VALIDATION_FAILED", f"The file cannot be read ({why}). Give another path.") from error
    if len(body) > EVIDENCE_BYTES_MAX:
        raise failure(
            "PAYLOAD_TOO_LARGE",
            f"Evidence has at most {EVIDENCE_BYTES_MAX} bytes, and this has more. Nothing was stored. Keep it "
            "elsewhere, and mention it by its hash and uri.",
            limit=EVIDENCE_BYTES_MAX,
        )
    return body


def _file_name(path: str | Path) -> str | None:
    """Return a file's name, if the ledger can hold it."""
    name = Path(path).name
    return name if name.isprintable() and 0 < len(name) <= NAME_CHARS_MAX else None
