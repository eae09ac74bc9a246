"""Recovery: whatever a kill interrupts is carried again, once in effect, and nothing that was stored is lost."""

from pathlib import Path

import pytest

from gateway.bootstrap import open_gateway
from gateway.service import Gateway
from ledger.errors import UnavailableError
from ledger.limits import ATTEMPTS_MAX
from projections.embedders import Vectors
from tests.faults.children import Counting
from tests.faults.ledger_hands import (
    Document,
    assert_in_order,
    generations,
    indexed,
    kill,
    outbox,
    race,
    read_ledger,
    revisions_in,
    rows,
    run,
    tree,
)
from tests.house import rows as house_rows
from tests.house import tamper

BEFORE = ["the moon is a rock", "tea is brewed at ninety degrees"]
TEXTS = ["the harbour closes at nine", "gulls nest on the north pier", "the ferry leaves from quay seven"]
NOT_IN_A_GENERATION = ["before the embedding", "after the embedding", "before the rename"]


@pytest.fixture
def begun(where: Document, counting: Counting) -> Document:
    """A ledger with two memories and a generation that holds them."""
    with opened(where) as gateway:
        for text in BEFORE:
            gateway.remember(text)
    assert len(indexed(Path(where["home"]))) == len(BEFORE)
    counting.embedded.clear()
    return where


def opened(where: Document) -> Gateway:
    """Return a gateway that has not replayed anything."""
    return open_gateway(**where, replay=False)


def first_hit(gateway: Gateway, text: str) -> str | None:
    """Return the text that a search for `text` finds first."""
    hits = gateway.search(text, k=1).hits
    return hits[0].content if hits else None


# ---------------------------------------------------------------- killed on the way into the index


@pytest.mark.parametrize("moment", NOT_IN_A_GENERATION)
def test_what_a_killed_relay_left_is_recovered_once(begun: Document, moment: str) -> None:
    """Killed before its effects are in a generation, they wait in the outbox; recover carries them, and only once."""
    home = Path(begun["home"])
    committed = kill("remember", begun, moment, texts=TEXTS).answers
    waiting = outbox(begun)
    for receipt in committed:
        assert waiting[receipt["revision_id"]] in [event["seq"] for event in receipt["events"]]
        assert receipt["revision_id"] not in revisions_in(indexed(home))
    assert len(committed) == len(TEXTS)

    with opened(begun) as gateway:
        done = gateway.recover()
        assert (done.ok, done.replayed, done.skipped, done.index["action"]) == (True, len(TEXTS), 0, "replayed")
        assert done.position == committed[-1]["position"]
        assert {receipt["revision_id"] for receipt in committed} <= revisions_in(indexed(home))
        assert [first_hit(gateway, text) for text in TEXTS] == TEXTS
        again = gateway.recover()
        assert (again.replayed, again.index["action"]) == (0, "none")
    with opened(begun) as gateway:
        assert gateway.recover().replayed == 0
    assert_in_order(begun)


def test_a_generation_that_was_renamed_counts_although_nobody_was_told(begun: Document, counting: Counting) -> None:
    """OH-26: killed after the rename, there is nothing to recover: the new generation is read, the old one swept."""
    committed = kill("remember", begun, "after the rename", texts=TEXTS).answers
    home = Path(begun["home"])
    assert len(generations(home)) == 2
    assert {receipt["revision_id"] for receipt in committed} <= revisions_in(indexed(home))
    with opened(begun) as gateway:
        assert gateway.recover().replayed == 0
        assert counting.embedded == []
        assert [first_hit(gateway, text) for text in TEXTS] == TEXTS
        gateway.remember("one more, so that a generation is written")
    assert len(generations(home)) == 1
    assert_in_order(begun)


def test_a_text_whose_vector_was_stored_is_not_embedded_again(begun: Document, counting: Counting) -> None:
    """Killed after the vectors were stored, the recovery takes them from the database."""
    kill("remember", begun, "after the embedding", texts=TEXTS)
    with opened(begun) as gateway:
        assert gateway.recover().replayed == len(TEXTS)
    assert counting.embedded == []
    assert_in_order(begun)


def test_a_half_written_generation_is_swept(begun: Document) -> None:
    """What a writer that was killed before the rename has left behind is gone after the next generation."""
    kill("remember", begun, "before the rename", texts=TEXTS)
    index = Path(begun["home"]) / "index"
    assert len(list(index.glob("*/.writing-*/manifest.json"))) == 1
    with opened(begun) as gateway:
        gateway.recover()
        assert list(index.glob("*/.writing-*")) == []
    assert_in_order(begun)


def test_a_plain_open_recovers_too(begun: Document) -> None:
    """Opening replays what waits, so that nothing is left for a recovery by hand."""
    kill("remember", begun, "before the embedding", texts=TEXTS)
    with open_gateway(**begun) as gateway:
        assert gateway.recover().replayed == 0
        assert [first_hit(gateway, text) for text in TEXTS] == TEXTS
    assert_in_order(begun)


def test_what_no_longer_stands_is_skipped(begun: Document, counting: Counting) -> None:
    """A revision that was corrected while its effect waited is counted as skipped, and never embedded."""
    kill("remember", begun, "before the embedding", texts=TEXTS[:1])
    (receipt,) = [item for item in outbox(begun).items() if item[1] == max(outbox(begun).values())]
    kill("correct", begun, "before the embedding", memory=receipt[0], texts=[TEXTS[1]])
    with opened(begun) as gateway:
        done = gateway.recover()
        assert (done.replayed, done.skipped) == (3, 1)
        assert counting.embedded == [TEXTS[1]]
        assert first_hit(gateway, TEXTS[0]) != TEXTS[0]
    assert_in_order(begun)


def test_an_item_that_was_revoked_while_it_waited_is_never_found(begun: Document) -> None:
    """A revocation that the killed process did not carry holds after the recovery, in the index and in answers."""
    (receipt,) = kill("remember", begun, "before the rename", texts=TEXTS[:1]).answers
    with opened(begun) as gateway:
        gateway.revoke(receipt["revision_id"], reason="it is not so")
        done = gateway.recover()
        assert (done.replayed, done.skipped) == (2, 1)
        assert receipt["revision_id"] not in revisions_in(indexed(Path(begun["home"])))
        assert first_hit(gateway, TEXTS[0]) != TEXTS[0]
    assert_in_order(begun)


def test_two_recoveries_at_once_do_no_harm(begun: Document, tmp_path: Path) -> None:
    """Two processes recover at the same moment: both end well, and a third finds nothing to do."""
    kill("remember", begun, "before the embedding", texts=TEXTS)
    ended = race("recover", begun, tmp_path / "gate", 2)
    assert max(one.answers[0]["replayed"] for one in ended) == len(TEXTS)
    with opened(begun) as gateway:
        assert gateway.recover().replayed == 0
        assert [first_hit(gateway, text) for text in TEXTS] == TEXTS
    assert_in_order(begun)


def test_a_text_that_ends_the_process_is_parked(begun: Document, counting: Counting) -> None:
    """OH-29: an attempt is counted before it is made, so what kills each process that tries it is parked, too."""
    url = begun["database_url"]
    ((seq, revision),) = house_rows(url, "SELECT seq, revision FROM corrigenda.outbox ORDER BY seq LIMIT 1")
    tamper(
        url,
        (
            "INSERT INTO corrigenda.outbox_failure SELECT ledger, seq, revision, %s, 'failing', %s, 'c', now() "
            "FROM corrigenda.outbox WHERE seq = %s",
            (counting.signature, ATTEMPTS_MAX - 2, seq),
        ),
        ("DELETE FROM corrigenda.embedding", ()),
    )
    for _ in range(2):
        kill("recover", begun, "before the embedding")
    with opened(begun) as gateway:
        done = gateway.recover()
        assert (done.ok, done.parked, counting.embedded) == (False, 1, BEFORE[1:])
        (parked,) = gateway.outbox(parked=True).items
        assert (parked.id, parked.attempts) == (revision, ATTEMPTS_MAX)
        assert gateway.retry_outbox([seq]).ok
    assert_in_order(begun)


def test_a_recovery_that_is_killed_itself_is_recovered(begun: Document) -> None:
    """A kill during the recovery leaves what a kill during the drain leaves."""
    kill("remember", begun, "before the embedding", texts=TEXTS)
    for moment in ("after the embedding", "before the rename"):
        kill("recover", begun, moment)
    with opened(begun) as gateway:
        assert gateway.recover().replayed == len(TEXTS)
    assert_in_order(begun)


def test_the_built_in_embedder_is_recovered_likewise(where: Document) -> None:
    """Killed before the real embedder was asked, the item is found by its meaning after the recovery."""
    where = {**where, "embedder": "builtin"}
    kill("remember", where, "before the embedding", texts=TEXTS)
    assert indexed(Path(where["home"])) == set()
    with opened(where) as gateway:
        done = gateway.recover()
        assert (done.replayed, done.index["action"]) == (len(TEXTS), "rebuilt")
        assert first_hit(gateway, "from where does the boat depart?") == TEXTS[2]
    assert_in_order(where)


def test_an_embedder_that_does_not_answer_leaves_its_texts_waiting(
    begun: Document, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write is acknowledged although the embedder fails, and is carried once the embedder answers again."""

    def failing(texts: list[str]) -> Vectors:
        raise UnavailableError("EMBEDDER_UNAVAILABLE", "No answer.")

    with monkeypatch.context() as patched, opened(begun) as gateway:
        patched.setattr(counting, "embed", failing)
        receipt = gateway.remember(TEXTS[0])
        assert receipt.outcome == "stored"
        gateway.close()
    assert receipt.revision_id not in revisions_in(indexed(Path(begun["home"])))
    with opened(begun) as gateway:
        assert gateway.recover().replayed == 1
    assert_in_order(begun)


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("file", ["vectors.f32", "items.json", "manifest.json"])
def test_a_damaged_generation_is_rebuilt_without_the_embedder(begun: Document, counting: Counting, file: str) -> None:
    """Its first byte changed: the generation is set aside, and the index is built again from the stored vectors."""
    home = Path(begun["home"])
    (newest,) = generations(home)
    body = bytearray((newest / file).read_bytes())
    body[0] ^= 1
    (newest / file).write_bytes(body)
    with opened(begun) as gateway:
        done = gateway.recover()
        assert (done.replayed, done.index["action"]) == (len(BEFORE), "rebuilt")
        assert done.index["why"].startswith("damaged")
        assert counting.embedded == []
        assert [first_hit(gateway, text) for text in BEFORE] == BEFORE
    assert [path.name for path in home.glob("index/*/*.set-aside")] == [f"{newest.name}.set-aside"]
    assert_in_order(begun)


def test_an_index_that_is_gone_is_rebuilt_without_the_embedder(begun: Document, counting: Counting) -> None:
    """A home without an index is no loss: everything that it held is made from what the database holds."""
    index = Path(begun["home"]) / "index"
    index.rename(index.with_name("elsewhere"))
    with opened(begun) as gateway:
        done = gateway.recover()
        assert (done.replayed, done.index["action"]) == (len(BEFORE), "rebuilt")
        assert counting.embedded == []
    assert_in_order(begun)


# ---------------------------------------------------------------- only asked


def derived(home: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return everything in the home but the anchor, which whoever reads the ledger takes further."""
    return {path: found for path, found in tree(home).items() if not path.startswith("anchor")}


@pytest.mark.parametrize("asked", ["check_only", "dry_run"])
@pytest.mark.parametrize("damaged", [False, True])
def test_a_recovery_that_only_asks_changes_nothing(begun: Document, asked: str, damaged: bool) -> None:
    """With check_only or dry_run neither the home nor the database is touched, not even when the gateway closes."""
    home = Path(begun["home"])
    kill("remember", begun, "before the embedding", texts=TEXTS)
    if damaged:
        (generations(home)[0] / "vectors.f32").write_bytes(b"not vectors")
    before = derived(home), rows(begun)
    with opened(begun) as gateway:
        done = gateway.recover(check_only=asked == "check_only", dry_run=asked == "dry_run")
        assert (done.replayed, done.index["action"]) == (0, "none")
        assert str(len(TEXTS) + len(BEFORE) * damaged) in done.index["why"]
    assert (derived(home), rows(begun)) == before
    with opened(begun) as gateway:
        assert gateway.recover().replayed == len(TEXTS) + len(BEFORE) * damaged
    assert_in_order(begun)


# ---------------------------------------------------------------- killed around the commit


@pytest.mark.parametrize("moment", ["while deciding", "before the append"])
def test_a_write_that_did_not_happen_happens_once_when_it_is_repeated(begun: Document, moment: str) -> None:
    """Killed before the commit, nothing is stored; the same request under the same key is then a first one."""
    before = rows(begun)
    assert kill("remember", begun, moment, texts=TEXTS[:1], key="the-key").answers == []
    assert rows(begun) == before
    with opened(begun) as gateway:
        first = gateway.remember(TEXTS[0], idempotency_key="the-key")
        second = gateway.remember(TEXTS[0], idempotency_key="the-key")
        assert (first.replayed, second.replayed) == (False, True)
    assert assert_in_order(begun).types["memory.remembered"] == len(BEFORE) + 1


def test_a_write_that_happened_unreported_is_told_when_it_is_repeated(begun: Document) -> None:
    """Killed between the commit and the receipt, the same request under the same key is told what it did: once."""
    assert kill("remember", begun, "after the commit", texts=TEXTS[:1], key="the-key").answers == []
    stored = read_ledger(begun)
    assert stored.types["memory.remembered"] == len(BEFORE) + 1
    with opened(begun) as gateway:
        receipt = gateway.remember(TEXTS[0], idempotency_key="the-key")
        assert (receipt.replayed, receipt.position) == (True, len(stored.events) - 1)
        assert gateway.show(receipt.revision_id or "").content == TEXTS[0]
        assert first_hit(gateway, TEXTS[0]) == TEXTS[0]
    assert len(assert_in_order(begun).events) == len(stored.events)


def test_a_correction_that_happened_unreported_is_told_when_it_is_repeated(begun: Document) -> None:
    """The retry of a correction is not refused because its first attempt has superseded what it corrects."""
    with opened(begun) as gateway:
        old = gateway.remember(TEXTS[0]).revision_id or ""
    words = {"memory": old, "texts": [TEXTS[1]], "key": "the-key"}
    assert kill("correct", begun, "after the commit", **words).answers == []
    with opened(begun) as gateway:
        receipt = gateway.correct(old, TEXTS[1], idempotency_key="the-key")
        assert (receipt.replayed, receipt.superseded) == (True, (old,))
    assert assert_in_order(begun).types["revision.corrected"] == 1


def test_a_child_that_is_not_killed_leaves_nothing_to_recover(begun: Document) -> None:
    """The same acts without a kill: so the tests above see the kill, not the way that children write."""
    committed = run("remember", begun, texts=TEXTS).answers
    assert {receipt["revision_id"] for receipt in committed} <= revisions_in(indexed(Path(begun["home"])))
    with opened(begun) as gateway:
        assert gateway.recover().replayed == 0
    assert_in_order(begun)
