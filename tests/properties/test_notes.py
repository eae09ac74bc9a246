"""Signed notes and checkpoints: what is written is read again, and nothing that differs in a byte is."""

import base64
import string

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from ledger import notes
from ledger.limits import INTEGER_MAX, NOTE_SIGNATURES_MAX
from ledger.notes import Checkpoint, NotANote, Note, Signature, VerifierKey
from tests.strategies import TEXTS

# The example that C2SP's signed-note and Go's sumdb/note share.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETERS_SEED = "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
PETERS_TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
PETERS_NOTE = (
    f"{PETERS_TEXT}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6"
    "KE6RyyBwJnAM=\n"
).encode()

ORIGIN = "ledger.example.org/main"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
VERIFIER = VerifierKey(ORIGIN, KEY.public_key().public_bytes_raw())
CHECKPOINT = Checkpoint(ORIGIN, 812, bytes(range(32)))
SIGNED = notes.sign_checkpoint(CHECKPOINT, KEY)

# Of a name the spaces and `+` are left out, of a text the control characters.
WORDS = st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="+")
NAMES = st.text(WORDS, min_size=1, max_size=12)
LINES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=[chr(code) for code in range(32)]), max_size=20
)
NOTE_TEXTS = st.lists(LINES, min_size=1, max_size=5).map(lambda lines: "\n".join(lines) + "\n")
SIGNATURES = st.builds(Signature, NAMES, st.binary(min_size=4, max_size=4), st.binary(min_size=1, max_size=80))
CHECKPOINTS = st.builds(Checkpoint, NAMES, st.integers(0, INTEGER_MAX), st.binary(min_size=32, max_size=32))


@given(st.builds(Note, NOTE_TEXTS, st.lists(SIGNATURES, min_size=1, max_size=4).map(tuple)))
def test_a_note_is_read_as_it_was_written(note: Note) -> None:
    """Parsing undoes formatting, empty lines in the text included."""
    assert notes.parse_note(notes.format_note(note)) == note


@given(
    st.binary(max_size=200) | TEXTS.map(lambda text: f"{text}\n\n— a {base64.b64encode(b'12345').decode()}\n".encode())
)
def test_what_is_read_has_one_spelling(raw: bytes) -> None:
    """Whatever bytes are taken for a note, formatting gives the same bytes."""
    try:
        note = notes.parse_note(raw)
    except NotANote:
        return
    assert notes.format_note(note) == raw


@given(CHECKPOINTS)
def test_a_checkpoint_is_read_as_it_was_written(checkpoint: Checkpoint) -> None:
    """Parsing undoes formatting."""
    assert notes.parse_checkpoint(notes.format_checkpoint(checkpoint)) == checkpoint


@given(st.builds(VerifierKey, NAMES, st.binary(min_size=32, max_size=32)))
def test_a_verifier_key_is_read_as_it_was_written(key: VerifierKey) -> None:
    """Parsing undoes formatting."""
    assert notes.parse_verifier_key(notes.format_verifier_key(key)) == key


@given(CHECKPOINTS, st.binary(min_size=32, max_size=32))
def test_a_signed_checkpoint_is_opened_by_its_key_only(checkpoint: Checkpoint, seed: bytes) -> None:
    """The public half opens it; another key under the same name does not."""
    key = Ed25519PrivateKey.from_private_bytes(seed)
    raw = notes.sign_checkpoint(checkpoint, key)
    assert notes.open_checkpoint(raw, VerifierKey(checkpoint.origin, key.public_key().public_bytes_raw())) == checkpoint
    with pytest.raises(NotANote):
        notes.open_checkpoint(raw, VerifierKey(checkpoint.origin, bytes(32)))


def test_the_public_example() -> None:
    """The specification's note is opened with its key, and signing its text with its secret gives the same bytes."""
    key = notes.parse_verifier_key(PETER)
    assert notes.format_verifier_key(key) == PETER
    assert notes.open_note(PETERS_NOTE, [key]).text == PETERS_TEXT
    secret = Ed25519PrivateKey.from_private_bytes(base64.b64decode(PETERS_SEED)[1:])
    assert notes.format_note(notes.sign(PETERS_TEXT, "PeterNeumann", secret)) == PETERS_NOTE


@pytest.mark.parametrize("raw", [PETERS_NOTE, SIGNED], ids=["example", "checkpoint"])
def test_every_truncation_is_refused(raw: bytes) -> None:
    """A note that lacks bytes at its end, or at its beginning, is none."""
    keys = [notes.parse_verifier_key(PETER), VERIFIER]
    for at in range(len(raw)):
        for part in (raw[:at], raw[at + 1 :]):
            with pytest.raises(NotANote):
                notes.open_note(part, keys)


@pytest.mark.parametrize("raw", [PETERS_NOTE, SIGNED], ids=["example", "checkpoint"])
def test_every_change_of_a_byte_is_refused(raw: bytes) -> None:
    """One bit of a byte, another letter or a line break in its place, or one more byte: no signature is left."""
    keys = [notes.parse_verifier_key(PETER), VERIFIER]
    for at, byte in enumerate(raw):
        others = {byte ^ (1 << bit) for bit in range(8)} | {*b"AZaz09+/= \n\r\x00"} - {byte}
        changed = [raw[:at] + bytes([other]) + raw[at + 1 :] for other in sorted(others)]
        for one in [*changed, raw[:at] + b"A" + raw[at:], raw[:at] + b"\n" + raw[at:]]:
            with pytest.raises(NotANote):
                notes.open_note(one, keys)


def signed(*lines: str) -> bytes:
    """Return a note of a text and these signature lines."""
    return ("text\n\n" + "".join(f"{line}\n" for line in lines)).encode()


OTHERS = f"— other.example {base64.b64encode(b'12345678').decode()}"


def test_a_stranger_s_signature_is_ignored() -> None:
    """Signatures by unknown keys say nothing: beside a known one they do no harm, alone they are not enough."""
    both = PETERS_NOTE + f"{OTHERS}\n".encode()
    assert len(notes.open_note(both, [notes.parse_verifier_key(PETER)]).signatures) == 2
    with pytest.raises(NotANote, match="known key"):
        notes.open_note(signed(OTHERS), [notes.parse_verifier_key(PETER)])


def test_a_wrong_signature_under_a_known_name_spoils_the_note() -> None:
    """Another right signature does not make up for it."""
    wrong = PETERS_NOTE.decode().splitlines()[-1].replace("ZJku", "ZJkv")
    with pytest.raises(NotANote, match="not that key's"):
        notes.open_note(PETERS_NOTE + f"{wrong}\n".encode(), [notes.parse_verifier_key(PETER)])


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n\n",
        b"text\n",
        b"text\n\n",
        b"text\n\n\xff\n",
        signed("- other.example MTIzNDU2Nzg="),
        signed("— other.example"),
        signed("— other.example MTIzNA=="),
        signed("— other.example MTIzNDU2Nzh="),
        signed("— other.example MTIzNDU2Nzg"),
        signed("— other+example MTIzNDU2Nzg="),
        signed("— other.example  MTIzNDU2Nzg="),
        signed(OTHERS)[:-1],
        signed(OTHERS).replace(b"\n", b"\r\n"),
        signed(OTHERS).replace(b"text", b"te\tt"),
        signed(*[OTHERS] * (NOTE_SIGNATURES_MAX + 1)),
        b"x" * 1_000_001,
    ],
)
def test_what_is_no_note(raw: bytes) -> None:
    """Other dashes, base64 in other spellings, other line ends, control characters, and no end of signatures."""
    with pytest.raises(NotANote):
        notes.parse_note(raw)


ROOT = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    "text",
    [
        f"origin\n1\n{ROOT}",
        f"origin\n01\n{ROOT}\n",
        f"origin\n+1\n{ROOT}\n",
        f"origin\n-1\n{ROOT}\n",
        f"origin\n1 \n{ROOT}\n",
        f"origin\n\u0661\n{ROOT}\n",
        f"origin\n{INTEGER_MAX + 1}\n{ROOT}\n",
        f"origin\n{'9' * 5_000}\n{ROOT}\n",
        f"origin\n1\n{ROOT[:-4]}\n",
        f"origin\n1\n{ROOT[:-2]}B=\n",
        f"origin\n1\n{ROOT}\nextension\n",
        f"\n1\n{ROOT}\n",
        f"two words\n1\n{ROOT}\n",
        f"a+b\n1\n{ROOT}\n",
    ],
)
def test_what_is_no_checkpoint(text: str) -> None:
    """A size in another spelling or too large, a root of another length, an extension line, a name that is none."""
    with pytest.raises(NotANote):
        notes.parse_checkpoint(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PeterNeumann",
        PETER.replace("c74f20a3", "C74F20A3"),
        PETER.replace("c74f20a3", "c74f20a4"),
        PETER.replace("PeterNeumann", "PeterNewman"),
        PETER + "=",
        PETER[:-1],
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ],
)
def test_what_is_no_verifier_key(text: str) -> None:
    """Another id, an id in capitals, another name, another kind of key."""
    with pytest.raises(NotANote):
        notes.parse_verifier_key(text)


@pytest.mark.parametrize("name", ["", " ", "a b", "a\u00a0b", "a\u2028b", "a+b", "a\nb", "a\x00b", "\ud800"])
def test_what_is_no_name(name: str) -> None:
    """Spaces of any script, `+`, control characters, half of a surrogate pair: none can be signed under."""
    assert not notes.is_name(name)
    with pytest.raises(NotANote):
        notes.sign("text\n", name, KEY) if name != "\ud800" else notes.format_verifier_key(VerifierKey(name, bytes(32)))


@pytest.mark.parametrize("text", ["no line break", "control\x01\n", "half \ud800\n"])
def test_a_text_that_no_note_can_hold_is_not_signed(text: str) -> None:
    """Signing refuses what reading would."""
    with pytest.raises(NotANote):
        notes.sign(text, ORIGIN, KEY)


def test_a_checkpoint_counts_under_its_own_origin_only() -> None:
    """A key that signed another origin's checkpoint does not make it this ledger's."""
    foreign = notes.format_checkpoint(Checkpoint("other.example", 1, bytes(32)))
    raw = notes.format_note(notes.sign(foreign, ORIGIN, KEY))
    with pytest.raises(NotANote, match="origin"):
        notes.open_checkpoint(raw, VERIFIER)


def test_a_checkpoint_is_three_lines_and_a_signature() -> None:
    """What is signed can be read without us."""
    origin, size, root, blank, line, end = SIGNED.decode().split("\n")
    assert (origin, size, base64.b64decode(root), blank, end) == (ORIGIN, "812", bytes(range(32)), "", "")
    assert line.startswith(f"— {ORIGIN} ") and set(line.split(" ")[2]) <= {
        *string.ascii_letters,
        *string.digits,
        *"+/=",
    }
