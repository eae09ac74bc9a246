"""What is compared: vectors alone, words alone, and the product as a program uses it. Fusions are tried beside them.

None of this is used by the product. Each method is given the same memories and the same questions, and says which
memories it would show, best first.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import psycopg

import corrigenda
import migrations
from benchmarks.quality.scores import DEPTH
from benchmarks.server import QUERIES, as_writer
from projections import embedders
from projections.embedders import Vectors

Scores = Mapping[str, Mapping[str, float]]  # by question: what each memory that was found scores
Fuse = Callable[[Mapping[str, float], Mapping[str, float]], Mapping[str, float]]

RANK_BY_PLACE = 60  # the usual constant of reciprocal rank fusion
WEIGHTS = (0.02, 0.05, 0.1, 0.2, 0.4)
FLAGS = (0, 1, 2, 32)  # of ts_rank: not, by the logarithm of the length, by the length, against itself
_TOKEN = re.compile(r"[^\W_]+")
_CODE = re.compile(r"[\d_]")


def by_embedder(memories: Sequence[str], queries: Sequence[str]) -> Scores:
    """Return the exact cosine of every question with every memory, by the default embedder."""
    embedder = embedders.load(embedders.BUILTIN)
    assert embedder is not None, "the built-in embedder is one"
    rows, asked = embedder.embed(memories), embedder.embed(queries)
    return {query: _cosines(memories, rows, vector) for query, vector in zip(queries, asked, strict=True)}


def by_full_text(url: str, memories: Sequence[str], queries: Sequence[str], *, flag: int = 0) -> Scores:
    """Return what PostgreSQL's full text search scores, any word of the question being enough for a memory.

    `flag` says what its `ts_rank` makes of a text's length.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(QUERIES["create_texts"])
        connection.execute(QUERIES["insert_texts"], {"texts": list(memories)})
        found = {
            query: connection.execute(QUERIES["rank_texts"], {"any": any_word(query), "flag": flag}).fetchall()
            for query in queries
        }
        connection.execute(QUERIES["drop_texts"])
    return {query: dict(rows) for query, rows in found.items()}


def any_word(query: str) -> str:
    """Return a question as PostgreSQL's web search takes it, asking for any of its words and excluding none."""
    return " or ".join(word for word in _tokens(query) if word != "or")


def names_in(query: str) -> set[str]:
    """Return the words of a question that look like names: written large but not first, or with a digit or a line."""
    first, *rest = query.split()
    spelt = [word for word in rest if word[:1].isupper()] + [word for word in (first, *rest) if _CODE.search(word)]
    return {token for word in spelt for token in _tokens(word) if len(token) > 1}


def by_names(memories: Sequence[str], queries: Sequence[str]) -> Scores:
    """Return which share of the names in a question each memory has, for those that have one at all."""
    held = {memory: set(_tokens(memory)) for memory in memories}
    return {query: _shares(names_in(query), held) for query in queries}


def by_retrieval(url: str, home: Path, memories: Sequence[str], queries: Sequence[str]) -> dict[str, list[str]]:
    """Return what `search` answers in a ledger in which all memories were remembered one after the other."""
    home.mkdir(mode=0o700)
    migrations.upgrade(url)
    with corrigenda.open(as_writer(url), home=home, project="quality", actor="human:bench") as gateway:
        texts = {gateway.remember(memory).memory_id: memory for memory in memories}
        gateway.recover()  # so that nothing is left to be indexed, however slow the machine
        found = {query: gateway.search(query, k=DEPTH) for query in queries}
    return {query: [texts[hit.memory_id] for hit in answer.hits] for query, answer in found.items()}


def ordered(scores: Scores) -> dict[str, list[str]]:
    """Return each question's memories, best first, equal scores by their text."""
    return {query: sorted(found, key=lambda memory: (-found[memory], memory)) for query, found in scores.items()}


def fusions(vectors: Scores, found: Scores, names: Scores) -> dict[str, dict[str, list[str]]]:
    """Return what every fusion that is tried answers: of vectors with words, and of vectors with names."""
    tried = {"reciprocal ranks": _fused(_reciprocal, vectors, found)}
    for weight in WEIGHTS:
        tried[f"cosine + {weight:g} × words"] = _fused(_added(weight), vectors, found)
    for weight in WEIGHTS:
        tried[f"cosine + {weight:g} × names"] = _fused(_added(weight), vectors, names)
    return tried


def _fused(fuse: Fuse, vectors: Scores, other: Scores) -> dict[str, list[str]]:
    return ordered({query: fuse(vectors[query], other[query]) for query in vectors})


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def _shares(names: set[str], held: Mapping[str, set[str]]) -> dict[str, float]:
    return {memory: len(names & tokens) / len(names) for memory, tokens in held.items() if names & tokens}


def _cosines(memories: Sequence[str], rows: Vectors, vector: Vectors) -> dict[str, float]:
    scores = rows.astype(np.float64) @ vector.astype(np.float64)
    return dict(zip(memories, scores.tolist(), strict=True))


def _reciprocal(vectors: Mapping[str, float], found: Mapping[str, float]) -> dict[str, float]:
    ranks = [ordered({"": scores})[""] for scores in (vectors, found)]
    total: dict[str, float] = {}
    for ranked in ranks:
        for place, memory in enumerate(ranked, start=1):
            total[memory] = total.get(memory, 0.0) + 1 / (RANK_BY_PLACE + place)
    return total


def _added(weight: float) -> Fuse:
    def fuse(vectors: Mapping[str, float], found: Mapping[str, float]) -> dict[str, float]:
        top = max(found.values(), default=1.0)  # what words score means nothing from one question to the next
        return {memory: cosine + weight * found.get(memory, 0.0) / top for memory, cosine in vectors.items()}

    return fuse
