"""Conditions and shared words: the pure halves of a search."""

import pytest

from gateway.views import applicability
from gateway.views.words import SharedWords


@pytest.mark.parametrize(
    ("phrase", "query", "held"),
    [
        ("roll back", "how do I Roll-Back?", True),
        ("roll back", "roll it back", False),
        ("roll", "a scroll", False),
        ("STRASSE", "welche straße", True),
        ("C", "C++ or C", True),
        ("naïve", "naı̈ve", False),
        ("ﬁle", "a FILE", True),
        ("回滚", "如何回滚服务", True),
        ("回滚", "滚回", False),
    ],
)
def test_a_topic_is_a_phrase_of_whole_words(phrase: str, query: str, held: bool) -> None:
    """RM-50: a phrase holds if its words stand in the question in a row, whatever their case or punctuation."""
    applies = applicability.Applies(
        match="all", conditions=(applicability.Condition(id="t", kind="topic", value=phrase),)
    )
    assert applicability.judge(applies, context={}, query=query).applicable is held


def test_a_verdict_names_the_condition_and_never_its_value() -> None:
    """Given conditions of which some hold, then the verdict names one by its id, and says no value of theirs."""
    applies = applicability.Applies(
        match="any",
        conditions=(
            applicability.Condition(id="c1", kind="context", field="directory", value="secret"),
            applicability.Condition(id="c2", kind="context", field="sessionId", value="s"),
        ),
    )
    assert applicability.judge(applies, context={"sessionId": "s"}, query="") == (True, "its condition c2 holds")
    verdict = applicability.judge(applies, context={"directory": "mars"}, query="")
    assert not verdict.applicable and "secret" not in verdict.reason and "mars" not in verdict.reason
    assert applicability.judge(None, context={}, query="").applicable


def ranked(query: str, *texts: str) -> list[str]:
    """Return the texts that share words with a query, best first."""
    shared = SharedWords[int](query)
    for number, text in enumerate(texts):
        shared.put(number, text)
    return [texts[number] for number, _ in shared.ranked()]


def test_rare_words_count_for_more() -> None:
    """Given a rare and a common word in the query, then the text with the rare one comes first."""
    common = [f"the ferry sails at {n}" for n in range(5)]
    assert ranked("the zanzibar ferry", *common, "zanzibar is far")[0] == "zanzibar is far"


def test_words_without_spaces_between_them_are_found() -> None:
    """Given texts in a script without spaces, then one that shares letters with the query is found, and first."""
    assert ranked("回滚服务", "今天下雨", "怎样回滚", "回滚服务的步骤") == ["回滚服务的步骤", "怎样回滚"]


def test_a_short_text_says_it_better_than_a_long_one() -> None:
    """Given one word in a short and in a long text, then the short one comes first, and equal ones keep their order."""
    assert ranked("ferry", "the ferry and many other words of no use", "ferry", "FERRY") == [
        "ferry",
        "FERRY",
        "the ferry and many other words of no use",
    ]


@pytest.mark.parametrize("query", ["", "…", "unheard of"])
def test_a_query_without_a_shared_word_finds_nothing(query: str) -> None:
    """Given no word in common, or none at all, then nothing is ranked."""
    assert ranked(query, "the ferry sails") == []


def test_scores_lie_between_nothing_and_one() -> None:
    """Given one word said over and over, then its score stays below one."""
    shared = SharedWords[int]("ferry")
    shared.put(0, "ferry " * 5_000)
    shared.put(1, "bus")
    ((_, score),) = shared.ranked()
    assert 0 < score <= 1
