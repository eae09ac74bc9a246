"""An import of lines or of a bundle that is killed in the middle is finished by another; nothing is there twice."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.bootstrap import open_bare, open_gateway
from tests.conftest import fresh_database
from tests.faults.ledger_hands import Document, Told, assert_in_order, kill, read_ledger, run
from tests.roles import as_writer

LINES_PER_PAGE = 4
# When the process is killed, at which page of the import, and how many pages are stored by then.
POINTS = [("before the commit", 3, 2), ("after the commit", 3, 3)]
OWN = ("ledger.", "export.")  # what an import does not take over


class Source(NamedTuple):
    """A history in one of its two forms: the file, the key that a bundle takes, and how often each op is in it."""

    path: Path
    key: str | None
    ops: "Counter[str]"


@pytest.fixture(scope="module")
def sources(
    server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Source]]:
    """A ledger of two dozen events that was handed out: as lines, and as a bundle."""
    folder = tmp_path_factory.mktemp("source")
    with fresh_database(server_url, template=migrated_template) as url:
        where: dict[str, Any] = {"database_url": as_writer(url), "home": str(folder / "home")}  # Any: a setting's value
        with open_gateway(**where, project="faults", actor="human:ana", embedder="none") as gateway:
            for name in ("one", "two", "three", "four"):
                gateway.remember(f"{name}.", memory_id=name, sources=["wiki"])
                gateway.correct(name, f"{name}, corrected.", reason="asked")
            gateway.retire("two", reason="old")
            gateway.record_correction(agent="scout", original_value="4", corrected_value="5", field="rate")
            gateway.export_ledger(folder / "all.jsonl", form="jsonl")
            gateway.export_ledger(folder / "bundle")
        with open_bare(**where, create=False) as bare:
            key = bare.public_key()["public_key"]
        told = [json.loads(line) for line in (folder / "all.jsonl").read_bytes().splitlines()[1:-1]]
        ops = Counter(line["op"] for line in told if not line["type"].startswith(OWN))
        yield {
            "lines": Source(folder / "all.jsonl", None, ops),
            "bundle": Source(folder / "bundle", key, ops),
        }


def taken(told: Told, source: Source) -> list[str]:
    """Return the op of each event that a ledger has of a source, once for each."""
    return [item.entry.envelope.op for item in told.events if item.entry.envelope.op in source.ops]


@pytest.mark.parametrize(("moment", "nth", "pages"), POINTS, ids=[point[0] for point in POINTS])
@pytest.mark.parametrize("form", ["lines", "bundle"])
def test_a_killed_import_is_finished_by_another(
    where: Document, sources: dict[str, Source], form: str, moment: str, nth: int, pages: int
) -> None:
    """RC-37: given whole pages of it, when it runs again, all is there once, and what was there is called unchanged."""
    where, source = {**where, "embedder": "none", "actor": "human:zoe"}, sources[form]
    words = {"path": str(source.path), "key": source.key, "lines_per_page": LINES_PER_PAGE}

    kill("take over", where, moment, nth=nth, **words)

    before = read_ledger(where)
    assert before.types["ledger.imported"] == pages
    here = taken(before, source)
    assert 0 < len(here) < source.ops.total()
    (report,) = run("take over", where, **words).answers
    after = assert_in_order(where)
    assert Counter(taken(after, source)) == source.ops
    assert (report["unchanged"], report["stored"]) == (len(here), source.ops.total() - len(here))
    assert (report["rejected"], report["items"]) == (0, [])
    assert {name: len(state.revisions) for name, state in states(after).items()} == dict.fromkeys(
        ("one", "two", "three", "four"), 2
    )
    assert read_ledger(where).events[: len(before.events)] == before.events


def states(told: Told) -> dict[str, Any]:  # Any: as the ledger folds it
    """Return the states of memories by name."""
    return {told.names[lineage]: state for lineage, state in told.states.items()}
