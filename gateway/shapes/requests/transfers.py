"""What may be handed out of a ledger, and taken over from another."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Strict, Tag, model_validator

from gateway.shapes.fields import Name, Reference, Text
from gateway.shapes.requests.base import Request
from ledger import limits

# Told apart by what is given, so that a fault is that of one of the two, in words for people.
Revealed = Annotated[
    Annotated[Literal["all", "none"], Tag("word")]
    | Annotated[tuple[Reference, ...], Field(max_length=limits.EXPORT_IDS_MAX), Tag("revisions")],
    Discriminator(lambda given: "revisions" if isinstance(given, tuple) else "word"),
]


class ExportRequest(Request):
    """The memories whose history is handed out, and to whom."""

    ids: Annotated[tuple[Reference, ...], Field(min_length=1, max_length=limits.EXPORT_IDS_MAX)]
    out: Annotated[Text, Field(min_length=1, max_length=limits.PATH_CHARS_MAX)]
    complete: Annotated[bool, Strict()] = False
    with_payloads: Revealed
    recipient: Name | None = None

    @model_validator(mode="after")
    def _is_a_form_that_we_write(self) -> "ExportRequest":
        if self.out.endswith((".zip", ".tar.bz2", ".tar.xz", ".7z")):
            raise ValueError("out: names a form that is not written; a directory, .tar, .tar.gz or .tgz is")
        return self


class TransferRequest(Request):
    """Another ledger's file that is taken over; of a bundle the issuer's key, too, and the log that it must be of."""

    path: Annotated[Text, Field(min_length=1, max_length=limits.PATH_CHARS_MAX)]
    key: Text = ""
    origin: Annotated[Text, Field(min_length=1)] | None = None
    on_error: Literal["stop", "skip"] = "stop"


class ExportAllRequest(Request):
    """A whole ledger, or its corrections, handed out in one of three forms, and to whom."""

    kind: Literal["ledger", "corrections"]
    form: Literal["bundle", "jsonl", "csv"]
    out: Annotated[Text, Field(min_length=1, max_length=limits.PATH_CHARS_MAX)]
    complete: Annotated[bool, Strict()] = False
    with_payloads: Revealed
    without_forgotten: Annotated[bool, Strict()] = False
    recipient: Name | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> "ExportAllRequest":
        if self.complete and self.form != "bundle":
            raise ValueError("complete: is said of a bundle only; a file of lines has no proofs")
        if self.kind == "corrections" and not isinstance(self.with_payloads, str):
            raise ValueError("with_payloads: of corrections, all or none are given")
        packed = (".zip", ".tar.bz2", ".tar.xz", ".7z")
        if self.out.endswith(packed if self.form == "bundle" else (*packed, ".tar", ".tar.gz", ".tgz")):
            raise ValueError("out: names a form that is not written")
        return self
