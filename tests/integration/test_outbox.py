"""The outbox: poison is parked while the rest goes on, a person retries or skips it, an outage is nobody's fault."""

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gateway.bootstrap import open_bare
from gateway.service import Gateway
from ledger.errors import UnavailableError
from ledger.limits import ATTEMPTS_MAX
from projections import embedders, trying
from projections.carrying import NOTES_AGE_S
from projections.embedders import Vectors
from projections.embedders.patience import deadline_within
from tests.house import WordsEmbedder, last_position, refused, rows, tamper, written
from tests.integration.conftest import Here
from tests.roles import as_owner

HANGS_S = 2.0
POISON, PLAIN, OTHER = "poison in the well", "tea is green", "the moon is a rock"


class Poisonable(WordsEmbedder):
    """An embedder that fails on some texts, or on all, or hangs."""

    def __init__(self) -> None:
        self.poison: str | None = "poison"
        self.how = "raise"
        self.out = False
        self.hanging = threading.Event()
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text, or fail as is set."""
        self.asked += texts
        if self.hanging.is_set():
            time.sleep(HANGS_S)
        if self.out:
            raise UnavailableError("EMBEDDER_UNAVAILABLE", "The embedder does not answer. Try again later.")
        bad = [row for row, text in enumerate(texts) if self.poison and self.poison in text]
        if bad and self.how == "raise":
            raise ValueError(f"cannot tokenise {texts[bad[0]]}")
        vectors = super().embed(texts)
        for row in bad:
            vectors[row] = np.nan
        return vectors


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch, words_embedder: None) -> Poisonable:
    """Put an embedder that can be poisoned in place of the built-in one."""
    made = Poisonable()
    monkeypatch.setattr(embedders, "load", lambda name: None if name == embedders.NONE else made)
    return made


def failures(url: str) -> list[tuple[int, str, int, str]]:
    """Return what is noted of each failure."""
    return rows(url, "SELECT seq, state, attempts, code FROM corrigenda.outbox_failure ORDER BY seq")


def found(gateway: Gateway, text: str) -> list[str | None]:
    """Return the texts that a search finds."""
    return [hit.content for hit in gateway.search(text).hits]


# ---------------------------------------------------------------- poison


@pytest.mark.parametrize("how", ["raise", "nan"])
def test_poison_is_parked_and_the_rest_goes_on(
    open_here: Here, ledger_url: str, embedder: Poisonable, how: str
) -> None:
    """OH-29: one text keeps failing: it is parked after five attempts, status and recovery say it, the rest is in."""
    embedder.how = how
    gateway = open_here()
    receipts = [gateway.remember(text) for text in (PLAIN, POISON, OTHER)]
    assert found(gateway, OTHER) == [OTHER, PLAIN]
    assert gateway.status().outbox == {"pending": 3, "parked": 0}  # there is no generation yet
    done = gateway.recover()
    assert (done.ok, done.parked, done.index["action"]) == (False, 1, "none")
    ((seq, state, attempts, code),) = failures(ledger_url)
    assert (seq, state, attempts) == (receipts[1].events[-1].seq, "parked", ATTEMPTS_MAX)
    assert code == "EMBEDDER_UNAVAILABLE: " + {"raise": "ValueError", "nan": "non_finite"}[how]
    asked = len(embedder.asked)
    assert not gateway.recover().ok
    assert not gateway.recover(check_only=True).ok
    assert (len(embedder.asked), failures(ledger_url)[0][2]) == (asked, ATTEMPTS_MAX)
    assert gateway.status().outbox == {"pending": 0, "parked": 1}
    open_here.broken = True


def test_a_parked_text_is_not_tried_by_a_new_replica(
    open_here: Here, ledger_url: str, home: Path, embedder: Poisonable
) -> None:
    """A replica that starts from nothing carries the rest, without asking for what is parked."""
    gateway = open_here()
    gateway.remember(POISON)
    gateway.remember(PLAIN)
    gateway.recover()
    gateway.close()
    (home / "index").rename(home / "elsewhere")
    embedder.asked.clear()
    anew = open_here()
    done = anew.recover()
    assert (done.ok, done.parked, embedder.asked) == (False, 1, [])
    assert found(anew, PLAIN) == [PLAIN]
    open_here.broken = True


def test_what_failed_is_tried_again_when_it_is_due(open_here: Here, ledger_url: str, embedder: Poisonable) -> None:
    """A text that failed once is in after a later drain, not before its time, and another home's replica has it too."""
    gateway, beside = open_here(), open_here()
    gateway.remember(POISON)
    assert found(gateway, "the well") == found(beside, "the well") == []
    embedder.poison = None
    assert found(gateway, "the well") == []
    tamper(ledger_url, ("UPDATE corrigenda.outbox_failure SET at = at - interval '1 hour'", ()))
    wait_a_moment()
    assert found(gateway, "the well") == [POISON]
    assert failures(ledger_url)[0][1] == "settled"
    assert found(beside, "the well") == [POISON]


def test_a_parked_text_that_is_withdrawn_is_nobodys_concern(
    open_here: Here, ledger_url: str, embedder: Poisonable
) -> None:
    """What is parked and then forgotten waits for nobody: recovery is ok again."""
    gateway = open_here()
    receipt = gateway.remember(POISON)
    assert not gateway.recover().ok
    gateway.forget(receipt.revision_id or "")
    done = gateway.recover()
    assert (done.ok, done.parked) == (True, 0)
    assert failures(ledger_url)[0][1] == "settled"


def test_a_stored_vector_never_parks(open_here: Here, ledger_url: str, embedder: Poisonable) -> None:
    """A text whose vector is stored is found whatever the embedder says of it, in a new index too."""
    embedder.poison = None
    gateway = open_here()
    receipt = gateway.remember(POISON)
    assert found(gateway, POISON) == [POISON]
    embedder.poison = "poison"
    open_here(actor="human:bo").admit(receipt.revision_id or "", reason="it is so")
    assert gateway.recover().ok
    assert failures(ledger_url) == []


def test_two_recoveries_at_once_park_once(open_here: Here, ledger_url: str, embedder: Poisonable) -> None:
    """Two recoveries that meet one poisoned text end alike: it is parked, the rest is in, and neither fails."""
    writer = open_here()
    for text in (PLAIN, POISON, OTHER):
        writer.remember(text)
    gateways = [open_here(), open_here()]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(Gateway.recover, gateways))
    assert [(one.ok, one.parked) for one in done] == [(False, 1)] * 2
    assert [state for _, state, _, _ in failures(ledger_url)] == ["parked"]
    assert [set(found(one, "tea moon")) for one in gateways] == [{PLAIN, OTHER}] * 2
    open_here.broken = True


# ---------------------------------------------------------------- an embedder that answers nobody


def test_an_outage_counts_for_nobody(open_here: Here, ledger_url: str, embedder: Poisonable) -> None:
    """An embedder that fails on every text parks none: all of it waits, and is carried when it answers again."""
    gateway = open_here()
    gateway.remember(POISON)
    gateway.recover()  # parked, so that there is something to give back to
    tamper(ledger_url, ("UPDATE corrigenda.outbox_failure SET state = 'failing', attempts = 2", ()))
    embedder.out = True
    gateway.remember(PLAIN)
    for _ in range(ATTEMPTS_MAX + 1):
        with refused("EMBEDDER_UNAVAILABLE"):
            gateway.recover()
    assert [(state, attempts) for _, state, attempts, _ in failures(ledger_url)] == [("failing", 2)]
    embedder.out, embedder.poison = False, None
    done = gateway.recover()
    assert (done.ok, done.replayed, done.repaired) == (True, 1, 1)


def test_a_hung_embedder_holds_nobody_longer_than_asked(open_here: Here, embedder: Poisonable) -> None:
    """RM-102: a start waits for the embedder as long as it may and no longer, and says what is left; late results count
    for nothing until they are asked for again.
    """
    first = open_here()
    for text in (PLAIN, OTHER):
        first.remember(text)
    embedder.hanging.set()
    began = time.monotonic()
    left = first.index.drain(0.2)
    assert time.monotonic() - began < HANGS_S
    assert (left.carried, left.pending) == (0, 2)
    embedder.hanging.clear()
    while first.index.drain(5).pending:
        time.sleep(0.1)  # the late call is still hanging, and no other one is begun beside it
    assert set(found(first, PLAIN)) == {PLAIN, OTHER}


# ---------------------------------------------------------------- what a person does


def test_what_is_parked_is_listed_and_retried(open_here: Here, ledger_url: str, embedder: Poisonable) -> None:
    """OH-29: the list names what waits and what is parked; a retry that helps settles it, another parks it."""
    gateway = open_here()
    receipt = gateway.remember(POISON)
    seq = receipt.events[-1].seq
    (waiting,) = gateway.outbox().items
    assert (waiting.seq, waiting.id, waiting.state) == (seq, receipt.revision_id, "waiting")
    gateway.recover()
    (item,) = gateway.outbox(parked=True).items
    assert (item.seq, item.stream, item.state, item.attempts) == (seq, receipt.memory_id, "parked", ATTEMPTS_MAX)
    again = gateway.retry_outbox([seq])
    assert (again.ok, again.parked, failures(ledger_url)[0][2]) == (False, (seq,), ATTEMPTS_MAX)
    embedder.poison = None
    done = gateway.retry_outbox([seq])
    assert (done.ok, done.settled, gateway.outbox().items) == (True, (seq,), ())
    assert found(gateway, POISON) == [POISON]
    with refused("INVALID_TRANSITION"):
        gateway.retry_outbox([seq])
    with refused("EVENT_NOT_FOUND"):
        gateway.retry_outbox([0])
    with refused("VALIDATION_FAILED"):
        gateway.retry_outbox([])


def test_a_skip_is_an_event_with_a_reason(open_here: Here, ledger_url: str, embedder: Poisonable) -> None:
    """A skip is recorded in the ledger's own stream, ends the parking, and is repeated without another event."""
    gateway = open_here()
    seq = gateway.remember(POISON).events[-1].seq
    gateway.recover()
    with refused("VALIDATION_FAILED"):
        gateway.skip_outbox(seq, reason=" ")
    assert gateway.skip_outbox(seq, reason="try", dry_run=True).outcome == "unchanged"
    assert failures(ledger_url)[0][1] == "parked"
    receipt = gateway.skip_outbox(seq, reason="a test of wells")
    (event,) = written(ledger_url, above=seq)
    assert (event.seq, event.type, event.stream[:4]) == (receipt.position, "outbox.skipped.v1", "led_")
    assert event.facts == {"position": seq, "target": embedder.signature}
    assert failures(ledger_url)[0][1] == "skipped"
    done = gateway.recover()
    assert (done.ok, done.parked, gateway.outbox().items) == (True, 0, ())
    before = last_position(ledger_url)
    assert gateway.skip_outbox(seq, reason="again").outcome == "unchanged"
    assert last_position(ledger_url) == before
    with refused("INVALID_TRANSITION"):
        gateway.retry_outbox([seq])
    embedder.poison = None
    gateway.close()
    assert found(open_here(), POISON) == []
    open_here.broken = True


def test_what_failed_is_no_drift_at_a_start(
    open_here: Here, embedder: Poisonable, caplog: pytest.LogCaptureFixture
) -> None:
    """A start does not call an index wrong for lacking what is parked or was skipped."""
    gateway = open_here()
    gateway.remember(PLAIN)
    seqs = [gateway.remember(f"{POISON} {number}").events[-1].seq for number in range(2)]
    gateway.recover()
    gateway.skip_outbox(seqs[0], reason="a test of wells")
    gateway.close()
    with caplog.at_level(logging.WARNING):
        assert found(open_here(), PLAIN) == [PLAIN]
    assert not [record.message for record in caplog.records if record.message.startswith("index.")]
    open_here.broken = True


def test_a_text_on_which_the_embedder_hangs_does_not_hold_a_recovery_up(
    open_here: Here, embedder: Poisonable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a text that takes an endpoint's whole patience, when it is recovered, then it is parked in bounded time.

    Each part of the batch that it is in, and each further attempt, is given so much and no more; that is told.
    """
    monkeypatch.setattr(trying, "AGAIN_S", 0.05)
    embed, waited, told = embedder.embed, list[float](), list[tuple[int, int]]()

    def hang(texts: Sequence[str]) -> Vectors:
        if any(POISON in text for text in texts):
            waited.append(deadline_within(1.0) - time.monotonic())
            raise UnavailableError("EMBEDDER_UNAVAILABLE", "It did not answer in time.", reason="timeout")
        return embed(texts)

    monkeypatch.setattr(embedder, "embed", hang)
    with open_here.unreplayed() as gateway:
        gateway.index.frozen = True  # what is remembered waits for the recovery
        for text in (PLAIN, f"{POISON} again", OTHER):
            gateway.remember(text)
        gateway.index.frozen = False
        done = gateway.recover(progress=lambda done, total: told.append((done, total)))
    assert (done.parked, done.ok) == (1, False)
    assert waited[0] > 0.5 and max(waited[1:]) <= 0.05 and len(waited) >= ATTEMPTS_MAX
    assert told[0] == (0, 3) and (0, ATTEMPTS_MAX) in told
    open_here.broken = True


def test_an_interrupted_recovery_leaves_everything_as_it_was(
    open_here: Here, ledger_url: str, embedder: Poisonable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given Ctrl-C while a text is tried again, then no attempt is counted, and a later recovery finishes."""
    gateway = open_here()
    gateway.remember(POISON)
    assert found(gateway, PLAIN) == []
    before = failures(ledger_url)
    with monkeypatch.context() as patched:

        def interrupted(_: Sequence[str]) -> Vectors:
            raise KeyboardInterrupt

        patched.setattr(embedder, "embed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            gateway.recover()
    assert failures(ledger_url) == before
    embedder.poison = None
    assert gateway.recover().ok
    assert found(gateway, POISON) == [POISON]


def test_a_check_of_the_index_says_what_is_parked_and_what_was_skipped(open_here: Here, embedder: Poisonable) -> None:
    """Given what failed, is parked, and was skipped, when the index is verified, then each is counted as what it is."""
    gateway = open_here()
    gateway.remember(PLAIN)
    seqs = [gateway.remember(f"{POISON} {number}").events[-1].seq for number in range(2)]
    assert found(gateway, PLAIN) == [PLAIN]
    counted = [gateway.verify_index()]
    gateway.recover()
    counted.append(gateway.verify_index())
    gateway.skip_outbox(seqs[0], reason="a test of wells")
    gateway.recover()
    counted.append(gateway.verify_index())
    assert [(one.ok, one.pending, one.parked, one.skipped) for one in counted] == [
        (True, 2, 0, 0), (True, 0, 2, 0), (True, 0, 1, 1),
    ]  # fmt: skip
    open_here.broken = True


def test_what_another_embedder_failed_on_is_told_as_that(
    open_here: Here, embedder: Poisonable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change of embedders the list still counts what the former one failed on; a retry says whose it is."""
    gateway = open_here()
    seq = gateway.remember(POISON).events[-1].seq
    gateway.recover()
    gateway.close()
    former, embedder.poison = embedder.signature, None
    monkeypatch.setattr(Poisonable, "signature", "provider=test;model=other")
    gateway = open_here.unreplayed()
    gateway.reembed()
    listed = gateway.outbox(parked=True)
    assert ([item.embedder for item in listed.items], listed.parked, listed.pending) == ([former], 1, 0)
    with refused("INVALID_TRANSITION") as refusal:
        gateway.retry_outbox([seq])
    assert refusal.error.details["embedder"] == former
    gateway.skip_outbox(seq, reason="the other one has it")
    assert gateway.outbox().items == ()
    open_here.broken = True


def test_what_is_parked_and_was_swept_is_counted_for_no_other(
    open_here: Here, ledger_url: str, home: Path, embedder: Poisonable
) -> None:
    """A row that is parked and was removed takes nothing from what waits above an index that begins anew."""
    with open_here() as gateway:
        gateway.remember(POISON)
        gateway.recover()
    with open_bare(database_url=as_owner(ledger_url), home=home, create=False) as bare:
        assert bare.sweep_outbox()["rows"] == 1
    (home / "index").rename(home / "elsewhere")
    gateway = open_here.unreplayed()
    gateway.remember(PLAIN)
    assert gateway.status().outbox == {"pending": 1, "parked": 1}
    assert (gateway.outbox().pending, gateway.outbox().parked) == (1, 1)
    open_here.broken = True


def test_who_may_not_recover_does_nothing_to_the_outbox(open_here: Here, embedder: Poisonable) -> None:
    """An agent is refused the list, the retry and the skip."""
    agent = open_here(actor="agent:bot")
    for act in (agent.outbox, lambda: agent.retry_outbox([1]), lambda: agent.skip_outbox(1, reason="no")):
        with refused("FORBIDDEN_ACTOR"):
            act()


def test_an_empty_outbox_recovers_to_nothing(open_here: Here, ledger_url: str, embedder: Poisonable) -> None:
    """OH-30: nothing waits: the recovery reports zero, and changes nothing in the ledger."""
    gateway = open_here()
    before = last_position(ledger_url)
    done = gateway.recover()
    assert (done.ok, done.replayed, done.skipped, done.parked, done.repaired) == (True, 0, 0, 0, 0)
    assert last_position(ledger_url) == before


@pytest.mark.parametrize("only", [["claims"], ["index"], ["outbox"]])
def test_parts_of_a_recovery(open_here: Here, embedder: Poisonable, only: list[str]) -> None:
    """Only the outbox part carries what waits; the index part leaves a good generation as it is; another is refused."""
    first = open_here()
    first.remember(PLAIN)
    first.close()
    gateway = open_here()
    gateway.remember(OTHER)
    done = gateway.recover(only=only)
    assert done.replayed == (1 if only == ["outbox"] else 0)
    with refused("VALIDATION_FAILED"):
        gateway.recover(only=["everything"])


def test_a_part_that_is_named_twice_is_one_part(open_here: Here, embedder: Poisonable) -> None:
    """A recovery of the claims, however often they are named, leaves the index and the outbox alone."""
    open_here().remember(PLAIN)
    gateway = open_here.unreplayed()
    done = gateway.recover(only=["claims", "claims"])
    assert (done.replayed, done.index["why"]) == (0, "it was not asked for")


def test_a_fault_of_one_item_is_no_fault_of_the_list(open_here: Here, embedder: Poisonable) -> None:
    """A list with an item that is wrong is not said to be too short, one without items is."""
    gateway = open_here()
    with refused("VALIDATION_FAILED") as wrong:
        gateway.recover(only=["everything"])
    assert [fault["field"] for fault in wrong.error.details["fields"]] == ["only.0"]
    with refused("VALIDATION_FAILED") as empty:
        gateway.recover(only=[])
    assert [fault["field"] for fault in empty.error.details["fields"]] == ["only"]


# ---------------------------------------------------------------- hands


def wait_a_moment() -> None:
    """Wait until a replica looks at the notes again."""
    time.sleep(NOTES_AGE_S + 0.05)
