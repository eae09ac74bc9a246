"""A ledger's history written as lines and decided anew in another ledger: the same, but for what has to differ."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.service import Gateway
from gateway.upkeep.bare import open_bare
from tests.conftest import fresh_database
from tests.house import assert_house_in_order, refused
from tests.integration.conftest import Here
from tests.integration.test_contradiction import correct, learn
from tests.roles import as_writer

Json = dict[str, Any]  # Any: JSON

POSITIONS = {"since", "content_seq", "meta_seq", "undoes"}
OTHER_KEY = "example.org/log+dccecf3a+AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
LEFT_OUT = ("ledger.", "export.", "policy.", "revision.admitted.")


@pytest.fixture
def elsewhere(server_url: str, migrated_template: str, tmp_path: Path, words_embedder: None) -> Iterator[Here]:
    """Return what opens gateways on another, empty ledger, with keys of its own."""
    with fresh_database(server_url, template=migrated_template) as owner:
        there = Here(as_writer(owner), tmp_path / "elsewhere")
        yield there
        there.close()
        if not there.broken:
            assert_house_in_order(there.ledger_url, there.home)


def lived(gateway: Gateway) -> None:
    """Make a history in which every kind of act on memories and corrections happens."""
    first = gateway.remember(
        "Deploys happen on Mondays.", memory_id="deploys", tags=["ops"], sources=["wiki"], subjects=["Ben"]
    )
    gateway.correct(first.revision_id or "", "Deploys happen on Tuesdays.", reason="asked Ben")
    gateway.patch("deploys", tags=["ops", "release"], valid_from="2026-01-01T00:00:00Z", reason="was missing")
    gateway.remember("Backups run at night.", memory_id="backups", valid_to="2027-01-01T00:00:00Z", agent="scout")
    gateway.remember("Backups run at noon.", memory_id="backups", predecessor="backups", hold=True)
    gateway.publish("backups")
    gateway.link("deploys", "backups")
    gateway.unlink("deploys", "backups", reason="no")
    gateway.link("backups", "deploys", reason="yes")
    old = gateway.remember("Secret door code.", memory_id="door", origin="llm_extracted", sources=["chat", "mail"])
    gateway.forget("door", reason="not for us")
    gateway.remember("A key.", memory_id="key")
    gateway.forget("key")
    gateway.restore("key", reason="after all")
    gateway.retire("key", reason="lost")
    gateway.remember("Rate is 5.", memory_id="rate")
    held = gateway.remember("Rate is 6.", memory_id="rate", hold=True, predecessor="rate")
    gateway.contest("rate", held.revision_id or "", reason="which?")
    gateway.promote(held.revision_id or "", reason="six")
    gateway.remember("Rate is 7.", memory_id="rate", hold=True, predecessor="rate")
    rejected = gateway.history("rate").items[-1].revision_id
    gateway.reject_revision(rejected, reason="no")
    gateway.remember("One.", memory_id="one")
    gateway.remember("Two.", memory_id="two")
    gateway.supersede(["one", "two"], ["Both."], reason="merged")
    gateway.supersede(["one"], ["Half.", "Other half."], reason="split")
    gateway.revoke("backups", reason="wrong")
    correction = gateway.record_correction(agent="scout", original_value="=4", corrected_value="5", field="rate")
    gateway.supersede_correction(correction.correction_id or "", corrected_value="6")
    gateway.record_correction(
        agent="scout", original_value="Deploys happen on Tuesdays.", corrected_value="Deploys happen on Fridays.",
        memory="deploys", user="ben", visibility="user",
    )  # fmt: skip
    learned = learn(gateway)
    assert correct(gateway).invalidated == (learned,)
    gateway.add_evidence(b"a page", name="page", media_type="text/plain")
    gateway.set_policy({"corrections.top_k": "5"})
    assert old.revision_id


def position_of(gateway: Gateway) -> int:
    """Return the position of a ledger's last event."""
    return gateway.status().ledger["size"] - 1


def lines(path: Path) -> list[Json]:
    """Return the lines of a file that tell events."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[1:-2]]


def exported(gateway: Gateway, path: Path, **settings: Any) -> list[Json]:  # Any: what export_ledger takes
    """Export a ledger as lines, and return them."""
    gateway.export_ledger(path, form="jsonl", **settings)
    return lines(path)


def alike(line: Json) -> Json:
    """Return what has to be the same in every ledger."""
    own = {"seq", "at", "hash", "leaf", "stream_seq"}
    keyed = {"stream"} if line["stream"].split("_")[0] in ("name", "evd", "tomb") else set[str]()
    kept = {name: value for name, value in line.items() if name not in own | keyed}
    kept["facts"] = _masked(
        {name: value for name, value in line["facts"].items() if name not in POSITIONS | {"content"}}
    )
    kept["facts"].pop("parent", None) if line["facts"].get("kind") in ("project", "actor") else None
    if line["type"] == "name.assigned.v1":  # the admission in whose append it stood may be gone
        kept.pop("places")
    if line["type"] == "evidence.added.v1":  # its bytes stay where they are
        kept["facts"] |= {"external": True, "size": 0}
    if kept["said"]:
        kept["said"] = {name: value for name, value in line["said"].items() if name != "recorded_at"}
    return kept


def _masked(value: Any) -> Any:  # Any: JSON
    match value:
        case dict():
            return {name: _masked(one) for name, one in value.items() if name not in POSITIONS | {"trust"}}
        case [str(), "unverified" | "verified", str()]:
            return [value[0], value[2]]
        case ["supersedes" | "proposes" | "conflicts", _, _, _]:
            return value[:3]
        case list():
            return [_masked(one) for one in value]
        case _:
            return value


def taken_over(found: list[Json]) -> list[Json]:
    """Return those of a file's lines that are taken over, as they have to come out again."""
    own = {line["op"] for line in found if line["type"] == "ledger.imported.v1"}
    return [alike(line) for line in found if not line["type"].startswith(LEFT_OUT) and line["op"] not in own]


@pytest.fixture
def file(open_here: Here, tmp_path: Path) -> Path:
    """Return the lines of a ledger in which much has happened."""
    gateway = open_here()
    lived(gateway)
    reviewer = open_here(actor="human:rev")
    reviewer.admit("deploys", reason="read it")
    reviewer.revoke("deploys", reason="wrong")
    gateway.restore("deploys", reason="right")
    gateway.export_ledger(tmp_path / "first.jsonl", form="jsonl")
    return tmp_path / "first.jsonl"


def test_a_history_is_the_same_in_another_ledger(file: Path, elsewhere: Here, tmp_path: Path) -> None:
    """Exported, imported and exported again, everything is equal but position, time of record, and trust."""
    there = elsewhere(actor="human:zoe")
    report = there.import_lines(file)
    assert (report.rejected, report.items, report.unchanged) == (0, (), 0)
    assert report.stored + report.left_out == len(lines(file))
    second = exported(there, tmp_path / "second.jsonl")
    assert taken_over(second) == taken_over(lines(file))
    assert not {line["at"] for line in second} & {line["at"] for line in lines(file)}
    about = [line for line in second if line["stream_name"] == "deploys" and not line["type"].startswith("lineage.")]
    digests = {tuple(json.loads(there.raw(line["seq"]))["subjects"]) for line in about}
    assert len(digests) == 1 and digests != {()}  # whom it concerns, by this ledger's own digest
    record = next(line for line in second if line["type"] == "ledger.imported.v1")
    assert (record["actor_name"], record["facts"]["origin"]) == ("human:zoe", report.origin)
    assert len(record["said"]["recorded_at"]) == record["facts"]["count"]


def test_importing_again_changes_nothing(file: Path, open_here: Here, elsewhere: Here, tmp_path: Path) -> None:
    """The same lines are unchanged: imported twice, brought back home, and after more was written at home."""
    there = elsewhere(actor="human:zoe")
    stored = there.import_lines(file).stored
    position = there.import_lines(file).position
    again = there.import_lines(file)
    assert (again.stored, again.unchanged, again.rejected, again.position) == (0, stored, 0, position)
    there.export_ledger(tmp_path / "back.jsonl", form="jsonl")
    here = open_here()
    assert here.import_lines(tmp_path / "back.jsonl").stored == 1  # the name of who imported there
    here.correct("deploys", "Deploys happen on Sundays.")
    here.export_ledger(tmp_path / "more.jsonl", form="jsonl")
    more = there.import_lines(tmp_path / "more.jsonl")
    assert (more.stored, more.rejected) == (1, 0)
    assert there.show("deploys").content == "Deploys happen on Sundays."


def test_an_import_that_was_interrupted_goes_on(
    file: Path, elsewhere: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever page an import ended with, run again it takes over the rest, and nothing twice."""
    monkeypatch.setattr("gateway.transfer.taking.LINES_PER_PAGE", 4)
    there, before = elsewhere(actor="human:zoe"), -1
    for last in (9, 25, 40):

        def interrupt(done: int, _: int, last: int = last) -> None:
            if done > last:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            there.import_lines(file, progress=interrupt)
        assert position_of(there) > before
        before = position_of(there)
    report = there.import_lines(file)
    assert report.stored and report.unchanged and not report.rejected
    assert taken_over(exported(there, tmp_path / "second.jsonl")) == taken_over(lines(file))


def test_a_circle_of_links_is_not_closed(open_here: Here, elsewhere: Here, tmp_path: Path) -> None:
    """A file in which two memories supersede each other is taken over without the link that closes the circle."""
    here = open_here()
    for name in ("a", "b"):
        here.remember(f"{name}.", memory_id=name)
    here.link("a", "b")
    here.unlink("a", "b", reason="turn")
    here.link("b", "a")
    found = exported(here, tmp_path / "a.jsonl")
    gone = {line["op"] for line in found if line["type"] == "lineage.unlinked.v1"}
    rows = (tmp_path / "a.jsonl").read_bytes().splitlines(keepends=True)
    kept = [row for row in rows if json.loads(row).get("op") not in gone]
    renumbered = [row.replace(b'"stream_seq":3,', b'"stream_seq":2,') for row in kept[:-1]]
    end = json.dumps({"format": "corrigenda-jsonl/1", "events": len(kept) - 2}).encode() + b"\n"
    (tmp_path / "b.jsonl").write_bytes(b"".join([*renumbered, end]))
    report = elsewhere(actor="human:zoe").import_lines(tmp_path / "b.jsonl", on_error="skip")
    assert {item.code for item in report.items} == {"INVALID_TRANSITION"}


def test_what_went_on_otherwise_is_left_alone(file: Path, open_here: Here, elsewhere: Here, tmp_path: Path) -> None:
    """A memory that was corrected on both sides stays as it is; the rest of the file is taken over."""
    there = elsewhere(actor="human:zoe")
    there.import_lines(file)
    there.correct("deploys", "Deploys are forbidden.")
    here = open_here()
    here.correct("deploys", "Deploys happen on Sundays.")
    here.remember("New.", memory_id="new")
    here.export_ledger(tmp_path / "more.jsonl", form="jsonl")
    report = there.import_lines(tmp_path / "more.jsonl", on_error="skip")
    assert [(item.code, item.outcome) for item in report.items] == [("STALE_REVISION", "rejected")]
    assert there.show("deploys").content == "Deploys are forbidden."
    assert there.show("new").content == "New."


def test_the_forgotten_is_taken_along_and_not_learned_again(file: Path, elsewhere: Here) -> None:
    """RC-32: what was forgotten there is forgotten here, may be restored, and no machine learns it anew."""
    there = elsewhere(actor="human:zoe")
    there.import_lines(file)
    assert there.show("door").state == "forgotten" and there.show("door").content is None
    with refused("MEMORY_DELETED"):
        there.remember("Secret door code.", origin="llm_extracted", sources=["mail"])
    there.restore("door")
    assert there.show("door").content == "Secret door code."
    there.remember("Secret door code.", origin="llm_extracted", sources=["mail"])


def test_what_was_forgotten_here_is_not_brought_back(open_here: Here, elsewhere: Here, tmp_path: Path) -> None:
    """RC-32: a text that was forgotten in this ledger does not come back with a file, whoever said it there."""
    open_here().remember("Secret door code.", memory_id="door", sources=["mail"])
    open_here().export_ledger(tmp_path / "a.jsonl", form="jsonl")
    there = elsewhere(actor="human:zoe")
    there.remember("Secret door code.", memory_id="other", sources=["mail"])
    there.forget("other")
    report = there.import_lines(tmp_path / "a.jsonl")
    assert [item.code for item in report.items] == ["INVALID_INPUT", "MEMORY_DELETED"]  # its name, and itself


def test_trust_does_not_travel(open_here: Here, elsewhere: Here, tmp_path: Path) -> None:
    """What somebody vouched for there is unverified here, and who did it and when stays with the file."""
    here = open_here()
    evidence = here.add_evidence(b"a page", name="page")
    here.remember("Checked.", memory_id="checked")
    open_here(actor="human:ben").admit("checked", reason="seen", evidence=[evidence.hash])
    here.correct("checked", "Checked twice.")
    here.export_ledger(tmp_path / "a.jsonl", form="jsonl")
    there = elsewhere(actor="human:zoe")
    report = there.import_lines(tmp_path / "a.jsonl")
    assert (report.rejected, report.unverified) == (0, 1)
    assert [(one.trust, one.content) for one in there.history("checked").items] == [
        ("unverified", "Checked."), ("unverified", "Checked twice."),
    ]  # fmt: skip
    there.add_evidence(b"a page", name="page")  # its bytes were not in the file, and may follow
    assert there.import_lines(tmp_path / "a.jsonl").unchanged == report.stored


def test_texts_that_are_withheld_are_rejected(file: Path, open_here: Here, elsewhere: Here, tmp_path: Path) -> None:
    """Items whose payload is withheld are counted and listed, and nothing half is left of their histories."""
    here = open_here()
    head = here.show("deploys").revision_id
    here.export_ledger(tmp_path / "b.jsonl", form="jsonl", with_payloads=[head], without_forgotten=True)
    there = elsewhere(actor="human:zoe")
    report = there.import_lines(tmp_path / "b.jsonl")
    withheld = {
        "This is not taken over: its history holds a payload that was withheld or erased, so it cannot be told whole.",
        "A name is of something that is not taken over.",
    }
    assert report.rejected > 30 and {item.message for item in report.items} == withheld
    assert there.list_memories().items == ()
    here.export_ledger(tmp_path / "c.jsonl", form="jsonl", without_forgotten=True)
    assert "Secret door code." not in (tmp_path / "c.jsonl").read_text()
    rest = there.import_lines(tmp_path / "c.jsonl")
    assert {item.message for item in rest.items} == withheld
    assert there.show("deploys").content == here.show("deploys").content
    with refused("MEMORY_NOT_FOUND"):
        there.show("door")


def test_a_bundle_is_taken_over_once_it_is_verified(
    file: Path, open_here: Here, elsewhere: Here, tmp_path: Path
) -> None:
    """XC-04: its key comes from the caller; a bundle that was altered is refused before the first event."""
    here = open_here()
    here.export_supersession(["deploys", "one"], tmp_path / "bundle")
    here.export_supersession(["deploys", "one"], tmp_path / "bad.tar.gz")
    with open_bare(database_url=open_here.ledger_url, home=open_here.home) as bare:
        key = bare.public_key()["public_key"]
    there = elsewhere(actor="human:zoe")
    bad = bytearray((tmp_path / "bad.tar.gz").read_bytes())
    bad[len(bad) // 2] ^= 1
    (tmp_path / "bad.tar.gz").write_bytes(bad)
    before = position_of(there)
    for path, given, code, exit_code in (
        (tmp_path / "bad.tar.gz", key, "INTEGRITY_BROKEN", 14),
        (tmp_path / "bundle", OTHER_KEY, "LEDGER_UNVERIFIED", 15),
    ):
        with refused(code) as found:
            there.import_bundle(path, given)
        assert found.error.exit_code == exit_code
    assert position_of(there) == before
    report = there.import_bundle(tmp_path / "bundle", key)
    assert (report.verified, report.kind) == (True, "bundle")
    assert {item.message for item in report.items} == {
        "A link is told of one of its ends only, so it cannot be stated here."
    }
    for name in ("deploys", "one", "two"):
        ours, theirs = here.history(name), there.history(name)
        assert [(one.content, one.state, one.revision_id) for one in theirs.items] == [
            (one.content, one.state, one.revision_id) for one in ours.items
        ]
    again = there.import_bundle(tmp_path / "bundle", key)
    assert (again.stored, again.unchanged) == (0, report.stored)
