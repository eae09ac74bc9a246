"""Tenants on the command line: made by `db init`, chosen by `--tenant`, and silent about each other."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
import pytest
from cli_hands import Answer, corrigenda

from tests.roles import as_owner

ACME = ("--tenant", "acme")


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, home: Path, ledger_url: str) -> None:
    """A database with the tenants `local` and `acme`; no embedder: it is not what is looked at here."""
    given = {"HOME": str(home), "PROJECT": "ap", "EMBEDDER": "none", "ACTOR": "human:ana", "DATABASE_URL": ledger_url}
    for name, value in given.items():
        monkeypatch.setenv(f"CORRIGENDA_{name}", value)
    monkeypatch.delenv("CORRIGENDA_TENANT", raising=False)
    assert corrigenda("db", "init").code == 0
    assert corrigenda("db", "init", *ACME, "--database-url", as_owner(ledger_url)).code == 0


@pytest.fixture
def owner(ledger_url: str) -> str:
    """Return the URL of the tables' owner, who alone makes further tenants."""
    return as_owner(ledger_url)


def fill(*tenant: str) -> None:
    """Say something in a tenant; the same in each."""
    for words in (
        ("remember", "user lives in Berlin", "--id", "home", "--idempotency-key", "k1"),
        ("correct", "home", "user lives in Hamburg", "--reason", "moved", "--idempotency-key", "k2"),
        ("remember", "user lives in Rome", "--id", "old", "--idempotency-key", "k3"),
        ("link", "home", "old", "--idempotency-key", "k4"),
    ):
        assert corrigenda("memories", *words, *tenant).code == 0


def revisions(*tenant: str) -> list[str]:
    """Return the revisions of a tenant's memory `home`."""
    done = corrigenda("history", "home", "-o", "json", *tenant)
    return [item["revision_id"] for item in json.loads(done.out)["items"]]


def answered(*words: str) -> tuple[int, str, str]:
    """Return exit and answer of a command; each search has a trace of its own, and its id is no part of the answer."""
    done = corrigenda(*words)
    return done.code, re.sub(r"\btrc_[0-9A-Z]{26}", "trc_", done.out), done.err


READS: tuple[Sequence[str], ...] = (
    ("show", "home"),
    ("show", "2"),
    ("show", "9999"),
    ("history", "home"),
    ("explain", "home"),
    ("lineage", "home"),
    ("memories", "search", "where"),
    ("log",),
    ("log", "--oneline", "--actor", "human:ana"),
    ("verify",),
    ("status",),
    ("checkpoint", "sign"),
    ("keys", "list"),
    ("keys", "export-public"),
    ("doctor",),
    ("recover", "--check-only"),
    ("db", "init"),
    ("db", "check"),
    ("db", "current"),
    ("show", "nobodys"),
    ("history", "home", "--tenant", "zeta"),
    ("status", "--tenant", "zeta"),
)


@pytest.mark.parametrize("output", ["text", "json"])
def test_no_answer_changes_with_what_another_tenant_does(output: str, owner: str) -> None:
    """G11: given a tenant that says things, then every reader's answer to another tenant stays the same to the byte."""
    fill()
    assert corrigenda("checkpoint", "sign").code == 0  # which the anchor remembers, and `verify` tells
    before = [answered(*words, "-o", output) for words in READS]
    fill(*ACME)
    assert corrigenda("memories", "revoke", "home", "--reason", "wrong", *ACME).code == 0
    assert corrigenda("db", "init", "--tenant", "beta", "--database-url", owner).code == 0
    after = [answered(*words, "-o", output) for words in READS]
    for words, was, is_now in zip(READS, before, after, strict=True):
        assert is_now == was, words
    assert corrigenda("memories", "remember", "more").code == 0
    assert corrigenda("log", "-o", output) != after[READS.index(("log",))]


ASKED: tuple[Callable[[str], Sequence[str]], ...] = (
    lambda it: ("show", it),
    lambda it: ("show", it, "--raw"),
    lambda it: ("history", it),
    lambda it: ("explain", it),
    lambda it: ("lineage", it),
    lambda it: ("log", "--stream", it),
    lambda it: ("memories", "correct", it, "x"),
    lambda it: ("memories", "retire", it),
    lambda it: ("memories", "revoke", it, "--reason", "x"),
    lambda it: ("memories", "restore", it),
    lambda it: ("memories", "link", "home", it),
    lambda it: ("memories", "link", it, "home"),
    lambda it: ("memories", "unlink", it, "home", "--reason", "x"),
)


@pytest.mark.parametrize("cut", [0, 4])
def test_another_tenants_id_is_answered_like_an_unknown_one(cut: int) -> None:
    """G11: given an id of another tenant, whole or abbreviated, then stdout, stderr and exit are an unknown id's."""
    fill()
    fill(*ACME)
    foreign = revisions(*ACME)[1]
    end = len(foreign) - cut
    foreign, unknown = foreign[:end], (foreign[:-8] + "00000000")[:end]
    for ask in ASKED:
        assert told(ask, foreign) == told(ask, unknown), ask(foreign)


def told(ask: Callable[[str], Sequence[str]], identifier: str) -> Answer:
    """Return what is answered about an id, the id itself taken out of it."""
    done = corrigenda(*ask(identifier))
    return Answer(done.code, done.out.replace(identifier, "ID"), done.err.replace(identifier, "ID"), b"")


def test_the_environment_chooses_a_tenant_and_an_option_wins(monkeypatch: pytest.MonkeyPatch, ledger_url: str) -> None:
    """`CORRIGENDA_TENANT` chooses; `--tenant` before or after the verb counts more."""
    fill(*ACME)
    monkeypatch.setenv("CORRIGENDA_TENANT", "acme")
    assert len(revisions()) == 2
    assert corrigenda("history", "home", "--tenant", "local").code == 3
    assert corrigenda("--tenant", "local", "history", "home").code == 3
    with psycopg.connect(as_owner(ledger_url)) as connection:
        assert connection.execute("SELECT count(*) FROM corrigenda.tenant").fetchone() == (2,)


def test_an_empty_tenant_is_not_the_one_without_a_name() -> None:
    """`--tenant ""`, as of a variable that is not set, is VALIDATION_FAILED, exit 2, and not `local`."""
    for words in (("--tenant", "", "status"), ("db", "init", "--tenant", "")):
        done = corrigenda(*words)
        assert done.code == 2 and "VALIDATION_FAILED" in done.err, words


def test_a_tenant_that_is_not_there_names_the_command_that_makes_it(owner: str) -> None:
    """NOT_CONFIGURED, exit 3, and the command works as it is printed, for the tables' owner."""
    done = corrigenda("status", "--tenant", "new one")
    assert (done.code, done.out) == (3, "")
    assert "`corrigenda db init --tenant 'new one'`" in done.err
    assert corrigenda("db", "init", "--tenant", "new one", "--database-url", owner).code == 0
    assert corrigenda("status", "--tenant", "new one").code == 0


def test_no_key_is_made_beside_any_tenants_ledger(home: Path) -> None:
    """`keys generate` with a key gone is exit 15, whichever tenant is asked for: a new key could check none of them."""
    (home / "keys" / "ledger.key").unlink()
    for tenant in ("local", "acme", "zeta"):
        done = corrigenda("keys", "generate", "--tenant", tenant)
        assert done.code == 15 and "LEDGER_UNVERIFIED" in done.err
    assert [path.name for path in (home / "keys").iterdir()] == ["signing.pem"]
