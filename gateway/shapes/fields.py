"""What a field of a request may hold, and in which form it is handed on. Pure."""

import re
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    Strict,
)

from ledger import limits
from ledger.clock import stamp
from ledger.ids import MEMORY, is_callers_id, is_ours, kind_of

Kind = Literal["fact", "preference", "learning", "decision", "procedure", "task", "other"]
Origin = Literal["human", "agent", "llm_extracted", "import"]
Visibility = Literal["global", "tenant", "project", "agent", "user", "session"]
CorrectionVisibility = Literal["agent", "user", "tenant", "global"]
CorrectionState = Literal["unconfirmed", "active", "superseded", "revoked"]
Breakdown = Literal["agent", "period"]
Period = Literal["day", "month", "year"]
ListedState = Literal[
    "active", "processing", "conflicted", "superseded", "rejected", "retired", "forgotten", "erased", "revoked"
]  # fmt: skip
TrustTier = Literal["unverified", "verified"]
TraceKind = Literal["search", "dispatch"]
ContextField = Literal["directory", "worktree", "projectId", "sessionId"]

_LOCAL = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d){1,2}([.,]\d+)?)?", re.ASCII | re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:(?P<second>\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)
_CONFIDENCE = re.compile(r"0(\.[0-9]{1,6})?|1(\.0{1,6})?")
_AGE = re.compile(r"([1-9][0-9]{0,5})([hdw])")
_AGE_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_HASH = re.compile(r"b3:[0-9a-f]{64}")
_ACTOR = re.compile(r"(human|agent|service):\S.*", re.DOTALL)
_BARE_KIND = re.compile(r"(human|agent|service|system)s?([^A-Za-z0-9].*)?", re.DOTALL | re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


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
        value = _parsed(value)
    if not isinstance(value, datetime):
        raise ValueError("is not a time: a text such as 2026-01-02T03:04:05Z, or a datetime with its zone")
    if value.tzinfo is None:
        raise ValueError("has no time zone")
    try:
        return stamp(value)
    except OverflowError:
        raise ValueError("lies outside the years 1 to 9999 in UTC") from None


def _parsed(value: str) -> datetime:
    said = _TIME.fullmatch(value)
    if said and said["second"] == "60":
        raise ValueError("names a leap second, which times here do not have; give the second before or after it")
    if value.isascii() and not said and _LOCAL.fullmatch(value):
        raise ValueError("has no time zone")
    try:
        if said:
            return datetime.fromisoformat(value.upper())
    except ValueError:
        pass
    raise ValueError("is not an RFC 3339 time of the years 1 to 9999, such as 2026-01-02T03:04:05Z")


def worded(value: str) -> str:
    if not re.search(r"\w", value):
        raise ValueError("has no word in it")
    return value


def _decimal(value: str) -> str:
    if not _CONFIDENCE.fullmatch(value):
        raise ValueError("is not a decimal between 0 and 1 with at most 6 places, such as 0.85")
    return value


def _name(value: str) -> str:
    if is_ours(value):
        raise ValueError("has the shape of an id that only the ledger makes")
    return value


def _age(value: Any) -> Any:  # Any: whatever the caller gave, before pydantic looks at it
    """Return an age such as 90d, 12h or 4w as a timedelta."""
    match = _AGE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("is not an age of at least one hour, such as 90d, 12h or 4w")
    return int(match[1]) * _AGE_UNITS[match[2]]


def _public_hash(value: str) -> str:
    if not _HASH.fullmatch(value):
        raise ValueError("is not a hash: b3: and 64 digits of 0-9 a-f")
    return value


def blind(text: str) -> str:
    """Return a text as it is compared where neither case nor white space counts."""
    return " ".join(text.casefold().split())


def _identifier(value: str) -> str:
    if not (is_callers_id(value) or (is_ours(value) and kind_of(value) == MEMORY)):
        raise ValueError("is not 1 to 128 characters of A-Z a-z 0-9 . _ : - in another shape than the ledger's own ids")
    return value


def _identity(value: str) -> str:
    """Return an actor with its kind. A bare name is a person's, unless it reads like a kind: that may do less."""
    if ":" not in value and _BARE_KIND.fullmatch(value):
        raise ValueError(
            "has a word for a kind in the place of a name; it is human:NAME, agent:NAME or service:NAME, and the "
            "ledger itself acts for nobody"
        )
    full = value if ":" in value else f"human:{value}"
    if not _ACTOR.fullmatch(full):
        raise ValueError("is not human:NAME, agent:NAME or service:NAME, or the bare name of a person")
    return full


def once(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return each of some names once, in the order in which they were given."""
    return tuple(dict.fromkeys(values))


def _media_type(value: str) -> str:
    if not _MEDIA_TYPE.fullmatch(value):
        raise ValueError("is not a media type, such as text/plain or image/png")
    return value.lower()


def _uri(value: str) -> str:
    if not _URI.fullmatch(value) or not value.isprintable():
        raise ValueError("is not a URI with its scheme, such as https://example.com/a or s3://bucket/key")
    return value


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
Identifier = Annotated[str, Strict(), AfterValidator(_identifier)]
Reference = Annotated[Text, Field(min_length=1, max_length=limits.ID_CHARS_MAX)]
Key = Annotated[Text, Field(min_length=1, max_length=limits.IDEMPOTENCY_KEY_CHARS_MAX)]
Moment = Annotated[str, BeforeValidator(_moment)]
Confidence = Annotated[str, Strict(), AfterValidator(_decimal)]
Age = Annotated[timedelta, BeforeValidator(_age)]
PublicHash = Annotated[str, Strict(), AfterValidator(_public_hash)]
Conversation = Annotated[
    str, Strict(), Field(max_length=limits.CONVERSATION_CHARS_MAX), AfterValidator(_text), AfterValidator(_said)
]
Strictly = Annotated[bool, Strict()]
Turn = Annotated[int, Strict(), Field(ge=0, le=limits.INTEGER_MAX)]
MediaType = Annotated[str, Strict(), Field(max_length=limits.MEDIA_TYPE_CHARS_MAX), AfterValidator(_media_type)]
Uri = Annotated[str, Strict(), Field(max_length=limits.URI_CHARS_MAX), AfterValidator(_text), AfterValidator(_uri)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=limits.TAGS_MAX)]
Subjects = Annotated[tuple[Label, ...], Field(max_length=limits.SUBJECTS_MAX), AfterValidator(once)]
Sources = Annotated[tuple[Source, ...], Field(max_length=limits.SOURCES_MAX)]
