"""The formats beside JSON: cells that no spreadsheet runs, YAML with the same data, names for other commands."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import formats
from tests.surfaces import cli_hands
from tests.surfaces.cli_hands import REV, corrigenda, refused

ITEMS = (
    cli_hands.revision(content='=HYPERLINK("x")', tags=("a", "b")),
    cli_hands.revision(content="two\nlines, \x1b[2J", version=2),
)


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> cli_hands.Stub:
    """Return a gateway that lists two memories."""
    return cli_hands.install(monkeypatch, iterate_memories=lambda **_: iter(ITEMS), show=ITEMS[0])


def test_csv_has_a_line_of_names_and_no_formulas() -> None:
    """A list in CSV has its fields' names and a line per item; a text that could be a formula begins with a quote."""
    done = corrigenda("memories", "list", "-o", "csv", "--fields", "memory_id,content,tags,confidence")
    assert [*csv.reader(io.StringIO(done.out))] == [
        ["memory_id", "content", "tags", "confidence"],
        [ITEMS[0].memory_id, '\'=HYPERLINK("x")', '["a", "b"]', ""],
        [ITEMS[1].memory_id, "two\\nlines, \\x1b[2J", '["profile"]', ""],
    ]


@given(st.text(), st.sampled_from(["=", "+", "-", "@", "\t", "\r", "\n", " =", "\u00a0=", "＝"]))
def test_no_stored_text_begins_a_formula(text: str, prefix: str) -> None:
    """Given any text behind what begins a formula, when it is a cell, then a quote comes first; a number has none."""
    assert formats.cell(prefix + text).startswith("'")
    assert formats.cell(-0.25) == "-0.25"


def test_names_are_what_other_commands_take() -> None:
    """`-o name` prints a list's revisions, and what a write made, a line each and nothing else."""
    assert corrigenda("memories", "list", "-o", "name").out == f"{REV}\n{REV}\n"
    assert corrigenda("memories", "remember", "x", "-o", "name").out == f"{REV}\n"
    assert refused(corrigenda("version", "-o", "name"), "name")


def test_fields_are_chosen_in_every_format() -> None:
    """`--fields` keeps the named fields in their order; an unknown one is exit 2 and names those that there are."""
    words = ("memories", "list", "--fields", "version,state")
    lines = corrigenda(*words, "-o", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"schema_version": 1, "version": 1, "state": "active"},
        {"schema_version": 1, "version": 2, "state": "active"},
    ]
    assert json.loads(corrigenda(*words, "-o", "json").out)["items"][1] == {"version": 2, "state": "active"}
    assert corrigenda(*words).out == "version\tstate\n1\tactive\n2\tactive\n"
    one = json.loads(corrigenda("memories", "show", REV, "--fields", "content", "-o", "json").out)
    assert one == {"schema_version": 1, "content": '=HYPERLINK("x")'}
    assert refused(corrigenda("memories", "list", "--fields", "contents", "-o", "json"), "contents", "memory_id")
    assert refused(corrigenda("memories", "show", REV, "--fields", ""), "field")


def test_yaml_streams_a_list_as_one_document() -> None:
    """`-o yaml` is one document with every text in quotes, in the order of JSON's."""
    out = corrigenda("memories", "list", "-o", "yaml", "--fields", "content,tags,scope,confidence,version").out
    assert out == (
        "schema_version: 1\n"
        "items:\n"
        '- content: "=HYPERLINK(\\"x\\")"\n'
        '  tags:\n    - "a"\n    - "b"\n'
        '  scope:\n    project: "ap"\n'
        "  confidence: null\n"
        "  version: 1\n"
        '- content: "two\\nlines, \\u001b[2J"\n'
        '  tags:\n    - "profile"\n'
        '  scope:\n    project: "ap"\n'
        "  confidence: null\n"
        "  version: 2\n"
        "next_cursor: null\n"
        "truncated: false\n"
    )


def test_yaml_quotes_what_could_be_read_as_something_else() -> None:
    """Texts and odd keys are in quotes, what is empty stands in brackets, and lists stand in lists."""
    said = {
        "on": "yes",
        "a b": {"": "null", "nested": [[1, []], {}, [{"inner": -0.5, "more": None}]]},
        "tags": ["- x", "#\u2028\U0001f600\U000e0001"],
        "empty": {},
    }
    assert "\n".join(formats.yaml(said)) == (
        '"on": "yes"\n"a b":\n  "": "null"\n  nested:\n'
        "    - - 1\n      - []\n    - {}\n    - - inner: -0.5\n        more: null\n"
        'tags:\n  - "- x"\n  - "#\\u2028\U0001f600\\U000e0001"\nempty: {}'
    )
