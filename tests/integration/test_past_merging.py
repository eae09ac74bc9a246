"""The past and the graph of memories that were merged, split, held and patched."""

from typing import Any

import pytest

import corrigenda
from cli.views import graph
from gateway.service import Gateway
from tests.house import refused


@pytest.fixture
def merged(gateway: Gateway) -> tuple[Gateway, dict[str, str], corrigenda.Receipt]:
    """Return memories a and b of two revisions each, merged into a; the revisions by name; and the merge."""
    revisions: dict[str, str] = {}
    for name in "ab":
        revisions[f"{name}1"] = gateway.remember(f"{name} one", memory_id=name).revision_id or ""
        revisions[f"{name}2"] = gateway.correct(name, f"{name} two").revision_id or ""
    done = gateway.supersede(["a", "b"], ["both"])
    return gateway, {**revisions, "m": done.revision_id or ""}, done


Merged = tuple[Gateway, dict[str, str], corrigenda.Receipt]


def kinds(found: corrigenda.Lineage, kind: str) -> set[tuple[str, str]]:
    """Return the edges of a kind."""
    return {(edge.source, edge.target) for edge in found.edges if edge.kind == kind}


class TestGraph:
    """Where merges and splits lead."""

    def test_a_merge_leads_on_into_the_other_memory(self, merged: Merged) -> None:
        """RC-07: given a and b merged into a, when b's graph is asked for, then it goes on to what a became."""
        gateway, revisions, _ = merged
        last = gateway.correct("a", "both, better").revision_id
        found = gateway.lineage("b")

        names = {**{revision: name for name, revision in revisions.items()}, last: "n"}
        shown = {names[node.id]: node.memory_id for node in found.nodes if node.type == "revision"}
        assert shown == {"b1": "b", "b2": "b", "m": "a", "n": "a"}
        edges = {(names[newer], names[older]) for newer, older in kinds(found, "supersedes")}
        assert edges == {("b2", "b1"), ("m", "b2"), ("n", "m")}
        assert "both, better  of a" in graph.tree(found)

    def test_the_merged_memory_leads_down_to_both(self, merged: Merged) -> None:
        """Given a and b merged into a, when a's graph is asked for, then both histories hang below the merge."""
        gateway, revisions, _ = merged
        found = gateway.lineage("a")
        drawn = {name for name, revision in revisions.items() if any(node.id == revision for node in found.nodes)}
        assert drawn == revisions.keys()
        assert {(revisions["m"], revisions["a2"]), (revisions["m"], revisions["b2"])} <= kinds(found, "supersedes")
        assert graph.tree(found).count("●") == graph.lanes(found).count("●") == 1 + len(revisions)

    @pytest.mark.parametrize(
        ("how", "names"),
        [({"down": True, "depth": 1}, "a1 a2 m b2"), ({"up": True}, "a1 a2 m"), ({"depth": 0}, "a1 a2 m")],
    )
    def test_steps_are_counted_from_the_memory(self, merged: Merged, how: dict[str, Any], names: str) -> None:
        """Given a merge, when so many steps in a direction are asked for, then a memory's own revisions are none."""
        gateway, revisions, _ = merged
        found = gateway.lineage("a", **how)
        assert {node.id for node in found.nodes if node.type == "revision"} == {revisions[one] for one in names.split()}

    def test_a_split_leads_to_every_part(self, gateway: Gateway) -> None:
        """Given one memory split in three, when its graph is asked for, then all parts stand above what it said."""
        old = gateway.remember("x and y and z", memory_id="xyz").revision_id or ""
        parts = gateway.supersede(["xyz"], ["x", {"content": "y", "memory_id": "y"}, "z"]).successors
        assert parts is not None
        assert kinds(gateway.lineage("xyz"), "supersedes") == {(part, old) for part in parts}
        assert kinds(gateway.lineage("y"), "supersedes") == {(parts[1], old)}

    def test_what_is_held_proposes_to_replace_a_head(self, gateway: Gateway) -> None:
        """Given a held successor, when the graph is asked for, it proposes; once published, it supersedes."""
        head = gateway.remember("a", memory_id="a").revision_id or ""
        held = gateway.remember("a2", predecessor=head, hold=True).revision_id or ""
        assert kinds(gateway.lineage("a"), "proposes") == {(held, head)}
        assert "held to replace" in graph.tree(gateway.lineage("a"))
        gateway.publish(held)
        found = gateway.lineage("a")
        assert (kinds(found, "proposes"), kinds(found, "supersedes")) == (set(), {(held, head)})


class TestThen:
    """Merged, split and patched memories as they stood."""

    def test_before_a_merge_both_stood(self, merged: Merged) -> None:
        """RC-06: given a merge, when both are explained before and at it, then each had its head, and one lost it."""
        gateway, revisions, done = merged
        before = [gateway.explain(name, at=done.position - 2) for name in "ab"]
        at = [gateway.explain(name, at=done.position) for name in "ab"]
        assert [item.head for item in before] == [revisions["a2"], revisions["b2"]]
        assert [item.head for item in at] == [revisions["m"], None]
        assert at[1].provenance["supersededBy"] == revisions["m"] and at[1].superseded_at == at[0].recorded_at
        with refused("MEMORY_NOT_FOUND"):
            gateway.explain(revisions["m"], at=done.position - 2)
        assert gateway.explain("b", at=done.position - 1).head == revisions["b2"]  # inside the merge: before it

    def test_a_patch_is_there_from_its_position_on(self, gateway: Gateway) -> None:
        """Given a patched revision, when it is explained before and at the patch, then with the metadata of then."""
        first = gateway.remember("a", memory_id="a", tags=["x"])
        mended = gateway.patch("a", tags=["y"], confidence="0.5", reason="wrong tag")
        told = [gateway.explain("a", at=receipt.position) for receipt in (first, mended)]
        assert [(item.tags, item.confidence) for item in told] == [(("x",), None), (("y",), "0.5")]
        assert {item.content for item in told} == {"a"}

    def test_a_patch_is_told_with_its_revision(self, gateway: Gateway) -> None:
        """Given A patched and corrected, then A says how it was mended, and B only what it changed of that."""
        gateway.remember("a", memory_id="a", tags=["x"], sources=["s"])
        mended = gateway.patch("a", tags=["y"], reason="wrong tag")
        gateway.correct("a", "a2")
        gateway.patch("a", sources=["t"])
        first, second = gateway.history("a", patch=True).items
        assert isinstance(first, corrigenda.PatchedRevision) and isinstance(second, corrigenda.PatchedRevision)

        (told,) = first.patched
        assert (told.seq, told.actor, told.reason) == (mended.position, "human:ana", "wrong tag")
        assert told.patch == {"tags": corrigenda.Change(before=("x",), after=("y",))}
        assert second.patch is not None and list(second.patch) == ["content"]
        assert [list(one.patch) for one in second.patched] == [["sources"]]

    def test_a_merge_is_compared_with_its_own_memory(self, merged: Merged) -> None:
        """Given a merge and a split, then each part names its own memory's revision, else its origin."""
        gateway, revisions, _ = merged
        item = gateway.history("a", patch=True).items[-1]
        assert isinstance(item, corrigenda.PatchedRevision) and item.compared_with == revisions["a2"]
        parts = gateway.supersede(["a"], ["first", {"content": "second", "memory_id": "part"}])
        (item,) = gateway.history("part", patch=True).items
        assert isinstance(item, corrigenda.PatchedRevision) and item.compared_with == revisions["m"]
        assert item.patch is not None and item.patch["content"].diff == "@@ -1 +1 @@\n-both\n+second"
        assert parts.successors is not None and item.revision_id == parts.successors[1]

    def test_a_merge_between_two_positions(self, merged: Merged) -> None:
        """Given a merge, when the ledger is compared around it, then one memory was corrected, the other superseded."""
        gateway, _, done = merged
        found = {
            item.memory_id: item
            for item in gateway.diff_between(done.position - 2, done.position)
            if isinstance(item, corrigenda.MemoryDiff)
        }
        assert {name: item.acts for name, item in found.items()} == {"a": ("corrected",), "b": ("superseded",)}
        assert (found["b"].after.head, found["b"].after.state, found["b"].patch) == (None, "superseded", {})


class TestIntervals:
    """Backdated facts."""

    @pytest.mark.parametrize(
        ("old", "new", "end"),
        [
            ("2026-03-01", "2026-02-01", "2026-03-01"),  # backdated before its predecessor
            ("2026-01-01", "2026-02-01", "2026-02-01"),
            ("2026-02-01", "2026-02-01", "2026-02-01"),
        ],
    )
    def test_no_interval_ends_before_it_begins(self, gateway: Gateway, old: str, new: str, end: str) -> None:
        """RC-34: given a successor's own time, then its predecessor ends there, or where it began if that is later."""
        first = gateway.remember("a", memory_id="a", valid_from=f"{old}T00:00:00Z").revision_id or ""
        gateway.remember("a2", predecessor=first, valid_from=f"{new}T00:00:00Z")
        ended = gateway.show(first)
        assert ended.valid_to == f"{end}T00:00:00.000000Z"
        assert str(ended.valid_from) <= str(ended.valid_to)

    def test_the_earliest_part_ends_what_was_split(self, gateway: Gateway) -> None:
        """RC-34: given a split whose second part holds since before, then what was split ended there."""
        first = gateway.remember("x and y", memory_id="xy", valid_from="2025-01-01T00:00:00Z").revision_id or ""
        gateway.supersede(["xy"], ["x", {"content": "y", "memory_id": "y"}])
        gateway.patch("xy", valid_from="2026-02-02T00:00:00Z")
        gateway.patch("y", valid_from="2026-01-01T00:00:00Z")
        assert gateway.show(first).valid_to == "2026-01-01T00:00:00.000000Z"
