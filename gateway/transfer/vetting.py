"""What a foreign history may say, held against the same rules as what is said at our own doors.

A payload of the right shape can still hold a text, a time or a name that no door would have let in. Nothing of it is
shown in a message.
"""

from typing import Annotated, Any

import msgspec
from pydantic import Field, TypeAdapter, ValidationError

from gateway import schemas
from gateway.schemas import Request
from ledger import limits
from ledger.corrections import CorrectionText
from ledger.errors import failure
from ledger.evidence import EvidenceText
from ledger.ids import is_callers_id
from ledger.memories import Admission, Birth, Contradiction, MetadataPatch, RevisionText
from ledger.message import Facts, Payload, Reason

_Evidence = Annotated[tuple[schemas.PublicHash, ...], Field(max_length=limits.EVIDENCE_NAMED_MAX)]


class _Metadata(Request):
    confidence: schemas.Confidence | None
    review_by: schemas.Moment | None
    sources: schemas.Sources
    tags: schemas.Tags
    valid_from: schemas.Moment | None
    valid_to: schemas.Moment | None


class _Provenance(Request):
    run: schemas.Label | None
    session: schemas.Label | None
    sources: schemas.Sources


class _Revision(Request):
    applies: schemas.Text | None
    confidence: schemas.Confidence | None
    content: schemas.Content
    evidence: _Evidence
    institutional: schemas.Text | None
    provenance: _Provenance
    reason: schemas.ReasonText | None
    recorded_at: schemas.Moment | None
    review_by: schemas.Moment | None
    subjects: schemas.Subjects
    tags: schemas.Tags
    valid_from: schemas.Moment | None
    valid_to: schemas.Moment | None


class _Correction(Request):
    corrected_value: schemas.Value
    entity_key: schemas.Label | None
    field: schemas.Label | None
    original_input: schemas.Content | None
    original_value: schemas.Content
    reason: schemas.ReasonText | None
    recorded_at: schemas.Moment | None
    run: schemas.Label | None
    tags: schemas.Tags


class _Patch(Request):
    after: _Metadata
    before: _Metadata
    reason: schemas.ReasonText | None


class _Admission(Request):
    evidence: _Evidence
    reason: schemas.ReasonText | None


class _Reason(Request):
    reason: schemas.ReasonText | None


class _Contradiction(Request):
    correction_hash: schemas.PublicHash
    learning_hash: schemas.PublicHash
    reason: schemas.ReasonText | None
    similarity: Annotated[schemas.Text, Field(max_length=32)]


class _Evident(Request):
    hash: schemas.PublicHash
    name: schemas.Name | None
    uri: schemas.Uri | None


class _Born(Request):
    kind: schemas.Kind
    origin: schemas.Origin
    visibility: schemas.Visibility


_SAID: dict[type[Payload], type[Request]] = {
    Admission: _Admission,
    Contradiction: _Contradiction,
    CorrectionText: _Correction,
    EvidenceText: _Evident,
    MetadataPatch: _Patch,
    Reason: _Reason,
    RevisionText: _Revision,
}
_NAMES: dict[str, TypeAdapter[str]] = {"actor": TypeAdapter(schemas.Identity)}
_NAME: TypeAdapter[str] = TypeAdapter(schemas.Name)


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
    for name, kind in (("applies", schemas.AppliesRequest), ("institutional", schemas.InstitutionalRequest)):
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
