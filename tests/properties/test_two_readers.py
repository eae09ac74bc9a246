"""Two readers that share no code agree on what is an envelope and what is a payload, whatever is done to the bytes."""

from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from ledger import codec
from tests.golden import generate, shapes
from tests.strategies import TEXTS

VECTORS = generate.vectors()
NAMES = [name for name, vector in VECTORS.items() if vector.get("envelope", "").startswith('{"actor"')]
ENVELOPES = [VECTORS[name]["envelope"].encode() for name in NAMES]
PAYLOADS = [(shapes.canonical(VECTORS[name]["envelope"].encode())["type"], VECTORS[name]["payload"]) for name in NAMES]

# What tends to be spelt in two ways, put in where it can do harm.
PIECES = st.sampled_from(
    [
        *(b" ", b"\n", b"\t", b",", b":", b'"', b"\\", b"\\u0061", b"\\u0000", b"\\ud800", b"\\/", b"\x00", b"\x7f"),
        *(b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"0", b"-", b"-0", b".0", b"e0", b"1e400", b"9" * 30, b"null"),
        *(
            b"true",
            b"{}",
            b"[]",
            b"[[",
            b"{",
            b"}",
            b"]",
            b'"v":1,',
            b',"v":1',
            b"NaN",
            b"Infinity",
            b"\xf0\x9f\x98\x80",
        ),
    ]
)


def takes(reader: Callable[..., object], *given: object) -> bool:
    """Report whether a reader takes bytes; any other answer than yes and no fails the test."""
    try:
        reader(*given)
    except (codec.NotCanonical, shapes.NotCanonical):
        return False
    return True


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes to which something was done: a part cut out, doubled or moved, or a piece put in."""
    first, last = sorted((draw(st.integers(0, len(whole))), draw(st.integers(0, len(whole)))))
    last = draw(st.sampled_from([last, min(first + 1, len(whole)), first]))
    part = whole[first:last]
    between = draw(st.one_of(PIECES, st.just(b""), st.just(part + part), st.binary(max_size=2)))
    return whole[:first] + between + whole[last:]


@given(st.sampled_from(ENVELOPES).flatmap(damaged))
@example(ENVELOPES[0])
@example(ENVELOPES[-1])
def test_both_readers_agree_on_envelopes(raw: bytes) -> None:
    """What the stricter one takes the product takes, and what the product takes is in canonical form to both."""
    ours = takes(codec.decode_envelope, raw)
    assert ours or not takes(shapes.read_envelope, raw)
    assert takes(shapes.canonical, raw) or not ours


@given(st.sampled_from(PAYLOADS).flatmap(lambda pair: st.tuples(st.just(pair[0]), damaged(pair[1].encode()))))
def test_both_readers_agree_on_payloads(pair: tuple[str, bytes]) -> None:
    """A payload is closed on both sides, so they take the very same bytes."""
    assert takes(codec.decode_payload, *pair) is takes(shapes.read_payload, *pair)


@given(st.sampled_from(sorted(codec.EVENT_TYPES)), TEXTS, st.binary(max_size=8))
def test_both_readers_agree_on_texts(tag: str, text: str, more: bytes) -> None:
    """Any text, as the product writes it and with bytes of any kind put behind it, inside the quotes."""
    body = codec.canonical({"reason": text})
    for raw in (body, body[:-2] + more + body[-2:]):
        assert takes(codec.decode_payload, tag, raw) is takes(shapes.read_payload, tag, raw)
