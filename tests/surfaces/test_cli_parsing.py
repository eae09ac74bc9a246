"""What the command line makes of its words: global options, ids, texts, ranges, and what it refuses."""

import json
import logging

import click
import pytest
from cli_hands import MEM, NEXT, REV, T1, Stub, corrigenda, install, receipt, refused, revision, search

from cli.main import corrigenda as root


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
        ["verify", "--all"],
        ["log", "--follow"],
        ["history", MEM, "--patch"],
        ["explain", MEM, "--at", "3"],
        ["recover", "--only", "index"],
        ["memories", "revoke", REV, "--reason", "r", "--cascade"],
        ["memories", "remember", "x", "--hold"],
        ["memories", "remember", "x", "--predecessor", REV],
        ["memories", "link", MEM, NEXT, "--if-revision", "3"],
        ["memories", "remember", "x", "--subject", "s"],
        ["memories", "search", "q", "--as-of", T1],
        ["memories", "forget", REV],
        ["export", "supersession", MEM],
        ["db", "wait"],
    ],
)
def test_what_is_not_built_is_refused(gateway: Stub, words: list[str]) -> None:
    """An option or verb that this version has not is exit 2, never ignored, and nothing is opened."""
    assert refused(corrigenda(*words), "error VALIDATION_FAILED: No such")
    assert gateway.opened == []


@pytest.mark.parametrize("form", ["yaml", "csv", "wide", "name", "JSON", ""])
def test_formats_that_are_not_built_are_refused(gateway: Stub, form: str) -> None:
    """`-o` takes text, json and jsonl only."""
    assert refused(corrigenda("status", "-o", form), "--output")
    assert gateway.opened == []


@pytest.mark.parametrize("form", ["jsonl", "mem0", "bundle"])
def test_only_peps_are_imported(gateway: Stub, form: str) -> None:
    """`import --format` takes peps only."""
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


@pytest.mark.parametrize("moment", ["yesterday", "2026-01-02", "2026-01-02T03:04:05"])
def test_a_time_has_a_zone(gateway: Stub, moment: str) -> None:
    """A time without a zone names no moment: exit 2."""
    assert refused(corrigenda("log", "--since", moment), "--since")


class TestOpenings:
    """Who opens what: the commands that must answer on a broken chain never walk it."""

    @pytest.mark.parametrize("words", [["log"], ["status"], ["show", "3", "--raw"]])
    def test_bare(self, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
        """`log`, `status` and `show --raw` open bare and make nothing."""
        gateway = install(monkeypatch, log=iter(()), status=SystemExit(0), raw=b"{}")
        corrigenda(*words)
        assert [(kind, how["create"]) for kind, how in gateway.opened] == [("bare", False)]

    @pytest.mark.parametrize("words", [["verify"], ["doctor"], ["db", "url"], ["db", "check"], ["db", "current"]])
    def test_nothing_is_made(self, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
        """`verify`, `doctor` and the readers of `db` open bare and make nothing."""
        gateway = install(monkeypatch, open=SystemExit(0))
        corrigenda(*words)
        assert [(kind, how["create"]) for kind, how in gateway.opened] == [("bare", False)]

    @pytest.mark.parametrize(
        ("words", "replay"),
        [
            (["show", MEM], False),
            (["history", MEM], False),
            (["explain", MEM], False),
            (["lineage", MEM], False),
            (["recover"], False),
            (["memories", "search", "q"], True),
        ],
    )
    def test_readers_make_nothing(self, monkeypatch: pytest.MonkeyPatch, words: list[str], replay: bool) -> None:
        """A reader makes no ledger; only a search needs the index to have caught up."""
        gateway = install(monkeypatch, open=SystemExit(0))
        corrigenda(*words)
        assert [(kind, how["create"], how["replay"]) for kind, how in gateway.opened] == [("gateway", False, replay)]

    @pytest.mark.parametrize("words", [["memories", "remember", "x"], ["import", __file__, "--format", "peps"]])
    def test_writers_make_what_is_missing(self, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
        """The first write makes the ledger."""
        gateway = install(monkeypatch, open=SystemExit(0))
        corrigenda(*words)
        assert [(how["create"], how["replay"]) for _, how in gateway.opened] == [(True, True)]

    def test_recover_replays_by_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`recover` opens without start-up replay, or there would be nothing left to count."""
        gateway = install(monkeypatch, recover=SystemExit(0))
        corrigenda("recover", "--check-only")
        assert gateway.opened[0][1]["replay"] is False
        named = gateway.asked("recover")[1]
        assert (named["check_only"], named["dry_run"]) == (True, False)

    def test_the_gateway_is_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever happens, what was opened is closed."""
        gateway = install(monkeypatch, retire=RuntimeError("no"))
        assert corrigenda("memories", "retire", REV).code == 1
        assert gateway.calls[-1][0] == "close"


def test_every_command_is_where_it_is_said_to_be() -> None:
    """Each lazy command loads, under its name, and its help begins as the list of commands says."""
    context = click.Context(root)
    for name, (_, _, help_line) in root.lazy.items():
        command = root.get_command(context, name)
        assert command is not None and command.name == name
        assert (command.help or "").splitlines()[0] == help_line


def test_every_verb_has_an_example() -> None:
    """Every command that does something shows how it is called."""
    nouns = [root.get_command(click.Context(root), name) for name in root.lazy]
    verbs = [verb for noun in nouns for verb in getattr(noun, "commands", {"": noun}).values()]
    assert [verb.name for verb in verbs if "Example" not in (verb.epilog or "")] == ["demo", "version"]


def test_no_words_show_the_help() -> None:
    """`corrigenda` alone shows what there is, exit 0; a noun alone is a usage error."""
    assert corrigenda().code == 0 and "memories" in corrigenda().out
    assert refused(corrigenda("memories"), "Missing command")


def test_a_dry_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a dry run cannot be taken for a receipt."""
    install(monkeypatch, retire=receipt())
    assert corrigenda("memories", "retire", REV, "--dry-run").out.startswith("would be stored at 4")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["statsu"], "Did you mean status?"),
        (["memories", "serch"], "Did you mean search?"),
        (["db", "chek"], "Did you mean check?"),
        (["remember", "x"], "Did you mean memories remember?"),
    ],
)
def test_a_misspelt_command(words: list[str], meant: str) -> None:
    """What was probably meant is named, whatever the noun, and also where the noun was left out."""
    assert refused(corrigenda(*words), "No such command", meant)


def test_no_near_command() -> None:
    """Where nothing is near, nothing is suggested."""
    assert "Did you mean" not in corrigenda("xyzzy").err


@pytest.mark.parametrize("words", [["--version"], ["version"]])
def test_the_version(words: list[str]) -> None:
    """`--version` is the same as `version`, in every format."""
    assert corrigenda(*words).out.startswith("corrigenda ")
    assert set(json.loads(corrigenda(*words, "-o", "json").out)) == {"schema_version", "version"}


def test_the_help_tells_of_abbreviations() -> None:
    """The help of the root says how ids may be abbreviated."""
    told = " ".join(corrigenda("--help").out.split())
    assert "abbreviated to six characters or more after the underscore" in told


@pytest.mark.parametrize("noun", ["db", "memories"])
def test_help_is_not_cut(noun: str) -> None:
    """The list of verbs has their first sentences whole."""
    assert "..." not in corrigenda(noun, "--help").out


def test_an_unknown_type_of_event(gateway: Stub) -> None:
    """`log --type` with what no event can be is exit 2 and lists what there is; nothing is opened."""
    assert refused(corrigenda("log", "--type", "revision.revoked"), "revision.revoked.v1", "memory.remembered.v1")
    assert gateway.opened == []
    assert corrigenda("log", "--type", "revision.revoked.v1").code == 0


@pytest.mark.parametrize(
    "words", [["memories", "remember", "x"], ["memories", "search", "x"], ["import", __file__, "--format", "peps"]]
)
def test_a_project_is_needed(gateway: Stub, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """Without a project these are exit 2 before anything is opened; the flag or the environment names it."""
    monkeypatch.delenv("CORRIGENDA_PROJECT")
    assert refused(corrigenda(*words), "error VALIDATION_FAILED", "--project", "CORRIGENDA_PROJECT")
    assert gateway.opened == []
    corrigenda(*words, "--project", "ap")
    assert [how["project"] for _, how in gateway.opened] == ["ap"]


@pytest.mark.parametrize(("word", "ours"), [("-q", logging.ERROR), ("-v", logging.INFO), ("-vv", logging.DEBUG)])
def test_only_our_own_loggers_tell_more(gateway: Stub, word: str, ours: int) -> None:
    """`-v` and `-vv` make our own modules talk, not the libraries under them."""
    names = ("", "cli", "corrigenda", "gateway", "ledger", "migrations", "projections")
    before = {name: logging.getLogger(name).level for name in names}
    try:
        corrigenda("log", word)
        assert logging.getLogger("projections.index.disk").getEffectiveLevel() == ours
        assert logging.getLogger("alembic.x").getEffectiveLevel() == max(ours, logging.WARNING)
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
