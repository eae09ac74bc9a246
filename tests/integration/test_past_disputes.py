"""The past and the graph of memories that were forgotten or contested: what is no longer shown stays walkable."""

import corrigenda
from cli.views import graph, patches
from gateway.service import Gateway

SECRET = "the vault code is 4711"


def chain(gateway: Gateway) -> tuple[list[str], list[int]]:
    """Make a memory of three revisions whose middle one says what is then forgotten; return ids and positions."""
    done = [
        gateway.remember("the vault has a lock", memory_id="vault"),
        gateway.correct("vault", SECRET),
        gateway.correct("vault", "the vault has a new lock"),
    ]
    revisions = [receipt.revision_id or "" for receipt in done]
    return revisions, [*(receipt.position for receipt in done), gateway.forget(revisions[1]).position]


class TestForgotten:
    """RC-31: a forgotten revision is a tombstone without a body."""

    def test_the_chain_is_walked_over_a_tombstone(self, gateway: Gateway) -> None:
        """RC-31: given A → B → C and B forgotten, then each still names its neighbours, and only B says nothing."""
        (a, b, c), _ = chain(gateway)
        told = [gateway.explain(revision) for revision in (a, b, c)]
        assert [item.superseded_by for item in told] == [(b,), (c,), ()]
        assert [(item.content is None, item.content_hash is None, item.state) for item in told] == [
            (False, False, "superseded"), (True, True, "forgotten"), (False, False, "active"),
        ]  # fmt: skip
        found = gateway.lineage("vault")
        assert [node.label for node in found.nodes if node.id == b] == ["(forgotten)"]
        assert [(edge.source, edge.target) for edge in found.edges] == [(b, a), (c, b)]

    def test_the_past_does_not_tell_it_either(self, gateway: Gateway) -> None:
        """Given a forgotten text, when its past is asked for in any form, then its content is none."""
        (_, b, _), positions = chain(gateway)
        then = gateway.explain("vault", at=positions[1])
        assert (then.revision_id, then.state, then.content, then.content_hash) == (b, "active", None, None)

        history = gateway.history("vault", patch=True)
        between = list(gateway.diff_between(positions[0], positions[1]))
        answers = [then, history, gateway.history("vault"), between, gateway.lineage("vault"), gateway.diff(b, "vault")]
        assert SECRET not in str(answers)
        middle, last = history.items[1:]
        assert isinstance(middle, corrigenda.PatchedRevision) and isinstance(last, corrigenda.PatchedRevision)
        for item in (middle, last):
            assert item.patch is not None and item.patch["content"].diff is None
        assert "is no longer shown" in patches.history(history) and SECRET not in patches.history(history)

    def test_what_is_restored_is_shown_again(self, gateway: Gateway) -> None:
        """Given a forgotten text that was restored, then its past is told again."""
        (_, b, _), positions = chain(gateway)
        gateway.restore(b)
        assert gateway.explain("vault", at=positions[1]).content == SECRET


class TestContested:
    """Two revisions that contradict each other."""

    def test_a_contradiction_is_an_edge_while_it_lasts(self, gateway: Gateway) -> None:
        """Given two revisions contested, then an edge of its own kind joins them, until one of them is promoted."""
        first = gateway.remember("the shop opens at 9", memory_id="shop").revision_id or ""
        second = gateway.remember("the shop opens at 10", predecessor=first, hold=True).revision_id or ""
        contested = gateway.contest(first, second)
        found = gateway.lineage("shop")
        assert [{edge.source, edge.target} for edge in found.edges if edge.kind == "conflicts"] == [{first, second}]
        assert {node.state for node in found.nodes} == {"conflicted"}
        for draw in (graph.tree, graph.lanes):
            assert draw(found).count("conflicts with") == 2

        gateway.promote(second, reason="asked")
        assert not any(edge.kind == "conflicts" for edge in gateway.lineage("shop").edges)
        assert [gateway.explain("shop", at=contested.position + n).head for n in (-1, 0, 1)] == [first, None, second]
