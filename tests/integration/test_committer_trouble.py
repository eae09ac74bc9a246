"""What the committer makes of a server in trouble, and of defaults that are not ours."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from ledger import committer
from ledger.errors import UnavailableError
from ledger.store import Write
from tests.appends import (
    DEADLINE_S,
    Appends,
    on_stream,
    planted,
    positions,
    results,
    transactions,
    whole,
)
from tests.house import last_position, refused
from tests.roles import as_owner

ANY_DEFAULTS = "-c default_transaction_read_only=off -c statement_timeout=0"
PASSES = ("40001", "40P01", "55P03", "57P03", "53100", "53200", "53300")


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let groups be tried for half a second."""
    monkeypatch.setattr(committer, "PATIENCE_S", 0.5)


@pytest.mark.parametrize("state", PASSES)
def test_trouble_that_passes_is_waited_for(appends: Appends, ledger_url: str, state: str) -> None:
    """XC-01: given a server in trouble that passes, when it has passed, then what waited is stored, once."""
    raising = f"RAISE EXCEPTION 'in trouble' USING ERRCODE = '{state}';"
    with planted(ledger_url, raising):
        future = appends.submit("s")
        with pytest.raises(TimeoutError):
            future.result(0.3)

    assert positions(future.result(DEADLINE_S)) == [1]
    assert on_stream(ledger_url, "s") == [1]


@pytest.mark.usefixtures("short_patience")
@pytest.mark.parametrize("state", PASSES)
def test_trouble_that_does_not_pass_is_told(appends: Appends, ledger_url: str, state: str) -> None:
    """XC-01, RC-21: given trouble without end, then UNAVAILABLE for the whole group, which says nothing was stored."""
    raising = f"RAISE EXCEPTION 'in trouble' USING ERRCODE = '{state}';"
    with planted(ledger_url, raising):
        futures = [appends.submit("s", key=f"k{number}") for number in range(3)]
        errors = [future.exception(DEADLINE_S) for future in futures]

    assert [isinstance(error, UnavailableError) for error in errors] == [True] * 3
    assert all("nothing was stored" in str(error) and "in trouble" in str(error) for error in errors)
    assert last_position(ledger_url) == 0
    assert appends.store("s", key="k0") == [1]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_default_isolation_of_the_role_changes_nothing(
    ledger_url: str, home: Path, no_settings: None, level: str
) -> None:
    """Given a role whose default is a stricter isolation, when two processes write in turns, each append is stored."""
    setting = f"default_transaction_isolation = '{level}'"
    with role_setting(ledger_url, setting), whole(ledger_url, home) as one, whole(ledger_url, home) as other:
        assert [place for _ in range(5) for by in (one, other) for place in by.store("s")] == [*range(1, 11)]
        with one.waiting():
            futures = [by.submit("s") for _ in range(10) for by in (one, other)]
        results(futures)

    assert len(on_stream(ledger_url, "s")) == 30


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_each_transaction_is_at_our_level(
    ledger_url: str, home: Path, no_settings: None, level: str, *, pooled: bool
) -> None:
    """Given such a role, each append is stored at our level at once, also where no BEGIN is sent that could say it.

    So is what is read in one round trip.
    """
    asked = Write("SELECT current_setting('transaction_isolation')", {})
    setting = f"default_transaction_isolation = '{level}'"
    with role_setting(ledger_url, setting), whole(ledger_url, home, pooled=pooled) as appends:
        appends.store("s")
        assert levels(ledger_url, lambda: [appends.store("s") for _ in range(3)]) == ["read committed"] * 3
        assert appends.ledger.store.together([asked]) == [[("read committed",)]]

    assert on_stream(ledger_url, "s") == [1, 2, 3, 4]


def levels(ledger_url: str, store: Callable[[], object]) -> list[str]:
    """Return the isolation level of each transaction that stores events meanwhile and is committed."""
    told = "PERFORM pg_notify('level', current_setting('transaction_isolation'));"
    with planted(ledger_url, told), psycopg.connect(as_owner(ledger_url), autocommit=True) as connection:
        connection.execute("LISTEN level")
        store()
        connection.execute("NOTIFY level, 'all'")
        return [*iter(lambda: next(connection.notifies(timeout=DEADLINE_S)).payload, "all")]


# ---------------------------------------------------------------- what is set otherwise


def test_a_database_that_may_only_be_read_is_told_at_once(appends: Appends, ledger_url: str) -> None:
    """Given a database that may only be read, then UNAVAILABLE, without patience; as soon as it can, it stores."""
    with role_setting(ledger_url, "default_transaction_read_only = on"):
        cut_off(ledger_url)
        began = time.monotonic()
        with refused("UNAVAILABLE") as refusal:
            appends.submit("s", key="k").result(DEADLINE_S)
        assert time.monotonic() - began < committer.PATIENCE_S / 2

    assert "nothing was stored" in refusal.error.message.lower()
    cut_off(ledger_url)
    assert appends.store("s", key="k") == [1]


def test_a_group_that_takes_longer_than_a_statement_may_is_stored_one_by_one(
    ledger_url: str, home: Path, no_settings: None
) -> None:
    """Given a role's statement_timeout that a group runs into, then its appends are stored each alone, in order."""
    setting, slowly = "statement_timeout = 1500", "PERFORM pg_sleep(0.4);"
    with role_setting(ledger_url, setting), whole(ledger_url, home) as appends, planted(ledger_url, slowly):
        with appends.waiting():
            futures = [appends.submit("s") for _ in range(5)]
        stored = [positions(outcome) for outcome in results(futures)]

    assert stored == [[2], [3], [4], [5], [6]]
    assert transactions(ledger_url)[1:] == stored


def cut_off(ledger_url: str) -> None:
    """End every other connection to this database."""
    with psycopg.connect(as_owner(ledger_url), autocommit=True, options=ANY_DEFAULTS) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@contextmanager
def role_setting(ledger_url: str, setting: str) -> Generator[None]:
    """Give the role of these tests a default in this database, for connections that are made from now on."""
    name = setting.partition(" ")[0]
    alter_role(ledger_url, f"SET {setting}")
    try:
        yield
    finally:
        alter_role(ledger_url, f"RESET {name}")


def alter_role(ledger_url: str, change: str) -> None:
    """Change the role's defaults in this database, whatever they are now."""
    with psycopg.connect(ledger_url, autocommit=True, options=ANY_DEFAULTS) as connection:
        connection.execute(f"ALTER ROLE CURRENT_USER IN DATABASE {connection.info.dbname} {change}".encode())
