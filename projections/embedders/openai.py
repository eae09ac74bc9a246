"""An embedder behind an OpenAI-compatible endpoint: `POST {base URL}/embeddings`.

Whatever comes back is checked row by row and brought to unit length here, so that a server's bad day stops at this
module. Which server it is does not count: its model's name and the dimension identify the vectors, so a model may
move to another host, or behind a proxy, without being embedded anew. That a host answers under the same name with
another model is noticed by `sample`, which whoever keeps vectors compares with the one that was kept.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, cast

import numpy as np
from msgspec import Struct

from ledger.errors import CorrigendaError, failure, refuse
from projections.embedders import NORM_MIN, OPENAI, Vectors, check_vectors
from projections.embedders.endpoint import Endpoint, Failed, endpoint, post
from projections.embedders.patience import deadline_within

BASE_URL = "https://api.openai.com/v1"
MODEL_CHARS_MAX = 200
DIMENSION_MAX = 65_536
SAMPLE = "A ledger remembers what was said, and what was corrected."


class Limits(Struct, frozen=True, kw_only=True):
    """How much goes into one request, and how long it is tried. Times in seconds; characters are code points."""

    texts_max: int = 64
    chars_max: int = 48_000  # of 8,000 tokens a text and 300,000 a request, which OpenAI allows, far below the latter
    attempts: int = 4
    backoff_s: float = 0.5
    retry_after_s_max: float = 10.0
    answer_s: float = 30.0
    total_s: float = 60.0


class OpenAiEmbedder:
    """Embeds texts with a model of somebody else's server. Safe to share between threads."""

    def __init__(
        self, there: Endpoint, *, model: str, dimension: int | None = None, limits: Limits | None = None
    ) -> None:
        self._there = there
        self._model = model
        self._asked_dimension = dimension
        self._dimension = dimension
        self._limits = limits or Limits()
        self._sample: Vectors | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"OpenAiEmbedder(model={self._model!r}, host={self._there.host!r})"

    @property
    def dimension(self) -> int:
        """Return the length of every vector; unless it was given, one text is embedded to learn it.

        Raises EMBEDDER_UNAVAILABLE.
        """
        if self._dimension is None:
            self.sample()
        return cast(int, self._dimension)

    @property
    def signature(self) -> str:
        """Return the identity of the vectors. Raises what `dimension` raises."""
        return _signature(self._model, self.dimension)

    def may_sign(self, signature: str) -> bool:
        """Report whether a signature is of this model, and of its dimension if that is known; nothing is asked."""
        if self._dimension is not None:
            return signature == _signature(self._model, self._dimension)
        _, _, told = signature.partition(";dimension=")
        dimension = told.partition(";")[0][:6]
        return dimension.isdecimal() and signature == _signature(self._model, int(dimension))

    def sample(self) -> tuple[str, Vectors]:
        """Return a text that is always the same, and its vector, asked for once. Raises EMBEDDER_UNAVAILABLE."""
        found = self._sample
        if found is None:
            found = self._sample = self.embed([SAMPLE])[0]
        return SAMPLE, found

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of shape (len(texts), dimension), however many requests that takes.

        Raises VALIDATION_FAILED for a text that is not Unicode (a lone surrogate); EMBEDDER_UNAVAILABLE, whose
        `reason` says what was wrong. Of those, `rejected` lies with a text or the model, the others with the server.
        """
        _check_unicode(texts)
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        deadline = deadline_within(self._limits.total_s)
        rows = [self._request(batch, deadline) for batch in _batches(texts, self._limits)]
        return check_vectors(np.concatenate(rows), len(texts), rows[0].shape[1])

    def _request(self, texts: Sequence[str], deadline: float) -> Vectors:
        asked: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._asked_dimension is not None:
            asked["dimensions"] = self._asked_dimension
        answer = self._persistently(json.dumps(asked, ensure_ascii=False).encode(), deadline)
        vectors = _unit(_rows(answer, len(texts)), self._dimension)
        with self._lock:
            if self._dimension is None:
                self._dimension = vectors.shape[1]
        return check_vectors(vectors, len(texts), self._dimension)

    def _persistently(self, body: bytes, deadline: float) -> object:
        """Return the answer of the first attempt that has one, if it comes before the deadline."""
        limits, attempt = self._limits, 0
        while True:
            attempt += 1
            try:
                return post(self._there, body, deadline=min(deadline, time.monotonic() + limits.answer_s))
            except Failed as failed:
                pause_s = _pause_s(failed, attempt, limits)
                if attempt >= limits.attempts or time.monotonic() + pause_s >= deadline:
                    raise _given_up(failed, attempt) from failed
                if pause_s > limits.retry_after_s_max:
                    raise _given_up(failed, attempt) from failed
            time.sleep(pause_s)


def openai_embedder(name: str, *, base_url: str | None, key: Callable[[], str] | None) -> OpenAiEmbedder:
    """Return the embedder called `openai:MODEL` or `openai:MODEL?dimensions=N`. Nothing is asked of the server yet.

    VALIDATION_FAILED if the name or the base URL is not one.
    """
    model, _, query = name.removeprefix(OPENAI).partition("?")
    label, _, number = query.partition("=")
    named = 0 < len(model) <= MODEL_CHARS_MAX and model.isprintable() and not set(model) & set(" ;=")
    sized = number.isascii() and number.isdecimal() and label == "dimensions" and 0 < int(number[:6]) <= DIMENSION_MAX
    if not named or not (sized or "?" not in name):
        refuse(
            "VALIDATION_FAILED",
            "An embedder behind an endpoint is openai:MODEL or openai:MODEL?dimensions=N, with a model's name without "
            f"spaces, ';' or '=', and N from 1 to {DIMENSION_MAX}; another text was given.",
            field="embedder",
        )
    there = endpoint(base_url or BASE_URL, "/embeddings", key)
    return OpenAiEmbedder(there, model=model, dimension=int(number) if sized else None)


def _signature(model: str, dimension: int) -> str:
    return f"provider=openai;model={model};dimension={dimension};normalised=yes"


def _batches(texts: Sequence[str], limits: Limits) -> Iterator[list[str]]:
    """Yield the texts in order, in batches within the limits; a text that is longer than a batch is one by itself."""
    batch: list[str] = []
    chars = 0
    for text in texts:
        # An endpoint refuses the empty text; to a model, a blank one is the same.
        text = text or " "
        if batch and (len(batch) >= limits.texts_max or chars + len(text) > limits.chars_max):
            yield batch
            batch, chars = [], 0
        batch.append(text)
        chars += len(text)
    yield batch


def _rows(answer: object, n: int) -> list[list[Any]]:  # Any: numbers, once they are checked
    """Return the answer's `n` rows in the order of the texts."""
    data = cast(dict[str, object], answer).get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        _unusable("malformed", "an object with a list 'data'")
    items = cast(list[object], data)
    if len(items) != n:
        _unusable("wrong_count", f"{n} vectors for as many texts", expected=n, found=len(items))
    rows: dict[int, list[Any]] = {}
    for place, item in enumerate(items):
        index, row = _row(item, place)
        rows[index] = row
    if rows.keys() != set(range(n)):
        _unusable("malformed", "each text's index once")
    return [rows[index] for index in range(n)]


def _row(item: object, place: int) -> tuple[int, list[Any]]:  # Any: numbers, or None where a server has none
    fields = cast(dict[str, object], item) if isinstance(item, dict) else {}
    index, row = fields.get("index", place), fields.get("embedding")
    if type(index) is not int or not isinstance(row, list):
        _unusable("malformed", "rows of an 'index' and a list 'embedding'")
    numbers = cast(list[object], row)
    if not all(type(number) in (int, float, type(None)) for number in numbers):
        _unusable("malformed", "rows of numbers")
    return index, numbers


def _unit(rows: list[list[Any]], dimension: int | None) -> Vectors:  # Any: as in _row
    """Return the rows at unit length. Raises EMBEDDER_UNAVAILABLE for a row that has none, or another dimension."""
    expected = dimension or len(rows[0])
    for row, numbers in enumerate(rows):
        if len(numbers) != expected or not numbers:
            _unusable(
                "wrong_dimension", f"{expected} numbers in each row", expected=expected, found=len(numbers), row=row
            )
    try:
        array = np.array(rows, dtype=np.float64)  # None, by which a server may write NaN, becomes one
    except OverflowError:
        array = np.full((len(rows), expected), np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(array, axis=1, keepdims=True)
    for reason, bad in (("non_finite", ~np.isfinite(lengths)), ("zero_norm", lengths < NORM_MIN)):
        if np.any(bad):
            _unusable(reason, "finite numbers, not all of them zero", row=int(np.argmax(bad)))
    return (array / lengths).astype(np.float32)


def _check_unicode(texts: Sequence[str]) -> None:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise failure(
            "VALIDATION_FAILED",
            "Unicode text was expected; a lone surrogate, which no encoding can carry, was found. "
            "Decode the text with its own encoding, then try again.",
            reason="not_unicode",
        ) from error


def _pause_s(failed: Failed, attempt: int, limits: Limits) -> float:
    """Return how long to wait before the next attempt: what the server asked, else twice as long each time."""
    if failed.after_s is not None:
        return failed.after_s
    return limits.backoff_s * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)


def _given_up(failed: Failed, attempts: int) -> CorrigendaError:
    error = failed.error
    error.details["attempts"] = attempts
    error.retry_after_ms = None if failed.after_s is None else round(failed.after_s * 1000)
    return error


def _unusable(reason: str, expected_text: str, **details: object) -> NoReturn:
    refuse(
        "EMBEDDER_UNAVAILABLE",
        f"The embedder's answer should hold {expected_text}; it is refused as {reason}"
        f"{_found(details)}. Nothing of it was stored; check CORRIGENDA_EMBEDDER and its server, then try again.",
        reason=reason,
        **details,
    )


def _found(details: dict[str, object]) -> str:
    return f" ({details['expected']} expected, {details['found']} found)" if "found" in details else ""
