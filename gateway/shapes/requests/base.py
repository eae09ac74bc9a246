"""What requests have in common: no unknown field, no silent conversion, and the segments of a scope."""

from pydantic import BaseModel, ConfigDict

from gateway.shapes.fields import Identity, Key, Name, ReasonText, Reference, RequiredReason


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


class ReferenceRequest(Request):
    """An id or a name that a caller gave."""

    id: Reference


class ReasonRequest(Request):
    """A reason that may be left out."""

    reason: ReasonText | None = None


class RequiredReasonRequest(Request):
    """A reason that may not."""

    reason: RequiredReason
