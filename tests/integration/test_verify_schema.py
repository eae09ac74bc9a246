"""The owner changes the tables themselves. These tests have a database each: the others share one."""

from collections.abc import Iterator

import pytest

import migrations
from tests.conftest import fresh_database
from tests.roles import as_writer
from tests.tampering import Tampering, failed


@pytest.fixture
def ledger_url(server_url: str) -> Iterator[str]:
    """Return the writer's connection string of a migrated database of this test's own."""
    with fresh_database(server_url) as url:
        migrations.upgrade(url)
        yield as_writer(url)


def test_the_tables_removed(tampering: Tampering) -> None:
    """A table that is gone is a finding, too."""
    tampering.run("DROP TABLE corrigenda.payload")
    assert failed(tampering.report()) == {"chain": 0}


def test_columns_emptied(tampering: Tampering) -> None:
    """An owner who first drops the constraints gets findings, not a crash."""
    tampering.run(
        "ALTER TABLE corrigenda.event ALTER envelope DROP NOT NULL, ALTER hash DROP NOT NULL, ALTER seal DROP NOT NULL",
        "ALTER TABLE corrigenda.event ALTER stream DROP NOT NULL, ALTER stream_seq DROP NOT NULL",
        "UPDATE corrigenda.event SET envelope = NULL, hash = NULL, seal = NULL, stream = NULL, stream_seq = NULL "
        "WHERE ledger = %(ledger)s AND seq = 5",
    )
    found = failed(tampering.report())
    assert (found["canonical"], found["chain"], found["seals"]) == (5, 5, 5)
