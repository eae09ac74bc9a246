"""What may be asked, checked at the door: every fault of a request at once, named by its field.

pydantic stops here. What passes is handed on as plain values that the core trusts.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Strict,
    Tag,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from gateway.shapes.fields import (
    Age,
    Breakdown,
    Confidence,
    Content,
    ContextField,
    Conversation,
    CorrectionState,
    CorrectionVisibility,
    Identifier,
    Identity,
    Key,
    Kind,
    Label,
    ListedState,
    MediaType,
    Moment,
    Name,
    Origin,
    Period,
    PublicHash,
    ReasonText,
    Reference,
    RequiredReason,
    Source,
    Sources,
    Strictly,
    Subjects,
    Tags,
    Text,
    TraceKind,
    TrustTier,
    Turn,
    Uri,
    Value,
    Visibility,
    blind,
    worded,
)
from ledger import limits
from ledger.errors import failure
from ledger.scope import default_visibility

DEFAULT_STATES: tuple[ListedState, ...] = ("active", "processing")
_RequestT = TypeVar("_RequestT", bound=BaseModel)


class Request(BaseModel):
    """Base of every request: no unknown field, no silent conversion."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Who(Request):
    """Who acts, in which project, and how the caller names the request."""

    actor: Identity
    project: Name | None = None
    idempotency_key: Key | None = None


class ScopeRequest(Request):
    """The segments of a scope beside its project, by the caller's names."""

    agent: Name | None = None
    user: Name | None = None
    session: Name | None = None
    task_family: Name | None = None


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


class ReasonRequest(Request):
    """A reason that may be left out."""

    reason: ReasonText | None = None


class RequiredReasonRequest(Request):
    """A reason that may not."""

    reason: RequiredReason


LedgerPosition = Annotated[int, Strict(), Field(ge=0, le=limits.INTEGER_MAX)]


class OutboxRequest(Request):
    """How much of the outbox is listed."""

    limit: Annotated[int, Strict(), Field(ge=1, le=limits.LIST_LIMIT_MAX)] = limits.LIST_LIMIT_DEFAULT


class RetryRequest(Request):
    """What is to be tried again, by the positions of its events."""

    positions: Annotated[tuple[LedgerPosition, ...], Field(min_length=1, max_length=limits.LIST_LIMIT_MAX)]


class SkipRequest(RequiredReasonRequest):
    """What is given up, by the position of its event, and why."""

    position: LedgerPosition


RecoveryPart = Literal["index", "outbox", "claims"]


class RecoveryRequest(Request):
    """Which parts are recovered."""

    only: Annotated[tuple[RecoveryPart, ...], Field(min_length=1)] = ("index", "outbox", "claims")


class AdmitRequest(RequiredReasonRequest):
    """Why a revision is vouched for, and on what evidence."""

    evidence: Annotated[tuple[PublicHash, ...], Field(max_length=limits.EVIDENCE_NAMED_MAX)] = ()


class PruneRequest(Request):
    """Which learnings of machines are old enough to go."""

    older_than: Age
    include_untagged: Annotated[bool, Strict()] = False
    user: Name | None = None
    reason: ReasonText | None = None


class SearchRequest(ScopeRequest):
    """A question, and what may answer it."""

    query: Content
    k: Annotated[int, Field(ge=1, le=limits.SEARCH_K_MAX)] = limits.SEARCH_K_DEFAULT
    min_trust: TrustTier = "unverified"
    min_confidence: Confidence | None = None
    kinds: tuple[Kind, ...] = ()
    tags: Tags = ()
    context: Mapping[ContextField, Source] = {}
    as_of: Moment | None = None
    budget: Annotated[int, Strict(), Field(ge=1)] | None = None
    why: Strictly = False
    trace_kind: TraceKind = "search"
    turn: Turn | None = None
    run: Name | None = None

    @model_validator(mode="after")
    def _turn_is_a_sessions(self) -> "SearchRequest":
        if self.turn is not None and self.session is None:
            raise ValueError("turn: is a session's, and no session is named")
        return self


class TracesRequest(Request):
    """Which traces are listed, the newest first. A cursor goes on where the page before it ended."""

    session: Name | None = None
    kind: TraceKind | None = None
    limit: Annotated[int, Strict(), Field(ge=1, le=limits.LIST_LIMIT_MAX)] = limits.LIST_LIMIT_DEFAULT
    cursor: Text | None = None


class PriorTraceRequest(Request):
    """A session of which the turn before one is asked for."""

    session: Name
    turn: Turn | None = None


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


class RecordCorrectionRequest(Request):
    """What an agent put out, what was right, and why. An empty `corrected_value`: it should be empty."""

    agent: Name
    original_value: Content
    corrected_value: Value
    field: Label | None = None
    entity_key: Label | None = None
    run: Label | None = None
    session: Name | None = None
    user: Name | None = None
    original_input: Content | None = None
    reason: ReasonText | None = None
    tags: Tags = ()
    visibility: CorrectionVisibility = "agent"
    memory: Reference | None = None
    if_revision: int | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> "RecordCorrectionRequest":
        if self.visibility == "user" and self.user is None:
            raise ValueError("user: is needed, since this is visible to one user only")
        if self.memory is None and self.if_revision is not None:
            raise ValueError("if_revision: is the memory's, and no memory is named")
        if self.memory is not None and not self.corrected_value.strip():
            raise ValueError("corrected_value: is empty, and a memory cannot say nothing; retire or forget it instead")
        return self

    @property
    def scope(self) -> ScopeRequest:
        """Return the segments of its scope."""
        return ScopeRequest(agent=self.agent, user=self.user, session=self.session)


class SupersedeCorrectionRequest(Request):
    """The right value for a correction that was wrong itself."""

    corrected_value: Value
    reason: ReasonText | None = None


class CorrectionsRequest(Request):
    """Which corrections are listed or counted. `user` and `session` are the reader's own."""

    agent: Name | None = None
    user: Name | None = None
    session: Name | None = None
    entity_key: Label | None = None
    since: Moment | None = None
    states: tuple[CorrectionState, ...] = ("unconfirmed", "active")

    @property
    def reader(self) -> ScopeRequest:
        """Return the segments of the reader's scope."""
        return ScopeRequest(agent=self.agent, user=self.user, session=self.session)


class CorrectionPageRequest(CorrectionsRequest):
    """A page of them. A cursor goes on where the page before it ended."""

    limit: Annotated[int, Strict(), Field(ge=1, le=limits.LIST_LIMIT_MAX)] = limits.LIST_LIMIT_DEFAULT
    cursor: Text | None = None


class SearchCorrectionsRequest(ScopeRequest):
    """A question to the corrections that a reader sees; what is None is the policy's to say."""

    query: Content
    k: Annotated[int, Field(ge=1, le=limits.SEARCH_K_MAX)] | None = None
    min_score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    entity_key: Label | None = None


class RenderRequest(SearchCorrectionsRequest):
    """The same for a prompt, which is an agent's; `budget` is in tokens."""

    agent: Name  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride] - here it is required
    budget: Annotated[int, Field(ge=1)] | None = None
    learnings: Annotated[int, Field(ge=0, le=limits.SEARCH_K_MAX)] = 0


class StatsRequest(CorrectionsRequest):
    """Corrections to count, by what else than entity and field."""

    by: tuple[Breakdown, ...] = ()
    period: Period = "month"


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


class EvidenceRequest(Request):
    """Evidence by its hash; where it lies, if elsewhere; and what it is."""

    hash: PublicHash
    uri: Uri | None = None
    media_type: MediaType | None = None
    name: Annotated[Text, Field(min_length=1, max_length=limits.NAME_CHARS_MAX)] | None = None


class ReferenceRequest(Request):
    """An id or a name that a caller gave."""

    id: Reference


def check_dispatch(request: SearchRequest, *, of_past: bool) -> None:
    """Refuse a dispatch of the past: what held once is no memory for a run of now."""
    if request.trace_kind == "dispatch" and (of_past or request.as_of is not None):
        raise failure(
            "VALIDATION_FAILED",
            "A dispatch hands a run what holds now, and never an answer of the past. Ask without as_of and "
            "at_position, or with trace_kind search.",
            fields=[{"field": "trace_kind", "problem": "is dispatch, and an answer of the past was asked for"}],
        )


def parse(model: type[_RequestT], **fields: Any) -> _RequestT:  # Any: unchecked input
    """Return the checked request, or VALIDATION_FAILED with every fault, named by field, never by value."""
    try:
        return model(**fields)
    except ValidationError as error:
        raise _refusal(error, "request") from None


def parse_moment(moment: object, field: str) -> str:
    """Return a time as the ledger writes times, or VALIDATION_FAILED, which calls it what the caller does."""
    try:
        return _MOMENT.validate_python(moment)
    except ValidationError as error:
        raise _refusal(error, field) from None


def _refusal(error: ValidationError, whole: str) -> Exception:
    """Return what is wrong with what was asked; `whole` is what all of it is called."""
    found = error.errors(include_url=False, include_input=False, include_context=True)
    inside = {item["loc"][:depth] for item in found for depth in range(1, len(item["loc"]))}
    # pydantic counts only the items that are right, and calls a list too short for those that are wrong.
    faults = [_fault(item, whole) for item in found if item["type"] != "too_short" or item["loc"] not in inside]
    return failure(
        "VALIDATION_FAILED",
        f"The request cannot be taken: {'; '.join(' '.join(fault) for fault in faults)}. Mend that and ask again.",
        fields=[{"field": field, "problem": what} for field, what in faults],
    )


def _fault(item: Any, whole: str) -> tuple[str, str]:  # Any: pydantic's own error details
    field = ".".join(str(part) for part in item["loc"]) or whole
    context: dict[str, Any] = item.get("ctx") or {}
    phrase = _PHRASES.get(item["type"])
    if phrase is not None:
        return field, phrase(context)
    if item["type"] == "value_error":
        said = str(context.get("error", "is not valid"))
        head, colon, rest = said.partition(": ")
        return (head, rest) if colon and field == "request" else (field, said)
    return field, str(item["msg"])[:1].lower() + str(item["msg"])[1:]


def _has(context: dict[str, Any], more: str, limit: int) -> str:  # Any: as in `_fault`
    """Say that a text or a list is too long or too short; pydantic calls a text that a validator saw a value."""
    return f"has {more} than {limit} {'characters' if context['field_type'] == 'Value' else 'items'}"


_MOMENT: TypeAdapter[str] = TypeAdapter(Moment)
_PHRASES: dict[str, Callable[[dict[str, Any]], str]] = {
    "missing": lambda _: "is missing",
    "extra_forbidden": lambda _: "is not a field of this request",
    "string_too_long": lambda context: f"is longer than {context['max_length']} characters",
    "string_too_short": lambda context: f"is shorter than {context['min_length']} characters",
    "too_long": lambda context: _has(context, "more", context["max_length"]),
    "too_short": lambda context: _has(context, "fewer", context["min_length"]),
    "int_type": lambda _: "is not a whole number",
    "greater_than_equal": lambda context: f"is below {context['ge']}",
    "less_than_equal": lambda context: f"is above {context['le']}",
    "finite_number": lambda _: "is not a finite number",
    "literal_error": lambda context: f"is not one of {context['expected']}",
}
