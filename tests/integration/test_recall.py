"""Corrections are found by meaning, by whom they are visible to, and make a block for a prompt that is only data."""

import shutil
from typing import Any

import pytest

from gateway.searching.prompt import CAVEAT
from gateway.service import Gateway
from ledger.errors import failure
from projections import embedders
from projections.embedders import Embedder
from projections.relay import Relay
from tests.house import WORDS, refused
from tests.integration.conftest import Here

SEED = {
    "agent": "ap-reconciler", "field": "chargeCode", "original_value": "THC", "corrected_value": "DTHC",
    "reason": "Vendor X labels destination THC as just THC", "entity_key": "vendor-x",
}  # fmt: skip
BLOCK = """\
<memory section="corrections" scope="current_user">
Past corrections (avoid repeating these mistakes):
- chargeCode: "THC" was corrected to "DTHC" [vendor-x] — Vendor X labels destination THC as just THC
</memory>"""


def record(gateway: Gateway, **given: object) -> str:
    """Record the seed's correction, with something else in it where that is given."""
    return gateway.record_correction(**{**SEED, **given}).correction_id or ""


def found(gateway: Gateway, query: str = "chargeCode THC", **asked: object) -> list[str]:
    """Return the corrections that a search finds, best first."""
    hits = gateway.search_corrections(query, **asked).hits  # pyright: ignore[reportArgumentType] - as it takes
    return [hit.correction_id for hit in hits]


def test_a_correction_is_found_by_its_agent_until_it_ends(gateway: Gateway) -> None:
    """AG-12, AG-16, AG-44: any user of that agent finds it, no other agent does, nor anybody without an id."""
    first = record(gateway)
    assert found(gateway, agent="ap-reconciler") == found(gateway, agent="ap-reconciler", user="uma") == [first]
    assert found(gateway, agent="other") == found(gateway) == []

    second = gateway.supersede_correction(first, corrected_value="OTHC").correction_id
    assert found(gateway, agent="ap-reconciler") == [second]
    gateway.revoke_correction(second or "", reason="a misreading")
    assert found(gateway, agent="ap-reconciler") == []


def test_the_scopes_that_a_reader_names_are_united(gateway: Gateway) -> None:
    """AG-13, AG-14, AG-16: a user's is for that user, a tenant's for everybody, in whichever project."""
    own, users, tenants = (
        record(gateway),
        record(gateway, visibility="user", user="uma"),
        record(gateway, visibility="tenant"),
    )
    assert found(gateway) == [tenants]
    assert set(found(gateway, user="uma")) == {users, tenants}
    assert set(found(gateway, user="uma", agent="ap-reconciler")) == {own, users, tenants}
    assert found(gateway, user="vera") == [tenants]


def test_an_entity_narrows_the_search_and_the_rest_still_fills_k(gateway: Gateway) -> None:
    """AG-15, AG-17: given nearer corrections of other entities, those of the one that was asked for fill k."""
    for number in range(12):
        record(gateway, entity_key=f"other-{number}")
    wanted = {record(gateway, entity_key="vendor-y", reason=f"reason {number} of another kind") for number in range(3)}

    assert set(found(gateway, agent="ap-reconciler", entity_key="vendor-y")) == wanted
    assert len(found(gateway, agent="ap-reconciler", k=12)) == 12
    assert gateway.search_corrections("chargeCode", agent="ap-reconciler", entity_key="none").empty_reason == "filtered"


def test_how_many_and_how_near_is_the_policys_to_say(gateway: Gateway) -> None:
    """AG-17, AG-18: three unless the policy or the caller says otherwise, and no floor unless one is given."""
    for number in range(5):
        record(gateway, reason=f"{number}")
    assert len(found(gateway, agent="ap-reconciler")) == 3
    gateway.set_policy({"corrections.top_k": "4", "corrections.min_score": "0.4"})
    assert len(found(gateway, agent="ap-reconciler")) == 4
    assert len(found(gateway, agent="ap-reconciler", k=1)) == 1

    far = gateway.search_corrections("nothing of the kind", agent="ap-reconciler")
    assert (far.hits, far.empty_reason) == ((), "no_match")
    assert len(found(gateway, "nothing of the kind", agent="ap-reconciler", min_score=0.0)) == 4


def test_memories_and_corrections_are_not_found_for_each_other(gateway: Gateway) -> None:
    """D26, AG-12: a search for memories never answers with a correction, nor the other way round."""
    memory = gateway.remember("chargeCode THC DTHC", agent="ap-reconciler", visibility="agent")
    correction = record(gateway)
    near = gateway.search("chargeCode THC", agent="ap-reconciler").hits
    assert [hit.revision_id for hit in near] == [memory.revision_id]
    assert found(gateway, agent="ap-reconciler") == [correction]


def test_what_an_agent_reported_is_found_and_marked(open_here: Here) -> None:
    """AG-50: unconfirmed until a person confirms it, in the answer and in the block."""
    reported = record(open_here(actor="agent:ap-reconciler"))
    gateway = open_here()

    (hit,) = gateway.search_corrections("chargeCode", agent="ap-reconciler").hits
    assert (hit.correction_id, hit.state) == (reported, "unconfirmed")
    assert "- (unconfirmed) chargeCode" in gateway.render_corrections("chargeCode", agent="ap-reconciler").text
    gateway.confirm_correction(reported)
    assert gateway.render_corrections("chargeCode", agent="ap-reconciler").text == BLOCK


def test_a_new_index_finds_the_same_corrections(open_here: Here) -> None:
    """AG-42: given an index that lost its records, the outbox brings back those that stand, and no others."""
    gateway = open_here()
    kept, gone = record(gateway), record(gateway, reason="wrong")
    gateway.revoke_correction(gone, reason="a misreading")
    assert found(gateway, agent="ap-reconciler") == [kept]
    open_here.close()
    shutil.rmtree(open_here.home / "index")
    assert found(open_here(), agent="ap-reconciler") == [kept]


def test_an_index_that_lies_about_corrections_is_not_believed(gateway: Gateway) -> None:
    """AG-43, G7: entries of nobody, of another kind or in another's place are dropped, and take no one's place."""
    memory, own = gateway.remember("THC"), record(gateway)
    assert found(gateway, agent="ap-reconciler") == [own]
    index: Any = gateway.index.replica  # Any: planting in the replica what no event put there
    space = index.partition_of(f"{own}/{own}")
    planted = [f"cor_01J9ZK{number:020d}/cor_01J9ZK{number:020d}" for number in range(30)]
    planted += [f"{memory.memory_id}/{memory.revision_id}", "nonsense"]
    memories = index.partition_of(f"{memory.memory_id}/{memory.revision_id}")
    for item in planted:
        index.put(space, item, WORDS.embed(["chargeCode THC"])[0])
    assert found(gateway, agent="ap-reconciler", k=1) == [own]
    index.put(memories, f"{own}/{own}", WORDS.embed(["THC"])[0])
    assert gateway.search("THC").warnings == ()
    for item in planted[:-2] + planted[-1:]:
        index.remove(item)
    index.put(memories, planted[-2], WORDS.embed(["THC"])[0])
    index.put(space, f"{own}/{own}", WORDS.embed(["THC"])[0])


# ---------------------------------------------------------------- the block


def test_the_seeds_correction_is_rendered_as_the_seed_shows(gateway: Gateway) -> None:
    """AG-53, AG-21: the four lines of the seed's example, byte for byte, with a budget and without."""
    correction = record(gateway)
    block = gateway.render_corrections("THC of Vendor X", agent="ap-reconciler")
    assert (block.text, block.correction_ids, block.memory_ids) == (BLOCK, (correction,), ())
    assert (block.truncated, block.warnings, block.failed) == (False, (), None)
    assert gateway.render_corrections("THC of Vendor X", agent="ap-reconciler", budget=500).text == BLOCK
    small = gateway.render_corrections("THC of Vendor X", agent="ap-reconciler", budget=20)
    assert (small.text, small.truncated) == ("", True)
    assert gateway.render_corrections("THC of Vendor X", agent="another").text == ""


def test_learnings_come_after_the_corrections(gateway: Gateway) -> None:
    """AG-46: at most so many learnings that the reader sees, marked, the caveat only with an unverified one."""
    record(gateway)
    mine = gateway.remember("holds explain most delays", kind="learning", user="uma").revision_id
    gateway.remember("holds explain nothing", kind="learning", user="vera")
    gateway.remember("holds are a fact")

    block = gateway.render_corrections("holds", agent="ap-reconciler", user="uma", learnings=3)
    assert block.memory_ids == (mine,)
    assert "- [unverified] holds explain most delays\n" + CAVEAT in block.text


def test_a_block_that_cannot_be_made_is_empty_and_says_why(
    gateway: Gateway, open_here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AG-20: the run goes on without it: no text, no exception, a warning and a code; bad input is still refused."""
    record(gateway)

    def fail(*_: object) -> None:
        raise failure("INDEX_UNAVAILABLE", "The index should answer, and it does not. Try again.")

    with monkeypatch.context() as patch:
        patch.setattr(Relay, "neighbours", fail)
        broken = gateway.render_corrections("THC", agent="ap-reconciler")
    assert (broken.text, broken.correction_ids, broken.failed) == ("", (), "INDEX_UNAVAILABLE")
    assert broken.warnings[0].startswith("INDEX_UNAVAILABLE: ")
    blind = open_here(embedder="none")
    assert blind.render_corrections("THC", agent="ap-reconciler").failed == "EMBEDDER_UNAVAILABLE"
    assert blind.search_corrections("THC").empty_reason == "no_embedder"
    with refused("VALIDATION_FAILED"):
        gateway.render_corrections("THC", agent="ap-reconciler", budget=0)


@pytest.mark.parametrize(
    "asked", [{"min_score": float("nan")}, {"min_score": 1.1}, {"k": 0}, {"query": " "}, {"agent": ""}, {"k": 10_001}]
)
def test_a_question_that_cannot_be_asked_is_refused(gateway: Gateway, asked: dict[str, Any]) -> None:
    """AG-18: a floor is a number from 0 to 1, and there is a question."""
    with refused("VALIDATION_FAILED"):
        gateway.search_corrections(**{"query": "THC", **asked})


def test_the_built_in_tokenizer_counts_what_it_would_cut() -> None:
    """AG-21: a budget is counted in the embedder's own tokens, beyond those that it embeds too."""
    builtin: Embedder | None = embedders.load("builtin")
    assert isinstance(builtin, embedders.TokenCounter)
    assert [builtin.count_tokens(text) for text in ("", "charge code", "charge " * 1_000)] == [0, 2, 1_000]
