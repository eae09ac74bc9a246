"""Who sees which record by its id: the actor's own identity decides, and what is not visible is as unknown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.audit.bundles import verify_bundle
from gateway.service import Gateway
from ledger.errors import CorrigendaError
from tests.house import last_position, refused
from tests.integration.conftest import Here
from tests.integration.test_export import key_of

UNKNOWN = "01JZ8Q0000000000000000000Z"
HUMAN = ("read", "write", "submit", "contest", "correct", "decide", "admit", "revoke", "export")
OWNERS: dict[str, dict[str, Any]] = {
    "agent": {"agent": "scout", "visibility": "agent"},
    "user": {"user": "bo", "visibility": "user"},
    "session": {"session": "s", "visibility": "session"},
    "project": {},
    "tenant": {"visibility": "tenant"},
}
SEEN = {
    "agent:scout": {"agent", "project", "tenant"},
    "agent:bo": {"project", "tenant"},
    "human:bo": {"user", "project", "tenant"},
    "human:scout": {"project", "tenant"},
    "service:s": {"project", "tenant"},
}


@pytest.fixture
def filled(open_here: Here) -> Here:
    """Return gateways on memories and corrections of each visibility; the operator's own gateway has written them."""
    with open_here() as gateway:
        for name, owner in OWNERS.items():
            gateway.remember(f"of the {name}", memory_id=name, **owner)
    return open_here


def found(ask: Callable[[], object]) -> bool:
    """Report whether something is found; not found is told in the words for what nobody has ever heard of."""
    try:
        ask()
    except CorrigendaError as error:
        assert (error.code, dict(error.details)) == ("MEMORY_NOT_FOUND", {})
        return False
    return True


def plain(gateway: Gateway, ask: Callable[[Gateway, str], object], reference: str) -> tuple[str, str]:
    """Return how something is refused: its code and its words."""
    with pytest.raises(CorrigendaError) as caught:
        ask(gateway, reference)
    return caught.value.code, str(caught.value)


READS: dict[str, Callable[[Gateway, str], object]] = {
    "show": lambda gateway, one: gateway.show(one),
    "explain": lambda gateway, one: gateway.explain(one),
    "explain at": lambda gateway, one: gateway.explain(one, at=gateway.history("project").position),
    "history": lambda gateway, one: gateway.history(one),
    "history --patch": lambda gateway, one: gateway.history(one, patch=True),
    "lineage": lambda gateway, one: gateway.lineage(one),
    "diff": lambda gateway, one: gateway.diff("project", one),
    "list": lambda gateway, one: gateway.list_memories(memory=one),
}  # fmt: skip
WRITES: dict[str, Callable[[Gateway, str], object]] = {
    "remember": lambda gateway, one: gateway.remember("x", predecessor=one),
    "correct": lambda gateway, one: gateway.correct(one, "x"),
    "patch": lambda gateway, one: gateway.patch(one, tags=["x"]),
    "supersede": lambda gateway, one: gateway.supersede(["project", one], ["x"]),
    "forget": lambda gateway, one: gateway.forget(one),
    "retire": lambda gateway, one: gateway.retire(one),
    "restore": lambda gateway, one: gateway.restore(one),
    "revoke": lambda gateway, one: gateway.revoke(one, reason="r"),
    "admit": lambda gateway, one: gateway.admit(one, reason="r"),
    "reject": lambda gateway, one: gateway.reject_revision(one),
    "promote": lambda gateway, one: gateway.promote(one),
    "publish": lambda gateway, one: gateway.publish(one),
    "link": lambda gateway, one: gateway.link("project", one),
    "contest": lambda gateway, one: gateway.contest(one, "project"),
}


@pytest.mark.parametrize("actor", SEEN)
def test_a_memory_is_found_by_whom_its_visibility_lets(filled: Here, actor: str) -> None:
    """Given memories of each visibility, when each kind of actor reads them, then it finds those that are its own."""
    gateway = filled(actor=actor, permissions=["read"])
    ids = {name: filled().show(name).revision_id for name in OWNERS}
    for read in READS.values():
        assert {name for name in OWNERS if found(lambda name=name, read=read: read(gateway, name))} == SEEN[actor]
        assert {name for name in OWNERS if found(lambda name=name, read=read: read(gateway, ids[name]))} == SEEN[actor]
    assert {name for name in OWNERS if ids[name] in gateway.complete(ids[name][:29])} == SEEN[actor]
    assert {item.memory_id for item in gateway.list_memories().items} == SEEN[actor]
    assert {item.memory_id for item in gateway.diff_between(0, gateway.history("project").position)} == SEEN[actor]


def test_who_has_the_permission_admin_finds_all_of_a_project(filled: Here) -> None:
    """Given memories of each visibility, when the operator reads, then it finds every one."""
    gateway = filled()
    for read in READS.values():
        assert all(found(lambda name=name, read=read: read(gateway, name)) for name in OWNERS)


def test_what_is_not_visible_is_told_as_what_there_is_not(filled: Here, ledger_url: str) -> None:
    """Given a memory of somebody else, when it is named, then the refusal is that for an unknown id, to the letter."""
    ids = filled().show("user")
    gateway, before = filled(actor="human:ana", permissions=HUMAN), last_position(ledger_url)
    for act, ask in {**READS, **WRITES}.items():
        unknown = plain(gateway, ask, f"rev_{UNKNOWN}")
        assert unknown[0] == "MEMORY_NOT_FOUND", act
        assert {plain(gateway, ask, one) for one in ("user", ids.revision_id)} == {unknown}, act
    assert last_position(ledger_url) == before


def test_a_name_of_somebody_elses_memory_is_not_taken_over(filled: Here, ledger_url: str) -> None:
    """Given a name that another's memory has, when a text is remembered under it, then MEMORY_NOT_FOUND."""
    before = last_position(ledger_url)
    with refused("MEMORY_NOT_FOUND"):
        filled(actor="agent:scout").remember("mine", memory_id="user")
    assert last_position(ledger_url) == before


def test_an_event_shows_its_facts_to_all_and_its_payload_to_who_sees_it(filled: Here, ledger_url: str) -> None:
    """Given events of each visibility, when an agent shows them, then facts always, and payloads of what it sees."""
    operator, agent = filled(), filled(actor="agent:scout")
    for name in OWNERS:
        position = operator.show(name).position
        event, whole = agent.show_event(position), operator.show_event(position)
        assert event.facts == whole.facts and whole.payload is not None
        assert (event.payload == whole.payload) == (name in SEEN["agent:scout"])
        assert (event.payload is None) == (name not in SEEN["agent:scout"])
    names = [operator.show_event(seq) for seq in range(1, last_position(ledger_url) + 1)]
    hidden = {
        (event.payload or {})["name"]
        for event in names
        if event.type.startswith("name.") and agent.show_event(event.seq).payload is None
    }
    assert hidden == {"user", "session"}


def test_another_projects_payload_is_not_shown(filled: Here, ledger_url: str) -> None:
    """Given an event of another project, when an agent of this one shows it, then its payload is not told."""
    filled(project="other").remember("not yours", visibility="tenant")
    position = last_position(ledger_url)
    assert filled(actor="agent:scout").show_event(position).payload is None
    assert filled(actor="agent:scout", project="other").show_event(position).payload is not None


def test_of_a_memory_of_several_readers_each_sees_its_revisions(open_here: Here) -> None:
    """Given a memory whose head is seen by more than its past, when an agent reads it, nothing of the past is told."""
    with open_here() as operator:
        old = operator.remember("secret", memory_id="m", user="bo", visibility="user", tags=["hush"]).revision_id or ""
        operator.patch("m", tags=["hush", "hush2"], reason="secret reason")
        new = operator.remember("open", predecessor=old, visibility="project").revision_id or ""
    gateway = open_here(actor="agent:scout")
    told = [
        gateway.show("m"), gateway.explain("m"), gateway.history("m"), gateway.history("m", patch=True),
        gateway.lineage("m"), gateway.list_memories(memory="m", states=["active", "superseded"]),
        *gateway.diff_between(0, gateway.history("m").position),
    ]  # fmt: skip
    assert [item.revision_id for item in gateway.history("m").items] == [new]
    assert not [one for one in told if "secret" in repr(one) or "hush" in repr(one)]
    with refused("MEMORY_NOT_FOUND"):
        gateway.show(old)
    with refused("MEMORY_NOT_FOUND"):
        gateway.explain("m", at=gateway.show("m").position - 1)


def test_the_graph_shows_what_its_reader_sees(open_here: Here) -> None:
    """Given links to memories of others, when an agent draws a lineage, then they and their edges are left out."""
    with open_here() as operator:
        for name, owner in (("a", {}), ("b", OWNERS["user"]), ("c", {})):
            operator.remember(name, memory_id=name, **owner)
        operator.link("a", "b")
        operator.link("b", "c")
        operator.record_correction(agent="other", original_value="c", corrected_value="d", memory="c")
    drawn = open_here(actor="agent:scout").lineage("a")
    assert {node.id for node in drawn.nodes if node.type == "memory"} == {"a"}
    assert drawn.edges == ()
    nodes = open_here(actor="agent:scout").lineage("c").nodes
    assert {node.type for node in nodes} == {"memory", "revision"}
    assert {node.type for node in open_here(actor="agent:other").lineage("c").nodes} == {
        "memory", "revision", "correction",
    }  # fmt: skip


def test_a_correction_is_found_by_whom_its_visibility_lets(open_here: Here) -> None:
    """Given corrections of an agent and a user, when others name them, then CORRECTION_NOT_FOUND as if unknown."""
    given: dict[str, Any] = {"agent": "ap", "original_value": "a", "corrected_value": "b"}
    with open_here() as operator:
        ap = operator.record_correction(**given).correction_id or ""
        bo = operator.record_correction(**given, user="bo", visibility="user").correction_id or ""
    asks: dict[str, Callable[[Gateway, str], object]] = {
        "show": lambda gateway, one: gateway.show_correction(one),
        "confirm": lambda gateway, one: gateway.confirm_correction(one),
        "supersede": lambda gateway, one: gateway.supersede_correction(one, corrected_value="c"),
        "revoke": lambda gateway, one: gateway.revoke_correction(one, reason="r"),
    }
    stranger = open_here(actor="human:eve", permissions=HUMAN)
    for ask in asks.values():
        unknown = plain(stranger, ask, f"cor_{UNKNOWN}")
        assert unknown[0] == "CORRECTION_NOT_FOUND"
        assert {plain(stranger, ask, one) for one in (ap, bo)} == {unknown}
    assert (stranger.complete(ap[:20]), stranger.list_corrections()) == ((), ())
    for actor, own in (("agent:ap", ap), ("human:bo", bo)):
        gateway = open_here(actor=actor, permissions=["read"])
        assert gateway.show_correction(own).correction_id == own
        assert [item.correction_id for item in gateway.list_corrections()] == [own]


def test_an_export_holds_what_its_maker_sees(open_here: Here, tmp_path: Path) -> None:
    """Given a memory that superseded somebody else's, when it is exported, then the other's payloads are withheld."""
    with open_here() as operator:
        operator.remember("theirs", memory_id="theirs", user="bo", visibility="user")
        old = operator.show("theirs").revision_id
        operator.remember("open", predecessor=old, visibility="project")
        operator.remember("secret", memory_id="secret", user="bo", visibility="user")
    person = open_here(actor="human:ana", permissions=HUMAN)
    with refused("MEMORY_NOT_FOUND"):
        person.export_supersession(["secret"], tmp_path / "none")
    mine = person.export_supersession(["theirs"], tmp_path / "mine")
    whole = open_here().export_supersession(["theirs"], tmp_path / "whole")
    assert (mine.payloads_withheld, whole.payloads_withheld) == (1, 0)
    assert verify_bundle(tmp_path / "mine", key_of(open_here)).ok


def test_a_search_of_the_past_is_of_the_reader_that_it_names(open_here: Here) -> None:
    """Given a user's memory, when an agent searches the past for that user, it is found; for nobody, it is not."""
    with open_here() as operator:
        operator.remember("the crane lifts twelve tonnes", user="bo", visibility="user")
        position = operator.remember("another").position
    agent = open_here(actor="agent:scout")
    assert len(agent.search("crane lifts twelve tonnes", user="bo", at_position=position).hits) >= 1
    assert "crane" not in repr(agent.search("crane lifts twelve tonnes", at_position=position).hits)
