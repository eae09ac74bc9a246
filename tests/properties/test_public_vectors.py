"""What others published to compare implementations by: BLAKE3's test vectors, and the pairs of JCS.

RFC 6962's roots are in `test_tree.py`, the example of a signed note in `test_notes.py`. The numbers stand in our own
files: `blake3.json` has, for each length of input, the first 32 bytes of the three outputs.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from blake3 import blake3

from ledger import codec

NUMBERS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "blake3.json").read_text(encoding="utf-8")
)
KEY = b"whats the Elvish word for friend"
CONTEXT = "BLAKE3 2019-12-27 16:29:52 test vectors context"


@pytest.mark.parametrize("length", [int(length) for length in NUMBERS])
def test_blake3(length: int) -> None:
    """Hash, keyed hash and derived key of the bytes 0 to 250, over and over, as long as the input is."""
    material = bytes(place % 251 for place in range(length))
    made = (blake3(material), blake3(material, key=KEY), blake3(material, derive_key_context=CONTEXT))
    assert [one.hexdigest() for one in made] == NUMBERS[str(length)]


def test_blake3_s_lengths() -> None:
    """35 of them: around each power of two of chunks, where trees of another shape begin."""
    assert len(NUMBERS) == 35
    assert {0, 1, 1_023, 1_024, 1_025, 31_744, 102_400} <= set(map(int, NUMBERS))


# The pairs that implementations of JCS are compared by: a value, and its canonical form.
PAIRS: dict[str, tuple[Any, str]] = {  # Any: JSON
    "arrays": ([56, {"d": True, "10": None, "1": []}], '[56,{"1":[],"10":null,"d":true}]'),
    "french": (
        {
            "peach": "This sorting order",
            "p\u00e9ch\u00e9": "is wrong according to French",
            "p\u00eache": "but canonicalization MUST",
            "sin": "ignore locale",
        },
        '{"peach":"This sorting order","p\u00e9ch\u00e9":"is wrong according to French",'
        '"p\u00eache":"but canonicalization MUST","sin":"ignore locale"}',
    ),
    "structures": (
        {
            "1": {"f": {"f": "hi", "F": 5}, "\n": 56.0},
            "10": {},
            "": "empty",
            "a": {},
            "111": [{"e": "yes", "E": "no"}],
            "A": {},
        },
        '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}',
    ),
    "unicode": ({"Unnormalized Unicode": "A\u030a"}, '{"Unnormalized Unicode":"A\u030a"}'),
    "values": (
        {
            "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": '\u20ac$\u000f\nA\'B"\\\\"/',
            "literals": [None, True, False],
        },
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ),
    "weird": (
        {
            "\u20ac": "Euro Sign",
            "\r": "Carriage Return",
            "\n": "Newline",
            "1": "One",
            "\u0080": "Control\u007f",
            "\U0001f602": "Smiley",
            "\u00f6": "Latin Small Letter O With Diaeresis",
            "\ufb33": "Hebrew Letter Dalet With Dagesh",
            "</script>": "Browser Challenge",
        },
        '{"\\n":"Newline","\\r":"Carriage Return","1":"One","</script>":"Browser Challenge",'
        '"\u0080":"Control\u007f","\u00f6":"Latin Small Letter O With Diaeresis","\u20ac":"Euro Sign",'
        '"\U0001f602":"Smiley","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ),
}

# Where the closed profile ends: floats are not ours, and keys are ASCII, so that no two orders of them can differ.
BEYOND = {"structures": "a float", "values": "floats", "weird": "keys that UTF-16 orders otherwise"}


@pytest.mark.parametrize("name", PAIRS)
def test_jcs(name: str) -> None:
    """The implementation that the properties compare us with writes all six pairs."""
    value, canonical = PAIRS[name]
    assert rfc8785.dumps(value) == canonical.encode()


@pytest.mark.parametrize("name", PAIRS)
def test_our_form_is_jcs_as_far_as_the_profile_reaches(name: str) -> None:
    """Inside it the bytes are the same; outside they are not, which is why it ends there."""
    value, canonical = PAIRS[name]
    assert (codec.canonical(value) == canonical.encode()) is (name not in BEYOND)
