"""Which corrections are listed, counted and made into cases: by what was asked, and by who may see them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.service import Gateway
from tests.house import refused
from tests.integration.conftest import Here

MOMENTS = [datetime(2026, month, 15, 12, tzinfo=UTC) for month in (1, 2, 3)]


class StoppedClock:
    """A clock that shows what it was last set to."""

    def __init__(self) -> None:
        self.now = MOMENTS[0]

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def filled(open_here: Here) -> Here:
    """Return gateways on five corrections, `1` to `5` by their original values, over three months."""
    clock = StoppedClock()
    gateway = open_here(clock=clock)

    def record(original: str, agent: str, month: int, **more: Any) -> None:
        clock.now = MOMENTS[month]
        gateway.record_correction(agent=agent, original_value=original, corrected_value="x", **more)

    record("1", "ap", 0, entity_key="MSC", field="code")
    record("2", "ap", 1, entity_key="MSC", visibility="user", user="ana", session="s1")
    record("3", "bot", 1, field="code", visibility="tenant", original_input="in 3")
    record("4", "ap", 2, visibility="global", entity_key="CMA")
    record("5", "bot", 2, original_input="in 5")
    return open_here


def listed(gateway: Gateway, **asked: Any) -> str:
    """Return the original values of what is listed, in that order."""
    return "".join(str(item.original_value) for item in gateway.list_corrections(**asked))


OPERATOR: list[tuple[dict[str, Any], str]] = [
    ({}, "12345"),
    ({"agent": "ap"}, "124"),
    ({"agent": "nobody"}, ""),
    ({"agent": "ap", "entity_key": "MSC"}, "12"),
    ({"entity_key": "MS"}, ""),
    ({"since": "2026-02-15T12:00:00Z"}, "2345"),
    ({"since": "2026-02-15T13:00:00.000001+01:00"}, "45"),
    ({"states": ["unconfirmed"]}, ""),
    ({"agent": "ap", "user": "ana"}, "124"),
    ({"agent": "ap", "user": "bo"}, "14"),
    ({"user": "ana"}, "234"),
]
OTHERS: list[tuple[dict[str, Any], str]] = [
    ({}, "34"),
    ({"agent": "ap"}, "14"),
    ({"agent": "ap", "user": "ana"}, "124"),
    ({"agent": "bot"}, "35"),
    ({"user": "ana"}, "234"),
    ({"user": "bo"}, "34"),
]


def test_a_list_is_what_was_asked_for_oldest_first(filled: Here) -> None:
    """AG-15, AG-31: given filters, when the operator lists, then all that match come, `since` included, in order."""
    gateway = filled()
    assert [(asked, listed(gateway, **asked)) for asked, _ in OPERATOR] == OPERATOR


def test_who_is_no_operator_sees_by_its_ids(filled: Here) -> None:
    """AG-12, AG-13, AG-14, AG-16: given a reader's ids, when it lists, then it sees the union of what they may see."""
    gateway = filled(actor="agent:x")
    assert [(asked, listed(gateway, **asked)) for asked, _ in OTHERS] == OTHERS


def test_counts_are_by_what_was_asked(filled: Here) -> None:
    """AG-32: given corrections with and without entity and field, when counted, then those are only in the total."""
    plain = filled().correction_stats()
    assert (plain.total, plain.by_entity_key, plain.by_field) == (5, {"MSC": 2, "CMA": 1}, {"code": 2})
    assert (plain.by_agent, plain.by_period) == (None, None)
    asked = filled().correction_stats(by=["agent", "period"])
    assert (asked.by_agent, asked.by_period) == ({"ap": 3, "bot": 2}, {"2026-01": 1, "2026-02": 2, "2026-03": 2})
    since = filled().correction_stats(agent="ap", since="2026-02-01T00:00:00Z", by=["period"], period="day")
    assert (since.total, since.by_period) == (2, {"2026-02-15": 1, "2026-03-15": 1})


def test_cases_have_the_input_that_led_to_them(filled: Here) -> None:
    """AG-40: given corrections with and without an input, when cases are made, then of those with one, in order."""
    cases = filled().eval_cases()
    assert [(case.input, case.expected, case.field) for case in cases] == [("in 3", "x", "code"), ("in 5", "x", None)]
    assert [case.correction_id for case in cases] == [
        item.correction_id for item in filled().list_corrections(agent="bot")
    ]
    assert filled().eval_cases(agent="ap") == ()


def test_what_nobody_confirmed_makes_no_case(open_here: Here) -> None:
    """Given an agent's own report, when cases are made, then there is none of it until a person confirms it."""
    given: dict[str, Any] = {"agent": "ap", "original_value": "a", "corrected_value": "b", "original_input": "c"}
    correction = open_here(actor="agent:ap").record_correction(**given).correction_id or ""
    gateway = open_here()
    assert gateway.eval_cases() == ()
    gateway.confirm_correction(correction)
    assert len(gateway.eval_cases()) == 1


def test_a_project_without_corrections_has_none(gateway: Gateway) -> None:
    """Given a project with a memory, when its corrections are asked for, then there are none, and that is no error."""
    gateway.remember("a")
    assert (gateway.list_corrections(), gateway.eval_cases(), gateway.correction_stats().total) == ((), (), 0)


FAULTS: dict[str, Callable[[Gateway], object]] = {
    "states": lambda gateway: gateway.list_corrections(states=["gone"]),
    "since": lambda gateway: gateway.list_corrections(since="2026-01-01"),
    "by": lambda gateway: gateway.correction_stats(by=["field"]),
    "period": lambda gateway: gateway.correction_stats(period="week"),
    "agent": lambda gateway: gateway.eval_cases(agent=""),
}


def test_a_question_that_cannot_be_asked_names_its_field(gateway: Gateway) -> None:
    """Given a fault in a question, when it is asked, then VALIDATION_FAILED names the field."""
    for field, ask in FAULTS.items():
        with refused("VALIDATION_FAILED") as refusal:
            ask(gateway)
        assert refusal.error.details["fields"][0]["field"].partition(".")[0] == field


def test_many_corrections_take_several_pages(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given more corrections than a page holds, when they are listed, then each comes once, in order."""
    monkeypatch.setattr("gateway.reading.corrections.PAGE_ROWS", 2)
    for number in range(5):
        gateway.record_correction(agent="ap", original_value=str(number), corrected_value="x")
    assert listed(gateway) == "01234"
