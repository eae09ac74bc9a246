"""Lists: a page is what stood at the first page's position, confirmed by the ledger, as far as a reader may see it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.service import Gateway
from gateway.shapes.replies.memories import ListedRevision, MemoryList, Revision
from tests.house import last_position, refused, tamper
from tests.integration.conftest import Here


def contents(items: Iterator[Revision] | tuple[Revision, ...]) -> list[str | None]:
    """Return what revisions say, in their order."""
    return [item.content for item in items]


def pages(gateway: Gateway, limit: int, between: Callable[[int], None], **wanted: Any) -> Iterator[MemoryList]:
    """Yield every page of a list, with something done after each."""
    cursor, number = None, 0
    while True:
        page = gateway.list_memories(limit=limit, cursor=cursor, **wanted)
        yield page
        if page.next_cursor is None:
            return
        between(number)
        cursor, number = page.next_cursor, number + 1


def _rejected(writer: Gateway, memory: str) -> None:
    """Contest a memory's head with a held revision, and reject both."""
    head = writer.show(memory).revision_id
    held = writer.remember(f"held in {memory}", memory_id=memory, predecessor=head, hold=True).revision_id or ""
    writer.contest(head, held)
    for revision in (head, held):
        writer.reject_revision(revision)


_ACTS: tuple[Callable[[Gateway, str], object], ...] = (
    lambda writer, memory: writer.correct(memory, f"corrected in {memory}"),
    lambda writer, memory: writer.retire(memory),
    lambda writer, memory: writer.revoke(memory, reason="r"),
    lambda writer, memory: writer.forget(memory),
    lambda writer, memory: writer.supersede([memory], [f"left of {memory}", f"right of {memory}"]),
    lambda writer, memory: writer.patch(memory, tags=["odd", "even", "patched"]),
    _rejected,
)


@pytest.mark.parametrize("tags", [(), ("even",)])
def test_pages_neither_skip_nor_repeat_while_rows_change(open_here: Here, tags: tuple[str, ...]) -> None:
    """LM-08, LM-10: given 200 rows, when others write between pages, then the pages are the first one's rows, once."""
    writer, reader = open_here(), open_here()
    for number in range(200):
        writer.remember(f"row {number}", memory_id=f"m{number}", tags=["even"] if number % 2 == 0 else ["odd"])
    expected = [f"row {number}" for number in range(200) if not tags or number % 2 == 0]

    def between(page: int) -> None:
        """Change what was given and what is still to come, each by every act that changes a row."""
        writer.remember(f"new {page}", tags=["even"])
        for offset, act in enumerate(_ACTS):
            act(writer, f"m{page * 7 + offset}")
            act(writer, f"m{199 - page * 7 - offset}")

    def said(item: Revision) -> str | None:
        """Return what was remembered: of what was forgotten since, by its name."""
        return f"row {item.memory_id.removeprefix('m')}" if item.content is None else item.content

    found = [*pages(reader, 30, between, tags=tags)]
    told = {item.tags for page in found for item in page.items if item.content is not None}
    assert told == ({("even",)} if tags else {("even",), ("odd",)})
    assert [said(item) for page in found for item in page.items] == expected
    assert {page.position for page in found} == {found[0].position}
    assert all(item.state == "active" and item.trust == "unverified" for page in found for item in page.items)
    assert {len(page.items) for page in found[:-1]} == {30}


@pytest.fixture
def varied(gateway: Gateway) -> Gateway:
    """Return a gateway on a project with an active, a superseded, a retired and a revoked revision."""
    gateway.remember("first", memory_id="corrected", kind="preference", tags=["a", "b"])
    gateway.correct("corrected", "second")
    gateway.remember("gone", memory_id="retired", tags=["a"])
    gateway.retire("retired")
    gateway.remember("poison", memory_id="revoked")
    gateway.revoke("revoked", reason="r")
    return gateway


def test_each_filter_narrows_the_list(varied: Gateway) -> None:
    """LM-05, LM-06: given rows in several states, when each filter is set, then only what it names is listed."""

    def found(**wanted: Any) -> list[str | None]:
        return contents(varied.list_memories(**wanted).items)

    assert found() == ["second"]
    assert found(states=["superseded"]) == ["first"]
    assert found(states=["retired", "superseded"]) == ["first", "gone"]
    assert found(states=["active"]) == ["second"]
    assert found(states=["revoked"]) == ["poison"]
    assert found(states=["conflicted", "rejected", "forgotten", "processing"]) == []
    assert found(kind="preference") == ["second"]
    assert found(kind="task") == []
    assert found(tags=["b", "a"]) == ["second"]
    assert found(tags=["a", "c"]) == []


def test_the_list_of_a_memory_has_its_audit_and_no_other_has(varied: Gateway) -> None:
    """LM-13, LM-14: given a memory, when it is listed, then its revisions with their acts; without, then no audit."""
    everything = ["active", "superseded"]
    page = varied.list_memories(memory="corrected", states=everything)
    first, second = page.items
    assert isinstance(first, ListedRevision) and isinstance(second, ListedRevision)
    assert [(act.action, act.from_state, act.to_state) for act in first.audit] == [
        ("memory.remembered.v1", None, "active"),
        ("revision.corrected.v1", "active", "superseded"),
    ]
    assert [(act.action, act.from_state) for act in second.audit] == [("revision.corrected.v1", None)]
    assert [act.actor for act in first.audit] == ["human:ana", "human:ana"]
    assert not any(isinstance(item, ListedRevision) for item in varied.list_memories(states=everything).items)
    assert varied.list_memories(memory=second.revision_id).items == (second,)


def test_an_unknown_memory_is_not_found(varied: Gateway) -> None:
    """LM-35: given no such memory, when it is listed, then MEMORY_NOT_FOUND."""
    with refused("MEMORY_NOT_FOUND"):
        varied.list_memories(memory="nothing")


@pytest.mark.parametrize(
    "bad",
    [
        {"states": []},
        {"states": "active"},
        {"states": ["active", "active"]},
        {"states": ["live"]},
        {"limit": 0},
        {"limit": 1001},
        {"limit": "5"},
        {"limit": True},
        {"kind": "memo"},
        {"tags": "a"},
        {"tags": ["a"] * 101},
        {"tags": [f"t{number}" for number in range(100_000)]},
        {"memory": ""},
    ],
)
def test_what_cannot_be_listed_is_refused(gateway: Gateway, bad: dict[str, Any]) -> None:
    """LM-06, LM-07, LM-36: given a bad argument, when it is asked for, then VALIDATION_FAILED."""
    with refused("VALIDATION_FAILED"):
        gateway.list_memories(**bad)


def test_limits_of_one_and_of_a_thousand_are_allowed(varied: Gateway) -> None:
    """LM-07, LM-08: given two rows, when one is asked for, then a cursor; when a thousand are, then none."""
    states = ["active", "superseded"]
    assert varied.list_memories(limit=1, states=states).next_cursor is not None
    whole = varied.list_memories(limit=1000, states=states)
    assert (len(whole.items), whole.next_cursor, whole.truncated) == (2, None, False)


def test_a_page_ends_where_its_texts_are_too_long(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """LM-09: given a budget for a page's texts, when it is spent, then the page is truncated and goes on."""
    monkeypatch.setattr("gateway.shapes.cursors.LIST_CHARS_MAX", 10)
    for letter in "abc":
        gateway.remember(letter * 8)
    found = [*pages(gateway, 50, lambda page: None)]
    assert [page.truncated for page in found] == [True, True, False]
    assert [contents(page.items) for page in found] == [["a" * 8], ["b" * 8], ["c" * 8]]


@pytest.mark.parametrize(
    "other",
    [
        {"states": ["active"]},
        {"kind": "fact"},
        {"tags": ["a"]},
        {"memory": "corrected"},
        {"agent": "scout"},
        {"user": "u"},
        {"session": "s"},
    ],
)
def test_a_cursor_goes_on_with_its_own_filter_only(varied: Gateway, other: dict[str, Any]) -> None:
    """LM-11: given a cursor, when the filter is another, then CURSOR_FILTER_MISMATCH; another limit is none."""
    varied.remember("third")
    cursor = varied.list_memories(limit=1).next_cursor
    with refused("CURSOR_FILTER_MISMATCH"):
        varied.list_memories(cursor=cursor, **other)
    assert contents(varied.list_memories(limit=7, cursor=cursor).items) == ["third"]


def test_a_cursor_of_another_project_is_another_filter_and_an_edited_one_is_none(open_here: Here) -> None:
    """LM-11, LM-12: given a cursor, when another project gets it, then a mismatch; an edited one is CURSOR_INVALID."""
    gateway = open_here()
    for word in "ab":
        gateway.remember(word)
    cursor = gateway.list_memories(limit=1).next_cursor
    assert cursor is not None
    with refused("CURSOR_FILTER_MISMATCH"):
        open_here(project="atlas2").list_memories(cursor=cursor)
    for edited in (cursor[:-1], cursor + "A", cursor.swapcase(), "", "x" * 10_000):
        with refused("CURSOR_INVALID"):
            gateway.list_memories(cursor=edited)


def test_the_status_counts_each_state(varied: Gateway) -> None:
    """LM-03, LM-04: given rows in several states, then the status counts each once, a revoked one as that."""
    status = varied.status()
    assert status.memories == {"active": 1, "superseded": 1, "retired": 1, "revoked": 1}
    assert (status.conflicts_open, status.ledger["size"], status.ledger["chain"]) == (0, 12, "ok")
    held = varied.remember(
        "held", memory_id="corrected", kind="preference", hold=True, predecessor=varied.show("corrected").revision_id
    )
    assert varied.status().memories["processing"] == 1
    assert [item.content for item in varied.iterate_memories()] == ["second", "held"]
    varied.contest(varied.show("corrected").revision_id, held.revision_id or "")
    assert (varied.status().conflicts_open, varied.status().memories["conflicted"]) == (1, 2)
    (first, second) = varied.list_memories(memory="corrected", states=["conflicted"]).items
    assert isinstance(first, ListedRevision)
    assert (first.audit[-1].conflict_with, first.audit[-1].expected_active) == (second.revision_id, None)
    varied.promote(second.revision_id)
    assert varied.status().conflicts_open == 0


def test_reading_lists_writes_nothing(varied: Gateway, ledger_url: str) -> None:
    """LM-41: given a ledger, when it is listed, then it has no event more."""
    before = last_position(ledger_url)
    varied.list_memories(limit=1)
    assert [*varied.iterate_memories(states=["active"])]
    assert last_position(ledger_url) == before


def test_a_reader_sees_what_its_scope_makes_visible(open_here: Here) -> None:
    """Given memories of an agent, a user and a session, when nobody is named, then only what all may see is listed."""
    gateway, agent = open_here(), open_here(actor="agent:bot")
    gateway.remember("everybody's")
    gateway.remember("the agent's", agent="scout", visibility="agent")
    gateway.remember("the user's", user="u", visibility="user")
    gateway.remember("the session's", session="s", visibility="session")
    open_here(project="atlas2").remember("another project's", visibility="tenant")

    for reader in (gateway, agent):

        def seen(reader: Gateway = reader, **named: Any) -> list[str | None]:
            return contents(reader.list_memories(**named).items)

        assert seen(agent="scout") == ["everybody's", "the agent's"]
        assert seen(user="u") == ["everybody's", "the user's"]
        assert seen(session="s") == ["everybody's", "the session's"]
        assert seen(agent="u", user="scout", session="S") == ["everybody's"]
        assert len(seen(agent="scout", user="u", session="s")) == 4
    assert contents(agent.list_memories().items) == ["everybody's"]


def test_the_operator_sees_all_of_a_project(open_here: Here) -> None:
    """Given memories of single readers, when who has the permission admin names nobody, then all of them are listed."""
    gateway = open_here()
    for visibility in ("agent", "user", "session"):
        owner: dict[str, Any] = {visibility: "x"}
        gateway.remember(visibility, visibility=visibility, **owner)
    assert contents(gateway.list_memories().items) == ["agent", "user", "session"]


CHANGES = {
    "a state": "UPDATE corrigenda.revision_state SET state = 'active', trust = 'unverified' WHERE trust = 'revoked'",
    "a kind": "UPDATE corrigenda.revision SET kind = 'task'",
    "a project": "UPDATE corrigenda.revision SET project = 'prj_01JZ8Q0000000000000000000B'",
    "a place": "UPDATE corrigenda.revision SET content_seq = content_seq - 1",
    "a lineage": "UPDATE corrigenda.revision SET lineage = 'mem_' || right(revision, 26)",
    "a reader": "UPDATE corrigenda.revision SET visibility = 'project'",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_read_model_is_believed_in_nothing(open_here: Here, ledger_url: str, change: str) -> None:
    """Given rows that say something else than the events, when they are listed, then nothing that is not so."""
    open_here.broken = True
    gateway = open_here()
    gateway.remember("everybody's")
    gateway.remember("the user's", user="u", visibility="user")
    gateway.remember("poison", memory_id="revoked")
    gateway.revoke("revoked", reason="r")
    tamper(ledger_url, (CHANGES[change], ()))
    found = contents(gateway.iterate_memories(agent="scout"))
    assert set(found) <= {"everybody's"}
    assert contents(gateway.iterate_memories(kind="task")) == []
    assert "poison" not in contents(gateway.iterate_memories())
