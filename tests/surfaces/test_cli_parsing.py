"""What the command line makes of its words: global options, ids, texts, ranges, and what it refuses."""

from pathlib import Path

import pytest
from cli_hands import MEM, NEXT, REV, T1, Stub, corrigenda, install, receipt, refused, revision, search


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Stub:
    return install(monkeypatch, search=search(), show=revision(), log=iter(()), complete=())


GLOBALS = (
    "--project",
    "ap",
    "--actor",
    "human:ana",
    "--database-url",
    "postgresql:///x",
    "--home",
    "/h",
    "--tenant",
    "t",
)


@pytest.mark.parametrize(
    "words",
    [
        [*GLOBALS, "memories", "retire", REV],
        ["memories", *GLOBALS, "retire", REV],
        ["memories", "retire", REV, *GLOBALS],
        ["memories", "retire", *GLOBALS, REV],
    ],
)
def test_global_options_stand_anywhere(gateway: Stub, words: list[str]) -> None:
    """A global option means the same before the noun, before the verb and after it."""
    assert corrigenda(*words).code == 0
    [(kind, how)] = gateway.opened
    assert kind == "gateway"
    assert how == {
        "database_url": "postgresql:///x",
        "home": "/h",
        "tenant": "t",
        "project": "ap",
        "actor": "human:ana",
        "create": True,
        "replay": True,
    }


def test_the_last_global_option_counts(gateway: Stub) -> None:
    """Where a global option is given twice, the one nearer to the end is meant."""
    corrigenda("--project", "one", "memories", "retire", REV, "--project", "two")
    assert gateway.opened[0][1]["project"] == "two"


def test_what_was_not_given_is_left_to_the_settings(gateway: Stub) -> None:
    """Without flags the command line passes None, so that the environment and the defaults decide."""
    corrigenda("memories", "retire", REV)
    assert set(gateway.opened[0][1].values()) == {None, True}


@pytest.mark.parametrize(
    "words",
    [
        ["status", "--server", "http://x"],
        ["status", "--exit-code"],
        ["memories", "revoke", REV, "--reason", "r", "--cascade"],
        ["memories", "remember", "x", "--depends-on", REV],
        ["memories", "remember", "x", "--evidence", "b3:00"],
        ["memories", "prune", "--older-than", "90d", "--idempotency-key", "k"],
        ["memories", "prune", "--older-than", "90d", "--agent", "a"],
        ["db", "wait"],
    ],
)
def test_what_is_not_built_is_refused(gateway: Stub, words: list[str]) -> None:
    """An option or verb that this version has not is exit 2, never ignored, and nothing is opened."""
    assert refused(corrigenda(*words), "error VALIDATION_FAILED: No such")
    assert gateway.opened == []


@pytest.mark.parametrize(
    "words",
    [
        ["correct", REV, "text", "--kind", "task"],
        ["correct", REV, "text", "--tag", "t"],
        ["correct", REV, "text", "--signal", "up"],
        ["contest", REV],
        ["contest", REV, NEXT, "--expected-active", REV],
        ["reject", REV, "--expected-active", REV],
        ["reject", REV, NEXT],
        ["promote", REV, NEXT],
        ["promote", REV, "--with", NEXT],
        ["upvote", REV],
    ],
)
def test_an_act_takes_what_is_its_own(gateway: Stub, words: list[str]) -> None:
    """RC-04, RC-39, LM-27, LM-28: a correction has no kind or tags, and each act of a review only its own words."""
    assert refused(corrigenda("memories", *words), "error VALIDATION_FAILED")
    assert gateway.opened == []


@pytest.mark.parametrize("form", ["xml", "table", "JSON", ""])
def test_formats_that_are_not_built_are_refused(gateway: Stub, form: str) -> None:
    """`-o` takes what its help lists, and nothing else."""
    assert refused(corrigenda("status", "-o", form), "--output")
    assert gateway.opened == []


@pytest.mark.parametrize("form", ["mem0", "langgraph", "JSONL"])
def test_only_what_is_built_is_imported(gateway: Stub, form: str) -> None:
    """`import --format` takes what its help lists, and nothing else."""
    assert refused(corrigenda("import", __file__, "--format", form), "--format")


@pytest.mark.parametrize("words", [["revoke", REV], ["unlink", MEM, "pep-57"]])
def test_a_reason_is_required_where_it_is_marked(gateway: Stub, words: list[str]) -> None:
    """`revoke` and `unlink` without --reason are exit 2."""
    assert refused(corrigenda("memories", *words), "--reason")
    assert gateway.opened == []


@pytest.mark.parametrize("name", ["CORRIGENDA_SERVER", "CORRIGENDA_TOKEN", "CORRIGENDA_TOKEN_FILE"])
def test_settings_that_are_not_built_are_refused(gateway: Stub, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A server or a token in the environment must not be passed over: it would narrow what the caller may do."""
    monkeypatch.setenv(name, "x")
    assert refused(corrigenda("status"), name)
    assert gateway.opened == []


def test_a_write_passes_how_it_is_to_be_done(gateway: Stub) -> None:
    """Reason, key, expected version and dry run reach the gateway under their own names."""
    how = ["--reason", "moved", "--idempotency-key", "k1", "--if-revision", "7", "--dry-run"]
    corrigenda("memories", "correct", REV, "Hamburg", *how)
    given = {"reason": "moved", "idempotency_key": "k1", "if_revision": 7, "dry_run": True}
    assert gateway.asked("correct") == ((REV, "Hamburg"), given)
    for verb in ("link", "unlink"):
        corrigenda("memories", verb, MEM, NEXT, *how)
        assert gateway.asked(verb) == ((MEM, NEXT), given)
    corrigenda("memories", "prune", "--older-than", "90d", "--reason", "spring", "--user", "ana")
    asked = {"include_untagged": False, "user": "ana", "reason": "spring", "dry_run": False}
    assert gateway.asked("prune") == (("90d",), asked)


def test_remember_passes_everything(gateway: Stub) -> None:
    """Repeatable options become tuples, and --id and --session go by their Python names."""
    options = "--kind note --tag a --tag b --source s --session c --id pep-1 --confidence 0.5"
    corrigenda("memories", "remember", "text", *options.split())
    (content,), named = gateway.asked("remember")
    assert content == "text"
    assert named["tags"] == ("a", "b") and named["sources"] == ("s",)
    assert (named["session"], named["memory_id"]) == ("c", "pep-1")
    assert (named["kind"], named["confidence"], named["dry_run"]) == ("note", "0.5", False)


def test_search_passes_its_filters(gateway: Stub) -> None:
    """Repeated kinds and tags, trust, k and the position to wait for reach the gateway."""
    corrigenda("memories", "search", "where?", "-k", "3", "--kind", "fact", "--tag", "a", "--min-position", "0.12")
    (query,), named = gateway.asked("search")
    assert query == "where?"
    assert (named["k"], named["kinds"], named["tags"], named["min_position"]) == (3, ("fact",), ("a",), "0.12")
    assert named["min_trust"] == "unverified"


def test_search_passes_moments_context_and_budget(gateway: Stub) -> None:
    """The facts of the context become one document, and times are passed on as the ledger writes them."""
    words = "--context directory=/srv/a=b --context projectId=x --as-of 2026-01-02T03:04:05+01:00 --at-position 1.7"
    corrigenda("memories", "search", "q", *words.split(), "--budget", "90", "--min-confidence", "0.5", "--why")
    _, named = gateway.asked("search")
    assert named["context"] == {"directory": "/srv/a=b", "projectId": "x"}
    assert (named["as_of"], named["at_position"]) == ("2026-01-02T02:04:05.000000Z", "1.7")
    assert (named["budget"], named["min_confidence"], named["why"]) == (90, "0.5", True)


def test_remember_reads_conditions_and_role_as_documents(gateway: Stub, tmp_path: Path) -> None:
    """`--applies` takes a file or the JSON itself, and so does `--institutional`."""
    file = tmp_path / "applies.json"
    file.write_text('{"match": "all", "conditions": []}\n', encoding="utf-8")
    corrigenda("memories", "remember", "x", "--applies", f"@{file}", "--institutional", '{"id": "é"}')
    _, named = gateway.asked("remember")
    assert (named["applies"], named["institutional"]) == ({"match": "all", "conditions": []}, {"id": "é"})


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["search", "q", "--context", "directory"], "FIELD=VALUE"),
        (["search", "q", "--context", "directory=a", "--context", "directory=b"], "twice"),
        (["search", "q", "--budget", "x"], "--budget"),
        (["search", "q", "--at-position", "soon"], "position"),
        (["remember", "x", "--applies", "{"], "not JSON"),
        (["remember", "x", "--applies", "@/nowhere/at/all"], "cannot read"),
    ],
)
def test_what_cannot_be_asked_or_said_is_refused(gateway: Stub, words: list[str], told: str) -> None:
    """A word that means nothing is exit 2, and nothing is opened."""
    assert refused(corrigenda("memories", *words), told)
    assert gateway.opened == []


@pytest.mark.parametrize(
    "words", [["show", MEM], ["history", MEM], ["lineage", MEM], ["explain", MEM], ["status"], ["log"]]
)
def test_readers_wait_for_a_position(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """Every reader takes --min-position and waits before it asks."""
    gateway = install(monkeypatch, **{words[0]: SystemExit(0)})
    corrigenda(*words, "--min-position", "12")
    assert gateway.calls[0] == ("reach", ("12",), {})


@pytest.mark.parametrize("position", ["-1", "1.2.3", "x", "٣"])
def test_a_position_is_a_number(gateway: Stub, position: str) -> None:
    """What is no SEQ or INCARNATION.SEQ is exit 2."""
    assert refused(corrigenda("status", f"--min-position={position}"), "min-position")


@pytest.mark.parametrize(
    ("given", "after", "before"),
    [("3..9", 2, 10), ("3..", 2, None), ("..9", None, 10), ("0..9", None, 10), ("5", 4, 6)],
)
def test_a_range_of_the_log(gateway: Stub, given: str, after: int | None, before: int | None) -> None:
    """A..B is inclusive at both ends; either may be left out."""
    assert corrigenda("log", given).code == 0
    named = gateway.asked("log")[1]
    assert (named["after"], named["before"]) == (after, before)


@pytest.mark.parametrize("given", ["9..3", "a..b", "..", "1..2..3", "1.5"])
def test_no_range(gateway: Stub, given: str) -> None:
    """What is no range, or ends before it begins, is exit 2."""
    assert refused(corrigenda("log", given))


def test_the_logs_own_actor(gateway: Stub) -> None:
    """`log --actor` is a filter; the same word before the verb says who acts."""
    corrigenda("--actor", "human:ana", "log", "--actor", "agent:bot", "--since", "2026-01-02T04:04:05.000006+01:00")
    named = gateway.asked("log")[1]
    assert (named["actor"], named["since"]) == ("agent:bot", T1)


@pytest.mark.parametrize(
    "moment",
    [
        *(
            "yesterday",
            "2026-01-02",
            "2026-01-02T03:04:05",
            "2026-W01-5T00:00:00Z",
            "20260102T030405Z",
            "2026-01-02T03Z",
        ),
        *("2026-01-02T23:59:60Z", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "٢٠٢٦-01-02T03:04:05Z"),
    ],
)
def test_a_time_is_of_rfc_3339(gateway: Stub, moment: str) -> None:
    """Without a zone, as a week date, compact, in a leap second, or outside the years 1 to 9999, it is exit 2."""
    assert refused(corrigenda("log", "--since", moment), "--since")
    assert refused(corrigenda("explain", MEM, "--at", moment), "--at")
    for kind in (["ledger"], ["corrections"], ["supersession", MEM]):
        assert refused(corrigenda("export", *kind, "--out", "x", "--as-of", moment), "--as-of")


def test_a_dry_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a dry run cannot be taken for a receipt."""
    install(monkeypatch, retire=receipt())
    assert corrigenda("memories", "retire", REV, "--dry-run").out.startswith("would be stored at 4")


def test_an_unknown_type_of_event(gateway: Stub) -> None:
    """`log --type` with what no event can be is exit 2 and lists what there is; nothing is opened."""
    assert refused(corrigenda("log", "--type", "revision.revoked"), "revision.revoked.v1", "memory.remembered.v1")
    assert gateway.opened == []
    assert corrigenda("log", "--type", "revision.revoked.v1").code == 0
