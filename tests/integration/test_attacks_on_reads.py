"""G8, the half of those who read: whatever full SQL rights change, nothing altered and nothing withdrawn is served.

A read may be refused, and may find less than there is. It may not say of a text what the ledger does not say: each
reply is held against what was true before the attack, by processes that were there and by those that start after it.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, LiteralString

import pytest

from gateway.service import Gateway
from ledger.errors import IntegrityError
from tests.house import tamper
from tests.integration.conftest import Here

LIVE = {"the office is in Hamburg", "the sea is blue"}
GONE = {"the office is in Berlin": "superseded", "the moon is made of cheese": "revoked", "the sun is cold": "revoked"}
FORGED = "the office is in Atlantis"

Said = set[tuple[str, str, str]]  # text, state, trust


@pytest.fixture
def here(open_here: Here) -> Here:
    """A ledger with two memories that hold, one of them corrected, and two that were withdrawn."""
    with open_here() as gateway:
        gateway.remember("the office is in Berlin", memory_id="office")
        gateway.correct("office", "the office is in Hamburg")
        gateway.remember("the sea is blue", memory_id="sea")
        for name, text in (("moon", "the moon is made of cheese"), ("sun", "the sun is cold")):
            gateway.remember(text, memory_id=name)
            gateway.revoke(name, reason="poison")
    open_here.broken = True
    return open_here


# Each is done on top of those before it, so the ones that hide rows come last.
MODELS: dict[str, LiteralString] = {
    "what was revoked active": "UPDATE corrigenda.revision SET trust = 'verified', floor = 'verified' "
    "WHERE trust = 'revoked'",
    "every interval active": "UPDATE corrigenda.revision_state "
    "SET state = 'active', trust = 'verified', floor = 'verified'",
    "withdrawals ended": "UPDATE corrigenda.revision_state SET to_seq = from_seq WHERE to_seq IS NULL",
    "every effect a put": "UPDATE corrigenda.outbox SET effect = 'put'",
    "effects of others": "UPDATE corrigenda.outbox SET lineage = (SELECT min(lineage) FROM corrigenda.outbox)",
    "all vectors the same": "UPDATE corrigenda.embedding SET vector = (SELECT max(vector) FROM corrigenda.embedding)",
    "names exchanged": "UPDATE corrigenda.directory SET seq = (SELECT max(seq) FROM corrigenda.directory)",
    "the log rewritten": "UPDATE corrigenda.log_entry SET type = 'memory.remembered.v1', actor = 'pr_0'",
    "rows moved to newer places": "UPDATE corrigenda.revision "
    "SET content_seq = content_seq + 2, meta_seq = meta_seq + 2",
    "one place for all": "UPDATE corrigenda.revision SET content_seq = 3",
    "lineages of their own": "UPDATE corrigenda.revision SET lineage = 'mem_' || substr(revision, 5)",
    "another project's": "UPDATE corrigenda.revision SET project = 'prj_0'",
    "no edges": "DELETE FROM corrigenda.edge",
    "no outbox": "DELETE FROM corrigenda.outbox",
    "no revisions": "DELETE FROM corrigenda.revision",
}

RECORD: dict[str, LiteralString] = {
    "revocations removed": "DELETE FROM corrigenda.event "
    "WHERE strpos(convert_from(envelope, 'UTF8'), 'revision.revoked') > 0",
    "revocations filed elsewhere": "UPDATE corrigenda.event "
    "SET stream = 'mem_01JZ8Q0000000000000000000Z', stream_seq = seq "
    "WHERE strpos(convert_from(envelope, 'UTF8'), 'revision.revoked') > 0",
    "revocations moved to newer places": "UPDATE corrigenda.event SET seq = seq + 100 "
    "WHERE strpos(convert_from(envelope, 'UTF8'), 'revision.revoked') > 0",
    "the last one written over": "UPDATE corrigenda.event "
    "SET envelope = (SELECT envelope FROM corrigenda.event WHERE seq = 2) "
    "WHERE seq = (SELECT max(seq) FROM corrigenda.event)",
    "a text rewritten": "UPDATE corrigenda.payload "
    "SET body = convert_to(replace(convert_from(body, 'UTF8'), 'Hamburg', 'Atlantis'), 'UTF8') "
    "WHERE strpos(convert_from(body, 'UTF8'), 'Hamburg') > 0",
    "a text exchanged": "UPDATE corrigenda.payload SET body = ("
    "SELECT body FROM corrigenda.payload WHERE strpos(convert_from(body, 'UTF8'), 'cheese') > 0) "
    "WHERE strpos(convert_from(body, 'UTF8'), 'Hamburg') > 0",
    "a text removed": "DELETE FROM corrigenda.payload WHERE strpos(convert_from(body, 'UTF8'), 'Hamburg') > 0",
    "all salts the same": "UPDATE corrigenda.payload SET salt = (SELECT max(salt) FROM corrigenda.payload)",
}


def searched(gateway: Gateway) -> Said:
    """Return what searches answer, with room for everything."""
    found = [hit for query in ("office", "moon cheese", "sun cold sea") for hit in gateway.search(query, k=20).hits]
    return {(hit.content or "", hit.state, hit.trust) for hit in found}


def listed(gateway: Gateway) -> Said:
    """Return what the list of what holds shows."""
    return {(one.content or "", one.state, one.trust) for one in gateway.list_memories(states=["active"]).items}


def explained(gateway: Gateway) -> Said:
    """Return what is said of each memory's head when it is asked for by name."""
    said: Said = set()
    for name in ("office", "sea", "moon", "sun"):
        with suppress(IntegrityError):
            one = gateway.explain(name)
            said.add((one.content or "", one.state, one.trust))
    return said


READS: dict[str, Callable[[Gateway], Said]] = {"search": searched, "list": listed, "explain": explained}


def assert_true(said: Said, *, only_live: bool) -> None:
    """Assert that nothing was said that was not so before the attack."""
    for text, state, trust in said:
        assert text in LIVE | GONE.keys(), f"{text} was never written"
        is_served = state == "active" and trust != "revoked"
        assert not (is_served and text in GONE), f"{text} was served as {state}, {trust}"
        assert not (only_live and text in GONE), f"{text} was found as {state}, {trust}"


def assert_nothing_altered_is_served(gateway: Gateway) -> int:
    """Ask in every way, and return how many of them answered at all."""
    answered = 0
    for name, read in READS.items():
        try:
            said = read(gateway)
        except IntegrityError:
            continue
        assert_true(said, only_live=name == "search")
        answered += 1
    return answered


def test_an_edited_read_model_brings_nothing_back(here: Here) -> None:
    """G8, XC-08: given what anybody may make anew edited, table by table, then no answer says more for it."""
    there = here()
    there.search("office")
    for number, (attack, statement) in enumerate(MODELS.items()):
        tamper(here.ledger_url, (statement, ()))
        assert assert_nothing_altered_is_served(there) > 0, attack
        assert {text for text, _, _ in searched(there)} <= LIVE, attack
        if number % 5 == 4:
            with here() as fresh:
                assert assert_nothing_altered_is_served(fresh) > 0, attack


@pytest.mark.parametrize("attack", RECORD)
def test_a_record_that_was_altered_is_not_served(here: Here, attack: str) -> None:
    """G8, OH-45: given events and texts removed, moved, exchanged or rewritten, then they are refused or named."""
    there = here()
    there.search("office")
    tamper(here.ledger_url, (RECORD[attack], ()))
    assert_nothing_altered_is_served(there)
    there.close()
    with suppress(IntegrityError), here() as fresh:
        assert_nothing_altered_is_served(fresh)


def test_the_same_reads_tell_the_truth_while_nobody_meddles(here: Here) -> None:
    """So the tests above do not pass because nothing is ever answered."""
    gateway = here()
    assert {text for text, _, _ in searched(gateway)} == LIVE
    assert {text for text, _, _ in listed(gateway)} == LIVE
    assert {text for text, _, _ in explained(gateway)} == LIVE | GONE.keys() - {"the office is in Berlin"}


def test_a_forged_answer_would_be_seen() -> None:
    """The oracle of the tests above refuses a text that was never written, and one that was withdrawn."""
    lies: list[Any] = [(FORGED, "active", "verified"), ("the sun is cold", "active", "unverified")]
    for lie in lies:
        with pytest.raises(AssertionError):
            assert_true({lie}, only_live=False)
