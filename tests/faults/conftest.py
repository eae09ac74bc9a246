"""Fixtures of the fault tests."""

from collections.abc import Generator

import pytest

from tests.faults.embedded_home import House, caller, ordinary


@pytest.fixture
def house() -> Generator[House, None, None]:
    """A temporary home of whoever runs the tests."""
    with House(caller()) as made:
        yield made


@pytest.fixture(params=["caller", "ordinary"])
def anybodys_house(request: pytest.FixtureRequest) -> Generator[House, None, None]:
    """A temporary home, of the caller and again of an ordinary user (where the caller is root)."""
    with House(caller() if request.param == "caller" else ordinary()) as made:
        yield made
