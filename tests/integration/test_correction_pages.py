"""Pages of corrections: what stood at the first page's position, once each, whatever becomes of it meanwhile."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.service import Gateway
from gateway.shapes.replies.corrections import CorrectionList
from tests.house import last_position, refused
from tests.integration.conftest import Here


def record(gateway: Gateway, number: int, **how: Any) -> str:
    """Record a correction, and return its id."""
    given = {"agent": "bot", "original_value": f"old {number}", "corrected_value": f"new {number}", **how}
    return gateway.record_correction(**given).correction_id or ""


def pages(gateway: Gateway, limit: int, between: Callable[[int], object], **wanted: Any) -> Iterator[CorrectionList]:
    """Yield every page of a list, with something done after each."""
    cursor, number = None, 0
    while True:
        page = gateway.page_corrections(limit=limit, cursor=cursor, **wanted)
        yield page
        if page.next_cursor is None:
            return
        between(number)
        cursor, number = page.next_cursor, number + 1


@pytest.mark.parametrize("entity", [None, "even"])
def test_pages_neither_skip_nor_repeat_while_corrections_change(open_here: Here, entity: str | None) -> None:
    """AG-31, LM-08, LM-10: given 60 corrections, when others end some between pages, then all are as they stood."""
    writer, reader = open_here(), open_here()
    ids = [record(writer, number, entity_key="odd" if number % 2 else "even") for number in range(60)]
    expected = [f"new {number}" for number in range(60) if entity is None or number % 2 == 0]

    def between(page: int) -> None:
        """Change what was given and what is still to come, by each act."""
        record(writer, 100 + page, entity_key="even")
        for one in (ids[page * 2], ids[59 - page * 2]):
            writer.revoke_correction(one, reason="r")
        for one in (ids[page * 2 + 1], ids[58 - page * 2]):
            writer.supersede_correction(one, corrected_value="another")

    found = [*pages(reader, 7, between, entity_key=entity)]

    items = [item for page in found for item in page.items]
    assert [item.corrected_value for item in items] == expected
    assert {(item.state, item.superseded_by, item.stream_version) for item in items} == {("active", None, 1)}
    assert {page.position for page in found} == {found[0].position}
    assert {len(page.items) for page in found[:-1]} == {7}


def test_a_page_is_of_the_states_that_there_were(open_here: Here) -> None:
    """LM-10: given a list of what is unconfirmed, when it is confirmed or revoked meanwhile, it is listed still."""
    person, agent = open_here(), open_here(actor="agent:bot")
    ids = [record(agent, number) for number in range(4)]
    first = person.page_corrections(limit=2, states=["unconfirmed"])
    person.confirm_correction(ids[2])
    person.revoke_correction(ids[3], reason="r")

    second = person.page_corrections(limit=2, states=["unconfirmed"], cursor=first.next_cursor)

    assert [item.correction_id for page in (first, second) for item in page.items] == ids
    assert second.next_cursor is None
    assert [item.correction_id for item in person.page_corrections(states=["revoked"]).items] == ids[3:]


def test_a_page_that_is_too_long_says_so(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """LM-09: given values that are longer than a page takes, then each page has one, is `truncated`, and goes on."""
    for number in range(3):
        record(gateway, number)
    monkeypatch.setattr("gateway.shapes.cursors.LIST_CHARS_MAX", 10)

    found = [*pages(gateway, 5, lambda _: None)]

    assert [(len(page.items), page.truncated) for page in found] == [(1, True), (1, True), (1, False)]


def test_a_cursor_is_of_one_question_and_one_ledger(open_here: Here, ledger_url: str) -> None:
    """LM-11, LM-12, LM-41: another question is a mismatch, an edited cursor none of ours; and nothing is written."""
    gateway = open_here()
    for number in range(3):
        record(gateway, number)
    gateway.remember("a")
    before = last_position(ledger_url)
    cursor = gateway.page_corrections(limit=1).next_cursor or ""
    memories = gateway.list_memories(limit=1).next_cursor
    assert memories is None and cursor

    others: tuple[dict[str, Any], ...] = (
        {"agent": "bot"}, {"entity_key": "e"}, {"since": "2026-01-01T00:00:00Z"}, {"states": ["active"]},
        {"user": "u"}, {"session": "s"},
    )  # fmt: skip
    for asked in others:
        with refused("CURSOR_FILTER_MISMATCH"):
            gateway.page_corrections(cursor=cursor, **asked)
    with refused("CURSOR_FILTER_MISMATCH"):
        open_here(project="borea").page_corrections(cursor=cursor)
    with refused("CURSOR_FILTER_MISMATCH"):
        gateway.list_memories(cursor=cursor)
    first = "A" if cursor[0] != "A" else "B"
    for edited in ("", cursor[:-1], cursor + "A", first + cursor[1:]):
        with refused("CURSOR_INVALID"):
            gateway.page_corrections(cursor=edited)
    for limit in (0, 1_001, "5", True):
        with refused("VALIDATION_FAILED"):
            gateway.page_corrections(limit=limit)  # pyright: ignore[reportArgumentType] - on purpose
    assert last_position(ledger_url) == before


def test_a_page_shows_only_what_its_reader_sees(open_here: Here) -> None:
    """AG-12, AG-13: given corrections of two agents, when one pages through them, then it has its own alone."""
    person = open_here()
    for number in range(6):
        record(person, number, agent=f"bot{number % 2}")
    agent = open_here(actor="agent:bot1")

    found = [*pages(agent, 2, lambda _: None)]

    assert [item.agent for page in found for item in page.items] == ["bot1"] * 3
    assert [len(page.items) for page in found] == [2, 1]
    with refused("CORRECTION_NOT_FOUND"):
        open_here(project="nothing").page_corrections()
