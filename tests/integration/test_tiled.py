"""The bundle of a whole log: entries and payloads in tiles, any number of them, checked by two programs, imported."""

import contextlib
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.views import audit
from gateway.audit.bundles import verify_bundle
from gateway.service import Gateway
from gateway.transfer import telling
from ledger import bundle
from ledger.bundle import BundleReport, layout, tiled, tiling
from tests.conftest import fresh_database
from tests.house import refused, rows
from tests.integration.conftest import Here
from tests.integration.test_export import ALONE, SECRET, WITHHELD, exits, key_of, remembered
from tests.integration.test_transfer import lines, position_of
from tests.roles import as_writer

KINDS = ("ledger", "corrections")


class Made(NamedTuple):
    """A ledger whose gateway is open, and its verifier key."""

    here: Here
    gateway: Gateway
    key: str


@pytest.fixture(scope="module")
def made(server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Return a small ledger: a memory of three versions, another, one that was forgotten, two corrections."""
    with fresh_database(server_url, template=migrated_template) as owner:
        here = Here(as_writer(owner), tmp_path_factory.mktemp("tiled") / "home")
        gateway = here(embedder="none")
        remembered(gateway)
        gateway.remember("Nobody may know.", memory_id="gone")
        gateway.record_correction(agent="scout", original_value="Nobody.", corrected_value="Eve knows.", memory="gone")
        gateway.record_correction(agent="scout", original_value="-1+1", corrected_value="0", field="total")
        gateway.forget("gone")
        yield Made(here, gateway, key_of(here))
        here.close()


def everything(path: Path) -> bytes:
    """Return all bytes of a bundle in a directory."""
    return b"".join(one.read_bytes() for one in path.rglob("*") if one.is_file())


def told(path: Path) -> list[dict[str, Any]]:  # Any: JSON
    """Return the lines of a bundle's readable chain."""
    return [json.loads(line) for line in (path / layout.CHAIN).read_text().splitlines()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["bundle", "bundle.tar", "bundle.tar.gz"])
def test_a_whole_log_is_verified_by_two_programs(made: Made, tmp_path: Path, kind: str, name: str) -> None:
    """RC-37: whatever is told of it, the log is whole, exactly of the signed size, and nothing is left where it was."""
    size = position_of(made.gateway) + 1
    answer = getattr(made.gateway, f"export_{kind}")(tmp_path / name, complete=True, recipient="auditor")
    assert (answer.kind, answer.profile, answer.size) == (kind, "complete", size)
    found = verify_bundle(tmp_path / name, made.key)
    assert (found.verdict, found.profile, found.events) == (WITHHELD, "complete", answer.events)
    assert found.payloads["withheld"] == answer.payloads_withheld
    assert f"Nothing of these streams is missing up to size {size}." in found.says
    assert exits(tmp_path / name, made.key) == (0, 0)
    assert [one.name for one in tmp_path.iterdir()] == [name]
    record = made.gateway.show_event(answer.position)
    assert (record.type, record.facts["kind"], record.facts["count"]) == ("export.made.v1", kind, answer.events)
    assert record.payload == {"ids": (), "recipient": "auditor"}


def test_no_entry_has_a_file_of_its_own(made: Made, tmp_path: Path) -> None:
    """A log of up to 256 entries is one tile of each kind; its lines are those of the bundle with a file for each."""
    made.gateway.export_ledger(tmp_path / "tiled", complete=True)
    found = sorted(one.relative_to(tmp_path / "tiled").as_posix() for one in (tmp_path / "tiled").rglob("*"))
    assert [re.sub("p/[0-9]+$", "p/N", one) for one in found if "." in one and one.startswith("tile")] == [
        "tile/0/000.p", "tile/0/000.p/N", "tile/entries/000.p", "tile/entries/000.p/N",
        "tile/payloads/000.p", "tile/payloads/000.p/N",
    ]  # fmt: skip
    assert not {"envelopes", "proofs", "payloads"} & set(found)
    said = (tmp_path / "tiled" / layout.GUIDE).read_text()
    assert "tlog-tiles" in said and "@@" not in said and "proofs/" not in said
    size = len(told(tmp_path / "tiled"))
    made.gateway.export_ledger(tmp_path / "single", as_of=str(size - 1))
    assert told(tmp_path / "single") == told(tmp_path / "tiled")


def test_corrections_are_told_and_nothing_else_is_said(made: Made, tmp_path: Path) -> None:
    """Of other events there are the envelopes, which hold no text; and no event of a correction can be left out."""
    made.gateway.export_corrections(tmp_path / "bundle", complete=True)
    assert {line["type"] for line in told(tmp_path / "bundle")} == {"name.assigned.v1", "correction.recorded.v1"}
    raw = everything(tmp_path / "bundle")
    assert b"-1+1" in raw and not any(text in raw for text in (b"Tuesdays", SECRET.encode(), b"Eve knows."))
    report = json.loads((tmp_path / "bundle" / layout.REPORT).read_text())
    assert (report["kind"], report["events"]) == ("corrections", len(told(tmp_path / "bundle")))


def test_what_was_forgotten_is_in_no_file_of_it(made: Made, tmp_path: Path) -> None:
    """RC-31: neither the text of the revision nor the correction that says it."""
    answer = made.gateway.export_ledger(tmp_path / "bundle", complete=True)
    raw = everything(tmp_path / "bundle")
    assert SECRET.encode() in raw and b"Eve knows." not in raw
    assert answer.payloads_withheld == sum(line["payload"] == "withheld" for line in told(tmp_path / "bundle")) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_all_texts_can_be_withheld(made: Made, tmp_path: Path, kind: str) -> None:
    """No payload, and so no name, is in a file; the chain is proven without them."""
    getattr(made.gateway, f"export_{kind}")(tmp_path / "bundle", complete=True, with_payloads="none")
    found = verify_bundle(tmp_path / "bundle", made.key)
    assert (found.verdict, found.payloads["given"]) == (WITHHELD, 0)
    assert exits(tmp_path / "bundle", made.key) == (0, 0)
    raw = everything(tmp_path / "bundle")
    assert not any(text in raw for text in (b"human:ana", b"-1+1", b"Tuesdays"))


def test_some_texts_can_be_shown(made: Made, tmp_path: Path) -> None:
    """Of memories, only the named revision's text."""
    head = made.gateway.show("deploys").revision_id
    made.gateway.export_ledger(tmp_path / "bundle", complete=True, with_payloads=[head])
    raw = everything(tmp_path / "bundle")
    assert b"Deploys happen on Tuesdays." in raw and SECRET.encode() not in raw
    assert exits(tmp_path / "bundle", made.key) == (0, 0)


def test_what_the_actor_may_not_see_stays_there(open_here: Here, tmp_path: Path) -> None:
    """XC-09: another one's private memory is an envelope in the bundle, and no text."""
    ana = open_here(embedder="none")
    ana.remember("Hers alone.", memory_id="hers", visibility="agent", agent="scout")
    ana.remember("For all.", memory_id="all", visibility="project")
    open_here(actor="human:bo", permissions=["read", "export"]).export_ledger(tmp_path / "bundle", complete=True)
    raw = everything(tmp_path / "bundle")
    assert b"For all." in raw and b"Hers alone." not in raw
    assert exits(tmp_path / "bundle", key_of(open_here)) == (0, 0)


def test_others_write_while_it_is_written(open_here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is held for a page at a time, and what comes meanwhile is above the size of the checkpoint."""
    gateway = open_here(embedder="none")
    remembered(gateway)
    monkeypatch.setattr(telling, "PAGE", 4)
    size = position_of(gateway) + 1
    seen: list[tuple[int, int]] = []

    def meanwhile(done: int, total: int) -> None:
        seen.append((done, total))
        gateway.remember(f"Meanwhile, {done}.")

    answer = gateway.export_ledger(tmp_path / "bundle", complete=True, progress=meanwhile)
    assert (answer.size, answer.events) == (size, size)
    assert seen == [(done, size) for done in (4, 8, size, 0, 4, 8, size)] and size == 10
    assert b"Meanwhile" not in everything(tmp_path / "bundle")
    assert exits(tmp_path / "bundle", key_of(open_here)) == (0, 0)


@pytest.mark.parametrize("pages", [1, 6])
def test_what_is_forgotten_while_it_is_written_is_not_handed_out(
    open_here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    """RC-31: found again before the export is recorded; where it came before its text was read, and after that."""
    gateway = open_here(embedder="none")
    remembered(gateway)
    monkeypatch.setattr(telling, "PAGE", 4)
    calls: list[int] = []

    def meanwhile(done: int, _: int) -> None:
        calls.append(done)
        if len(calls) == pages:
            gateway.forget("deploys")

    with refused("CONCURRENT_MODIFICATION"):
        gateway.export_ledger(tmp_path / "bundle", complete=True, progress=meanwhile)
    assert len(calls) >= pages and not (tmp_path / "bundle").exists()
    counted = "SELECT count(*) FROM corrigenda.log_entry WHERE type = 'export.made.v1'"
    assert rows(open_here.ledger_url, counted) == [(0,)]
    assert [one for one in tmp_path.iterdir() if one != open_here.home] == []
    gateway.export_ledger(tmp_path / "bundle", complete=True)
    assert b"Tuesdays" not in everything(tmp_path / "bundle")


def test_the_same_export_again_is_of_the_same_size(open_here: Here, tmp_path: Path) -> None:
    """RC-14: the same key hands out the log as it was recorded, also where the bundle is gone by now."""
    gateway = open_here(embedder="none")
    remembered(gateway)
    first = gateway.export_ledger(tmp_path / "b.tar", complete=True, idempotency_key="k")
    kept = gateway.export_ledger(tmp_path / "b.tar", complete=True, idempotency_key="k")
    gateway.correct("deploys", "Deploys happen on Fridays.")
    (tmp_path / "b.tar").unlink()
    again = gateway.export_ledger(tmp_path / "b.tar", complete=True, idempotency_key="k")
    assert [one.replayed for one in (first, kept, again)] == [False, True, True]
    assert {(one.position, one.size, one.root, one.events) for one in (first, kept, again)} == {
        (first.position, first.size, first.root, first.events)
    }
    assert verify_bundle(tmp_path / "b.tar", key_of(open_here)).size == first.size


def test_what_cannot_be_written_is_not_recorded(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that is taken or cannot be, and a chain that is too large, leave no event and nothing half made."""
    before = position_of(made.gateway)
    (tmp_path / "taken").mkdir()
    for path in (tmp_path / "taken", tmp_path / "no" / "where"):
        with refused("VALIDATION_FAILED"):
            made.gateway.export_ledger(path, complete=True)
    monkeypatch.setattr(layout, "FILE_BYTES_MAX", 5_000)
    with refused("VALIDATION_FAILED"):
        made.gateway.export_ledger(tmp_path / "b.tar", complete=True)
    assert position_of(made.gateway) == before
    assert [one.name for one in tmp_path.iterdir()] == ["taken"]


def test_the_page_shows_the_first_events_and_says_so(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long log the page holds the first events with their proofs, and how many there are."""
    monkeypatch.setattr(tiling, "SHOWN_MAX", 3)
    answer = made.gateway.export_ledger(tmp_path / "bundle", complete=True)
    page = (tmp_path / "bundle" / layout.VIEWER).read_text(encoding="utf-8")
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert [json.loads(one["envelope"])["seq"] for one in data["events"]] == [0, 1, 2]
    assert (data["told"], all(one["proof"] for one in data["events"])) == (answer.events, True)


def test_a_report_of_many_streams_lists_the_first(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many there are, and neither program prints a million."""
    made.gateway.export_ledger(tmp_path / "bundle", complete=True)
    streams = {line["stream"] for line in told(tmp_path / "bundle")}
    assert len(verify_bundle(tmp_path / "bundle", made.key).streams) == len(streams)
    monkeypatch.setattr(tiled, "STREAMS_LISTED", 2)
    found = verify_bundle(tmp_path / "bundle", made.key)
    assert [one["stream"] for one in found.streams] == sorted(streams)[:2]
    assert f"It tells {len(streams)} streams, of which the first 2 are listed here." in found.says
    assert (found.stream_count, len(streams) > 2) == (len(streams), True)
    assert f"events in {len(streams)} streams" in audit.bundle(found)


@pytest.mark.parametrize("name", ["tiled", "tiled.tar.gz"])
def test_it_is_taken_over_as_any_other_bundle(
    open_here: Here, server_url: str, migrated_template: str, tmp_path: Path, name: str
) -> None:
    """Imported elsewhere, everything is as from the bundle with a file for each event."""
    gateway = open_here(embedder="none")
    remembered(gateway)
    size = position_of(gateway) + 1
    gateway.export_ledger(tmp_path / name, complete=True)
    gateway.export_ledger(tmp_path / "single", as_of=str(size - 1))
    key, taken = key_of(open_here), list[list[dict[str, Any]]]()  # Any: JSON
    for path in (tmp_path / name, tmp_path / "single"):
        with fresh_database(server_url, template=migrated_template) as owner:
            elsewhere = Here(as_writer(owner), tmp_path / f"{path.name}-home")
            there = elsewhere(actor="human:zoe", embedder="none")
            report = there.import_bundle(path, key)
            assert (report.verified, report.kind, report.rejected) == (True, "bundle", 0)
            there.export_ledger(tmp_path / f"{path.name}.jsonl", form="jsonl")
            elsewhere.close()
        taken.append([
            {field: line[field] for field in ("key", "type", "stream_name", "actor_name", "recorded_at", "said")}
            for line in lines(tmp_path / f"{path.name}.jsonl")
            if line["type"].startswith(("memory.", "revision."))
        ])  # fmt: skip
    assert taken[0] == taken[1] and len(taken[0]) == 6


def test_a_chain_that_changes_after_it_was_verified_is_not_imported(
    made: Made, open_here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read is what the listing names, whatever became of the file since; also where that is longer."""
    made.gateway.export_ledger(tmp_path / "bundle", complete=True)
    there = open_here(actor="human:zoe", embedder="none")
    chain = tmp_path / "bundle" / layout.CHAIN

    verify = bundle.verify_bundle

    def changed(*given: Any, **named: Any) -> BundleReport:  # Any: what it takes
        found = verify(*given, **named)
        chain.write_bytes(chain.read_bytes() * 3)
        return found

    monkeypatch.setattr("ledger.bundle.verify_bundle", changed)
    before = position_of(there)
    with refused("INTEGRITY_BROKEN"):
        there.import_bundle(tmp_path / "bundle", made.key)
    assert position_of(there) == before


def test_both_programs_refuse_an_empty_folder(made: Made, tmp_path: Path) -> None:
    """Nothing else lies in a bundle, not even nothing, wherever the folder is."""
    made.gateway.export_ledger(tmp_path / "bundle", complete=True)
    for folder in ("empty", "tile/entries/x001"):
        (tmp_path / "bundle" / folder).mkdir()
        assert exits(tmp_path / "bundle", made.key) == (14, 14)
        (tmp_path / "bundle" / folder).rmdir()
    assert exits(tmp_path / "bundle", made.key) == (0, 0)


def test_an_older_form_of_a_complete_ledger_is_still_read(made: Made, tmp_path: Path) -> None:
    """A bundle with a file for each event, to which somebody adds the log's tiles of entries, has both to be whole."""
    made.gateway.export_supersession(["deploys"], tmp_path / "bundle", complete=True)
    assert exits(tmp_path / "bundle", made.key) == (0, 0)
    with contextlib.redirect_stdout(said := io.StringIO()):
        assert ALONE.main([made.key, str(tmp_path / "bundle")]) == 0
    assert json.loads(said.getvalue().partition("\n")[2])["nothing_missing"] is True
    shutil.rmtree(tmp_path / "bundle" / "tile" / "entries")
    assert exits(tmp_path / "bundle", made.key) == (14, 14)
