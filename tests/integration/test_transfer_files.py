"""Files that are given to an import as what a stranger made, and the files that an export leaves, or does not leave."""

import csv
import gzip
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.audit.bundles import verify_bundle
from gateway.service import Gateway
from gateway.transfer import telling
from gateway.transfer.lines import LINE_BYTES_MAX
from gateway.transfer.reading import LineFile
from gateway.transfer.surveying import survey
from gateway.upkeep.bare import open_bare
from ledger.errors import NotFoundError
from tests.conftest import fresh_database
from tests.house import refused
from tests.integration.conftest import Here
from tests.integration.test_transfer import Json, lines, position_of
from tests.roles import as_writer

SECRET = "=HYPERLINK(1)\u2028next\r\nline"


class Made(NamedTuple):
    """A ledger whose gateway is open, and the lines of it as they lie in a file."""

    here: Here
    gateway: Gateway
    lines: list[bytes]


@pytest.fixture(scope="module")
def made(server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Return a small ledger: three memories, one of them of two revisions, and a correction."""
    folder = tmp_path_factory.mktemp("files")
    with fresh_database(server_url, template=migrated_template) as owner:
        here = Here(as_writer(owner), folder / "home")
        gateway = here(embedder="none")
        gateway.remember(SECRET, memory_id="first", tags=["+1"])
        gateway.correct("first", "Second.", reason="@why")
        gateway.remember("Other.", memory_id="other")
        gateway.remember("Third.", memory_id="third")
        gateway.record_correction(agent="scout", original_value="-1+1", corrected_value="", field="total")
        gateway.export_ledger(folder / "all.jsonl", form="jsonl")
        yield Made(here, gateway, (folder / "all.jsonl").read_bytes().splitlines(keepends=True))
        here.close()


@pytest.fixture
def target(open_here: Here) -> Gateway:
    """Return the ledger that is imported into; afterwards it has to be in order."""
    return open_here(actor="human:zoe")


def written(folder: Path, rows: list[bytes], name: str = "bad.jsonl") -> Path:
    """Return a file of these lines."""
    (folder / name).write_bytes(b"".join(rows))
    return folder / name


def changed(rows: list[bytes], number: int, change: Callable[[Json], object]) -> list[bytes]:
    """Return the lines with one of them, by its number, changed as JSON."""
    line = json.loads(rows[number - 1])
    change(line)
    return [*rows[: number - 1], json.dumps(line).encode() + b"\n", *rows[number:]]


def number_of(rows: list[bytes], kind: str, nth: int = 0) -> int:
    """Return the number of the nth line of an event of that type."""
    return [at for at, row in enumerate(rows, start=1) if f'"type":"{kind}"'.encode() in row][nth]


FOREIGN = ["supersedes", "rev_01J9ZKAAAAAAAAAAAAAAAAAAAA", "rev_01J9ZKBBBBBBBBBBBBBBBBBBBB", None]


def turned_round(line: Json) -> None:
    """Let the older revision supersede the newer one."""
    line["facts"]["edges"] = [[kind, older, newer, since] for kind, newer, older, since in line["facts"]["edges"]]


DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda row: row[:-20] + b"\n",
    lambda row: b"\n",
    lambda row: b"\xff" + row,
    lambda row: row.replace(b'"seq":', b'"seq":1,"seq":', 1),
    lambda row: row.replace(b'"seq":', b'"seq":' + b"9" * 5_000 + b',"x":', 1),
    lambda row: row.replace(b'"seq":', b'"seq":1e3,"x":', 1),
    lambda row: row.replace(b"Other.", b"Oth\\u0000er."),
    lambda row: row.replace(b"Other.", b"Oth\\ud800er."),
    lambda row: row.replace(b'"content":"Other."', b'"content":"Other.","content":"Other."'),
    lambda row: row.replace(b'"op":"op_', b'"op":"mem_'),
    lambda row: row.replace(b'"stream":"mem_', b'"stream":"cor_'),
    lambda row: row.replace(b'"key":"op_0', b'"key":"op_1'),
    lambda row: row.replace(b"memory.remembered.v1", b"memory.remembered.v9"),
    lambda row: row.replace(b'"tags":[]', b'"tags":[],"trust":"verified"'),
    lambda row: row.replace(b'"recorded_at":"20', b'"recorded_at":"+0'),
    lambda row: re.sub(rb'"recorded_at":"[0-9-]{10}', b'"recorded_at":"2026-02-30', row),
    lambda row: row[:-2] + b',"x":' + DEEP + b"}\n",
    lambda row: b"x" * (LINE_BYTES_MAX + 1) + b"\n",
    lambda row: b"[]\n",
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_is_read_as_damaged(made: Made, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """No UTF-8, no JSON, a key twice, a number beyond all bounds, a text that cannot be, a line without end."""
    at = number_of(made.lines, "memory.remembered.v1", 1)
    rows = [*made.lines[: at - 1], damage(made.lines[at - 1]), *made.lines[at:]]
    assert rows[at - 1] != made.lines[at - 1]
    found = survey(LineFile(written(tmp_path, rows)))
    assert [item.number for item in found.bad] == [at]
    assert not any("Other" in item.why for item in found.bad)


def test_a_file_that_lost_a_line_is_named_by_its_last_line(made: Made, tmp_path: Path) -> None:
    """The line that closes the file says how many there are, and counts one that cannot be read only once."""
    at = number_of(made.lines, "memory.remembered.v1", 1)
    rows = [*made.lines[: at - 1], *made.lines[at:]]
    found = survey(LineFile(written(tmp_path, rows)))
    assert [item.number for item in found.bad] == [len(rows)]
    found = survey(LineFile(written(tmp_path, [*made.lines[:at], b"x\n", *made.lines[at:]])))
    assert [item.number for item in found.bad] == [at + 1]


@pytest.mark.parametrize("damage", [DAMAGES[0], DAMAGES[6]])
def test_a_damaged_line_is_named_and_nothing_is_lost(
    made: Made, target: Gateway, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    """Without `skip` nothing is stored and the line is named; with it, all is stored that does not rest on it."""
    at = number_of(made.lines, "memory.remembered.v1", 1)
    rows = [*made.lines[: at - 1], damage(made.lines[at - 1]), *made.lines[at:]]
    assert rows[at - 1] != made.lines[at - 1]
    path = written(tmp_path, rows)
    before = position_of(target)
    with refused("VALIDATION_FAILED") as found:
        target.import_lines(path)
    assert found.details["line"] == at and "Other" not in found.error.message
    assert position_of(target) == before
    report = target.import_lines(path, on_error="skip")
    assert report.items[0].row == at and report.rejected >= 1
    assert target.show("first").content == "Second." and target.show("third").content == "Third."
    assert target.import_lines(written(tmp_path, made.lines, "whole.jsonl")).rejected == 0
    assert target.show("other").content == "Other."


@pytest.mark.parametrize(
    "rows",
    [
        lambda rows: [],
        lambda rows: [b"seq,at,type\r\n"],
        lambda rows: [b'{"format":"corrigenda-jsonl/2"}\n', *rows[1:]],
        lambda rows: [rows[0].replace(b'"kind":"ledger"', b'"kind":"gossip"'), *rows[1:]],
        lambda rows: rows[1:],
        lambda rows: [gzip.compress(b"".join(rows))[:-40]],
        lambda rows: rows[:-1],
        lambda rows: rows[:-2],
        lambda rows: [*rows[:4], *rows[5:]],
        lambda rows: [*rows, rows[-2]],
        lambda rows: [*rows[:4], b'{"format":"corrigenda-jsonl/1","events":3}\n', *rows[5:]],
    ],
)
def test_what_is_no_whole_file_is_refused(
    made: Made, tmp_path: Path, rows: Callable[[list[bytes]], list[bytes]]
) -> None:
    """A file of another kind or version, cut short or with a line less: refused, and nothing is stored."""
    before = position_of(made.gateway)
    with refused("VALIDATION_FAILED"):
        made.gateway.import_lines(written(tmp_path, rows(made.lines)))
    assert position_of(made.gateway) == before


def test_what_is_no_plain_file_is_not_waited_for(made: Made, tmp_path: Path) -> None:
    """A pipe that nobody writes to, a device without end, and no path at all are refused at once."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "nothing", tmp_path / "a\0b"):
        with refused("VALIDATION_FAILED") as found:
            made.gateway.import_lines(path)
        assert not found.error.message.endswith("..")


def test_line_breaks_of_other_systems_change_nothing(made: Made, target: Gateway, tmp_path: Path) -> None:
    """CRLF, a byte order mark and gzip are no damage, and a text keeps the line breaks and separators in it."""
    raw = b"\xef\xbb\xbf" + b"".join(made.lines).replace(b"\n", b"\r\n")
    report = target.import_lines(written(tmp_path, [gzip.compress(raw)], "all.jsonl.gz"))
    assert report.rejected == 0
    assert target.history("first").items[0].content == SECRET


@pytest.mark.parametrize(
    ("kind", "change", "code"),
    [
        ("memory.remembered.v1", lambda line: line["said"].update(content=" "), "VALIDATION_FAILED"),
        ("memory.remembered.v1", lambda line: line["said"].update(content="x" * 8_001), "VALIDATION_FAILED"),
        ("memory.remembered.v1", lambda line: line["said"].update(valid_from="yesterday"), "VALIDATION_FAILED"),
        ("memory.remembered.v1", lambda line: line["said"].update(applies="{"), "VALIDATION_FAILED"),
        ("memory.remembered.v1", lambda line: line["facts"].update(kind="gossip"), "VALIDATION_FAILED"),
        ("memory.remembered.v1", lambda line: line["facts"].update(visibility="agent"), "INVALID_INPUT"),
        ("memory.remembered.v1", lambda line: line["facts"].update(moves=[]), "INVALID_INPUT"),
        ("memory.remembered.v1", lambda line: line["facts"]["moves"][0].update(revision="rev_1"), "INVALID_INPUT"),
        ("memory.remembered.v1", lambda line: line["facts"]["scope"].update(project="prj_x"), "INVALID_INPUT"),
        ("memory.remembered.v1", lambda line: line.update(actor="pr_x"), "INVALID_INPUT"),
        ("memory.remembered.v1", lambda line: line.update(actor=line["facts"]["scope"]["project"]), "INVALID_INPUT"),
        ("memory.remembered.v1", lambda line: line["facts"]["scope"].update(agent=line["actor"]), "INVALID_INPUT"),
        ("memory.remembered.v1", lambda line: line.update(stream="mem_1"), "INVALID_INPUT"),
        ("memory.remembered.v1", lambda line: line.update(stream_seq=1), "INVALID_INPUT"),
        ("memory.remembered.v1", lambda line: line.update(places=2), "INVALID_INPUT"),
        (
            "revision.corrected.v1",
            turned_round,
            "INVALID_INPUT",
        ),
        ("revision.corrected.v1", lambda line: line["facts"]["edges"].append(FOREIGN), "INVALID_INPUT"),
        ("correction.recorded.v1", lambda line: line["facts"].update(standing={"state": "revoked"}), "INVALID_INPUT"),
        ("correction.recorded.v1", lambda line: line["facts"].update(visibility="all"), "INVALID_INPUT"),
    ],
)  # fmt: skip
def test_what_could_not_have_happened_is_rejected(
    made: Made, target: Gateway, tmp_path: Path, kind: str, change: Callable[[Json], object], code: str
) -> None:
    """A history that no door would have let in, predecessors in a circle among it, is rejected line by line."""
    at = number_of(made.lines, kind)
    report = target.import_lines(written(tmp_path, changed(made.lines, at, change)), on_error="skip")
    assert (at, code) in [(item.row, item.code) for item in report.items]
    assert target.show("third").content == "Third."


def test_a_key_that_stands_twice_is_taken_once(made: Made, target: Gateway, tmp_path: Path) -> None:
    """The same append twice is unchanged; with other words under the same key it is refused, then and later."""
    at = number_of(made.lines, "memory.remembered.v1", 1)
    row = made.lines[at - 1]
    end = json.dumps({"format": "corrigenda-jsonl/1", "events": len(made.lines) - 1}).encode() + b"\n"
    other = row.replace(b"Other.", b"Another.")
    report = target.import_lines(written(tmp_path, [*made.lines[:-1], other, end]), on_error="skip")
    assert [item.row for item in report.items if item.code != "INVALID_INPUT"] == []
    assert target.show("other" if report.rejected == 1 else "third").state == "active"
    rows = [*made.lines[: at - 1], other, *made.lines[at:]]
    again = target.import_lines(written(tmp_path, rows), on_error="skip")
    assert [(item.row, item.code) for item in again.items] == []


def test_names_of_an_append_that_stands_apart_are_kept(made: Made, target: Gateway, tmp_path: Path) -> None:
    """One append of which both parts are refused: the names in each are kept, and the ledger is no less whole."""
    at = number_of(made.lines, "name.assigned.v1", 1)
    rows = [*made.lines[: at - 1], *made.lines[at:-1], made.lines[at - 1], made.lines[-1]]
    report = target.import_lines(written(tmp_path, rows), on_error="skip")
    assert report.rejected > 1
    assert target.import_lines(written(tmp_path, made.lines), on_error="skip").rejected == 0
    assert target.show("first").content == "Second."


def test_names_that_are_taken_mean_what_they_mean_here(made: Made, target: Gateway, tmp_path: Path) -> None:
    """A project of the same name is the same project; a memory's name stays with the memory that has it."""
    target.remember("Mine.", memory_id="first")
    report = target.import_lines(written(tmp_path, made.lines))
    assert [item.message for item in report.items] == [
        "A memory has this name here already, so the one of the file goes by its id only."
    ]
    assert target.show("first").content == "Mine."
    taken = json.loads(made.lines[number_of(made.lines, "revision.corrected.v1") - 1])
    assert target.show(taken["stream"]).content == "Second."
    assert target.show("third").scope == {"project": "atlas"}


def test_names_do_not_take_what_is_here(made: Made, target: Gateway, tmp_path: Path) -> None:
    """A file that gives another name to a project, or a memory, that is here already does not get it."""
    target.import_lines(written(tmp_path, made.lines))
    at = number_of(made.lines, "name.assigned.v1", 1)
    rows = changed(made.lines, at, lambda line: line["said"].update(name="mine"))
    rows = [row.replace(b'"op_01', b'"op_00') for row in rows]
    report = target.import_lines(written(tmp_path, rows), on_error="skip")
    assert report.items[0].message == "A name was given to an id that has another name here."
    assert report.stored == 0


@pytest.mark.parametrize("kind", ["ledger", "corrections"])
def test_a_whole_export_is_a_bundle_too(made: Made, tmp_path: Path, kind: str) -> None:
    """RC-37: a ledger, or its corrections, with proofs of every event; the export is an event that says so."""
    with open_bare(database_url=made.here.ledger_url, home=made.here.home) as bare:
        key = bare.public_key()["public_key"]
    export = getattr(made.gateway, f"export_{kind}")
    answer = export(tmp_path / "b.tar.gz", recipient="auditor", complete=kind == "ledger")
    found = verify_bundle(tmp_path / "b.tar.gz", key)
    assert (found.verdict, found.events, answer.kind) == ("verified", answer.events, kind)
    record = made.gateway.show_event(answer.position)
    assert (record.type, record.facts["kind"], record.facts["count"]) == ("export.made.v1", kind, answer.events)
    assert record.payload == {"ids": (), "recipient": "auditor"}


@pytest.mark.parametrize("kind", ["ledger", "corrections"])
def test_a_table_holds_no_formula(made: Made, tmp_path: Path, kind: str) -> None:
    """CSV by RFC 4180: texts with their line breaks, and a quote before whatever could begin a formula."""
    getattr(made.gateway, f"export_{kind}")(tmp_path / "t.csv", form="csv")
    rows = [*csv.DictReader(io.StringIO((tmp_path / "t.csv").read_bytes().decode(), newline=""))]
    said = "original_value" if kind == "corrections" else "content"
    expected = "'-1+1" if kind == "corrections" else "'" + SECRET
    assert expected in [row[said] for row in rows]
    assert not [cell for row in rows for cell in row.values() if cell[:1] in "=+-@" and cell]
    assert {row["actor_name"] for row in rows} <= {"human:ana", ""}


@pytest.mark.parametrize("kind", ["ledger", "corrections"])
@pytest.mark.parametrize("form", ["csv", "bundle", "jsonl"])
def test_a_correction_does_not_hand_on_what_was_forgotten(
    open_here: Here, tmp_path: Path, kind: str, form: str
) -> None:
    """RC-31: its values are the text of the memory that it corrected; lines, which are a copy, do have them."""
    gateway = open_here(embedder="none")
    gateway.remember("Plain.", memory_id="door")
    gateway.record_correction(agent="scout", original_value="Plain.", corrected_value="Code 4711.", memory="door")
    gateway.record_correction(agent="scout", original_value="Other.", corrected_value="Told.")
    gateway.forget("door")
    out = tmp_path / "out"
    made = getattr(gateway, f"export_{kind}")(out, form=form)
    told = (out / "chain.jsonl" if form == "bundle" else out).read_text()
    assert ("Code 4711." in told, "Told." in told) == (form == "jsonl", True)
    assert (made.payloads_withheld == 0) == (form == "jsonl")


def test_corrections_travel_alone(made: Made, target: Gateway, tmp_path: Path) -> None:
    """The corrections of a ledger, with the names that they need and no other line."""
    made.gateway.record_correction(agent="scout", original_value="a", corrected_value="Third!", memory="third")
    made.gateway.export_corrections(tmp_path / "c.jsonl", form="jsonl")
    found = lines(tmp_path / "c.jsonl")
    assert {line["type"] for line in found} == {"name.assigned.v1", "correction.recorded.v1"}
    assert "Third." not in (tmp_path / "c.jsonl").read_text()
    assert target.import_lines(tmp_path / "c.jsonl").rejected == 0
    one, other = sorted(target.list_corrections(agent="scout"), key=lambda item: str(item.original_value))
    assert (one.original_value, one.corrected_value) == ("-1+1", "")
    assert target.explain_correction(other.correction_id).correction_id and target.lineage(other.correction_id)


def test_lines_tell_both_clocks(open_here: Here, tmp_path: Path) -> None:
    """What was believed when, and up to a position or a time; other writers' appends do not get into it."""
    gateway = open_here()
    gateway.remember("Held.", memory_id="held", valid_from="2026-01-01T00:00:00Z")
    position = position_of(gateway)
    gateway.patch("held", valid_to="2027-01-01T00:00:00Z")
    gateway.export_ledger(tmp_path / "a.jsonl", form="jsonl")
    gateway.export_ledger(tmp_path / "b.jsonl", form="jsonl", as_of=position)
    told = [line for line in lines(tmp_path / "a.jsonl") if line["stream_name"] == "held"]
    begin, end = "2026-01-01T00:00:00.000000Z", "2027-01-01T00:00:00.000000Z"
    assert [(line["valid_from"], line["valid_to"]) for line in told] == [(begin, None), (begin, end)]
    assert all(line["at"] == line["recorded_at"] for line in told)
    assert len(lines(tmp_path / "b.jsonl")) == position + 1
    assert lines(tmp_path / "a.jsonl")[: position + 1] == lines(tmp_path / "b.jsonl")


def test_a_file_appears_whole_or_not_at_all(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is never written over; what fails leaves nothing, neither a file nor an event."""
    out = tmp_path / "here.jsonl"
    out.write_text("mine")
    with refused("VALIDATION_FAILED"):
        made.gateway.export_ledger(out, form="jsonl")
    assert out.read_text() == "mine"
    for nowhere in (tmp_path / "nowhere", out):
        with refused("VALIDATION_FAILED") as refusal:
            made.gateway.export_ledger(nowhere / "x.jsonl", form="jsonl")
        assert f"no folder {nowhere}" in refusal.error.message
    before = position_of(made.gateway)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with refused("UNAVAILABLE"):
        made.gateway.export_ledger(tmp_path / "full.jsonl", form="jsonl")
    monkeypatch.undo()
    assert position_of(made.gateway) == before
    assert [path.name for path in tmp_path.iterdir()] == ["here.jsonl"]


@pytest.mark.parametrize("form", ["jsonl", "bundle"])
def test_a_name_may_be_as_long_as_the_file_system_has_it(made: Made, tmp_path: Path, form: str) -> None:
    """255 bytes are a name, and the file beside it needs no longer one; 256 are none: said, and nothing recorded."""
    done = made.gateway.export_ledger(tmp_path / ("n" * 255), form=form)
    with refused("UNAVAILABLE"):
        made.gateway.export_ledger(tmp_path / ("n" * 256), form=form)
    assert [len(path.name) for path in tmp_path.iterdir()] == [255]
    assert made.gateway.export_ledger(tmp_path / "next", form=form).position == done.position + 1


@pytest.mark.parametrize("with_payloads", [["", "rev_1"], "some", 5, [5]])
def test_what_may_be_seen_is_refused_in_words_for_people(made: Made, tmp_path: Path, with_payloads: Any) -> None:
    """A fault in what is to be revealed is that of a word or of a revision, and says nothing of our types."""
    with refused("VALIDATION_FAILED") as found:
        made.gateway.export_ledger(tmp_path / "a.jsonl", form="jsonl", with_payloads=with_payloads)
    assert "with_payloads." in found.error.message and "function" not in found.error.message


@pytest.mark.parametrize("form", ["jsonl", "csv", "bundle"])
def test_a_mistyped_project_is_no_empty_one(made: Made, tmp_path: Path, form: str) -> None:
    """Its corrections are not exported as none, which would be taken for an answer, and nothing is recorded."""
    gateway = made.here(project="atals", embedder="none")
    before = position_of(gateway)
    with refused("CORRECTION_NOT_FOUND"):
        gateway.export_corrections(tmp_path / "a", form=form)
    assert position_of(gateway) == before and not [*tmp_path.iterdir()]


@pytest.mark.parametrize("form", ["jsonl", "bundle"])
def test_before_the_ledger_there_is_nothing_to_export(made: Made, tmp_path: Path, form: str) -> None:
    """A time before the first event is said to be too early, and no position -1 is spoken of."""
    with pytest.raises(NotFoundError) as caught:
        made.gateway.export_ledger(tmp_path / "a", form=form, as_of="2020-01-01T00:00:00Z")
    assert "that time" in caught.value.message and "-1" not in caught.value.message


def test_an_export_that_is_asked_for_again_is_the_same(made: Made, tmp_path: Path) -> None:
    """The same request with the same key records nothing more, and hands out what it did, made again if it is gone."""
    asked: dict[str, Any] = {"form": "jsonl", "idempotency_key": "k"}
    first = made.gateway.export_ledger(tmp_path / "a.jsonl", **asked)
    raw = [json.loads(row) for row in (tmp_path / "a.jsonl").read_bytes().splitlines()[1:]]
    assert made.gateway.export_ledger(tmp_path / "a.jsonl", **asked).replayed
    (tmp_path / "a.jsonl").unlink()
    again = made.gateway.export_ledger(tmp_path / "a.jsonl", **asked)
    assert (again.replayed, again.position, again.events) == (True, first.position, first.events)
    assert [json.loads(row) for row in (tmp_path / "a.jsonl").read_bytes().splitlines()[1:]] == raw


def test_an_import_is_for_who_administers(made: Made, open_here: Here, tmp_path: Path) -> None:
    """XC-09: an agent is refused before the file is looked at; who only may export gets no forgotten text."""
    agent = open_here(actor="agent:scout")
    for act in (lambda: agent.import_lines(tmp_path / "nowhere"), lambda: agent.import_bundle(tmp_path, "key")):
        with refused("FORBIDDEN_ACTOR"):
            act()
    here = open_here()
    here.remember("The door opens to xylophone.", memory_id="door", visibility="project")
    here.forget("door")
    open_here(actor="human:bo", permissions=["read", "export"]).export_ledger(tmp_path / "a.jsonl", form="jsonl")
    assert "xylophone" not in (tmp_path / "a.jsonl").read_text()
    here.export_ledger(tmp_path / "b.csv", form="csv")
    assert "xylophone" not in (tmp_path / "b.csv").read_text()


def test_a_ledger_of_many_events_is_a_bundle_only_if_it_is_complete(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With three files for each event it is refused where they are too many; the whole log in tiles has no bound."""
    monkeypatch.setattr("gateway.service.exporting.BUNDLED_MAX", 5)
    with refused("VALIDATION_FAILED") as found:
        made.gateway.export_ledger(tmp_path / "b")
    assert "`--complete`, which has no such bound" in found.error.message
    assert made.gateway.export_ledger(tmp_path / "b", complete=True).events > 5
    assert telling.PAGE > 5
