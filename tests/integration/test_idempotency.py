"""One key, one effect: whoever repeats a request is told what its first time did."""

from collections.abc import Callable
from typing import Any

import pytest

from corrigenda import Receipt
from gateway.service import Gateway
from tests.house import last_position, refused, rows
from tests.integration.conftest import Here

ACTS: dict[str, Callable[[Gateway, str], Receipt]] = {
    "remember": lambda gateway, key: gateway.remember("new", idempotency_key=key),
    "correct": lambda gateway, key: gateway.correct("m", "corrected", idempotency_key=key),
    "retire": lambda gateway, key: gateway.retire("m", idempotency_key=key),
    "revoke": lambda gateway, key: gateway.revoke("m", reason="r", idempotency_key=key),
    "restore": lambda gateway, key: gateway.restore("gone", idempotency_key=key),
    "link": lambda gateway, key: gateway.link("m", "n", idempotency_key=key),
    "unlink": lambda gateway, key: gateway.unlink("n", "gone", reason="r", idempotency_key=key),
}


def same_but_replayed(first: Receipt, second: Receipt) -> bool:
    """Report whether the second receipt is the first one told again."""
    return (second.replayed, first.replayed) == (True, False) and (
        first.memory_id, first.revision_id, first.superseded, first.trace_id, first.position, first.events,
        first.outcome,
    ) == (
        second.memory_id, second.revision_id, second.superseded, second.trace_id, second.position, second.events,
        second.outcome,
    )  # fmt: skip


@pytest.mark.parametrize("act", ACTS)
def test_every_act_is_done_once_for_one_key(open_here: Here, ledger_url: str, act: str) -> None:
    """RC-14, AG-11: given an act with a key, when it is repeated here and after reopening, one effect, one answer."""
    gateway = open_here()
    for name in ("m", "n", "gone"):
        gateway.remember(f"text {name}", memory_id=name)
    gateway.link("n", "gone")
    gateway.retire("gone")

    first = ACTS[act](gateway, "k1")
    size = last_position(ledger_url)
    second, third = ACTS[act](gateway, "k1"), ACTS[act](open_here(), "k1")

    assert same_but_replayed(first, second)
    assert same_but_replayed(first, third)
    assert last_position(ledger_url) == size


def test_the_first_command_that_an_actor_ever_makes_is_replayed(open_here: Here, ledger_url: str) -> None:
    """RC-14: given an actor without a name yet, when its first command is repeated, names are not assigned again."""
    asked: dict[str, Any] = {"content": "a", "memory_id": "m", "user": "u", "idempotency_key": "k"}  # Any: its fields
    first = open_here(actor="agent:new", project="brand-new").remember(**asked)
    size = last_position(ledger_url)

    second = open_here(actor="agent:new", project="brand-new").remember(**asked)

    assert same_but_replayed(first, second)
    assert len(first.events) == 5
    assert last_position(ledger_url) == size


def test_a_retry_after_the_state_moved_on_is_told_its_first_answer(gateway: Gateway) -> None:
    """RC-14, RC-19: given a correction whose target was superseded by it and B retired since, its retry is a replay."""
    first = gateway.remember("a")
    second = gateway.correct(first.revision_id or "", "b", idempotency_key="k")
    gateway.retire(second.revision_id or "")

    assert same_but_replayed(second, gateway.correct(first.revision_id or "", "b", idempotency_key="k"))


def test_a_retry_by_memory_id_means_what_it_meant_then(gateway: Gateway) -> None:
    """RC-14: given a correction by memory id, when it is repeated after others, it is not applied to the new head."""
    gateway.remember("a", memory_id="m")
    second = gateway.correct("m", "b", idempotency_key="k")
    gateway.correct("m", "c")

    assert same_but_replayed(second, gateway.correct("m", "b", idempotency_key="k"))
    assert gateway.show("m").content == "c"


@pytest.mark.parametrize("change", [{"content": "b"}, {"tags": ["t"]}, {"reason": "r"}, {"memory_id": "m"}])
def test_a_key_is_not_used_for_another_request(gateway: Gateway, ledger_url: str, change: dict[str, str]) -> None:
    """RC-16: given a key that was used, when another body comes with it, IDEMPOTENCY_KEY_REUSED, nothing written."""
    gateway.remember("a", idempotency_key="k")
    size = last_position(ledger_url)

    with refused("IDEMPOTENCY_KEY_REUSED") as refusal:
        gateway.remember(**{"content": "a", "idempotency_key": "k", **change})  # pyright: ignore[reportArgumentType] - varied

    assert refusal.error.exit_code == 5
    assert last_position(ledger_url) == size


def test_a_list_or_a_tuple_of_tags_is_the_same_request(gateway: Gateway) -> None:
    """RC-17: given a request whose tags came as a list, when it is repeated with a tuple, then it is a replay."""
    first = gateway.remember("a", tags=["x", "y"], idempotency_key="k")

    assert same_but_replayed(first, gateway.remember("a", tags=("x", "y"), idempotency_key="k"))


def test_a_key_belongs_to_one_actor_and_one_operation(open_here: Here) -> None:
    """RC-20: given one key by two actors and for two operations, when each acts, then each has its own effect."""
    mine = open_here().remember("a", idempotency_key="k")
    theirs = open_here(actor="human:bo").remember("a", idempotency_key="k")
    corrected = open_here().correct(mine.revision_id or "", "b", idempotency_key="k")

    assert not (theirs.replayed or corrected.replayed)
    assert len({mine.revision_id, theirs.revision_id, corrected.revision_id}) == 3


def test_a_refused_request_leaves_its_key_free(gateway: Gateway, ledger_url: str) -> None:
    """RC-21, RC-22: given a refused act with a key, when it is repeated after the cause is gone, then it is done."""
    gateway.remember("a", memory_id="m")
    gateway.retire("m")
    size = last_position(ledger_url)
    with refused("INVALID_TRANSITION"):
        gateway.correct("m", "b", idempotency_key="k")
    assert last_position(ledger_url) == size

    gateway.restore("m")

    assert not gateway.correct("m", "b", idempotency_key="k").replayed


def test_a_dry_run_uses_no_key(gateway: Gateway) -> None:
    """RC-22: given a dry run with a key, when the act itself comes with that key, then it is done, not replayed."""
    gateway.remember("a", idempotency_key="k", dry_run=True)

    done = gateway.remember("a", idempotency_key="k")
    assert (done.outcome, done.replayed) == ("stored", False)


def test_without_a_key_every_call_is_its_own(gateway: Gateway) -> None:
    """RC-18: given no key, when one call is made twice, then it is two effects."""
    assert gateway.remember("a").revision_id != gateway.remember("a").revision_id


def test_key_and_fingerprint_tell_nothing(gateway: Gateway, ledger_url: str) -> None:
    """XC-04: given a key that holds a name, when the tables are read, then it is in none of them."""
    gateway.remember("a", idempotency_key="patient-4711")

    stored = rows(ledger_url, "SELECT encode(envelope, 'escape'), encode(request, 'escape') FROM corrigenda.event")
    assert "patient" not in str(stored)


@pytest.mark.parametrize("key", ["", "x" * 256, "a\x00", "\ud800"])
def test_a_key_that_cannot_be_kept_is_refused(gateway: Gateway, key: str) -> None:
    """RC-16: given an empty, a too long or an unstorable key, when an act comes with it, then the field is named."""
    gateway.remember("a")

    with refused("VALIDATION_FAILED") as refusal:
        gateway.remember("b", idempotency_key=key)

    assert [fault["field"] for fault in refusal.details["fields"]] == ["idempotency_key"]
