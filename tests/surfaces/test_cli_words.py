"""What single words stand for: texts from files and stdin, and abbreviated ids."""

from pathlib import Path

import click
import pytest
from cli_hands import MEM, NEXT, REV, Stub, corrigenda, install, refused

import cli.options
from cli.memories import finding
from ledger.errors import failure


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Stub:
    return install(monkeypatch)


class TestTexts:
    """TEXT is the words themselves, or `-`, `@FILE` and `@@`."""

    def remembered(self, gateway: Stub, *words: str, stdin: bytes | None = None) -> str:
        answer = corrigenda("memories", "remember", *words, stdin=stdin)
        assert answer.code == 0, answer.err
        return gateway.asked("remember")[0][0]

    def test_stdin(self, gateway: Stub) -> None:
        """`-` reads stdin, without the last line break that a shell adds."""
        assert self.remembered(gateway, "-", stdin=b"two\nlines\n") == "two\nlines"

    def test_stdin_keeps_all_but_one_line_break(self, gateway: Stub) -> None:
        """Only one final line break is dropped."""
        assert self.remembered(gateway, "-", stdin=b"x\n\r\n") == "x\n"

    def test_file(self, gateway: Stub, tmp_path: Path) -> None:
        """`@FILE` reads a file."""
        (tmp_path / "text").write_text("grüße\n")
        assert self.remembered(gateway, f"@{tmp_path}/text") == "grüße"

    def test_literal_at(self, gateway: Stub) -> None:
        """`@@x` is the text `@x`."""
        assert self.remembered(gateway, "@@ana said so") == "@ana said so"

    def test_other_texts_are_untouched(self, gateway: Stub) -> None:
        """Blank, long and odd texts go to the gateway as they are: it decides."""
        assert self.remembered(gateway, "--", "--  \t") == "--  \t"

    def test_missing_file(self, gateway: Stub) -> None:
        """A file that is not there is exit 2, and the message says how to write a text with @."""
        assert refused(corrigenda("memories", "remember", "@/no/such"), "/no/such", "@@")

    def test_not_utf8(self, gateway: Stub) -> None:
        """Bytes that are not UTF-8 are refused, not mended."""
        assert refused(corrigenda("memories", "remember", "-", stdin=b"a\xffb"), "UTF-8", "byte 1")

    def test_stdin_only_once(self, gateway: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
        """A command cannot read two texts from one stdin."""
        again = [click.Argument(["more"], callback=cli.options.read_text)]
        command = finding.search
        monkeypatch.setattr(command, "params", [*command.params, *again])
        assert refused(corrigenda("memories", "search", "-", "-", stdin=b"x"), "once")

    def test_bounded(self, gateway: Stub, tmp_path: Path) -> None:
        """No more than a megabyte is taken in, whatever a file holds."""
        with open(tmp_path / "big", "wb") as file:
            file.truncate(cli.options.TEXT_BYTES_MAX + 1)
        assert refused(corrigenda("memories", "remember", f"@{tmp_path}/big"), "bytes")


class TestPrefixes:
    """Our own ids may be abbreviated, callers' names never."""

    def test_unique(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A prefix that one id begins with stands for it."""
        gateway = install(monkeypatch, complete=(REV,))
        corrigenda("memories", "retire", "rev_01J9ZK")
        assert gateway.asked("complete")[0] == ("rev_01J9ZK",)
        assert gateway.asked("retire")[0] == (REV,)

    def test_ambiguous(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A prefix of several ids is exit 2 and lists them; nothing is done."""
        gateway = install(monkeypatch, complete=(REV, NEXT))
        assert refused(corrigenda("memories", "retire", "rev_01J9ZK"), REV, NEXT)
        assert [name for name, _, _ in gateway.calls] == ["complete", "close"]

    @pytest.mark.parametrize("name", ["pep-57", "rev_01j9z", "mem_short", MEM, "01J9ZKAAAA"])
    def test_names_are_not_completed(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        """A caller's name and a whole id are taken as they are."""
        gateway = install(monkeypatch, complete=(REV,))
        corrigenda("memories", "retire", name)
        assert gateway.asked("retire")[0] == (name,)

    def test_too_short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An abbreviation below six characters is exit 2 and says so; nothing is done."""
        gateway = install(monkeypatch, history=failure("MEMORY_NOT_FOUND", "none"))
        assert refused(corrigenda("memories", "retire", "rev_01M8"), "rev_01M8", "six characters")
        assert [name for name, _, _ in gateway.calls] == ["history", "close"]

    def test_a_name_like_a_short_id(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A caller who has named a memory `mem_1` is understood."""
        gateway = install(monkeypatch)
        assert corrigenda("memories", "retire", "mem_1").code == 0
        assert gateway.asked("retire")[0] == ("mem_1",)

    def test_both_ends_of_a_link(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each id of a command is completed by itself."""
        gateway = install(monkeypatch, complete=lambda prefix: (prefix.ljust(30, "0"),))
        corrigenda("memories", "link", "mem_01J9ZKA", "mem_01J9ZKB")
        assert gateway.asked("link")[0] == ("mem_01J9ZKA".ljust(30, "0"), "mem_01J9ZKB".ljust(30, "0"))
