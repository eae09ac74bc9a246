"""Patches: the metadata of a revision is mended, every reader sees it, and what is equal stores nothing."""

from typing import Any

import pytest

from gateway.service import Gateway
from tests.house import last_position, refused, rows, tamper, types, written
from tests.integration.conftest import Here


def test_a_patch_is_seen_by_every_reader(gateway: Gateway, ledger_url: str) -> None:
    """RC-28: given a head, when its tags are patched, show, history, explain and search have them; its id stays."""
    first = gateway.remember("the pump", memory_id="pump", tags=["old"], confidence="0.5", sources=["manual"])
    effects = rows(ledger_url, "SELECT count(*) FROM corrigenda.outbox")
    before = last_position(ledger_url)

    done = gateway.patch("pump", tags=["new"], valid_from="2026-01-01T00:00:00+01:00", reason="typo")

    (event,) = written(ledger_url, above=before)
    assert types([event]) == ["metadata.patched"]
    assert (done.memory_id, done.revision_id, done.superseded) == ("pump", first.revision_id, None)
    assert rows(ledger_url, "SELECT count(*) FROM corrigenda.outbox") == effects, "nothing is embedded again"
    (hit,) = gateway.search("pump", tags=["new"]).hits
    assert gateway.search("pump", tags=["old"]).empty_reason == "filtered"
    for seen in (hit, gateway.show("pump"), gateway.explain("pump"), *gateway.history("pump").items):
        assert (seen.tags, seen.confidence, seen.provenance["sources"]) == (("new",), "0.5", ["manual"])
        assert (seen.valid_from, seen.content, seen.version) == ("2025-12-31T23:00:00.000000Z", "the pump", 1)
        assert seen.revision_id == first.revision_id
    told = gateway.explain("pump").audit[-1]
    assert (told.reason, told.moves) == ("typo", ())
    assert told.patch == {
        "revision": first.revision_id,
        "before": {"tags": ("old",), "valid_from": None},
        "after": {"tags": ("new",), "valid_from": "2025-12-31T23:00:00.000000Z"},
    }


def test_a_patch_takes_a_value_away(gateway: Gateway) -> None:
    """Given confidence and tags, when they are patched to None and to nothing, they are gone; the rest stays."""
    gateway.remember("the pump", memory_id="pump", tags=["t"], confidence="0.5", review_by="2030-01-01T00:00:00Z")
    gateway.patch("pump", tags=[], confidence=None)
    seen = gateway.show("pump")
    assert (seen.tags, seen.confidence, seen.review_by) == ((), None, "2030-01-01T00:00:00.000000Z")


def test_patches_follow_each_other_and_are_inherited(gateway: Gateway) -> None:
    """RC-04: given a patched head, when it is patched and corrected, then the successor has its tags and sources."""
    gateway.remember("the pump", memory_id="pump")
    gateway.patch("pump", tags=["one"])
    gateway.patch("pump", sources=["manual"])
    gateway.correct("pump", "the blue pump")
    seen = gateway.show("pump")
    assert (seen.tags, seen.provenance["sources"]) == (("one",), ["manual"])


def test_a_withdrawn_head_comes_back_with_its_metadata(gateway: Gateway) -> None:
    """Given a patched head that was retired, when it is restored, then a search by its new tag finds it."""
    gateway.remember("the pump", memory_id="pump")
    gateway.patch("pump", tags=["one"])
    gateway.retire("pump")
    gateway.restore("pump")
    assert [hit.tags for hit in gateway.search("pump", tags=["one"]).hits] == [("one",)]


def test_equal_metadata_is_unchanged(gateway: Gateway, ledger_url: str) -> None:
    """RC-25: given metadata, when it is patched to the same, the outcome is `unchanged`, and the key is free again."""
    first = gateway.remember("the pump", memory_id="pump", tags=["t"])
    before = last_position(ledger_url)

    done = gateway.patch("pump", tags=["t"], confidence=None, idempotency_key="k")

    assert (done.outcome, done.events, done.position, done.replayed) == ("unchanged", (), before, False)
    assert (done.memory_id, done.revision_id) == ("pump", first.revision_id)
    assert gateway.patch("pump", tags=["t"], idempotency_key="k").replayed is False
    assert last_position(ledger_url) == before
    assert gateway.patch("pump", tags=["u"], idempotency_key="k").outcome == "stored"


def test_an_unchanged_patch_names_nobody(open_here: Here, ledger_url: str) -> None:
    """RM-11: given an actor who never acted, when nothing is to be done, then not even the name is assigned."""
    open_here().remember("the pump", memory_id="pump", tags=["t"])
    before = last_position(ledger_url)

    assert open_here(actor="human:bea").patch("pump", tags=["t"]).outcome == "unchanged"
    dry = open_here(actor="human:bea").patch("pump", tags=["t"], dry_run=True)

    assert (dry.outcome, dry.events, last_position(ledger_url)) == ("unchanged", (), before)


def test_unchanged_is_said_of_the_present(open_here: Here) -> None:
    """Given tags that another process changed, when they are patched to what they were here, then it is stored."""
    here, there = open_here(), open_here()
    here.remember("the pump", memory_id="pump", tags=["t"])
    there.patch("pump", tags=["u"])

    assert here.patch("pump", tags=["t"]).outcome == "stored"
    assert there.show("pump").tags == ("t",)


def test_the_same_patch_with_one_key_has_one_effect(gateway: Gateway) -> None:
    """RC-41: given a patch with a key, when it is sent again, then its receipt comes back, replayed."""
    gateway.remember("the pump", memory_id="pump")
    first = gateway.patch("pump", tags=["t"], idempotency_key="k")
    again = gateway.patch("pump", tags=["t"], idempotency_key="k")
    assert (again.replayed, again.position, again.revision_id) == (True, first.position, first.revision_id)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"content": "another"},
        {"tags": ["t"], "content": "another"},
        {"trust": "verified"},
        {"state": "active"},
        {"confidence": "2"},
        {"confidence": "NaN"},
        {"confidence": "-1"},
        {"confidence": "0.1e1"},
        {"confidence": 0.5},
        {"valid_from": "2026-01-01T00:00:00"},
        {"valid_from": "0000-01-01T00:00:00Z"},
        {"valid_from": "10000-01-01T00:00:00Z"},
        {"review_by": "2026-12-31T23:59:60Z"},
        {"valid_to": "2025-01-01T00:00:00Z"},
        {"tags": ["t"] * 100_000},
        {"tags": "t"},
        {"tags": None},
        {"sources": [" "]},
        {"tags": ["t"], "reason": "x" * 4_097},
    ],
)
def test_a_patch_that_cannot_be(
    gateway: Gateway,
    ledger_url: str,
    fields: dict[str, Any],  # Any: what nobody should give
) -> None:
    """RC-28, XC-10: content, authority, nothing at all and what is no value of a field are VALIDATION_FAILED."""
    gateway.remember("the pump", memory_id="pump", valid_from="2026-01-01T00:00:00Z")
    before = last_position(ledger_url)
    with refused("VALIDATION_FAILED"):
        gateway.patch("pump", **fields)
    assert last_position(ledger_url) == before


def test_a_patch_is_refused_as_a_correction_is(open_here: Here) -> None:
    """RC-29: given revisions that were superseded, retired or revoked, or a reader's wish, each is refused its way."""
    here = open_here()
    old = here.remember("one", memory_id="m").revision_id or ""
    here.correct("m", "two")
    with refused("MEMORY_ALREADY_SUPERSEDED"):
        here.patch(old, tags=["t"])
    with refused("STALE_REVISION"):
        here.patch("m", tags=["t"], if_revision=1)
    with refused("FORBIDDEN_ACTOR"):
        open_here(actor="agent:scout").patch("m", tags=["t"])
    new = here.show("m").revision_id
    here.retire("m")
    with refused("MEMORY_DELETED"):
        here.patch(new, tags=["t"])
    with refused("INVALID_TRANSITION"):
        here.patch("m", tags=["t"])


def test_a_broken_patch_is_not_served(open_here: Here, ledger_url: str) -> None:
    """XC-08: given an altered patch, a search drops its memory and says where the chain is broken; a read refuses."""
    here = open_here()
    here.remember("the pump", memory_id="pump")
    here.remember("the valve", memory_id="valve")
    position = here.patch("pump", tags=["t"]).position
    here.link("pump", "valve")
    assert len(here.search("pump valve").hits) == 2
    open_here.broken = True
    tamper(ledger_url, ("UPDATE corrigenda.payload SET body = '{}' WHERE seq = %s", [position]))

    found = here.search("pump valve", k=5)

    assert [hit.memory_id for hit in found.hits] == ["valve"]
    assert found.warnings == (f"INTEGRITY_BROKEN@{position}",)
    with refused("INTEGRITY_BROKEN"):
        here.show("pump")
