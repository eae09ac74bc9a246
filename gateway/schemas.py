"""What may be asked, checked at the door: every fault of a request at once, named by its field.

pydantic stops here. What passes is handed on as plain values that the core trusts.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    model_validator,
)

from ledger import limits
from ledger.clock import stamp
from ledger.errors import failure
from ledger.ids import MEMORY, is_callers_id, is_ours, kind_of
from ledger.scope import default_visibility

Kind = Literal["fact", "preference", "learning", "decision", "procedure", "task", "other"]
Origin = Literal["human", "agent", "llm_extracted", "import"]
Visibility = Literal["global", "tenant", "project", "agent", "user", "session"]
CorrectionVisibility = Literal["agent", "user", "tenant", "global"]
CorrectionState = Literal["unconfirmed", "active", "superseded", "revoked"]
Breakdown = Literal["agent", "period"]
Period = Literal["day", "month", "year"]
TrustTier = Literal["unverified", "verified"]

_CONFIDENCE = re.compile(r"0(\.[0-9]{1,6})?|1(\.0{1,6})?")
_ACTOR = re.compile(r"(human|agent|service):\S.*", re.DOTALL)
_RequestT = TypeVar("_RequestT", bound=BaseModel)


def _text(value: str) -> str:
    """Return a text that the ledger can hold: valid Unicode without NUL."""
    if "\x00" in value:
        raise ValueError("holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds a lone surrogate, which is not valid Unicode") from None
    return value


def _said(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty")
    return value


def _moment(value: Any) -> Any:  # Any: whatever the caller gave, before pydantic looks at it
    """Return an RFC 3339 time with a zone as the ledger writes it."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("is not an RFC 3339 time, such as 2026-01-02T03:04:05Z") from None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("has no time zone")
        try:
            return stamp(value)
        except OverflowError:
            raise ValueError("lies outside the years 1 to 9999 in UTC") from None
    return value


def _decimal(value: str) -> str:
    if not _CONFIDENCE.fullmatch(value):
        raise ValueError("is not a decimal between 0 and 1 with at most 6 places, such as 0.85")
    return value


def _name(value: str) -> str:
    if is_ours(value):
        raise ValueError("has the shape of an id that only the ledger makes")
    return value


def _identifier(value: str) -> str:
    if not (is_callers_id(value) or (is_ours(value) and kind_of(value) == MEMORY)):
        raise ValueError("is not 1 to 128 characters of A-Z a-z 0-9 . _ : - in another shape than the ledger's own ids")
    return value


def _identity(value: str) -> str:
    full = value if ":" in value else f"human:{value}"
    if not _ACTOR.fullmatch(full):
        raise ValueError("is not human:NAME, agent:NAME or service:NAME")
    return full


Text = Annotated[str, Strict(), AfterValidator(_text)]
Content = Annotated[
    str, Strict(), Field(max_length=limits.CONTENT_CHARS_MAX), AfterValidator(_text), AfterValidator(_said)
]
Value = Annotated[str, Strict(), Field(max_length=limits.CONTENT_CHARS_MAX), AfterValidator(_text)]
ReasonText = Annotated[str, Strict(), Field(max_length=limits.REASON_CHARS_MAX), AfterValidator(_text)]
RequiredReason = Annotated[ReasonText, AfterValidator(_said)]
Tag = Annotated[Text, Field(max_length=limits.TAG_CHARS_MAX), AfterValidator(_said)]
Source = Annotated[Text, Field(max_length=limits.SOURCE_CHARS_MAX), AfterValidator(_said)]
Name = Annotated[Text, Field(max_length=limits.NAME_CHARS_MAX), AfterValidator(_said), AfterValidator(_name)]
Label = Annotated[Text, Field(max_length=limits.NAME_CHARS_MAX), AfterValidator(_said)]
Identity = Annotated[Text, Field(max_length=limits.ACTOR_CHARS_MAX), AfterValidator(_identity)]
Identifier = Annotated[str, AfterValidator(_identifier)]
Reference = Annotated[Text, Field(min_length=1, max_length=limits.ID_CHARS_MAX)]
Key = Annotated[Text, Field(min_length=1, max_length=limits.IDEMPOTENCY_KEY_CHARS_MAX)]
Moment = Annotated[str, BeforeValidator(_moment)]
Confidence = Annotated[str, AfterValidator(_decimal)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=limits.TAGS_MAX)]


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


class RememberRequest(ScopeRequest):
    """A text to remember. `memory_id` names the lineage; one in the shape of ours has to be there already."""

    content: Content
    kind: Kind = "fact"
    tags: Tags = ()
    confidence: Confidence | None = None
    origin: Origin | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    review_by: Moment | None = None
    sources: Annotated[tuple[Source, ...], Field(max_length=limits.SOURCES_MAX)] = ()
    run: Name | None = None
    visibility: Visibility | None = None
    memory_id: Identifier | None = None
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


class CorrectRequest(Request):
    """The right text for a revision."""

    content: Content
    reason: ReasonText | None = None


class ReasonRequest(Request):
    """A reason that may be left out."""

    reason: ReasonText | None = None


class RequiredReasonRequest(Request):
    """A reason that may not."""

    reason: RequiredReason


class SearchRequest(ScopeRequest):
    """A question, and what may answer it."""

    query: Content
    k: Annotated[int, Field(ge=1, le=limits.SEARCH_K_MAX)] = limits.SEARCH_K_DEFAULT
    min_trust: TrustTier = "unverified"
    kinds: tuple[Kind, ...] = ()
    tags: Tags = ()


class ExportRequest(Request):
    """The memories whose history is handed out, and to whom."""

    ids: Annotated[tuple[Reference, ...], Field(min_length=1, max_length=limits.EXPORT_IDS_MAX)]
    recipient: Name | None = None


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


class StatsRequest(CorrectionsRequest):
    """Corrections to count, by what else than entity and field."""

    by: tuple[Breakdown, ...] = ()
    period: Period = "month"


class MomentRequest(Request):
    """A time of the past."""

    at: Moment


class ReferenceRequest(Request):
    """An id or a name that a caller gave."""

    id: Reference


def parse(model: type[_RequestT], **fields: Any) -> _RequestT:  # Any: unchecked input
    """Return the checked request, or VALIDATION_FAILED with every fault, named by field, never by value."""
    try:
        return model(**fields)
    except ValidationError as error:
        faults = [_fault(item) for item in error.errors(include_url=False, include_input=False, include_context=True)]
        raise failure(
            "VALIDATION_FAILED",
            f"The request cannot be taken: {'; '.join(' '.join(fault) for fault in faults)}. Mend that and ask again.",
            fields=[{"field": field, "problem": what} for field, what in faults],
        ) from None


def _fault(item: Any) -> tuple[str, str]:  # Any: pydantic's own error details
    field = ".".join(str(part) for part in item["loc"]) or "request"
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


_PHRASES: dict[str, Callable[[dict[str, Any]], str]] = {
    "missing": lambda _: "is missing",
    "extra_forbidden": lambda _: "is not a field of this request",
    "string_too_long": lambda context: f"is longer than {context['max_length']} characters",
    "string_too_short": lambda context: f"is shorter than {context['min_length']} characters",
    "too_long": lambda context: _has(context, "more", context["max_length"]),
    "too_short": lambda context: _has(context, "fewer", context["min_length"]),
    "greater_than_equal": lambda context: f"is below {context['ge']}",
    "less_than_equal": lambda context: f"is above {context['le']}",
    "literal_error": lambda context: f"is not one of {context['expected']}",
}
