"""What may be asked of memories by a question, and of the traces that such questions leave."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, Strict, model_validator

from gateway.shapes.fields import (
    Confidence,
    Content,
    ContextField,
    Kind,
    Moment,
    Name,
    Source,
    Strictly,
    Tags,
    Text,
    TraceKind,
    TrustTier,
    Turn,
)
from gateway.shapes.requests.base import Request, ScopeRequest
from ledger import limits
from ledger.errors import failure


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


def check_dispatch(request: SearchRequest, *, of_past: bool) -> None:
    """Refuse a dispatch of the past: what held once is no memory for a run of now."""
    if request.trace_kind == "dispatch" and (of_past or request.as_of is not None):
        raise failure(
            "VALIDATION_FAILED",
            "A dispatch hands a run what holds now, and never an answer of the past. Ask without as_of and "
            "at_position, or with trace_kind search.",
            fields=[{"field": "trace_kind", "problem": "is dispatch, and an answer of the past was asked for"}],
        )


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
