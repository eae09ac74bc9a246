"""The one table of refusals and failures, from which exits, HTTP statuses and documentation are made.

    CorrigendaError
    ├── InvalidInputError   what was asked cannot be asked (exit 2, 5)
    ├── ForbiddenError      the caller may not (exit 4)
    ├── NotFoundError       there is no such thing, or none that this caller may know of (exit 3)
    ├── ConflictError       the state of things stands against it (exit 5, 6)
    ├── UnavailableError    a part that is needed does not answer (exit 7)
    └── IntegrityError      what is stored is not what was written (exit 10 to 15)

An error's message is one paragraph: what was expected, what was found, what to do next. It never holds stored text.
"""

from dataclasses import dataclass
from typing import Any, NoReturn


@dataclass(frozen=True, slots=True)
class Rule:
    """What every surface makes of one code: HTTP status, process exit, and whether trying again can help."""

    family: "type[CorrigendaError]"
    http: int
    exit: int
    retriable: bool = False


class CorrigendaError(Exception):
    """Any refusal or failure that Corrigenda reports. `code` is stable; `details` are machine-readable."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        trace_id: str | None = None,
        retry_after_ms: int | None = None,
        **details: Any,  # Any: whatever JSON a code's documentation names
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details
        self.trace_id = trace_id
        self.retry_after_ms = retry_after_ms

    @property
    def retriable(self) -> bool:
        """Report whether the same request may succeed later without being changed."""
        return REGISTRY[self.code].retriable

    @property
    def exit_code(self) -> int:
        """Return the process exit that belongs to this error."""
        return REGISTRY[self.code].exit


class InvalidInputError(CorrigendaError):
    """What was asked cannot be asked."""


class ForbiddenError(CorrigendaError):
    """The caller may not do this."""


class NotFoundError(CorrigendaError):
    """There is no such thing, or none that this caller may know of."""


class ConflictError(CorrigendaError):
    """The present state stands against it."""


class UnavailableError(CorrigendaError):
    """Something that is needed does not answer; nothing was decided."""

    @property
    def retriable(self) -> bool:
        """Report whether the same request may succeed later: not where whoever raised it says that it lasts."""
        return self.details.get("retriable", REGISTRY[self.code].retriable)


class IntegrityError(CorrigendaError):
    """What is stored is not what was written. Never caught below the edge."""

    @property
    def exit_code(self) -> int:
        """Return 15 where nothing could be checked, else the exit of the check that failed (10 the chain)."""
        return self.details.get("exit_code", REGISTRY[self.code].exit)


def _rules(family: type[CorrigendaError], http: int, exit: int, *codes: str, retriable: bool = False):
    return {code: Rule(family, http, exit, retriable) for code in codes}


REGISTRY: dict[str, Rule] = {
    **_rules(InvalidInputError, 400, 2, "VALIDATION_FAILED", "IDEMPOTENCY_KEY_INVALID", "CURSOR_INVALID"),
    **_rules(InvalidInputError, 409, 2, "CURSOR_FILTER_MISMATCH"),
    **_rules(InvalidInputError, 413, 2, "PAYLOAD_TOO_LARGE"),
    **_rules(InvalidInputError, 428, 2, "PRECONDITION_REQUIRED"),
    **_rules(InvalidInputError, 422, 5, "IDEMPOTENCY_KEY_REUSED", "ADMISSION_REFUSED", "NO_PRIOR_TRACE"),
    **_rules(InvalidInputError, 422, 5, "NO_CHANGE", "INVALID_INPUT"),
    **_rules(ForbiddenError, 401, 4, "UNAUTHENTICATED"),
    **_rules(ForbiddenError, 403, 4, "FORBIDDEN_ACTOR", "FORBIDDEN_SCOPE", "SELF_APPROVAL_FORBIDDEN"),
    **_rules(NotFoundError, 404, 3, "MEMORY_NOT_FOUND", "CANDIDATE_NOT_FOUND", "EPISODE_NOT_FOUND"),
    **_rules(NotFoundError, 404, 3, "CORRECTION_NOT_FOUND", "EVIDENCE_NOT_FOUND", "TRACE_NOT_FOUND"),
    **_rules(NotFoundError, 404, 3, "EVENT_NOT_FOUND", "TOKEN_NOT_FOUND", "OPERATION_NOT_FOUND"),
    **_rules(NotFoundError, 404, 3, "NOT_CONFIGURED"),
    **_rules(ConflictError, 409, 5, "MEMORY_ALREADY_SUPERSEDED", "MEMORY_DELETED", "MEMORY_REVOKED"),
    **_rules(ConflictError, 409, 5, "SUBJECT_ERASED", "INVALID_TRANSITION", "CANDIDATE_EXISTS"),
    **_rules(ConflictError, 409, 5, "EPISODE_ALREADY_REVOKED", "MUTATION_NOT_APPLICABLE", "UNDER_HOLD"),
    **_rules(ConflictError, 409, 5, "CANDIDATE_APPLYING", "NO_WRITABLE_STORE", "TARGET_NOT_FOUND"),
    **_rules(ConflictError, 409, 5, "UNSUPPORTED_OPERATION", "PLAN_STALE"),
    **_rules(ConflictError, 409, 5, "STALE_REVISION", "STALE_PREDECESSOR", "EXPECTED_ACTIVE_MISMATCH"),
    **_rules(ConflictError, 409, 5, "CONCURRENT_MODIFICATION", "REVALIDATION_REQUIRED"),
    **_rules(ConflictError, 409, 6, "REQUEST_IN_FLIGHT", retriable=True),
    **_rules(UnavailableError, 429, 6, "RATE_LIMITED", "QUEUE_FULL", retriable=True),
    **_rules(UnavailableError, 503, 7, "UNAVAILABLE", "INDEX_UNAVAILABLE", retriable=True),
    **_rules(UnavailableError, 503, 7, "EMBEDDER_UNAVAILABLE", retriable=True),
    **_rules(UnavailableError, 503, 7, "SCHEMA_MISMATCH"),
    **_rules(IntegrityError, 503, 10, "INTEGRITY_BROKEN"),
    **_rules(IntegrityError, 503, 15, "LEDGER_UNVERIFIED"),
}


def failure(
    code: str,
    message: str,
    **details: Any,  # Any: as in CorrigendaError
) -> CorrigendaError:
    """Return the error of the family that the registry names for `code`. An unknown code is a KeyError."""
    return REGISTRY[code].family(code, message, **details)


def refuse(code: str, message: str, **details: Any) -> NoReturn:  # Any: as in CorrigendaError
    """Raise the error of the family that the registry names for `code`."""
    raise failure(code, message, **details)
