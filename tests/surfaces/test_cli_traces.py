"""`corrigenda traces`, `explain --trace` and what `memories search` says of traces: words to calls, answers to text."""

import json
import re
from typing import Any

import msgspec
import pytest

from gateway.shapes.replies import log as log_replies
from gateway.shapes.replies import searches as searches_replies
from gateway.shapes.replies import traces as traces_replies
from tests.surfaces import cli_hands
from tests.surfaces.cli_hands import MEM, OP, REV, T1, corrigenda, refused

TRC = "trc_01J9ZKEEEEEEEEEEEEEEEEEEEE"
COR = "cor_01J9ZKEEEEEEEEEEEEEEEEEEEE"


def summary(**changes: Any) -> traces_replies.TraceSummary:
    """A dispatch of one hit."""
    plain: dict[str, Any] = dict(
        trace_id=TRC, kind="dispatch", at=T1, actor="human:ana", session="s\x1b[2J", turn=3, run="r",
        query="where? " * 20, hits=1, excluded=2, empty_reason=None, position=4,
    )  # fmt: skip
    return traces_replies.TraceSummary(**{**plain, **changes})


def trace(**changes: Any) -> traces_replies.SearchTrace:
    """The same, whole."""
    plain: dict[str, Any] = dict(
        trace_id=TRC, digest="ab" * 32, kind="dispatch", at=T1, actor="human:ana", project="ap", scope={"session": "s"},
        session="s", turn=3, run="r", query="where\x1b[2J?", k=5, filters={"kinds": ["fact"]}, valid_at=T1,
        at_position=None, embedder=None,
        hits=(traces_replies.TracedHit(rank=1, memory_id=MEM, revision_id=REV, score=0.5, why="near"),),
        excluded=(
            searches_replies.Excluded(memory_id="a\x1b[2J", revision_id=REV, score=0.25, reason="its kind is task"),
        ),
        excluded_total=3, withheld=1, warnings=("full_text",), empty_reason=None, position=4, incarnation=1,
    )  # fmt: skip
    return traces_replies.SearchTrace(**{**plain, **changes})


def page(*items: traces_replies.TraceSummary, **changes: Any) -> traces_replies.TraceList:
    """A page of a list."""
    plain: dict[str, Any] = dict(items=items, next_cursor=None, truncated=False, warnings=(), position=4, incarnation=1)
    return traces_replies.TraceList(**{**plain, **changes})


def test_without_a_limit_every_trace_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace is a line that a terminal only shows; -o wide has the whole question, -o name the id, csv its cells."""
    stub = cli_hands.install(monkeypatch, iterate_traces=lambda **_: iter((summary(),)))
    line = corrigenda("traces", "list", "--session", "s", "--kind", "dispatch").out
    begin = (
        f"{TRC}  2026-01-02T03:04:05.000Z  dispatch  human:ana  session s\\x1b[2J  turn 3  run r  1 hit, 2 left out  "
    )
    assert line.startswith(begin + "where?") and line.endswith("…\n")
    assert stub.asked("iterate_traces")[1] == {"session": "s", "kind": "dispatch", "cursor": None}
    assert "…" not in corrigenda("traces", "list", "-o", "wide").out
    assert corrigenda("traces", "list", "-o", "name").out == f"{TRC}\n"
    assert corrigenda("traces", "list", "-o", "csv", "--fields", "trace_id,turn").out == f"trace_id,turn\n{TRC},3\n"
    assert json.loads(corrigenda("traces", "list", "-o", "json").out)["items"][0]["query"] == "where? " * 20


def test_a_page_of_traces_says_where_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --limit the cursor and what is not sound are told on stderr, and stand in the document."""
    answer = page(summary(query=None), next_cursor="abc", warnings=(f"INTEGRITY_BROKEN@{TRC}",))
    cli_hands.install(monkeypatch, list_traces=answer)
    done = corrigenda("traces", "list", "--limit", "1", "--cursor", "x")
    assert done.err == f"warning: INTEGRITY_BROKEN@{TRC}\nthere are more: --cursor abc\n"
    assert done.out.endswith("(what was asked was forgotten since)\n")
    assert json.loads(corrigenda("traces", "list", "--limit", "1", "-o", "json").out)["next_cursor"] == "abc"


def test_no_trace_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty list is exit 0, and says so on stderr."""
    cli_hands.install(monkeypatch, iterate_traces=lambda **_: iter(()))
    done = corrigenda("traces", "list")
    assert (done.code, done.out) == (0, "") and "no retrieval was recorded" in done.err


@pytest.mark.parametrize("words", [("traces", "show"), ("show",)])
def test_a_trace_is_shown(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    """`traces show` and `show` tell what was asked, chosen and left out; in JSON with all its fields."""
    stub = cli_hands.install(monkeypatch, search_trace=trace(), complete=(TRC,))
    out = corrigenda(*words, TRC[:12]).out
    assert stub.asked("search_trace")[0] == (TRC,)
    assert "\x1b" not in out and f"chosen:\n  1  {MEM}  {REV}  score 0.500: near\n" in out
    assert f"  a\\x1b[2J  {REV}  score 0.250: its kind is task\n  … and 2 more\n" in out
    assert all(word in out for word in ("kinds=['fact']", "compared by", "words", "withheld", "ab" * 32))
    body = json.loads(corrigenda(*words, TRC, "-o", "json").out)
    assert (body["trace_id"], body["hits"][0]["revision_id"]) == (TRC, REV)
    assert corrigenda(*words, TRC, "-o", "yaml").out.startswith("schema_version: 1\ntrace_id: ")


def test_a_trace_without_hits_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """What found nothing says so, and of a forgotten question that it was."""
    cli_hands.install(monkeypatch, search_trace=trace(hits=(), excluded=(), empty_reason="no_match", query=None))
    out = corrigenda("traces", "show", TRC).out
    assert out.endswith("nothing was chosen (no_match)\n") and "(what was asked was forgotten since)" in out


def test_a_receipts_trace_is_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """RC-26: `traces show` takes a receipt's trace_id, too, and shows what its command stored."""
    stored = log_replies.Trace(trace_id=OP, at=T1, actor="human:ana", items=(), position=4, incarnation=1)
    stub = cli_hands.install(monkeypatch, show_trace=stored)
    assert corrigenda("traces", "show", OP).code == 0
    assert stub.asked("show_trace")[0] == (OP,)


@pytest.mark.parametrize(
    ("outcome", "rank", "said"),
    [("chosen", 2, "it was chosen, as number 2 (score 0.500): near."), ("excluded", None, "it was left out (score")],
)
def test_an_explanation_by_a_trace(monkeypatch: pytest.MonkeyPatch, outcome: str, rank: int | None, said: str) -> None:
    """`explain --trace` says what the retrieval made of a revision."""
    verdict = traces_replies.TraceVerdict(
        trace_id=TRC, kind="search", at=T1, position=4, outcome=outcome, rank=rank, score=0.5, reason="near"
    )
    stub = cli_hands.install(monkeypatch, explain=cli_hands.explanation(in_trace=verdict), complete=(TRC,))
    out = corrigenda("explain", REV, "--trace", TRC[:14]).out
    assert stub.asked("explain")[1] == {"at": None, "trace": TRC}
    assert f"In the search {TRC} of 2026-01-02T03:04:05.000Z at position 4 {said}" in out


def test_a_trace_of_a_search_for_corrections_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was chosen and left out are corrections, by their ids; a line of the list says of what the search was."""
    chosen = traces_replies.TracedCorrection(rank=1, correction_id=COR, score=0.5, why="near\x1b[2J")
    missed = traces_replies.TracedCorrection(rank=None, correction_id="cor_other", score=0.25, why="it is revoked")
    given: dict[str, Any] = dict(
        kind="search", about="corrections", hits=(), excluded=(), corrections=(chosen,), excluded_corrections=(missed,),
    )  # fmt: skip
    cli_hands.install(
        monkeypatch, search_trace=trace(**given), list_traces=page(summary(kind="search", about="corrections"))
    )
    out = corrigenda("traces", "show", TRC).out
    assert f"{TRC}  search of corrections\n" in out
    assert f"chosen:\n  1  {COR}  score 0.500: near\\x1b[2J\n" in out
    assert "left out:\n  cor_other  score 0.250: it is revoked\n  … and 2 more" in out
    assert "  search of corrections  human:ana  " in corrigenda("traces", "list", "--limit", "1").out


def test_a_search_is_a_dispatch_if_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind, turn and run go on as they are; the trace is told with --why, and always in JSON."""
    stub = cli_hands.install(monkeypatch, search=cli_hands.search(cli_hands.hit(), trace_id=TRC, excluded=()))
    words = ("memories", "search", "q", "--trace-kind", "dispatch", "--session", "s", "--turn", "3", "--run", "r")
    assert corrigenda(*words, "--why").out.endswith(f"trace: {TRC}\n")
    asked = stub.asked("search")[1]
    assert (asked["trace_kind"], asked["session"], asked["turn"], asked["run"]) == ("dispatch", "s", 3, "r")
    assert json.loads(corrigenda("memories", "search", "q", "-o", "json").out)["trace_id"] == TRC
    for wrong in (["--trace-kind", "both"], ["--turn", "x"]):
        assert refused(corrigenda("memories", "search", "q", *wrong), wrong[0])


@pytest.mark.parametrize(("words", "said"), [([], "2 traces removed\n"), (["--dry-run"], "2 traces would go\n")])
def test_sweeping_says_what_went(monkeypatch: pytest.MonkeyPatch, words: list[str], said: str) -> None:
    """`traces sweep` opens bare, and with --dry-run only counts."""
    stub = cli_hands.install(monkeypatch, sweep_traces={"traces": 2, "dry_run": bool(words)})
    assert corrigenda("traces", "sweep", *words).out == said
    assert (stub.opened[0][0], stub.asked("sweep_traces")[1]) == ("bare", {"dry_run": bool(words)})


def test_the_command_that_the_help_of_sweeping_names_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is quoted there sets the policy that sweeping goes by."""
    stub = cli_hands.install(monkeypatch)
    told = " ".join(corrigenda("traces", "sweep", "--help").out.split())
    (quoted,) = re.findall("`corrigenda (policy set [^`]+)`", told)
    assert corrigenda(*quoted.split()).code == 0
    assert stub.asked("set_policy")[0] == ({"trace_retention": "30d"},)


def test_a_status_counts_what_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen says how far back traces reach, and how many could not be stored."""
    screen = msgspec.structs.replace(cli_hands.status(), traces={"oldest": T1, "lost": 2})
    cli_hands.install(monkeypatch, status=screen)
    assert corrigenda("status").out.endswith(f"traces:       oldest: {T1}, lost: 2\n")
    assert json.loads(corrigenda("status", "-o", "json").out)["traces"]["lost"] == 2
