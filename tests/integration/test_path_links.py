"""Links between memories: stated in both streams, withdrawn, and never in a circle."""

from itertools import pairwise

import pytest

from gateway.service import Gateway
from tests.house import last_position, refused, rows, types, written
from tests.integration.conftest import Here


@pytest.fixture
def five(gateway: Gateway) -> Gateway:
    """Return a gateway to memories a, b, c, d and e."""
    for name in "abcde":
        gateway.remember(f"text {name}", memory_id=name)
    return gateway


def test_a_link_is_written_to_both_streams_and_moves_nothing(five: Gateway, ledger_url: str) -> None:
    """RC-35: given two memories, when one is linked over the other, then both streams tell it and no state changes."""
    before, stood = last_position(ledger_url), rows(ledger_url, "SELECT * FROM corrigenda.revision ORDER BY revision")

    receipt = five.link("a", "b", reason="newer edition")

    newer, older = written(ledger_url, above=before)
    assert types([newer, older]) == ["lineage.linked", "lineage.linked"]
    assert (newer.facts["role"], older.facts["role"]) == ("newer", "older")
    assert newer.facts["edges"] == older.facts["edges"] == [["supersedes", newer.stream, older.stream, None]]
    assert newer.facts["standing"]["head"] == five.show("a").revision_id
    assert older.facts["standing"]["head"] == five.show("b").revision_id
    assert rows(ledger_url, "SELECT * FROM corrigenda.revision ORDER BY revision") == stood
    assert (receipt.memory_id, receipt.revision_id, receipt.superseded) == ("a", None, None)
    assert [five.show(name).state for name in "ab"] == ["active", "active"]
    assert five.show("b").superseded_by == ()


def test_a_link_is_not_stated_twice(five: Gateway) -> None:
    """RC-25: given a link, when it is stated again, then NO_CHANGE."""
    five.link("a", "b")

    with refused("NO_CHANGE"):
        five.link("a", "b")


def test_no_memory_supersedes_itself(five: Gateway) -> None:
    """RC-36: given one memory, when it is linked to itself by name and by a revision, then INVALID_INPUT."""
    for other in ("a", five.show("a").revision_id):
        with refused("INVALID_INPUT"):
            five.link("a", other)


@pytest.mark.parametrize("chain", ["ab", "abc", "abcde"])
def test_no_link_closes_a_circle(five: Gateway, ledger_url: str, chain: str) -> None:
    """RC-36: given a chain of links, when its last is linked over its first, INVALID_TRANSITION."""
    for newer, older in pairwise(chain):
        five.link(newer, older)
    before = last_position(ledger_url)

    with refused("INVALID_TRANSITION") as refusal:
        five.link(chain[-1], chain[0])

    assert refusal.details["allowed"] == ["unlink"]
    assert last_position(ledger_url) == before


def test_a_diamond_is_no_circle(five: Gateway) -> None:
    """RC-36: given a over b and c, and both over d, when a is linked over d too, then it is stored."""
    for newer, older in ("ab", "ac", "bd", "cd", "ad"):
        five.link(newer, older)

    edges = {(edge.source, edge.target) for edge in five.lineage("a").edges}
    assert edges == {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "d")}


def test_a_withdrawn_link_leaves_both_ends_and_the_circle_is_free(five: Gateway, ledger_url: str) -> None:
    """RC-36: given a link that was withdrawn, when the opposite is stated, then it is stored; and so is it again."""
    first = five.link("a", "b")
    before = last_position(ledger_url)
    five.unlink("a", "b", reason="other way round")

    newer, older = written(ledger_url, above=before)
    assert types([newer, older]) == ["lineage.unlinked"] * 2
    assert [event.facts["edges"][0][3] for event in (newer, older)] == [event.seq for event in first.events]
    five.link("b", "a")
    five.unlink("b", "a", reason="no")
    five.link("a", "b")
    assert [(edge.source, edge.target) for edge in five.lineage("b").edges] == [("a", "b")]


def test_only_a_link_that_stands_is_withdrawn(five: Gateway) -> None:
    """Given a over b, when b over a, or a over c, is withdrawn, then MEMORY_NOT_FOUND."""
    five.link("a", "b")

    for newer, older in ("ba", "ac"):
        with refused("MEMORY_NOT_FOUND"):
            five.unlink(newer, older, reason="r")


def test_headless_memories_are_linked_like_others(five: Gateway) -> None:
    """Given a retired and a revoked memory, when they are linked, then the link stands and both stay headless."""
    five.retire("a")
    five.revoke("b", reason="wrong")

    five.link("a", "b")

    states = {node.id: node.state for node in five.lineage("a").nodes if node.type == "memory"}
    assert states == {"a": "retired", "b": "revoked"}
    assert five.explain("a").head is None
    with refused("INVALID_TRANSITION"):
        five.link("b", "a")


def test_a_link_changes_no_search(five: Gateway) -> None:
    """RC-05: given a linked over b, when both match, then both are found: a link says nothing about a revision."""
    five.link("a", "b")

    assert {hit.memory_id for hit in five.search("text", k=9).hits} == set("abcde")


def test_links_stay_within_a_project(open_here: Here, ledger_url: str) -> None:
    """RC-35: given memories of two projects, when a reader without a project links them, then INVALID_INPUT."""
    mine = open_here().remember("a")
    theirs = open_here(project="borea").remember("b")
    anyone = open_here(project=None)
    before = last_position(ledger_url)

    with refused("INVALID_INPUT"):
        anyone.link(mine.revision_id or "", theirs.revision_id or "")

    assert last_position(ledger_url) == before


def test_a_link_is_held_to_the_version_of_the_newer(five: Gateway, ledger_url: str) -> None:
    """XC-03, RC-24: given NEW at another version than was expected, then neither link nor unlink is stored."""
    five.correct("b", "text of b, mended")
    five.link("a", "b", if_revision=1)
    before = last_position(ledger_url)

    for ask in (
        lambda: five.link("a", "c", if_revision=1),
        lambda: five.unlink("a", "b", reason="r", if_revision=3),
    ):
        with refused("STALE_REVISION") as refusal:
            ask()
        assert refusal.details["found"] == 2

    assert last_position(ledger_url) == before
    five.unlink("a", "b", reason="r", if_revision=2)
