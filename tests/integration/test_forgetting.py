"""What is forgotten: shown without its text, not learned again by a machine, brought back by whoever may."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from corrigenda import Receipt
from gateway.deciding import beginning
from gateway.deciding.burying import refuse_buried
from gateway.service import Gateway
from gateway.writing.page import Append
from ledger.digest import LedgerKeys
from tests.house import last_position, refused, types, written
from tests.integration.conftest import Here
from tests.pep_histories import EXCERPT, lines_of, packed


def revision(receipt: Receipt) -> str:
    """Return the revision that a receipt names."""
    assert receipt.revision_id is not None
    return receipt.revision_id


def test_what_is_forgotten_is_shown_without_its_text(gateway: Gateway) -> None:
    """RC-10, RC-11: given a forgotten revision, its id is known everywhere, and its text and hash nowhere."""
    first = gateway.remember("the crane lifts twelve tonnes", memory_id="crane", tags=["load"])
    born = first.position

    gateway.forget("crane", reason="it never did")

    shown, told = gateway.show(revision(first)), gateway.explain("crane")
    assert (shown.state, shown.content, shown.content_hash, shown.tags) == ("forgotten", None, None, ())
    assert (told.head, told.content, told.audit[-1].reason) == (None, None, "it never did")
    assert [item.content for item in gateway.history("crane").items] == [None]
    assert {node.label for node in gateway.lineage("crane").nodes} == {"(forgotten)"}
    assert (gateway.show_event(born).payload, gateway.show_event(born).forgotten) == (None, True)
    everything = [shown, told, gateway.history("crane"), gateway.lineage("crane"), gateway.show_event(born)]
    assert b"twelve tonnes" not in msgspec.json.encode([*everything, gateway.search("crane twelve tonnes")])
    with refused("MEMORY_DELETED") as refusal:
        gateway.correct(revision(first), "ten tonnes")
    assert refusal.details["kind"] == "forgotten"

    gateway.restore("crane")

    assert gateway.show("crane").content == "the crane lifts twelve tonnes"
    assert (gateway.show_event(born).payload or {})["content"] == "the crane lifts twelve tonnes"


def test_a_forgotten_head_does_not_bring_its_predecessor_back(gateway: Gateway) -> None:
    """RC-30: given A corrected by B, when B is forgotten, then a search finds nothing of the chain, and A stays old."""
    first = gateway.remember("the crane lifts ten tonnes", memory_id="crane")
    gateway.correct("crane", "the crane lifts twelve tonnes")

    gateway.forget("crane")

    assert gateway.search("crane lifts tonnes").hits == ()
    assert gateway.explain(revision(first)).head is None
    assert [item.state for item in gateway.history("crane").items] == ["superseded", "forgotten"]


def test_a_chain_stays_walkable_through_what_was_forgotten(gateway: Gateway) -> None:
    """RC-31: given A, B, C, when B is forgotten, then the chain still leads through it, without its text."""
    receipts = [gateway.remember("a", memory_id="m"), gateway.correct("m", "b"), gateway.correct("m", "c")]
    first, middle, last = map(revision, receipts)

    gateway.forget(middle)

    items = gateway.history("m").items
    assert [item.content for item in items] == ["a", None, "c"]
    assert (items[1].supersedes, items[1].superseded_by) == ((first,), (last,))
    assert gateway.explain(middle).provenance["supersededBy"] == last
    assert [hit.revision_id for hit in gateway.search("c").hits] == [last]


def test_another_kind_under_no_name_begins_anew(gateway: Gateway) -> None:
    """RC-32: given a forgotten fact, when a person remembers its text as a decision, then it is a memory of its own."""
    old = gateway.remember("we ship on Fridays")
    gateway.forget(revision(old))

    new = gateway.remember("we ship on Fridays", kind="decision")

    assert new.memory_id != old.memory_id
    shown = gateway.show(revision(new))
    assert (shown.version, shown.supersedes, shown.kind) == (1, (), "decision")


@pytest.mark.parametrize("act", ["forget", "revoke"])
def test_who_withdraws_a_text_is_told_where_else_it_stands(gateway: Gateway, act: str) -> None:
    """A correction is a record of its own: the receipt names those that say it, also when it is told again."""
    gateway.remember("Berlin", memory_id="office")
    recorded = gateway.record_correction(
        agent="bot", original_value="Berlin", corrected_value="Hamburg", memory="office", reason="moved"
    )
    how = {"reason": "private", "idempotency_key": "k1"}
    first, again = (getattr(gateway, act)("office", **how) for _ in range(2))
    told = "stands, and is not told until this is restored" if act == "forget" else "still says it"
    said = f"correction_untouched: {recorded.correction_id} {told}; revoke it too if that is wrong"
    assert said in first.warnings and said in again.warnings and again.replayed
    gateway.restore("office")
    gateway.revoke_correction(recorded.correction_id or "", reason="private")
    assert said not in getattr(gateway, act)("office", reason="private").warnings


def test_one_tombstone_stands_for_each_source(gateway: Gateway, ledger_url: str) -> None:
    """Given a text from two sources, when it is forgotten and restored, each of them gets and loses its tombstone."""
    gateway.remember("rumour", sources=["chat", "mail"], memory_id="rumour")
    before = last_position(ledger_url)

    gateway.forget("rumour")
    gateway.restore("rumour")

    told = written(ledger_url, above=before)
    assert types(told) == [
        "memory.forgotten", "tombstone.set", "tombstone.set", "memory.restored", "tombstone.lifted", "tombstone.lifted",
    ]  # fmt: skip
    assert {event.stream.partition("_")[0] for event in told if event.type.startswith("tombstone")} == {"tomb"}
    assert [event.op for event in told] == [told[0].op] * 3 + [told[3].op] * 3


@pytest.mark.parametrize("origin", ["llm_extracted", "import"])
def test_a_machine_does_not_learn_it_again(gateway: Gateway, ledger_url: str, origin: str) -> None:
    """RC-32: given a forgotten text of a source, no machine learns it from there; from elsewhere one may."""
    gateway.remember("rumour", sources=["chat"], memory_id="old")
    gateway.forget("old")
    before = last_position(ledger_url)

    for sources in (["chat"], ["mail", "chat"]):
        with refused("MEMORY_DELETED") as refusal:
            gateway.remember("rumour", origin=origin, sources=sources)
        assert refusal.details["kind"] == "forgotten"
    assert last_position(ledger_url) == before

    assert gateway.remember("rumour", origin=origin, sources=["mail"]).outcome == "stored"
    assert gateway.remember("another rumour", origin=origin, sources=["chat"]).outcome == "stored"
    assert gateway.remember("rumour", sources=["chat"]).outcome == "stored"


def test_no_id_leads_past_a_tombstone(gateway: Gateway) -> None:
    """RC-32: given a forgotten text, naming a headless memory, or a new one, does not let a machine bring it back."""
    gateway.remember("rumour", memory_id="old")
    gateway.forget("old")
    gateway.remember("something", memory_id="headless")
    gateway.retire("headless")

    for memory in ("headless", "new"):
        with refused("MEMORY_DELETED"):
            gateway.remember("rumour", origin="llm_extracted", memory_id=memory)

    gateway.restore("old")
    assert gateway.remember("rumour", origin="llm_extracted", memory_id="headless").outcome == "stored"


def test_a_text_that_is_forgotten_meanwhile_is_not_learned(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a machine that found no tombstone, when the text is forgotten before it is stored, it is refused."""
    machine, person = open_here(actor="agent:scout"), open_here()
    person.remember("rumour", memory_id="old")
    looks: list[str] = []

    def look_slowly(append: Append, keys: LedgerKeys, **what: Any) -> None:  # Any: as it is called
        refuse_buried(append, keys, **what)
        looks.append("no tombstone")
        person.forget("old")

    monkeypatch.setattr(beginning, "refuse_buried", look_slowly)
    with refused("MEMORY_DELETED"):
        machine.remember("rumour", origin="llm_extracted")

    assert looks == ["no tombstone"]
    assert [item.state for item in person.history("old").items] == ["forgotten"]


def test_a_tombstone_is_of_one_project(open_here: Here) -> None:
    """Given a text forgotten in one project, when another learns it, then nothing stands against it."""
    open_here().remember("rumour", memory_id="old")
    open_here().forget("old")

    assert open_here(project="borea").remember("rumour", origin="import").outcome == "stored"


def test_an_import_does_not_bring_it_back(gateway: Gateway, tmp_path: Path, ledger_url: str) -> None:
    """RC-32: given an imported text that was forgotten, when its row comes once more, then that row is refused."""
    line = lines_of(EXCERPT)[0]
    once, twice = packed(tmp_path / "once.gz", [line]), packed(tmp_path / "twice.gz", [line, line])
    assert gateway.import_peps(once).stored == 1
    (memory,) = {event.stream for event in written(ledger_url) if event.stream.startswith("mem_")}
    gateway.forget(memory)
    before = last_position(ledger_url)

    report = gateway.import_peps(twice)

    assert (report.stored, report.unchanged, [item.code for item in report.items]) == (0, 1, ["MEMORY_DELETED"])
    assert last_position(ledger_url) == before


def test_forgetting_is_done_once_under_a_key(gateway: Gateway, ledger_url: str) -> None:
    """RC-41: given a forget with a key, when it is sent again, then it is told again; without it, it is refused."""
    first = gateway.remember("a")
    done = gateway.forget(revision(first), idempotency_key="k")
    before = last_position(ledger_url)

    again = gateway.forget(revision(first), idempotency_key="k")

    assert (again.replayed, again.revision_id, again.position) == (True, done.revision_id, done.position)
    with refused("MEMORY_DELETED"):
        gateway.forget(revision(first))
    assert last_position(ledger_url) == before


# ---------------------------------------------------------------- who may


def test_an_agent_forgets_its_own_unverified_text(open_here: Here, ledger_url: str) -> None:
    """XC-09: given `write` alone, an agent forgets and restores what it wrote itself, and nothing else."""
    agent, person = open_here(actor="agent:scout"), open_here()
    own = agent.remember("mine", memory_id="own")
    person.remember("theirs", memory_id="theirs")
    agent.remember("mine, and vouched for", memory_id="vouched")
    person.admit("vouched", reason="I saw it")
    before = last_position(ledger_url)

    for memory in ("theirs", "vouched"):
        with refused("FORBIDDEN_ACTOR") as refusal:
            agent.forget(memory)
        assert refusal.details == {"permission": "correct"}
    assert last_position(ledger_url) == before

    assert agent.forget("own").revision_id == own.revision_id
    assert agent.restore("own").revision_id == own.revision_id


def test_an_agent_does_not_overrule_who_forgot_its_text(open_here: Here) -> None:
    """XC-09: given an agent's text that a person forgot, when the agent restores it, then it lacks `correct`."""
    agent, person = open_here(actor="agent:scout"), open_here()
    agent.remember("mine", memory_id="own")
    person.forget("own")

    with refused("FORBIDDEN_ACTOR") as refusal:
        agent.restore("own")
    assert refusal.details == {"permission": "correct"}


# ---------------------------------------------------------------- revoke


def test_a_dry_revocation_says_what_it_would_take(gateway: Gateway, ledger_url: str) -> None:
    """Given a head, when its revocation is tried dry, then the answer is the revision, and nothing is stored."""
    first = gateway.remember("a", memory_id="m")
    before = last_position(ledger_url)

    impact = gateway.revoke("m", reason="r", dry_run=True)

    assert (impact.revisions, impact.candidates, impact.episodes, impact.runs) == ((first.revision_id,), (), (), ())
    assert last_position(ledger_url) == before
    gateway.revoke("m", reason="r")
    with refused("MEMORY_REVOKED"):
        gateway.revoke(revision(first), reason="r", dry_run=True)
