"""What one call returned goes into the next: the receipts of acts on one record have its id, typed as text."""

import corrigenda
from tests.integration.conftest import Here


def test_acts_on_a_revision_answer_with_its_ids(open_here: Here) -> None:
    """Given each act on a revision, when it is made, repeated, tried or changes nothing, then its ids are there."""
    gateway = open_here()
    first = gateway.remember("a", memory_id="m")
    held = gateway.remember("b", memory_id="m", predecessor="m", hold=True)
    acts = [
        gateway.remember("never stored", dry_run=True),
        gateway.contest(first.revision_id, held.revision_id),
        gateway.promote(held.revision_id),
        gateway.correct("m", "c", idempotency_key="k"),
        gateway.correct("m", "c", idempotency_key="k"),
        gateway.supersede(["m"], ["d", "e"]),
        gateway.patch("m", tags=["t"]),
        gateway.patch("m", tags=["t"]),
        gateway.retire("m"),
        gateway.restore("m"),
        gateway.forget("m"),
        gateway.restore("m"),
        gateway.revoke("m", reason="r"),
    ]
    waiting = gateway.remember("f", memory_id="n", hold=True)
    acts += [gateway.publish(waiting.revision_id)]
    turned_down = gateway.remember("g", memory_id="o", hold=True)
    acts += [gateway.reject_revision(turned_down.revision_id)]
    produced = open_here(actor="agent:bot").remember("h")
    acts += [gateway.admit(produced.revision_id, reason="r")]

    for act in acts:
        assert isinstance(act, corrigenda.RevisionReceipt)
        assert act.memory_id and act.revision_id.startswith("rev_")


def test_acts_on_a_correction_answer_with_its_id(open_here: Here) -> None:
    """Given each act on a correction, when it is made, then its receipt has its id, which the next act takes."""
    gateway = open_here()
    reported = open_here(actor="agent:bot").record_correction(agent="bot", original_value="a", corrected_value="b")
    confirmed = gateway.confirm_correction(reported.correction_id)
    replaced = gateway.supersede_correction(confirmed.correction_id, corrected_value="c")
    ended = gateway.revoke_correction(replaced.correction_id, reason="r")
    for act in (reported, confirmed, replaced, ended):
        assert isinstance(act, corrigenda.CorrectionReceipt)
        assert act.correction_id.startswith("cor_")
