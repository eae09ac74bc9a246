"""What people read: answers as text, columns, colours, and the bar beside long work."""

import json
from collections.abc import Callable

import pytest
from cli_hands import (
    MEM,
    NEXT,
    REV,
    T2,
    corrigenda,
    explanation,
    hit,
    install,
    item,
    receipt,
    revision,
    search,
    status,
    verify_report,
)

from cli import progress, text, views
from cli.context import Session
from gateway import replies


class TestTexts:
    """What people read."""

    @pytest.mark.parametrize("trust", ["verified", "unverified"])
    def test_a_hit_says_how_far_it_is_trusted(self, trust: str) -> None:
        """LM-02: every hit carries the word verified or unverified."""
        line = views.hits(search(hit(trust=trust))).splitlines()[1]
        assert line.split()[:3] == ["1", "0.831", trust]

    def test_nothing_found_is_said_aside(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without hits stdout is empty and stderr names the reason; `-q` is silent."""
        install(monkeypatch, search=search(empty_reason="headless"))
        answer = corrigenda("memories", "search", "q")
        assert (answer.code, answer.out, answer.err) == (0, "", "nothing found: headless\n")
        assert corrigenda("memories", "search", "q", "-q").err == ""

    def test_a_receipt(self) -> None:
        """A receipt tells the outcome, the position and the ids."""
        told = views.receipt(receipt(superseded=(REV,), revision_id=NEXT))
        assert told.splitlines()[0] == "stored at 4: memory.remembered.v1"
        assert [line.split()[0] for line in told.splitlines()[1:]] == ["memory", "revision", "superseded", "trace"]

    def test_a_dry_run(self) -> None:
        """A dry run cannot be taken for a receipt, whether it would have changed something or not."""
        assert views.receipt(receipt(), dry_run=True).startswith("dry run, nothing was stored; it would be at 4")
        assert views.receipt(receipt(events=()), dry_run=True).startswith("dry run; it would change nothing")

    def test_a_replayed_receipt(self) -> None:
        """A replay is told apart from a first answer."""
        assert "used before" in views.receipt(receipt(replayed=True))

    def test_history_is_one_block_per_revision(self) -> None:
        """Every revision is a block of its own, in the order of the answer."""
        items = (revision(version=1), revision(version=2, content=None))
        blocks = views.history(replies.History(memory_id=MEM, items=items, position=9, incarnation=0)).split("\n\n")
        assert [block.split("  ")[1] for block in blocks] == ["version 1", "version 2"]
        assert "no longer shown" in blocks[1]

    def test_an_explanation_names_the_successor_and_the_reason(self) -> None:
        """The story says what took its place, where the lineage stands, who acted and why."""
        story = views.explanation(explanation())
        assert f"It is superseded and unverified. {NEXT} took its place at {T2}." in story
        assert f"began with {REV}; the head is {NEXT}." in story
        assert "by human:ana" in story and "why: moved in May" in story
        assert f"{REV}: active, unverified → superseded, unverified" in story

    def test_an_explanation_without_a_head(self) -> None:
        """A headless lineage is told to serve nothing."""
        assert "no head now" in views.explanation(explanation(head=None))

    def test_one_line_per_event(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`log --oneline` is one line per event, in the order of the answer."""
        install(monkeypatch, log=iter([item(12), item(11)]))
        lines = corrigenda("log", "--oneline").out.splitlines()
        assert [line.split()[0] for line in lines] == ["12", "11"]

    def test_a_verification(self) -> None:
        """Each check has its line; the verdict stands last and does not hide the exit."""
        report = verify_report(
            ok=False, exit_code=10, chain={"status": "failed", "first_bad_position": 7, "expected": "a", "found": "b"}
        )
        lines = views.verification(report).splitlines()
        assert lines[2].split()[:2] == ["chain", "failed"] and "first at 7; expected a; found b" in lines[2]
        assert lines[-1] == "NOT OK: 12 events, ledger size 12; exit 10"

    def test_a_status(self) -> None:
        """One line for each part."""
        lines = views.status(status()).splitlines()
        assert lines[0].split()[0] == "ledger" and "size 12" in lines[0]
        assert len(lines) == 8


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
        """Only the last column is cut, and only to fit a terminal."""
        [row] = text.table([("id", "y" * 50)], columns=24).splitlines()
        assert text.width(row) == 24 and row.endswith("…")
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
        assert [line.split()[0] for line in lines] == ["imported", "imported", "indexed", "indexed"]
        assert "2/2 rows" in lines[1] and "1/2 items" in lines[3]

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
