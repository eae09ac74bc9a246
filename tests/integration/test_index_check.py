"""The index held against the ledger: what is missing, stale, revoked or foreign is named, counted, and put right."""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.service import Gateway
from projections.embedders import Vectors
from projections.index.partitions import PartitionedIndex
from tests.house import WORDS, refused, rows, tamper
from tests.integration.conftest import Here

TEXTS = ["the harbour closes at nine", "gulls nest on the north pier", "the ferry leaves from quay seven"]
LOSE_ONE_VECTOR = "DELETE FROM corrigenda.embedding WHERE content = (SELECT max(content) FROM corrigenda.embedding)"
NOBODY = "mem_01J9ZKAAAAAAAAAAAAAAAAAAAA/rev_01J9ZKAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
def gateway(open_here: Here) -> Gateway:
    """A gateway whose index holds three memories and a correction, and was kept."""
    gateway = open_here()
    for text in TEXTS:
        gateway.remember(text)
    gateway.record_correction(agent="bot", original_value="closes at eight", corrected_value="closes at nine")
    assert gateway.recover().repaired == 0
    return gateway


def live(gateway: Gateway) -> PartitionedIndex:
    """Return the replica itself."""
    index = gateway.index.replica
    assert index is not None
    return index


def counts(gateway: Gateway) -> dict[str, int]:
    """Return what a check counts, without zeros; exit and verdict must agree."""
    found = gateway.verify_index()
    assert (found.ok, found.exit_code) == ((True, 0) if not found.differences and not found.unprobed else (False, 13))
    assert (found.digest == found.expected_digest) is found.ok
    return {kind: number for kind, number in found.counts.items() if number}


def lose_one(gateway: Gateway) -> None:
    live(gateway).remove(next(iter(live(gateway).items())))


def plant(gateway: Gateway) -> None:
    partition = next(iter(live(gateway).items().values()))
    live(gateway).put(partition, NOBODY, WORDS.embed(["planted"])[0])


def plant_nonsense(gateway: Gateway) -> None:
    live(gateway).put("[]", "nonsense", WORDS.embed(["planted"])[0])


def move(gateway: Gateway) -> None:
    item, _ = next(iter(live(gateway).items().items()))
    _, vector = live(gateway).entries([item])[item]
    live(gateway).put("elsewhere", item, vector)


def exchange_vector(gateway: Gateway) -> None:
    item, partition = next(iter(live(gateway).items().items()))
    live(gateway).put(partition, item, WORDS.embed(["another text"])[0])


HARMS: dict[str, tuple[Callable[[Gateway], None], str]] = {
    "lost": (lose_one, "missing"),
    "planted": (plant, "foreign"),
    "nonsense": (plant_nonsense, "foreign"),
    "moved": (move, "stale"),
    "another vector": (exchange_vector, "stale"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_what_differs_is_named_and_put_right(gateway: Gateway, harm: str) -> None:
    """AG-42, AG-43: given one entry lost, planted, moved or exchanged, it is named, and mended once."""
    change, kind = HARMS[harm]
    change(gateway)
    found = gateway.verify_index()
    assert (found.counts[kind], [one.kind for one in found.differences]) == (1, [kind])
    assert gateway.verify_index().counts == found.counts, "a check changes nothing"
    looked = gateway.recover(check_only=True)
    assert (looked.repaired, "entries to repair: 1" in looked.index["why"]) == (0, True)
    assert gateway.recover().repaired == 1
    assert counts(gateway) == {}
    assert gateway.recover().repaired == 0


def test_a_withdrawn_entry_that_stayed_is_told_from_a_superseded_one(gateway: Gateway) -> None:
    """Given entries of a revoked, a corrected and a retired revision put back, each is named as what it is."""
    revoked, corrected, retired = (gateway.remember(text) for text in ("tea is cold", "tea is warm", "tea is hot"))
    gateway.search("tea")
    kept = live(gateway).entries([f"{one.memory_id}/{one.revision_id}" for one in (revoked, corrected, retired)])
    gateway.revoke(revoked.revision_id or "", reason="no")
    gateway.correct(corrected.revision_id or "", "tea is lukewarm")
    gateway.retire(retired.revision_id or "", reason="old")
    gateway.search("tea")
    for item, (partition, vector) in kept.items():
        live(gateway).put(partition, item, vector)
    found = {one.revision_id: one.kind for one in gateway.verify_index().differences}
    assert found == {revoked.revision_id: "revoked", corrected.revision_id: "stale", retired.revision_id: "stale"}
    assert gateway.recover().repaired == 3
    assert counts(gateway) == {}


def test_lost_outbox_rows_and_a_lost_index_lose_no_memory(gateway: Gateway, open_here: Here) -> None:
    """G9: given outbox rows deleted and the index with them, the check says what is missing, and recover finds it."""
    gateway.close()
    shutil.rmtree(open_here.home / "index")
    tamper(open_here.ledger_url, ("DELETE FROM corrigenda.outbox", ()))
    open_here.broken = True
    again = open_here.unreplayed()
    assert counts(again) == {"missing": 4}
    assert again.recover(check_only=True).index["why"].endswith("entries to repair: 4")
    done = again.recover()
    assert (done.replayed, done.repaired, done.index["action"]) == (0, 4, "rebuilt")
    assert [again.search(text, k=1).hits[0].content for text in TEXTS] == TEXTS
    again.close()
    assert counts(open_here.unreplayed()) == {}


def test_a_plain_start_mends_what_the_read_models_count_otherwise(
    gateway: Gateway, open_here: Here, caplog: pytest.LogCaptureFixture
) -> None:
    """G9: the same loss, and no recover: the start counts, sees that too little is held, says so and mends it."""
    gateway.close()
    shutil.rmtree(open_here.home / "index")
    tamper(open_here.ledger_url, ("DELETE FROM corrigenda.outbox", ()))
    open_here.broken = True
    with caplog.at_level(logging.WARNING):
        again = open_here()
    assert [again.search(text, k=1).hits[0].content for text in TEXTS] == TEXTS
    assert [record.message for record in caplog.records if record.message.startswith("index.")] == [
        "index.drift",
        "index.repaired",
    ]


def test_what_waits_in_the_outbox_is_no_difference(gateway: Gateway) -> None:
    """A frozen replica is compared at its own cursor: what is to be carried counts as pending, whatever it changes."""
    first = gateway.search(TEXTS[0], k=1).hits[0]
    gateway.index.frozen = True
    gateway.remember("one more")
    gateway.correct(first.revision_id, "the harbour closes at ten")
    found = gateway.verify_index()
    assert (found.ok, found.pending, found.cursor < found.position) == (True, 3, True)
    gateway.index.frozen = False
    gateway.search("x")
    assert gateway.verify_index().pending == 0


def test_what_changed_above_the_cursor_without_an_outbox_row_is_a_difference(gateway: Gateway, open_here: Here) -> None:
    """Given the rows of a change deleted before they were carried, then nothing waits, and that is said."""
    first = gateway.search(TEXTS[0], k=1).hits[0]
    gateway.index.frozen = True
    gateway.revoke(first.revision_id, reason="no")
    gateway.remember("one more")
    tamper(open_here.ledger_url, ("DELETE FROM corrigenda.outbox WHERE seq > %s", [gateway.index.cursor]))
    open_here.broken = True
    assert counts(gateway) == {"missing": 1, "revoked": 1}
    gateway.index.frozen = False
    assert gateway.recover().repaired == 2
    assert counts(gateway) == {}


@pytest.mark.parametrize("edit", ["DELETE FROM corrigenda.embedding", "UPDATE corrigenda.embedding SET seal = '\\x00'"])
def test_an_entry_whose_stored_vector_nothing_vouches_for_is_found(
    gateway: Gateway, open_here: Here, edit: str
) -> None:
    """Given stored vectors deleted or edited, every entry is in doubt; recover embeds and stores them again."""
    tamper(open_here.ledger_url, (edit, ()))
    assert counts(gateway) == {"unstored": 4}
    assert gateway.recover().repaired == 4
    assert counts(gateway) == {}


def test_two_exchanged_stored_vectors_are_found(gateway: Gateway, open_here: Here) -> None:
    """Given two stored vectors swapped with their seals, neither is believed."""
    ((one, first), (two, second)) = rows(
        open_here.ledger_url, "SELECT content, vector FROM corrigenda.embedding LIMIT 2"
    )
    swap = "UPDATE corrigenda.embedding SET vector = %s WHERE content = %s"
    tamper(open_here.ledger_url, (swap, [second, one]), (swap, [first, two]))
    assert counts(gateway) == {"unstored": 2}
    assert gateway.recover().repaired == 2


def test_only_the_first_differences_are_named_and_all_are_counted(gateway: Gateway) -> None:
    """Thirty planted entries are thirty, of which ten are named."""
    for number in range(30):
        live(gateway).put("[]", f"mem_{number}/rev_{number}", WORDS.embed([f"planted {number}"])[0])
    found = gateway.verify_index()
    assert (found.counts["foreign"], len(found.differences)) == (30, 10)
    assert gateway.recover().repaired == 30


def test_a_check_of_an_index_that_is_not_open_changes_nothing(gateway: Gateway, open_here: Here) -> None:
    """Given a generation on the disk that lacks entries, then it is read, judged and left, for recover to mend."""
    lose_one(gateway)
    gateway.index.changed()
    gateway.index.keep()
    gateway.index.frozen = True  # else the end of this process would mend it
    gateway.close()
    before = {path: path.read_bytes() for path in open_here.home.rglob("index/*/*/*")}
    with open_here.unreplayed() as again:
        assert counts(again) == {"missing": 1}
    assert {path: path.read_bytes() for path in open_here.home.rglob("index/*/*/*")} == before
    with open_here.unreplayed() as again:
        assert again.recover().repaired == 1
    with open_here.unreplayed() as again:
        assert counts(again) == {}


def test_an_entry_that_does_not_come_up_is_probed_out(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that answers with the wrong entry is found, though every entry is as it should be."""
    index = live(gateway)
    real = index.search
    monkeypatch.setattr(index, "search", lambda partitions, vector, k: real(partitions, -vector, k))
    found = gateway.verify_index()
    assert (found.ok, sum(found.counts.values()), len(found.unprobed) > 0) == (False, 0, True)
    monkeypatch.undo()
    assert gateway.verify_index().probed == 4


def test_equal_texts_stand_in_for_each_other_in_a_probe(gateway: Gateway) -> None:
    """Given the same text in many memories, no probe fails because another of them came first."""
    for number in range(20):
        gateway.remember("the same text", memory_id=f"same-{number}")
    gateway.search("same")
    assert counts(gateway) == {}


def test_without_an_embedder_there_is_no_index_to_check(open_here: Here) -> None:
    """NOT_CONFIGURED says what to do."""
    gateway = open_here(embedder="none")
    for act in (gateway.verify_index, gateway.rebuild_index):
        with refused("NOT_CONFIGURED"):
            act()


def test_an_index_of_another_embedder_is_not_compared(
    gateway: Gateway, open_here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a generation that another embedder built, then it is named, and nothing is said of its entries."""
    gateway.close()
    with monkeypatch.context() as patched:
        patched.setattr(type(WORDS), "signature", "provider=test;model=others")
        other = open_here.unreplayed()
        for act in (other.verify_index, other.rebuild_index):
            with refused("INDEX_UNAVAILABLE"):
                act()
    assert counts(open_here.unreplayed()) == {}


# ---------------------------------------------------------------- built anew


def test_a_rebuild_gives_the_same_index_and_asks_the_embedder_nothing(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OH-31, G5: given a good index, the one built beside has its digest; a bad one is made good."""
    before = gateway.verify_index()
    gateway.correct(gateway.search(TEXTS[1], k=1).hits[0].revision_id, "gulls nest on the south pier")
    gateway.search("x")
    middle, seen = gateway.verify_index(), list[tuple[int, int]]()

    def refusing(texts: Sequence[str]) -> Vectors:
        raise AssertionError("the embedder was asked")

    with monkeypatch.context() as patched:
        patched.setattr(WORDS, "embed", refusing, raising=False)
        done = gateway.rebuild_index(progress=lambda at, of: seen.append((at, of)))
    after = gateway.verify_index()
    assert (done.entries, done.entries_before, done.embedded, done.kept) == (4, 4, 0, True)
    assert before.digest != middle.digest == after.digest == after.expected_digest
    assert seen[-1][0] == seen[-1][1] > 0
    plant(gateway)
    lose_one(gateway)
    gateway.rebuild_index()
    assert counts(gateway) == {}


def test_a_rebuild_embeds_what_has_no_stored_vector(gateway: Gateway, open_here: Here) -> None:
    """Given stored vectors deleted, just those texts are embedded."""
    tamper(open_here.ledger_url, (LOSE_ONE_VECTOR, ()))
    assert gateway.rebuild_index().embedded == 1
    assert counts(gateway) == {}


def test_a_rebuild_that_fails_leaves_the_live_index(
    gateway: Gateway, open_here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given no answer from the embedder for a text that needs one, then searches are answered as before."""
    tamper(open_here.ledger_url, (LOSE_ONE_VECTOR, ()))
    with monkeypatch.context() as patched, refused("EMBEDDER_UNAVAILABLE"):
        patched.setattr(WORDS, "embed", _failing, raising=False)
        gateway.rebuild_index()
    assert [gateway.search(text, k=1).hits[0].content for text in TEXTS] == TEXTS


def test_what_is_written_during_a_rebuild_is_in_the_new_index(gateway: Gateway) -> None:
    """Another thread's writes go on, and the index that is swapped in has taken them up, revocations too."""
    first = gateway.search(TEXTS[0], k=1).hits[0]

    def meanwhile(at: int, of: int) -> None:
        gateway.revoke(first.revision_id, reason="no")
        gateway.remember("written meanwhile")

    done = gateway.rebuild_index(progress=meanwhile)
    assert (done.carried, done.entries) == (2, 4)
    assert counts(gateway) == {}


# ---------------------------------------------------------------- little by little


def test_a_scrubber_keeps_to_its_budget_and_comes_round(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call compares one batch at least; after enough of them all that was wrong is mended."""
    monkeypatch.setattr("projections.comparing.BATCH", 1)
    plant(gateway)
    lose_one(gateway)
    scrubber: Any = gateway._scrubber  # Any: how far it is, is its own affair
    mended = [gateway.scrub_index(0.0) for _ in range(20)]
    assert (sum(mended), max(mended), scrubber.rounds > 0) == (2, 1, True)
    assert counts(gateway) == {}


def test_a_short_process_mends_a_little_when_it_ends(gateway: Gateway, open_here: Here) -> None:
    """What one batch holds is right in the generation that is kept at close."""
    exchange_vector(gateway)
    gateway.close()
    for _ in range(4):  # where it begins is drawn
        open_here().close()
    assert counts(open_here.unreplayed()) == {}


def test_a_scrubber_leaves_a_broken_ledger_to_others(gateway: Gateway, open_here: Here) -> None:
    """Given an event that cannot be read, then scrubbing is put off, and closing is not kept from its work."""
    tamper(open_here.ledger_url, ("UPDATE corrigenda.payload SET body = '\\x7b7d' WHERE seq > 1", ()))
    open_here.broken = True
    assert gateway.scrub_index(1.0) == 0
    with refused("INTEGRITY_BROKEN"):
        gateway.verify_index()
    gateway.close()


# ---------------------------------------------------------------- damaged on the disk


def cut(path: Path) -> None:
    (path / "vectors.f32").write_bytes((path / "vectors.f32").read_bytes()[:-5])


def flip(path: Path) -> None:
    content = bytearray((path / "vectors.f32").read_bytes())
    content[7] ^= 0x40
    (path / "vectors.f32").write_bytes(content)


def lose_a_file(path: Path) -> None:
    (path / "items.json").unlink()


def swap_items(path: Path) -> None:
    items = [[key, held[::-1]] for key, held in json.loads((path / "items.json").read_bytes())]
    (path / "items.json").write_text(json.dumps(items))
    content = (path / "items.json").read_bytes()
    digest = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    rewrite(path, lambda manifest: manifest["files"].update({"items.json": digest}))


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:  # Any: JSON
    manifest = json.loads((path / "manifest.json").read_bytes())
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


def rewriting(**fields: object) -> Callable[[Path], None]:
    """Return the damage of a manifest that says something else."""
    return lambda path: rewrite(path, lambda manifest: manifest.update(fields))


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut": (cut, "damaged"),
    "a flipped bit": (flip, "damaged"),
    "a missing file": (lose_a_file, "damaged"),
    "swapped, with new digests": (swap_items, "damaged: the manifest does not carry the seal"),
    "another ledger's": (rewriting(ledger="01J9ZKAAAAAAAAAAAAAAAAAAAA"), "foreign"),
    "another life's": (rewriting(incarnation="7"), "foreign"),
    "newer than the ledger": (rewriting(position=1_000), "damaged: the manifest does not carry the seal"),
    "another model's": (rewriting(signature="provider=x;model=y"), "damaged: the manifest does not carry the seal"),
    "a later cursor": (rewriting(position=1), "damaged: the manifest does not carry the seal"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_damage_ends_in_a_right_answer_and_a_line_in_the_log(
    gateway: Gateway, open_here: Here, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """OH-21: given the only generation damaged, then a start says so, sets it aside, and answers as before."""
    gateway.close()
    (path,) = open_here.home.glob("index/*/generation-*")
    change, why = DAMAGE[damage]
    change(path)
    with caplog.at_level(logging.WARNING):
        again = open_here()
    assert again.index.opened_with.startswith(why)
    assert [again.search(text, k=1).hits[0].content for text in TEXTS] == TEXTS
    assert "generation.refused" in [record.message for record in caplog.records]
    assert [one.name for one in open_here.home.glob("index/*/*.set-aside")] == [f"{path.name}.set-aside"]


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_disk_that_takes_nothing_more_costs_no_answer(
    gateway: Gateway, open_here: Here, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Given a full disk or a failing rename, then the index goes on in memory, and the next start is told the rest."""
    with monkeypatch.context() as patched:
        where: Any = os if call == "fsync" else Path  # Any: whose call it is
        patched.setattr(where, call, _full)
        gateway.index.frozen = False
        (fresh,) = [gateway.remember("the pier is closed", memory_id="pier")]
        assert gateway.search("the pier is closed", k=1).hits[0].revision_id == fresh.revision_id
        with refused("INDEX_UNAVAILABLE"):
            gateway.rebuild_index()
        assert gateway.search("the pier is closed", k=1).hits[0].revision_id == fresh.revision_id
        gateway.close()
    assert open_here().search("the pier is closed", k=1).hits[0].revision_id == fresh.revision_id


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def _failing(texts: Sequence[str]) -> Vectors:
    raise RuntimeError("no answer")
