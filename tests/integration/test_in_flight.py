"""One key while its first request still runs: told so in the same process, and the same answer in another."""

from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from corrigenda import Receipt
from gateway.service import Gateway
from gateway.writing import writer as writing
from ledger import committer
from tests.appends import DEADLINE_S, head_held, planted, until, waiter
from tests.house import last_position, refused, rows
from tests.integration.conftest import Here
from tests.integration.test_two_processes import Other


@contextmanager
def running(ledger_url: str, act: "Callable[[], Receipt]") -> "Generator[Future[Receipt]]":
    """Let an act come as far as the head's lock, and hold it there while the block runs."""
    with ThreadPoolExecutor(1) as pool:
        with head_held(ledger_url):
            future = pool.submit(act)
            waiter(ledger_url)
            yield future
        future.result(DEADLINE_S)


def test_a_key_whose_request_still_runs_is_told_so(gateway: Gateway, ledger_url: str) -> None:
    """RC-15, RC-38: given a request that runs, its key is REQUEST_IN_FLIGHT with a time; afterwards a replay."""
    gateway.remember("before")
    with running(ledger_url, lambda: gateway.remember("a", idempotency_key="k")) as first:
        for content in ("a", "b"):
            with refused("REQUEST_IN_FLIGHT") as refusal:
                gateway.remember(content, idempotency_key="k")
            assert refusal.error.retriable
            assert (refusal.error.retry_after_ms or 0) > 0
            assert refusal.error.exit_code == 6

    again = gateway.remember("a", idempotency_key="k")
    assert (again.replayed, again.revision_id) == (True, first.result().revision_id)
    with refused("IDEMPOTENCY_KEY_REUSED"):
        gateway.remember("b", idempotency_key="k")


def test_a_key_that_runs_is_in_nobody_elses_way(open_here: Here, ledger_url: str) -> None:
    """RC-15, RC-20: given a request that runs, the key of another operation or actor, and no key at all, go on."""
    gateway, bo = open_here(), open_here(actor="human:bo")
    gateway.remember("m", memory_id="m")
    bo.remember("n", memory_id="n")
    with (
        ThreadPoolExecutor(3) as pool,
        running(ledger_url, lambda: gateway.remember("a", idempotency_key="k")) as first,
    ):
        others = [
            pool.submit(gateway.correct, "m", "b", idempotency_key="k"),
            pool.submit(bo.remember, "a", idempotency_key="k"),
            pool.submit(gateway.remember, "a"),
        ]

    stored = [first.result(), *(other.result(DEADLINE_S) for other in others)]
    assert [receipt.replayed for receipt in stored] == [False] * 4
    assert len({receipt.revision_id for receipt in stored}) == 4


def test_a_key_is_free_again_when_its_request_was_refused(gateway: Gateway, ledger_url: str) -> None:
    """RC-21, RC-22: given a request refused by its decision, and one by the server, then the key is not taken."""
    gateway.remember("a", memory_id="m")
    gateway.retire("m")
    size = last_position(ledger_url)
    with refused("INVALID_TRANSITION"):
        gateway.correct("m", "b", idempotency_key="k")
    with planted(ledger_url, "RAISE EXCEPTION 'no' USING ERRCODE = '23514';"), refused("UNAVAILABLE"):
        gateway.remember("c", idempotency_key="k")
    assert last_position(ledger_url) == size

    gateway.restore("m")
    assert not gateway.correct("m", "b", idempotency_key="k").replayed
    assert not gateway.remember("c", idempotency_key="k").replayed


def test_a_server_in_trouble_leaves_the_key_free(
    gateway: Gateway, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-21: given a full disk that outlasts the patience, the retry is carried out, and is no replay."""
    monkeypatch.setattr(committer, "PATIENCE_S", 0.2)
    with planted(ledger_url, "RAISE EXCEPTION 'full' USING ERRCODE = '53100';"), refused("UNAVAILABLE") as refusal:
        gateway.remember("a", idempotency_key="k")
    assert "nothing was stored" in refusal.error.message

    assert not gateway.remember("a", idempotency_key="k").replayed
    assert gateway.remember("a", idempotency_key="k").replayed


def test_who_stops_waiting_is_told_that_the_outcome_is_unknown(
    gateway: Gateway, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-14, RC-21: given a caller whose patience ends before the commit, the retry finds what became of it, once."""
    gateway.remember("before")
    with head_held(ledger_url), monkeypatch.context() as patch:
        patch.setattr(writing, "CALL_PATIENCE_S", 0.3)
        with refused("UNAVAILABLE") as refusal:
            gateway.remember("a", memory_id="m", idempotency_key="k")
    assert "not known" in refusal.error.message

    assert gateway.remember("a", memory_id="m", idempotency_key="k").memory_id
    assert [item.content for item in gateway.history("m").items] == ["a"]


def test_of_one_key_in_two_processes_at_once_the_loser_is_told_the_first_answer(
    open_here: Here, ledger_url: str
) -> None:
    """RC-14, RC-23: given one request in two processes at once, then it is done once, and both are told so."""
    gateway = open_here()
    gateway.remember("before")
    with Other(open_here, "human:ana") as process:
        with running(ledger_url, lambda: gateway.remember("a", idempotency_key="k")) as first:
            process.ask("remember", "a", idempotency_key="k")
            until(lambda: [1] if len(rows(ledger_url, WAITING)) == 2 else [])
            size = last_position(ledger_url)
        told = process.answer()["ok"]
        mine = first.result()
        with refused("IDEMPOTENCY_KEY_REUSED"):
            gateway.remember("b", idempotency_key="k")
        assert process.do("remember", "b", idempotency_key="k")["code"] == "IDEMPOTENCY_KEY_REUSED"

    assert (told[0], told[2]) == (mine.revision_id, mine.position)
    assert last_position(ledger_url) == size + len(mine.events)


WAITING = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
