"""Measures how often retrieval brings the right memory first, beside its embedder alone and full text alone.

    python -m benchmarks.quality [--json FILE]

Prints both parts of the pairs. What has a choice (how full text weighs length, how vectors and words could be fused) is
chosen on the tuning part; the bars are held against the part that was held back.
"""

import argparse
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import bars, server
from benchmarks.quality import methods
from benchmarks.quality.pairs import Pair, corpus, read_pairs
from benchmarks.quality.scores import EMBEDDER, FULL_TEXT, RETRIEVAL, Ranked, Score, lines, score, text

TUNING, HELD = "tuning", "held back"


class Answers(NamedTuple):
    """What the methods answered: the three that are held against each other, and every fusion that was tried."""

    compared: Mapping[str, Ranked]
    fusions: Mapping[str, Ranked]
    flag: int  # of ts_rank, as it did best on the tuning part: we are held against a good one


def ask(server_url: str, folder: Path, pairs: Sequence[Pair]) -> Answers:
    """Put all questions to all methods, over all memories of the pairs."""
    memories, queries = corpus(pairs), [pair.query for pair in pairs]
    vectors, names = methods.by_embedder(memories, queries), methods.by_names(memories, queries)
    with server.fresh_database(server_url) as url:
        tried = {flag: methods.by_full_text(url, memories, queries, flag=flag) for flag in methods.FLAGS}
    with server.fresh_database(server_url) as url:
        retrieved = methods.by_retrieval(url, folder / "home", memories, queries)
    right = part_of(pairs, TUNING)
    flag = max(tried, key=lambda one: score(methods.ordered(tried[one]), right).mrr)
    compared = {EMBEDDER: methods.ordered(vectors), FULL_TEXT: methods.ordered(tried[flag]), RETRIEVAL: retrieved}
    return Answers(compared, methods.fusions(vectors, tried[flag], names), flag)


def part_of(pairs: Sequence[Pair], part: str) -> dict[str, str]:
    """Return the questions of one part, each with its right memory."""
    return {pair.query: pair.right for pair in pairs if pair.held == (part == HELD)}


def _scores(ranked: Mapping[str, Ranked], pairs: Sequence[Pair], part: str) -> dict[str, Score]:
    right = part_of(pairs, part)
    return {method: score(found, right) for method, found in ranked.items()}


def chosen_fusion(tuning: Mapping[str, Score], fusions: Iterable[str]) -> str:
    """Return the fusion that does best on the tuning part; the others' figures on the other part nobody is to see."""
    return max(sorted(fusions), key=lambda fusion: tuning[fusion].mrr)


def proposal(fusion: str, tuning: Mapping[str, Score], held: Mapping[str, Score]) -> str:
    """Return in a sentence whether a fusion helps where it was chosen, without hurting where it was not."""
    gain, other = (scores[fusion].mrr - scores[EMBEDDER].mrr for scores in (tuning, held))
    figures = f"MRR {gain:+.3f} on the tuning part, {other:+.3f} on what was held back, against the embedder alone"
    if gain > 0 and other >= 0:
        return f"Worth a proposal: {fusion} ({figures})."
    return f"No fusion is worth a proposal; the best on the tuning part is {fusion} ({figures})."


def main() -> int:
    """Measure, print, and exit with 1 if a bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured to a file")
    chosen, pairs = parser.parse_args(), read_pairs()
    with (
        server.durable_server() as server_url,
        tempfile.TemporaryDirectory(prefix="corrigenda-bench-") as temporary,
    ):
        answers = ask(server_url, Path(temporary), pairs)
    tuning = _scores({**answers.compared, **answers.fusions}, pairs, TUNING)
    fusion = chosen_fusion(tuning, answers.fusions)
    held = _scores({**answers.compared, fusion: answers.fusions[fusion]}, pairs, HELD)
    by_part = {TUNING: tuning, HELD: held}
    table = lines(held)
    print(
        f"{len(pairs)} questions, {sum(pair.held for pair in pairs)} of them held back, {len(corpus(pairs))} memories\n"
    )
    print(text(by_part) + "\n")
    print(f"Full text by ts_rank(…, {answers.flag}), which is its best setting on the tuning part.")
    print(proposal(fusion, tuning, held) + "\n")
    print(bars.text(table))
    if chosen.json:
        found = {
            part: {name: figures._asdict() for name, figures in scores.items()} for part, scores in by_part.items()
        }
        chosen.json.write_text(json.dumps({"scores": found, "lines": [line._asdict() for line in table]}, indent=1))
    return int(any(line.met is False for line in table))


if __name__ == "__main__":
    raise SystemExit(main())
