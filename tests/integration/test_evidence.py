"""Evidence: kept once per project with its event, checked at each read, unknown outside its project."""

from pathlib import Path

import pytest
from blake3 import blake3

from gateway.service import Gateway
from ledger.limits import EVIDENCE_BYTES_MAX
from tests.house import last_position, refused, rows, tamper
from tests.integration.conftest import Here

BODY = b"\x00\xff not a text\n"
HASH = "b3:" + blake3(BODY).hexdigest()
OTHER = "b3:" + "0" * 64


def test_bytes_come_back_as_they_were(open_here: Here, tmp_path: Path) -> None:
    """Given bytes, when they are added, then they are found by their public hash, by another process too."""
    file = tmp_path / "a.bin"
    file.write_bytes(BODY)
    added = open_here().add_evidence(file, media_type="Application/Octet-Stream")
    assert (added.hash, added.size, added.stored, added.name) == (HASH, len(BODY), True, "a.bin")
    later = open_here()
    shown = later.show_evidence(HASH)
    assert (shown.media_type, shown.added_at, shown.added) == (
        "application/octet-stream", added.added_at, added.added,
    )  # fmt: skip
    assert later.read_evidence(HASH) == BODY


def test_the_same_bytes_are_kept_once_per_project(open_here: Here, ledger_url: str) -> None:
    """Given bytes in two projects, when they are added again, then nothing is stored, and each has its own stream."""
    atlas, other = open_here(), open_here(project="atlas2")
    first = atlas.add_evidence(BODY)
    other.add_evidence(BODY)
    before = last_position(ledger_url)
    again = atlas.add_evidence(BODY, name="another name")
    assert (again.added, again.name, last_position(ledger_url)) == (first.added, None, before)
    assert len({key for (key,) in rows(ledger_url, "SELECT evidence FROM corrigenda.evidence_object")}) == 2


def test_another_projects_evidence_is_as_unknown_as_any(open_here: Here) -> None:
    """RC-12: given evidence of another project, when it is asked for, then word for word as for what is nowhere."""
    open_here().add_evidence(BODY)
    other = open_here(project="atlas2")
    other.remember("so that the project is there")
    for ask in (other.show_evidence, other.read_evidence):
        with refused("EVIDENCE_NOT_FOUND") as foreign:
            ask(HASH)
        with refused("EVIDENCE_NOT_FOUND") as unknown:
            ask(OTHER)
        assert foreign.error.message == unknown.error.message and foreign.details == unknown.details


def test_another_projects_evidence_is_not_told_by_its_event(open_here: Here, tmp_path: Path) -> None:
    """RC-12: name, place and hash of evidence are shown, and exported, to whom its project is shown only."""
    atlas = open_here()
    atlas.add_evidence(BODY, name="secret.bin")
    position = next(item.seq for item in atlas.events() if item.type == "evidence.added.v1")
    open_here(project="atlas2").remember("so that the project is there")
    for project, is_told in (("atlas", True), (None, True), ("atlas2", False), ("nowhere", False)):
        agent = open_here(project=project, actor="agent:bot", permissions=["read", "export"])
        shown = agent.show_event(position)
        assert (shown.payload is not None) == is_told
        out = tmp_path / f"{project}.jsonl"
        agent.export_ledger(out, form="jsonl")
        assert ("secret.bin" in out.read_text()) == is_told


def test_a_mention_keeps_no_bytes_until_they_come(open_here: Here) -> None:
    """Given a mention, when its bytes are read, then EVIDENCE_NOT_FOUND; once they were added they are there."""
    gateway = open_here()
    mention = gateway.add_evidence(hash=HASH, uri="s3://bucket/a")
    assert (mention.size, mention.stored, mention.uri) == (0, False, "s3://bucket/a")
    with refused("EVIDENCE_NOT_FOUND"):
        gateway.read_evidence(HASH)
    assert gateway.add_evidence(BODY).stored
    assert gateway.read_evidence(HASH) == BODY


CHANGES = {
    "other bytes": "UPDATE corrigenda.evidence_object SET body = 'x'",
    "bytes after them": "UPDATE corrigenda.evidence_object SET body = body || '\\x00'::bytea",
    "none": "DELETE FROM corrigenda.evidence_object",
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_bytes_are_not_given_out(open_here: Here, ledger_url: str, change: str) -> None:
    """Given bytes that were changed or taken away in the table, when they are read, then INTEGRITY_BROKEN."""
    gateway = open_here()
    added = gateway.add_evidence(BODY)
    tamper(ledger_url, (CHANGES[change], ()))
    with refused("INTEGRITY_BROKEN") as broken:
        gateway.read_evidence(HASH)
    assert (broken.details["position"], broken.details["check"]) == (added.added, "payloads")


def test_at_most_16_mib_are_kept(open_here: Here) -> None:
    """Given 16 MiB, when they are added, then they are kept; with one byte more PAYLOAD_TOO_LARGE."""
    gateway = open_here()
    most = bytes(EVIDENCE_BYTES_MAX)
    assert gateway.read_evidence(gateway.add_evidence(most).hash) == most
    with refused("PAYLOAD_TOO_LARGE") as refusal:
        gateway.add_evidence(most + b"x")
    assert refusal.details["limit"] == EVIDENCE_BYTES_MAX


def test_a_dry_run_keeps_nothing(open_here: Here, ledger_url: str) -> None:
    """Given nothing, when evidence is added dry, then its hash is told, and neither event nor bytes are stored."""
    gateway = open_here()
    tried = gateway.add_evidence(BODY, dry_run=True)
    assert (tried.hash, tried.stored, tried.added) == (HASH, False, None)
    assert rows(ledger_url, "SELECT 1 FROM corrigenda.evidence_object") == []
    with refused("EVIDENCE_NOT_FOUND"):
        gateway.show_evidence(HASH)


BAD = {
    "nothing": lambda gateway: gateway.add_evidence(),
    "a hash without a uri": lambda gateway: gateway.add_evidence(hash=HASH),
    "bytes and a hash": lambda gateway: gateway.add_evidence(BODY, hash=HASH),
    "a hash in capitals": lambda gateway: gateway.add_evidence(hash=HASH.upper(), uri="x:y"),
    "a short hash": lambda gateway: gateway.show_evidence(HASH[:-1]),
    "a hash of another kind": lambda gateway: gateway.show_evidence("sha256:" + "0" * 64),
    "a uri without a scheme": lambda gateway: gateway.add_evidence(hash=HASH, uri="/etc/passwd"),
    "a uri with a line break": lambda gateway: gateway.add_evidence(hash=HASH, uri="x:y\nz"),
    "a media type with text": lambda gateway: gateway.add_evidence(BODY, media_type="text/plain; a b"),
    "a file that is not there": lambda gateway: gateway.add_evidence("/nowhere/at/all"),
    "a folder": lambda gateway: gateway.add_evidence(Path(__file__).parent),
}


def test_what_cannot_be_asked_is_refused(gateway: Gateway) -> None:
    """Given each bad request, when it is made, then VALIDATION_FAILED."""
    for ask in BAD.values():
        with refused("VALIDATION_FAILED"):
            ask(gateway)


def test_adding_needs_the_permission_to_write(open_here: Here) -> None:
    """Given a service, which may only read, when it adds evidence, then FORBIDDEN_ACTOR."""
    with refused("FORBIDDEN_ACTOR"):
        open_here(actor="service:backup").add_evidence(BODY)
