"""What a foreign history may say, held against the same rules as what is said at our own doors.

A payload of the right shape can still hold a text, a time or a name that no door would have let in. Nothing of it is
shown in a message.
"""

from typing import Annotated, Any

import msgspec
from pydantic import Field, TypeAdapter, ValidationError

from gateway.shapes import fields, requests
from gateway.shapes.requests import Request
from ledger import limits
from ledger.corrections import CorrectionText
from ledger.errors import failure
from ledger.evidence import EvidenceText
from ledger.ids import is_callers_id
from ledger.memories import Admission, Birth, Contradiction, MetadataPatch, RevisionText
from ledger.message import Facts, Payload, Reason

_Evidence = Annotated[tuple[fields.PublicHash, ...], Field(max_length=limits.EVIDENCE_NAMED_MAX)]


class _Metadata(Request):
    confidence: fields.Confidence | None
    review_by: fields.Moment | None
    sources: fields.Sources
    tags: fields.Tags
    valid_from: fields.Moment | None
    valid_to: fields.Moment | None


class _Provenance(Request):
    run: fields.Label | None
    session: fields.Label | None
    sources: fields.Sources


class _Revision(Request):
    applies: fields.Text | None
    confidence: fields.Confidence | None
    content: fields.Content
    evidence: _Evidence
    institutional: fields.Text | None
    provenance: _Provenance
    reason: fields.ReasonText | None
    recorded_at: fields.Moment | None
    review_by: fields.Moment | None
    subjects: fields.Subjects
    tags: fields.Tags
    valid_from: fields.Moment | None
    valid_to: fields.Moment | None


class _Correction(Request):
    corrected_value: fields.Value
    entity_key: fields.Label | None
    field: fields.Label | None
    original_input: fields.Content | None
    original_value: fields.Content
    reason: fields.ReasonText | None
    recorded_at: fields.Moment | None
    run: fields.Label | None
    tags: fields.Tags


class _Patch(Request):
    after: _Metadata
    before: _Metadata
    reason: fields.ReasonText | None


class _Admission(Request):
    evidence: _Evidence
    reason: fields.ReasonText | None


class _Reason(Request):
    reason: fields.ReasonText | None


class _Contradiction(Request):
    correction_hash: fields.PublicHash
    learning_hash: fields.PublicHash
    reason: fields.ReasonText | None
    similarity: Annotated[fields.Text, Field(max_length=32)]


class _Evident(Request):
    hash: fields.PublicHash
    name: fields.Name | None
    uri: fields.Uri | None


class _Born(Request):
    kind: fields.Kind
    origin: fields.Origin
    visibility: fields.Visibility


_SAID: dict[type[Payload], type[Request]] = {
    Admission: _Admission,
    Contradiction: _Contradiction,
    CorrectionText: _Correction,
    EvidenceText: _Evident,
    MetadataPatch: _Patch,
    Reason: _Reason,
    RevisionText: _Revision,
}
_NAMES: dict[str, TypeAdapter[str]] = {"actor": TypeAdapter(fields.Identity)}
_NAME: TypeAdapter[str] = TypeAdapter(fields.Name)


def vet(facts: Facts, payload: Payload | None) -> None:
    """Refuse an event that says what could not have been said here. Errors: VALIDATION_FAILED."""
    kind = None if payload is None else _SAID.get(type(payload))
    if kind is not None:
        _check(kind, msgspec.to_builtins(payload))
    if isinstance(payload, RevisionText):
        _check_documents(payload)
    if isinstance(facts, Birth):
        _check(_Born, {"kind": facts.kind, "origin": facts.origin, "visibility": facts.visibility})


def vet_name(kind: str, name: str) -> None:
    """Refuse a name that a thing of that kind could not have been given here. Errors: VALIDATION_FAILED."""
    if kind in ("memory", "correction"):
        if not is_callers_id(name):
            raise _unlike("name")
        return
    try:
        same = _NAMES.get(kind, _NAME).validate_python(name) == name
    except ValidationError:
        same = False
    if not same:
        raise _unlike("name")


def _check_documents(text: RevisionText) -> None:
    """Check the two parts of a text that are documents of their own, as they stand in it."""
    for name, kind in (("applies", requests.AppliesRequest), ("institutional", requests.InstitutionalRequest)):
        said = getattr(text, name)
        if said is None:
            continue
        try:
            kind.model_validate_json(said)
        except ValidationError:
            raise _unlike(name) from None


def _check(kind: type[Request], said: dict[str, Any]) -> None:  # Any: JSON
    try:
        found = kind.model_validate(said)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise _unlike(field) from None
    if msgspec.to_builtins(found.model_dump()) != said:
        raise _unlike("time")


def _unlike(field: str) -> Exception:
    return failure(
        "VALIDATION_FAILED",
        f"What an event says would not have been accepted here: its {field} is none that there can be.",
        fields=[{"field": field, "problem": "is refused"}],
    )
