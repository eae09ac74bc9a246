"""An import that is killed, or runs twice at once, ends where an undisturbed one ends; no row is there twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.bootstrap import open_gateway
from gateway.imports.importing import STEPS_PER_PAGE
from tests.conftest import fresh_database
from tests.faults.children import Counting
from tests.faults.ledger_hands import Document, Told, assert_in_order, indexed, kill, race, read_ledger
from tests.pep_histories import HISTORIES, LINKS, UNLINKS, History, available
from tests.roles import as_writer

# Where the process is killed, when that comes for the n-th time, and how many pages are stored by then.
POINTS = [
    ("while deciding", STEPS_PER_PAGE + STEPS_PER_PAGE // 2, 1),
    ("before the append", 1, 0),
    ("before the last part", 4, 1),  # of the two that each page has
    ("after the commit", 2, 2),
    ("between pages", 1, 1),
]
IN_THE_DRAIN = [("before the embedding", 2), ("after the embedding", 1), ("before the rename", 1)]


# The whole history at every point takes its time; all points in a row are always tried with it, where it can be had.
SLOW_WITH_THE_WHOLE = pytest.mark.parametrize(
    "history", ["excerpt", pytest.param("whole", marks=pytest.mark.soak)], indirect=True
)


@pytest.fixture(params=HISTORIES, scope="module")
def history(request: pytest.FixtureRequest) -> History:
    """Each history in turn."""
    return available(request.param)


@pytest.fixture(scope="module")
def undisturbed(
    history: History, server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    """What a ledger holds after one import that nobody disturbed."""
    home = tmp_path_factory.mktemp("undisturbed")
    with fresh_database(server_url, template=migrated_template) as url:
        where: Document = {
            "database_url": as_writer(url),
            "home": str(home),
            "project": "peps",
            "actor": "human:x",
            "embedder": "none",
        }
        with open_gateway(**where) as gateway:
            gateway.import_peps(history.path)
        yield read_ledger(where)


@pytest.fixture
def without(where: Document) -> Document:
    """The arguments that open this test's ledger without an embedder."""
    return {**where, "project": "peps", "embedder": "none"}


def appends(where: Document) -> int:
    """Return how many appends the ledger holds, its opening apart."""
    return len({item.entry.envelope.op for item in read_ledger(where).events}) - 1


def assert_as_undisturbed(told: Told, undisturbed: Told) -> None:
    """Fail unless a ledger has the other's states, by name, and as many events of each type."""
    assert told.folded == undisturbed.folded
    assert told.types == undisturbed.types
    assert told.live_edges == undisturbed.live_edges


@SLOW_WITH_THE_WHOLE
@pytest.mark.parametrize(("moment", "nth", "pages"), POINTS, ids=[point[0] for point in POINTS])
def test_a_killed_import_is_finished_by_another(
    without: Document, history: History, undisturbed: Told, moment: str, nth: int, pages: int
) -> None:
    """Whole pages are stored or nothing of them; another import stores the rest, and the states are the same."""
    kill("import", without, moment, nth=nth, path=str(history.path))
    assert appends(without) == pages * STEPS_PER_PAGE
    with open_gateway(**without) as gateway:
        report = gateway.import_peps(history.path)
    assert report.unchanged + report.stored == history.rows
    assert report.waiting == report.rejected == 0
    assert_as_undisturbed(assert_in_order(without), undisturbed)


@pytest.mark.parametrize("history", ["whole"], indirect=True)
def test_an_import_that_is_killed_again_and_again_is_finished(
    without: Document, history: History, undisturbed: Told
) -> None:
    """Killed at all five points one after the other, each time by a process that goes on where the last one fell."""
    for moment, _, _ in POINTS:
        kill("import", without, moment, path=str(history.path))
    with open_gateway(**without) as gateway:
        report = gateway.import_peps(history.path)
    assert 0 < report.stored < history.rows
    assert report.unchanged + report.stored == history.rows
    assert_as_undisturbed(assert_in_order(without), undisturbed)


@SLOW_WITH_THE_WHOLE
@pytest.mark.parametrize(("moment", "nth"), IN_THE_DRAIN, ids=[point[0] for point in IN_THE_DRAIN])
def test_an_import_that_is_killed_in_its_drain_is_recovered(
    where: Document, counting: Counting, undisturbed: Told, history: History, moment: str, nth: int
) -> None:
    """Every row was stored before; the recovery carries all effects, and no stored vector is made again."""
    where = {**where, "project": "peps"}
    kill("import", where, moment, nth=nth, path=str(history.path))
    assert_as_undisturbed(read_ledger(where), undisturbed)
    assert indexed(Path(where["home"])) == set()
    with open_gateway(**where, replay=False) as gateway:
        done = gateway.recover()
        assert done.replayed > history.heads
        assert gateway.recover().replayed == 0
    assert len(counting.embedded) < history.heads
    assert (len(counting.embedded) > 0) == (moment != "before the rename")
    assert_in_order(where)


@SLOW_WITH_THE_WHOLE
def test_two_imports_at_once_store_each_row_once(
    without: Document, history: History, undisturbed: Told, tmp_path: Path
) -> None:
    """Two processes import one file at the same moment: between them they store every row and link, each once."""
    ended = race("import", without, tmp_path / "gate", 2, path=str(history.path))
    reports = [one.answers[0] for one in ended]
    assert sum(report["stored"] for report in reports) == history.rows
    assert sum(report["unchanged"] for report in reports) == history.rows
    assert sum(report["links"] for report in reports) == LINKS
    assert sum(report["unlinks"] for report in reports) == UNLINKS
    assert_as_undisturbed(assert_in_order(without), undisturbed)
