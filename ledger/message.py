"""What an event is made of: facts that are never erased, and a payload that can be (EVENTS.md, FORMAT.md §3).

Field names stand sorted in every struct, and nothing is ever left out: the order and presence of fields are the
bytes that get hashed. A struct here must never get `omit_defaults`, `rename` or a tag. What is frozen and made of what
was there before is never part of a cycle, so the garbage collector need not look at it (`gc=False`): it took an eighth
of the time of a bulk append.
"""

from functools import cache
from typing import Annotated, Any, Self, cast, get_type_hints

import msgspec
from msgspec import Meta, Struct

from ledger.limits import INTEGER_MAX

Position = Annotated[int, Meta(ge=-INTEGER_MAX, le=INTEGER_MAX)]
Count = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]


class Facts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The half of an event that stays: opaque ids, enums, positions and digests."""


class Payload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The half that can be erased: every text, and every name or number that a caller chose."""


class Values(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Where a revision stands: `[state, trust, floor]`."""

    state: str
    trust: str
    floor: str

    @property
    def is_live(self) -> bool:
        """Report whether a revision with these values may be its lineage's head."""
        return self.state == "active" and self.trust != "revoked"


class Move(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One revision going from one standing to another; `since` is where the interval that ends now began."""

    after: Values
    before: Values | None
    revision: str
    since: Position | None
    version: Count


class Edge(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """`[kind, newer, older, since]`: `since` is null when stated; when withdrawn, where it was stated."""

    kind: str
    newer: str
    older: str
    since: Position | None


class Standing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What the event leaves behind for its lineage: the head and where its content and metadata are, or nothing."""

    content_seq: Position | None
    floor: str | None
    head: str | None
    meta_seq: Position | None
    trust: str | None


HEADLESS = Standing(content_seq=None, floor=None, head=None, meta_seq=None, trust=None)


class ScopeIds(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The scope of a record, as ids of ours. Every look-up is keyed by the whole of it."""

    agent: str | None
    project: str
    session: str | None
    task_family: str | None
    user: str | None


_INTERVALS = (Move, Edge)
_TEXTS = (str, str | None, tuple[str, ...], ScopeIds)


class Reason(Payload, frozen=True, kw_only=True):
    """The payload of an event that adds nothing but why."""

    reason: str | None


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """One event, decided or read back.

    `position` is absolute once the event is in the ledger. Before that it is −1−i for the i-th event of its append,
    and so is every position inside `facts` that points into the same append. `subjects` are the keyed digests of the
    persons that it concerns, ascending.
    """

    facts: Facts
    payload: Payload | None
    position: int
    subjects: tuple[str, ...] = ()

    def settled(self, first: int) -> Self:
        """Return the event as it stands when its append's first event takes position `first`."""
        return msgspec.structs.replace(self, position=_absolute(self.position, first), facts=settled(self.facts, first))


def settled(facts: Facts, first: int) -> Facts:
    """Return `facts` with absolute positions, for an append whose first event takes position `first`."""
    changes: dict[str, object] = {}
    for field in _fields_with_positions(type(facts)):
        value: Any = getattr(facts, field)  # Any: a field's own type. To match it by patterns took twice the time
        if isinstance(value, Standing):
            if _is_open(value.content_seq) or _is_open(value.meta_seq):
                changes[field] = msgspec.structs.replace(
                    value, content_seq=_settle(value.content_seq, first), meta_seq=_settle(value.meta_seq, first)
                )
        elif isinstance(value, tuple):
            parts = cast("tuple[Move | Edge, ...]", value)  # or of something that has no `since`
            if any([_is_open(part.since) for part in parts if type(part) in _INTERVALS]):
                changes[field] = tuple([_settle_since(part, first) for part in parts])
        elif isinstance(value, int) and value < 0:
            changes[field] = _absolute(value, first)
    return msgspec.structs.replace(facts, **changes) if changes else facts


@cache
def _fields_with_positions(kind: type[Facts]) -> tuple[str, ...]:
    """Return the fields in which a position may lie: all but those that are texts by their type."""
    types = get_type_hints(kind)
    return tuple(field for field in kind.__struct_fields__ if types[field] not in _TEXTS)


def _settle_since(part: Move | Edge, first: int) -> Move | Edge:
    if part.since is None or part.since >= 0:
        return part
    return msgspec.structs.replace(part, since=_absolute(part.since, first))


def _is_open(position: int | None) -> bool:
    return position is not None and position < 0


def _settle(position: int | None, first: int) -> int | None:
    return None if position is None else _absolute(position, first)


def _absolute(position: int, first: int) -> int:
    return position if position >= 0 else first - 1 - position
