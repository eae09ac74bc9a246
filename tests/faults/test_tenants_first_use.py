"""Making further tenants: at once, killed in the middle, and again; each has one ledger, and none is lost."""

from pathlib import Path

import psycopg
import pytest

from gateway.bootstrap import open_bare
from tests.faults.ledger_hands import Document, as_later, kill, race, run
from tests.house import assert_house_in_order
from tests.roles import as_owner


@pytest.fixture
def made(ledger_url: str, home: Path, no_settings: None) -> Document:
    """The arguments that open a database with the ledger of `local`."""
    where = {"database_url": as_owner(ledger_url), "home": str(home), "project": "first", "embedder": "none"}
    run("init", where)
    return where


def ledgers(where: Document) -> dict[str, str]:
    """Return the ledger of each tenant; there is one head, and one event 0, for each."""
    with psycopg.connect(where["database_url"]) as connection:
        found = dict(connection.execute("SELECT name, ledger FROM corrigenda.tenant").fetchall())
        heads = connection.execute("SELECT ledger FROM corrigenda.head ORDER BY 1").fetchall()
        events = connection.execute("SELECT ledger FROM corrigenda.event WHERE seq = 0 ORDER BY 1").fetchall()
    assert heads == events == sorted((ledger,) for ledger in found.values())
    return found


def assert_in_order(where: Document) -> None:
    """Fail unless every tenant's house is in order."""
    for tenant in ledgers(where):
        assert_house_in_order(where["database_url"], Path(where["home"]), tenant=tenant)


def test_many_initialisations_of_a_tenant_make_one_ledger(made: Document, tmp_path: Path) -> None:
    """Four processes run `db init --tenant acme` at once, and say the same of what was made."""
    ended = race("init", {**made, "tenant": "acme"}, tmp_path / "gate", 4, linger_s=0.3)
    answers = [as_later(one.answers[0]) for one in ended]
    assert answers == [answers[0]] * 4
    assert ledgers(made).keys() == {"local", "acme"}
    assert_in_order(made)


@pytest.mark.parametrize("moment", ["after both keys", "before event 0 is committed"])
def test_a_tenant_that_was_not_made_is_made_next_time(made: Document, moment: str) -> None:
    """Killed before the commit there is no second ledger, and `local` is as it was; the next time it is made."""
    where = {**made, "tenant": "acme"}
    kill("init", where, moment)
    assert ledgers(made).keys() == {"local"}
    run("init", where)
    assert ledgers(made).keys() == {"local", "acme"}
    assert_in_order(made)


def test_a_tenant_that_was_made_unreported_is_found_next_time(made: Document) -> None:
    """Killed after the commit it is there; `db init --tenant` again says so and makes nothing."""
    where = {**made, "tenant": "acme"}
    kill("init", where, "after event 0 is committed")
    before = ledgers(made)
    assert before.keys() == {"local", "acme"}
    with open_bare(database_url=made["database_url"], home=made["home"], tenant="acme") as bare:
        assert bare.init()["ledger"] == before["acme"]
    assert ledgers(made) == before
    assert_in_order(made)
