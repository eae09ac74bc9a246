"""A checkpoint that was kept elsewhere is where trust in a lost anchor begins again."""

import shutil

import pytest

from gateway.bootstrap import open_bare
from gateway.upkeep.bare import BareGateway
from ledger.anchor import Anchor
from ledger.opening import anchor_path
from tests.house import rows
from tests.integration.conftest import Here


def bare(here: Here) -> BareGateway:
    """Open the tables as they lie."""
    return open_bare(database_url=here.ledger_url, home=here.home, create=False)


def trust(here: Here) -> tuple[str, int]:
    """Return how trust in the anchor began, and how far it reaches."""
    ((ledger, envelope),) = rows(here.ledger_url, "SELECT ledger, envelope FROM corrigenda.event WHERE seq = 0")
    origin = bytes(envelope).decode().split('"log":"', 1)[1].split('"', 1)[0]
    anchor = Anchor.find(anchor_path(here.home / "anchor", ledger), ledger=ledger, origin=origin)
    state = anchor.state()
    anchor.close()
    return state.trust, state.size


@pytest.fixture
def signed(open_here: Here) -> bytes:
    """Return a checkpoint of a ledger that has grown since, and whose anchor is gone."""
    open_here(embedder="none").remember("a", memory_id="m")
    with bare(open_here) as tables:
        note = tables.sign_checkpoint()["note"].encode()
    open_here(embedder="none").correct("m", "b")
    open_here.close()
    assert trust(open_here)[0] == "opening"
    shutil.rmtree(open_here.home / "anchor")
    return note


def test_verifying_against_a_checkpoint_builds_the_anchor_that_is_missing(open_here: Here, signed: bytes) -> None:
    """Given no anchor, then `verify --checkpoint` leaves one that says that it grew from a checkpoint."""
    with bare(open_here) as tables:
        assert tables.verify(checkpoint=signed).ok
    assert trust(open_here) == ("checkpoint", 6)
    open_here(embedder="none").remember("c")
    assert trust(open_here) == ("checkpoint", 7)


def test_verifying_without_one_builds_nothing(open_here: Here, signed: bytes) -> None:
    """Given no anchor and no checkpoint, then `verify` makes none; the next to open it trusts what it finds."""
    with bare(open_here) as tables:
        assert tables.verify().ok
    assert not (open_here.home / "anchor").exists()
    open_here(embedder="none")
    assert trust(open_here) == ("first_use", 6)
    with bare(open_here) as tables:
        assert tables.verify(checkpoint=signed).ok
    assert trust(open_here) == ("checkpoint", 6)


def test_a_checkpoint_that_is_not_borne_out_begins_no_trust(open_here: Here, signed: bytes) -> None:
    """Given a checkpoint with another root, then exit 11 and no anchor."""
    altered = signed[:-8] + b"AAAAAAA\n"
    with bare(open_here) as tables:
        report = tables.verify(checkpoint=altered)
    assert (report.ok, report.exit_code) == (False, 11)
    assert not (open_here.home / "anchor").exists()
