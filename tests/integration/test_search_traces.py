"""Traces of retrievals: what one saw, chose and left out, whose it is, what it never holds, and how long it is kept."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from gateway.bootstrap import open_bare
from gateway.service import Gateway
from gateway.shapes.replies.corrections import CorrectionSearch
from gateway.shapes.replies.searches import Search
from gateway.shapes.replies.traces import SearchTrace
from gateway.traces import tracing, unsaid
from gateway.traces.retracing import LISTED_MAX
from gateway.traces.traced import TraceTable
from ledger.clock import system_clock
from ledger.errors import failure
from projections.lineage import QUERIES
from tests import erasing
from tests.house import refused, rows, tamper
from tests.integration.conftest import Here
from tests.roles import as_owner

UNKNOWN = "trc_01JZ8Q0000000000000000000Z"
BERLIN = "the user lives in Berlin"
QUESTION = "where the user lives"


def traced(gateway: Gateway, found: Search | CorrectionSearch) -> SearchTrace:
    """Return the trace that an answer names."""
    assert found.trace_id is not None
    return gateway.search_trace(found.trace_id)


def stored(open_here: Here) -> int:
    """Return how many traces there are."""
    return rows(open_here.ledger_url, "SELECT count(*) FROM corrigenda.trace")[0][0]


@contextmanager
def refusing(ledger_url: str) -> Iterator[None]:
    """Let the database take no traces from the writer for a while."""
    with psycopg.connect(as_owner(ledger_url), autocommit=True) as owner:
        owner.execute("REVOKE INSERT ON corrigenda.trace FROM corrigenda_writer")
        try:
            yield
        finally:
            owner.execute("GRANT INSERT ON corrigenda.trace TO corrigenda_writer")


# ---------------------------------------------------------------- what a trace holds


def test_a_trace_holds_what_a_search_chose_and_left_out(gateway: Gateway) -> None:
    """Given a hit and one of another kind, when the trace of their search is shown, then both are told, and why."""
    chosen = gateway.remember(BERLIN, memory_id="home")
    other = gateway.remember("the user lives on rice", kind="preference")
    found = gateway.search(QUESTION, k=2, kinds=("fact",), session="s", turn=3, run="r1")
    trace = traced(gateway, found)
    assert [(hit.rank, hit.memory_id, hit.revision_id, hit.score) for hit in trace.hits] == [
        (1, "home", chosen.revision_id, found.hits[0].score)
    ]
    assert [(one.revision_id, one.reason) for one in trace.excluded] == [(other.revision_id, "its kind is preference")]
    assert (trace.kind, trace.actor, trace.project, trace.query) == ("search", "human:ana", "atlas", QUESTION)
    assert (trace.session, trace.turn, trace.run, trace.k, trace.filters) == ("s", 3, "r1", 2, {"kinds": ["fact"]})
    assert (trace.position, trace.embedder, trace.withheld) == (found.position, "provider=test;model=words", 0)
    assert gateway.complete((found.trace_id or "")[:-3]) == (found.trace_id,)


def test_what_a_budget_cut_off_is_left_out_too(gateway: Gateway) -> None:
    """Given two hits of which one fits, when the trace is shown, then the other was left out for the budget."""
    gateway.remember(BERLIN)
    gateway.remember("the user lives " + "far away " * 20)
    trace = traced(gateway, gateway.search("the user lives in Berlin", budget=20))
    assert (len(trace.hits), [one.reason for one in trace.excluded]) == (1, ["it did not fit the budget"])
    assert (trace.filters, trace.warnings) == ({"budget": 20}, ("budget:1",))


def test_a_search_by_words_and_of_the_past_is_traced_as_such(open_here: Here) -> None:
    """Given no embedder, or a position of the past, when it was searched, then the trace says how it was answered."""
    gateway = open_here(embedder="none")
    before = gateway.remember(BERLIN).position
    trace = traced(gateway, gateway.search(QUESTION, at_position=before))
    assert (trace.embedder, trace.at_position, trace.warnings) == (None, before, ("full_text",))
    nothing = traced(gateway, gateway.search("zebra"))
    assert (nothing.hits, nothing.empty_reason) == ((), "no_embedder")


def test_no_text_of_a_memory_is_in_a_trace(open_here: Here) -> None:
    """Given hits, when their trace's row is read as it lies, then it has ids and the question, and not their texts."""
    gateway = open_here()
    gateway.remember(BERLIN, tags=["profile"], kind="preference")
    gateway.remember("secret lives on")
    traced(gateway, gateway.search("who lives", kinds=("preference",), why=True))
    ((body,),) = rows(open_here.ledger_url, "SELECT body FROM corrigenda.trace")
    assert b"who lives" in bytes(body) and b"rev_" in bytes(body)
    assert not any(word in bytes(body) for word in (b"Berlin", b"secret", b"profile"))


def test_a_question_that_repeats_what_was_forgotten_is_not_shown(gateway: Gateway) -> None:
    """Given a question in the words of a memory, when that is forgotten, then no trace shows the words again."""
    kept, gone = gateway.remember(QUESTION), gateway.remember(BERLIN)
    repeated, other = gateway.search(BERLIN), gateway.search(QUESTION)
    assert traced(gateway, repeated).query == BERLIN
    gateway.forget(gone.revision_id or "")
    assert (traced(gateway, repeated).query, traced(gateway, other).query) == (None, QUESTION)
    assert [item.query for item in gateway.list_traces().items] == [QUESTION, None]
    assert {hit.revision_id for hit in traced(gateway, repeated).hits} == {kept.revision_id, gone.revision_id}


def test_a_question_answered_by_words_that_was_forgotten_is_not_shown(open_here: Here) -> None:
    """Given no embedder, and a question in the words of a memory, when that is forgotten, then no trace shows them."""
    gateway = open_here(embedder="none")
    gone = gateway.remember(BERLIN)
    repeated = gateway.search(BERLIN)
    gateway.forget(gone.revision_id or "")
    assert traced(gateway, repeated).query is None


@pytest.mark.parametrize("question", [BERLIN, "THE  user lives\tin BERLIN?"])
def test_a_forgotten_text_is_not_shown_whatever_its_search_met(open_here: Here, question: str) -> None:
    """Given searches that never met what they repeat, when that is forgotten, then no trace shows it, here or later."""
    gateway, other = open_here(), open_here(project="other")
    gone = gateway.remember(BERLIN, memory_id="home")
    gateway.search(question, min_trust="verified")
    gateway.search(question, kinds=("preference",))
    other.search(question)
    gateway.search(QUESTION)
    gateway.correct("home", "the user lives in Hamburg")
    gateway.search(question)
    assert {item.query for item in gateway.list_traces().items} == {QUESTION, question}
    gateway.forget(gone.revision_id or "")
    assert gateway.show(gone.revision_id or "").content is None
    for reader in (gateway, open_here()):
        assert [item.query for item in reader.list_traces().items] == [None, QUESTION, None, None]
        assert [item.query for item in reader.iterate_traces()] == [None, QUESTION, None, None]
        shown = [reader.search_trace(item.trace_id).query for item in reader.list_traces().items]
        assert shown == [None, QUESTION, None, None]
    assert [item.query for item in other.list_traces().items] == [None]


def test_an_erased_text_is_not_shown_in_a_question(open_here: Here) -> None:
    """Given a question that repeats an erased text, of which no word is left, when it is shown, then it is left out."""
    gateway = open_here()
    gateway.remember(BERLIN, memory_id="home")
    gateway.search(BERLIN, min_trust="verified")
    erasing.erase(gateway, "home", open_here.ledger_url, open_here.home)
    assert [item.query for item in gateway.list_traces().items] == [None]


def test_a_question_that_was_not_compared_yet_is_held_back(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given more forgotten texts than one answer reads, when traces are shown, then none yet, later what it may say."""
    for n in range(3):
        gateway.forget(gateway.remember(f"{BERLIN} {n}").revision_id or "")
    gateway.search(QUESTION)
    monkeypatch.setattr(unsaid, "READ_MAX", 2)
    assert [gateway.list_traces().items[0].query for _ in range(2)] == [None, QUESTION]


def test_what_is_withdrawn_is_looked_for_only_if_something_was(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given traces that are shown again and again while others write, then all revisions are searched once.

    They are searched again when one is forgotten, or restored.
    """
    memory = gateway.remember(QUESTION)
    trace = gateway.search(QUESTION).trace_id or ""
    searched, query = list[str](), gateway._ledger.store.query

    def counted(text: str, params: dict[str, Any]) -> Any:
        searched.extend(["once"] if text == QUERIES["find_hidden"] else [])
        return query(text, params)

    monkeypatch.setattr(gateway._ledger.store, "query", counted)
    found = list[tuple[str | None, int]]()
    for act in (
        lambda: gateway.remember("the bus leaves"),
        lambda: gateway.correct(memory.memory_id or "", "the user works"),
        lambda: gateway.forget(memory.revision_id or ""),
        lambda: gateway.remember("the bus comes"),
        lambda: gateway.restore(memory.revision_id or ""),
    ):
        act()
        found.append((gateway.search_trace(trace).query, len(searched)))
    assert found == [(QUESTION, 1), (QUESTION, 1), (None, 2), (None, 2), (QUESTION, 3)]


def test_a_text_that_is_restored_is_shown_again(gateway: Gateway) -> None:
    """Given a question that repeats what was forgotten, when that is restored, then the question is shown."""
    gone = gateway.remember(BERLIN).revision_id or ""
    gateway.search(BERLIN)
    gateway.forget(gone)
    assert gateway.list_traces().items[0].query is None
    gateway.restore(gone)
    assert gateway.list_traces().items[0].query == BERLIN


# ---------------------------------------------------------------- whose a trace is


def test_a_trace_is_found_by_who_asked_and_for_whom(open_here: Here) -> None:
    """Given a service's search for an agent and a user, when others ask for its trace, then only these two find it."""
    with open_here() as operator:
        operator.remember(BERLIN)
    service = open_here(actor="service:bot")
    trace = traced(service, service.search(QUESTION, agent="x", user="bo")).trace_id
    for actor in ("agent:x", "human:bo"):
        reader = open_here(actor=actor, permissions={"read"})
        assert reader.search_trace(trace).trace_id == trace
        assert [item.trace_id for item in reader.list_traces().items] == [trace]
    stranger = open_here(actor="agent:y", permissions={"read"})
    for act in (stranger.search_trace, lambda one: stranger.explain("mem", trace=one)):
        with refused("TRACE_NOT_FOUND"):
            act(trace)
    assert (stranger.list_traces().items, stranger.complete(trace[:-2])) == ((), ())
    with refused("TRACE_NOT_FOUND"):
        open_here(project="other").search_trace(trace)
    assert open_here(project="other").list_traces().items == ()


def test_a_trace_of_another_tenant_is_not_found(open_here: Here) -> None:
    """RM-92: given two tenants, when one asks for the other's trace, then TRACE_NOT_FOUND, and its list is empty."""
    with open_bare(database_url=as_owner(open_here.ledger_url), home=open_here.home, tenant="local") as bare:
        bare.init()
    with open_bare(database_url=as_owner(open_here.ledger_url), home=open_here.home, tenant="acme") as bare:
        bare.init()
    ours = open_here()
    ours.remember(BERLIN)
    trace = traced(ours, ours.search(QUESTION)).trace_id
    theirs = open_here(tenant="acme")
    with refused("TRACE_NOT_FOUND"):
        theirs.search_trace(trace)
    assert theirs.list_traces().items == ()


def test_what_the_actor_does_not_see_is_withheld(open_here: Here) -> None:
    """Given a service that searched as a user, when it shows the trace, then what only that user sees is counted."""
    with open_here() as operator:
        private = operator.remember(BERLIN, user="bo", visibility="user")
        public = operator.remember("the user lives well")
    service = open_here(actor="service:bot", permissions={"read"})
    found = service.search(QUESTION, user="bo")
    assert {hit.revision_id for hit in found.hits} == {private.revision_id, public.revision_id}
    trace = traced(service, found)
    assert ([hit.revision_id for hit in trace.hits], trace.withheld) == ([public.revision_id], 1)
    assert open_here().search_trace(trace.trace_id).withheld == 0


@pytest.mark.parametrize("trace", [UNKNOWN, "op_01JZ8Q0000000000000000000Z", "mem", "trc_"])
def test_an_unknown_trace_is_not_found(gateway: Gateway, trace: str) -> None:
    """Given no such trace, when it is shown, then TRACE_NOT_FOUND."""
    with refused("TRACE_NOT_FOUND"):
        gateway.search_trace(trace)


def test_an_edited_trace_is_not_believed(open_here: Here) -> None:
    """Given rows that were edited or moved, when they are read, then they are named; lists go on without them."""
    gateway = open_here()
    gateway.remember(BERLIN)
    edited, moved, whole = (
        traced(gateway, gateway.search(QUESTION, session=session)).trace_id for session in ("a", "a", "b")
    )
    tamper(
        as_owner(open_here.ledger_url),
        ("UPDATE corrigenda.trace SET body = convert_to(replace(convert_from(body, 'UTF8'), 'search', 'dispatch'),"
         " 'UTF8') WHERE trace = %s", [edited]),
        ("UPDATE corrigenda.trace SET session = (SELECT session FROM corrigenda.trace WHERE trace = %s)"
         " WHERE trace = %s", [whole, moved]),
    )  # fmt: skip
    with refused("INTEGRITY_BROKEN") as refusal:
        gateway.search_trace(edited)
    assert refusal.details["trace"] == edited
    assert gateway.search_trace(moved).session == "a"
    assert gateway.list_traces().warnings == (f"INTEGRITY_BROKEN@{edited}",)
    there = gateway.list_traces(session="b")
    assert ([item.trace_id for item in there.items], there.warnings) == ([whole], (f"INTEGRITY_BROKEN@{moved}",))


# ---------------------------------------------------------------- lists


def test_a_list_is_paged_newest_first(gateway: Gateway) -> None:
    """Given traces of two sessions, when they are listed in pages, then each comes once, and cursors keep to a list."""
    gateway.remember(BERLIN)
    found = [gateway.search(QUESTION, session="ab"[n % 2], run=f"r{n}").trace_id for n in range(5)]
    first = gateway.list_traces(limit=2)
    second = gateway.list_traces(limit=2, cursor=first.next_cursor)
    last = gateway.list_traces(limit=2, cursor=second.next_cursor)
    assert [item.trace_id for page in (first, second, last) for item in page.items] == found[::-1]
    assert last.next_cursor is None
    assert [item.run for item in gateway.iterate_traces(session="a")] == ["r4", "r2", "r0"]
    assert gateway.list_traces(kind="dispatch").items == ()
    with refused("CURSOR_FILTER_MISMATCH"):
        gateway.list_traces(session="a", cursor=first.next_cursor)
    with refused("CURSOR_FILTER_MISMATCH"):
        gateway.list_memories(cursor=first.next_cursor)
    with refused("CURSOR_INVALID"):
        gateway.list_traces(cursor="x")
    wrong: list[dict[str, Any]] = [{"limit": 0}, {"limit": 1001}, {"kind": "other"}, {"session": ""}]
    for bad in wrong:
        with refused("VALIDATION_FAILED"):
            gateway.list_traces(**bad)


def test_a_list_among_many_of_others_takes_few_round_trips(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given two traces of an agent around many of others, when it pages, then each comes once, and soon."""
    gateway, agent = open_here(), open_here(actor="agent:bot")
    mine = [agent.search(QUESTION).trace_id]
    for _ in range(200):
        gateway.search(QUESTION)
    assert gateway.list_traces(limit=1).items
    mine += [agent.search(QUESTION).trace_id]
    pages: list[int] = []
    page = TraceTable.page

    def counted(*args: Any, **named: Any) -> Any:  # Any: as the method itself
        pages.append(named["limit"])
        return page(*args, **named)

    monkeypatch.setattr(TraceTable, "page", counted)
    first = agent.list_traces(limit=1)
    second = agent.list_traces(limit=1, cursor=first.next_cursor)
    assert [item.trace_id for found in (first, second) for item in found.items] == mine[::-1]
    assert second.next_cursor is None
    assert len(pages) < 12
    assert {item.trace_id for item in agent.list_traces(limit=2).items} == set(mine)


def test_an_abbreviation_is_completed_among_many_of_others(open_here: Here) -> None:
    """Given more traces of others with the same beginning than are named, when an agent abbreviates, its own is it."""
    gateway, agent = open_here(), open_here(actor="agent:bot")
    others = [gateway.search(QUESTION).trace_id or "" for _ in range(30)]
    own = agent.search(QUESTION).trace_id or ""
    # Ids that were made around the end of a quarter of an hour begin otherwise.
    alike = [one for one in (*others, own) if one.startswith(own[:10])]
    assert agent.complete(own[:10]) == (own,)
    assert len(gateway.complete(own[:10])) == min(len(alike), LISTED_MAX)


# ---------------------------------------------------------------- explained by a trace


def test_a_revision_is_explained_by_a_trace(gateway: Gateway) -> None:
    """Given revisions chosen, left out, and recorded later, when each is explained, then the trace says which."""
    home = gateway.remember(BERLIN, memory_id="home")
    other = gateway.remember("the user lives on rice", kind="preference")
    trace = gateway.search(QUESTION, kinds=("fact",)).trace_id or ""
    corrected = gateway.correct("home", "the user lives in Hamburg")
    chosen, excluded, later = (
        gateway.explain(one, trace=trace).in_trace
        for one in ("home", other.revision_id or "", corrected.revision_id or "")
    )
    assert chosen and excluded and later
    assert gateway.explain("home", trace=trace).revision_id == home.revision_id
    assert (chosen.outcome, chosen.rank) == ("chosen", 1) and chosen.reason.startswith("similarity")
    assert (excluded.outcome, excluded.rank, excluded.reason) == ("excluded", None, "its kind is preference")
    assert (later.outcome, later.score) == ("not_seen", None) and "after this retrieval" in later.reason
    assert gateway.explain("home").in_trace is None


def test_why_a_search_did_not_reach_a_revision(gateway: Gateway) -> None:
    """Given more memories than hits were asked for, when the last is explained, then it was not among the nearest."""
    for n in range(15):
        gateway.remember(f"the user lives in town {n}")
    far = gateway.remember("zebra", memory_id="far")
    verdict = gateway.explain("far", trace=gateway.search(QUESTION, k=1).trace_id).in_trace
    assert verdict and (verdict.outcome, verdict.reason) == (
        "not_seen", "it was not among the 1 nearest, which is what was asked for",
    )  # fmt: skip
    assert far.revision_id


# ---------------------------------------------------------------- dispatches


def test_a_dispatch_is_stored_when_it_is_answered(open_here: Here) -> None:
    """Given a dispatch, when its answer is there, then so is its trace, for everybody, and the run is known by it."""
    gateway = open_here()
    revision = gateway.remember(BERLIN).revision_id or ""
    gateway.search(QUESTION, trace_kind="dispatch", session="s", turn=1, run="r1", k=1)
    assert rows(open_here.ledger_url, "SELECT kind, turn, revisions FROM corrigenda.trace") == [
        ("dispatch", 1, [revision])
    ]
    gateway.search(QUESTION, trace_kind="dispatch", run="r2")
    gateway.search(QUESTION, run="r3")
    assert gateway.revoke(revision, reason="forged", dry_run=True).runs == ("r1", "r2")


def test_a_dispatch_is_never_of_the_past(open_here: Here) -> None:
    """Given another moment than now, on either clock, when it is dispatched, then VALIDATION_FAILED, and no trace."""
    gateway = open_here()
    position = gateway.remember(BERLIN).position
    moments: list[dict[str, Any]] = [{"as_of": "2026-01-01T00:00:00Z"}, {"at_position": position}]
    for past in moments:
        with refused("VALIDATION_FAILED") as refusal:
            gateway.search(QUESTION, trace_kind="dispatch", **past)
        assert refusal.details["fields"][0]["field"] == "trace_kind"
    with refused("VALIDATION_FAILED"):
        gateway.search(QUESTION, turn=1)
    assert gateway.list_traces().items == () and stored(open_here) == 0


def test_the_turn_before_is_what_was_dispatched_before_it(gateway: Gateway) -> None:
    """RM-13, RM-14, RM-15, RM-16, RM-19: given turns A and B, when B is asked for, then A, whatever came in between.

    A search in between is no dispatch, B in a tool loop is one turn, and another session has turns of its own.
    """
    gateway.remember(BERLIN)
    with refused("NO_PRIOR_TRACE"):
        gateway.prior_dispatch("s")
    a = gateway.search("first", trace_kind="dispatch", session="s", turn=1).trace_id
    with refused("NO_PRIOR_TRACE"):
        gateway.prior_dispatch("s")
    assert gateway.prior_dispatch("s", turn=2).trace_id == a
    gateway.search("meanwhile", session="s", turn=1)
    gateway.search("elsewhere", trace_kind="dispatch", session="t", turn=1)
    for n in range(3):
        gateway.search(f"loop {n}", trace_kind="dispatch", session="s", turn=2)
        found = gateway.prior_dispatch("s")
        assert (found.trace_id, found.query) == (a, "first")
    for session in ("t", "u"):
        with refused("NO_PRIOR_TRACE"):
            gateway.prior_dispatch(session)


def test_the_turn_before_is_the_last_that_the_actor_sees(open_here: Here) -> None:
    """Given another agent's turns among its own, when an agent asks for the turn before, then its own last one."""
    own, other = open_here(actor="agent:a"), open_here(actor="agent:b")
    first = own.search("mine", trace_kind="dispatch", session="s", turn=1).trace_id
    second = [other.search("theirs", trace_kind="dispatch", session="s", turn=2).trace_id for _ in range(9)][-1]
    assert own.prior_dispatch("s", turn=3).trace_id == own.prior_dispatch("s", turn=2).trace_id == first
    assert open_here().prior_dispatch("s", turn=3).trace_id == second
    with refused("NO_PRIOR_TRACE"):
        own.prior_dispatch("s", turn=1)
    third = own.search("mine again", trace_kind="dispatch", session="s", turn=3).trace_id
    other.search("theirs again", trace_kind="dispatch", session="s", turn=4)
    assert (own.prior_dispatch("s").trace_id, own.prior_dispatch("s", turn=4).trace_id) == (first, third)
    assert open_here().prior_dispatch("s").trace_id == third
    with refused("NO_PRIOR_TRACE"):
        open_here(actor="agent:c").prior_dispatch("s")


def test_without_turns_each_dispatch_is_one(gateway: Gateway) -> None:
    """RM-17: given dispatches without a turn, when the prior one is asked for, then that before the latest."""
    gateway.remember(BERLIN)
    found = [gateway.search(f"turn {n}", trace_kind="dispatch", session="s").trace_id for n in range(3)]
    assert gateway.prior_dispatch("s").trace_id == found[1]


# ---------------------------------------------------------------- what could not be stored


def test_a_search_whose_trace_is_lost_is_right_and_it_is_reported(
    open_here: Here, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a database that takes no traces, when it is searched, then the hits come; log and status tell the loss."""
    gateway = open_here()
    revision = gateway.remember(BERLIN).revision_id
    with refusing(open_here.ledger_url), caplog.at_level(logging.WARNING, "gateway.traces.tracing"):
        lost = gateway.search(QUESTION)
        with refused("TRACE_NOT_FOUND"):
            gateway.search_trace(lost.trace_id or "")
    assert [hit.revision_id for hit in lost.hits] == [revision]
    assert [record.getMessage() for record in caplog.records] == ["traces.lost: FORBIDDEN_ACTOR"]
    assert (gateway.status().traces, stored(open_here)) == ({"oldest": None, "lost": 1}, 0)
    assert traced(gateway, gateway.search(QUESTION)).hits
    with open_bare(database_url=open_here.ledger_url, home=open_here.home, create=False) as bare:
        told = bare.status().traces
    assert told["lost"] == 1 and told["oldest"] is not None


def test_a_dispatch_whose_trace_is_not_stored_is_not_answered(open_here: Here) -> None:
    """Given a database that takes no traces, when it is dispatched, then UNAVAILABLE and no hits; later it works."""
    gateway = open_here()
    gateway.remember(BERLIN)
    with refusing(open_here.ledger_url), refused("UNAVAILABLE") as refusal:
        gateway.search(QUESTION, trace_kind="dispatch")
    assert (refusal.details["reason"], stored(open_here)) == ("FORBIDDEN_ACTOR", 0)
    assert gateway.search(QUESTION, trace_kind="dispatch").hits and stored(open_here) == 1


@pytest.mark.parametrize("kind", ["search", "dispatch"])
def test_a_trace_that_was_stored_and_not_acknowledged(
    open_here: Here, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Given a trace whose commit nobody hears of, then it is there; a dispatch is not answered, a search is."""
    gateway = open_here()
    gateway.remember(BERLIN)
    add = TraceTable.add

    def unheard(self: TraceTable, group: Sequence[Any]) -> None:
        add(self, group)
        raise failure("UNAVAILABLE", "The connection was lost while the transaction was committed.")

    with monkeypatch.context() as patched:
        patched.setattr(TraceTable, "add", unheard)
        if kind == "dispatch":
            with refused("UNAVAILABLE"):
                gateway.search(QUESTION, trace_kind=kind)
        else:
            assert gateway.search(QUESTION).hits
            assert gateway.list_traces().items
    assert (stored(open_here), gateway.status().traces["lost"]) == (1, 1 if kind == "search" else 0)


def test_a_search_does_not_wait_for_its_trace(open_here: Here) -> None:
    """Given a table that somebody has locked, when it is searched, then the answers come, and the traces afterwards."""
    gateway = open_here()
    gateway.remember(BERLIN)
    with psycopg.connect(as_owner(open_here.ledger_url)) as owner:
        owner.execute("LOCK TABLE corrigenda.trace IN ACCESS EXCLUSIVE MODE")
        found = [gateway.search(QUESTION) for _ in range(3)]
        assert all(one.hits and one.trace_id for one in found)
    assert [item.trace_id for item in gateway.list_traces().items] == [one.trace_id for one in found][::-1]


def test_what_has_no_room_to_wait_is_not_recorded(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a queue without room, when it is searched, then the answer names no trace, and the loss is counted."""
    gateway = open_here()
    gateway.remember(BERLIN)
    monkeypatch.setattr(tracing, "QUEUE_MAX", 0)
    found = gateway.search(QUESTION)
    assert (len(found.hits), found.trace_id, gateway.status().traces["lost"]) == (1, None, 1)


def test_what_waits_is_stored_when_a_gateway_closes(open_here: Here) -> None:
    """Given a search, when its gateway is closed at once, then its trace is there for the next one."""
    with open_here() as gateway:
        gateway.remember(BERLIN)
        found = gateway.search(QUESTION)
    assert traced(open_here(), found).hits


def test_closing_does_not_wait_for_traces_for_long(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a table that somebody has locked, when a gateway closes, then it does soon, and the loss is counted."""
    monkeypatch.setattr(tracing, "FLUSH_S", 0.3)
    gateway, other = open_here(), open_here()
    gateway.remember(BERLIN)
    with psycopg.connect(as_owner(open_here.ledger_url)) as owner:
        owner.execute("LOCK TABLE corrigenda.trace IN ACCESS EXCLUSIVE MODE")
        gateway.search(QUESTION)
        began = time.monotonic()
        gateway.close()
        assert time.monotonic() - began < 10
    assert other.status().traces["lost"] == 1


def test_what_a_prompt_is_given_is_traced(gateway: Gateway) -> None:
    """Given a correction and a learning that are rendered for an agent, then the traces of both searches are named."""
    correction = record(gateway, visibility="agent")
    gateway.remember(BERLIN, kind="learning", user="bo", origin="human")
    rendered = gateway.render_corrections(QUESTION, agent="x", user="bo", learnings=2, min_score=0)
    assert {item.trace_id for item in gateway.list_traces().items} == set(rendered.trace_ids)
    of_corrections, of_learnings = (gateway.search_trace(one) for one in rendered.trace_ids)
    assert [one.correction_id for one in of_corrections.corrections] == list(rendered.correction_ids) == [correction]
    assert [hit.revision_id for hit in of_learnings.hits] == list(rendered.memory_ids) != []
    assert of_learnings.scope == of_corrections.scope == {"agent": "x", "user": "bo"}
    assert (of_learnings.about, of_corrections.about) == ("memories", "corrections")


# ---------------------------------------------------------------- of corrections


def record(gateway: Gateway, **given: Any) -> str:
    """Record a correction, with something else in it where that is given."""
    plain = dict(agent="x", field="city", original_value="Bonn", corrected_value="Berlin", visibility="tenant")
    return gateway.record_correction(**{**plain, **given}).correction_id or ""


def test_a_search_for_corrections_is_traced(gateway: Gateway) -> None:
    """Given a correction that was found and one of another entity, when the trace is shown, then both are, and why."""
    chosen, other = record(gateway, entity_key="bo"), record(gateway, entity_key="ana")
    found = gateway.search_corrections("city Bonn", k=3, entity_key="bo", session="s", min_score=0)
    trace = traced(gateway, found)
    assert [(one.rank, one.correction_id, one.score) for one in trace.corrections] == [(1, chosen, found.hits[0].score)]
    assert [(one.rank, one.correction_id, one.why) for one in trace.excluded_corrections] == [
        (None, other, "it is of another entity")
    ]
    assert (trace.about, trace.kind, trace.query, trace.k) == ("corrections", "search", "city Bonn", 3)
    assert (trace.hits, trace.excluded, trace.session, trace.withheld) == ((), (), "s", 0)
    assert (trace.filters, trace.position) == ({"entity_key": "bo", "min_score": 0.0}, found.position)
    (item,) = gateway.list_traces(session="s").items
    assert (item.trace_id, item.about, item.hits, item.excluded) == (found.trace_id, "corrections", 1, 1)


def test_a_correction_that_ended_or_is_far_is_left_out(gateway: Gateway) -> None:
    """Given no correction that is near enough, then the trace says so of each; what it is empty for, it says, too."""
    record(gateway)
    found = gateway.search_corrections("entirely different", min_score=0.99)
    trace = traced(gateway, found)
    assert [one.why for one in trace.excluded_corrections] == ["its score is below 0.99"]
    assert trace.empty_reason == found.empty_reason == "no_match"


def test_a_correction_is_explained_by_a_trace(gateway: Gateway) -> None:
    """Given a search for corrections, then of a correction is told if it was chosen, and of a memory that it could not.

    One that was recorded later was not there.
    """
    chosen = record(gateway)
    memory = gateway.remember(BERLIN)
    trace = gateway.search_corrections("city Bonn", min_score=0).trace_id
    later = record(gateway, original_value="Köln")

    met = gateway.explain_correction(chosen, trace=trace).in_trace
    assert met is not None and (met.outcome, met.rank) == ("chosen", 1)
    missed = gateway.explain_correction(later, trace=trace).in_trace
    assert missed is not None and "after this retrieval" in missed.reason
    other = gateway.explain(memory.revision_id or "", trace=trace).in_trace
    assert other is not None and (other.outcome, other.reason) == ("not_seen", "this retrieval was about corrections")
    assert gateway.explain_correction(chosen).in_trace is None


def test_a_correction_that_the_actor_does_not_see_is_withheld(open_here: Here) -> None:
    """Given a search that the operator made for an agent, then that agent sees its own correction, nobody else's."""
    operator = open_here()
    record(operator, visibility="user", user="bo")
    own = record(operator, visibility="agent", agent="x")
    found = operator.search_corrections("city Bonn", agent="x", user="bo", min_score=0)
    operator.list_traces()  # which waits until it is stored
    agent = open_here(actor="agent:x", permissions=("read",))
    trace = traced(agent, found)
    assert ([one.correction_id for one in trace.corrections], trace.withheld) == ([own], 1)
    assert len(traced(operator, found).corrections) == 2


# ---------------------------------------------------------------- how long they are kept


def test_traces_are_swept_when_their_project_keeps_them_no_longer(open_here: Here) -> None:
    """Given old traces and a policy of one project, when they are swept, then each project's are kept as it says."""
    now = system_clock()
    for project, kept in (("atlas", None), ("short", "30d")):
        for days in (100, 60, 1):
            with open_here(project=project, clock=lambda days=days: now - timedelta(days=days)) as gateway:
                gateway.search(QUESTION, run=f"{project} {days}")
        if kept:
            open_here(project=project).set_policy({"trace_retention": kept})
    owner = as_owner(open_here.ledger_url)
    with (
        open_bare(database_url=open_here.ledger_url, home=open_here.home, create=False) as bare,
        refused("FORBIDDEN_ACTOR"),
    ):
        bare.sweep_traces()
    with open_bare(database_url=owner, home=open_here.home, create=False) as bare:
        assert bare.sweep_traces(dry_run=True) == {"traces": 3, "dry_run": True}
        assert (stored(open_here), bare.sweep_traces()["traces"], bare.sweep_traces()["traces"]) == (6, 3, 0)
    assert stored(open_here) == 3
    left = [item.run for item in open_here().list_traces().items]
    left += [item.run for item in open_here(project="short").list_traces().items]
    assert left == ["atlas 1", "atlas 60", "short 1"]
    oldest = datetime.fromisoformat(open_here().status().traces["oldest"])
    assert abs(now.astimezone(UTC) - timedelta(days=60) - oldest) < timedelta(minutes=1)
