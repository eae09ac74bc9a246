"""`corrigenda policy`: words to settings and back."""

import json

import pytest

from gateway import replies
from tests.surfaces import cli_hands
from tests.surfaces.cli_hands import corrigenda

POLICY = replies.Policy(
    items=(
        replies.PolicySetting(name="mode", value="human_decides", default=True, of="project"),
        replies.PolicySetting(name="corrections.agents", value=("a", "b\x1b[2J"), default=False, of="project"),
    ),
    position=4,
    incarnation=1,
)


def test_show_lists_each_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting stands in a line of its own, inert, and says whether it was set; -o json is the document."""
    cli_hands.install(monkeypatch, show_policy=POLICY)
    shown = corrigenda("policy", "show")
    assert shown.out.splitlines()[1:] == [
        "mode                human_decides  project  default",
        "corrections.agents  a, b\\x1b[2J    project",
    ]
    assert json.loads(corrigenda("policy", "show", "-o", "json").out)["items"][1]["value"] == ["a", "b\x1b[2J"]


def test_set_hands_on_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """KEY=VALUE is split at the first equals sign; several are one call."""
    stub = cli_hands.install(monkeypatch)
    done = corrigenda("policy", "set", "mode=agent_lifecycle", "corrections.agents=a=b,c", "--reason", "why")
    assert done.code == 0
    args, named = stub.asked("set_policy")
    assert args == ({"mode": "agent_lifecycle", "corrections.agents": "a=b,c"},)
    assert named == {"reason": "why", "idempotency_key": None, "dry_run": False}


@pytest.mark.parametrize("words", [[], ["mode"], ["mode=a", "mode=b"]])
def test_what_is_no_pair_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """A word without an equals sign, a setting given twice, and none at all are exit 2, and nothing is opened."""
    stub = cli_hands.install(monkeypatch)
    assert cli_hands.refused(corrigenda("policy", "set", *words))
    assert stub.opened == []
