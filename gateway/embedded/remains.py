"""What a killed server, a removed one and a deleted home leave behind, and how it is cleared away.

Everything here happens under locks that prove nobody uses it. Must never remove a cluster whose home may come
back: only homes in the system's temporary directories, gone and unvisited for a week, are taken for deleted.
"""

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from gateway.embedded import places
from gateway.embedded.failures import ServerGone, trouble
from gateway.embedded.locks import EXCLUSIVE, try_take
from gateway.embedded.places import SOCKET, Place, names, recorded_home
from gateway.embedded.processes import Process, listener, standing_in

ABANDONED_S = 7 * 24 * 3600.0
TEMPORARY = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))

_POLL_S = 0.02
_SAY_AFTER_S = 2.0
_HIT_AFTER_S = 5.0
_HIT_AGAIN_S = 30.0


def clear(place: Place, say: Callable[[str], None]) -> int:
    """Wait for, then remove, what a killed postmaster left; return `server.lock`, exclusive.

    Called under `start.lock`, while nobody listens and no watcher lives. ServerGone if somebody listens
    after all.
    """
    lock = _wait_for_orphans(place, say)
    try:
        if others := standing_in(place.data):
            raise trouble(
                "BUSY",
                f"{place.data} must be used by no other server, and process {others[0]}, which this program "
                "did not start, uses it. Stop it, then try again.",
            )
        # The pids in these files may have been given to others, whom PostgreSQL would take for a server.
        for stale in (place.data / "postmaster.pid", place.run / SOCKET, place.run / f"{SOCKET}.lock"):
            stale.unlink(missing_ok=True)
    except BaseException:
        os.close(lock)
        raise
    return lock


def remove_cluster(state: Path) -> None:
    """Remove a state directory with its data and the shared memory that a killed postmaster may have left."""
    remove_shared_memory(state / "data")
    # Renamed first: another process looks into every state directory, and would make lock files in one that goes.
    leaving = state.with_name(f".{state.name}-{secrets.token_hex(4)}")
    state.rename(leaving)
    shutil.rmtree(leaving)


def remove_draft(data: Path) -> None:
    """Remove a half-made data directory if it is there; an initdb that died on a full disk left shared memory, too."""
    remove_shared_memory(data)
    shutil.rmtree(data, ignore_errors=True)


def remove_shared_memory(data: Path) -> None:
    """Remove the data directory's System V segment if no process is attached to it (Linux).

    Its key is the directory's inode number; PostgreSQL itself would recycle it only at the next start there.
    """
    with contextlib.suppress(OSError, ValueError):
        found = data.stat()
        for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]:
            key, number, _, _, _, _, attached, owner, *_ = map(int, line.split()[:8])
            ours = key & 0xFFFFFFFF == found.st_ino & 0xFFFFFFFF and owner == found.st_uid
            if ours and attached == 0:
                ctypes.CDLL(None).shmctl(number, 0, None)  # 0 is IPC_RMID


def remove_abandoned(*, unused_s: float = ABANDONED_S) -> list[Path]:
    """Remove root's clusters whose temporary home is gone and that nobody has used for `unused_s` seconds."""
    removed: list[Path] = []
    for state in places.states():
        with contextlib.suppress(OSError):
            if _looks_abandoned(state, unused_s) and _remove_if_unused(state, unused_s):
                removed.append(state)
    return removed


def abandoned() -> list[Path]:
    """Return root's state directories whose home is not where it was: moved, unmounted or deleted."""
    return [state for state in places.states() if _homeless(state)]


def _homeless(state: Path) -> bool:
    home = recorded_home(state)
    return home is not None and not names(home, state.name)


def _looks_abandoned(state: Path, unused_s: float) -> bool:
    """Look without taking or making a lock: other homes' servers must not notice that we passed by."""
    home = recorded_home(state)
    if home is None or not any(home.is_relative_to(folder) for folder in TEMPORARY):
        return False
    last_visit = (state / "clients.lock").stat().st_mtime
    quiet_s = time.time() - last_visit  # noqa: TID251 - compared with the file system's own clock
    return quiet_s >= unused_s and _homeless(state)


def _remove_if_unused(state: Path, unused_s: float) -> bool:
    with contextlib.ExitStack() as held:
        for name in ("start.lock", "clients.lock", "watcher.lock", "server.lock"):
            lock = try_take(state / name, EXCLUSIVE)
            if lock is None:
                return False
            held.callback(os.close, lock)
        if not _looks_abandoned(state, unused_s) or standing_in(state / "data"):
            return False
        remove_cluster(state)
        return True


def _wait_for_orphans(place: Place, say: Callable[[str], None]) -> int:
    """A backend outlives its postmaster for as long as its query runs, and keeps `server.lock`."""
    began, said, hit = time.monotonic(), False, float("-inf")
    while (lock := try_take(place.state / "server.lock")) is None:
        if listener(place.socket):  # it was only slow to begin
            raise ServerGone
        now = time.monotonic()
        if now - began > _SAY_AFTER_S and not said:
            said = True
            say("waiting for the last processes of a server that was killed")
        if now - began > _HIT_AFTER_S and now - hit > _HIT_AGAIN_S:
            hit = now
            _quit_orphans(place.data)
        time.sleep(_POLL_S)
    return lock


def _quit_orphans(data: Path) -> None:
    """End backends that have no postmaster: a busy one does not look up, and is of no use to anybody."""
    for pid in standing_in(data):
        process = Process(pid)
        if pid in standing_in(data):  # still the same one, now that a descriptor holds it
            process.signal(signal.SIGQUIT)
        process.close()
