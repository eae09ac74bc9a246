"""A rebuild of the read models beside the live ones, the swap, and the comparison of what is live with the events."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import projections.rebuilding as rebuilding
from gateway.bootstrap import BareGateway, bring_up_to_date, open_bare
from ledger.errors import CorrigendaError
from ledger.store import Write
from ledger.verified import Recorded
from projections.models import ALL, TABLES
from projections.rebuilding import rebuild
from tests.house import refused, rows, tamper
from tests.integration.conftest import Here
from tests.ledgers import WrittenLedger, correct
from tests.tampering import FIRST, Tampering

EDITS = {
    "revision": "UPDATE corrigenda.revision SET project = 'prj_other' WHERE revision = 'rev_2'",
    "revision_state": "UPDATE corrigenda.revision_state SET to_seq = NULL WHERE revision = 'rev_1' AND to_seq = 4",
    "edge": "DELETE FROM corrigenda.edge WHERE newer = 'rev_2'",
    "log_entry": "UPDATE corrigenda.log_entry SET actor = 'pr_other' WHERE seq = 4",
    "correction": "INSERT INTO corrigenda.correction (ledger, gen, correction, project, visibility, origin, state,"
    " content_seq) SELECT ledger, gen, 'cor_planted', 'p', 'agent', 'human', 'active', 3 FROM corrigenda.head",
    "directory": "UPDATE corrigenda.directory SET seq = 3",
}
KEYS = {
    "revision": "rev_2",
    "revision_state": "rev_1 2",
    "edge": "supersedes rev_2 rev_1 4",
    "log_entry": "4",
    "correction": "cor_planted",
    "directory": FIRST,
}


class Interrupted(BaseException):
    """A process that is killed between two pages."""


ROOT = Path(__file__).parents[2]
CORRECTIONS_MAX = 200  # of each of eight writers: the history that is folded afterwards stays short

Looking = Callable[[], BareGateway]


@pytest.fixture
def looking(written: WrittenLedger, ledger_url: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Looking:
    """Return what opens the written ledger for whoever only looks."""
    monkeypatch.setenv("CORRIGENDA_LEDGER_KEY_FILE", str(home / "ledger.key"))
    return lambda: open_bare(database_url=ledger_url, home=home, create=False)


def live(url: str) -> tuple[int, int]:
    """Return the live generation and its projector version."""
    ((gen, projector),) = rows(url, "SELECT gen, projector FROM corrigenda.head")
    return gen, projector


def stored(url: str, gen: int) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of a generation, without its number, in one order."""
    query = "SELECT (to_jsonb(t) - 'gen')::text FROM corrigenda.{} t WHERE gen = %s ORDER BY 1"
    return {table: rows(url, query.format(table), gen) for table in TABLES}


def edit(url: str, statement: str) -> None:
    """Change a read model as the owner may."""
    tamper(url, (statement, ()))


# ---------------------------------------------------------------- rebuilding


def test_a_rebuild_makes_the_same_rows_and_swaps(written: WrittenLedger, ledger_url: str) -> None:
    """XC-02: a rebuilt generation is the live one row by row, and takes its place; appends go into it."""
    done = rebuild(written.ledger)
    assert (done.generation, done.retired, done.began_at, done.differences) == (2, 1, -1, ())
    assert done.rows == done.rows_before
    assert live(ledger_url) == (2, 2)
    assert stored(ledger_url, 1) == stored(ledger_url, 2)
    written.append(FIRST, correct("rev_3", "rev_4", "Deploys are on Fridays."))
    assert rows(ledger_url, "SELECT gen, state FROM corrigenda.revision WHERE revision IN ('rev_3', 'rev_4')"
                " ORDER BY gen, revision") == [(1, "active"), (2, "superseded"), (2, "active")]  # fmt: skip
    assert rebuild(written.ledger).differences == ()
    assert live(ledger_url) == (3, 2)


def test_an_interrupted_rebuild_goes_on_where_it_was(
    written: WrittenLedger, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed between two pages leaves what it built; the next one goes on from there."""
    monkeypatch.setattr(rebuilding, "PAGE", 3)

    def killed(done: int, total: int) -> None:
        if done >= 6:
            raise Interrupted

    with pytest.raises(Interrupted):
        rebuild(written.ledger, progress=killed)
    assert live(ledger_url) == (1, 2)
    ((gen, seq),) = rows(ledger_url, "SELECT gen, seq FROM corrigenda.rebuild")
    assert gen == 2 and seq in (5, 8)  # the page after the one that was told may have been stored
    done = rebuild(written.ledger)
    assert (done.generation, done.began_at, done.differences) == (2, seq, ())
    assert stored(ledger_url, 1) == stored(ledger_url, 2)


def test_a_killed_process_leaves_what_the_next_one_goes_on_with(open_here: Here) -> None:
    """A process that is killed outright, SIGKILL, holds nobody up: the next rebuild goes on with its generation."""
    gateway = open_here(embedder="none")
    for number in range(6):
        gateway.remember(f"fact {number}")
    program = (
        "import os, signal, corrigenda, projections.rebuilding as rebuilding\n"
        "rebuilding.PAGE = 3\n"
        f"with corrigenda.open({open_here.ledger_url!r}, home={str(open_here.home)!r}, actor='human:ana',"
        " embedder='none') as gateway:\n"
        "    gateway.rebuild(progress=lambda done, total: done > 5 and os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert live(open_here.ledger_url) == (1, 2)
    done = gateway.rebuild()
    assert (done.generation, done.differences) == (2, ())
    assert done.began_at in (5, 8)


@pytest.mark.parametrize("busy", [True, False])
def test_a_rebuild_lets_others_go_first(written: WrittenLedger, monkeypatch: pytest.MonkeyPatch, busy: bool) -> None:
    """While appends wait, every page is followed by a pause as long as the page took; else by none."""
    monkeypatch.setattr(rebuilding, "PAGE", 2)
    pauses: list[float] = []
    monkeypatch.setattr(rebuilding.time, "sleep", pauses.append)
    rebuild(written.ledger, is_idle=lambda: not busy)
    assert bool(pauses) == busy
    assert all(0 < pause <= rebuilding.PAUSE_MAX_S for pause in pauses)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_swap_that_is_cut_off_is_whole_or_not_there(
    written: WrittenLedger, ledger_url: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Killed before the swap's commit, the old generation is live; after it, the new one; either is whole."""
    whole = rebuilding._Run._try_swap

    def cut(run: rebuilding._Run) -> object:
        if when == "after":
            whole(run)
        raise Interrupted

    monkeypatch.setattr(rebuilding._Run, "_try_swap", cut)
    with pytest.raises(Interrupted):
        rebuild(written.ledger)
    monkeypatch.undo()
    assert live(ledger_url) == ((1, 2) if when == "before" else (2, 2))
    done = rebuild(written.ledger)
    assert (done.generation, done.differences) == ((2, ()) if when == "before" else (3, ()))


def test_one_rebuild_at_a_time(written: WrittenLedger, ledger_url: str) -> None:
    """A second rebuild is refused while one is under way, and carried out once that has ended."""
    refusals: list[CorrigendaError] = []

    def second(done: int, total: int) -> None:
        with refused("UNAVAILABLE") as refusal:
            rebuild(written.ledger)
        refusals.append(refusal.error)

    rebuild(written.ledger, progress=second)
    assert refusals and "already" in refusals[0].message
    assert rebuild(written.ledger).generation == 3


def test_an_event_that_cannot_be_taken_up_is_named(written: WrittenLedger, ledger_url: str) -> None:
    """A projector that fails stops the rebuild at its event, by position; mended, the rebuild goes on from there."""

    class Failing:
        """Takes up anything but corrections of revisions."""

        def writes(self, gen: int, recorded: Sequence[Recorded]) -> list[Write]:
            """Fail at position 4."""
            if any(item.entry.position == 4 for item in recorded):
                raise ValueError("no such event")
            return []

    with refused("INTEGRITY_BROKEN") as refusal:
        rebuild(written.ledger, projectors=[*ALL, Failing()])
    assert (refusal.details["position"], refusal.error.exit_code) == (4, 12)
    assert live(ledger_url) == (1, 2)
    done = rebuild(written.ledger)
    assert (done.generation, done.began_at, done.differences) == (2, 3, ())


def test_an_altered_event_stops_a_rebuild(written: WrittenLedger, ledger_url: str, tampering: Tampering) -> None:
    """What is rebuilt from is verified: an event that was altered since is met, and nothing is swapped."""
    tampering.flip("event", "envelope", 5)
    with refused("INTEGRITY_BROKEN") as refusal:
        rebuild(written.ledger)
    assert refusal.details["position"] == 5
    assert live(ledger_url) == (1, 2)


@pytest.mark.parametrize("gen", [7, -3, 0, (1 << 63) - 1])
def test_an_edited_generation_is_healed(written: WrittenLedger, ledger_url: str, gen: int) -> None:
    """Somebody who edits the head row's generation hides every row from writers; a rebuild brings them back."""
    edit(ledger_url, f"UPDATE corrigenda.head SET gen = {gen}")  # noqa: S608 - a number
    done = rebuild(written.ledger)
    assert {one.table for one in done.differences} == {"revision", "revision_state", "edge", "log_entry", "directory"}
    assert live(ledger_url)[0] == done.generation > 1
    written.append(FIRST, correct("rev_3", "rev_4", "Deploys are on Fridays."))
    assert rebuild(written.ledger).differences == ()


def test_a_wrong_row_is_reported_and_gone(written: WrittenLedger, ledger_url: str) -> None:
    """What was wrong in the generation that was live is named, and the rebuilt one is right."""
    edit(ledger_url, EDITS["revision"])
    (difference,) = rebuild(written.ledger).differences
    assert (difference.table, difference.key) == ("revision", "rev_2")
    assert rebuild(written.ledger).differences == ()


def test_rows_changed_while_they_are_built_are_not_swapped_in(
    written: WrittenLedger, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a half-built generation that somebody edits, then it is never swapped, and the next begins anew."""
    monkeypatch.setattr(rebuilding, "PAGE", 6)

    def killed(done: int, total: int) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        rebuild(written.ledger, progress=killed)
    edit(ledger_url, "UPDATE corrigenda.revision SET project = 'prj_other' WHERE gen = 2 AND revision = 'rev_1'")
    with refused("INTEGRITY_BROKEN") as refusal:
        rebuild(written.ledger)
    assert (refusal.error.exit_code, live(ledger_url)) == (12, (1, 2))
    done = rebuild(written.ledger)
    assert (done.generation, done.began_at, done.differences) == (3, -1, ())


# ---------------------------------------------------------------- while others write


def test_writers_write_on_while_it_is_rebuilt(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """XC-02: eight threads write while the models are rebuilt and checked; nothing is refused, all rows are right."""
    monkeypatch.setattr(rebuilding, "PAGE", 100)
    gateways = open_here(embedder="none"), open_here(embedder="none")
    first = [gateways[0].remember(f"fact {number}").memory_id or "" for number in range(8)]
    rebuilt, failed = threading.Event(), list[CorrigendaError]()

    def write(number: int) -> None:
        try:
            for turn in range(CORRECTIONS_MAX):
                gateways[number % 2].correct(first[number], f"fact {number}, {turn}")
                if rebuilt.is_set():
                    return
        except CorrigendaError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(first))]
    for thread in threads:
        thread.start()
    done = [gateways[0].rebuild() for _ in range(2)]
    with open_bare(database_url=open_here.ledger_url, home=open_here.home, create=False) as bare:
        checked = bare.check_models()
    written_meanwhile = checked.position - done[0].position
    rebuilt.set()
    for thread in threads:
        thread.join()
    assert (failed, [one.differences for one in (*done, checked)]) == ([], [(), (), ()])
    assert written_meanwhile > 0
    assert max(one.locked_ms for one in done) < 1_000


def test_the_rebuild_is_for_who_may_recover(open_here: Here) -> None:
    """An agent may not rebuild; the refusal names the permission."""
    gateway = open_here(actor="agent:planner", embedder="none")
    gateway.remember("anything")
    with refused("FORBIDDEN_ACTOR") as refusal:
        gateway.rebuild()
    assert refusal.details["permission"] == "recover"


# ---------------------------------------------------------------- versions


def test_an_older_process_is_refused_after_the_swap(
    written: WrittenLedger, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes with older projectors is refused once newer ones have swapped, and stores nothing."""
    edit(ledger_url, "UPDATE corrigenda.head SET projector = 3, gen = 2")
    before = rows(ledger_url, "SELECT count(*) FROM corrigenda.event")
    with refused("SCHEMA_MISMATCH") as refusal:
        written.append(FIRST, correct("rev_3", "rev_4", "Deploys are on Fridays."))
    assert refusal.details == {"expected": 2, "found": 3}
    with refused("SCHEMA_MISMATCH"), written.committer.hold():
        pass
    assert rows(ledger_url, "SELECT count(*) FROM corrigenda.event") == before


def test_older_read_models_are_to_be_rebuilt_before_a_write(written: WrittenLedger, ledger_url: str) -> None:
    """Read models of an older version refuse writes and name the mend; of those only counts are compared."""
    edit(ledger_url, "UPDATE corrigenda.head SET projector = 1")
    edit(ledger_url, "UPDATE corrigenda.revision SET meta_seq = NULL, kind = NULL")
    with refused("SCHEMA_MISMATCH") as refusal:
        written.append(FIRST, correct("rev_3", "rev_4", "Deploys are on Fridays."))
    assert "corrigenda projections rebuild" in refusal.error.message
    done = rebuild(written.ledger)
    assert (done.projector_before, done.projector, done.differences) == (1, 2, ())
    assert done.rows["revision"] == done.rows_before["revision"]
    written.append(FIRST, correct("rev_3", "rev_4", "Deploys are on Fridays."))


# ---------------------------------------------------------------- comparing with the events


@pytest.mark.parametrize("table", TABLES)
def test_one_edit_is_found_in_each_table(written: WrittenLedger, ledger_url: str, looking: Looking, table: str) -> None:
    """XC-02: one edit in any table is found by `verify`, which names table and row; nothing else is said to differ."""
    with looking() as bare:
        assert bare.check_models().ok
        assert bare.verify(projections=True).checks["projections"].status == "ok"
        edit(ledger_url, EDITS[table])
        found = bare.check_models()
        report = bare.verify(projections=True)
    ((only,), check) = (found.differences, report.checks["projections"])
    assert (found.exit_code, only.table, only.key) == (12, table, KEYS[table])
    assert only.expected != only.found
    assert (report.ok, report.exit_code, check.status) == (False, 12, "failed")
    assert f"in {table} {KEYS[table]}" in (check.expected or "")


def test_a_broken_ledger_is_not_compared_with(looking: Looking, tampering: Tampering) -> None:
    """What the events say is only a measure while they are what was written: else the ledger's break is the finding."""
    tampering.flip("event", "envelope", 5)
    with looking() as bare:
        report = bare.verify(projections=True)
        with refused("INTEGRITY_BROKEN") as refusal:
            bare.check_models()
    assert (report.exit_code, report.checks["projections"].status) == (10, "skipped")
    assert refusal.error.exit_code == 10


def test_a_part_of_a_ledger_is_not_compared_with(looking: Looking) -> None:
    """Read models are made of all events, so a range leaves them unchecked, and says so."""
    with looking() as bare:
        check = bare.verify(first=3, projections=True).checks["projections"]
    assert (check.status, "whole ledger" in (check.why or "")) == ("skipped", True)


def test_other_versions_are_not_compared(ledger_url: str, looking: Looking) -> None:
    """What another projector version wrote is neither right nor wrong to this one, and never passes for ok."""
    edit(ledger_url, "UPDATE corrigenda.head SET projector = 1")
    with looking() as bare:
        assert bare.verify(projections=True).exit_code == 12
        with refused("SCHEMA_MISMATCH"):
            bare.check_models()


def test_the_status_tells_generation_rows_and_lag(
    written: WrittenLedger, ledger_url: str, looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status says which generation is live, how many rows it has, what it lacks, and what is being built."""
    monkeypatch.setattr(rebuilding, "PAGE", 3)

    def killed(done: int, total: int) -> None:
        raise Interrupted

    with looking() as bare:
        found = bare.models_status()
        assert (found.generation, found.version, found.position, found.lag, found.rebuild) == (1, 2, 8, 0, None)
        assert found.rows == {
            "revision": 5, "revision_state": 10, "edge": 3, "log_entry": 8, "correction": 0, "directory": 1
        }  # fmt: skip
        with pytest.raises(Interrupted):
            rebuild(written.ledger, progress=killed)
        edit(ledger_url, "DELETE FROM corrigenda.log_entry WHERE seq > 6 AND gen = 1")
        found = bare.models_status()
    building = found.rebuild or {}
    assert (found.lag, building["generation"], building["version"]) == (2, 2, 2)
    assert building["position"] in (2, 5)


def test_an_embedded_ledger_is_brought_up_to_date_at_open(written: WrittenLedger, ledger_url: str) -> None:
    """Read models of an older version are made anew once, and that is said; those of this version are left alone."""
    edit(ledger_url, "UPDATE corrigenda.head SET projector = 1")
    written.ledger.catch_up()
    said: list[str] = []
    bring_up_to_date(written.ledger, said.append)
    bring_up_to_date(written.ledger, said.append)
    assert live(ledger_url) == (2, 2)
    assert len(said) == 1
