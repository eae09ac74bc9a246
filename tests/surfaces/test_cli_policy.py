"""`corrigenda policy`: words to settings and back."""

import json
import re
from pathlib import Path

import pytest

from cli.policy import UNREAD
from gateway.shapes.replies import memories as replies
from gateway.writing import policies
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


def test_the_help_names_what_nothing_reads() -> None:
    """`policy set --help` names exactly the settings that no other module of the gateway looks at."""
    modules = [path for path in Path(policies.__file__).parents[1].rglob("*.py") if path.name != "policies.py"]
    read = set().union(*(re.findall(r"\b[A-Z_]+\b", path.read_text()) for path in modules))
    constants = {one.name: name for name, one in vars(policies).items() if isinstance(one, policies.Setting)}
    assert {name for name in policies.SETTINGS if constants[name] not in read} == set(UNREAD)
    told = " ".join(corrigenda("policy", "set", "--help").out.split())
    assert f"Nothing reads {', '.join(UNREAD[:-1])} and {UNREAD[-1]} yet" in told
