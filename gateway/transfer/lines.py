"""One event as one line of JSON, and the lines around them (docs/JSONL.md).

A file is what a stranger gives us: a line is parsed strictly, its numbers, keys, depth and texts checked, and facts and
payload have to be what an event of that type can say. Nothing of a line is shown in a message.
"""

import json
import re
from datetime import datetime
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Struct

from ledger import codec
from ledger.codec import EVENT_TYPES, NotCanonical, canonical
from ledger.digest import leaf
from ledger.ids import OP, is_ours, kind_of
from ledger.limits import INTEGER_MAX
from ledger.message import Facts, Payload
from ledger.verified import Recorded

FORMAT = "corrigenda-jsonl/1"
KINDS = ("ledger", "corrections")
LINE_BYTES_MAX = 1024 * 1024
GIVEN, WITHHELD, ERASED, NONE = "given", "withheld", "erased", "none"

_TIME = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z"
)
_DIGITS_MAX = 17
_StructT = TypeVar("_StructT", bound=Struct)


class Head(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line: what the file is, of which log, and a checkpoint over all that it tells."""

    format: str
    kind: str
    origin: str
    size: int
    root: str
    as_of: int
    made_at: str
    checkpoint: str


class End(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last line: how many events the file tells."""

    format: str
    events: int


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event. `key` stays the same wherever the event goes; `place` of `places` is that in its append, names aside.

    `recorded_at` is when it was first recorded, `at` when in this ledger.
    """

    key: str
    place: int | None
    places: int | None
    seq: int
    at: str
    recorded_at: str
    type: str
    actor: str
    actor_name: str | None
    op: str
    stream: str
    stream_name: str | None
    stream_seq: int
    project: str | None
    valid_from: str | None
    valid_to: str | None
    hash: str
    leaf: str
    facts: Any  # Any: JSON, as the type has it
    payload: str
    said: Any  # Any: as above, or None


class Told(NamedTuple):
    """A line that was read: its number in the file, from 1, and what its event says."""

    number: int
    line: Line
    facts: Facts
    payload: Payload | None


class BadLine(ValueError):
    """A line is not one that a file of this kind can have. The message says in what, and repeats nothing of it."""


def encode(value: Struct) -> bytes:
    """Return one line of a file, with its line feed."""
    return msgspec.json.encode(value) + b"\n"


class Place(NamedTuple):
    """Where an event stands in its append, names left aside, and among how many; a name stands nowhere."""

    number: int | None
    among: int | None


def line_of(
    item: Recorded, *, place: Place, recorded_at: str, names: "dict[str, str]", project: str | None, withheld: bool
) -> Line:
    """Return an event as a line. `names` are those of the ids in it that are told."""
    envelope = item.entry.envelope
    said = None if withheld or item.payload is None else msgspec.to_builtins(item.payload)
    told = WITHHELD if withheld else ERASED if said is None else GIVEN
    named = getattr(envelope.facts, "id", "")
    return Line(
        key=f"{envelope.op}.{named if place.number is None else place.number}",
        place=place.number,
        places=place.among,
        seq=envelope.seq,
        at=envelope.at,
        recorded_at=recorded_at,
        type=envelope.type,
        actor=envelope.actor,
        actor_name=names.get(envelope.actor),
        op=envelope.op,
        stream=envelope.stream,
        stream_name=names.get(envelope.stream),
        stream_seq=envelope.stream_seq,
        project=project,
        valid_from=_valid(said, "valid_from"),
        valid_to=_valid(said, "valid_to"),
        hash=item.entry.hash.hex(),
        leaf=leaf(item.entry.raw).hex(),
        facts=msgspec.to_builtins(envelope.facts),
        payload=NONE if envelope.payload_sha256 is None else told,
        said=said,
    )


def _valid(said: Any, end: str) -> str | None:  # Any: JSON
    """Return when what a payload says holds in the world, from or to: a patch says it as it is from now on."""
    if not isinstance(said, dict):
        return None
    found = cast(dict[str, Any], said)
    inner = found.get("after")
    return cast(dict[str, Any], inner).get(end) if isinstance(inner, dict) else found.get(end)


# ---------------------------------------------------------------- reading


def parse_head(raw: bytes) -> Head:
    """Return the first line of a file. Errors: BadLine."""
    head = _converted(_json(raw), Head)
    if head.format != FORMAT:
        raise BadLine(f"is of another format, or a newer version, than {FORMAT}")
    if head.kind not in KINDS:
        raise BadLine("names a kind of file that there is not")
    if not re.fullmatch("[0-9a-f]{64}", head.root) or not 0 <= head.size <= INTEGER_MAX:
        raise BadLine("names no size and root of a log")
    return head


def parse(number: int, raw: bytes) -> Told | End:
    """Return what a line tells. Errors: BadLine."""
    value: object = _json(raw)
    keys = cast(dict[str, object], value).keys() if isinstance(value, dict) else ()
    if "format" in keys:
        end = _converted(cast(object, value), End)
        if end.format != FORMAT:
            raise BadLine("closes a file of another format")
        return end
    return told(number, _converted(cast(object, value), Line))


def told(number: int, line: Line) -> Told:
    """Return what a line's event says, checked. Errors: BadLine."""
    if not (is_ours(line.op) and kind_of(line.op) == OP):
        raise BadLine("names an append by something that is no id of ours (op_ and 26 characters)")
    if line.key.partition(".")[0] != line.op:
        raise BadLine("has a key of another append than its own")
    if line.type not in EVENT_TYPES:
        raise BadLine("is an event of a type that this version does not know")
    if not codec.stands_in(line.type, line.stream):
        raise BadLine("stands in a stream of another kind than its type")
    if not (_is_time(line.at) and _is_time(line.recorded_at)):
        raise BadLine("has a time that is none, or in another form than 2026-01-02T03:04:05.000006Z")
    if line.payload not in (GIVEN, WITHHELD, ERASED, NONE) or (line.payload == GIVEN) != (line.said is not None):
        raise BadLine("has a payload that is neither given nor withheld")
    if (line.payload == NONE) != (EVENT_TYPES[line.type][1] is None):
        raise BadLine("has a payload where its type has none, or none where it has one")
    if not 0 <= line.stream_seq <= INTEGER_MAX:
        raise BadLine("has a place in its stream that is none")
    try:
        facts = codec.decode_facts(line.type, canonical(line.facts))
        payload = None if line.said is None else codec.decode_payload(line.type, canonical(line.said))
    except (NotCanonical, UnicodeEncodeError, RecursionError) as error:
        raise BadLine("does not say what an event of its type can say") from error
    return Told(number, line, facts, payload)


def _is_time(text: str) -> bool:
    """Report whether a text is a time as we write it, of a day that there is: it is kept, and told again."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return _TIME.fullmatch(text) is not None


def _json(raw: bytes) -> object:
    try:
        return json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_no_number,
            parse_constant=_no_number,
        )
    except BadLine:
        raise
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, or nested without end
        raise BadLine("is no line of JSON in UTF-8") from error


def _converted(value: object, kind: type[_StructT]) -> _StructT:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise BadLine(f"lacks a field of {FORMAT}, has one more, or one of another kind") from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadLine("has a key twice")
    return found


def _integer(text: str) -> int:
    if len(text) > _DIGITS_MAX or abs(int(text)) > INTEGER_MAX:
        raise BadLine("has an integer beyond 2^53-1")
    return int(text)


def _no_number(text: str) -> object:
    raise BadLine("has a number that is no integer")
