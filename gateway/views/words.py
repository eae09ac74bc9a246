"""Texts ranked by the words that they share with a question: what a search falls back on where no embedder answers.

It is Okapi BM25 over what is put in, divided by the best that the question could reach, so that a score lies between 0
and 1. Of a text nothing is kept but how often it has each word of the question, and its length. Pure.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

_ALONE = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # written without spaces between words: each letter is one
_WORD = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+")
_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75

KeyT = TypeVar("KeyT", bound=Hashable)


class SharedWords(Generic[KeyT]):
    """Some texts, each under its key, as they answer one question."""

    def __init__(self, query: str) -> None:
        self._terms = frozenset(words_of(query))
        self._counts: dict[KeyT, Counter[str]] = {}
        self._texts = 0
        self._length = 0
        self._lengths: dict[KeyT, int] = {}

    def put(self, key: KeyT, text: str) -> None:
        """Take a text into account."""
        words = words_of(text)
        self._texts += 1
        self._length += len(words)
        shared = Counter(word for word in words if word in self._terms)
        if shared:
            self._counts[key], self._lengths[key] = shared, len(words)

    def __len__(self) -> int:
        return self._texts

    def ranked(self) -> list[tuple[KeyT, float]]:
        """Return the texts that share a word with the question, best first; of equal ones that put in first."""
        found = Counter(word for counts in self._counts.values() for word in counts)
        weights = {term: math.log1p((self._texts - found[term] + 0.5) / (found[term] + 0.5)) for term in self._terms}
        best = sum(weights.values()) * (_SATURATION + 1)
        scores = [(key, self._score(key, weights) / best) for key in self._counts]
        return sorted(scores, key=lambda pair: -pair[1])

    def _score(self, key: KeyT, weights: dict[str, float]) -> float:
        share = self._lengths[key] / (self._length / self._texts)
        damped = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * share)
        return sum(
            weights[term] * times * (_SATURATION + 1) / (times + damped) for term, times in self._counts[key].items()
        )


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, whatever their case, and none of its punctuation."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
