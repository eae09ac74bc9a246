"""What the documents tell people to type is there: every command, and every option that they show with it."""

import re
from pathlib import Path

import click
import pytest

from cli.main import corrigenda as root
from ledger.codec import EVENT_TYPES

ROOT = Path(__file__).parents[2]
DUTIES = ROOT / "docs" / "RETENTION.md"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(*documents: Path) -> list[str]:
    """Return what stands in the documents' code spans as a command of ours."""
    texts = (document.read_text(encoding="utf-8") for document in documents)
    return sorted({line for text in texts for line in re.findall(r"`corrigenda ([a-z][^`]*)`", text)})


def resolved(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that the words name, and what is left of them."""
    found: click.Command = root
    while words and isinstance(found, click.Group):
        below = found.get_command(click.Context(found), words[0])
        assert below is not None, f"no command {words[0]}"
        found, words = below, words[1:]
    return found, words


@pytest.mark.parametrize("line", commands(*DOCUMENTS))
def test_a_command_that_a_document_names_exists(line: str) -> None:
    """Each command in a document resolves, with the options that it is shown with; one without any may be a noun."""
    command, rest = resolved(line.split())
    options = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= options


@pytest.mark.parametrize("line", commands(DUTIES))
def test_a_command_that_a_duty_is_answered_with_does_something(line: str) -> None:
    """Each command in the table of duties is a whole one, and no noun alone."""
    assert not isinstance(resolved(line.split())[0], click.Group)


def test_an_event_that_a_duty_is_answered_by_exists() -> None:
    """Each type of event in the table of duties is one that this version writes or reads."""
    named = set(re.findall(r"`([a-z]+\.[a-z]+\.v\d+)`", DUTIES.read_text(encoding="utf-8")))
    assert len(named) > 8
    assert named <= EVENT_TYPES.keys()
