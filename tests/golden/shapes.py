"""The second reader's part for §2 and §3 of FORMAT.md: bytes in canonical form, and what an envelope can say."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.golden.logs import verifier_key

Json = Any  # Any: JSON
Check = Callable[[Json], bool]

ENVELOPE_MAX, PAYLOAD_MAX, INTEGER_MAX = 16_384, 262_144, 2**53 - 1


class NotCanonical(ValueError):
    """Bytes in another form than §2 says."""


# ---------------------------------------------------------------- §2, canonical form

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED = re.compile(r'["\\\x00-\x1f]')


def canonical(raw: bytes) -> Json:
    """Return what bytes in canonical form say, or raise NotCanonical."""
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_no_number,
            parse_constant=_no_number,
        )
        same = written(value).encode("utf-8") == raw
    except (ValueError, RecursionError) as error:
        raise NotCanonical(str(error)) from error
    if not same:
        raise NotCanonical("another spelling")
    return value


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    if len(dict(pairs)) != len(pairs):
        raise NotCanonical("a key stands twice")
    return dict(pairs)


def _integer(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > INTEGER_MAX:
        raise NotCanonical("an integer out of range")
    return int(text)


def _no_number(text: str) -> Json:
    raise NotCanonical("a number that is no integer")


def written(value: Json) -> str:
    """Write a value in canonical form."""
    match value:
        case None:
            return "null"
        case bool() | float():
            raise NotCanonical("a value that stands nowhere")
        case int():
            return str(value)
        case str():
            if "\0" in value:
                raise NotCanonical("a text with NUL")
            return '"' + _ESCAPED.sub(lambda found: _ESCAPES.get(found[0], f"\\u{ord(found[0]):04x}"), value) + '"'
        case list():
            return "[" + ",".join(map(written, value)) + "]"
        case _:
            if not all(map(str.isascii, value)):
                raise NotCanonical("a key that is not ASCII")
            return "{" + ",".join(f"{written(key)}:{written(value[key])}" for key in sorted(value)) + "}"


# ---------------------------------------------------------------- §3, what an envelope can say


def matches(pattern: str) -> Check:
    """Return the check of a text by a pattern."""
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def one_of(*allowed: Json) -> Check:
    """Return the check that a value is one of these; `1` is not `true`."""
    return lambda value: any(type(value) is type(one) and value == one for one in allowed)


def integer(least: int, most: int = INTEGER_MAX) -> Check:
    """Return the check of an integer within bounds."""
    return lambda value: type(value) is int and least <= value <= most


def maybe(check: Check) -> Check:
    """Return the check that a value is null or passes."""
    return lambda value: value is None or check(value)


def array(check: Check) -> Check:
    """Return the check of an array whose values all pass."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def row_of(*checks: Check) -> Check:
    """Return the check of an array of so many values, each with its own check."""
    return lambda value: (
        isinstance(value, list)
        and len(value) == len(checks)
        and all(check(one) for check, one in zip(checks, value, strict=True))
    )


def closed(**checks: Check) -> Check:
    """Return the check of an object with exactly these keys."""
    return lambda value: (
        isinstance(value, dict)
        and value.keys() == checks.keys()
        and all(check(value[key]) for key, check in checks.items())
    )


def identifier(*prefixes: str) -> Check:
    """Return the check of an id with one of these prefixes."""
    return matches(f"({'|'.join(prefixes)})_[0-7][0-9A-HJKMNP-TV-Z]{{25}}")


ULID = matches("[0-7][0-9A-HJKMNP-TV-Z]{25}")
HEX = matches("[0-9a-f]{64}")
TEXT: Check = lambda value: isinstance(value, str)  # noqa: E731 - a name for a line
COUNT, FROM_1 = integer(0), integer(1)
TIME = matches(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z")
TRUST = one_of("unverified", "verified", "revoked")
STATES = one_of("processing", "active", "superseded", "conflicted", "rejected", "retired", "forgotten", "erased")
VALUES = row_of(STATES, TRUST, TRUST)
MOVE = closed(after=VALUES, before=maybe(VALUES), revision=identifier("rev"), since=maybe(COUNT), version=FROM_1)
EDGE = row_of(one_of("supersedes", "proposes", "conflicts"), TEXT, TEXT, maybe(COUNT))
STANDING = closed(
    content_seq=maybe(COUNT),
    floor=maybe(TRUST),
    head=maybe(identifier("rev")),
    meta_seq=maybe(COUNT),
    trust=maybe(TRUST),
)
SCOPE = closed(
    agent=maybe(identifier("agt")),
    project=identifier("prj"),
    session=maybe(identifier("ses")),
    task_family=maybe(identifier("tf")),
    user=maybe(identifier("usr")),
)
ALGORITHMS = closed(
    chain=one_of("blake3-derive-key"),
    commitment=one_of("sha256-salted"),
    seal=one_of("blake3-keyed"),
    signature=one_of("ed25519"),
    tree=one_of("sha256-rfc6962"),
)
_REVISION: dict[str, Check] = dict(
    content=HEX,
    edges=array(EDGE),
    kind=TEXT,
    moves=array(MOVE),
    origin=TEXT,
    scope=SCOPE,
    standing=STANDING,
    supports=array(TEXT),
    visibility=TEXT,
)
_LINK = closed(edges=array(EDGE), role=one_of("newer", "older"), standing=STANDING)
REASON = closed(reason=maybe(TEXT))
REVISION_TEXT = closed(
    **dict.fromkeys(
        ["applies", "confidence", "institutional", "reason", "recorded_at", "review_by", "valid_from", "valid_to"],
        maybe(TEXT),
    ),
    content=TEXT,
    **dict.fromkeys(["evidence", "subjects", "tags"], array(TEXT)),
    provenance=closed(run=maybe(TEXT), session=maybe(TEXT), sources=array(TEXT)),
)
KINDS = {
    "project": "prj",
    "actor": "pr",
    "agent": "agt",
    "user": "usr",
    "session": "ses",
    "task_family": "tf",
    "memory": "mem",
    "correction": "cor",
}
_MOVED = closed(moves=array(MOVE), standing=STANDING)
_RELATED = closed(edges=array(EDGE), moves=array(MOVE), standing=STANDING)
_WITHDRAWN = closed(cause=one_of("person", "prune", "correction", "import"), moves=array(MOVE), standing=STANDING)
METADATA = closed(
    **dict.fromkeys(["confidence", "review_by", "valid_from", "valid_to"], maybe(TEXT)),
    **dict.fromkeys(["sources", "tags"], array(TEXT)),
)
CORRECTION_STATES = one_of("unconfirmed", "active", "superseded", "revoked")
CONTRADICTIONS = one_of("done", "off", "deferred")
_RECORD = closed(state=CORRECTION_STATES)
_ENDED: dict[str, Check] = dict(after=CORRECTION_STATES, before=CORRECTION_STATES, standing=_RECORD)
_TOMBSTONE = closed(revision=identifier("rev"))
NOTHING: Check = lambda value: False  # noqa: E731 - no value is a payload of an event without one
TYPES: dict[str, tuple[Check, Check]] = {
    "ledger.opened.v1": (
        closed(
            algorithms=ALGORITHMS,
            canonical_form=one_of("jcs-closed-1"),
            incarnation=one_of(1),
            origin=TEXT,
            public_key=TEXT,
        ),
        closed(tenant=TEXT),
    ),
    "name.assigned.v1": (
        closed(id=identifier(*KINDS.values()), kind=one_of(*KINDS), parent=identifier("prj", "led")),
        closed(name=TEXT),
    ),
    "memory.remembered.v1": (closed(**_REVISION), REVISION_TEXT),
    "revision.corrected.v1": (closed(**_REVISION, trace=maybe(HEX)), REVISION_TEXT),
    "revision.published.v1": (_RELATED, REASON),
    "revision.superseded.v1": (_RELATED, REASON),
    "metadata.patched.v1": (
        closed(revision=identifier("rev"), since=COUNT, standing=STANDING),
        closed(after=METADATA, before=METADATA, reason=maybe(TEXT)),
    ),
    "memory.forgotten.v1": (_WITHDRAWN, REASON),
    "memory.retired.v1": (_WITHDRAWN, REASON),
    "memory.restored.v1": (closed(moves=array(MOVE), standing=STANDING, undoes=COUNT), REASON),
    "revision.contested.v1": (_RELATED, REASON),
    "revision.promoted.v1": (_RELATED, REASON),
    "revision.rejected.v1": (_RELATED, REASON),
    "revision.admitted.v1": (_MOVED, closed(evidence=array(TEXT), reason=maybe(TEXT))),
    "revision.revoked.v1": (_MOVED, REASON),
    "learning.invalidated.v1": (
        closed(correction=identifier("cor"), moves=array(MOVE), standing=STANDING),
        closed(correction_hash=TEXT, learning_hash=TEXT, reason=maybe(TEXT), similarity=TEXT),
    ),
    "payload.erased.v1": (
        closed(erasure=identifier("era"), moves=array(MOVE), positions=array(COUNT), standing=STANDING),
        NOTHING,
    ),
    "erasure.certified.v1": (
        closed(
            by=TEXT,
            not_reached=array(closed(store=TEXT, until=maybe(TEXT))),
            payloads=COUNT,
            signature=TEXT,
            stores=array(closed(deleted=COUNT, residual=COUNT, store=TEXT)),
        ),
        REASON,
    ),
    "lineage.linked.v1": (_LINK, REASON),
    "lineage.unlinked.v1": (_LINK, REASON),
    "tombstone.set.v1": (_TOMBSTONE, NOTHING),
    "tombstone.lifted.v1": (_TOMBSTONE, NOTHING),
    "correction.recorded.v1": (
        closed(
            content=HEX,
            contradiction=CONTRADICTIONS,
            origin=TEXT,
            revision=maybe(identifier("rev")),
            scope=SCOPE,
            standing=_RECORD,
            visibility=TEXT,
        ),
        closed(
            **dict.fromkeys(["corrected_value", "original_value"], TEXT),
            **dict.fromkeys(["entity_key", "field", "original_input", "reason", "recorded_at", "run"], maybe(TEXT)),
            tags=array(TEXT),
        ),
    ),
    "correction.confirmed.v1": (closed(**_ENDED, contradiction=CONTRADICTIONS), REASON),
    "correction.superseded.v1": (closed(**_ENDED, successor=identifier("cor")), REASON),
    "correction.revoked.v1": (closed(**_ENDED), REASON),
    "evidence.added.v1": (
        closed(external=one_of(True, False), media_type=maybe(TEXT), size=COUNT),
        closed(hash=TEXT, name=maybe(TEXT), uri=maybe(TEXT)),
    ),
    "export.made.v1": (
        closed(count=COUNT, kind=TEXT, origin=TEXT, root=HEX, size=COUNT),
        closed(ids=array(TEXT), recipient=maybe(TEXT)),
    ),
    "outbox.skipped.v1": (closed(position=COUNT, target=TEXT), REASON),
    "ledger.imported.v1": (
        closed(count=COUNT, kind=TEXT, origin=TEXT, root=HEX, size=COUNT),
        closed(recorded_at=array(TEXT)),
    ),
    "policy.set.v1": (closed(setting=TEXT, value=maybe(TEXT)), closed(names=maybe(array(TEXT)), reason=maybe(TEXT))),
}
STREAMS = {
    "correction": "cor",
    "erasure": "era",
    "evidence": "evd",
    "export": "led",
    "ledger": "led",
    "name": "name",
    "outbox": "led",
    "policy": "pol",
    "tombstone": "tomb",
}
ENVELOPE = closed(
    actor=TEXT,
    at=TIME,
    authn=TEXT,
    facts=lambda value: isinstance(value, dict),
    log=TEXT,
    op=identifier("op"),
    op_count=FROM_1,
    op_index=COUNT,
    payload_len=maybe(integer(0, PAYLOAD_MAX)),
    payload_sha256=maybe(HEX),
    prev_b3=HEX,
    request=maybe(HEX),
    request_fp=maybe(HEX),
    schema=one_of(1),
    seq=COUNT,
    stream=matches("(mem|cor|era|pol|led)_[0-7][0-9A-HJKMNP-TV-Z]{25}|(name|evd|tomb)_[0-9a-f]{64}"),
    stream_prev_b3=HEX,
    stream_seq=COUNT,
    subjects=array(TEXT),
    type=one_of(*TYPES),
    v=one_of(1),
)


def read_envelope(raw: bytes) -> dict[str, Json]:
    """Return what an envelope says, or raise NotCanonical."""
    if len(raw) > ENVELOPE_MAX:
        raise NotCanonical("too many bytes")
    value = canonical(raw)
    if not ENVELOPE(value) or not TYPES[value["type"]][0](value["facts"]):
        raise NotCanonical("not the keys and values of an envelope")
    if value["op_index"] >= value["op_count"] or value["subjects"] != sorted(set(value["subjects"])):
        raise NotCanonical("beyond its append, or subjects out of order")
    for one, other in (("payload_len", "payload_sha256"), ("request", "request_fp")):
        if (value[one] is None) != (value[other] is None):
            raise NotCanonical(f"{one} without {other}, or the other way round")
    if any(position > value["seq"] for position in _positions(value["facts"])):
        raise NotCanonical("facts that point above their own entry")
    prefix = STREAMS.get(value["type"].split(".")[0], "mem")
    if not value["stream"].startswith(f"{prefix}_"):
        raise NotCanonical("a stream of another kind")
    if value["type"] == "ledger.opened.v1" and not _is_opening(value):
        raise NotCanonical("an opening that is none of a ledger's")
    return value


def _is_opening(value: dict[str, Json]) -> bool:
    try:
        name, _ = verifier_key(value["facts"]["public_key"])
    except ValueError:
        return False
    own = (value["seq"], value["op_count"], value["actor"]) == (0, 1, "system")
    return own and name == value["facts"]["origin"] == value["log"]


def read_payload(tag: str, body: bytes) -> dict[str, Json]:
    """Return what a payload says, or raise NotCanonical."""
    if len(body) > PAYLOAD_MAX:
        raise NotCanonical("too many bytes")
    value = canonical(body)
    if not TYPES[tag][1](value):
        raise NotCanonical("not the keys and values of that payload")
    return value


def _positions(facts: dict[str, Json]) -> Iterator[int]:
    standing = facts.get("standing") or {}
    found = [standing.get("content_seq"), standing.get("meta_seq"), facts.get("undoes"), facts.get("since")]
    found += [move["since"] for move in facts.get("moves", ())] + [edge[3] for edge in facts.get("edges", ())]
    found += facts.get("positions", ())
    return (position for position in found if position is not None)
