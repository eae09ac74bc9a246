"""From ranked answers to figures: how often the right memory is first, among the first three, and how far down else."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from benchmarks.bars import Line

DEPTH = 20  # what a method does not have among its first twenty counts as not found at all
MRR_OVER_FULL_TEXT = 0.2
EMBEDDER, FULL_TEXT, RETRIEVAL = "default embedder alone", "full text alone", "retrieval"

Ranked = Mapping[str, Sequence[str]]  # by question: memories, best first


class Score(NamedTuple):
    """The shares of questions whose right memory was first or among the first three, and the mean reciprocal rank."""

    first: float
    among_three: float
    mrr: float


def score(ranked: Ranked, right: Mapping[str, str]) -> Score:
    """Return how well the questions in `right`, each with the memory that answers it, were answered."""
    ranks = [rank(ranked[query], memory) for query, memory in right.items()]
    return Score(
        fmean(place == 1 for place in ranks),
        fmean(0 < place <= 3 for place in ranks),
        fmean(1 / place if place else 0.0 for place in ranks),
    )


def rank(memories: Sequence[str], wanted: str) -> int:
    """Return the place of a memory among the first twenty, counted from 1; 0 if it is not there."""
    first = list(memories[:DEPTH])
    return first.index(wanted) + 1 if wanted in first else 0


def lines(held: Mapping[str, Score]) -> list[Line]:
    """Return the bars, from the scores on the pairs that were held back."""
    found, words, vectors = held[RETRIEVAL].mrr, held[FULL_TEXT].mrr, held[EMBEDDER].mrr
    return [
        _at_least(found, FULL_TEXT, words, MRR_OVER_FULL_TEXT),
        _at_least(found, EMBEDDER, vectors, 0.0),
    ]


def text(by_part: Mapping[str, Mapping[str, Score]]) -> str:
    """Return all scores for people, as Markdown: one line for each part of the pairs and each method."""
    rows = [("pairs", "method", "recall@1", "recall@3", "MRR"), ("---",) * 5]
    for part, scores in by_part.items():
        rows += [(part, method, *(f"{figure:.3f}" for figure in found)) for method, found in scores.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(f"| {' | '.join(map(str.ljust, row, widths))} |" for row in rows)


def _at_least(found: float, against: str, other: float, more: float) -> Line:
    """Return the line of retrieval's reciprocal rank, held against another's and so much more."""
    bar = f"≥ {other:.3f}" + (f" + {more:g}" if more else "")
    # Equal rankings give equal figures, but not to the last bit, once they were added up in another order.
    return Line("retrieval, held back: MRR", f"{found:.3f}", against, None, bar, found >= other + more - 1e-9)
