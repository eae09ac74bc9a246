"""A request checked: every fault at once, named by its field and never by its value."""

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from gateway.shapes.fields import Moment
from ledger.errors import failure

_RequestT = TypeVar("_RequestT", bound=BaseModel)
_MOMENT: TypeAdapter[str] = TypeAdapter(Moment)


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
