"""Requests to payloads: what a revision says, in the shape that is stored, and as its metadata was mended since."""

from collections.abc import Iterable, Sequence

import msgspec

from gateway.shapes.requests import CorrectRequest, PatchRequest, RememberRequest, Request
from ledger import limits
from ledger.codec import canonical
from ledger.errors import failure, refuse
from ledger.memories import Metadata, Provenance, RevisionText


def remembered_text(request: RememberRequest) -> RevisionText:
    """Return the payload of a text that is remembered."""
    expires = request.institutional.review.expires_at if request.institutional else None
    return RevisionText(
        applies=_document(request.applies),
        confidence=request.confidence,
        content=request.content,
        evidence=(),
        institutional=_document(request.institutional),
        provenance=Provenance(run=request.run, session=request.session, sources=request.sources),
        reason=request.reason,
        recorded_at=None,
        review_by=request.review_by or expires,
        subjects=request.subjects,
        tags=request.tags,
        valid_from=request.valid_from,
        valid_to=request.valid_to,
    )


def _document(request: Request | None) -> str | None:
    """Return a part of a request as it is stored: canonical JSON, without what was not given."""
    if request is None:
        return None
    return canonical(request.model_dump(mode="json", exclude_unset=True)).decode()


def correction_text(request: CorrectRequest, old: RevisionText) -> RevisionText:
    """Return a successor's payload: tags, subjects and sources are inherited, what the old text earned is not."""
    return successor_text(request.content, [old], reason=request.reason)


def successor_text(
    content: str, olds: Sequence[RevisionText], *, reason: str | None, tags: Sequence[str] | None = None
) -> RevisionText:
    """Return the payload of what succeeds `olds`: their tags, subjects and sources united, in the order given.

    What else is inherited is the first one's. `tags` are its own, where it has any. INVALID_INPUT if what is united is
    more than one revision may have.
    """
    sources = _united((old.provenance.sources for old in olds), limits.SOURCES_MAX, "sources")
    return msgspec.structs.replace(
        olds[0],
        content=content,
        reason=reason,
        confidence=None,
        evidence=(),
        provenance=Provenance(run=None, session=None, sources=sources),
        recorded_at=None,
        subjects=_united((old.subjects for old in olds), limits.SUBJECTS_MAX, "subjects"),
        tags=_united((old.tags for old in olds), limits.TAGS_MAX, "tags") if tags is None else tuple(tags),
        valid_from=None,
        valid_to=None,
    )


def _united(lists: Iterable[Sequence[str]], most: int, what: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(item for items in lists for item in items))
    if len(found) > most:
        refuse(
            "INVALID_INPUT",
            f"A revision has at most {most} {what}, and the predecessors have {len(found)} together. Supersede fewer "
            "of them at once, or patch them first.",
        )
    return found


def metadata_of(text: RevisionText) -> Metadata:
    """Return what is said about a revision beside its content."""
    return Metadata(
        confidence=text.confidence,
        review_by=text.review_by,
        sources=text.provenance.sources,
        tags=text.tags,
        valid_from=text.valid_from,
        valid_to=text.valid_to,
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


def patched(request: PatchRequest, before: Metadata) -> Metadata:
    """Return metadata with what the request names; VALIDATION_FAILED if it would end before it begins."""
    after = msgspec.structs.replace(before, **{name: getattr(request, name) for name in request.named})
    if after.valid_from and after.valid_to and after.valid_to < after.valid_from:
        raise failure(
            "VALIDATION_FAILED",
            "The revision would cease to hold before it begins: valid_to lies before valid_from. Give both, in order.",
            fields=[{"field": "valid_to", "problem": "lies before valid_from"}],
        )
    return after
