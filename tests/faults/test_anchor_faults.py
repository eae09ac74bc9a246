"""The anchor when processes die, when they are many, and when its file cannot be written: no harm, no false alarm."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.bootstrap import open_gateway
from gateway.service import Gateway
from ledger import anchor_file, census, walk
from ledger.anchor import Anchor, AnchorState, Unusable
from ledger.errors import CorrigendaError
from ledger.opening import find_ledger
from ledger.store import Database
from tests.anchors import LEDGER, assert_holds, file_of, links, opened
from tests.faults.embedded_home import needs_root
from tests.faults.ledger_hands import Child, Document, assert_in_order, kill, race
from tests.house import last_position, refused, rows

FIRST = "the harbour closes at nine"
pytestmark = pytest.mark.usefixtures("counting")


def anchor_path_of(where: Document) -> Path:
    """Return where the ledger's anchor is."""
    database = Database(where["database_url"])
    try:
        return Path(where["home"]) / "anchor" / f"{find_ledger(database, 'local')}.sqlite"
    finally:
        database.close()


def state_of(where: Document) -> AnchorState:
    """Return how far the anchor of this home reaches."""
    path = anchor_path_of(where)
    origin = f"corrigenda.invalid/{path.stem}"
    anchor = Anchor.find(path, ledger=path.stem, origin=origin)
    try:
        anchor.examine()
        return anchor.state()
    finally:
        anchor.close()


def assert_anchored(where: Document) -> None:
    """Fail unless the anchor holds the whole ledger, and nothing half made lies beside it."""
    assert state_of(where).size == last_position(where["database_url"]) + 1
    assert {path.suffix for path in anchor_path_of(where).parent.iterdir()} <= {".sqlite", ".sqlite-wal", ".sqlite-shm"}
    assert_in_order(where)


# ---------------------------------------------------------------- killed

# The moment, when it comes, and how many entries the anchor holds then: None for no anchor.
FIRST_USE = [
    ("before event 0 is committed", 1, None),
    ("after event 0 is committed", 1, None),
    ("before the anchor is in its place", 1, None),
    ("after the anchor is in its place", 1, 0),
    ("before the anchor", 1, 0),
    ("inside the anchor's transaction", 1, 0),
    ("after the anchor", 1, 1),
    ("before the anchor", 2, 1),
    ("before the anchor's statement", 2, 1),
    ("after the anchor", 2, None),
]


@pytest.mark.parametrize(("moment", "nth", "held"), FIRST_USE)
def test_a_first_use_that_is_killed_heals_by_itself(where: Document, moment: str, nth: int, held: int | None) -> None:
    """Killed at any point from the first event to its anchor, then the next call does what was wished, once."""
    kill("remember", where, moment, nth=nth, texts=[FIRST], key="k")
    if held is not None:
        assert state_of(where).size == held
    with open_gateway(**where) as gateway:
        done = gateway.remember(FIRST, idempotency_key="k")
        assert done.warnings == ()
        assert gateway.explain(done.revision_id or "").content == FIRST
    assert rows(where["database_url"], "SELECT count(*) FROM corrigenda.revision") == [(1,)]
    assert_anchored(where)


@pytest.mark.parametrize("moment", ["after the commit", "before the anchor", "inside the anchor's transaction"])
def test_an_append_that_the_anchor_missed_is_caught_up(where: Document, moment: str) -> None:
    """Killed between commit and anchor, the event stands; a process that was there reads it and anchors it."""
    with open_gateway(**where) as gateway:
        gateway.remember("tea is brewed at ninety degrees")
        before = state_of(where).size
        kill("remember", where, moment, texts=[FIRST], key="k")
        assert state_of(where).size == before < last_position(where["database_url"]) + 1
        assert gateway.remember(FIRST, idempotency_key="k").replayed
        assert state_of(where).size == last_position(where["database_url"]) + 1
    assert_anchored(where)


def test_what_a_killed_maker_left_is_swept(where: Document) -> None:
    """A half-made file of a killed first use lies beside the anchor only until there is one."""
    kill("remember", where, "before the anchor is in its place", texts=[FIRST])
    folder = Path(where["home"]) / "anchor"
    assert [path.name.startswith(".") for path in folder.iterdir()] == [True]
    with open_gateway(**where) as gateway:
        gateway.remember(FIRST)
    assert_anchored(where)


# ---------------------------------------------------------------- many


@pytest.mark.parametrize(("writers", "readers"), [(2, 0), (1, 1), (2, 2)])
def test_processes_share_an_anchor_without_a_false_alarm(
    where: Document, tmp_path: Path, writers: int, readers: int
) -> None:
    """Given writers and readers on one anchor at once, no one of them is ever told of a loss, and all is anchored."""
    with open_gateway(**where) as gateway:
        gateway.remember("shared", memory_id="shared")
    before = last_position(where["database_url"])
    where = {**where, "embedder": "none"}
    ended = _bustle(where, tmp_path / "gate", writers, readers)
    assert last_position(where["database_url"]) == before + sum(ended)
    with open_gateway(**where) as gateway:
        assert gateway.search("shared").position == before + sum(ended)
    assert state_of(where).size == before + sum(ended) + 1


def _bustle(where: Document, gate: Path, writers: int, readers: int) -> list[int]:
    children = [
        Child("bustle", where, gate=str(gate), turns=24, writes=number < writers) for number in range(writers + readers)
    ]
    for child in children:
        child.ready()
    gate.touch()
    ended = [child.end() for child in children]
    assert [one.returncode for one in ended] == [0] * len(children), [one.complaints for one in ended]
    return [one.answers[-1]["stored"] for one in ended]


def test_first_uses_at_once_share_one_anchor(where: Document, tmp_path: Path) -> None:
    """Given processes that open a new home together, then there is one anchor, and it was kept since the opening."""
    race("visit", where, tmp_path / "gate", 4)
    found = state_of(where)
    assert (found.trust, found.size) == ("opening", last_position(where["database_url"]) + 1)


# ---------------------------------------------------------------- the log beside the file


def _log_damage() -> dict[str, Callable[[bytes], bytes | None]]:
    return {
        "gone": lambda raw: None,
        "empty": lambda raw: b"",
        "header": lambda raw: b"\0" * 32 + raw[32:],
        "a frame": lambda raw: raw[:5000] + bytes([raw[5000] ^ 1]) + raw[5001:],
        "cut": lambda raw: raw[: len(raw) * 2 // 3],
        "noise": lambda raw: bytes(byte ^ 0xA5 for byte in raw),
    }


@pytest.mark.parametrize("damage", _log_damage())
def test_a_damaged_log_costs_entries_and_invents_none(tmp_path: Path, damage: str) -> None:
    """What SQLite cannot read of the log was never written: the anchor ends earlier, and is caught up as ever."""
    path = file_of(tmp_path, 40)
    anchor = opened(path)
    for position in range(40, 60):
        anchor.extend(links(position, position + 1))
    after = tmp_path / "after"
    after.mkdir()
    for name in (path.name, f"{path.name}-wal"):
        shutil.copy(tmp_path / name, after / name)
    anchor.close()
    log = after / f"{path.name}-wal"
    changed = _log_damage()[damage](log.read_bytes())
    log.unlink() if changed is None else log.write_bytes(changed)
    again = opened(after / path.name)
    size = again.state().size
    assert 40 <= size < 60
    assert_holds(again, links(0, size))
    again.extend(links(size, 60))
    assert_holds(again, links(0, 60))
    again.examine()
    again.close()


def test_a_copy_in_memory_has_what_is_in_the_log(tmp_path: Path) -> None:
    """Given a file that may only be read, with a log that nobody has checkpointed, the copy ends where the log does."""
    path = file_of(tmp_path, 40)
    anchor = opened(path)
    anchor.extend(links(40, 60))
    copy = anchor_file.copied(path)
    assert copy.execute("SELECT size FROM meta").fetchall() == [(60,)]
    copy.close()
    anchor.close()


# ---------------------------------------------------------------- rights


@contextmanager
def without_rights(*paths: Path) -> Generator[None]:
    """Act on files as an ordinary user who owns these paths."""
    nobody = pwd.getpwnam("nobody")
    for path in paths:
        os.chown(path, nobody.pw_uid, -1)
    os.seteuid(nobody.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def reachable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that an ordinary user reaches."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="corrigenda-anchor-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def ordinary_opener(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Return what makes every anchor be opened as an ordinary user who owns a folder and what is in it."""
    real = Anchor.open

    def arrange(folder: Path) -> None:
        def opened_by_nobody(path: Path, **named: str) -> Anchor:
            with without_rights(folder, *folder.iterdir()):
                return real(path, **named)

        monkeypatch.setattr(Anchor, "open", opened_by_nobody)

    return arrange


READ_ONLY = {"the file": (0o700, 0o400), "the folder": (0o500, 0o600), "both": (0o500, 0o400)}


@needs_root
@pytest.mark.parametrize("what", READ_ONLY)
def test_what_may_only_be_read_is_believed_and_not_written(
    where: Document,
    reachable: Path,
    monkeypatch: pytest.MonkeyPatch,
    ordinary_opener: Callable[[Path], None],
    what: str,
) -> None:
    """Given a file or folder that is read-only, writes succeed with the warning, and a loss is still told."""
    monkeypatch.setenv("CORRIGENDA_ANCHOR", str(reachable / "anchor"))
    with open_gateway(**where) as gateway:
        gateway.remember(FIRST, memory_id="m")
    folder, file = READ_ONLY[what]
    (path,) = (reachable / "anchor").glob("*.sqlite")
    path.chmod(file)
    path.parent.chmod(folder)
    whole = path.read_bytes()
    ordinary_opener(path.parent)
    with open_gateway(**where) as gateway:
        done = gateway.correct("m", "the harbour closes at ten")
        assert done.outcome == "stored"
        assert [warning.partition(":")[0] for warning in done.warnings] == ["unanchored"]
        assert gateway.history("m").items[-1].content == "the harbour closes at ten"
    assert path.read_bytes() == whole
    path.parent.chmod(0o700)
    path.chmod(0o600)
    with open_gateway(**where) as gateway:
        assert gateway.remember("tea").warnings == ()


@needs_root
@pytest.mark.parametrize("what", ["the file", "the folder"])
def test_what_cannot_be_read_is_waited_for_and_not_made_anew(
    where: Document,
    reachable: Path,
    monkeypatch: pytest.MonkeyPatch,
    ordinary_opener: Callable[[Path], None],
    what: str,
) -> None:
    """Given an anchor that is there and cannot be read, then nothing is served without it, and nothing is lost."""
    monkeypatch.setenv("CORRIGENDA_ANCHOR", str(reachable / "anchor"))
    with open_gateway(**where) as gateway:
        gateway.remember(FIRST, memory_id="m")
    (path,) = (reachable / "anchor").glob("*.sqlite")
    (path if what == "the file" else path.parent).chmod(0o000)
    ordinary_opener(path.parent)
    with refused("UNAVAILABLE") as refusal:
        open_gateway(**where)
    assert str(path) in refusal.error.message
    path.parent.chmod(0o700)
    path.chmod(0o600)
    with open_gateway(**where) as gateway:
        assert gateway.history("m").items[-1].content == FIRST


@needs_root
def test_a_home_in_which_no_anchor_can_be_made(
    where: Document, reachable: Path, monkeypatch: pytest.MonkeyPatch, ordinary_opener: Callable[[Path], None]
) -> None:
    """Given a folder in which nothing can be made, writes are answered with the warning each time."""
    folder = reachable / "anchor"
    folder.mkdir(mode=0o500)
    monkeypatch.setenv("CORRIGENDA_ANCHOR", str(folder))
    ordinary_opener(folder)
    with open_gateway(**where) as gateway:
        for text in (FIRST, "tea"):
            (warning,) = gateway.remember(text).warnings
            assert warning.startswith("unanchored: the anchor cannot be made")
    assert list(folder.iterdir()) == []


# ---------------------------------------------------------------- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB in memory; skipped where none can be mounted."""
    path = tmp_path / "disk"
    path.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=755", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(line, check=False, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def filled(disk: Path) -> Path:
    """Fill a disk to the last byte, and return what fills it."""
    path = disk / "filling"
    with path.open("ab", buffering=0) as file:
        for step in (4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * step)
            except OSError:
                continue
    return path


def test_a_full_disk_costs_the_anchor_and_nothing_else(
    where: Document, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a full disk, writes succeed with the warning; with room again, the next one brings all into the anchor."""
    monkeypatch.setattr(walk, "WRITE_AGAIN_S", 0.05)
    monkeypatch.setenv("CORRIGENDA_ANCHOR", str(small_disk / "anchor"))
    with open_gateway(**where) as gateway:
        assert gateway.remember(FIRST).warnings == ()
        filling = filled(small_disk)
        warned = [gateway.remember(f"text {number}").warnings for number in range(40)]
        assert warned[-1] and warned[-1][0].startswith("unanchored: the anchor is not usable")
        assert len(gateway.search("text", k=50).hits) == 41
        filling.unlink()
        time.sleep(0.1)
        assert gateway.remember("room again").warnings == ()
    (path,) = (small_disk / "anchor").glob("*.sqlite")
    anchor = Anchor.find(path, ledger=path.stem, origin=f"corrigenda.invalid/{path.stem}")
    assert anchor.state().size == last_position(where["database_url"]) + 1
    anchor.examine()
    anchor.close()


def test_a_first_use_on_a_full_disk(where: Document, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given no room for an anchor at all, the ledger is made and written to, and nothing half made stays."""
    monkeypatch.setenv("CORRIGENDA_ANCHOR", str(small_disk))
    filling = filled(small_disk)
    with open_gateway(**where) as gateway:
        (warning,) = gateway.remember(FIRST, memory_id="m").warnings
        assert warning.startswith("unanchored")
    assert list(small_disk.iterdir()) == [filling]
    filling.unlink()
    with open_gateway(**where) as gateway:
        assert gateway.remember("room again").warnings == ()
        assert gateway.history("m").items[-1].content == FIRST


def test_a_process_that_opens_while_the_disk_is_full(
    where: Document, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a full disk and an anchor on it, a new process believes what it holds and goes on without adding to it."""
    monkeypatch.setenv("CORRIGENDA_ANCHOR", str(small_disk / "anchor"))
    with open_gateway(**where) as gateway:
        gateway.remember(FIRST, memory_id="m")
    filled(small_disk)
    with open_gateway(**where) as gateway:
        assert _warned(gateway)
        assert gateway.history("m").items[-1].content == FIRST


def _warned(gateway: Gateway) -> bool:
    return any(gateway.remember(f"text {number}").warnings for number in range(60))


def test_an_error_of_the_file_has_the_registrys_words(tmp_path: Path) -> None:
    """A passing fault is UNAVAILABLE and names the path; a lasting one is INTEGRITY_BROKEN by exit 11."""
    path = tmp_path / f"{LEDGER}.sqlite"
    for fault, code, exit_code in ((Unusable("x", passing=True), "UNAVAILABLE", 7), (Unusable("x"), None, 11)):
        error = walk.unfit_file(path, fault)
        assert isinstance(error, CorrigendaError)
        assert (error.code, error.exit_code) == (code or "INTEGRITY_BROKEN", exit_code)
        assert str(path) in error.message


def test_whoever_finds_a_ledger_that_was_made_a_moment_ago_opens_it(
    where: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a process that makes the ledger between two looks of this one, it is opened, and seen from its start."""
    real, looked = census.holds_ledger, list[bool]()

    def holds_ledger(database: Database) -> bool:
        if not looked:
            looked.append(True)
            with open_gateway(**where) as other:
                other.remember(FIRST, memory_id="m")
        return real(database)

    monkeypatch.setattr(census, "holds_ledger", holds_ledger)
    with open_gateway(**where) as gateway:
        assert gateway.history("m").items[-1].content == FIRST
    assert looked
    assert state_of(where).trust == "opening"
