"""A program that we did not write, Go's checksum database, believes our checkpoint and our proofs, and no altered ones.

It needs Go and the sources of `golang.org/x/mod` as Debian's golang-go and golang-golang-x-mod-dev install them.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from others import NO_GO, build, run

from ledger import digest, notes, tree
from ledger.keys import read_signing_key, verifier_key
from ledger.notes import Checkpoint
from tests.ledgers import WrittenLedger
from tests.tampering import write_nine

pytestmark = [pytest.mark.soak, pytest.mark.skipif(NO_GO is not None, reason=NO_GO or "")]


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the Go program."""
    return build(Path(__file__).with_name("sumdb.go"), tmp_path_factory.mktemp("go"))


@pytest.fixture
def claim(ledger_url: str, home: Path) -> Iterator[dict[str, Any]]:  # Any: JSON
    """What is claimed of entry 4 of a ledger of nine: the checkpoint, the key, the envelope and its proof."""
    with closing(WrittenLedger(ledger_url, home)) as written:
        write_nine(written)
        envelopes = [stored.envelope for stored in written.ledger.store.after(-1, 100)]
        leaves = [digest.leaf(envelope) for envelope in envelopes]
        key, origin = read_signing_key(written.files.signing), written.ledger.origin
        signed = notes.sign_checkpoint(Checkpoint(origin, len(leaves), tree.root(leaves)), key)
        yield {
            "Key": verifier_key(origin, key),
            "Note": signed.decode(),
            "Envelope": base64.b64encode(envelopes[4]).decode(),
            "Index": 4,
            "Proof": [base64.b64encode(one).decode() for one in tree.inclusion(4, leaves)],
        }


def said(checker: Path, claim: dict[str, Any], tmp_path: Path) -> tuple[int, str]:  # Any: JSON
    """What Go says of a claim: its exit, and its words."""
    path = tmp_path / "claim.json"
    path.write_text(json.dumps(claim), encoding="utf-8")
    return run(checker, path)


def test_go_opens_our_checkpoint_and_checks_our_proof(checker: Path, claim: dict[str, Any], tmp_path: Path) -> None:
    """The note's key, signature, size and root, and an entry's place in the tree, are what Go makes of them."""
    assert said(checker, claim, tmp_path) == (0, "ok 9")


@pytest.mark.parametrize("what", ["Key", "Note", "Envelope", "Index", "Proof"])
def test_go_refuses_what_was_altered(checker: Path, claim: dict[str, Any], tmp_path: Path, what: str) -> None:
    """The check can fail: another key, size, byte, place or hash is refused."""
    others = {
        "Key": notes.format_verifier_key(notes.VerifierKey(claim["Key"].split("+")[0], bytes(32))),
        "Note": claim["Note"].replace("\n9\n", "\n8\n"),
        "Envelope": base64.b64encode(base64.b64decode(claim["Envelope"]) + b" ").decode(),
        "Index": 5,
        "Proof": claim["Proof"][::-1],
    }
    assert said(checker, {**claim, what: others[what]}, tmp_path)[0] == 1
