"""`corrigenda corrections`: from words to the gateway's calls, and from its answers to what is read."""

import json
from typing import Any

import msgspec
import pytest
from cli_hands import OP, REV, T1, Stub, corrigenda, install, receipt, refused

from gateway.shapes.replies import corrections as corrections_replies
from gateway.shapes.replies import past as past_replies
from gateway.shapes.replies import traces as trace_replies
from ledger.errors import failure

COR, SUCCESSOR = "cor_01J9ZKEEEEEEEEEEEEEEEEEEEE", "cor_01J9ZKFFFFFFFFFFFFFFFFFFFF"
HOW = ["--reason", "r", "--idempotency-key", "k", "--if-revision", "3", "--dry-run"]
GIVEN = {"reason": "r", "idempotency_key": "k", "if_revision": 3, "dry_run": True}
STATS = corrections_replies.CorrectionStats(total=3, by_entity_key={"MSC": 2}, by_field={}, by_agent={"ap": 3})
CASE = corrections_replies.EvalCase(input="invoice\u202e 7", expected="DTHC", field=None, correction_id=COR)


def correction(cls: type = corrections_replies.Correction, **changes: Any) -> Any:
    """A correction that nothing is special about, but for the changes."""
    plain: dict[str, Any] = dict(
        correction_id=COR,
        state="active",
        agent="ap",
        field="chargeCode",
        entity_key="MSC",
        original_value="THC",
        corrected_value="DTHC",
        reason="billed apart",
        original_input=None,
        tags=(),
        run=None,
        session=None,
        user=None,
        visibility="agent",
        memory=None,
        origin="human",
        created_at=T1,
        superseded_by=None,
        contradiction="off",
        stream_version=1,
        position=4,
    )
    return cls(**{**plain, **changes})


def explained(**changes: Any) -> corrections_replies.ExplainedCorrection:
    """The same with its story."""
    told = past_replies.AuditEntry(
        seq=4, type="correction.recorded.v1", at=T1, actor="human:ana", trace_id=OP, reason="two\nlines", moves=()
    )
    return correction(corrections_replies.ExplainedCorrection, audit=(told,), **changes)


HIT = corrections_replies.CorrectionHit(
    rank=1, score=0.5, why="near", **msgspec.structs.asdict(correction(state="unconfirmed"))
)
SEARCH = corrections_replies.CorrectionSearch(
    hits=(HIT,), warnings=("index_pending:2",), empty_reason=None, position=4, incarnation=1
)
RENDERED = corrections_replies.Rendered(
    text="<memory>\n</memory>", correction_ids=(COR,), memory_ids=(), truncated=True, warnings=(), failed=None
)


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Stub:
    """A gateway that notes what it is asked."""
    return install(
        monkeypatch,
        show_correction=explained(),
        list_corrections=(correction(), correction(correction_id=SUCCESSOR)),
        correction_stats=STATS,
        eval_cases=(CASE,),
        search_corrections=SEARCH,
        render_corrections=RENDERED,
    )


def test_record_passes_everything(gateway: Stub) -> None:
    """Each option goes by its Python name, and only the input may come from a file."""
    options = (
        "--agent ap --field F --entity-key K --run R --session S --tag a --tag b --visibility user --user U --memory"
        f" {REV} --original-value - --corrected-value @x --original-input @@y"
    )
    assert corrigenda("corrections", "record", *options.split(), *HOW).code == 0
    args, named = gateway.asked("record_correction")
    assert args == ()
    assert named == {
        "agent": "ap", "field": "F", "entity_key": "K", "run": "R", "session": "S", "tags": ("a", "b"),
        "visibility": "user", "user": "U", "memory": REV, "original_value": "-", "corrected_value": "@x",
        "original_input": "@y", **GIVEN,
    }  # fmt: skip


def test_a_document_may_say_it_all(gateway: Stub) -> None:
    """`--input` is the whole request; how it is done stands beside it, and a word of it twice is exit 2."""
    body = {"agent": "ap", "original_value": "a", "corrected_value": "", "tags": ["t"], "memory": "home", "reason": "r"}
    done = corrigenda("corrections", "record", "--input", "-", *HOW[2:], stdin=json.dumps(body))
    assert done.code == 0, done.err
    assert gateway.asked("record_correction")[1] == {**body, **GIVEN}
    for words, stdin in (
        (["--agent", "ap"], json.dumps(body)),
        ([], json.dumps({**body, "origin": "human"})),
        ([], '{"agent": "ap"}'),
        ([], "[]"),
    ):
        assert refused(corrigenda("corrections", "record", "--input", "-", *words, stdin=stdin), "VALIDATION_FAILED")


@pytest.mark.parametrize(
    ("words", "call", "more"),
    [
        (["confirm", COR], "confirm_correction", {}),
        (["supersede", COR, "--corrected-value", ""], "supersede_correction", {"corrected_value": ""}),
        (["revoke", COR], "revoke_correction", {}),
    ],
)
def test_an_act_passes_how_it_is_to_be_done(gateway: Stub, words: list[str], call: str, more: dict[str, Any]) -> None:
    """Reason, key, expected version and dry run reach the gateway under their own names."""
    assert corrigenda("corrections", *words, *HOW).code == 0
    assert gateway.asked(call) == ((COR,), {**GIVEN, **more})


@pytest.mark.parametrize(
    "words",
    [
        ["record", "--agent", "ap", "--original-value", "a"],
        ["record", "--original-value", "a", "--corrected-value", "b"],
        ["revoke", COR],
        ["supersede", COR],
        ["stats", "--by", "field"],
        ["stats", "--period", "week"],
        ["list", "--since", "yesterday"],
    ],
)
def test_what_is_missing_or_wrong_is_a_usage_error(gateway: Stub, words: list[str]) -> None:
    """What an act cannot do without is exit 2, and nothing is opened."""
    assert refused(corrigenda("corrections", *words), "error VALIDATION_FAILED")
    assert gateway.opened == []


def test_reads_pass_what_is_asked(gateway: Stub) -> None:
    """Filters reach the gateway, with times as the ledger writes them."""
    words = "--agent ap --entity-key MSC --since 2026-01-02T04:04:05+01:00 --state revoked --user U --session S"
    corrigenda("corrections", "list", *words.split())
    assert gateway.asked("list_corrections")[1] == {
        "agent": "ap", "entity_key": "MSC", "since": "2026-01-02T03:04:05.000000Z", "states": ("revoked",), "user": "U",
        "session": "S",
    }  # fmt: skip
    corrigenda("corrections", "stats", "--by", "agent,period", "--period", "day")
    assert gateway.asked("correction_stats")[1] == {
        "agent": None, "since": None, "by": ("agent", "period"), "period": "day",
    }  # fmt: skip


def test_a_list_is_a_line_for_each(gateway: Stub) -> None:
    """A person reads a line for each correction, a program a document for each or one for all."""
    first, second = corrigenda("corrections", "list").out.splitlines()
    assert first == f"2026-01-02T03:04:05.000Z  {COR}  active       ap  MSC chargeCode: THC → DTHC"
    assert SUCCESSOR in second
    lines = corrigenda("corrections", "list", "-o", "jsonl").out.splitlines()
    assert [json.loads(line)["correction_id"] for line in lines] == [COR, SUCCESSOR]
    whole = json.loads(corrigenda("corrections", "list", "-o", "json").out)
    assert [item["corrected_value"] for item in whole["items"]] == ["DTHC", "DTHC"]


def test_a_correction_is_shown_by_either_command(gateway: Stub) -> None:
    """`show ID` and `corrections show ID` are one answer, with both values and what became of it."""
    gateway.answers["show_correction"] = explained(
        state="superseded", superseded_by=SUCCESSOR, corrected_value="", original_value="two\nlines"
    )
    told = corrigenda("show", COR).out
    assert corrigenda("corrections", "show", COR).out == told
    title, state, *values = told.splitlines()[:5]
    assert (title, state) == (f"{COR}  ap", f"  superseded by {SUCCESSOR}")
    assert values == ["  - two", "  - lines", "  + (should be empty)"]
    happened = told.splitlines()[-4:]
    assert happened == [
        "What happened", "  4  2026-01-02T03:04:05.000Z  correction.recorded.v1  by human:ana",
        "      why: two", "      why: lines",
    ]  # fmt: skip


def test_the_hashed_bytes_of_a_correction_are_those_of_its_record(gateway: Stub) -> None:
    """`show --raw` with a correction's id asks for the event at the position of its record."""
    gateway.answers["raw"] = b"{}"
    assert corrigenda("show", COR, "--raw").out == "{}"
    assert gateway.asked("raw") == ((4,), {})


def test_counts_are_told_by_what_was_asked(gateway: Stub) -> None:
    """What was not asked for is not told; what was and is empty says so."""
    told = corrigenda("corrections", "stats").out
    assert told == "3 corrections\n\nby entity\n  MSC  2\n\nby field: none\n\nby agent\n  ap  3\n"
    assert json.loads(corrigenda("corrections", "stats", "-o", "json").out)["by_entity_key"] == {"MSC": 2}


def test_cases_are_lines_of_json_that_only_show(gateway: Stub) -> None:
    """AG-40: each line has exactly the four keys, and no character that turns a terminal's line around."""
    (line,) = corrigenda("corrections", "eval-cases").out.splitlines()
    assert json.loads(line) == {"input": "invoice\u202e 7", "expected": "DTHC", "field": None, "correction_id": COR}
    assert "\u202e" not in line


def test_nothing_found_is_said_aside(gateway: Stub) -> None:
    """Without corrections stdout is empty and stderr says so."""
    gateway.answers |= {"list_corrections": (), "eval_cases": ()}
    for verb in ("list", "eval-cases"):
        answer = corrigenda("corrections", verb)
        assert (answer.code, answer.out) == (0, "") and "no" in answer.err


def test_a_receipt_names_the_correction_and_warns(gateway: Stub) -> None:
    """The receipt tells the correction's id on stdout, and what was left as it is on stderr."""
    gateway.answers["revoke_correction"] = receipt(
        correction_id=COR, memory_id=None, revision_id=None, warnings=("memory_untouched: x",)
    )
    answer = corrigenda("corrections", "revoke", COR, "--reason", "r")
    assert answer.out.splitlines()[1:] == [f"  correction  {COR}", f"  trace       {OP}"]
    assert answer.err == "warning: memory_untouched: x\n"


def test_an_abbreviation_is_completed_or_too_short(gateway: Stub) -> None:
    """Six characters after the underscore are enough, if no other id begins so; five are exit 2."""
    from ledger.errors import failure

    gateway.answers |= {"complete": (COR,), "history": failure("MEMORY_NOT_FOUND", "none")}
    corrigenda("corrections", "show", COR[:10])
    assert gateway.asked("show_correction") == ((COR,), {})
    assert refused(corrigenda("corrections", "show", COR[:9]), "too short")


# ---------------------------------------------------------------- what a run is given

READER = [
    "--user",
    "u",
    "--session",
    "s",
    "--entity-key",
    "MSC",
    "-k",
    "2",
    "--min-score",
    "0.4",
    "--min-position",
    "3",
]
READ = {
    "user": "u", "session": "s", "entity_key": "MSC", "k": 2, "min_score": 0.4, "agent": "ap", "min_position": "3",
}  # fmt: skip


def test_search_and_render_pass_everything(gateway: Stub) -> None:
    """Who reads, what about, how many and how near reach the gateway; what was not said is left to the policy."""
    corrigenda("corrections", "search", "q", "--agent", "ap", *READER)
    assert gateway.asked("search_corrections") == (("q",), READ)
    corrigenda("corrections", "render", "q", "--agent", "ap", *READER, "--budget", "9", "--learnings", "2")
    assert gateway.asked("render_corrections") == (("q",), {**READ, "budget": 9, "learnings": 2})
    assert refused(corrigenda("corrections", "render", "q"), "--agent")


def test_a_found_correction_says_how_near_and_whether_it_is_confirmed(gateway: Stub) -> None:
    """AG-25, AG-50: one line a hit, a document with everything, warnings on stderr only."""
    found = corrigenda("corrections", "search", "q")
    assert found.out.startswith(" 1  0.500  ") and " unconfirmed " in found.out and COR in found.out
    assert found.err == "warning: index_pending:2\n"
    assert json.loads(corrigenda("corrections", "search", "q", "-o", "jsonl").out)["score"] == 0.5


def test_the_block_is_all_that_stdout_gets(gateway: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """AG-20: the text alone, or the whole document; one that could not be made is exit 7 with its document."""
    assert corrigenda("corrections", "render", "q", "--agent", "ap").out == "<memory>\n</memory>\n"
    failed = msgspec.structs.replace(RENDERED, text="", correction_ids=(), warnings=("w",), failed="INDEX_UNAVAILABLE")
    install(monkeypatch, render_corrections=failed)
    answer = corrigenda("corrections", "render", "q", "--agent", "ap", "-o", "json")
    assert (answer.code, json.loads(answer.out)["text"], json.loads(answer.out)["warnings"]) == (7, "", ["w"])
    install(monkeypatch, render_corrections=failure("UNAVAILABLE", "The database should answer, and does not."))
    answer = corrigenda("corrections", "render", "q", "--agent", "ap", "-o", "json")
    assert (answer.code, json.loads(answer.out)["failed"]) == (7, "UNAVAILABLE")


def test_a_page_of_corrections_says_where_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """LM-08: with --limit a page, its cursor in the document or on stderr; --cursor alone is no page."""
    page = corrections_replies.CorrectionList(
        items=(correction(),), next_cursor="abc", truncated=False, position=4, incarnation=1
    )
    gateway = install(monkeypatch, page_corrections=page)
    words = ("corrections", "list", "--limit", "1", "--cursor", "x", "--agent", "ap")
    done = corrigenda(*words)
    assert (done.code, done.err) == (0, "there are more: --cursor abc\n") and COR in done.out
    asked = gateway.asked("page_corrections")[1]
    assert (asked["limit"], asked["cursor"], asked["agent"]) == (1, "x", "ap")
    assert '"next_cursor": "abc"' in corrigenda(*words, "-o", "json").out
    assert corrigenda(*words, "-o", "jsonl").err == "next_cursor: abc\n"
    assert corrigenda("corrections", "list", "--cursor", "x").code == 2


def test_a_correction_is_explained_by_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """`explain COR --trace` says what the retrieval made of the correction."""
    trace = f"trc_{COR.removeprefix('cor_')}"
    verdict = trace_replies.TraceVerdict(
        trace_id=trace, kind="search", at=T1, position=4, outcome="excluded", rank=None, score=0.5, reason="it is far"
    )
    stub = install(monkeypatch, explain_correction=explained(in_trace=verdict))
    out = corrigenda("explain", COR, "--trace", trace).out
    assert stub.asked("explain_correction")[1] == {"at": None, "trace": trace}
    assert "at position 4 it was left out (score 0.500): it is far." in out
