"""Scope: every look-up is keyed by the whole of it, segment by segment, and nothing tells what lies outside."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gateway.service import Gateway
from ledger.errors import CorrigendaError
from tests.house import refused, rows
from tests.integration.conftest import Here
from tests.integration.test_tenants import init

UNKNOWN = "01JZ8Q0000000000000000000Z"
LOOK_ALIKES = {
    "a longer name": ("acme", "acme2"),
    "a name with a delimiter": ("acme", "acme/user"),
    "delimiters elsewhere": ("a/b", "a"),
    "another case": ("acme", "Acme"),
    "a space before": ("acme", " acme"),
    "a space after": ("acme", "acme "),
    "a Cyrillic letter": ("acme", "аcme"),
    "a full-width letter": ("acme", "ａcme"),
    "another normal form": ("café", "cafe\u0301"),
    "an invisible joiner": ("acme", "ac\u200bme"),
    "a dotless i": ("limit", "lımıt"),
    "a sharp s": ("strasse", "straße"),
    "a bracket of a frame": ('acme","b', "acme"),
}


def test_a_project_is_its_very_name(open_here: Here) -> None:
    """LM-46: given what one project keeps and set, when a look-alike is asked, then none of it is found or so."""
    for number, (mine, other) in enumerate(LOOK_ALIKES.values()):
        with open_here(project=mine) as owner, open_here(project=other) as stranger:
            name, text = f"gate-{number}", f"gate {number} is green"
            done = owner.remember(text, memory_id=name)
            for reference in (name, done.revision_id or ""):
                with refused("MEMORY_NOT_FOUND"):
                    stranger.show(reference)
            assert text not in {hit.content for hit in stranger.search(text).hits}
            stranger.remember(f"gate {number} is red", memory_id=name)
            assert {text, f"gate {number} is red"} & contents(owner) == {text}
            assert {text, f"gate {number} is red"} & contents(stranger) == {f"gate {number} is red"}
            assert_apart(owner, stranger, number)


def assert_apart(owner: Gateway, stranger: Gateway, number: int) -> None:
    """Fail if another project finds the evidence that one keeps, or has what it sets."""
    name, stood = "corrections.top_k", stranger.show_policy().values["corrections.top_k"]
    kept = owner.add_evidence(f"evidence {number}".encode())
    owner.set_policy({name: str(50 + number)})
    assert owner.read_evidence(kept.hash) == f"evidence {number}".encode()
    for ask in (stranger.show_evidence, stranger.read_evidence):
        with refused("EVIDENCE_NOT_FOUND"):
            ask(kept.hash)
    assert (owner.show_policy().values[name], stranger.show_policy().values[name]) == (str(50 + number), stood)


@pytest.mark.parametrize("segment", ["agent", "user", "session"])
def test_a_segment_is_its_very_name(gateway: Gateway, segment: str) -> None:
    """LM-46, OH-32: given memories that one reader may see, when a look-alike reads, then they are not."""
    for number, (mine, other) in enumerate(LOOK_ALIKES.values()):
        text = f"gate {number} is green"
        owner: dict[str, Any] = {segment: mine}
        gateway.remember(text, visibility=segment, **owner)
        for readers, is_seen in ((owner, True), ({segment: other}, False), ({_NEXT[segment]: mine}, False)):
            reader: dict[str, Any] = readers
            assert (text in contents(gateway, **reader)) == is_seen
            assert (text in {hit.content for hit in gateway.search(text, **reader).hits}) == is_seen


_NEXT = {"agent": "user", "user": "session", "session": "agent"}


def contents(gateway: Gateway, **reader: Any) -> set[str | None]:
    """Return what a project's memories say to a reader."""
    return {item.content for item in gateway.iterate_memories(**reader)}


def test_a_correction_is_shown_to_its_very_agent(gateway: Gateway) -> None:
    """AG-12, LM-46: given a correction of one agent and entity, a look-alike lists, finds and renders nothing of it."""
    for number, (mine, other) in enumerate(LOOK_ALIKES.values()):
        entity = f"entity {number} {mine}"
        mark = gateway.record_correction(
            agent=mine, entity_key=entity, original_value="THC", corrected_value="DTHC"
        ).correction_id
        asks: list[tuple[dict[str, Any], bool]] = [
            ({"agent": mine, "entity_key": entity}, True),
            ({"agent": other}, False),
            ({"agent": mine, "entity_key": f"entity {number} {other}"}, False),
        ]
        for asked, is_seen in asks:
            listed = {item.correction_id for item in gateway.list_corrections(**asked)}
            found = {hit.correction_id for hit in gateway.search_corrections("THC", k=50, **asked).hits}
            block = gateway.render_corrections("THC", k=50, **asked).text
            assert (mark in listed, mark in found, f"entity {number} " in block) == (is_seen,) * 3, asked


def test_segments_do_not_run_together(open_here: Here) -> None:
    """OH-32: given project `a` with user `b/c`, when `a/b` is read by user `c`, then nothing: none is joined."""
    open_here(project="a").remember("the gate is green", user="b/c", visibility="user")
    other = open_here(project="a/b")
    other.remember("so that the project is there", user="c")
    assert contents(other, user="c") == {"so that the project is there"}
    assert [hit.content for hit in other.search("the gate is green", user="c").hits] == ["so that the project is there"]


ASKED: dict[str, Callable[[Gateway, str, str], object]] = {
    "show": lambda gateway, memory, revision: gateway.show(revision),
    "history": lambda gateway, memory, revision: gateway.history(memory),
    "explain": lambda gateway, memory, revision: gateway.explain(revision),
    "lineage": lambda gateway, memory, revision: gateway.lineage(memory),
    "list": lambda gateway, memory, revision: gateway.list_memories(memory=memory),
    "correct": lambda gateway, memory, revision: gateway.correct(revision, "x"),
    "retire": lambda gateway, memory, revision: gateway.retire(memory),
    "revoke": lambda gateway, memory, revision: gateway.revoke(revision, reason="r"),
    "restore": lambda gateway, memory, revision: gateway.restore(memory),
    "link": lambda gateway, memory, revision: gateway.link("mine", memory),
    "remember": lambda gateway, memory, revision: gateway.remember("x", memory_id=memory),
}


def told(ask: Callable[[], object]) -> tuple[str, str, dict[str, object], int, bool]:
    """Return all that a refusal tells, but for its trace."""
    try:
        ask()
    except CorrigendaError as error:
        return error.code, error.message, error.details, error.exit_code, error.retriable
    raise AssertionError("nothing was refused")


def test_what_is_elsewhere_is_told_as_what_is_nowhere(open_here: Here) -> None:
    """RC-12, LM-35: given ids of another tenant and another project, then the answers are those to unknown ids."""
    mine, sibling = open_here(), open_here(project="atlas2")
    mine.remember("mine", memory_id="mine")
    init(open_here)
    foreign = open_here(tenant="acme").remember("the gate is green", tags=["a"])
    near = sibling.remember("the gate is green", tags=["a"])
    for ask in ASKED.values():
        answers = {
            repr(told(partial(ask, mine, memory, revision)))
            for memory, revision in (
                (foreign.memory_id or "", foreign.revision_id or ""),
                (near.memory_id or "", near.revision_id or ""),
                (f"mem_{UNKNOWN}", f"rev_{UNKNOWN}"),
            )
        }
        assert len(answers) == 1 and "MEMORY_NOT_FOUND" in answers.pop()


def test_the_same_text_of_two_tenants_has_nothing_in_common(open_here: Here) -> None:
    """Given two tenants that store the same text and evidence, then no digest, id or key of one is the other's."""
    local = open_here()
    init(open_here)
    acme = open_here(tenant="acme")
    for gateway in (local, acme):
        gateway.remember("the gate is green", memory_id="gate", user="u", visibility="user", idempotency_key="k")
        gateway.add_evidence(b"the gate is green")
        gateway.search("the gate is green", user="u")
    for query in (
        "SELECT ledger, stream FROM corrigenda.event WHERE stream_seq = 0",
        "SELECT ledger, encode(request, 'hex') FROM corrigenda.event WHERE request IS NOT NULL",
        "SELECT ledger, encode(content, 'hex') FROM corrigenda.embedding",
        "SELECT ledger, evidence FROM corrigenda.evidence_object",
        "SELECT ledger, revision FROM corrigenda.revision",
        "SELECT ledger, project FROM corrigenda.revision",
        "SELECT ledger, person FROM corrigenda.revision",
    ):
        found = rows(open_here.ledger_url, query)
        per_ledger = [{value for ledger, value in found if ledger == one} for one in {ledger for ledger, _ in found}]
        assert len(per_ledger) == 2 and not per_ledger[0] & per_ledger[1], query


def test_a_cursor_of_another_tenant_is_none(open_here: Here) -> None:
    """LM-12: given a cursor of one tenant, when another gives it, then CURSOR_INVALID."""
    local = open_here()
    init(open_here)
    for word in "ab":
        local.remember(word)
    cursor = local.list_memories(limit=1).next_cursor
    with refused("CURSOR_INVALID"):
        open_here(tenant="acme").list_memories(cursor=cursor)
