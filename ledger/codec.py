"""Bytes to events and back: the one table of event types, and the closed canonical form (FORMAT.md §2).

The stored bytes are authoritative. Reading therefore always ends in `canonical(parse(bytes)) == bytes`; whatever
could be written in two ways is refused.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar, cast

import msgspec
from msgspec import Meta, Struct

from ledger import digest
from ledger.chain import Entry, Envelope, broken
from ledger.corrections import (
    CorrectionConfirmed,
    CorrectionRecorded,
    CorrectionRevoked,
    CorrectionSuperseded,
    CorrectionText,
)
from ledger.erasure import ErasureCertified
from ledger.errors import refuse
from ledger.evidence import EvidenceAdded, EvidenceText
from ledger.governance import (
    CANONICAL_FORM,
    OPENER,
    Algorithms,
    AssignedName,
    ExportMade,
    HandedOut,
    LedgerImported,
    LedgerName,
    LedgerOpened,
    NameAssigned,
    OutboxSkipped,
    TakenOver,
)
from ledger.limits import ENVELOPE_BYTES_MAX, PAYLOAD_BYTES_MAX
from ledger.memories import (
    Admission,
    Contradiction,
    LearningInvalidated,
    LineageLinked,
    LineageUnlinked,
    MemoryForgotten,
    MemoryRemembered,
    MemoryRestored,
    MemoryRetired,
    MetadataPatch,
    MetadataPatched,
    PayloadErased,
    RevisionAdmitted,
    RevisionContested,
    RevisionCorrected,
    RevisionPromoted,
    RevisionPublished,
    RevisionRejected,
    RevisionRevoked,
    RevisionSuperseded,
    RevisionText,
)
from ledger.message import Count, Event, Facts, Payload, Reason
from ledger.notes import NotANote, parse_verifier_key
from ledger.policy import PolicyNames, PolicySet
from ledger.tombstones import TombstoneLifted, TombstoneSet

FORMAT_VERSION = 1
SCOPE_SCHEMA = 1

EVENT_TYPES: dict[str, tuple[type[Facts], type[Payload] | None]] = {
    "correction.confirmed.v1": (CorrectionConfirmed, Reason),
    "correction.recorded.v1": (CorrectionRecorded, CorrectionText),
    "correction.revoked.v1": (CorrectionRevoked, Reason),
    "correction.superseded.v1": (CorrectionSuperseded, Reason),
    "erasure.certified.v1": (ErasureCertified, Reason),
    "evidence.added.v1": (EvidenceAdded, EvidenceText),
    "export.made.v1": (ExportMade, HandedOut),
    "learning.invalidated.v1": (LearningInvalidated, Contradiction),
    "ledger.imported.v1": (LedgerImported, TakenOver),
    "ledger.opened.v1": (LedgerOpened, LedgerName),
    "lineage.linked.v1": (LineageLinked, Reason),
    "lineage.unlinked.v1": (LineageUnlinked, Reason),
    "memory.forgotten.v1": (MemoryForgotten, Reason),
    "memory.remembered.v1": (MemoryRemembered, RevisionText),
    "memory.restored.v1": (MemoryRestored, Reason),
    "memory.retired.v1": (MemoryRetired, Reason),
    "metadata.patched.v1": (MetadataPatched, MetadataPatch),
    "name.assigned.v1": (NameAssigned, AssignedName),
    "outbox.skipped.v1": (OutboxSkipped, Reason),
    "payload.erased.v1": (PayloadErased, None),
    "policy.set.v1": (PolicySet, PolicyNames),
    "revision.admitted.v1": (RevisionAdmitted, Admission),
    "revision.contested.v1": (RevisionContested, Reason),
    "revision.corrected.v1": (RevisionCorrected, RevisionText),
    "revision.promoted.v1": (RevisionPromoted, Reason),
    "revision.published.v1": (RevisionPublished, Reason),
    "revision.rejected.v1": (RevisionRejected, Reason),
    "revision.revoked.v1": (RevisionRevoked, Reason),
    "revision.superseded.v1": (RevisionSuperseded, Reason),
    "tombstone.lifted.v1": (TombstoneLifted, None),
    "tombstone.set.v1": (TombstoneSet, None),
}
TAGS: dict[type[Facts], str] = {facts: tag for tag, (facts, _) in EVENT_TYPES.items()}

# In which kind of stream an event of a type stands, by its noun; the lineage's nouns are several.
_STREAM_OF_NOUN = {
    "correction": "cor_",
    "erasure": "era_",
    "evidence": "evd_",
    "export": "led_",
    "ledger": "led_",
    "name": "name_",
    "outbox": "led_",
    "policy": "pol_",
    "tombstone": "tomb_",
}
_STREAMS = {tag: _STREAM_OF_NOUN.get(tag.partition(".")[0], "mem_") for tag in EVENT_TYPES}
_encoder = msgspec.json.Encoder()
_NUL = b"\\u0000"
_BACKSLASH = b"\\"
_END = b'","v":1}'  # what every envelope of this version ends with, after its type
_Hash = Annotated[str, Meta(min_length=64, max_length=64)]  # what it is compared with is hex
_TIME = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z"
)
_StructT = TypeVar("_StructT", bound=Struct)
_FactsT = TypeVar("_FactsT", bound=Facts)


class _RawEnvelope(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`Envelope` with `facts` as bytes; its field order is the canonical one."""

    actor: str
    at: str
    authn: str
    facts: msgspec.Raw
    log: str
    op: str
    op_count: Count
    op_index: Count
    payload_len: Count | None
    payload_sha256: _Hash | None
    prev_b3: _Hash
    request: _Hash | None
    request_fp: _Hash | None
    schema: Count
    seq: Count
    stream: str
    stream_prev_b3: _Hash
    stream_seq: Count
    subjects: tuple[str, ...]
    type: str
    v: int


class _Typed(Envelope, Generic[_FactsT], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`Envelope` with the facts of one type, so that it is parsed in one go. Fields keep their places in the order."""

    facts: _FactsT
    op_count: Count
    op_index: Count
    payload_len: Count | None
    payload_sha256: _Hash | None
    prev_b3: _Hash
    request: _Hash | None
    request_fp: _Hash | None
    schema: Count
    seq: Count
    stream_prev_b3: _Hash
    stream_seq: Count


_envelopes = msgspec.json.Decoder(_RawEnvelope)
_typed: dict[bytes, tuple[str, "msgspec.json.Decoder[Envelope]"]] = {
    tag.encode(): (tag, msgspec.json.Decoder(cast(Any, _Typed)[facts]))  # Any: a type that is only known here
    for tag, (facts, _) in EVENT_TYPES.items()
    if facts is not LedgerOpened  # the one type whose facts are checked for what they promise
}
_facts = {tag: msgspec.json.Decoder(facts) for tag, (facts, _) in EVENT_TYPES.items()}
_payloads = {tag: msgspec.json.Decoder(payload) for tag, (_, payload) in EVENT_TYPES.items() if payload is not None}


class NotCanonical(ValueError):
    """The bytes are not the canonical form of anything that this version knows."""


def encode_envelope(envelope: Envelope) -> bytes:
    """Return the bytes of an envelope, in canonical form. Over 16 KiB: PAYLOAD_TOO_LARGE."""
    raw = _encode(envelope)
    if len(raw) > ENVELOPE_BYTES_MAX:
        _too_large("an event's envelope", len(raw), ENVELOPE_BYTES_MAX)
    return raw


def encode_payload(payload: Payload) -> bytes:
    """Return the bytes of a payload, in canonical form and without its salt. Over 256 KiB: PAYLOAD_TOO_LARGE."""
    body = _encode(payload)
    if len(body) > PAYLOAD_BYTES_MAX:
        _too_large("an event's payload", len(body), PAYLOAD_BYTES_MAX)
    return body


def canonical(value: Any) -> bytes:  # Any: a value of JSON's types, keys ASCII
    """Return the canonical JSON of a plain value: keys sorted, no white space."""
    return msgspec.json.encode(value, order="sorted")


def decode_envelope(raw: bytes) -> Envelope:
    """Parse an envelope strictly. Anything but the canonical form of a known type is NotCanonical."""
    if len(raw) > ENVELOPE_BYTES_MAX:
        raise NotCanonical(f"more than {ENVELOPE_BYTES_MAX} bytes")
    found = _parse(_envelopes, raw)
    if (found.v, found.schema) != (FORMAT_VERSION, SCOPE_SCHEMA) or found.type not in _facts:
        raise NotCanonical("a version or a type that is not known")
    _check_values(found)
    fields = msgspec.structs.asdict(found)
    fields["facts"] = facts = _parse(_facts[found.type], found.facts)
    envelope = Envelope(**fields)
    _check_canonical(envelope, raw)
    if isinstance(facts, LedgerOpened):
        _check_opening(envelope, facts)
    return envelope


def scan_envelope(raw: bytes) -> Envelope:
    """Parse as `decode_envelope` does, in half its time, for whoever reads a whole ledger.

    The answer is of a class of its own: read it, never compare it with another envelope.
    """
    known = _typed.get(raw[raw.rfind(b'"', 0, -len(_END)) + 1 : -len(_END)])
    if known is not None and raw.endswith(_END) and _is_sound(raw, ENVELOPE_BYTES_MAX):
        tag, decoder = known
        try:
            found = decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            found = None
        if found is not None and (found.type, found.schema) == (tag, SCOPE_SCHEMA) and _encoder.encode(found) == raw:
            _check_values(found)
            return found
    return decode_envelope(raw)  # which says what is wrong with it


def scan_envelopes(raws: Sequence[bytes]) -> list[Envelope] | None:
    """Parse many envelopes as `scan_envelope` does; None if that would refuse one of them, or look twice at it."""
    found: list[Envelope] = []
    type_of, until = _typed.get, -len(_END)
    try:
        for raw in raws:
            known = type_of(raw[raw.rfind(b'"', 0, until) + 1 : until])
            if known is None:
                return None
            tag, decoder = known
            envelope = decoder.decode(raw)
            if envelope.type != tag or envelope.schema != SCOPE_SCHEMA or envelope.v != FORMAT_VERSION:
                return None
            _check_fields(envelope)
            found.append(envelope)
        for at in {envelope.at for envelope in found}:  # a group that is committed has one
            _check_time(at)
    except (NotCanonical, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if _are_canonical(found, raws, ENVELOPE_BYTES_MAX) else None


def decode_facts(tag: str, raw: bytes) -> Facts:
    """Parse the facts of an event of type `tag` strictly, as they stand in an envelope; else NotCanonical."""
    if tag not in _facts:
        raise NotCanonical("a type that is not known")
    if len(raw) > ENVELOPE_BYTES_MAX:
        raise NotCanonical(f"more than {ENVELOPE_BYTES_MAX} bytes")
    facts = _parse(_facts[tag], raw)
    _check_canonical(facts, raw)
    return facts


def stands_in(tag: str, stream: str) -> bool:
    """Report whether an event of type `tag` can stand in a stream of that name."""
    return tag in _STREAMS and stream.startswith(_STREAMS[tag])


def decode_payload(tag: str, body: bytes) -> Payload:
    """Parse the payload of an event of type `tag` strictly; anything else is NotCanonical."""
    if tag not in _payloads:
        raise NotCanonical(f"an event of type {tag} has no payload")
    if len(body) > PAYLOAD_BYTES_MAX:
        raise NotCanonical(f"more than {PAYLOAD_BYTES_MAX} bytes")
    payload = _parse(_payloads[tag], body)
    _check_canonical(payload, body)
    return payload


def is_payload(tag: str, body: bytes) -> bool:
    """Report whether the bytes are the canonical form of a payload of an event of type `tag`."""
    if tag not in _payloads:
        return False
    try:
        return _encoder.encode(_payloads[tag].decode(body)) == body and _is_sound(body, PAYLOAD_BYTES_MAX)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def are_payloads(tags: Sequence[str], bodies: Sequence[bytes]) -> bool:
    """Report whether each of the bytes are the canonical form of a payload of an event of the type beside them."""
    try:
        found = [_payloads[tag].decode(body) for tag, body in zip(tags, bodies, strict=True)]
    except (KeyError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return _are_canonical(found, bodies, PAYLOAD_BYTES_MAX)


def read_entry(raw: bytes, seal: bytes, *, position: int) -> Entry:
    """Return the entry that the bytes at `position` say, hashed; bytes in another form are INTEGRITY_BROKEN."""
    try:
        envelope = decode_envelope(raw)
    except NotCanonical as error:
        raise broken(position, "canonical", "an envelope in canonical form", str(error)) from error
    return Entry(envelope=envelope, raw=raw, hash=digest.link(raw), stream_hash=digest.stream_link(raw), seal=seal)


def read_payload(entry: Entry, salt: bytes | None, body: bytes | None) -> Payload | None:
    """Return the payload that the entry committed to, or raise INTEGRITY_BROKEN. None if it has none."""
    if entry.envelope.payload_sha256 is None:
        return None
    if salt is None or body is None:
        raise broken(entry.position, "payloads", "a payload", "none")
    if digest.commitment(salt, body) != entry.envelope.payload_sha256:
        raise broken(entry.position, "payloads", "the payload that was committed to", "another")
    try:
        return decode_payload(entry.envelope.type, body)
    except NotCanonical as error:
        raise broken(entry.position, "payloads", "a payload in canonical form", str(error)) from error


def read_event(entry: Entry, payload: Payload | None = None) -> Event:
    """Return the event that an entry records, for folding."""
    return Event(facts=entry.envelope.facts, payload=payload, position=entry.position, subjects=entry.envelope.subjects)


def _encode(value: Struct) -> bytes:
    """Return the canonical bytes of a value; what could never be read again is VALIDATION_FAILED, not stored."""
    try:
        raw = _encoder.encode(value)
    except UnicodeEncodeError:
        raw = None
    if raw is None or (_BACKSLASH in raw and _holds_nul(raw)):
        refuse(
            "VALIDATION_FAILED",
            "Texts are Unicode without NUL characters and without halves of surrogate pairs, and one of the texts of "
            "this request holds such a character. Remove it; nothing was stored.",
        )
    return raw


def _parse(decoder: "msgspec.json.Decoder[_StructT]", raw: bytes | msgspec.Raw) -> _StructT:
    try:
        return decoder.decode(raw)
    except msgspec.MsgspecError as error:
        raise NotCanonical("bytes of another shape") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise NotCanonical("bytes that are no text, or nested without end") from error


def _check_values(found: _RawEnvelope | Envelope) -> None:
    """Refuse what has the right types and is nothing that an envelope can say."""
    _check_fields(found)
    _check_time(found.at)


def _check_fields(found: _RawEnvelope | Envelope) -> None:
    if not found.op_index < found.op_count:
        raise NotCanonical("an entry beyond the end of its append")
    if (found.payload_len is None) != (found.payload_sha256 is None):
        raise NotCanonical("half of a payload's commitment")
    if (found.request is None) != (found.request_fp is None):
        raise NotCanonical("half of a request's digests")
    if not found.stream.startswith(_STREAMS.get(found.type, "")):
        raise NotCanonical("a stream of another kind")
    if found.request_fp is not None and not _is_hex(found.request_fp):
        raise NotCanonical("a digest that is not hex")
    if found.subjects and list(found.subjects) != sorted(set(found.subjects)):
        raise NotCanonical("subjects in another order")


def _check_time(at: str) -> None:
    if not _TIME.fullmatch(at):
        raise NotCanonical("a time in another form")


def _is_hex(text: str) -> bool:
    try:
        return bytes.fromhex(text).hex() == text
    except ValueError:
        return False


def _check_opening(envelope: Envelope, facts: LedgerOpened) -> None:
    """Refuse an opening that promises anything but what this version does (FORMAT.md §9.1)."""
    if (envelope.seq, envelope.op_count, envelope.actor) != (0, 1, OPENER):
        raise NotCanonical("an opening that is not the ledger's own")
    if (facts.algorithms, facts.canonical_form, facts.incarnation) != (Algorithms(), CANONICAL_FORM, 1):
        raise NotCanonical("an opening with algorithms or a form that this version does not know")
    try:
        named = parse_verifier_key(facts.public_key).name
    except NotANote as error:
        raise NotCanonical("an opening without a key that checks checkpoints") from error
    if not named == facts.origin == envelope.log:
        raise NotCanonical("an opening under several names")


def _check_canonical(value: Struct, raw: bytes) -> None:
    """Refuse bytes that say `value` in another spelling than ours, or hold a NUL character."""
    if _encoder.encode(value) != raw:
        raise NotCanonical("the same in another spelling")
    if _holds_nul(raw):
        raise NotCanonical("a NUL character in a text")


def _are_canonical(values: Sequence[Struct], raws: Sequence[bytes], limit: int) -> bool:
    """Report whether each of the bytes are the canonical form of the value beside them.

    Encoded as lines they are compared at once: a line of ours holds no line break, so where there are as many breaks
    as values each of the bytes is a line.
    """
    lines = b"\n".join([*raws, b""])
    return _encoder.encode_lines(values) == lines and max(map(len, raws), default=0) <= limit and not _holds_nul(lines)


def _is_sound(raw: bytes, limit: int) -> bool:
    return len(raw) <= limit and not _holds_nul(raw)


def _holds_nul(raw: bytes) -> bool:
    # The look for a backslash is the quick one: most texts hold no escape at all.
    return _BACKSLASH in raw and _NUL in raw and _NUL in raw.replace(rb"\\", b"")


def _too_large(what: str, found: int, limit: int) -> None:
    refuse(
        "PAYLOAD_TOO_LARGE",
        f"This would make {what} of {found} bytes, and {limit} are allowed. Send less text, fewer tags or sources.",
        found=found,
        limit=limit,
    )
