"""What may be asked of a ledger's upkeep."""

from typing import Annotated, Literal

from pydantic import Field, Strict

from gateway.shapes.requests.base import Request, RequiredReasonRequest
from ledger import limits

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
