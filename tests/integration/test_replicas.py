"""Replicas report how far they are; what none needs is removed; one that missed it makes it again from the events."""

import shutil
from pathlib import Path

import pytest

from gateway.bootstrap import open_bare
from tests.house import refused, rows, tamper
from tests.integration.conftest import Here
from tests.roles import as_owner

FIRST, SECOND, THIRD = "the harbour closes at nine", "gulls nest on the pier", "the ferry leaves from quay seven"
AGO = "UPDATE corrigenda.replica SET seen_at = seen_at - interval '8 days'"


def sweep(url: str, home: Path, **how: bool) -> dict[str, object]:
    """Sweep the outbox as the owner."""
    with open_bare(database_url=as_owner(url), home=home, create=False) as bare:
        return bare.sweep_outbox(**how)


def outbox(url: str) -> list[int]:
    """Return the positions that the outbox holds."""
    return [seq for (seq,) in rows(url, "SELECT seq FROM corrigenda.outbox ORDER BY seq")]


@pytest.fixture
def two_homes(open_here: Here, ledger_url: str, home: Path, tmp_path: Path) -> Path:
    """A ledger of three memories, which its home holds; an old copy of the home, in which only the first is."""
    old = tmp_path / "old"
    with open_here() as gateway:
        gateway.remember(FIRST)
    shutil.copytree(home, old)
    (next(old.glob("index/*")) / "replica").unlink()
    with open_here() as gateway:
        second = gateway.remember(SECOND)
        gateway.remember(THIRD)
        gateway.forget(second.revision_id or "")
    open_here.broken = True  # the oracle wants every row of the outbox
    return old


def test_a_replica_reports_its_durable_generation(open_here: Here, ledger_url: str, home: Path) -> None:
    """One row a home, whatever processes use it, at the position of its newest generation."""
    for text in (FIRST, SECOND):
        with open_here() as gateway:
            position = gateway.remember(text).position
    assert rows(ledger_url, "SELECT incarnation, cursor FROM corrigenda.replica") == [(1, position)]


def test_what_every_live_replica_has_is_removed(open_here: Here, ledger_url: str, home: Path, two_homes: Path) -> None:
    """A live replica holds back what it has not carried; one that nobody has seen for a week holds back nothing."""
    with open_here(home=two_homes) as slow:
        slow.index.open()
        slow.index.frozen = True
        before = outbox(ledger_url)
        assert sweep(ledger_url, home, dry_run=True) == {"mark": before[0], "rows": 1, "replicas": 0, "dry_run": True}
        assert outbox(ledger_url) == before
        assert sweep(ledger_url, home)["rows"] == 1
        tamper(ledger_url, (f"{AGO} WHERE cursor = %s", (before[0],)))
        done = sweep(ledger_url, home)
        assert (done["rows"], done["replicas"], outbox(ledger_url)) == (len(before) - 1, 1, [])


@pytest.mark.parametrize("from_nothing", [False, True])
def test_a_replica_below_the_mark_makes_the_rows_again(
    open_here: Here, ledger_url: str, home: Path, two_homes: Path, from_nothing: bool
) -> None:
    """OH-31: an old generation, or none, comes to the same index as one that carried every row."""
    sweep(ledger_url, home)
    assert outbox(ledger_url) == []
    if from_nothing:
        shutil.rmtree(two_homes / "index")
    with open_here(home=two_homes) as late:
        assert late.index.pending() == 0
        assert {hit.content for hit in late.search("the harbour").hits} == {FIRST, THIRD}
        assert len(late.index) == 2
        fourth = late.remember(SECOND)
        assert fourth.revision_id in {hit.revision_id for hit in late.search(SECOND).hits}


def test_what_was_swept_still_waits_for_a_home_without_an_index(
    open_here: Here, ledger_url: str, home: Path, two_homes: Path
) -> None:
    """Given swept rows, when a home has no index, then status and outbox list count and name those it makes again."""
    with open_here() as gateway:
        made = gateway.record_correction(agent="x", original_value="nine", corrected_value="ten")
        gateway.confirm_correction(made.correction_id or "") if made.state == "unconfirmed" else None
        gateway.revoke_correction(made.correction_id or "", reason="a misreading")
    shutil.rmtree(two_homes / "index")
    open_here.home = two_homes
    with open_here.unreplayed() as before:
        told = before.outbox()
    sweep(ledger_url, home)
    assert outbox(ledger_url) == []
    with open_bare(database_url=ledger_url, home=two_homes, create=False) as bare:
        assert (bare.status().outbox["pending"], bare.status().index_pending) == (len(told.items), len(told.items))
        assert bare.index_status().lag == len(told.items)
    with open_here.unreplayed() as late:
        again, checked = late.outbox(), late.verify_index()
        assert (checked.ok, checked.pending) == (True, 2)
        assert (again.items, again.pending) == (told.items, told.pending) and told.pending == 6
        assert [item.seq for item in late.outbox(limit=2).items] == [item.seq for item in told.items[:2]]
    open_here.home = home
    with open_here() as whole:
        assert (whole.outbox().items, whole.status().outbox["pending"]) == ((), 0)


def test_old_rows_go_without_any_replica(open_here: Here, ledger_url: str, home: Path, two_homes: Path) -> None:
    """Rows of more than seven days ago are removed though nobody reports."""
    tamper(ledger_url, ("DELETE FROM corrigenda.replica", ()))
    assert sweep(ledger_url, home)["rows"] == 0
    tamper(ledger_url, ("UPDATE corrigenda.log_entry SET at = '2020-01-01T00:00:00.000000Z'", ()))
    assert sweep(ledger_url, home)["rows"] == 4


def test_what_waits_for_a_check_is_kept(open_here: Here, ledger_url: str, home: Path, two_homes: Path) -> None:
    """What the late check for contradictions has not read is not removed, whatever the index holds."""
    tamper(ledger_url, ("UPDATE corrigenda.carried SET seq = 0", ()))
    assert sweep(ledger_url, home)["rows"] == 0


def test_the_writer_removes_nothing(open_here: Here, ledger_url: str, home: Path, two_homes: Path) -> None:
    """Who serves a ledger is no member of the maintainer."""
    with open_bare(database_url=ledger_url, home=home, create=False) as bare, refused("FORBIDDEN_ACTOR"):
        bare.sweep_outbox()
    assert len(outbox(ledger_url)) == 4
