"""The log as a graph, and the words of `log` that go with it and with `--follow`."""

from typing import Any

import pytest
from cli_hands import Stub, corrigenda, install, item, refused

from cli.views import columns


def drawn(*events: tuple[int, str], last: bool = True, text: str = "{seq}") -> list[str]:
    """Draw events (position, stream), newest first or not; `last` tells where each stream ends."""
    items = [item(seq, stream=stream, trace_id=f"op_{seq}") for seq, stream in events]
    ends = {one.stream: one.seq for one in items} if last else None
    return list(columns.draw(items, lambda one: text.format(seq=one.seq), last=ends))


def test_each_stream_that_is_alive_has_a_column() -> None:
    """A column begins with a stream's first line, is drawn beside the others' lines, and ends with an open dot."""
    assert drawn((9, "a"), (8, "b"), (7, "a"), (6, "c"), (5, "b"), (4, "a")) == [
        "●  9",
        "│ ●  8",
        "● │  7",
        "│ │ ○  6",
        "│ ○  5",
        "○  4",
    ]


def test_a_column_that_is_free_is_used_again() -> None:
    """The leftmost free column is taken, and columns at the right end go when they are empty."""
    assert drawn((9, "a"), (8, "b"), (7, "a"), (6, "c"), (5, "c"), (4, "b")) == [
        "●  9",
        "│ ●  8",
        "○ │  7",
        "● │  6",
        "○ │  5",
        "  ○  4",
    ]


def test_further_lines_stand_behind_the_columns() -> None:
    """An event of several lines keeps the columns of what goes on below it."""
    assert drawn((9, "a"), (8, "b"), (7, "a"), text="{seq}\n  more") == [
        "●  9\n│    more",
        "│ ○  8\n│    more",
        "○  7\n    more",
    ]


def test_without_an_end_columns_stay_and_are_bounded() -> None:
    """Where it is not known what comes, no column ends, and the quietest gives its place to one too many."""
    many = [(seq, f"s{seq}") for seq in range(columns.OPEN_COLUMNS_MAX)]
    lines = drawn(*many, (90, "s0"), (91, "new"), (92, "s1"), last=False)
    assert lines[columns.OPEN_COLUMNS_MAX].startswith("● │")
    assert lines[-2].startswith("│ ● │"), "the quietest was s1"
    assert lines[-1].startswith("│ │ ● │"), "s1 comes back where s2 was"
    assert all("○" not in line for line in lines)
    assert max(line.count("│") + 1 for line in lines) == columns.OPEN_COLUMNS_MAX


def test_what_cannot_be_read_has_a_column_for_its_line() -> None:
    """An event whose bytes are in no known form belongs to no stream."""
    assert drawn((9, "a"), (8, ""), (7, ""), (6, "a")) == ["●  9", "│ ○  8", "│ ○  7", "○  6"]


def appended(*events: tuple[int, str, str]) -> list[str]:
    """Draw events (position, stream, append), newest first."""
    items = [item(seq, stream=stream, trace_id=append) for seq, stream, append in events]
    ends = {one.stream: one.seq for one in items}
    return list(columns.draw(items, lambda one: str(one.seq), last=ends))


def test_the_events_of_one_append_are_joined() -> None:
    """A merge of three memories is one append: its events are joined, across what stands between them."""
    merge = [(9, "c", "m"), (8, "b", "m"), (7, "a", "m")]
    assert appended(*merge, (6, "c", "3"), (5, "b", "2"), (4, "a", "1")) == [
        "●  9",
        "├─●  8",
        "├─┼─●  7",
        "○ │ │  6",
        "  ○ │  5",
        "    ○  4",
    ]


def test_a_join_leads_to_where_the_append_began() -> None:
    """Names come first in an append, so they are drawn last: joined with the memory, left or right, alive or not."""
    assert appended((9, "m", "2"), (8, "n", "2"), (7, "o", "2"), (6, "m", "1")) == ["●  9", "├─○  8", "├─○  7", "○  6"]
    assert appended((9, "a", "3"), (8, "b", "2"), (7, "a", "2"), (6, "b", "1")) == [
        "●  9",
        "│ ●  8",
        "○─┤  7",
        "  ○  6",
    ]
    assert appended((9, "a", "3"), (8, "b", "2"), (7, "a", "2")) == ["●  9", "│ ○  8", "○─╯  7"]
    assert appended((9, "a", "2"), (8, "b", "2")) == ["○  9", "○  8"]


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Stub:
    """A gateway of three events."""
    events = [(9, "mem_a"), (8, "mem_b"), (7, "mem_a")]
    found = [item(seq, stream=stream, trace_id=f"op_{seq}") for seq, stream in events]
    return install(
        monkeypatch,
        log=lambda **_: iter(found),
        follow=lambda **_: iter(found[::-1]),
        last_of_streams=(9, {"mem_a": 7, "mem_b": 8}),
        streams=("mem_a",),
    )


def test_the_graph_lists_what_it_measured(gateway: Stub) -> None:
    """`log --graph` draws up to the head that it saw first: what comes meanwhile has no column yet."""
    lines = corrigenda("log", "--graph", "--oneline", "--limit", "3").out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["●", "│ ○", "○"]
    asked = gateway.asked("log")[1]
    assert (asked["before"], asked["limit"], gateway.asked("last_of_streams")[1]["before"]) == (10, 3, None)


def test_following_lists_in_order_and_never_ends_a_column(gateway: Stub) -> None:
    """`log --follow --graph` passes the filters on and draws upward."""
    lines = corrigenda("log", "-f", "--graph", "--oneline", "--limit", "2", "5..").out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["●", "│ ●", "● │"]
    asked: dict[str, Any] = gateway.asked("follow")[1]
    assert (asked["after"], asked["before"], asked["limit"]) == (4, None, 2)


@pytest.mark.parametrize(
    "words",
    [
        ["--graph", "-o", "json"],
        ["--graph", "-o", "jsonl"],
        ["--follow", "-o", "json"],
        ["--follow", "--until", "2026-01-02T03:04:05Z"],
        ["--follow", "1..5"],
        ["--follow", "5"],
    ],
)
def test_what_cannot_go_together_is_refused(gateway: Stub, words: list[str]) -> None:
    """A graph is for people, and what has no end is neither one document nor a range with an end: exit 2."""
    assert refused(corrigenda("log", *words), "leave out" if words != ["--follow", "-o", "json"] else "jsonl")
    assert gateway.opened == []


def test_the_beginning_of_several_ids_is_refused(gateway: Stub) -> None:
    """`log --stream` with what two streams begin with is exit 2 and names them, as in `show`."""
    gateway.answers["streams"] = ("mem_a", "mem_b")
    assert refused(corrigenda("log", "--stream", "mem_01J9ZK"), "mem_a, mem_b")
    gateway.answers["streams"] = ("mem_a",)
    corrigenda("log", "--stream", "home")
    assert gateway.asked("log")[1]["stream"] == "mem_a"
