"""What may be asked of memories: to remember, correct, replace, mend, admit and list them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, field_validator, model_validator

from gateway.shapes.fields import (
    Age,
    Confidence,
    Content,
    ContextField,
    Conversation,
    Identifier,
    Kind,
    Label,
    ListedState,
    Moment,
    Name,
    Origin,
    PublicHash,
    ReasonText,
    Reference,
    Source,
    Sources,
    Strictly,
    Subjects,
    Tags,
    Text,
    Visibility,
    blind,
    worded,
)
from gateway.shapes.requests.base import Request, RequiredReasonRequest, ScopeRequest
from ledger import limits
from ledger.scope import default_visibility

DEFAULT_STATES: tuple[ListedState, ...] = ("active", "processing")


class ContextCondition(Request):
    """A fact of the context has to have a value."""

    id: Label
    kind: Literal["context"]
    field: ContextField
    value: Source


class TopicCondition(Request):
    """A phrase has to stand in the question."""

    id: Label
    kind: Literal["topic"]
    value: Annotated[Source, AfterValidator(worded)]


class AppliesRequest(Request):
    """Where a memory applies: all of its conditions hold, or any."""

    match: Literal["all", "any"]
    conditions: Annotated[
        tuple[Annotated[ContextCondition | TopicCondition, Field(discriminator="kind")], ...],
        Field(min_length=1, max_length=limits.CONDITIONS_MAX),
    ]

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "AppliesRequest":
        ids = [condition.id for condition in self.conditions]
        if len(set(ids)) < len(ids):
            raise ValueError("conditions: two of them have one id")
        return self


class StepRequest(Request):
    """One step of a procedure."""

    id: Label
    instruction: Content


class ReviewRequest(Request):
    """When somebody looked at it last, and when that is not enough any more."""

    reviewed_at: Moment
    expires_at: Moment | None


class InstitutionalRequest(Request):
    """What makes a memory a position or a procedure of an institution."""

    id: Label
    role: Literal["position", "procedure"]
    owner: Label | None = None
    authority: Label | None = None
    source_refs: Sources
    boundary_conditions: Sources
    steps: Annotated[tuple[StepRequest, ...], Field(max_length=limits.CONDITIONS_MAX)] | None = None
    position_ids: Sources | None = None
    procedure_ids: Sources | None = None
    required_evidence: Sources | None = None
    completion_criteria: Sources | None = None
    escalation_conditions: Sources | None = None
    review: ReviewRequest


class RememberRequest(ScopeRequest):
    """A text to remember. `memory_id` names the lineage; one in the shape of ours has to be there already.

    `predecessor` is the head that it replaces; with `hold` it waits to be published.
    """

    content: Content
    kind: Kind = "fact"
    tags: Tags = ()
    confidence: Confidence | None = None
    origin: Origin | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    review_by: Moment | None = None
    sources: Sources = ()
    subjects: Subjects = ()
    applies: AppliesRequest | None = None
    institutional: InstitutionalRequest | None = None
    run: Name | None = None
    visibility: Visibility | None = None
    quote: Content | None = None
    conversation: Conversation | None = None
    memory_id: Identifier | None = None
    predecessor: Reference | None = None
    hold: Strictly = False
    reason: ReasonText | None = None

    @property
    def shown_to(self) -> Visibility:
        """Return the visibility asked for, or the kind's own."""
        return self.visibility or default_visibility(self.kind)  # pyright: ignore[reportReturnType] - one of the six

    @model_validator(mode="after")
    def _segment_is_named(self) -> "RememberRequest":
        segment = self.shown_to
        if segment in ("agent", "user", "session") and getattr(self, segment) is None:
            raise ValueError(f"{segment}: is needed, since this is visible to one {segment} only")
        if self.valid_from and self.valid_to and self.valid_to < self.valid_from:
            raise ValueError("valid_to: lies before valid_from")
        return self

    @model_validator(mode="after")
    def _expires_once(self) -> "RememberRequest":
        expires = self.institutional.review.expires_at if self.institutional else None
        if expires and self.review_by not in (None, expires):
            raise ValueError("review_by: is another time than the review's expires_at, which means the same")
        return self

    @model_validator(mode="after")
    def _is_quoted(self) -> "RememberRequest":
        """An extracted learning is about one user, and what it rests on was said."""
        extracted = self.kind == "learning" and self.origin == "llm_extracted"
        if extracted and self.shown_to != "user":
            raise ValueError("visibility: an extracted learning is visible to its user only")
        for name, other in (("quote", self.conversation), ("conversation", self.quote)):
            if (extracted or other is not None) and getattr(self, name) is None:
                raise ValueError(f"{name}: is needed: an extracted learning quotes the conversation it comes from")
        if self.quote is not None and blind(self.quote) not in blind(self.conversation or ""):
            raise ValueError("quote: does not stand in the conversation, word for word")
        return self


class CorrectRequest(Request):
    """The right text for a revision."""

    content: Content
    reason: ReasonText | None = None


class SuccessorRequest(Request):
    """One text that takes the place of others; a `kind` and `memory_id` are for what begins a memory of its own."""

    content: Content
    kind: Kind | None = None
    tags: Tags | None = None
    memory_id: Identifier | None = None


class SupersedeRequest(Request):
    """Heads that end, and the texts that take their place."""

    predecessors: Annotated[tuple[Reference, ...], Field(min_length=1, max_length=limits.SUPERSEDED_AT_ONCE_MAX)]
    successors: Annotated[tuple[SuccessorRequest, ...], Field(min_length=1, max_length=limits.SUPERSEDED_AT_ONCE_MAX)]
    reason: ReasonText | None = None


class PatchRequest(Request):
    """Metadata that had always been wrong. What is not named stays as it is; None takes a value away."""

    tags: Tags = ()
    confidence: Confidence | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    review_by: Moment | None = None
    sources: Sources = ()
    reason: ReasonText | None = None

    @property
    def named(self) -> frozenset[str]:
        """Return the metadata that the request names."""
        return frozenset(self.model_fields_set - {"reason"})

    @model_validator(mode="after")
    def _names_something(self) -> "PatchRequest":
        if not self.named:
            raise ValueError(f"names nothing to mend; there are {', '.join(sorted(PATCHABLE))}")
        return self


PATCHABLE = frozenset(PatchRequest.model_fields) - {"reason"}


class AdmitRequest(RequiredReasonRequest):
    """Why a revision is vouched for, and on what evidence."""

    evidence: Annotated[tuple[PublicHash, ...], Field(max_length=limits.EVIDENCE_NAMED_MAX)] = ()


class PruneRequest(Request):
    """Which learnings of machines are old enough to go."""

    older_than: Age
    include_untagged: Annotated[bool, Strict()] = False
    user: Name | None = None
    reason: ReasonText | None = None


class ListRequest(ScopeRequest):
    """Which memories are listed. A cursor goes on where the page before it ended."""

    states: Annotated[tuple[ListedState, ...], Field(min_length=1)] = DEFAULT_STATES
    memory: Reference | None = None
    kind: Kind | None = None
    tags: Tags = ()
    limit: Annotated[int, Strict(), Field(ge=1, le=limits.LIST_LIMIT_MAX)] = limits.LIST_LIMIT_DEFAULT
    cursor: Text | None = None

    @field_validator("states")
    @classmethod
    def once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("names a state twice")
        return value
