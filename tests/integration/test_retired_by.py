"""A learning that a correction retired says by which, wherever it is shown, until it is restored."""

from cli.views import memories
from gateway.service import Gateway
from gateway.shapes.replies.memories import ListedRevision
from tests.house import WORDS
from tests.integration.test_contradiction import LEARNED, correct, learn, nearness


def test_an_invalidated_learning_names_the_correction(gateway: Gateway) -> None:
    """AG-33…36: given a learning that a correction contradicts, when it is shown, then with `retired_by`, as told."""
    learning, other = learn(gateway), learn(gateway, "invoices are paid within thirty days")
    gateway.retire(other)
    correction = correct(gateway).correction_id
    story, near = gateway.explain(learning), f"{nearness(WORDS, LEARNED):.6f}"
    assert gateway.show(learning).retired_by == story.retired_by == correction
    assert gateway.history(learning).items[0].retired_by == correction
    assert [(entry.retired_by, entry.similarity) for entry in story.audit] == [(None, None), (correction, near)]
    (listed,) = gateway.list_memories(memory=learning, states=["retired"]).items
    assert isinstance(listed, ListedRevision)
    assert [(act.retired_by, act.similarity) for act in listed.audit] == [(None, None), (correction, near)]
    assert gateway.show(other).retired_by is None
    words = f"retired by correction {correction}, similarity {float(near):.2f}"
    assert words in memories.explanation(story) and words in memories.listed(listed)
    assert f"correction {correction}" in memories.revision(gateway.show(learning))


def test_a_restored_learning_is_retired_by_nothing(gateway: Gateway) -> None:
    """AG-33…36: given an invalidated learning, when it is restored, `retired_by` is undone; at that time it was not."""
    learning, correction = learn(gateway), correct(gateway).correction_id
    position = gateway.history(learning).position
    gateway.restore(learning)
    assert gateway.show(learning).retired_by is None
    assert gateway.explain(learning, at=position).retired_by == correction
    gateway.retire(learning)
    assert gateway.show(learning).retired_by is None
    assert [entry.retired_by for entry in gateway.explain(learning).audit] == [None, correction, None, None]
