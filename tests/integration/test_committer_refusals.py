"""What the database refuses, and rows that nobody wrote: who is told, and who is stored all the same."""

import psycopg
import pytest

from ledger import storing
from ledger.errors import UnavailableError
from tests.appends import (
    DEADLINE_S,
    Appends,
    on_stream,
    planted,
    positions,
)
from tests.house import last_position, refused, rows, tamper
from tests.roles import as_owner

REFUSE_BAD = "IF NEW.stream = 'name_bad' THEN RAISE EXCEPTION 'not this one' USING ERRCODE = '23514'; END IF;"


@pytest.mark.parametrize("bad", [[0], [4], [9], [0, 5, 9], [*range(10)]])
def test_of_a_group_only_what_the_database_refuses_is_refused(
    appends: Appends, ledger_url: str, bad: list[int]
) -> None:
    """XC-01: given a group in which the database refuses some appends, they alone fail; the rest keeps its order."""
    with planted(ledger_url, REFUSE_BAD):
        with appends.waiting():
            futures = [appends.submit("good", "bad" if number in bad else "good") for number in range(10)]
        outcomes = [future.exception(DEADLINE_S) or positions(future.result()) for future in futures]

    refusals = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert [isinstance(outcome, UnavailableError) for outcome in outcomes] == [number in bad for number in range(10)]
    assert all("nothing was stored" in str(refusal) for refusal in refusals)
    stored = [position for outcome in outcomes if isinstance(outcome, list) for position in outcome]
    assert stored == [*range(2, 22 - 2 * len(bad))]
    assert on_stream(ledger_url, "bad") == []
    assert appends.store("bad") == [22 - 2 * len(bad)]


def test_sifting_takes_nothing_more_in(appends: Appends, ledger_url: str) -> None:
    """Given one that is refused while others keep coming, then it has its answer before those that came after it."""
    answered: list[int] = []
    with planted(ledger_url, REFUSE_BAD):
        with appends.waiting():
            futures = [appends.submit(*["good" if number % 100 else "bad"] * 20) for number in range(300)]
            for number, future in enumerate(futures):
                future.add_done_callback(lambda _, number=number: answered.append(number))
        errors = [future.exception(DEADLINE_S) for future in futures]

    assert [number for number, error in enumerate(errors) if error] == [0, 100, 200]
    assert answered == [*range(300)]


def test_a_refusal_tells_nothing_of_what_was_to_be_stored(appends: Appends, ledger_url: str) -> None:
    """XC-04: given a CHECK that a payload fails, the server quotes the row, and the refusal does not."""
    with psycopg.connect(as_owner(ledger_url), autocommit=True) as connection:
        connection.execute("ALTER TABLE corrigenda.payload ADD CONSTRAINT short CHECK (length(body) < 100)")
        try:
            error = appends.submit("s", name="secret" * 30).exception(DEADLINE_S)
        finally:
            connection.execute("ALTER TABLE corrigenda.payload DROP CONSTRAINT short")

    assert isinstance(error, UnavailableError)
    assert "short" in str(error)
    assert b"secret".hex() not in str(error) and "Failing row" not in str(error)


# ---------------------------------------------------------------- rows that nobody wrote


PLANT = {
    "event": (
        "INSERT INTO corrigenda.event SELECT ledger, %s, 'name_x', 0, envelope, hash, seal, NULL"
        " FROM corrigenda.event WHERE seq = 0"
    ),
    "payload": "INSERT INTO corrigenda.payload SELECT ledger, %s, 'salt', 'body' FROM corrigenda.head",
}


@pytest.mark.parametrize("table", PLANT)
def test_a_row_that_nobody_wrote_stops_all_appends_at_once(
    appends: Appends, ledger_url: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """XC-03: given a foreign row above the head, each append is INTEGRITY_BROKEN, and the group is not taken apart."""
    at = last_position(ledger_url) + 2
    tried: list[int] = []
    write = storing.group_writes
    monkeypatch.setattr(storing, "group_writes", lambda *given: tried.append(len(given[2])) or write(*given))
    with appends.waiting():
        tamper(ledger_url, (PLANT[table], [at]))
        futures = [appends.submit("s") for _ in range(20)]

    for future in futures:
        with refused("INTEGRITY_BROKEN") as refusal:
            future.result(DEADLINE_S)
        assert refusal.details["position"] == at
    assert len(tried) <= 4, "each of the group was tried alone"

    tamper(ledger_url, (f"DELETE FROM corrigenda.{table} WHERE seq = %s", [at]))  # noqa: S608 - from PLANT
    assert appends.store("s") == [at]


@pytest.mark.parametrize("above", [2, storing.GAP_MAX + 2])
def test_who_holds_the_head_is_told_of_an_event_above_it(appends: Appends, ledger_url: str, above: int) -> None:
    """XC-03: given an event above the head, near or far, whoever locks it is told, and decides nothing."""
    at = last_position(ledger_url) + above
    tamper(ledger_url, (PLANT["event"], [at]))
    with refused("INTEGRITY_BROKEN") as refusal, appends.committer.hold():
        raise AssertionError("it was given the head")
    assert refusal.details["position"] == last_position(ledger_url) + 1

    tamper(ledger_url, ("DELETE FROM corrigenda.event WHERE seq = %s", [at]))
    with appends.committer.hold() as held:
        assert len(held.store([appends.draft("s")])) == 1


def test_a_row_under_another_streams_name_stops_only_that_stream(appends: Appends, ledger_url: str) -> None:
    """XC-03: given a row relabelled to where a stream goes on, it is INTEGRITY_BROKEN there, and there alone."""
    (at,) = appends.store("s")
    tamper(ledger_url, ("UPDATE corrigenda.event SET stream = 'name_t' WHERE seq = %s", [at]))
    with appends.waiting():
        futures = [appends.submit(stream) for stream in "utu"]

    with refused("INTEGRITY_BROKEN") as refusal:
        futures[1].result(DEADLINE_S)
    assert refusal.details["check"] == "streams"
    assert [positions(future.result(DEADLINE_S)) for future in futures[::2]] == [[at + 2], [at + 3]]

    tamper(ledger_url, ("UPDATE corrigenda.event SET stream = 'name_s' WHERE seq = %s", [at]))
    assert appends.store("t") == [at + 4]


def test_a_head_row_that_is_gone_is_named(appends: Appends, ledger_url: str) -> None:
    """XC-03: given a head row that somebody removed, an append is INTEGRITY_BROKEN; once it is back, all is well."""
    head = rows(ledger_url, "SELECT * FROM corrigenda.head")[0]
    tamper(ledger_url, ("DELETE FROM corrigenda.head", []))

    with refused("INTEGRITY_BROKEN"):
        appends.submit("s").result(DEADLINE_S)

    tamper(ledger_url, ("INSERT INTO corrigenda.head VALUES (%s, %s, %s, %s, %s, %s)", list(head)))
    assert appends.store("s") == [1]
