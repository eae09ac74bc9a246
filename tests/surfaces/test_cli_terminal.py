"""What a terminal makes of texts: columns, escapes, colours, and the bar beside long work."""

import json
import re
from collections.abc import Callable

import pytest
from cli_hands import (
    MEM,
    corrigenda,
    install,
    revision,
    verify_report,
)

from cli import progress, text
from cli.context import Session


class TestColumns:
    """Tables are aligned by what a terminal shows, not by code points."""

    def test_wide_and_combining_characters(self) -> None:
        """Wide characters take two columns, combining ones none."""
        assert [text.width(word) for word in ("abc", "日本", "e\u0301", "👍")] == [3, 4, 1, 2]

    def test_alignment(self) -> None:
        """The next column begins at the same place in every row."""
        rows = text.table([("日本", "x"), ("a", "x"), ("abcdef", "x")]).splitlines()
        assert {text.width(row) for row in rows} == {9}

    def test_cutting(self) -> None:
        """A label is cut to columns, and a wide character is not cut in half; a table cuts nothing."""
        assert text.clip("y" * 50, 24) == "y" * 23 + "…"
        assert text.clip("日本語", 4) == "日…"
        assert text.table([("id", "y" * 50)]).endswith("y" * 50)

    def test_ordinary_text_is_untouched(self) -> None:
        """Letters of every script and joined emoji are shown as they are."""
        for kept in ("grüße", "שלום", "日本語", "👩‍👩‍👧", "می‌خواهم", "a\\b"):
            assert text.inert(kept) == kept

    def test_escapes(self) -> None:
        """An active character is spelt out, so that it can be seen."""
        assert text.inert("a\nb\x1b\u202e\U000e0041\ud800") == "a\\nb\\x1b\\u202e\\U000e0041\\ud800"


class TestColours:
    """Colours only where they are wanted."""

    @pytest.fixture(autouse=True)
    def history(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        install(monkeypatch, show=revision())

    def test_a_pipe_has_none(self) -> None:
        """Piped text carries no escape sequences."""
        assert "\x1b" not in corrigenda("show", MEM).out

    def test_always(self) -> None:
        """`--color always` colours a pipe too."""
        assert "\x1b[" in corrigenda("show", MEM, "--color", "always").out

    def test_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """FORCE_COLOR colours, NO_COLOR outweighs it, and the flag outweighs both."""
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert "\x1b[" in corrigenda("show", MEM).out
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in corrigenda("show", MEM).out
        assert "\x1b[" in corrigenda("show", MEM, "--color", "always").out


class TestProgress:
    """The bar beside long work."""

    def test_a_line(self) -> None:
        """A bar tells count, total, rate and the time left."""
        drawn = progress.line("importing peps", "rows", 1200, 2700, elapsed_s=4.0)
        assert drawn == "importing peps ██████████░░░░░░░░░░░░░░ 1,200/2,700 rows  300/s  0:05 left"

    def test_a_line_without_a_total(self) -> None:
        """Where the total is not known, the count and the rate are told."""
        assert progress.line("verified", "events", 1200, None, elapsed_s=2.0) == "verified 1,200 events  600/s"

    def test_nothing_at_all(self) -> None:
        """An empty piece of work divides by nothing."""
        assert progress.line("verified", "events", 0, 0, elapsed_s=0.0) == "verified 0 events  0/s"

    def test_phases(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A count that goes back begins the next phase, on a line of its own."""
        session = Session(progress=True)
        with progress.metered(session, ("imported", "rows"), ("indexed", "items")) as meter:
            for done in (1, 2, 1):
                meter.show(done, 2)
        lines = capsys.readouterr().err.splitlines()
        assert [line.split()[0] for line in lines] == ["imported", "imported", "indexed"]
        assert "2/2 rows" in lines[1] and "1/2 items" in lines[2]

    def test_off_a_terminal_nothing_is_said_twice(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Given the last count was drawn, then its line is the last one; else the end still draws it."""
        for counts in ((12,), (6, 12)):
            with progress.metered(Session(progress=True), ("verified", "events")) as meter:
                for done in counts:
                    meter.show(done, 12)
            lines = capsys.readouterr().err.splitlines()
            assert [re.findall(r"(\d+)/12 ", line) for line in lines] == [[str(done)] for done in counts]

    @pytest.mark.parametrize(("words", "seen"), [([], False), (["--progress"], True), (["--no-progress"], False)])
    def test_only_on_demand_in_a_pipe(self, monkeypatch: pytest.MonkeyPatch, words: list[str], seen: bool) -> None:
        """Without a terminal the bar is seen only with --progress, and never on stdout."""

        def verify(*, progress: Callable[[int, int], None], **range: object) -> dict[str, object]:
            progress(6, 12)
            return verify_report()

        install(monkeypatch, verify=verify)
        answer = corrigenda("verify", "-o", "json", *words)
        assert ("6/12 events" in answer.err) == seen
        json.loads(answer.out)
