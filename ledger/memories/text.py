"""What the events of a lineage say in words: the halves that can be erased."""

from msgspec import Struct

from ledger.message import Payload


class Provenance(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a revision came from, in the caller's words: attribution, never proof."""

    run: str | None
    session: str | None
    sources: tuple[str, ...]


class RevisionText(Payload, frozen=True, kw_only=True):
    """Everything that a revision says. `applies` and `institutional` are JCS text, `recorded_at` an import's."""

    applies: str | None
    confidence: str | None
    content: str
    evidence: tuple[str, ...]
    institutional: str | None
    provenance: Provenance
    reason: str | None
    recorded_at: str | None
    review_by: str | None
    subjects: tuple[str, ...]
    tags: tuple[str, ...]
    valid_from: str | None
    valid_to: str | None

    @classmethod
    def plain(
        cls, content: str, *, reason: str | None = None, sources: tuple[str, ...] = (), valid_from: str | None = None
    ) -> "RevisionText":
        """Return what a revision says of which no more is known than this."""
        return cls(
            applies=None,
            confidence=None,
            content=content,
            evidence=(),
            institutional=None,
            provenance=Provenance(run=None, session=None, sources=sources),
            reason=reason,
            recorded_at=None,
            review_by=None,
            subjects=(),
            tags=(),
            valid_from=valid_from,
            valid_to=None,
        )


class Metadata(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said about a revision beside its content, and may be mended without another revision."""

    confidence: str | None
    review_by: str | None
    sources: tuple[str, ...]
    tags: tuple[str, ...]
    valid_from: str | None
    valid_to: str | None


class MetadataPatch(Payload, frozen=True, kw_only=True):
    """The metadata of a revision as it was, and as it is from now on."""

    after: Metadata
    before: Metadata
    reason: str | None


class Admission(Payload, frozen=True, kw_only=True):
    """Why a revision is held to be verified, and the public hashes of the evidence for it."""

    evidence: tuple[str, ...]
    reason: str | None


class Contradiction(Payload, frozen=True, kw_only=True):
    """How near a learning is to the correction that contradicts it: a decimal, and both texts' public hashes."""

    correction_hash: str
    learning_hash: str
    reason: str | None
    similarity: str
