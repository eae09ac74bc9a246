"""Corrections and evidence whose payloads were erased: everybody says so, and goes on without them."""

import json
from pathlib import Path

import msgspec
import pytest

from gateway.service import Gateway
from gateway.shapes.replies.writes import Receipt
from tests import erasing
from tests.house import refused
from tests.integration.conftest import Here

WRONG, RIGHT, SAID = "the harbour closes at nine", "the harbour closes at ten", "b3:" + "0" * 64


@pytest.fixture
def erased(open_here: Here) -> tuple[Gateway, Receipt]:
    """Return a gateway on two corrections of an agent, of which the first was erased."""
    gateway = open_here()
    gone = gateway.record_correction(
        agent="x", original_value=WRONG, corrected_value=RIGHT, original_input="when?", entity_key="harbour"
    )
    gateway.record_correction(agent="x", original_value="gulls swim", corrected_value="gulls fly")
    assert len(gateway.search_corrections(WRONG, agent="x").hits) == 2
    erasing.erase_payloads(gateway, [gone.events[-1].seq], open_here.ledger_url, open_here.home)
    open_here.broken = True  # no act erases a correction yet, so nothing takes it out of the index
    return gateway, gone


def test_readers_say_that_a_correction_was_erased(open_here: Here, erased: tuple[Gateway, Receipt]) -> None:
    """Show, explain, history, lineage, diff, list and pages tell of it without a word of what it said."""
    correction = erased[1].correction_id or ""
    for gateway in (erased[0], open_here()):
        shown = gateway.show_correction(correction)
        assert (shown.erased, shown.original_value, shown.corrected_value, shown.state) == (True, None, None, "active")
        assert shown.entity_key is None and shown.created_at
        assert gateway.explain_correction(correction, at=erased[1].position).erased
        assert [item.erased for item in gateway.correction_history(correction, patch=True).items] == [True]
        assert [item.erased for item in gateway.list_corrections()] == [True, False]
        assert [item.erased for item in gateway.page_corrections(limit=5).items] == [True, False]
        assert [node.label for node in gateway.lineage(correction).nodes] == ["(erased)"]
        (told, *_) = [one for one in gateway.diff_between(0, erased[1].position)]
        assert "harbour" not in json.dumps(msgspec.to_builtins(told))
        assert (gateway.correction_stats().total, gateway.correction_stats().by_entity_key) == (2, {})
        assert gateway.list_corrections(entity_key="harbour") == ()


def test_an_erased_correction_is_neither_found_nor_rendered_nor_a_case(
    open_here: Here, erased: tuple[Gateway, Receipt]
) -> None:
    """Searches, prompts and regression cases go on without it, in an index that held it, and in one made anew."""
    for rebuilt in (False, True):
        gateway = open_here()
        if rebuilt:
            gateway.rebuild_index()
        assert [hit.corrected_value for hit in gateway.search_corrections(WRONG, agent="x").hits] == ["gulls fly"]
        rendered = gateway.render_corrections(WRONG, agent="x")
        assert rendered.failed is None and "harbour" not in rendered.text and "gulls" in rendered.text
        assert gateway.eval_cases() == ()
        gateway.close()


def test_an_index_is_rid_of_an_erased_correction(open_here: Here, erased: tuple[Gateway, Receipt]) -> None:
    """What an index still holds of it is called stale, and mended."""
    gateway = erased[0]
    assert gateway.verify_index().counts["stale"] == 1
    assert gateway.recover().repaired == 1
    assert gateway.verify_index().ok


def test_nobody_acts_on_what_was_erased_but_to_revoke_it(erased: tuple[Gateway, Receipt]) -> None:
    """It is neither confirmed nor superseded; it can be revoked, and the learnings go on being checked."""
    gateway, correction = erased[0], erased[1].correction_id or ""
    with refused("INVALID_TRANSITION") as refusal:
        gateway.supersede_correction(correction, corrected_value="eleven")
    assert refusal.details["state"] == "erased"
    gateway.remember(RIGHT, kind="learning", user="bo")
    assert gateway.search(RIGHT, user="bo").hits
    gateway.revoke_correction(correction, reason="it was erased")
    assert gateway.show_correction(correction).state == "revoked"


def test_erased_evidence_is_told_as_that(open_here: Here) -> None:
    """Its hash, size and type stay; its name, uri and bytes are gone, and to add it again changes nothing."""
    gateway = open_here(embedder="none")
    kept = gateway.add_evidence(b"her number is 4711", name="phone.txt", media_type="text/plain")
    other = gateway.add_evidence(hash=SAID, uri="s3://bucket/phone")
    gone = [one.added for one in (kept, other) if one.added is not None]
    erasing.erase_payloads(gateway, gone, open_here.ledger_url, open_here.home)
    for reader in (gateway, open_here(embedder="none")):
        shown = reader.show_evidence(kept.hash)
        assert (shown.erased, shown.stored, shown.name, shown.size, shown.media_type) == (
            True,
            False,
            None,
            18,
            "text/plain",
        )
        told = reader.show_evidence(SAID)
        assert (told.erased, told.uri) == (True, None)
        for hash_ in (kept.hash, SAID):
            with refused("EVIDENCE_NOT_FOUND"):
                reader.read_evidence(hash_)
    assert gateway.add_evidence(b"her number is 4711", name="phone.txt").erased
    assert not gateway.add_evidence(b"another").erased


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_exports_say_that_a_correction_was_erased(erased: tuple[Gateway, Receipt], tmp_path: Path, form: str) -> None:
    """An export of corrections has its event, and says `erased` in place of what it said."""
    gateway, gone = erased
    path = tmp_path / f"told.{form}"
    gateway.export_corrections(path, form=form)
    told = path.read_text()
    assert (gone.correction_id or "?") in told and "erased" in told and "harbour" not in told
