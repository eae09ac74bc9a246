"""Who vouches for what, and that a search for what is verified finds it from then on."""

from cli.views import memories
from tests.house import last_position, refused
from tests.integration.conftest import Here

HASH = "b3:" + "0" * 64


def test_what_is_admitted_is_found_where_trust_is_asked_for(open_here: Here) -> None:
    """RM-97, LM-02: given a memory, when another person admits it, `min_trust=verified` finds it, with that word."""
    ana, bo = open_here(), open_here(actor="human:bo")
    first = ana.remember("the crane lifts twelve tonnes", memory_id="crane")
    assert [hit.trust for hit in ana.search("crane").hits] == ["unverified"]
    assert ana.search("crane", min_trust="verified").empty_reason == "filtered"

    bo.admit("crane", reason="I read the plate")

    for reader in (ana, bo):
        (hit,) = reader.search("crane", min_trust="verified").hits
        assert (hit.revision_id, hit.trust) == (first.revision_id, "verified")
        assert len(reader.search("crane").hits) == 1
    told = ana.explain("crane")
    assert (told.trust, told.audit[-1].reason, told.audit[-1].actor) == ("verified", "I read the plate", "human:bo")

    ana.correct("crane", "the crane lifts ten tonnes")
    assert ana.search("crane", min_trust="verified").hits == ()


def test_nobody_admits_a_text_of_their_own(open_here: Here, ledger_url: str) -> None:
    """RM-98: given one's own memory, SELF_APPROVAL_FORBIDDEN and nothing is stored, until the policy allows it."""
    ana = open_here()
    ana.remember("a", memory_id="m")
    before = last_position(ledger_url)

    with refused("SELF_APPROVAL_FORBIDDEN") as refusal:
        ana.admit("m", reason="I am sure")
    assert refusal.error.exit_code == 4
    assert last_position(ledger_url) == before

    ana.policy(verifier_is_producer="allow")
    ana.admit("m", reason="I am sure")
    assert ana.show("m").trust == "verified"

    ana.policy(verifier_is_producer="deny")
    ana.correct("m", "b")
    with refused("SELF_APPROVAL_FORBIDDEN"):
        ana.admit("m", reason="I am still sure")


def test_the_author_is_whoever_wrote_the_revision(open_here: Here) -> None:
    """RM-98: given Ana's text corrected by Bo, then Bo may not admit it, and Ana may."""
    ana, bo = open_here(), open_here(actor="human:bo")
    ana.remember("a", memory_id="m")
    bo.correct("m", "b")

    with refused("SELF_APPROVAL_FORBIDDEN"):
        bo.admit("m", reason="r")
    assert ana.admit("m", reason="r").outcome == "stored"


def test_evidence_that_is_not_kept_is_none(open_here: Here, ledger_url: str) -> None:
    """Given a hash of nothing that is kept here, when it is named as evidence, EVIDENCE_NOT_FOUND names it."""
    open_here().remember("a", memory_id="m")
    open_here(actor="human:bo").remember("b")
    before = last_position(ledger_url)

    with refused("EVIDENCE_NOT_FOUND") as refusal:
        open_here(actor="human:bo").admit("m", reason="r", evidence=[HASH])

    assert refusal.details == {"hashes": [HASH]}
    assert last_position(ledger_url) == before


def test_what_somebody_vouched_with_is_shown(open_here: Here) -> None:
    """RM-97: given evidence that is kept, when it is admitted with, then the revision and its story name the hashes."""
    ana, bo = open_here(), open_here(actor="human:bo")
    first = ana.remember("the crane lifts twelve tonnes", memory_id="crane")
    plate, log = (bo.add_evidence(body, name="plate").hash for body in (b"12 t", b"lifted 12 t"))
    before = ana.history("crane").position

    bo.admit("crane", reason="I read the plate", evidence=[plate, log])

    assert ana.show("crane").evidence == ana.history("crane").items[0].evidence == (plate, log)
    story = ana.explain("crane")
    assert (story.evidence, [entry.evidence for entry in story.audit]) == ((plate, log), [(), (plate, log)])
    assert ana.explain("crane", at=before).evidence == ()
    told = memories.explanation(story)
    assert told.count(plate) == told.count(log) == 2
    ana.correct("crane", "the crane lifts ten tonnes")
    assert (ana.show("crane").evidence, ana.show(first.revision_id or "").evidence) == ((), (plate, log))


def test_a_version_that_was_not_seen_is_not_admitted(open_here: Here) -> None:
    """RM-97: given a memory that has moved since it was read, when it is admitted as it was, then STALE_REVISION."""
    ana, bo = open_here(), open_here(actor="human:bo")
    ana.remember("a", memory_id="m")
    seen = bo.show("m").stream_version
    ana.correct("m", "b")

    with refused("STALE_REVISION"):
        bo.admit("m", reason="r", if_revision=seen)
