"""The past of corrections: the chain in which they took each other's place, each as it stood, and what they touched."""

import pytest

from cli.views import corrections, graph, patches
from gateway.service import Gateway
from gateway.shapes.replies.corrections import PatchedCorrection
from gateway.shapes.replies.past import Change
from tests.house import refused
from tests.integration.conftest import Here
from tests.integration.test_contradiction import correct, learn

UNKNOWN = "cor_01JZ8Q0000000000000000000Z"


@pytest.fixture
def chain(gateway: Gateway) -> list[str]:
    """Return three corrections, each in place of the one before, the first about a memory, which invalidated one."""
    gateway.remember("THC", memory_id="code")
    learn(gateway)
    first = correct(gateway, memory="code").correction_id or ""
    second = gateway.supersede_correction(first, corrected_value="OTHC", reason="typo").correction_id or ""
    third = gateway.supersede_correction(second, corrected_value="XTHC").correction_id or ""
    return [first, second, third]


def test_a_history_is_the_whole_chain_whichever_is_named(gateway: Gateway, chain: list[str]) -> None:
    """AG-49: given corrections that took each other's place, when one is asked, all come, with what each changed."""
    histories = [gateway.correction_history(one, patch=True) for one in chain]
    for one, told in zip(chain, histories, strict=True):
        assert (told.correction_id, [item.correction_id for item in told.items]) == (one, chain)
        assert told.items == histories[0].items
    found, plain = histories[0], gateway.correction_history(chain[1])
    assert plain.items == gateway.list_corrections(states=["active", "superseded"])
    first, second, third = found.items
    assert isinstance(first, PatchedCorrection) and isinstance(second, PatchedCorrection)
    assert isinstance(third, PatchedCorrection)
    assert (first.compared_with, first.patch) == (None, None)
    assert (second.compared_with, second.patch) == (
        chain[0], {"corrected_value": Change(before="DTHC", after="OTHC")},
    )  # fmt: skip
    assert (third.compared_with, third.patch) == (
        chain[1], {"corrected_value": Change(before="OTHC", after="XTHC")},
    )  # fmt: skip
    text = patches.corrections(found)
    assert [text.index(one) for one in chain] == sorted(text.index(one) for one in chain)
    assert corrections.chain(plain).count("superseded by") == 2


def test_a_correction_is_told_as_it_stood(gateway: Gateway, chain: list[str]) -> None:
    """Given a superseded correction, when it is explained at a position before, it stands; before all, it is not."""
    now = gateway.explain_correction(chain[0])
    assert now == gateway.show_correction(chain[0])
    assert (now.state, now.superseded_by, len(now.audit)) == ("superseded", chain[1], 2)
    then = gateway.explain_correction(chain[0], at=now.audit[-1].seq - 1)
    assert (then.state, then.superseded_by, len(then.audit)) == ("active", None, 1)
    assert then.at_position is not None
    assert f"As it stood at position {then.at_position}." in corrections.correction(then)
    with refused("CORRECTION_NOT_FOUND"):
        gateway.explain_correction(chain[0], at=now.position - 1)


def test_a_lineage_of_a_correction_shows_what_it_touched(gateway: Gateway, chain: list[str]) -> None:
    """Given a chain, when its lineage is asked, then each correction, what it is about, what it invalidated."""
    old = gateway.history("code").items[0].revision_id
    (learning,) = [item.revision_id for item in gateway.list_memories(states=["retired"]).items]
    found = gateway.lineage(chain[1])
    assert found.root == chain[1]
    assert [node.id for node in found.nodes] == [*reversed(chain), old, learning]
    assert {(edge.source, edge.target, edge.kind) for edge in found.edges} == {
        (chain[1], chain[0], "supersedes"), (chain[2], chain[1], "supersedes"),
        *((one, old, "corrects") for one in chain), (chain[0], learning, "corrects"),
    }  # fmt: skip
    assert [node.id for node in gateway.lineage(chain[1], up=True).nodes][:2] == [chain[2], chain[1]]
    assert [node.id for node in gateway.lineage(chain[2], down=True, depth=1).nodes] == [chain[2], chain[1], old]
    for draw in (graph.tree, graph.lanes, graph.dot):
        assert all(node.id in draw(found) for node in found.nodes)


def test_a_chain_of_somebody_else_is_not_found(open_here: Here, chain: list[str]) -> None:
    """Given corrections of another agent and user, when a third asks for their past, then CORRECTION_NOT_FOUND."""
    other = open_here(actor="agent:third")
    for identifier in (chain[0], UNKNOWN):
        for ask in (other.explain_correction, other.correction_history, other.lineage):
            with refused("CORRECTION_NOT_FOUND"):
                ask(identifier)
    drawn = open_here(actor="agent:ap").lineage(chain[0])
    assert {node.type for node in drawn.nodes} == {"correction", "revision"}
