"""Bytes and events: one spelling, and no byte of it can change unseen."""

import inspect
import string
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from ledger import codec, digest, governance, memories, message
from ledger.chain import Envelope
from ledger.errors import CorrigendaError, IntegrityError
from ledger.message import Facts, Payload
from tests.golden import generate
from tests.golden.shapes import STREAMS
from tests.strategies import TEXTS

EXAMPLES = {
    name: vector for name, vector in generate.vectors().items() if vector.get("envelope", "").startswith('{"actor"')
}
RAW = [vector["envelope"].encode() for vector in EXAMPLES.values()]


def made(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:  # Any: an instance of `kind`
    """Return a strategy for one struct of the format, with every text that the closed form allows."""
    fields = {field.name: _value(field.type) for field in msgspec.structs.fields(kind)}
    return st.builds(lambda values: kind(**values), st.fixed_dictionaries(fields))


def _value(annotation: Any) -> st.SearchStrategy[Any]:  # Any: a type, as msgspec tells it
    told = msgspec.inspect.type_info(annotation)
    return _of(told)


def _of(told: msgspec.inspect.Type) -> st.SearchStrategy[Any]:  # Any: as above
    match told:
        case msgspec.inspect.StrType():
            return TEXTS
        case msgspec.inspect.IntType():
            return st.integers(told.ge or 0, told.le or 2**53 - 1)
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.UnionType():
            return st.one_of(*map(_of, told.types))
        case msgspec.inspect.VarTupleType():
            return st.lists(_of(told.item_type), max_size=3).map(tuple)
        case msgspec.inspect.StructType():
            return made(told.cls)
        case _:
            raise TypeError(f"the format has no {told}")


# But the opening, of which each value is fixed: the examples have one.
TYPES = {tag: pair for tag, pair in codec.EVENT_TYPES.items() if tag != "ledger.opened.v1"}
PAIRS = sorted((tag, facts, payload) for tag, (facts, payload) in TYPES.items() if payload is not None)
EVENTS = st.sampled_from(PAIRS).flatmap(lambda pair: st.tuples(st.just(pair[0]), made(pair[1]), made(pair[2])))


def envelope(tag: str, facts: Facts) -> Envelope:
    """Return the envelope of an example around other facts, in a stream of their kind."""
    stream = STREAMS.get(tag.partition(".")[0], "mem") + "_" + "0" * 26
    return msgspec.structs.replace(codec.decode_envelope(RAW[2]), type=tag, facts=facts, stream=stream)


# ---------------------------------------------------------------- there and back


@given(EVENTS)
def test_what_was_encoded_is_decoded(event: tuple[str, Facts, Payload]) -> None:
    """Every event of every type comes back equal, payload too."""
    tag, facts, payload = event
    written = envelope(tag, facts)
    assert codec.decode_envelope(codec.encode_envelope(written)) == written
    assert codec.decode_payload(tag, codec.encode_payload(payload)) == payload


@given(EVENTS)
def test_what_was_encoded_is_canonical(event: tuple[str, Facts, Payload]) -> None:
    """An independent implementation of RFC 8785 writes the same bytes."""
    tag, facts, payload = event
    written = envelope(tag, facts)
    assert codec.encode_envelope(written) == rfc8785.dumps(msgspec.to_builtins(written, builtin_types=()))
    assert codec.encode_payload(payload) == rfc8785.dumps(msgspec.to_builtins(payload))


@given(TEXTS)
@example("".join(map(chr, range(1, 256))))
@example("😀 \u202eשלום\u202c \ud7ff\ue000 \uffff \U0010ffff")
def test_strings_are_written_as_rfc_8785_says(text: str) -> None:
    """Control characters, emoji, right-to-left and the edges of the planes."""
    assert codec.canonical(text) == rfc8785.dumps(text)


@given(st.dictionaries(st.text(string.ascii_letters + "_", max_size=4), TEXTS | st.integers(-5, 5) | st.none()))
def test_plain_values_are_written_as_rfc_8785_says(value: dict[str, Any]) -> None:  # Any: JSON
    """Requests are fingerprinted in this form."""
    assert codec.canonical(value) == rfc8785.dumps(value)


# ---------------------------------------------------------------- one spelling


@given(st.sampled_from(RAW), st.data())
def test_no_byte_of_an_envelope_changes_unseen(raw: bytes, data: st.DataObject) -> None:
    """A changed byte is refused, or makes another event with another hash: never the same one."""
    place, byte = data.draw(st.integers(0, len(raw) - 1)), data.draw(st.integers(0, 255))
    changed = raw[:place] + bytes([byte]) + raw[place + 1 :]
    if changed == raw:
        return
    assert digest.link(changed) != digest.link(raw)
    assert digest.stream_link(changed) != digest.stream_link(raw)
    try:
        found = codec.decode_envelope(changed)
    except codec.NotCanonical:
        return
    assert found != codec.decode_envelope(raw)


@given(st.sampled_from(RAW), st.data())
def test_no_envelope_can_be_cut_or_added_to(raw: bytes, data: st.DataObject) -> None:
    """Neither a part of an envelope nor an envelope and something more is one."""
    place = data.draw(st.integers(0, len(raw) - 1))
    for other in (raw[:place], raw + raw[place:], raw[:place] + b" " + raw[place:]):
        try:
            found = codec.decode_envelope(other)
        except codec.NotCanonical:
            continue
        assert found != codec.decode_envelope(raw)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"authn":"local"', b'"authn":"\\u006cocal"'),
        (b'"seq":0', b'"seq":0.0'),
        (b'"seq":0', b'"seq":-0'),
        (b'"seq":0', b'"seq":0e0'),
        (b'"seq":0', b'"seq":"0"'),
        (b'"seq":0', b'"seq":-1'),
        (b'"seq":0', b'"seq":9007199254740992'),
        (b'"op_count":1', b'"op_count":9007199254740992'),
        (b'"seq":0', b'"seq":true'),
        (b'"v":1', b'"v":1,"w":1'),
        (b'"v":1', b'"v":1,"v":1'),
        (b'"v":1', b'"v":2'),
        (b',"request":null', b""),
        (b'"subjects":[]', b'"subjects":null'),
        (b'"authn":"local"', b'"authn":"\\u0000"'),
        (b'"authn":"local"', b'"authn":"\\ud800"'),
        (b'"authn":"local"', b'"authn":"\xed\xa0\x80"'),
        (b'"authn":"local"', b'"authn":"\xff"'),
        (b'"incarnation":1', b'"incarnation":1, "extra":1'),
        (b'"incarnation":1', b'"incarnation":1,"incarnation":1'),
        (b'{"algorithms"', b'{ "algorithms"'),
        (b"ledger.opened.v1", b"ledger.opened.v9"),
        (b'"facts":{', b'"facts":' + b"[" * 20_000 + b"{"),
    ],
)
def test_another_spelling_is_refused(old: bytes, new: bytes) -> None:
    """Escapes, numbers, white space, doubled, missing and unknown keys, what is no text at all."""
    raw = RAW[0]
    assert raw.count(old) >= 1
    with pytest.raises(codec.NotCanonical):
        codec.decode_envelope(raw.replace(old, new, 1))


def test_a_refusal_quotes_nothing_that_is_stored() -> None:
    """Messages travel further than the ledger's texts may."""
    forged = RAW[0].replace(b"ledger.opened.v1", b"secret of somebody")
    with pytest.raises(IntegrityError) as caught:
        codec.read_entry(forged, bytes(40), position=3)
    assert "secret" not in str(caught.value)
    assert (caught.value.details["position"], caught.value.details["check"]) == (3, "canonical")


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    """Six characters that look like an escape are text."""
    payload = message.Reason(reason="\\u0000 and \\\\u0000")
    assert codec.decode_payload("memory.retired.v1", codec.encode_payload(payload)) == payload


@pytest.mark.parametrize("text", ["a\x00b", "\\\x00", "\ud800", "\udc00 alone"])
def test_what_could_never_be_read_is_not_written(text: str) -> None:
    """A NUL or half a surrogate pair would be sealed once and refused for ever after."""
    with pytest.raises(CorrigendaError) as caught:
        codec.encode_payload(message.Reason(reason=text))
    assert caught.value.code == "VALIDATION_FAILED"


@pytest.mark.parametrize(("letters", "code"), [(262_100, None), (262_200, "PAYLOAD_TOO_LARGE")])
def test_a_payload_has_a_largest_size(letters: int, code: str | None) -> None:
    """256 KiB, counted in bytes of the canonical form."""
    try:
        codec.encode_payload(message.Reason(reason="a" * letters))
        found = None
    except CorrigendaError as error:
        found = error.code
    assert found == code


# ---------------------------------------------------------------- the structs themselves


def hashed_structs() -> list[type[msgspec.Struct]]:
    """Return every struct whose field order is part of the bytes."""
    modules = (message, memories, governance)
    found = [item for module in modules for _, item in inspect.getmembers(module, inspect.isclass)]
    parts = (message.Values, message.Move, message.Edge, message.Standing, message.ScopeIds)
    bases = (Facts, Payload, *parts, memories.Provenance, governance.Algorithms)
    return [Envelope, *dict.fromkeys(item for item in found if issubclass(item, bases))]


@pytest.mark.parametrize("kind", hashed_structs(), ids=lambda kind: kind.__name__)
def test_a_hashed_struct_is_closed_sorted_and_whole(kind: type[msgspec.Struct]) -> None:
    """Its fields stand in the canonical order under their own names, none is ever left out, and no tag is added."""
    config = kind.__struct_config__
    assert not config.omit_defaults
    assert config.tag is None
    assert kind.__struct_encode_fields__ == kind.__struct_fields__
    if not config.array_like:
        assert list(kind.__struct_fields__) == sorted(kind.__struct_fields__)
    if kind is not Envelope:
        assert config.forbid_unknown_fields


def test_every_event_has_one_type() -> None:
    """Tags and facts correspond one to one, so that what is encoded under a tag is decoded under it."""
    assert {codec.TAGS[facts]: facts for facts in codec.TAGS} == {
        tag: facts for tag, (facts, _) in codec.EVENT_TYPES.items()
    }
    assert len(codec.TAGS) == len(codec.EVENT_TYPES)
