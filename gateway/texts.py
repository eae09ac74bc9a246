"""Requests to payloads: what a revision says, in the shape that is stored, and as its metadata was mended since."""

import msgspec

from gateway.schemas import CorrectRequest, RememberRequest
from ledger.memories import Metadata, Provenance, RevisionText


def remembered_text(request: RememberRequest) -> RevisionText:
    """Return the payload of a text that is remembered."""
    return RevisionText(
        applies=None,
        confidence=request.confidence,
        content=request.content,
        evidence=(),
        institutional=None,
        provenance=Provenance(run=request.run, session=request.session, sources=request.sources),
        reason=request.reason,
        recorded_at=None,
        review_by=request.review_by,
        subjects=(),
        tags=request.tags,
        valid_from=request.valid_from,
        valid_to=request.valid_to,
    )


def correction_text(request: CorrectRequest, old: RevisionText) -> RevisionText:
    """Return a successor's payload: tags, subjects and sources are inherited, what the old text earned is not."""
    return msgspec.structs.replace(
        old,
        content=request.content,
        reason=request.reason,
        confidence=None,
        evidence=(),
        provenance=Provenance(run=None, session=None, sources=old.provenance.sources),
        recorded_at=None,
        valid_from=None,
        valid_to=None,
    )


def mended(text: RevisionText, metadata: Metadata) -> RevisionText:
    """Return what a revision says, with the metadata that a patch gave it."""
    return msgspec.structs.replace(
        text,
        confidence=metadata.confidence,
        provenance=msgspec.structs.replace(text.provenance, sources=metadata.sources),
        review_by=metadata.review_by,
        tags=metadata.tags,
        valid_from=metadata.valid_from,
        valid_to=metadata.valid_to,
    )
