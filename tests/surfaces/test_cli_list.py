"""`corrigenda memories list`: options to a call, a page or all of it, and lines that a terminal only shows."""

from typing import Any

import pytest

from gateway.shapes.replies import memories as memories_replies
from tests.surfaces import cli_hands
from tests.surfaces.cli_hands import MEM, NEXT, REV, T1, T2, corrigenda


def page(*items: memories_replies.Revision, cursor: str | None = None) -> memories_replies.MemoryList:
    """Return a page of a list."""
    return memories_replies.MemoryList(items=items, next_cursor=cursor, truncated=False, position=4, incarnation=1)


def test_without_a_limit_everything_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """LM-05: no option asks for no state in particular, and each revision is a line; -o wide has more of it."""
    items = (cli_hands.revision(content="a\x1b[2J" + "b" * 90),)
    stub = cli_hands.install(monkeypatch, iterate_memories=lambda **_: iter(items))
    line = corrigenda("memories", "list").out
    assert line.startswith(f"{MEM}  v1  {REV}  active, unverified  a\\x1b[2J") and line.endswith("…\n")
    wide = corrigenda("memories", "list", "-o", "wide").out
    assert "2026-01-02T03:04:05.000Z  fact  #profile  a\\x1b[2J" in wide and "b" * 90 in wide
    _, asked = stub.calls[0][1:]
    assert asked == {
        "states": None, "memory": None, "session": None, "kind": None, "tags": (), "agent": None, "user": None,
        "cursor": None,
    }  # fmt: skip


def test_a_page_says_where_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """LM-08: with --limit the cursor is told on stderr, or stands in the document; the filters go on as they are."""
    stub = cli_hands.install(monkeypatch, list_memories=page(cli_hands.revision(), cursor="abc"))
    words = ("memories", "list", "--limit", "1", "--state", "active", "--tag", "a", "--session", "s", "--cursor", "x")
    done = corrigenda(*words)
    assert (done.code, done.err) == (0, "there are more: --cursor abc\n")
    _, asked = stub.asked("list_memories")
    assert (asked["states"], asked["tags"], asked["session"], asked["cursor"], asked["limit"]) == (
        ("active",), ("a",), "s", "x", 1,
    )  # fmt: skip
    assert '"next_cursor": "abc"' in corrigenda(*words, "-o", "json").out


@pytest.mark.parametrize("output", ["csv", "jsonl", "name"])
def test_a_page_of_lines_says_on_stderr_where_it_goes_on(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    """LM-08: a page of lines has no place for the cursor, so it is the one line on stderr; the last page has none."""
    words = ("memories", "list", "--limit", "1", "-o", output)
    cli_hands.install(monkeypatch, list_memories=page(cli_hands.revision(), cursor="abc"))
    done = corrigenda(*words)
    assert done.err == "next_cursor: abc\n" and "abc" not in done.out
    assert corrigenda(*words, "-q").err == ""
    cli_hands.install(monkeypatch, list_memories=page(cli_hands.revision()))
    assert corrigenda(*words).err == ""


def test_nothing_found_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty list is exit 0 and says so on stderr; in JSON it is an empty document."""
    cli_hands.install(monkeypatch, iterate_memories=lambda **_: iter(()))
    done = corrigenda("memories", "list")
    assert (done.code, done.out) == (0, "") and "no memory matches" in done.err
    assert '"items": [\n], "next_cursor": null' in corrigenda("memories", "list", "-o", "json").out
    assert corrigenda("memories", "list", "-o", "yaml").out.startswith("schema_version: 1\nitems: []\n")
    assert corrigenda("memories", "list", "-o", "csv").out == ""


@pytest.mark.parametrize("words", [["--state", "live"], ["--limit", "many"], ["--states", "active"]])
def test_bad_words_are_usage_errors(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """LM-06, LM-07, LM-36: an unknown state, a limit that is no number and an unknown option are exit 2."""
    stub = cli_hands.install(monkeypatch)
    assert cli_hands.refused(corrigenda("memories", "list", *words))
    assert stub.opened == []


def test_the_list_of_a_memory_tells_its_story(monkeypatch: pytest.MonkeyPatch) -> None:
    """LM-13: with --memory each act stands below its revision, with its reason, inert."""
    plain: dict[str, Any] = {"actor": "human:ana", "from_trust": None, "to_trust": "unverified"}
    acts = (
        memories_replies.RevisionAct(
            seq=4, at=T1, action="memory.remembered.v1", reason=None, from_state=None, to_state="active",
            expected_active=None, conflict_with=None, **plain,
        ),
        memories_replies.RevisionAct(
            seq=5, at=T2, action="revision.contested.v1", reason="x\ny", from_state="active", to_state="conflicted",
            expected_active=None, conflict_with=NEXT, **{**plain, "from_trust": "unverified"},
        ),
    )  # fmt: skip
    items = (cli_hands.revision(memories_replies.ListedRevision, audit=acts),)
    cli_hands.install(monkeypatch, iterate_memories=lambda **_: iter(items), complete=(MEM,))
    _, first, second = corrigenda("memories", "list", "--memory", MEM).out.splitlines()
    assert first.strip() == "4  2026-01-02T03:04:05.000Z  memory.remembered.v1  new → active  by human:ana"
    assert second.endswith("active → conflicted  by human:ana: x\\ny, with " + NEXT)
