"""An import of the PEP history is planned from its rows alone: what is stored, retired, linked, refused."""

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from gateway.imports import excerpt, pep_rows, peps
from ledger.errors import CorrigendaError

HISTORY = Path(
    os.environ.get("CORRIGENDA_PEP_HISTORY")
    or Path(__file__).parents[2].parent / "shared" / "data" / "pep-history.jsonl.gz"
)

Made = dict[str, Any]  # Any: a row's JSON, wrong ones too
Write = Callable[..., Path]


def row(pep: int, /, **fields: Any) -> Made:  # Any: as above
    """Make one row as the file has it, a draft without links unless `fields` say otherwise."""
    made: Made = {"at": 1_000_000_000, "pep": pep, "title": f"Title {pep}", "status": "Draft"}
    made.update(type="Process", replaces=[], superseded_by=[], abstract="", changed=[])
    made.update(fields)
    return made


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that packs rows (or ready lines) into a file and returns its path."""

    def pack(*rows: Made | bytes, end: bytes = b"\n") -> Path:
        lines = [made if isinstance(made, bytes) else json.dumps(made).encode() for made in rows]
        path = tmp_path / "peps.jsonl.gz"
        path.write_bytes(gzip.compress(b"\n".join(lines) + end))
        return path

    return pack


def acts(steps: Iterable[peps.Step]) -> list[str]:
    """Write steps as short words: `pep-3`, `pep-3 dead`, `link 3 2`, `unlink 3 2`, `bad 7`."""
    words: list[str] = []
    for step in steps:
        match step:
            case peps.Store():
                words.append(step.row.name + " dead" * step.retire)
            case peps.Link() | peps.Unlink():
                words.append(step.key.act)
            case pep_rows.BadRow():
                words.append(f"bad {step.number}")
    return words


def planned(path: Path) -> list[str]:
    """Return the plan of a file in short words."""
    return acts(peps.plan(pep_rows.read_rows(path)))


# Rows


def test_a_row_is_a_revision_of_the_lineage_with_the_name_of_its_pep(write: Write) -> None:
    """A row names its lineage, its time and all six claim fields."""
    [only] = pep_rows.read_rows(
        write(
            row(
                241,
                title="Métadonnées “1”",
                status="Final",
                replaces=[3, 2],
                superseded_by=[314],
                abstract="Why.",
            )
        )
    )
    assert isinstance(only, pep_rows.ParsedRow)
    assert (only.name, only.number, only.place, only.occurrence) == ("pep-241", 1, 1, 1)
    assert only.valid_from == "2001-09-09T01:46:40.000000Z"
    assert only.content == (
        "PEP 241: Métadonnées “1”\nStatus: Final\nType: Process\n"
        "Replaces: PEP 3, PEP 2\nSuperseded by: PEP 314\nAbstract: Why."
    )


def test_empty_fields_are_shown_as_empty(write: Write) -> None:
    """A claim without type, links and abstract still names those fields, without trailing blanks."""
    [only] = pep_rows.read_rows(write(row(1, type="")))
    assert isinstance(only, pep_rows.ParsedRow)
    assert only.content == "PEP 1: Title 1\nStatus: Draft\nType:\nReplaces: none\nSuperseded by: none\nAbstract:"


@pytest.mark.parametrize("status", ["Rejected", "Withdrawn", "Superseded", "Replaced"])
def test_a_dead_status_retires_what_its_row_stored(write: Write, status: str) -> None:
    """Each of the four dead statuses, and no other, asks for the head to be retired."""
    assert planned(write(row(1, status=status))) == ["pep-1 dead"]


@pytest.mark.parametrize("status", ["", "Final", "Deferred", "rejected", "Withdrawal", "Rejected "])
def test_any_other_status_lives(write: Write, status: str) -> None:
    """A status that is not letter for letter one of the four retires nothing."""
    assert planned(write(row(1, status=status))) == ["pep-1"]


def test_order_is_the_order_of_the_file(write: Write) -> None:
    """Times that go back or repeat change nothing in the order of a lineage's rows."""
    path = write(row(1, at=900, title="a"), row(1, at=100, title="b"), row(1, at=100, title="c"))
    rows = [read for read in pep_rows.read_rows(path) if isinstance(read, pep_rows.ParsedRow)]
    assert [(read.title, read.place) for read in rows] == [("a", 1), ("b", 2), ("c", 3)]


def test_equal_lines_are_told_apart_by_their_count(write: Write) -> None:
    """The second line of equal bytes has the same line and another key."""
    first, _, second = peps.plan(pep_rows.read_rows(write(row(1), row(2), row(1))))
    assert isinstance(first, peps.Store)
    assert isinstance(second, peps.Store)
    assert first.key.line == second.key.line
    assert [first.key.occurrence, second.key.occurrence] == [1, 2]


# Links


@pytest.mark.parametrize("newer_first", [True, False])
def test_either_end_states_an_edge(write: Write, newer_first: bool) -> None:
    """`replaces` of the newer and `superseded_by` of the older state the same edge, and it is linked once."""
    newer, older = row(2, replaces=[1]), row(1, superseded_by=[2])
    rows = [newer, older] if newer_first else [older, newer]
    assert [act for act in planned(write(*rows)) if "pep" not in act] == ["link 2 1"]


def test_several_into_one_and_one_into_several(write: Write) -> None:
    """One PEP may replace several and be superseded by several."""
    path = write(row(1), row(2), row(5, replaces=[1, 2]), row(6), row(5, replaces=[1, 2], superseded_by=[6, 2]))
    assert planned(path) == [
        "pep-1", "pep-2", "pep-5", "link 5 1", "link 5 2", "pep-6", "pep-5", "link 2 5", "link 6 5",
    ]  # fmt: skip


def test_a_link_waits_for_its_target(write: Write) -> None:
    """An edge stated before its other end arrives is linked on arrival, by the row that stated it."""
    steps = list(peps.plan(pep_rows.read_rows(write(row(1, superseded_by=[2]), row(3), row(2), row(2, title="b")))))
    assert acts(steps) == ["pep-1", "pep-3", "pep-2", "link 2 1", "pep-2"]
    link = steps[3]
    assert isinstance(link, peps.Link)
    assert (link.row.number, link.waited) == (1, True)


def test_a_link_to_what_never_comes_waits_for_ever(write: Write) -> None:
    """Edges to a PEP outside the file, and of a PEP to itself, are never linked and can be counted."""
    plan = peps.plan(pep_rows.read_rows(write(row(1, replaces=[1], superseded_by=[99]))))
    assert acts(plan) == ["pep-1"]
    assert plan.waiting == ((1, 1), (99, 1))


def test_an_edge_withdrawn_while_it_waits_is_never_linked(write: Write) -> None:
    """What was dropped before the target came leaves no act, and may be stated anew."""
    path = write(row(1, superseded_by=[2]), row(1), row(2), row(1, superseded_by=[2]))
    plan = peps.plan(pep_rows.read_rows(path))
    assert acts(plan) == ["pep-1", "pep-1", "pep-2", "pep-1", "link 2 1"]
    assert plan.waiting == ()


def test_a_later_row_withdraws_an_edge_and_a_still_later_one_states_it_again(write: Write) -> None:
    """The reason of an unlink names its row; each of the three acts has a key of its own."""
    path = write(row(1), row(2, replaces=[1]), row(2), row(1, superseded_by=[2]))
    steps = list(peps.plan(pep_rows.read_rows(path)))
    assert acts(steps) == ["pep-1", "pep-2", "link 2 1", "pep-2", "unlink 2 1", "pep-1", "link 2 1"]
    unlink = steps[4]
    assert isinstance(unlink, peps.Unlink)
    assert unlink.reason == (
        "Row 3 of the imported file (claim 2 of PEP 2, 2001-09-09T01:46:40.000000Z) "
        "no longer states that PEP 2 supersedes PEP 1."
    )
    assert len({step.key for step in steps if not isinstance(step, pep_rows.BadRow)}) == len(steps)


def test_an_edge_stands_while_the_other_end_states_it(write: Write) -> None:
    """An edge that both ends state is withdrawn only by the row that drops the last statement."""
    path = write(row(1, superseded_by=[2]), row(2, replaces=[1]), row(2), row(1))
    assert planned(path) == ["pep-1", "pep-2", "link 2 1", "pep-2", "pep-1", "unlink 2 1"]


def test_a_dead_status_leaves_the_links(write: Write) -> None:
    """Links are independent of lifecycle: a dead claim still states its edges."""
    path = write(row(1), row(2, replaces=[1]), row(2, replaces=[1], status="Withdrawn"))
    assert planned(path) == ["pep-1", "pep-2", "link 2 1", "pep-2 dead"]


# A part first, the whole later


def test_whole_histories_cut_from_a_file_give_the_keys_of_the_file(write: Write) -> None:
    """What a cut plans for its PEPs is a part of what the whole file plans, with the same keys."""
    rows = [row(1), row(9), row(2, replaces=[1, 9]), row(2, replaces=[9]), row(1, superseded_by=[2]), row(1)]
    cut = keys(peps.plan(pep_rows.read_rows(write(*(made for made in rows if made["pep"] != 9)))))
    whole = keys(peps.plan(pep_rows.read_rows(write(*rows))))
    assert [key for key in whole if key in set(cut)] == cut
    assert {key.act for key in whole} - {key.act for key in cut} == {"link 2 9"}


def test_a_longer_file_starts_with_the_keys_of_the_shorter(write: Write) -> None:
    """Rows added at the end leave the keys before them as they were."""
    rows = [row(1, superseded_by=[2]), row(2), row(1), row(2, replaces=[1])]
    shorter = keys(peps.plan(pep_rows.read_rows(write(*rows[:3]))))
    longer = keys(peps.plan(pep_rows.read_rows(write(*rows))))
    assert longer[: len(shorter)] == shorter


def test_a_row_behind_a_stored_one_is_settled(write: Write) -> None:
    """Stored rows and the earlier ones of their lineages are not stored again; later ones still are."""
    path = write(row(1, title="a"), row(2), row(1, title="b"), row(1, title="c"))
    rows = [read for read in pep_rows.read_rows(path) if isinstance(read, pep_rows.ParsedRow)]
    assert peps.settled(rows, {3}) == {1, 3}


def keys(steps: Iterable[peps.Step]) -> list[peps.KeyMaterial]:
    """Return the key material of every act."""
    return [step.key for step in steps if not isinstance(step, pep_rows.BadRow)]


# Bad files and bad rows


def refused(path: Path, **limits: int) -> str:
    """Return the message with which a file is refused as a whole."""
    with pytest.raises(CorrigendaError) as caught:
        pep_rows.read_rows(path, **limits)
    assert caught.value.code == "VALIDATION_FAILED"
    assert caught.value.exit_code == 2
    return caught.value.message


@pytest.mark.parametrize("data", [b"", b'{"pep": 1}\n', b"\x1f"])
def test_a_file_that_is_not_gzip_is_refused(tmp_path: Path, data: bytes) -> None:
    """Anything that does not start as gzip does is refused before a row is read."""
    path = tmp_path / "peps.jsonl.gz"
    path.write_bytes(data)
    assert "packed with gzip" in refused(path)


def test_a_file_cut_anywhere_is_refused(write: Write) -> None:
    """However much of the end is missing, down to the two magic bytes, no row is handed out."""
    path = write(row(1), row(2))
    whole = path.read_bytes()
    for size in range(2, len(whole)):
        path.write_bytes(whole[:size])
        assert "cut or damaged" in refused(path)


def test_a_damaged_file_is_refused(write: Write) -> None:
    """A changed byte in the packed data, or bytes after it, refuse the whole file."""
    path = write(row(1), row(2))
    whole = path.read_bytes()
    for damaged in (whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:], whole + b"more"):
        path.write_bytes(damaged)
        assert "cut or damaged" in refused(path)


def test_a_file_that_unpacks_to_too_much_is_refused(write: Write) -> None:
    """The bound holds to the byte."""
    path = write(row(1))
    size = len(gzip.decompress(path.read_bytes()))
    assert len(list(pep_rows.read_rows(path, bytes_max=size))) == 1
    assert "found more" in refused(path, bytes_max=size - 1)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A missing file and a folder are refused as input, not as a failure of the program."""
    assert "cannot be read" in refused(tmp_path / "missing.jsonl.gz")
    assert "cannot be read" in refused(tmp_path)


BAD_LINES = {
    "empty line": b"",
    "cut line": json.dumps(row(1)).encode()[:-9],
    "not an object": b"[1]",
    "two objects": json.dumps(row(1)).encode() + b"{}",
    "not UTF-8": json.dumps(row(1, title="#")).encode().replace(b"#", b"\xff"),
    "lone surrogate": json.dumps(row(1, title="\ud800")).encode(),
    "missing field": json.dumps({key: value for key, value in row(1).items() if key != "type"}).encode(),
    "unknown field": json.dumps(row(1, secret="x")).encode(),
    "NUL": json.dumps(row(1, abstract="secret\x00")).encode(),
    "line break in a title": json.dumps(row(1, title="secret\nStatus: Final")).encode(),
    "number as text": json.dumps(row(1, at="secret")).encode(),
    "truth as number": json.dumps(row(True)).encode(),
    "fraction": json.dumps(row(1, at=1.5)).encode(),
    "before 1970": json.dumps(row(1, at=-1)).encode(),
    "after 9999": json.dumps(row(1, at=pep_rows.AT_S_MAX + 1)).encode(),
    "negative number": json.dumps(row(-1)).encode(),
    "huge number": json.dumps(row(10**30)).encode(),
    "link to text": json.dumps(row(1, replaces=["secret"])).encode(),
    "too many links": json.dumps(row(1, superseded_by=list(range(pep_rows.LINKS_MAX + 1)))).encode(),
    "too long": json.dumps(row(1, abstract="secret " * 1143)).encode(),
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_bad_row_is_named_by_its_number_and_the_rest_is_read(write: Write, line: bytes) -> None:
    """Nothing of a bad row is planned, its message quotes nothing of it, and the rows around it are read."""
    path = write(row(7), line, row(8))
    steps = list(peps.plan(pep_rows.read_rows(path)))
    assert acts(steps) == ["pep-7", "bad 2", "pep-8"]
    bad = steps[1]
    assert isinstance(bad, pep_rows.BadRow)
    assert bad.code == "VALIDATION_FAILED"
    assert "row 2 " in bad.message
    assert "secret" not in bad.message


def test_the_longest_content_that_can_be_stored_is_taken(write: Write) -> None:
    """A claim of 8,000 characters is good, of 8,001 bad: characters are counted, not bytes."""
    frame = len("PEP 1: Title 1\nStatus: Draft\nType: Process\nReplaces: none\nSuperseded by: none\nAbstract: ")
    fits, exceeds = (row(1, abstract="é" * (size - frame)) for size in (8_000, 8_001))
    assert planned(write(fits, exceeds)) == ["pep-1", "bad 2"]


def test_a_last_line_without_its_line_feed_is_whole_if_its_object_is(write: Write) -> None:
    """A missing last line feed is no fault; an object that stops short is a bad row."""
    assert planned(write(row(1), row(2), end=b"")) == ["pep-1", "pep-2"]
    assert planned(write(row(1), json.dumps(row(2)).encode()[:-1], end=b"")) == ["pep-1", "bad 2"]


# The excerpt


def read_excerpt() -> list[pep_rows.ParsedRow]:
    """Return the rows of the shipped excerpt, all of which must be good."""
    rows = list(pep_rows.read_rows(excerpt.EXCERPT))
    good = [read for read in rows if isinstance(read, pep_rows.ParsedRow)]
    assert len(good) == len(rows)
    return good


def test_the_excerpt_holds_whole_stories_without_abstracts() -> None:
    """It has at least 200 lineages, no abstracts, no repeated claims and every end of every link."""
    rows = read_excerpt()
    assert len({read.pep for read in rows}) >= 200
    assert {read.abstract for read in rows} == {""}
    assert len({(read.pep, read.place - 1, read.content) for read in rows}
               & {(read.pep, read.place, read.content) for read in rows}) == 0  # fmt: skip
    plan = peps.plan(rows)
    assert Counter(type(step) for step in plan)[peps.Link] == 51
    assert plan.waiting == ()


def test_the_excerpt_command_refuses_a_bad_row_and_writes_nothing(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 with the row's number."""
    target = tmp_path / "excerpt.jsonl.gz"
    assert excerpt.main([str(write(row(1), b"{}")), str(target)]) == 2
    assert "row 2 " in capsys.readouterr().err
    assert not target.exists()


def test_the_excerpt_leaves_out_what_only_changed_an_abstract(write: Write, tmp_path: Path) -> None:
    """A row that without abstracts repeats the one before is dropped; the next says what changed since."""
    source = write(
        row(1, abstract="a"), row(1, abstract="b", at=1_000_000_001), row(1, status="Final", at=1_000_000_002)
    )
    target = tmp_path / "excerpt.jsonl.gz"
    assert excerpt.main([str(source), str(target)]) == 0
    rows = [json.loads(line) for line in gzip.decompress(target.read_bytes()).splitlines()]
    assert [(read["at"], read["changed"]) for read in rows] == [
        (1_000_000_000, ["title", "status", "type", "replaces", "superseded_by", "abstract"]),
        (1_000_000_002, ["status"]),
    ]


# The whole history


@pytest.fixture(scope="module")
def history() -> list[pep_rows.ParsedRow]:
    """Return the rows of the whole PEP history, all of which must be good."""
    if not HISTORY.is_file():
        pytest.skip("the PEP history is not part of the project; CORRIGENDA_PEP_HISTORY may name it")
    rows = list(pep_rows.read_rows(HISTORY))
    assert not [read for read in rows if isinstance(read, pep_rows.BadRow)]
    return [read for read in rows if isinstance(read, pep_rows.ParsedRow)]


def test_the_history_has_its_rows_and_lineages(history: list[pep_rows.ParsedRow]) -> None:
    """2,702 rows of 738 PEPs: 823 on no head, 1,879 on a head, 312 retiring; 511 heads are left, 227 lineages
    have none; no row repeats the claim before it.
    """
    head: dict[str, str | None] = {}
    fates: Counter[str] = Counter()
    for read in history:
        fates["corrected" if head.get(read.name) else "remembered"] += 1
        assert head.get(read.name) != read.content
        head[read.name] = None if read.dead else read.content
        fates["retired"] += read.dead
    assert (len(history), len(head)) == (2_702, 738)
    assert fates == {"remembered": 823, "corrected": 1_879, "retired": 312}
    assert (sum(map(bool, head.values())), sum(content is None for content in head.values())) == (511, 227)


def test_the_history_has_its_links(history: list[pep_rows.ParsedRow]) -> None:
    """51 links, 4 of which wait, and 4 unlinks: 50 edges, of which 47 are live and three withdrawn."""
    plan = peps.plan(history)
    steps = list(plan)
    links = [step for step in steps if isinstance(step, peps.Link)]
    unlinks = [step for step in steps if isinstance(step, peps.Unlink)]
    assert (len(links), len(unlinks), sum(link.waited for link in links)) == (51, 4, 4)
    linked = Counter(link.edge for link in links)
    live = linked - Counter(unlink.edge for unlink in unlinks)
    assert (len(linked), len(live), linked[pep_rows.Edge(345, 314)]) == (50, 47, 2)
    assert set(linked) - set(live) == {(314, 243), (426, 425), (639, 566)}
    assert {older for newer, older in live if newer == 600} == {513, 571, 599}
    assert {(314, 241), (345, 314), (566, 345), (566, 426), (649, 563), (749, 563)} <= set(live)
    assert plan.waiting == ()


def test_every_act_of_the_history_has_a_key_of_its_own(history: list[pep_rows.ParsedRow]) -> None:
    """2,757 acts, 2,757 keys."""
    made = keys(peps.plan(history))
    assert len(set(made)) == len(made) == 2_757


def test_any_whole_histories_of_the_file_plan_a_part_of_it(history: list[pep_rows.ParsedRow]) -> None:
    """Every second PEP's history plans acts that the whole file plans too, in the same order."""
    cut = keys(peps.plan(read for read in history if read.pep % 2))
    wanted = set(cut)
    assert [key for key in keys(peps.plan(history)) if key in wanted] == cut


def test_the_shipped_excerpt_is_what_its_command_makes(history: list[pep_rows.ParsedRow], tmp_path: Path) -> None:
    """The command gives the shipped rows, and the same bytes each time."""
    made = [tmp_path / "one", tmp_path / "two"]
    for path in made:
        assert excerpt.main([str(HISTORY), str(path)]) == 0
    assert made[0].read_bytes() == made[1].read_bytes()
    assert gzip.decompress(made[0].read_bytes()) == gzip.decompress(excerpt.EXCERPT.read_bytes())
