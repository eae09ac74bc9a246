"""Merges and splits: several memories become one, one several; all of it or nothing, and every end knows the others."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from corrigenda import ConflictError
from gateway.service import Gateway
from tests.house import last_position, refused, types, written
from tests.integration.conftest import Here


@pytest.fixture
def three(gateway: Gateway) -> Gateway:
    """Return a gateway to memories a, b and c."""
    for name in "abc":
        gateway.remember(f"text {name}", memory_id=name, tags=[name, "all"], sources=[f"source {name}"])
    return gateway


def test_a_merge_is_one_append(three: Gateway, ledger_url: str) -> None:
    """RC-43: given three heads, when they are merged, then the first goes on and the others end, in one append."""
    olds = [three.show(name).revision_id for name in "abc"]
    before = last_position(ledger_url)

    merged = three.supersede(["a", "b", "c"], ["all of it"], reason="one thing")

    events = written(ledger_url, above=before)
    assert types(events) == ["revision.corrected", "revision.superseded", "revision.superseded"]
    assert len({event.op for event in events}) == 1
    assert (merged.memory_id, merged.superseded, merged.successors) == ("a", tuple(olds), None)
    assert [hit.content for hit in three.search("text a b c").hits] == ["all of it"]
    for name, old in zip("abc", olds, strict=True):
        story = three.explain(old)
        assert (story.memory_id, story.state, story.superseded_by) == (name, "superseded", (merged.revision_id,))
        assert story.provenance["supersededBy"] == merged.revision_id
        assert story.audit[-1].reason == "one thing"
    assert three.explain("b").head is None


def test_a_merge_unites_what_is_inherited(three: Gateway) -> None:
    """Given tags and sources on each, the successor has all of them, in order and once; a dict may bring its own."""
    three.supersede(["b", "a"], ["both"])
    head = three.show("b")
    assert head.tags == ("b", "all", "a")
    assert head.provenance["sources"] == ["source b", "source a"]
    assert (head.version, head.confidence, head.trust, head.origin) == (2, None, "unverified", "human")

    three.supersede(["b", "c"], [{"content": "all", "tags": []}])
    assert three.show("b").tags == ()


def test_a_split_begins_memories(three: Gateway, ledger_url: str) -> None:
    """RC-43, RC-07: given one head, when it is split, the first text goes on and further ones begin; A names all."""
    old = three.show("a").revision_id
    before = last_position(ledger_url)

    split = three.supersede(["a"], ["left", {"content": "right", "kind": "decision", "memory_id": "right"}, "middle"])

    events = written(ledger_url, above=before)
    assert types(events) == ["name.assigned", "revision.corrected", "memory.remembered", "memory.remembered"]
    assert (split.memory_id, split.revision_id) == ("a", (split.successors or ("",))[0])
    assert three.explain(old).superseded_by == split.successors
    assert three.explain(old).provenance["supersededBy"] == split.revision_id, "the first by position"
    right = three.show("right")
    assert (right.version, right.kind, right.tags, right.supersedes) == (1, "decision", ("a", "all"), (old,))
    assert {hit.content for hit in three.search("left right middle", k=3).hits} == {"left", "right", "middle"}


def test_several_become_several(three: Gateway) -> None:
    """RC-43: given n heads and m texts, each predecessor names all successors, and each successor all predecessors."""
    olds = tuple(three.show(name).revision_id for name in "abc")
    done = three.supersede(list(olds), ["one", "two"])
    assert [three.explain(old).superseded_by for old in olds] == [done.successors] * 3
    assert [three.show(new).supersedes for new in done.successors or ()] == [olds] * 2


def test_one_by_one_is_a_correction(three: Gateway, ledger_url: str) -> None:
    """RC-25: given one head and one text, the event is a correction, and its own text is NO_CHANGE."""
    before = last_position(ledger_url)
    three.supersede(["a"], ["another"])
    assert types(written(ledger_url, above=before)) == ["revision.corrected"]
    with refused("NO_CHANGE"):
        three.supersede(["a"], ["another"])


def test_if_one_is_stale_nothing_is_written(open_here: Here, three: Gateway, ledger_url: str) -> None:
    """RC-43: given heads of which another process has corrected one, the refusal names it and its head; no event."""
    olds = [three.show(name).revision_id for name in "abc"]
    head = open_here().correct("b", "text b, corrected").revision_id
    before = last_position(ledger_url)

    with refused("MEMORY_ALREADY_SUPERSEDED") as refusal:
        three.supersede(olds, ["one", "two"])

    assert (refusal.details["revision_id"], refusal.details["head"]) == (olds[1], head)
    assert olds[1] in refusal.error.message
    assert last_position(ledger_url) == before
    assert {hit.content for hit in three.search("text", k=9).hits} == {"text a", "text b, corrected", "text c"}


def test_the_same_request_has_one_effect(three: Gateway) -> None:
    """RC-41: given a merge with a key, when it is sent again, then the same ids come back, replayed."""
    first = three.supersede(["a", "b"], ["one", "two"], idempotency_key="k")
    again = three.supersede(["a", "b"], ["one", "two"], idempotency_key="k")
    assert (first.successors, first.superseded, first.position) == (again.successors, again.superseded, again.position)
    assert (first.replayed, again.replayed) == (False, True)
    with refused("IDEMPOTENCY_KEY_REUSED"):
        three.supersede(["a", "b"], ["one", "other"], idempotency_key="k")


def test_what_cannot_be_superseded_together(open_here: Here, three: Gateway, ledger_url: str) -> None:
    """RC-35, RC-36, RC-43: twice the same, ancestors, another project, kind, visibility or agent: refused."""
    old = three.show("a").revision_id
    three.correct("a", "text a, corrected")
    open_here(project="borea").remember("elsewhere", memory_id="e")
    foreign = open_here(project="borea").show("e").revision_id
    three.remember("a decision", memory_id="d", kind="decision")
    three.remember("for all", memory_id="g", visibility="global")
    for agent in ("x", "y"):
        three.remember(f"of {agent}", memory_id=agent, agent=agent, visibility="agent")
    before = last_position(ledger_url)

    wishes: list[tuple[list[str], str]] = [
        (["b", "b"], "INVALID_INPUT"),
        (["b", three.show("b").revision_id], "INVALID_INPUT"),
        (["a", old], "MEMORY_ALREADY_SUPERSEDED"),
        ([old, "a"], "MEMORY_ALREADY_SUPERSEDED"),
        (["b", foreign], "MEMORY_NOT_FOUND"),
        (["b", "d"], "INVALID_INPUT"),
        (["b", "g"], "INVALID_INPUT"),
        (["x", "y"], "INVALID_INPUT"),
        (["b", "nobody"], "MEMORY_NOT_FOUND"),
    ]
    for revisions, code in wishes:
        with refused(code):
            three.supersede(revisions, ["one text"])
    with refused("INVALID_INPUT"):  # a reader of no project sees both
        open_here(project=None).supersede([three.show("b").revision_id, foreign], ["one text"])
    assert last_position(ledger_url) == before


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        ([{"content": "x", "kind": "decision"}], "INVALID_INPUT"),
        ([{"content": "x", "memory_id": "b"}], "INVALID_INPUT"),
        (["x", {"content": "y", "memory_id": "a"}], "INVALID_INPUT"),
        (["x", {"content": "y", "memory_id": "b"}], "INVALID_INPUT"),
        (["x", {"content": "y", "memory_id": "n"}, {"content": "z", "memory_id": "n"}], "INVALID_INPUT"),
        (["x", {"content": "y", "memory_id": "mem_01J9ZKAAAAAAAAAAAAAAAAAAAA"}], "INVALID_INPUT"),
        ([{"content": "x", "origin": "human"}], "VALIDATION_FAILED"),
        ([{"content": "x", "trust": "verified", "state": "active"}], "VALIDATION_FAILED"),
        ([{"kind": "fact"}], "VALIDATION_FAILED"),
        ([" "], "VALIDATION_FAILED"),
        (["x" * 8_001], "VALIDATION_FAILED"),
        ([7], "VALIDATION_FAILED"),
        ([], "VALIDATION_FAILED"),
        (["x"] * 65, "VALIDATION_FAILED"),
        ([{"content": "x", "tags": ["t"] * 100_000}], "VALIDATION_FAILED"),
        ("a single text", "VALIDATION_FAILED"),
        (7, "VALIDATION_FAILED"),
    ],
)
def test_successors_that_cannot_be(three: Gateway, ledger_url: str, texts: Any, code: str) -> None:
    """RC-24, XC-10: a kind or id that is not the successor's to have, and what no schema takes: refused, unwritten."""
    before = last_position(ledger_url)
    with refused(code):
        three.supersede(["a"], texts)
    assert last_position(ledger_url) == before


def test_what_is_united_has_a_bound(gateway: Gateway) -> None:
    """Given 101 tags together, a merge is INVALID_INPUT, unless the successor brings its own."""
    gateway.remember("one", memory_id="m", tags=[f"m{number}" for number in range(51)])
    gateway.remember("two", memory_id="n", tags=[f"n{number}" for number in range(50)])
    with refused("INVALID_INPUT"):
        gateway.supersede(["m", "n"], ["both"])
    gateway.supersede(["m", "n"], [{"content": "both", "tags": ["few"]}])


def test_the_most_that_can_be_superseded_at_once(gateway: Gateway) -> None:
    """Given 64 memories, when 64 texts take their place, then it is stored: what they say of each other fits."""
    for number in range(64):
        gateway.remember(f"text {number}", memory_id=f"m{number}")
    done = gateway.supersede([f"m{number}" for number in range(64)], [f"new {number}" for number in range(64)])
    assert len(done.superseded or ()) == len(done.successors or ()) == 64
    assert len(gateway.explain("m63").superseded_by) == 64


def test_validity_ends_where_the_first_successor_begins(open_here: Here) -> None:
    """RC-34: given a merge, each predecessor's end is the successor's valid_from, if any, never before its own."""
    seconds = count()
    here = open_here(clock=lambda: datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=next(seconds)))
    here.remember("one", memory_id="m", valid_from="2026-01-01T00:00:00Z")
    here.remember("two", memory_id="n", valid_from="2027-01-01T00:00:00Z")
    here.remember("three", memory_id="o", valid_from="2026-01-01T00:00:00Z", valid_to="2026-01-02T00:00:00Z")
    here.supersede(["m", "n", "o"], ["all"])
    here.patch("m", valid_from="2026-02-01T00:00:00Z")

    ends = {name: here.show(here.history(name).items[0].revision_id) for name in "mno"}
    assert ends["m"].valid_to == "2026-02-01T00:00:00.000000Z"
    assert ends["n"].valid_to == "2027-01-01T00:00:00.000000Z"
    assert ends["o"].valid_to == "2026-01-02T00:00:00.000000Z"
    assert {item.superseded_at for item in ends.values()} == {here.show("m").recorded_at}


def test_a_successor_in_another_memory_is_read_as_it_is_now(open_here: Here) -> None:
    """RC-34: given B that ended in A's successor, when that is patched and corrected, B's end is the patched one."""
    here = open_here()
    here.remember("one", memory_id="m")
    here.remember("two", memory_id="n")
    here.supersede(["m", "n"], ["both"])
    here.patch("m", valid_from="2031-01-01T00:00:00Z")
    here.correct("m", "both, corrected")
    here.revoke("n" if here.explain("n").head else here.explain("n").revision_id, reason="wrong all along")

    (old,) = here.history("n").items
    assert old.valid_to == "2031-01-01T00:00:00.000000Z"
    assert old.superseded_at == here.history("m").items[1].recorded_at
    assert (old.state, old.trust) == ("superseded", "revoked")


def test_of_merges_at_once_that_share_a_head_one_wins(open_here: Here) -> None:
    """RC-43: given merges that share a head, behind a barrier, one is stored whole; the other is told which head."""
    gateways = [open_here(), open_here(actor="human:bea")]
    gate = threading.Barrier(len(gateways))

    def merge(by: Gateway, heads: Sequence[str]) -> tuple[str, str]:
        gate.wait(30)
        try:
            return "stored", by.supersede(heads, [f"by {heads}"]).revision_id or ""
        except ConflictError as error:
            return error.code, error.details["revision_id"]

    with ThreadPoolExecutor(len(gateways)) as pool:
        for number in range(10):
            left, shared, right = (
                gateways[0].remember(f"{name} {number}").revision_id or "" for name in ("left", "shared", "right")
            )
            wishes = [(left, shared), (right, shared)]
            done = sorted(pool.map(merge, gateways, wishes))
            (refusal, named), (stored, successor) = done
            assert (refusal, named, stored) == ("MEMORY_ALREADY_SUPERSEDED", shared, "stored")
            states = {gateways[0].show(item).superseded_by for item in (left, shared, right)}
            assert states == {(), (successor,)}
