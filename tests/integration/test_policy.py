"""The policy: what can be set, by whom, and that each change is an event of the project's or the tenant's stream."""

from typing import Any

import pytest

from gateway.writing.policies import SETTINGS
from tests.house import last_position, refused
from tests.integration.conftest import Here


def test_a_setting_holds_until_it_is_set_and_in_its_project_only(open_here: Here) -> None:
    """Given two projects, when one sets a project's setting, then only it has it; a tenant's setting both have."""
    atlas, other = open_here(), open_here(project="atlas2")
    assert {item.name: item.value for item in atlas.show_policy().items if item.default} == {
        name: setting.default for name, setting in SETTINGS.items()
    }
    atlas.set_policy({"corrections.top_k": "5", "log.public": "true"}, reason="pilot")
    assert (atlas.policy().values["corrections.top_k"], atlas.policy().values["log.public"]) == ("5", "true")
    assert (other.policy().values["corrections.top_k"], other.policy().values["log.public"]) == ("3", "true")
    assert [item.name for item in other.show_policy().items if not item.default] == ["log.public"]


def test_several_settings_are_one_append_with_an_event_each(open_here: Here) -> None:
    """Given a setting that holds, when it is set with two others, then one append has the two events that change it."""
    gateway = open_here()
    gateway.set_policy({"mode": "agent_lifecycle"})
    done = gateway.set_policy({"mode": "agent_lifecycle", "self_approval": "allow", "corrections.agents": "b, a"})
    assert [event.type for event in done.events] == ["policy.set.v1", "policy.set.v1"]
    assert gateway.policy().values["corrections.agents"] == ("a", "b")
    detail = gateway.show_event(done.events[1].seq)
    assert (detail.facts, detail.payload) == (
        {"setting": "corrections.agents", "value": None},
        {"names": ("a", "b"), "reason": None},
    )


def test_what_holds_already_is_no_change(open_here: Here, ledger_url: str) -> None:
    """Given a setting, when it is set to what it is, then NO_CHANGE, nothing is stored; `policy` leaves it silently."""
    gateway = open_here()
    gateway.policy(corrections_min_score=0.5)
    before = last_position(ledger_url)
    with refused("NO_CHANGE"):
        gateway.set_policy({"corrections.min_score": "0.5"})
    assert gateway.policy(**{"corrections.min_score": 0.5}).values["corrections.min_score"] == "0.5"
    assert last_position(ledger_url) == before


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"corrections.topk": "3"},
        {"corrections.top_k": "0"},
        {"corrections.top_k": "03"},
        {"corrections.top_k": "1e1"},
        {"corrections.top_k": True},
        {"corrections.min_score": float("nan")},
        {"corrections.min_score": "-1"},
        {"corrections.contradiction_threshold": None},
        {"corrections.contradiction_threshold": "2"},
        {"corrections.agents": ""},
        {"corrections.agents": [7]},
        {"corrections.agents": ["x"] * 101 + ["\x00"]},
        {"corrections.invalidate_contradicted": "yes"},
        {"trace_retention": "90"},
        {"mode": {"a": 1}},
        {"mode": "human_decides", "nothing": "x"},
    ],
)
def test_what_cannot_be_set_is_refused_whole(open_here: Here, bad: dict[str, Any]) -> None:
    """Given an unknown name or value, when it is set, then VALIDATION_FAILED, and what stood beside it is not set."""
    gateway = open_here()
    with refused("VALIDATION_FAILED") as refusal:
        gateway.set_policy(bad)
    if "corrections.topk" in bad:
        assert refusal.details["settings"] == list(SETTINGS)
    assert all(item.default for item in gateway.show_policy().items)


def test_setting_needs_the_permission_admin_and_a_project(open_here: Here) -> None:
    """Given an agent, when it sets, then FORBIDDEN_ACTOR; without a project only the tenant's settings can be set."""
    with refused("FORBIDDEN_ACTOR") as refusal:
        open_here(actor="agent:bot").set_policy({"mode": "agent_lifecycle"})
    assert refusal.details["permission"] == "admin"
    nowhere = open_here(project=None)
    with refused("VALIDATION_FAILED"):
        nowhere.set_policy({"mode": "agent_lifecycle"})
    assert nowhere.policy(log_public=True).values["log.public"] == "true"
    assert {item.of for item in nowhere.show_policy().items} == {"tenant"}


def test_a_repeated_request_sets_once(open_here: Here) -> None:
    """Given a key, when the same settings are sent again, then the first receipt; another value is refused."""
    gateway = open_here()
    first = gateway.set_policy({"mode": "agent_lifecycle"}, idempotency_key="k")
    again = gateway.set_policy({"mode": "agent_lifecycle"}, idempotency_key="k")
    assert (again.replayed, again.events) == (True, first.events)
    with refused("IDEMPOTENCY_KEY_REUSED"):
        gateway.set_policy({"mode": "human_decides"}, idempotency_key="k")
