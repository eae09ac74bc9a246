"""What goes when it is old, and what stays; and what an extraction has to bring with it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.service import Gateway
from tests.house import last_position, refused, types, written
from tests.integration.conftest import Here
from tests.integration.planting import invalidate

START = datetime(2026, 1, 1, tzinfo=UTC)
SAID: dict[str, Any] = {"quote": "tea, not coffee", "conversation": "Ana said: I drink TEA,\n  not coffee, at work."}
LEARNED: dict[str, Any] = {"kind": "learning", "origin": "llm_extracted", "user": "ana", **SAID}


class Days:
    """A clock that stands, until somebody lets days pass."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        """Return the moment at which it stands."""
        return self.now

    def move_on(self, days: int) -> None:
        """Let days pass."""
        self.now += timedelta(days=days)


@pytest.fixture
def days() -> Days:
    """Return a clock of the test's own."""
    return Days()


@pytest.fixture
def aged(open_here: Here, days: Days) -> Gateway:
    """Return a gateway on learnings and others, all of them 91 days old but one."""
    gateway = open_here(clock=days, permissions=["read", "write", "correct", "admit", "admin"])
    bo = open_here(clock=days, actor="human:bo")
    gateway.remember("extracted", memory_id="extracted", **LEARNED)
    gateway.remember("of bo", memory_id="of-bo", **{**LEARNED, "user": "bo"})
    open_here(clock=days, actor="agent:scout").remember("agent's", memory_id="agents", kind="learning", user="ana")
    gateway.remember("imported", memory_id="imported", kind="learning", origin="import", user="ana")
    gateway.remember("a person's", memory_id="persons", kind="learning", user="ana")
    gateway.remember("vouched for", memory_id="vouched", **LEARNED)
    bo.admit("vouched", reason="asked her")
    gateway.remember("a fact", memory_id="fact", origin="llm_extracted")
    gateway.remember("retired by a person", memory_id="retired", **LEARNED)
    gateway.retire("retired")
    gateway.remember("contradicted", memory_id="contradicted", sources=["chat"], **LEARNED)
    invalidate(gateway, "contradicted")
    days.move_on(91)
    gateway.remember("young", memory_id="young", **LEARNED)
    return gateway


def states(gateway: Gateway) -> dict[str, str]:
    """Return the state of each memory of the fixture that is not active any more."""
    names = (
        "extracted",
        "of-bo",
        "agents",
        "imported",
        "persons",
        "vouched",
        "fact",
        "retired",
        "contradicted",
        "young",
    )
    found = {name: gateway.show(name).state for name in names}
    return {name: state for name, state in found.items() if state != "active"}


def test_old_learnings_of_machines_go(aged: Gateway, ledger_url: str) -> None:
    """AG-47: given old learnings, those that machines made are retired, invalidated ones forgotten, others left."""
    assert states(aged) == {"retired": "retired", "contradicted": "retired"}
    before = last_position(ledger_url)

    done = aged.prune("90d", reason="spring")

    assert states(aged) == {
        "extracted": "retired", "of-bo": "retired", "agents": "retired", "retired": "retired",
        "contradicted": "forgotten",
    }  # fmt: skip
    told = written(ledger_url, above=before)
    assert types(told) == ["memory.retired"] * 3 + ["memory.forgotten", "tombstone.set"]
    assert {event.facts["cause"] for event in told[:4]} == {"prune"}
    assert {(aged.show_event(event.seq).payload or {})["reason"] for event in told[:4]} == {"spring"}
    assert list(done.retired) == [aged.show(name).revision_id for name in ("extracted", "of-bo", "agents")]
    assert list(done.forgotten) == [aged.show("contradicted").revision_id]

    again = aged.prune("90d")
    assert (again.retired, again.forgotten) == ((), ())
    assert last_position(ledger_url) == before + 5


def test_untagged_learnings_go_only_if_that_is_asked_for(aged: Gateway) -> None:
    """AG-47: given an imported learning, of which is not known who made it, it goes with `include_untagged` alone."""
    aged.prune("90d", include_untagged=True)

    assert aged.show("imported").state == "retired"
    assert aged.show("persons").state == aged.show("vouched").state == "active"


def test_a_pruning_for_one_user_leaves_the_others(aged: Gateway) -> None:
    """AG-47: given learnings about two users, when one's are pruned, then the other's stay; nobody's takes nothing."""
    assert aged.prune("90d", user="nobody").retired == ()

    aged.prune("90d", user="bo")

    assert states(aged) == {"of-bo": "retired", "retired": "retired", "contradicted": "retired"}


def test_a_dry_pruning_only_tells(aged: Gateway, ledger_url: str) -> None:
    """Given old learnings, when a pruning is tried dry, then it names what the real one takes, and stores nothing."""
    before = last_position(ledger_url)

    tried = aged.prune("90d", dry_run=True)

    assert last_position(ledger_url) == before
    done = aged.prune("90d")
    assert (tried.retired, tried.forgotten) == (done.retired, done.forgotten)
    assert aged.prune("99999w").retired == ()


def test_what_was_pruned_can_be_restored(aged: Gateway) -> None:
    """AG-47: given pruned learnings, when they are restored, the one is active again, the other retired as before."""
    aged.prune("90d")

    aged.restore("extracted")
    aged.restore("contradicted")

    assert (aged.show("extracted").state, aged.show("contradicted").state) == ("active", "retired")
    assert aged.show("contradicted").content == "contradicted"


def test_pages_come_to_the_same(aged: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given pages of one row, when old learnings are pruned, then none is left out."""
    monkeypatch.setattr("gateway.deciding.pruning.ROWS_PER_PAGE", 1)

    done = aged.prune("90d")

    assert (len(done.retired), len(done.forgotten)) == (3, 1)


def test_a_pruning_leaves_other_projects_alone(open_here: Here, days: Days, ledger_url: str) -> None:
    """D28: given two projects with the same names and texts, when one is pruned, then the other's are as they were."""
    pruned, spared = (open_here(clock=days, project=project) for project in ("atlas", "atlas2"))
    for gateway in (pruned, spared):
        gateway.remember("extracted", memory_id="rule-1", **LEARNED)
        gateway.remember("contradicted", memory_id="rule-2", sources=["chat"], **LEARNED)
        invalidate(gateway, "rule-2")
    days.move_on(91)
    stood = [spared.explain(name).audit for name in ("rule-1", "rule-2")]

    done = pruned.prune("90d")

    assert (len(done.retired), len(done.forgotten)) == (1, 1)
    assert [spared.explain(name).audit for name in ("rule-1", "rule-2")] == stood
    assert [spared.show(name).state for name in ("rule-1", "rule-2")] == ["active", "retired"]
    tombstones = [event.stream for event in written(ledger_url) if event.type == "tombstone.set.v1"]
    assert len(tombstones) == 1


# ---------------------------------------------------------------- extracted learnings


def test_an_extracted_learning_without_a_quote_is_not_stored(gateway: Gateway, ledger_url: str) -> None:
    """AG-45, AG-48: given a learning that nobody said, or about nobody, VALIDATION_FAILED, and nothing is stored."""
    gateway.remember("before")
    before = last_position(ledger_url)

    for missing in ("quote", "conversation", "user"):
        with refused("VALIDATION_FAILED") as refusal:
            gateway.remember("Ana drinks tea", **{**LEARNED, missing: None})
        assert [fault["field"] for fault in refusal.details["fields"]] == [missing]
    assert last_position(ledger_url) == before


def test_a_quote_counts_whatever_its_case_and_spaces(gateway: Gateway, ledger_url: str) -> None:
    """AG-45, AG-48: given a quote that was said, the learning is stored for its user alone, the conversation is not."""
    done = gateway.remember("Ana drinks tea", **{**LEARNED, "quote": " Tea,   NOT\tcoffee "})

    shown = gateway.show(done.revision_id or "")
    assert (shown.visibility, shown.scope["user"], shown.origin) == ("user", "ana", "llm_extracted")
    assert "at work" not in str(gateway.show_event(done.position).payload)
