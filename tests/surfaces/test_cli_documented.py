"""What the documents tell people to type is there: every command, and every option that they show with it."""

import re
from pathlib import Path

import click
import pytest

from cli.main import corrigenda as root
from ledger.codec import EVENT_TYPES

DOCS = Path(__file__).parents[2] / "docs"
DUTIES = DOCS / "RETENTION.md"


def commands(text: str) -> list[str]:
    """Return what stands in a document's code spans as a command of ours."""
    return sorted(set(re.findall(r"`corrigenda ([a-z][^`]*)`", text)))


def resolved(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that the words name, and what is left of them."""
    found: click.Command = root
    while words and isinstance(found, click.Group):
        below = found.get_command(click.Context(found), words[0])
        assert below is not None, f"no command {words[0]}"
        found, words = below, words[1:]
    return found, words


@pytest.mark.parametrize("line", commands(DUTIES.read_text(encoding="utf-8")))
def test_a_command_that_a_duty_is_answered_with_exists(line: str) -> None:
    """Each command in the table of duties resolves to a verb, with the options that it is shown with."""
    command, rest = resolved(line.split())
    assert not isinstance(command, click.Group)
    options = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= options


def test_an_event_that_a_duty_is_answered_by_exists() -> None:
    """Each type of event in the table of duties is one that this version writes or reads."""
    named = set(re.findall(r"`([a-z]+\.[a-z]+\.v\d+)`", DUTIES.read_text(encoding="utf-8")))
    assert len(named) > 8
    assert named <= EVENT_TYPES.keys()
