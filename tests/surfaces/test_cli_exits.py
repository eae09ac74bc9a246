"""What a failure looks like: the registry's exit, one paragraph or one document on stderr, and no stored text."""

import json

import pytest
from cli_hands import MEM, REV, T1, corrigenda, install, item, refused, verify_report

from gateway.shapes.replies import upkeep as replies
from ledger.errors import REGISTRY, CorrigendaError, failure

# One code for each exit that the registry has.
BY_EXIT = {rule.exit: code for code, rule in reversed(REGISTRY.items())}


@pytest.mark.parametrize("code", sorted(REGISTRY))
def test_the_registry_says_the_exit(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Every code of the registry leaves with its own exit and its name on stderr, and nothing on stdout."""
    install(monkeypatch, retire=failure(code, "What was expected. What was found. What to do."))
    answer = corrigenda("memories", "retire", REV)
    assert (answer.code, answer.out) == (REGISTRY[code].exit, "")
    assert answer.err == f"error {code}: What was expected. What was found. What to do.\n"


@pytest.mark.parametrize("code", BY_EXIT.values())
@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_a_machine_gets_a_document(monkeypatch: pytest.MonkeyPatch, code: str, form: str) -> None:
    """With a machine format stderr is one JSON document with everything that the error knows."""
    error = CorrigendaError(code, "why", trace_id="op_1", retry_after_ms=250, position=7)
    install(monkeypatch, open=error)
    answer = corrigenda("-o", form, "status")
    assert answer.out == ""
    assert json.loads(answer.err) == {
        "schema_version": 1,
        "code": code,
        "message": "why",
        "retriable": REGISTRY[code].retriable,
        "retry_after_ms": 250,
        "details": {"position": 7},
        "trace_id": "op_1",
    }
    assert answer.code == REGISTRY[code].exit


@pytest.mark.parametrize("exit_code", [10, 11, 12, 13])
def test_an_integrity_error_knows_which_check_failed(monkeypatch: pytest.MonkeyPatch, exit_code: int) -> None:
    """INTEGRITY_BROKEN leaves with the exit of the check that failed."""
    install(monkeypatch, open=failure("INTEGRITY_BROKEN", "at 7", exit_code=exit_code))
    assert corrigenda("history", MEM).code == exit_code


@pytest.mark.parametrize("words", [["-o", "json", "status", "--bogus"], ["status", "--bogus", "--output=jsonl"]])
def test_a_usage_error_is_a_document_too(words: list[str]) -> None:
    """A command line that could not be parsed is reported in the format that it asked for."""
    answer = corrigenda(*words)
    assert answer.code == 2
    assert json.loads(answer.err)["code"] == "VALIDATION_FAILED"


def test_a_text_is_not_an_option() -> None:
    """What stands after `--` does not choose the format of an error."""
    assert corrigenda("memories", "retire", "--", "a", "-o", "json").err.startswith("error VALIDATION_FAILED")


def test_the_unexpected_tells_nothing_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that is not ours is exit 1 and one line with its kind and place; its message may quote stored text."""
    install(monkeypatch, retire=ValueError("DETAIL: user lives in Berlin"))
    answer = corrigenda("memories", "retire", REV)
    assert answer.code == 1
    assert answer.err.startswith("error UNEXPECTED: ValueError at cli_hands.py:")
    assert "Berlin" not in answer.err and answer.err.count("\n") == 1


@pytest.mark.parametrize("words", [["--traceback", "show", MEM], ["show", MEM, "--traceback"]])
def test_a_traceback_on_demand(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """`--traceback` shows where an error came from, and the exit stays."""
    install(monkeypatch, show=ValueError("DETAIL"))
    answer = corrigenda(*words)
    assert answer.code == 1
    assert "Traceback" in answer.err and "DETAIL" in answer.err
    assert "Run again" not in answer.err


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is exit 130, without a word."""
    gateway = install(monkeypatch, retire=KeyboardInterrupt())
    answer = corrigenda("memories", "retire", REV)
    assert (answer.code, answer.out, answer.err) == (130, "", "")
    assert gateway.calls[-1][0] == "close"


def test_a_message_is_one_inert_paragraph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a message holds, it stays on its line."""
    install(monkeypatch, retire=failure("NOT_CONFIGURED", "no project \x1b[2J\nerror OK: all fine"))
    assert corrigenda("memories", "retire", REV).err.count("\n") == 1


class TestReports:
    """A report that is not good is not exit 0, and is still printed whole."""

    @pytest.mark.parametrize("exit_code", [0, 10, 11, 12, 13, 14, 15])
    @pytest.mark.parametrize("form", ["text", "json", "jsonl"])
    def test_verify(self, monkeypatch: pytest.MonkeyPatch, exit_code: int, form: str) -> None:
        """`verify` leaves with its report's exit."""
        found = {"status": "failed", "first_bad_position": 7, "expected": "aa", "found": "bb"}
        report = verify_report(ok=not exit_code, exit_code=exit_code, **({"chain": found} if exit_code else {}))
        gateway = install(monkeypatch, verify=report)
        answer = corrigenda("verify", "3..9", "-o", form)
        assert (answer.code, answer.err) == (exit_code, "")
        named = gateway.asked("verify")[1]
        assert (named["first"], named["last"]) == (3, 9)
        assert "7" in answer.out if exit_code else "ok" in answer.out

    @pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 9)])
    def test_recover(self, monkeypatch: pytest.MonkeyPatch, ok: bool, code: int) -> None:
        """`recover` is exit 9 while something is parked."""
        done = replies.Recovery(
            ok=ok,
            replayed=2,
            skipped=0,
            parked=int(not ok),
            repaired=0,
            index={"action": "replayed"},
            claims=(),
            position=9,
            incarnation=0,
        )
        install(monkeypatch, recover=done)
        answer = corrigenda("recover", "-o", "json")
        assert answer.code == code
        assert json.loads(answer.out)["replayed"] == 2

    @pytest.mark.parametrize(("rejected", "code"), [(0, 0), (1, 9)])
    def test_import(self, monkeypatch: pytest.MonkeyPatch, rejected: int, code: int) -> None:
        """`import` is exit 9 if a row was refused, and names the row."""
        bad = replies.ImportItem(row=17, outcome="rejected", code="VALIDATION_FAILED", message="no time")
        report = replies.ImportReport(
            stored=5,
            unchanged=0,
            rejected=rejected,
            items=(bad,) * rejected,
            links=1,
            unlinks=0,
            waiting=0,
            position=9,
            incarnation=0,
        )
        gateway = install(monkeypatch, import_peps=report)
        answer = corrigenda("import", __file__, "--format", "peps", "--on-error", "skip")
        assert answer.code == code
        assert ("row 17" in answer.out) == bool(rejected)
        args, named = gateway.asked("import_peps")
        assert (args, named["on_error"]) == ((__file__,), "skip")

    @pytest.mark.parametrize(("rejected", "code"), [(0, 0), (2_000, 9)])
    def test_import_of_lines(self, monkeypatch: pytest.MonkeyPatch, rejected: int, code: int) -> None:
        """`import` of lines is exit 9 if one was refused, and says how many more there are than it names."""
        bad = replies.ImportItem(row=17, outcome="rejected", code="VALIDATION_FAILED", message="no time")
        report = replies.Transfer(
            stored=5,
            unchanged=0,
            rejected=rejected,
            left_out=1,
            unverified=1,
            items=(bad,) if rejected else (),
            kind="jsonl",
            origin="example.org/log",
            size=9,
            root="ab",
            verified=False,
            position=9,
            incarnation=0,
        )
        gateway = install(monkeypatch, import_lines=report)
        answer = corrigenda("import", __file__, "--format", "jsonl")
        assert answer.code == code
        assert ("line 17" in answer.out and "and 1,999 more" in answer.out) == bool(rejected)
        args, named = gateway.asked("import_lines")
        assert (args, named["on_error"]) == ((__file__,), "stop")

    @pytest.mark.parametrize(
        "words", [("--format", "bundle"), ("--key", "k"), ("--format", "jsonl", "--key", "k"), ("--origin", "o"), ()]
    )
    def test_import_of_what_is_not_said(self, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
        """A bundle needs a key, lines take none, and a name that does not say what a file is needs a format: exit 2."""
        install(monkeypatch)
        assert refused(corrigenda("import", __file__, *words))

    @pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 7)])
    def test_doctor(self, monkeypatch: pytest.MonkeyPatch, ok: bool, code: int) -> None:
        """`doctor` is exit 7 if a check is not well, and says what mends it."""
        checks = [("python", True, "3.11", None), ("key", ok, "the key is unreadable", "chmod 0600 it")]
        install(monkeypatch, doctor=checks)
        answer = corrigenda("doctor")
        assert answer.code == code
        assert ("chmod" in answer.out) == (not ok)

    def test_doctor_without_a_database(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A database that does not answer is told at length once; in JSON every check keeps its message."""
        long = "The database does not answer. " * 6
        checks = [("database", False, long, None), ("schema", False, long, None), ("key", False, "no key", None)]
        install(monkeypatch, doctor=checks)
        lines = corrigenda("doctor").out.splitlines()
        assert lines[1].split("  ")[-1] == "not looked at: the database does not answer"
        assert long.strip() in lines[0] and lines[2].endswith("no key")
        assert [check["message"] for check in json.loads(corrigenda("doctor", "-o", "json").out)["items"]][1] == long

    def test_db_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`db check` says yes to people and true to programs."""
        install(monkeypatch, schema_check={"revision": "0001", "expected": "0001", "ok": True})
        assert corrigenda("db", "check").out.splitlines()[-1] == "ok: yes"
        assert json.loads(corrigenda("db", "check", "-o", "json").out)["ok"] is True

    def test_doctor_without_a_ledger(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What cannot be opened is a finding of the doctor, with the exit of its code."""
        install(monkeypatch, open=failure("LEDGER_UNVERIFIED", "The ledger key is missing. Put it back."))
        answer = corrigenda("doctor", "-o", "json")
        assert answer.code == 15
        assert json.loads(answer.out)["items"][0]["ok"] is False


def test_a_log_that_breaks_off_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the middle of a long answer still has its exit."""

    def broken():
        yield item(1)
        raise failure("UNAVAILABLE", "The database has gone.")

    install(monkeypatch, log=broken())
    answer = corrigenda("log", "--oneline")
    assert answer.code == 7
    assert T1[:19] in answer.out and "UNAVAILABLE" in answer.err


@pytest.mark.parametrize("words", [["-o", "json"], ["--home", "/h"], ["--database-url", "x"], ["--project", "p"]])
def test_the_demo_takes_no_ledger(words: list[str]) -> None:
    """`demo` makes everything anew; an option that it would have to ignore is exit 2."""
    assert corrigenda("demo", *words).code == 2
