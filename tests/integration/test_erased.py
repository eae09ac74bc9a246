"""Payloads that are gone: with a certificate they were erased and everything goes on, without one it is tampering."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corrigenda import CorrigendaError
from gateway.audit.bundles import verify_bundle
from gateway.service import Gateway
from gateway.shapes.replies.audit import Verification
from gateway.shapes.replies.upkeep import Transfer
from gateway.upkeep.bare import open_bare
from ledger.bundle import layout
from tests import erasing
from tests.hostile_tiled import records_of, tile_of
from tests.integration.conftest import Here
from tests.integration.test_export import Handed, exits, key_of, resigned
from tests.integration.test_transfer import elsewhere as elsewhere

SECRET = "Her number is 4711."
ERASED = "verified, with payloads erased with certificate"
NAMED = "era_01JZ8Q0000000000000000000E"


def remembered(here: Here) -> Gateway:
    """Return a gateway on a memory of two revisions, patched once, and another memory beside it."""
    gateway = here(embedder="none")
    gateway.remember(SECRET, memory_id="ana", tags=["phone"])
    gateway.patch("ana", tags=["phone", "private"], reason="it is hers")
    gateway.correct("ana", SECRET + " No, 4712.", reason="she said so")
    gateway.remember("Nothing to do with it.", memory_id="other")
    return gateway


def signing(here: Here) -> Path:
    """Return the file of the key that signs."""
    return here.home / "keys" / "signing.pem"


def verified(here: Here, first: int | None = None, last: int | None = None) -> Verification:
    """Return what a verification of the ledger, or of a part of it, finds."""
    with open_bare(database_url=here.ledger_url, home=here.home) as bare:
        return bare.verify(first=first, last=last)


def failure(here: Here) -> tuple[int, str, object, int | None]:
    """Return a failed verification's exit, and what its check of the payloads found, and where."""
    report = verified(here)
    check = report.checks["payloads"]
    assert not report.ok
    return report.exit_code, check.status, check.found, check.first_bad_position


# ---------------------------------------------------------------- the ledger


def test_what_was_erased_with_a_certificate_is_no_tampering(open_here: Here) -> None:
    """An erasure leaves the chain whole: verify ends with 0 and counts what is gone."""
    gateway = remembered(open_here)
    gone = erasing.erase(gateway, "ana", open_here.ledger_url, open_here.home)
    report = verified(open_here)
    assert (report.ok, report.exit_code, report.erased) == (True, 0, len(gone))
    assert len(gone) == 3


def test_a_missing_payload_without_an_event_is_tampering(open_here: Here) -> None:
    """Taken away by whoever owns the tables, and no event says so: exit 10 at the first of them."""
    open_here.broken = True
    gateway = remembered(open_here)
    gone = erasing.committed(gateway, "ana")
    erasing.delete(open_here.ledger_url, gone)
    assert failure(open_here) == (10, "failed", "none", gone[0])
    with pytest.raises(CorrigendaError) as caught:
        gateway.show("ana")
    assert caught.value.code == "INTEGRITY_BROKEN"


def test_an_erasure_without_its_certificate_is_not_accepted(open_here: Here) -> None:
    """Until the certificate is there verify says what is missing; readers go on and say that it was erased."""
    open_here.broken = True
    gateway = remembered(open_here)
    gone = erasing.erase(gateway, "ana", open_here.ledger_url, open_here.home, certified=False)
    found = "none, and an erasure without a certificate that the ledger's key signed"
    assert failure(open_here) == (10, "failed", found, gone[0])
    assert gateway.show("ana").state == "erased"


@pytest.mark.parametrize("fault", ["another_key", "altered", "another_erasure", "before", "too_many"])
def test_a_certificate_is_one_only_if_it_says_so_itself(open_here: Here, tmp_path: Path, fault: str) -> None:
    """Signed by another key, altered after it was signed, of another erasure, too early, or of another count."""
    open_here.broken = True
    gateway = remembered(open_here)
    gone = erasing.committed(gateway, "ana")
    origin, key = gateway._ledger.origin, signing(open_here)
    if fault == "another_key":
        key = tmp_path / "other.pem"
        key.write_bytes(_fresh_key())
        key.chmod(0o600)
    facts = erasing.certificate(origin, NAMED, len(gone) + (fault == "too_many"), key)
    if fault == "altered":
        facts = msgspec.structs.replace(facts, by="subject")
    if fault == "before":
        erasing.certify(gateway, NAMED, facts)
    erasing.say_erased(gateway, "ana", NAMED, gone)
    erasing.delete(open_here.ledger_url, gone)
    if fault != "before":
        erasing.certify(gateway, NAMED if fault != "another_erasure" else NAMED[:-1] + "F", facts)
    report = verified(open_here)
    assert (report.exit_code, report.checks["payloads"].status) == (10, "failed")


def _fresh_key() -> bytes:
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate().private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
    )


def test_an_erased_payload_that_is_there_is_tampering(open_here: Here) -> None:
    """A certificate says that it is destroyed, and it lies there: put back from a backup, or never deleted."""
    open_here.broken = True
    gateway = remembered(open_here)
    gone = erasing.committed(gateway, "ana")
    erasing.say_erased(gateway, "ana", NAMED, gone)
    erasing.delete(open_here.ledger_url, gone[1:])
    facts = erasing.certificate(gateway._ledger.origin, NAMED, len(gone), signing(open_here))
    erasing.certify(gateway, NAMED, facts)
    assert failure(open_here) == (10, "failed", "one", gone[0])


def test_a_part_of_a_ledger_looks_for_its_certificates_behind_it(open_here: Here) -> None:
    """A range that ends before the certificate is judged by it all the same."""
    gateway = remembered(open_here)
    gone = erasing.erase(gateway, "ana", open_here.ledger_url, open_here.home)
    report = verified(open_here, first=gone[0], last=gone[0])
    assert (report.exit_code, report.erased) == (0, 1)


# ---------------------------------------------------------------- readers


def test_readers_say_erased(open_here: Here) -> None:
    """Show, explain, history, diff, event and list go on without the text, before and after a restart."""
    gateway = remembered(open_here)
    gone = erasing.erase(gateway, "ana", open_here.ledger_url, open_here.home)
    for each in (gateway, open_here(embedder="none")):
        shown = each.show("ana")
        assert (shown.state, shown.content, shown.content_hash, shown.tags) == ("erased", None, None, ())
        told = each.explain("ana")
        assert [one.type for one in told.audit][-1] == "payload.erased.v1"
        assert {one.reason for one in told.audit} == {None}
        assert [(one.state, one.content) for one in each.history("ana", patch=True).items] == [("erased", None)] * 2

        event = each.show_event(gone[0])
        assert (event.erased, event.payload) == (True, None)
        assert not each.show_event(0).erased
        assert [one.memory_id for one in each.list_memories(states=["erased"]).items] == ["ana", "ana"]
        assert SECRET not in json.dumps(msgspec.to_builtins(each.explain("ana", at=gone[-1])))
    assert gateway.show("other").content == "Nothing to do with it."


def test_what_was_erased_is_not_found(open_here: Here) -> None:
    """The index lets go of it, as of whatever stands no more; afterwards the house is in order."""
    gateway = open_here()
    gateway.remember(SECRET, memory_id="ana")
    gateway.remember("Her cat has no number.", memory_id="cat")
    erasing.erase(gateway, "ana", open_here.ledger_url, open_here.home)
    assert [hit.memory_id for hit in gateway.search("number").hits] == ["cat"]


@pytest.mark.parametrize("act", ["correct", "restore"])
def test_what_was_erased_does_not_come_back(open_here: Here, act: str) -> None:
    """Neither a correction nor a restoration acts on it."""
    gateway = remembered(open_here)
    erasing.erase(gateway, "ana", open_here.ledger_url, open_here.home)
    with pytest.raises(CorrigendaError) as caught:
        gateway.correct("ana", "It is 4713.") if act == "correct" else gateway.restore("ana")
    assert caught.value.code in ("MEMORY_DELETED", "INVALID_TRANSITION")


# ---------------------------------------------------------------- bundles


def exported(here: Here, path: Path, **settings: object) -> Handed:
    """Return a bundle of a memory that was erased."""
    gateway = remembered(here)
    erasing.erase(gateway, "ana", here.ledger_url, here.home)
    if settings.pop("tiled", False):
        gateway.export_ledger(path, complete=True)
    else:
        gateway.export_supersession(["ana"], path, **settings)  # pyright: ignore[reportArgumentType] - a test's settings
    return Handed(path, key_of(here), signing(here))


@pytest.mark.parametrize("form", [{}, {"complete": True}, {"tiled": True}])
def test_a_bundle_says_what_was_erased(open_here: Here, tmp_path: Path, form: dict[str, bool]) -> None:
    """Both programs tell erased from withheld, and end with 0; of a whole log in tiles, too."""
    made = exported(open_here, tmp_path / "bundle", **form)
    found = verify_bundle(made.path, made.key)
    assert (found.verdict, found.exit_code) == (ERASED, 0)
    assert (found.payloads["erased"], found.payloads["withheld"]) == (3, 0)
    assert exits(made.path, made.key) == (0, 0)
    lines = [json.loads(line) for line in (made.path / layout.ERASURES).read_text().splitlines()]
    assert [sorted(line) for line in lines] == [["certified_by", "erased_by", "erasure", "seq"]] * 3
    told = [json.loads(line) for line in (made.path / layout.CHAIN).read_text().splitlines()]
    assert [one["payload"] for one in told if one["seq"] in {line["seq"] for line in lines}] == ["erased"] * 3
    report = json.loads((made.path / layout.REPORT).read_text())
    assert (report["payloads_erased"], report["payloads_withheld"]) == (3, 0)


def test_an_erasure_that_no_certificate_ends_is_withheld(open_here: Here, tmp_path: Path) -> None:
    """Without the certificate a bundle cannot say erased, and the payload counts as withheld."""
    open_here.broken = True
    gateway = remembered(open_here)
    erasing.erase(gateway, "ana", open_here.ledger_url, open_here.home, certified=False)
    gateway.export_supersession(["ana"], tmp_path / "bundle")
    found = verify_bundle(tmp_path / "bundle", key_of(open_here))
    assert (found.verdict, found.payloads["erased"]) == ("verified, with payloads withheld", 0)
    assert exits(tmp_path / "bundle", key_of(open_here)) == (0, 0)


@pytest.mark.parametrize("tiled", [False, True])
def test_the_list_of_what_was_erased_is_what_the_events_say(open_here: Here, tmp_path: Path, tiled: bool) -> None:
    """Row 22: one line of it missing, doubled, swapped or invented, signed by the issuer: both programs say 14."""
    made = exported(open_here, tmp_path / "bundle", tiled=tiled)
    first, second, third = (made.path / layout.ERASURES).read_text().splitlines(keepends=True)
    other = json.dumps({**json.loads(third), "seq": 1}, separators=(",", ":")) + "\n"
    for lines in {
        "missing": [first, third],
        "doubled": [first, first, second, third],
        "swapped": [second, first, third],
        "invented": [other, first, second, third],
    }.values():
        (made.path / layout.ERASURES).write_text("".join(lines))
        resigned(made)
        assert exits(made.path, made.key) == (14, 14)


def test_a_payload_that_was_erased_is_in_no_tile(open_here: Here, tmp_path: Path) -> None:
    """Where a certificate says that a payload is gone, its issuer cannot hand it out: both programs say 14."""
    gateway = remembered(open_here)
    gateway.export_ledger(tmp_path / "before", complete=True)
    gone = min(erasing.erase(gateway, "ana", open_here.ledger_url, open_here.home))
    gateway.export_ledger(tmp_path / "after", complete=True)
    (before,), (after,) = ([*(tmp_path / one / "tile/payloads/000.p").iterdir()] for one in ("before", "after"))
    records = records_of(after.read_bytes(), 4)
    assert records[gone] == b""
    records[gone] = records_of(before.read_bytes(), 4)[gone]
    after.write_bytes(tile_of(records, 4))
    made = Handed(tmp_path / "after", key_of(open_here), signing(open_here))
    resigned(made)
    assert exits(made.path, made.key) == (14, 14)
    found = verify_bundle(made.path, made.key).finding
    assert found is not None and found["check"] == "erasures"


# ---------------------------------------------------------------- exports of the whole, and imports


@pytest.mark.parametrize("form", ["jsonl", "csv", "bundle", "tiled"])
def test_no_form_of_an_export_holds_what_was_erased(open_here: Here, tmp_path: Path, form: str) -> None:
    """Lines, tables and bundles say erased of three payloads and withhold none; no file of them has a word of it."""
    gateway = remembered(open_here)
    gone = erasing.erase(gateway, "ana", open_here.ledger_url, open_here.home)
    out = tmp_path / "out"
    settings: dict[str, Any] = {"form": "bundle", "complete": True} if form == "tiled" else {"form": form}
    assert gateway.export_ledger(out, **settings).payloads_withheld == 0
    files = [one for one in out.rglob("*") if one.is_file()] if out.is_dir() else [out]
    assert not any(word.encode() in one.read_bytes() for one in files for word in (SECRET, "it is hers", "she said so"))
    if form == "csv":
        told = {int(row["seq"]): row["payload"] for row in csv.DictReader(io.StringIO(out.read_text()))}
    else:
        lines = (out / layout.CHAIN if out.is_dir() else out).read_text().splitlines()
        told = {row["seq"]: row["payload"] for row in map(json.loads, lines) if "seq" in row}
    assert {seq for seq, payload in told.items() if payload == "erased"} == set(gone)


@pytest.mark.parametrize("form", ["jsonl", "bundle"])
def test_an_import_leaves_an_erased_history_out(open_here: Here, elsewhere: Here, tmp_path: Path, form: str) -> None:
    """What was erased is named and not taken over, the erasure neither; the rest is, and again nothing twice."""
    gateway = remembered(open_here)
    erasing.erase(gateway, "ana", open_here.ledger_url, open_here.home)
    gateway.export_ledger(tmp_path / "out", form=form)
    there = elsewhere(actor="human:zoe", embedder="none")

    def take() -> Transfer:
        if form == "jsonl":
            return there.import_lines(tmp_path / "out")
        with open_bare(database_url=open_here.ledger_url, home=open_here.home) as bare:
            key = bare.public_key()["public_key"]
        return there.import_bundle(tmp_path / "out", key)

    report = take()
    assert {item.code for item in report.items} == {"INVALID_INPUT"}
    assert (report.rejected, report.stored) == (5, 4)  # her name, three of her events, and that they were erased
    assert [one.memory_id for one in there.list_memories().items] == ["other"]
    again = take()
    assert (again.stored, again.unchanged, again.rejected) == (0, report.stored, 5)


def test_an_import_leaves_what_is_erased_here_erased(open_here: Here, elsewhere: Here, tmp_path: Path) -> None:
    """A file from before the erasure does not bring a word back, neither at home nor where it was erased later."""
    gateway = remembered(open_here)
    gateway.export_ledger(tmp_path / "old.jsonl", form="jsonl")
    there = elsewhere(actor="human:zoe", embedder="none")
    there.import_lines(tmp_path / "old.jsonl")
    for here, opened in ((open_here, gateway), (elsewhere, there)):
        erasing.erase(opened, "ana", here.ledger_url, here.home)
        report = opened.import_lines(tmp_path / "old.jsonl", on_error="skip")
        assert report.stored == 0
        assert opened.show("ana").state == "erased"
        opened.export_ledger(tmp_path / f"{here is open_here}.jsonl", form="jsonl")
        assert SECRET not in (tmp_path / f"{here is open_here}.jsonl").read_text()
