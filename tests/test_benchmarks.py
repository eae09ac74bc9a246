"""The benchmarks' arithmetic, from rounds to verdicts, and each of them once at its smallest. Nothing is timed here."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from benchmarks import bars, export, index, ours, retrieval, server
from benchmarks.cores import one_core
from benchmarks.floor import floor
from benchmarks.quality import methods, pairs, scores
from benchmarks.quality.__main__ import HELD, TUNING, ask, chosen_fusion, part_of, proposal
from benchmarks.seeded import DIMENSION, Seeded, unit_vectors, vector_of
from benchmarks.timing import Times, repeated
from benchmarks.workload import WARM_UP_CALLS, Run, measure, together
from gateway.bootstrap import make_index
from gateway.upkeep.bare import open_bare
from tests.house import rows

COUNTS = "SELECT (SELECT count(*) FROM corrigenda.event), (SELECT count(*) FROM corrigenda.payload)"
RATES = {"ours": [900.0, 100.0, 1000.0], "theirs": [1000.0, 50.0, 2000.0]}


def test_a_ratio_is_made_within_a_round() -> None:
    """Given a round in which everything was slow, then it counts by its ratio, not by its rate."""
    assert bars.ratios(RATES, "ours", "theirs") == 0.9


def test_a_peer_that_was_not_measured_gives_no_ratio() -> None:
    """Given no figures of a peer, then the line names what is missing, and claims neither a ratio nor a verdict."""
    assert bars.ratios(RATES, "ours", "absent") is None

    line = bars.share("ours", 900.0, "absent", None, bars.Bar(0.5))

    assert (line.ratio, line.met) == (None, None)
    assert bars.NO_PEER in line.against


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system places threads as it likes")
def test_one_core_is_for_what_is_started_in_the_block() -> None:
    """Given a block on one core, then a thread that is started there has that one; behind the block all are back."""
    before, found = os.sched_getaffinity(0), list[set[int]]()

    with one_core():
        started = threading.Thread(target=lambda: found.append(os.sched_getaffinity(0)))
        started.start()
        started.join()

    assert found == [{min(before)}]
    assert os.sched_getaffinity(0) == before


def test_a_bar_that_is_not_met_is_said() -> None:
    """Given a ratio below a bar, or above one that is a limit, then the verdict is no, and the table shows it."""
    below = bars.share("ours", 30.0, "theirs", 100.0, bars.Bar(0.4))
    assert below.met is False
    assert bars.Bar(2.5, at_most=True).met(2.6) is False
    assert bars.share("ours", 40.0, "theirs", 100.0, bars.Bar(0.4)).met is True
    assert bars.near("syncs", 103, 100, 2).met is False
    assert bars.limit("look-up", 5.0, 5.0, "ms").met is True
    assert "| NO " in bars.text([below])


def test_the_percentile_is_a_call_that_was_made() -> None:
    """Given calls in order, then 99 of 100 are answered within the 99th, and one call is its own percentile."""
    assert Run(100, 1.0, [float(n) for n in range(1, 101)]).percentile(0.99) == 99.0
    assert Run(1, 1.0, [3.0]).percentile(0.99) == 3.0


def test_processes_add_up_over_the_longest() -> None:
    """Given two processes, then events add up, and the time is that of the one that took longest."""
    both = together([Run(10, 1.0, [0.3]), Run(30, 2.0, [0.1, 0.2])])

    assert (both.events, both.seconds, both.rate, both.calls) == (40, 2.0, 20.0, [0.1, 0.2, 0.3])


def test_the_labelled_pairs_are_hard_enough() -> None:
    """Given the file of pairs, then it is what was asked for: 120, 40 held back, whose words mislead."""
    every = pairs.read_pairs()
    memories = pairs.corpus(every)
    held = [pair for pair in every if pair.held]
    rare = pairs.rare_words(memories)

    assert len(every) >= 120
    assert len(held) == 40
    assert {pair.topic for pair in held} == {"operations", "vendors", "preferences", "code"}
    assert all(len(pair.wrong) >= 2 for pair in every)
    assert len(set(memories)) == len(memories), "a memory that is there twice has two ranks"
    assert len({pair.query for pair in every}) == len({pair.id for pair in every}) == len(every)
    assert sum(pairs.misleads(pair, rare) for pair in held) >= 30
    assert sum(pairs.leads(pair, rare) for pair in held) >= 10


def test_a_word_is_rare_by_how_many_memories_have_it() -> None:
    """Given a word in four memories and one in three, then only the latter is rare, however often it is said."""
    memories = ["common seldom seldom", "common Seldom", "common, seldom.", "common"]

    assert pairs.rare_words(memories) == {"seldom"}


def test_ranks_become_figures() -> None:
    """Given the right memory first, third and nowhere, then recall and reciprocal rank are what they are by hand."""
    ranked = {"a": ["1", "2", "3"], "b": ["1", "2", "3"], "c": ["1", "2"]}

    found = scores.score(ranked, {"a": "1", "b": "3", "c": "9"})

    assert found == (1 / 3, 2 / 3, (1 + 1 / 3) / 3)
    assert scores.rank([str(n) for n in range(30)], "25") == 0, "beyond the depth that all methods are read to"


def test_the_bars_of_quality_are_held_against_both() -> None:
    """Given retrieval below the embedder, or less than 0.2 above full text, then that bar is not met."""
    at = lambda mrr: scores.Score(0, 0, mrr)  # noqa: E731 - shorter than a function

    def met(found: float, words: float, vectors: float) -> list[bool | None]:
        held = {scores.RETRIEVAL: at(found), scores.FULL_TEXT: at(words), scores.EMBEDDER: at(vectors)}
        return [line.met for line in scores.lines(held)]

    assert met(0.7, 0.5, 0.7) == [True, True]
    assert met(0.69, 0.5, 0.7) == [False, False]


def test_a_fusion_is_proposed_by_both_parts() -> None:
    """Given a fusion that is best on the tuning part, then it is proposed only if it does not hurt the other part."""
    at = lambda mrr: scores.Score(0, 0, mrr)  # noqa: E731 - shorter than a function
    tuning = {scores.EMBEDDER: at(0.5), "sum": at(0.6), "other": at(0.55)}

    assert chosen_fusion(tuning, ["other", "sum"]) == "sum"
    assert proposal("sum", tuning, {scores.EMBEDDER: at(0.5), "sum": at(0.5)}).startswith("Worth")
    assert proposal("sum", tuning, {scores.EMBEDDER: at(0.5), "sum": at(0.4)}).startswith("No fusion")


def test_a_question_asks_full_text_for_any_of_its_words() -> None:
    """Given a question with the search's own syntax in it, then every word is asked for and none is excluded."""
    assert methods.any_word('Tabs or "spaces" -x?') == "tabs or spaces or x"
    assert methods.names_in("Does Kestrel call `load_it` in 2024, I wonder?") == {"kestrel", "load", "it", "2024"}


def test_quality_is_measured_from_end_to_end(server_url: str, tmp_path: Path) -> None:
    """Given two pairs of either part, when all methods answer, then retrieval is the embedder, confirmed."""
    every = pairs.read_pairs()
    few = [*[pair for pair in every if pair.held][:2], *[pair for pair in every if not pair.held][:2]]

    answers = ask(server_url, tmp_path, few)

    assert set(answers.compared) == {scores.EMBEDDER, scores.FULL_TEXT, scores.RETRIEVAL}
    assert answers.compared[scores.RETRIEVAL] == answers.compared[scores.EMBEDDER]
    assert all(answers.compared[scores.FULL_TEXT][pair.query] for pair in few), "each of them shares a word at least"
    assert not part_of(few, TUNING).keys() & part_of(few, HELD).keys()


def test_an_embedder_without_a_model_gives_each_text_its_own_vector() -> None:
    """Given a text, then its vector is the same each time and of unit length; a closed embedder raises for others."""
    embedder = Seeded(asked=["known"], closed=True)

    assert np.array_equal(embedder.embed(["known"])[0], vector_of("known"))
    assert not np.array_equal(vector_of("known"), vector_of("other"))
    assert float(np.linalg.norm(vector_of("known"))) == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(RuntimeError, match="stored"):
        embedder.embed(["other"])
    assert embedder.calls == 2


def test_calls_are_repeated_until_the_time_is_up() -> None:
    """Given no time at all, then five calls are timed after one that is not; else no more than was asked for."""
    calls: list[int] = []

    assert repeated(calls.append, seconds=0, calls=100).calls == 5
    assert calls == [0, 0, 1, 2, 3, 4]
    assert repeated(calls.append, seconds=60, calls=7).calls == 7
    assert Times.of([0.001, 0.003, 0.002]) == (2.0, 3.0, 3)


@pytest.mark.parametrize("kind", index.KINDS)
def test_a_filter_finds_the_same_in_both_ways(kind: str) -> None:
    """Given 500 items of which some pass, then asking for more each time finds what the index's own filter finds."""
    generator = np.random.default_rng(1)
    held = make_index(kind, DIMENSION)
    names = [f"item {number:03d}" for number in range(500)]
    held.put_many(names, unit_vectors(500, generator))
    (query,) = unit_vectors(1, generator)

    for passing in (frozenset(names[::10]), frozenset(names[:3])):
        found = index.fetched(held, query, passing)

        assert found == held.search(query, index.K, allowed=passing.__contains__)
        assert len(found) == min(index.K, len(passing))


def test_an_index_is_measured_from_end_to_end() -> None:
    """Given a small index, then every way of asking has its times, and the table has a line for each."""
    found = index.measure("faiss", 300, 0.01)

    assert list(found.times) == ["all", "1 %, more each time", "1 %, allowed", "10 %, more each time", "10 %, allowed"]
    assert index.text([found]).count("| faiss") == 5


@pytest.mark.parametrize("threads", [1, 4])
def test_the_floor_stores_what_it_counts(server_url: str, tmp_path: Path, threads: int) -> None:
    """Given callers alone and together, when they append to the floor, then each call is one event and its payload."""
    with server.fresh_database(server_url) as url:
        writer = ours.prepare(url, tmp_path / "home")
        before = rows(url, COUNTS)[0]
        with floor(writer, threads=threads) as made:
            run = measure(made, threads=threads, seconds=0.1)

        stored = run.events + threads * WARM_UP_CALLS
        assert rows(url, COUNTS)[0] == tuple(count + stored for count in before)


def test_a_rebuild_is_measured_from_end_to_end(server_url: str, tmp_path: Path) -> None:
    """Given a ledger with stored vectors, when its index is built from nothing, then no text is embedded."""
    took, asked = index.rebuilt(server_url, tmp_path / "home", 30)

    assert took.what == "rebuild of 30 items"
    assert (asked.figure, asked.met) == ("0", True)


def test_retrieval_is_measured_from_end_to_end(server_url: str, tmp_path: Path) -> None:
    """Given a small ledger, then starts and searches are measured, beside writers that really wrote."""
    found, begun = retrieval.measure(server_url, tmp_path / "home", items=30, behind=5, seconds=0.2, writers=2, times=1)

    assert list(found) == ["idle", "while 2 write"]
    assert found["while 2 write"].writes > 0
    assert [line.met for line in retrieval.lines(found, begun, 5)][-1], "an answer with warnings came too early"
    assert 0 < begun[0].opened < begun[0].ready < begun[0].answered


def test_an_export_is_measured_from_end_to_end(server_url: str, tmp_path: Path) -> None:
    """Given a small ledger, then the memory's whole chain is handed out in both profiles, and checked."""
    with server.fresh_database(server_url) as url:
        writer = export.build(url, tmp_path / "home", 40, 5)
        with open_bare(database_url=writer, home=tmp_path / "home") as bare:
            key = bare.public_key()["public_key"]
        for act in ("proofs", "complete", "log"):
            made = export.act(act, writer, tmp_path / "home", tmp_path / act, "")
            checked = export.act("verify", writer, tmp_path / "home", tmp_path / act, key)
            assert min(made["seconds"], checked["seconds"], made["mb"]) > 0
    assert len(list((tmp_path / "proofs" / "envelopes").iterdir())) >= 6


def test_an_export_is_held_against_its_bars() -> None:
    """Given an export that is too slow and takes too much memory, then both lines say no, and its size has no bar."""
    good = export.Sized(
        events=1_000, revisions=10, chain=12, export_s=5.0, verify_s=1.0, alone_s=1.0, bytes=200, packed=50, wanted=100,
        export_mb=300.0, complete_s=2.0, complete_mb=300.0, complete_bytes=1_000, complete_verify_s=1.0, lines_s=1.0,
        lines_mb=300.0, lines_bytes=1_000, log_s=1.0, log_mb=300.0, log_bytes=1_000, log_verify_s=1.0,
        log_verify_mb=100.0, log_alone_s=1.0, log_alone_mb=1.0, copy_s=1.0, copy_bytes=2_000,
    )  # fmt: skip
    assert {line.met for line in export.lines([good])} == {True, None}
    worse = good._replace(export_s=5.1, verify_s=1.1, complete_mb=301.0, lines_mb=301.0, log_mb=301.0)
    assert [line.met for line in export.lines([worse])].count(False) == 5
    assert [line.ratio for line in export.lines([good]) if line.ratio is not None] == [2.0, 0.5, 0.5]
