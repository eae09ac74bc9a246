"""The PEP history as a ledger, counted from its events: the excerpt that ships, and the whole where it can be had."""

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

import corrigenda
from gateway.imports import pep_rows
from ledger.memories import LineageLinked, LineageUnlinked, RevisionText
from tests.faults.ledger_hands import Document, Pair, read_ledger
from tests.house import assert_house_in_order
from tests.integration.conftest import Imported, opened
from tests.pep_histories import EXCERPT, LINKS, UNLINKS, lines_of, packed

WITHDRAWN = {("pep-314", "pep-243"), ("pep-426", "pep-425"), ("pep-639", "pep-566")}
STATED_TWICE = ("pep-345", "pep-314")


@pytest.fixture
def where(ledger_url: str, home: Path) -> Document:
    """A database and a home of this test's own."""
    return {"database_url": ledger_url, "home": str(home)}


# ---------------------------------------------------------------- what the ledger holds


def test_every_row_is_a_revision(imported: Imported) -> None:
    """Rows, lineages, first and later revisions, retirements and heads are as many as the history has."""
    told, history = imported.told, imported.history
    assert (told.types["memory.remembered"], told.types["revision.corrected"], told.types["memory.retired"]) == (
        history.remembered,
        history.corrected,
        history.retired,
    )
    assert len(told.states) == history.lineages
    assert sum(len(state.revisions) for state in told.states.values()) == history.rows
    heads = sum(state.head is not None for state in told.states.values())
    assert (heads, history.lineages - heads) == (history.heads, history.lineages - history.heads)


def test_the_report_counts_what_was_stored(imported: Imported) -> None:
    """The report says what the ledger says, and that no link is left waiting."""
    report, told = imported.report, imported.told
    assert (report.stored, report.unchanged, report.rejected) == (imported.history.rows, 0, 0)
    assert (report.links, report.unlinks, report.waiting) == (LINKS, UNLINKS, 0)
    assert report.position == len(told.events) - 1


def test_links_are_written_to_both_streams(imported: Imported) -> None:
    """51 links and 4 withdrawals, each in two streams, of 50 edges of which 47 stand; one was stated twice."""
    told = imported.told
    assert (told.types["lineage.linked"], told.types["lineage.unlinked"]) == (2 * LINKS, 2 * UNLINKS)
    stated, withdrawn = told.edges(LineageLinked), told.edges(LineageUnlinked)
    assert len(stated) == 50
    assert {edge: count for edge, count in stated.items() if count != 2} == {STATED_TWICE: 4}
    assert withdrawn == dict.fromkeys({*WITHDRAWN, STATED_TWICE}, 2)
    assert told.live_edges == stated.keys() - WITHDRAWN
    assert len(told.live_edges) == 47


def test_a_withdrawn_link_names_the_row_that_withdrew_it(imported: Imported) -> None:
    """The reason of every link and withdrawal names a row of the file."""
    events = [(item.entry.envelope.facts, item.payload) for item in imported.told.events]
    reasons = [
        getattr(payload, "reason", "")
        for facts, payload in events
        if isinstance(facts, LineageLinked | LineageUnlinked)
    ]
    assert len(reasons) == 110
    assert all(reason.startswith("Row ") and "supersedes PEP" in reason for reason in reasons)


def test_a_dead_row_is_retired_in_its_own_append(imported: Imported) -> None:
    """Each retirement stands directly behind the revision that it retires, under the same op."""
    envelopes = [item.entry.envelope for item in imported.told.events]
    pairs = [pair for pair in pairwise(envelopes) if pair[1].type == "memory.retired.v1"]
    assert len(pairs) == imported.history.retired
    for before, after in pairs:
        assert (before.stream, before.op) == (after.stream, after.op)
        assert before.type in ("memory.remembered.v1", "revision.corrected.v1")


def test_a_revision_has_its_rows_own_time_and_all_six_fields(imported: Imported) -> None:
    """Each lineage's contents and valid times are those of its rows, in the file's order, even where it goes back."""
    expected: dict[str, list[Pair]] = {}
    for row in pep_rows.read_rows(imported.history.path):
        assert isinstance(row, pep_rows.ParsedRow)
        expected.setdefault(row.name, []).append((row.content, row.valid_from))
    assert {
        name: [(item["content"], item["valid_from"]) for item in lineage["revisions"]]
        for name, lineage in imported.told.folded.items()
    } == expected
    text = imported.told.payload(max(state.standing.content_seq or 0 for state in imported.told.states.values()))
    assert isinstance(text, RevisionText)
    labels = [line.partition(":")[0] for line in text.content.splitlines()]
    assert labels[1:] == ["Status", "Type", "Replaces", "Superseded by", "Abstract"]


def test_lineages_are_followed_across_peps(imported: Imported) -> None:
    """PEP 241 leads through 314 and 345 to 566; PEP 600 supersedes 513, 571 and 599."""
    with opened(imported.where) as gateway:
        up = edges_of(gateway.lineage("pep-241", up=True))
        down = edges_of(gateway.lineage("pep-600", down=True))
    assert {("pep-314", "pep-241"), ("pep-345", "pep-314"), ("pep-566", "pep-345")} <= up
    assert {older for newer, older in down if newer == "pep-600"} == {"pep-513", "pep-571", "pep-599"}


def edges_of(lineage: corrigenda.Lineage) -> set[Pair]:
    """Return the links between memories in a graph."""
    return {(edge.source, edge.target) for edge in lineage.edges if edge.source.startswith("pep-")}


# ---------------------------------------------------------------- again, in parts, by another


def test_a_second_import_stores_nothing(imported: Imported) -> None:
    """Everything is there already: no event, and every lineage as before."""
    with opened(imported.where) as gateway:
        report = gateway.import_peps(imported.history.path)
    assert (report.stored, report.unchanged, report.rejected) == (0, imported.history.rows, 0)
    assert (report.links, report.unlinks) == (0, 0)
    again = read_ledger(imported.where)
    assert len(again.events) == len(imported.told.events)
    assert again.folded == imported.told.folded


def test_another_actor_does_not_store_a_row_again(imported: Imported) -> None:
    """A row's key is the row's: whoever imports it, it is stored once."""
    with opened(imported.where, actor="human:somebody-else") as gateway:
        report = gateway.import_peps(imported.history.path)
    assert (report.stored, report.links, report.unlinks) == (0, 0, 0)
    assert len(read_ledger(imported.where).events) == len(imported.told.events)


def test_a_cut_that_was_imported_first_makes_no_difference(imported: Imported, where: Document, tmp_path: Path) -> None:
    """Whole histories of every third PEP, then the whole file: the same states as from the whole file alone."""
    cut = tmp_path / "cut.jsonl.gz"
    good = (row for row in pep_rows.read_rows(imported.history.path) if isinstance(row, pep_rows.ParsedRow))
    rows = [row for row in good if row.pep % 3]
    packed(cut, [row.line + b"\n" for row in rows])
    with opened(where) as gateway:
        first = gateway.import_peps(cut)
        second = gateway.import_peps(imported.history.path)
    assert 0 < first.stored == len(rows) < imported.history.rows
    assert first.waiting > 0
    assert first.stored + second.stored == second.unchanged + second.stored == imported.history.rows
    assert (first.links + second.links, first.unlinks + second.unlinks) == (LINKS, UNLINKS)
    told = read_ledger(where)
    assert told.folded == imported.told.folded
    assert told.types == imported.told.types
    assert_house_in_order(where["database_url"], Path(where["home"]))


# ---------------------------------------------------------------- bad files


@pytest.mark.parametrize("how", ["cut in the middle", "cut at its end", "not gzip", "empty", "damaged"])
def test_a_file_that_is_not_whole_stores_nothing(where: Document, tmp_path: Path, how: str) -> None:
    """Exit 2, one paragraph that says that nothing was stored, and no event more than before."""
    whole = EXCERPT.read_bytes()
    middle = len(whole) // 2
    bad = {
        "cut in the middle": whole[:middle],
        "cut at its end": whole[:-1],
        "not gzip": gzip.decompress(whole),
        "empty": b"",
        "damaged": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
    }[how]
    path = tmp_path / "bad.jsonl.gz"
    path.write_bytes(bad)
    with opened(where) as gateway:
        gateway.remember("something to count from")
        before = len(read_ledger(where).events)
        with pytest.raises(corrigenda.InvalidInputError) as refused:
            gateway.import_peps(path)
    assert (refused.value.code, refused.value.exit_code) == ("VALIDATION_FAILED", 2)
    assert "nothing was stored" in refused.value.message and "\n" not in refused.value.message
    assert len(read_ledger(where).events) == before


BAD_ROWS = {
    "not JSON": b"PEP 7\n",
    "cut": b'{"at": 1, "pep": 7\n',
    "another field": b'{"at": 1, "pep": 7, "mood": "good"}\n',
    "not UTF-8": b'{"at": 1, "pep": 7, "title": "\xff"}\n',
    "nothing": b"\n",
}


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_bad_row_stops_the_import_before_it(where: Document, tmp_path: Path, bad: str) -> None:
    """With `stop`, rows before the bad one are stored, it and those behind it are not, and its number is named."""
    lines = lines_of(EXCERPT)[:40]
    path = packed(tmp_path / "bad.jsonl.gz", [*lines[:25], BAD_ROWS[bad], *lines[25:]])
    with opened(where) as gateway:
        report = gateway.import_peps(path)
    assert (report.stored, report.rejected) == (25, 1)
    assert [(item.row, item.outcome, item.code) for item in report.items] == [(26, "rejected", "VALIDATION_FAILED")]
    assert "row 26" in (report.items[0].message or "")
    assert revisions(where) == 25
    assert_house_in_order(where["database_url"], Path(where["home"]))


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_bad_row_is_passed_over_with_skip(where: Document, tmp_path: Path, bad: str) -> None:
    """With `skip`, all other rows are stored, and each bad one is named."""
    lines = lines_of(EXCERPT)[:40]
    path = packed(tmp_path / "bad.jsonl.gz", [BAD_ROWS[bad], *lines[:25], BAD_ROWS[bad], *lines[25:]])
    with opened(where) as gateway:
        report = gateway.import_peps(path, on_error="skip")
    assert (report.stored, report.rejected) == (40, 2)
    assert [item.row for item in report.items] == [1, 27]
    assert revisions(where) == 40


def test_a_mended_file_is_imported_on(where: Document, tmp_path: Path) -> None:
    """After a stop, the mended file stores exactly what is missing."""
    lines = lines_of(EXCERPT)[:40]
    with opened(where) as gateway:
        gateway.import_peps(packed(tmp_path / "bad.jsonl.gz", [*lines[:25], b"?\n", *lines[26:]]))
        report = gateway.import_peps(packed(tmp_path / "mended.jsonl.gz", lines))
    assert (report.stored, report.unchanged, report.rejected) == (15, 25, 0)
    assert revisions(where) == 40


def test_an_unknown_way_to_go_on_is_refused(where: Document) -> None:
    """`on_error` is stop or skip; anything else is refused before anything is read."""
    with opened(where) as gateway, pytest.raises(corrigenda.InvalidInputError) as refused:
        gateway.import_peps(EXCERPT, on_error="ignore")
    assert refused.value.code == "VALIDATION_FAILED"


# ---------------------------------------------------------------- beside what people wrote


@pytest.fixture
def in_the_way(where: Document, tmp_path: Path) -> Path:
    """Forty rows, and a memory of another kind where the eleventh belongs; the thirtieth cannot be read."""
    lines = lines_of(EXCERPT)[:40]
    lines[29] = b"?\n"
    path = packed(tmp_path / "some.jsonl.gz", lines)
    rows = [row for row in pep_rows.read_rows(path) if isinstance(row, pep_rows.ParsedRow)]
    assert rows[10].place == 1
    with opened(where) as gateway:
        gateway.remember("a rule of the house", kind="procedure", memory_id=rows[10].name)
        gateway.retire(rows[10].name)
    return path


def test_a_row_that_the_ledger_refuses_stops_the_import(where: Document, in_the_way: Path) -> None:
    """With `stop`, a row that is good in itself and refused ends the import just as a bad one does."""
    with opened(where) as gateway:
        report = gateway.import_peps(in_the_way)
    assert [(item.row, item.code) for item in report.items] == [(11, "INVALID_INPUT")]
    assert (report.stored, report.rejected) == (10, 1)
    assert revisions(where) == 1 + 10
    assert_house_in_order(where["database_url"], Path(where["home"]))


def test_refused_and_bad_rows_are_told_in_the_order_of_the_file(where: Document, in_the_way: Path) -> None:
    """With `skip`, all other rows are stored, and what was refused is told by row."""
    with opened(where) as gateway:
        report = gateway.import_peps(in_the_way, on_error="skip")
    numbers = [item.row for item in report.items]
    assert {11, 30} <= set(numbers) and numbers == sorted(numbers)
    assert report.stored + report.rejected == 40
    assert revisions(where) == 1 + report.stored


def revisions(where: Document) -> int:
    """Return how many revisions the ledger holds."""
    return sum(len(state.revisions) for state in read_ledger(where).states.values())
