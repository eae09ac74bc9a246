"""A contradicted learning is retired once, wherever a process that looks for it is killed."""

from pathlib import Path

from gateway.bootstrap import open_gateway
from gateway.service import Gateway
from tests.faults.children import Counting
from tests.faults.ledger_hands import Document, kill
from tests.house import assert_house_in_order

LEARNED = "chargeCode THC DTHC vendor x labels it so"


def begun(where: Document) -> str:
    """Store a learning and the correction that contradicts it where nothing can be compared; return the learning."""
    with open_gateway(**{**where, "embedder": "none"}) as gateway:
        learning = gateway.remember(LEARNED, kind="learning", origin="agent", user="uma")
        correction = gateway.record_correction(
            agent="ap", user="uma", field="chargeCode", original_value="THC", corrected_value="DTHC",
            reason="vendor x labels it so",
        )  # fmt: skip
    assert correction.warnings[0].startswith("contradiction: deferred")
    return learning.revision_id or ""


def story(gateway: Gateway, learning: str) -> list[str]:
    """Return what happened to a learning after it was remembered."""
    return [entry.type for entry in gateway.explain(learning).audit][1:]


def test_a_killed_check_is_made_by_the_next_process(where: Document, counting: Counting) -> None:
    """AG-33, G9: killed when the vectors are stored and the check is not made, and when it is made and not noted."""
    learning = begun(where)
    kill("recover", where, "before the late check")
    with open_gateway(**{**where, "embedder": "none"}) as blind:
        assert story(blind, learning) == []
    kill("recover", where, "after the late check")
    with open_gateway(**where) as gateway:
        assert story(gateway, learning) == ["learning.invalidated.v1"]
        assert gateway.search("chargeCode THC", user="uma").hits == ()
        assert gateway.restore(learning).outcome == "stored"
        assert [hit.revision_id for hit in gateway.search("chargeCode THC", user="uma").hits] == [learning]
    assert_house_in_order(where["database_url"], Path(where["home"]), embedder=counting)
