"""The read models from the command line: rebuilt, checked and told about, over a real ledger."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_hands import corrigenda

from tests.house import rows, tamper
from tests.roles import as_owner


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch, ledger_url: str, home: Path) -> str:
    """A ledger with one memory, corrected once, and its database's URL."""
    names = {"HOME": str(home), "PROJECT": "ap", "EMBEDDER": "none", "ACTOR": "human:ana", "DATABASE_URL": ledger_url}
    for name, value in names.items():
        monkeypatch.setenv(f"CORRIGENDA_{name}", value)
    memory = answer("memories", "remember", "user lives in Berlin")["memory_id"]
    answer("memories", "correct", memory, "user lives in Hamburg")
    return ledger_url


def answer(*words: str, code: int = 0) -> dict[str, Any]:  # Any: JSON
    """The document that a command line answers with."""
    done = corrigenda("-o", "json", *words)
    assert done.code == code, done.err
    return json.loads(done.out)


def test_a_rebuild_is_told_and_told_apart(ledger: str) -> None:
    """A rebuild names both generations, counts rows by table, and says for how long writes were held up."""
    done = answer("projections", "rebuild", "--all")
    assert (done["ok"], done["generation"], done["retired"], done["differences"]) == (True, 2, 1, [])
    assert done["rows"]["revision"] == done["rows_before"]["revision"] == 2
    assert "generation 3 is live, generation 2 is retired" in corrigenda("projections", "rebuild").out


def test_a_drift_is_exit_12_until_it_is_rebuilt(ledger: str) -> None:
    """A planted row is exit 12 for both checks, and for the rebuild that finds it; afterwards all is well."""
    assert answer("projections", "verify")["ok"]
    tamper(ledger, ("UPDATE corrigenda.revision SET trust = 'verified' WHERE state = 'active'", ()))
    ((revision,),) = rows(ledger, "SELECT revision FROM corrigenda.revision WHERE state = 'active'")
    (found,) = answer("projections", "verify", code=12)["differences"]
    assert (found["table"], found["key"]) == ("revision", revision)
    assert (found["expected"], found["found"]) == (
        ["values active unverified verified"],
        ["values active verified verified"],
    )
    check = answer("verify", "--projections", code=12)["checks"]["projections"]
    assert (check["status"], revision in check["expected"]) == ("failed", True)
    assert revision in corrigenda("projections", "verify").out
    assert answer("verify")["checks"]["projections"]["status"] == "skipped"
    assert answer("projections", "rebuild", code=12)["differences"] == [found]
    assert answer("verify", "--projections")["checks"]["projections"]["status"] == "ok"


def test_the_status_is_told(ledger: str) -> None:
    """The status names the live generation, its version and its rows, and that nothing lags."""
    found = answer("projections", "status")
    assert (found["generation"], found["version"], found["expected_version"], found["lag"]) == (1, 2, 2, 0)
    assert found["rows"]["revision_state"] == 3
    assert "generation" in corrigenda("projections", "status").out


def test_read_models_of_another_version_are_exit_7_with_their_mend(ledger: str) -> None:
    """What an older version wrote refuses writes and checks, exit 7, and both name the rebuild that mends it."""
    tamper(ledger, ("UPDATE corrigenda.head SET projector = 1", ()))
    for words in (("memories", "remember", "x"), ("projections", "verify")):
        done = corrigenda(*words)
        assert (done.code, "corrigenda projections rebuild" in done.err) == (7, True)
    migrated = answer("db", "migrate", "--database-url", as_owner(ledger))
    assert "corrigenda projections rebuild" in migrated["next"]
    assert answer("projections", "rebuild")["version_before"] == 1
    assert "next" not in answer("db", "migrate", "--database-url", as_owner(ledger))
    assert corrigenda("memories", "remember", "x").code == 0


def test_an_agent_may_not_rebuild(ledger: str) -> None:
    """A rebuild needs the permission `recover`, which an agent has not: exit 4."""
    assert corrigenda("--actor", "agent:planner", "projections", "rebuild").code == 4
