"""The help, the version, and what is said of a misspelt command."""

import json
import re
import shlex
from typing import get_args

import click
import pytest
from cli_hands import corrigenda, refused

from cli.main import corrigenda as root
from gateway.shapes import fields


def verbs() -> list[tuple[list[str], click.Command]]:
    """Return every command that does something, with the words that name it."""
    nouns = [(name, root.get_command(click.Context(root), name)) for name in root.lazy]
    found: list[tuple[list[str], click.Command]] = []
    for name, noun in nouns:
        assert noun is not None
        below = noun.commands if isinstance(noun, click.Group) else {"": noun}
        found += [([word for word in (name, verb) if word], command) for verb, command in below.items()]
    return found


def shown(command: click.Command) -> list[str]:
    """Return the words behind `corrigenda` of each example of a command, up to a pipe or a redirection."""
    text = (command.epilog or "").replace("\\\n", " ")
    return re.findall(r"^ .*?corrigenda ((?:\"[^\"]*\"|\$\([^)]*\)|[^|<>\"\n])*)", text, re.MULTILINE)


def test_every_command_is_where_it_is_said_to_be() -> None:
    """Each lazy command loads, under its name, and its help begins as the list of commands says."""
    context = click.Context(root)
    for name, (_, _, help_line) in root.lazy.items():
        command = root.get_command(context, name)
        assert command is not None and command.name == name
        assert (command.help or "").splitlines()[0] == help_line


def test_every_verb_has_an_example() -> None:
    """Every command that does something shows how it is called."""
    assert [words for words, verb in verbs() if "Example" not in (verb.epilog or "")] == [["demo"], ["version"]]


def test_every_option_is_told() -> None:
    """Every option of every command says what it is for."""
    silent = [
        (words, option.name)
        for words, command in verbs()
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]
    assert silent == []


def test_every_example_can_be_typed() -> None:
    """Each example of a command is of that command or of one that is meant beside it, with options that there are."""
    examples = [line for _, command in verbs() for line in shown(command)]
    assert len(examples) > 70
    for line in examples:
        words = shlex.split(re.sub(r"\$\([^)]*\)", "X", line))
        name, command = max(
            (pair for pair in verbs() if words[: len(pair[0])] == pair[0]), key=lambda pair: len(pair[0])
        )
        _, left, _ = command.make_parser(click.Context(command)).parse_args(words[len(name) :])
        assert left == [], line
    assert not [line for line in examples if "'" in line]


def test_no_words_show_the_help() -> None:
    """`corrigenda` alone shows what there is, exit 0; a noun alone is a usage error."""
    assert corrigenda().code == 0 and "memories" in corrigenda().out
    assert refused(corrigenda("memories"), "Missing command")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["doctr"], "Did you mean doctor?"),
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


def test_the_help_names_what_an_option_may_be() -> None:
    """The allowed values of `remember` and `search` stand in their help, every one and no other."""
    for verb, option, allowed in (
        ("remember", "kind", fields.Kind),
        ("remember", "origin", fields.Origin),
        ("remember", "visibility", fields.Visibility),
        ("search", "kind", fields.Kind),
    ):
        told = " ".join(corrigenda("memories", verb, "--help").out.split())
        found = re.search(rf"--{option} [A-Z] [^:]+: ((?:\w+, )*\w+ or \w+)", told)
        assert found and tuple(re.split(", | or ", found[1])) == get_args(allowed), (verb, option)


def test_no_example_asks_for_a_kind_that_is_refused() -> None:
    """Each `--kind` in the examples of `memories` is one that there is."""
    shown = "".join(corrigenda("memories", verb, "--help").out for verb in ("remember", "search"))
    examples = re.findall(r"corrigenda memories .*--kind (\w+)", shown)
    assert examples and set(examples) <= set(get_args(fields.Kind))


@pytest.mark.parametrize(("verb", "word"), [("remember", "TEXT"), ("correct", "TEXT"), ("search", "QUERY")])
def test_the_help_says_where_a_text_may_come_from(verb: str, word: str) -> None:
    """Where stdin and a file may stand for a text, the help says so."""
    assert f"{word} may be - (stdin) or @FILE" in " ".join(corrigenda("memories", verb, "--help").out.split())
