"""Fixtures of the fault tests."""

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from gateway.embedded import stop
from projections import embedders
from tests.faults.children import COUNTING, Counting
from tests.faults.embedded_home import House, caller, ordinary
from tests.faults.ledger_hands import Document


@pytest.fixture
def house() -> Generator[House, None, None]:
    """A temporary home of whoever runs the tests."""
    with House(caller()) as made:
        yield made


@pytest.fixture(scope="module")
def _one_house() -> Generator[House, None, None]:
    with House(caller()) as made:
        yield made


@pytest.fixture
def lived_in(_one_house: House) -> Generator[House, None, None]:
    """The caller's home with a cluster that earlier tests of the module have used: quicker than a new one."""
    if not list(_one_house.folder.iterdir()):
        _one_house.visit()
        _one_house.stop()
    yield _one_house
    _one_house.end_servers()


@pytest.fixture(params=["caller", "ordinary"])
def anybodys_house(request: pytest.FixtureRequest) -> Generator[House, None, None]:
    """A temporary home, of the caller and again of an ordinary user (where the caller is root)."""
    with House(caller() if request.param == "caller" else ordinary()) as made:
        yield made


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the settings of whoever runs the tests."""
    for name in [*os.environ]:
        if name.startswith(("CORRIGENDA_", "DATABASE_URL")) and not name.startswith("CORRIGENDA_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture
def fresh_home() -> Iterator[Path]:
    """A home that is not made yet; whatever embedded server it comes to have is removed with it."""
    folder = Path(tempfile.mkdtemp(prefix="corrigenda-test-"))
    home = folder / "home"
    try:
        yield home
    finally:
        stop(home, remove=True)
        shutil.rmtree(folder)


@pytest.fixture
def where(ledger_url: str, home: Path, no_settings: None) -> Document:
    """The arguments that open this test's ledger, with the embedder without a model."""
    return {
        "database_url": ledger_url,
        "home": str(home),
        "project": "faults",
        "actor": "human:tester",
        "embedder": COUNTING,
    }


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """Put the embedder without a model under its name in this process, too, and return it: it counts."""
    embedder, load = Counting(), embedders.load
    monkeypatch.setattr(embedders, "load", lambda name: embedder if name == COUNTING else load(name))
    return embedder
