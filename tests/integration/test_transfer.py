"""A ledger's history written as lines and decided anew in another ledger: the same, but for what has to differ."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.service import Gateway
from tests.conftest import fresh_database
from tests.house import assert_house_in_order
from tests.integration.conftest import Here
from tests.roles import as_writer

Json = dict[str, Any]  # Any: JSON

POSITIONS = {"since", "content_seq", "meta_seq", "undoes"}
LEFT_OUT = ("ledger.", "export.", "policy.", "revision.admitted.")


@pytest.fixture
def elsewhere(
    server_url: str, migrated_template: str, tmp_path: Path, words_embedder: None
) -> Iterator[Here]:
    """Return what opens gateways on another, empty ledger, with keys of its own."""
    with fresh_database(server_url, template=migrated_template) as owner:
        there = Here(as_writer(owner), tmp_path / "elsewhere")
        yield there
        there.close()
        if not there.broken:
            assert_house_in_order(there.ledger_url, there.home)


def lived(gateway: Gateway) -> None:
    """Make a history in which every kind of act on memories and corrections happens."""
    first = gateway.remember("Deploys happen on Mondays.", memory_id="deploys", tags=["ops"], sources=["wiki"])
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
    assert old.revision_id


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
    kept["facts"] = _masked({name: value for name, value in line["facts"].items() if name not in POSITIONS | {"content"}})
    kept["facts"].pop("parent", None) if line["facts"].get("kind") in ("project", "actor") else None
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


def test_a_history_is_the_same_in_another_ledger(open_here: Here, elsewhere: Here, tmp_path: Path) -> None:
    """Exported, imported and exported again, everything is equal but position, time of record, and trust."""
    here, there = open_here(), elsewhere(actor="human:zoe")
    lived(here)
    first = exported(here, tmp_path / "first.jsonl")
    report = there.import_lines(tmp_path / "first.jsonl")
    assert (report.rejected, report.items) == (0, ())
    second = exported(there, tmp_path / "second.jsonl")
    assert taken_over(second) == taken_over(first)
    assert [line["recorded_at"] for line in taken_over(second)] == [line["at"] for line in first if alike(line) in taken_over(first)]
