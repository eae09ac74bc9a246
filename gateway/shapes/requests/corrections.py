"""What may be asked of corrections: to record, find, count and render them."""

from typing import Annotated

from pydantic import Field, Strict, model_validator

from gateway.shapes.fields import (
    Breakdown,
    Content,
    CorrectionState,
    CorrectionVisibility,
    Label,
    Moment,
    Name,
    Period,
    ReasonText,
    Reference,
    Tags,
    Text,
    Value,
)
from gateway.shapes.requests.base import Request, ScopeRequest
from ledger import limits


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
