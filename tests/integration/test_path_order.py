"""The path of one correction, in order: what each act writes, into which stream, and what it leaves standing."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.service import Gateway
from tests.house import last_position, refused, types, written
from tests.integration.conftest import Here


def test_the_first_memory_is_named_and_remembered_in_one_append(gateway: Gateway, ledger_url: str) -> None:
    """RC-01, XC-01: given an empty ledger, when a text is remembered, then names and memory are one append."""
    receipt = gateway.remember("the cellar key hangs by the door", tags=["keys"])

    opening, actor, project, memory = written(ledger_url)
    assert types([opening, actor, project, memory]) == [
        "ledger.opened", "name.assigned", "name.assigned", "memory.remembered",
    ]  # fmt: skip
    assert [event.facts["kind"] for event in (actor, project)] == ["actor", "project"]
    assert {event.op for event in (actor, project, memory)} == {receipt.trace_id}
    assert [(event.op_index, event.op_count) for event in (actor, project, memory)] == [(0, 3), (1, 3), (2, 3)]
    assert {event.actor for event in (actor, project, memory)} == {actor.facts["id"]}
    assert (memory.stream, memory.stream_seq) == (receipt.memory_id, 0)
    assert memory.facts["standing"] == {
        "content_seq": 3, "floor": "verified", "head": receipt.revision_id, "meta_seq": 3, "trust": "unverified",
    }  # fmt: skip
    assert (receipt.position, receipt.outcome, receipt.replayed) == (3, "stored", False)
    assert [event.seq for event in receipt.events] == [1, 2, 3]


def test_no_word_of_a_caller_is_in_an_envelope(gateway: Gateway, ledger_url: str) -> None:
    """XC-04: given texts, tags, names and reasons, when they are stored, then only payloads hold them."""
    first = gateway.remember("zebra crossing", tags=["quagga"], memory_id="okapi", agent="gnu", reason="eland")
    gateway.revoke(first.revision_id or "", reason="impala")

    facts = str([(event.stream, event.actor, event.facts) for event in written(ledger_url)])
    for word in ("zebra", "quagga", "okapi", "gnu", "eland", "impala", "atlas", "ana"):
        assert word not in facts.lower(), word


def test_a_correction_moves_both_revisions_in_one_event(gateway: Gateway, ledger_url: str) -> None:
    """RC-01, LM-42: given a live A, when it is corrected, then one event demotes A, bears B and makes B the head."""
    first = gateway.remember("the user lives in Berlin")
    before = last_position(ledger_url)

    second = gateway.correct(first.revision_id or "", "the user lives in Hamburg", reason="moved in May")

    (event,) = written(ledger_url, above=before)
    assert (event.type, event.stream, event.stream_seq) == ("revision.corrected.v1", first.memory_id, 1)
    assert event.facts["edges"] == [["supersedes", second.revision_id, first.revision_id, None]]
    assert [(move["revision"], move["after"]) for move in event.facts["moves"]] == [
        (first.revision_id, ["superseded", "unverified", "verified"]),
        (second.revision_id, ["active", "unverified", "verified"]),
    ]
    assert event.facts["standing"]["head"] == second.revision_id
    assert second.superseded == (first.revision_id,)
    assert second.memory_id == first.memory_id


def test_the_whole_path_writes_one_event_an_act(gateway: Gateway, ledger_url: str) -> None:
    """XC-01, LM-42: given the acts of the path, when they follow each other, then each has exactly its event."""
    first = gateway.remember("the pump runs at 50 Hz", memory_id="pump")
    second = gateway.correct("pump", "the pump runs at 60 Hz")
    before = last_position(ledger_url)

    gateway.revoke("pump", reason="nobody measured")
    headless = gateway.explain("pump")
    gateway.restore("pump", reason="measured by Bo")
    gateway.retire("pump")
    gateway.restore("pump")
    gateway.retire("pump")
    third = gateway.remember("the pump is gone", memory_id="pump")

    events = written(ledger_url, above=before)
    assert types(events) == [
        "revision.revoked", "memory.restored", "memory.retired", "memory.restored", "memory.retired",
        "memory.remembered",
    ]  # fmt: skip
    heads = [event.facts["standing"]["head"] for event in events]
    assert heads == [None, second.revision_id, None, second.revision_id, None, third.revision_id]
    assert len({event.stream for event in events}) == 1
    assert [event.facts["undoes"] for event in events if "undoes" in event.facts] == [events[0].seq, events[2].seq]
    assert (headless.head, headless.revision_id, headless.trust) == (None, second.revision_id, "revoked")
    assert [item.version for item in gateway.history(first.revision_id or "").items] == [1, 2, 3]
    assert gateway.show("pump").supersedes == ()


def test_a_dry_run_stores_nothing_and_promises_nothing(gateway: Gateway, ledger_url: str) -> None:
    """XC-01: given a dry run of each act, when it is answered, then nothing is stored and the names stay unknown."""
    kept = gateway.remember("the lift stops at five floors")
    gone = gateway.remember("the lift has no mirror")
    gateway.retire(gone.revision_id or "")
    before = last_position(ledger_url)

    tried = [
        gateway.remember("another", memory_id="lift", agent="otis", dry_run=True),
        gateway.correct(kept.revision_id or "", "six floors", dry_run=True),
        gateway.retire(kept.revision_id or "", dry_run=True),
        gateway.forget(kept.revision_id or "", dry_run=True),
        gateway.restore(gone.revision_id or "", dry_run=True),
        gateway.link(kept.memory_id or "", gone.memory_id or "", dry_run=True),
    ]

    assert last_position(ledger_url) == before
    assert [receipt.outcome for receipt in tried] == ["unchanged"] * 6
    assert all(receipt.warnings and receipt.warnings[0].startswith("dry_run") for receipt in tried)
    assert gateway.show(kept.revision_id or "").state == "active"
    assert gateway.remember("now truly", memory_id="lift").events[0].type == "name.assigned.v1"


def test_a_dry_run_refuses_what_the_act_would_refuse(gateway: Gateway) -> None:
    """RC-09: given a superseded revision, when its correction is tried dry, then the refusal is the same."""
    first = gateway.remember("a")
    gateway.correct(first.revision_id or "", "b")

    with refused("MEMORY_ALREADY_SUPERSEDED"):
        gateway.correct(first.revision_id or "", "c", dry_run=True)


def test_a_successor_inherits_what_the_text_does_not_change(gateway: Gateway) -> None:
    """RC-04: given a revision with everything set, when it is corrected, then B inherits what its text leaves."""
    first = gateway.remember(
        "the boiler holds 80 litres", kind="procedure", tags=["boiler", "cellar"], confidence="0.9",
        valid_from="2026-01-01T00:00:00Z", valid_to="2027-01-01T00:00:00Z", review_by="2026-06-01T00:00:00Z",
        sources=["plate"], agent="scout", user="bo", session="s1", task_family="heating", visibility="agent",
    )  # fmt: skip
    second = gateway.correct(first.revision_id or "", "the boiler holds 120 litres")
    old, new = gateway.show(first.revision_id or ""), gateway.show(second.revision_id or "")

    same = ("kind", "tags", "scope", "visibility", "review_by", "memory_id", "subjects")
    assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
    assert new.provenance["sources"] == ["plate"]
    assert (new.confidence, new.valid_from, new.valid_to, new.trust) == (None, None, None, "unverified")
    assert (old.confidence, new.version, old.version) == ("0.9", 2, 1)


def test_correcting_what_is_no_head_names_successor_and_head(gateway: Gateway, ledger_url: str) -> None:
    """RC-07, RC-09: given A → B → C, when A is corrected, then the refusal names B and C, and nothing is written."""
    a = gateway.remember("a")
    b = gateway.correct(a.revision_id or "", "b")
    c = gateway.correct(b.revision_id or "", "c")
    before = last_position(ledger_url)

    with refused("MEMORY_ALREADY_SUPERSEDED") as caught:
        gateway.correct(a.revision_id or "", "d")

    expected = {"revision_id": a.revision_id, "superseded_by": [b.revision_id], "head": c.revision_id}
    assert caught.details == expected
    assert not caught.error.retriable
    assert last_position(ledger_url) == before


@pytest.mark.parametrize(("act", "code"), [("retire", "MEMORY_DELETED"), ("revoke", "MEMORY_REVOKED")])
def test_correcting_what_was_withdrawn_says_how(gateway: Gateway, act: str, code: str) -> None:
    """RC-11: given a retired or a revoked A, when it is corrected, then MEMORY_DELETED or MEMORY_REVOKED."""
    first = gateway.remember("a")
    getattr(gateway, act)(first.revision_id, reason="no longer")

    with refused(code):
        gateway.correct(first.revision_id or "", "b")
    with refused("INVALID_TRANSITION"):
        gateway.correct(first.memory_id or "", "b")


def test_the_same_text_is_no_correction(gateway: Gateway, ledger_url: str) -> None:
    """RC-25: given A, when it is corrected to its own text, then NO_CHANGE and no entry."""
    first = gateway.remember("a")
    before = last_position(ledger_url)

    with refused("NO_CHANGE"):
        gateway.correct(first.revision_id or "", "a")

    assert last_position(ledger_url) == before


def test_if_revision_guards_what_was_read(gateway: Gateway) -> None:
    """RM-75: given a memory that moved since it was read, when it is corrected with its old version, STALE_REVISION."""
    first = gateway.remember("a")
    read = gateway.show(first.memory_id or "").stream_version
    gateway.correct(first.memory_id or "", "b", if_revision=read)

    with refused("STALE_REVISION"):
        gateway.correct(first.memory_id or "", "c", if_revision=read)


def test_two_clocks_are_kept_apart(open_here: Here) -> None:
    """RC-34: given A and B without validity, then A holds until B begins, and is superseded when that was said."""
    moments = iter(datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(1_000))
    gateway: Gateway = open_here(clock=lambda: next(moments))
    first = gateway.remember("the office is in Bonn")
    gateway.correct(first.revision_id or "", "the office is in Kiel")

    old, new = gateway.history(first.memory_id or "").items
    assert old.valid_to == new.recorded_at == old.superseded_at
    assert new.valid_to is None


def test_an_end_is_never_before_its_own_beginning(gateway: Gateway) -> None:
    """RC-34: given A that begins in the far future, when B replaces it now, then A's end is its own beginning."""
    first = gateway.remember("the fair opens in hall 4", valid_from="2999-01-01T00:00:00Z")
    gateway.correct(first.revision_id or "", "the fair opens in hall 5")

    old = gateway.show(first.revision_id or "")
    assert old.valid_from == old.valid_to
    assert old.valid_to == "2999-01-01T00:00:00.000000Z"
    assert (old.superseded_at or "") < old.valid_to


def test_an_explicit_end_is_kept(gateway: Gateway) -> None:
    """RC-34: given A with an end of its own, when B replaces it, then A's end stays as it was given."""
    first = gateway.remember("the permit holds", valid_to="2030-06-01T02:00:00+02:00")
    gateway.correct(first.revision_id or "", "the permit was withdrawn")

    assert gateway.show(first.revision_id or "").valid_to == "2030-06-01T00:00:00.000000Z"
