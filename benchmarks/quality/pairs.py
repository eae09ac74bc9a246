"""The labelled pairs: a question, the memory that answers it, and memories that only look as if they did.

All memories of all pairs make one corpus, so each question also meets what was written for the others. The file is not
to be changed to move a figure: pairs may be added, with `held` decided before anything is measured.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files

import msgspec

FILE = "pairs.jsonl"
RARE_MAX = 3  # a word is rare if no more memories of the corpus than this have it
_WORD = re.compile(r"[^\W_]{3,}")


class Pair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question, its one right memory and its wrong ones. `held` pairs are for reporting, never for choosing."""

    id: str
    topic: str
    held: bool
    query: str
    right: str
    wrong: tuple[str, ...]


def read_pairs() -> list[Pair]:
    """Return all pairs, in the order of the file."""
    lines = files("benchmarks.quality").joinpath(FILE).read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Pair) for line in lines]


def corpus(pairs: Iterable[Pair]) -> list[str]:
    """Return every memory of the pairs, right and wrong."""
    return [memory for pair in pairs for memory in (pair.right, *pair.wrong)]


def words(text: str) -> set[str]:
    """Return the words of a text as they are written, without case, three letters or digits at least."""
    return set(_WORD.findall(text.lower()))


def rare_words(memories: Sequence[str]) -> set[str]:
    """Return the words that at most three of these memories have: those by which a search by words is led or misled."""
    counts = Counter(word for memory in memories for word in words(memory))
    return {word for word, count in counts.items() if count <= RARE_MAX}


def misleads(pair: Pair, rare: set[str]) -> bool:
    """Report whether the question shares a rare word with a memory that does not answer it."""
    return any(words(pair.query) & words(memory) & rare for memory in pair.wrong)


def leads(pair: Pair, rare: set[str]) -> bool:
    """Report whether the question shares a rare word with the memory that answers it."""
    return bool(words(pair.query) & words(pair.right) & rare)
