"""Explain, history and lineage: the same story from whichever of a memory's ids it is asked for."""

from typing import Any

import pytest

from gateway.bootstrap import open_bare
from gateway.service import Gateway
from tests.house import refused
from tests.integration.conftest import Here


@pytest.fixture
def chain(gateway: Gateway) -> tuple[Gateway, list[str]]:
    """Return a gateway and the revisions of one memory that was corrected twice."""
    first = gateway.remember("the tower has 3 bells", memory_id="tower", reason="counted")
    second = gateway.correct("tower", "the tower has 4 bells", reason="counted again")
    third = gateway.correct("tower", "the tower has 5 bells", reason="one was hidden")
    return gateway, [receipt.revision_id or "" for receipt in (first, second, third)]


def test_explain_gives_the_immediate_neighbours(chain: tuple[Gateway, list[str]]) -> None:
    """RC-06, RC-07, RC-08: given A → B → C, when each is explained, then it names its own successor, not the last."""
    gateway, (a, b, c) = chain
    told = [gateway.explain(revision) for revision in (a, b, c)]

    assert [item.superseded_by for item in told] == [(b,), (c,), ()]
    assert [item.provenance.get("supersededBy") for item in told] == [b, c, None]
    assert "supersededBy" not in told[2].provenance
    assert [item.supersedes for item in told] == [(), (a,), (b,)]
    assert [item.version for item in told] == [1, 2, 3]
    assert {(item.head, item.root) for item in told} == {(c, a)}
    assert [item.content for item in told] == [f"the tower has {n} bells" for n in (3, 4, 5)]


def test_explain_carries_every_event_with_actor_and_reason(chain: tuple[Gateway, list[str]]) -> None:
    """RC-02, RC-37, LM-42: given A → B → C, when one is explained, the audit has each act, its reason and its moves."""
    gateway, (a, b, c) = chain
    audit = gateway.explain(b).audit

    assert [entry.reason for entry in audit] == ["counted", "counted again", "one was hidden"]
    assert {entry.actor for entry in audit} == {"human:ana"}
    assert [[(move["revision"], move["from_state"], move["to_state"]) for move in entry.moves] for entry in audit] == [
        [(a, None, "active")],
        [(a, "active", "superseded"), (b, None, "active")],
        [(b, "active", "superseded"), (c, None, "active")],
    ]
    assert [entry.at for entry in audit] == sorted(entry.at for entry in audit)


def test_a_receipts_trace_names_every_event_of_its_act(open_here: Here, chain: tuple[Gateway, list[str]]) -> None:
    """RC-26: given a receipt, when its trace is looked for in the log, then exactly its events carry it."""
    gateway, _ = chain
    receipt = gateway.link(gateway.remember("x", memory_id="x").memory_id or "", "tower")

    with open_bare(database_url=open_here.ledger_url, home=open_here.home, create=False) as bare:
        carried = [item.seq for item in bare.log(reverse=True) if item.trace_id == receipt.trace_id]
    assert carried == [event.seq for event in receipt.events]


def test_history_is_the_same_from_any_member(chain: tuple[Gateway, list[str]]) -> None:
    """RC-33: given A → B → C, when the history of any of its ids is asked for, then all versions come in order."""
    gateway, revisions = chain

    told = [gateway.history(reference).items for reference in ("tower", *revisions)]
    assert [item.revision_id for item in told[0]] == revisions
    assert all(items == told[0] for items in told)


def test_a_forgotten_middle_leaves_the_chain_walkable(chain: tuple[Gateway, list[str]]) -> None:
    """RC-30, RC-31: given A → B → C, when B is revoked and C retired, then nothing is found and A is not revived."""
    gateway, (a, b, c) = chain
    gateway.revoke(b, reason="miscounted")
    gateway.retire(c)

    assert gateway.search("the tower has bells").hits == ()
    assert [item.revision_id for item in gateway.history("tower").items] == [a, b, c]
    assert gateway.explain("tower").head is None


def test_a_headless_memory_is_explained_by_its_latest_revision(chain: tuple[Gateway, list[str]]) -> None:
    """Given a memory whose head was retired, when it is explained, then it is its latest revision with head None."""
    gateway, revisions = chain
    gateway.retire("tower")

    told = gateway.explain("tower")
    assert (told.revision_id, told.head, told.state) == (revisions[-1], None, "retired")


def test_lineage_follows_links_up_and_down(gateway: Gateway) -> None:
    """Given e over d over c over b over a, when c is asked for, then up, down and depth cut the graph as they say."""
    for name in "abcde":
        gateway.remember(f"edition {name}", memory_id=name)
    for newer, older in ("ba", "cb", "dc", "ed"):
        gateway.link(newer, older)

    def memories(**cut: Any) -> set[str]:  # Any: what lineage takes
        return {node.id for node in gateway.lineage("c", **cut).nodes if node.type == "memory"}

    assert memories() == set("abcde")
    assert memories(up=True) == set("cde")
    assert memories(down=True) == set("cba")
    assert memories(depth=1) == set("bcd")
    assert memories(up=True, depth=1) == set("cd")
    assert memories(depth=0) == {"c"}


def test_lineage_draws_the_revisions_of_the_memory_asked_for(chain: tuple[Gateway, list[str]]) -> None:
    """RC-37: given A → B → C, when the lineage is drawn, then its revisions are nodes and each edge is new → old."""
    gateway, (a, b, c) = chain
    drawn = gateway.lineage(b)

    assert drawn.root == "tower"
    assert [(node.id, node.state, node.version) for node in drawn.nodes if node.type == "revision"] == [
        (a, "superseded", 1), (b, "superseded", 2), (c, "active", 3),
    ]  # fmt: skip
    assert {(edge.source, edge.target, edge.kind) for edge in drawn.edges} == {
        (b, a, "supersedes"), (c, b, "supersedes"),
    }  # fmt: skip


def test_an_event_is_shown_with_both_halves_and_its_own_bytes(chain: tuple[Gateway, list[str]]) -> None:
    """RC-37: given an event, when it is shown and its bytes are asked for, then they are what is hashed."""
    from ledger.digest import link

    gateway, (_, b, c) = chain
    position = gateway.show(c).position
    event = gateway.show_event(position)

    assert event.payload is not None and event.payload["content"] == "the tower has 5 bells"
    assert [*event.facts["edges"]] == [["supersedes", c, b, None]]
    assert link(gateway.raw(position)).hex() == event.hash
    for beyond in (-1, position + 1):
        with refused("EVENT_NOT_FOUND"):
            gateway.show_event(beyond)
