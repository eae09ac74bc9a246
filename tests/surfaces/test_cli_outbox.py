"""The outbox from the command line: listed, retried, skipped, swept, over a real ledger with a poisoned embedder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_hands import corrigenda, refused

from projections import embedders
from projections.embedders import Vectors
from tests.house import WordsEmbedder
from tests.roles import as_owner


class Poisonable(WordsEmbedder):
    """Fails on texts with one word in them, while that is set."""

    word: str | None = "poison"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text, or fail."""
        if self.word and any(self.word in text for text in texts):
            raise ValueError("no")
        return super().embed(texts)


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch, ledger_url: str, home: Path) -> Poisonable:
    """The embedder of a ledger with one memory that it fails on, and one that it does not."""
    names = {"HOME": str(home), "PROJECT": "ap", "ACTOR": "human:ana", "DATABASE_URL": ledger_url}
    for name, value in names.items():
        monkeypatch.setenv(f"CORRIGENDA_{name}", value)
    made = Poisonable()
    monkeypatch.setattr(embedders, "load", lambda _: made)
    for text in ("poison in the well", "tea is green"):
        answer("memories", "remember", text)
    return made


def answer(*words: str, code: int = 0) -> dict[str, Any]:  # Any: JSON
    """The document that a command line answers with."""
    done = corrigenda("-o", "json", *words)
    assert done.code == code, done.err
    return json.loads(done.out)


def test_what_is_parked_is_exit_9_until_a_person_has_decided(embedder: Poisonable, ledger_url: str) -> None:
    """OH-29: recover is exit 9 and counts what is parked, the list names it, a retry is exit 9 until it helps."""
    found = answer("recover", code=9)
    assert {name: found[name] for name in ("ok", "parked", "skipped", "claims")} == {
        "ok": False, "parked": 1, "skipped": 0, "claims": [],
    }  # fmt: skip
    assert answer("recover", "--check-only", code=9)["parked"] == 1
    (item,) = answer("outbox", "list", "--parked")["items"]
    text = corrigenda("outbox", "list").out
    assert "parked" in text and "ValueError" in text and "poison" not in text
    assert answer("status")["outbox"] == {"pending": 0, "parked": 1}
    seq = str(item["seq"])
    assert answer("outbox", "retry", seq, code=9)["parked"] == [item["seq"]]
    embedder.word = None
    assert answer("outbox", "retry", seq)["settled"] == [item["seq"]]
    assert answer("recover")["ok"]
    assert corrigenda("outbox", "list").out == "nothing waits\n"
    assert answer("memories", "search", "the well")["hits"][0]["content"] == "poison in the well"
    swept = answer("outbox", "sweep", "--dry-run", "--database-url", as_owner(ledger_url))
    assert (swept["dry_run"], swept["replicas"]) == (True, 0)


def test_a_skip_needs_its_reason(embedder: Poisonable) -> None:
    """A skip without a reason is exit 2; with one it is an event of the log, and recovery is exit 0 again."""
    answer("recover", code=9)
    (item,) = answer("outbox", "list", "--parked")["items"]
    assert refused(corrigenda("outbox", "skip", str(item["seq"])), "--reason")
    done = answer("outbox", "skip", str(item["seq"]), "--reason", "nobody drinks there")
    assert [event["type"] for event in done["events"]] == ["outbox.skipped.v1"]
    shown = answer("show", str(done["position"]))
    assert shown["payload"] == {"reason": "nobody drinks there"}
    assert answer("recover")["ok"]


def test_what_cannot_be_asked_is_refused(embedder: Poisonable) -> None:
    """No position is exit 2, one without effects exit 3, one that did not fail exit 5, and an unknown part exit 2."""
    assert corrigenda("outbox", "retry").code == 2
    assert corrigenda("outbox", "retry", "0").code == 3
    assert corrigenda("outbox", "skip", "99999", "--reason", "x").code == 3
    last = str(answer("log", "--limit", "1")["items"][0]["seq"])
    assert corrigenda("outbox", "skip", last, "--reason", "x").code == 5
    assert corrigenda("recover", "--only", "everything").code == 2
