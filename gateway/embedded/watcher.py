"""The watcher: starts the postmaster, and stops it when the last client has been gone for the grace period.

Two processes. The guardian is the postmaster's parent: it reaps it (a zombie's pid would look like a running
server to PostgreSQL) and makes a new watcher if one is killed. The watcher looks, each tick, whether a client
holds `clients.lock` or has visited since. Both hold `watcher.lock`: it is free only when neither lives. When
both are killed, the server stays up and the next client adopts it.

Standard library only, everything imported at the top: the virtual environment may be deleted while it waits.
Must never hold a pipe of the caller's, wait for a lock, or stop a server while a client holds its lock.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

from gateway.embedded.locks import EXCLUSIVE, open_lock, sign, try_lock, try_take, unlock_own
from gateway.embedded.processes import Identity, Process, clean_environment, end, listener

_UNREACHABLE_S = 3.0
_FIRST_SIGHT_S = 30.0  # less than a client waits for a watcher to make up its mind
_TICK_MAX_S = 1.0
_TICK_MIN_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the client asks of the watcher. Descriptors are numbers, inherited under the same number.

    `heirlooms` are the locks that the postmaster keeps for its life; an empty `argv` means: adopt whoever
    listens.
    """

    state: str
    socket: str
    grace_s: float
    watcher_lock: int
    heirlooms: list[int]
    argv: list[str]
    account: Identity

    def to_json(self) -> bytes:
        """Return the order as ASCII JSON; a path that is not UTF-8 keeps its bytes as lone surrogates."""
        return json.dumps(asdict(self)).encode()

    @property
    def tick_s(self) -> float:
        """Return the seconds between two looks."""
        return min(_TICK_MAX_S, max(_TICK_MIN_S, self.grace_s / 4))


class Attendance:
    """How long no client has been there, by the shared lock and by the time each arrival leaves on it."""

    def __init__(self, state: Path) -> None:
        self.lock = open_lock(state / "clients.lock")
        self._left = time.monotonic()
        self._visit = os.fstat(self.lock).st_mtime_ns

    def absent_s(self) -> float:
        """Return the seconds since a client was last seen."""
        busy = not try_lock(self.lock, EXCLUSIVE)
        if not busy:
            unlock_own(self.lock)
        visit = os.fstat(self.lock).st_mtime_ns
        if busy or visit != self._visit:
            self._left, self._visit = time.monotonic(), visit
        return time.monotonic() - self._left


class Reach:
    """Whether the socket's file is there: without it nobody can come, however well the server runs."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._last = time.monotonic()
        self._patience_s = _FIRST_SIGHT_S

    def lost(self) -> bool:
        """Report whether the file has been missing for three seconds, or for thirty after the start."""
        if os.path.exists(self._socket):
            self._last, self._patience_s = time.monotonic(), _UNREACHABLE_S
        elif os.path.exists(f"{self._socket}.lock"):  # written just before the socket: it has been there
            self._patience_s = _UNREACHABLE_S
        return time.monotonic() - self._last > self._patience_s


def main() -> None:
    """Read the order, leave the client at once, and guard."""
    order = Order(**json.loads(sys.stdin.buffer.read()))
    if os.fork():  # no thread exists here; the client reaps this one, init adopts the other
        os._exit(0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    guard(order)


def guard(order: Order) -> None:
    """Start or adopt the postmaster, and see that a watcher lives for as long as it does."""
    child = start(order) if order.argv else None
    server = Process(child.pid) if child else adopt(order.socket)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    while server is not None:
        status = wait_for(fork_watcher(order, server))
        if status == 0 or server.gone(0):
            break
        time.sleep(order.tick_s)
    if child is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child.pid, os.WNOHANG)


def wait_for(watcher: int) -> int:
    """Reap whatever ends until the watcher does; return the watcher's status."""
    while True:
        pid, status = os.wait()
        if pid == watcher:
            return status


def fork_watcher(order: Order, server: Process) -> int:
    """Return the pid of a new watcher, which never returns from here."""
    if pid := os.fork():
        return pid
    try:
        watch(order, server)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def start(order: Order) -> subprocess.Popen[bytes]:
    """Start the postmaster as our child; it and its backends keep the heirlooms, we do not."""
    child = subprocess.Popen(
        order.argv,
        stdin=subprocess.DEVNULL,
        cwd=order.state,
        env=clean_environment(),
        start_new_session=True,
        pass_fds=order.heirlooms,
        **order.account,
    )
    for descriptor in order.heirlooms:
        os.close(descriptor)
    return child


def adopt(socket: str) -> Process | None:
    """Return the process that listens, held by a descriptor, or None if there is none (any more)."""
    first = listener(socket)
    if first is None or not first.pid:
        return None
    process = Process(first.pid)
    return process if listener(socket) == first else None


def watch(order: Order, server: Process) -> None:
    """Return when the server has ended, by itself or because nobody needs it."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    sign(order.watcher_lock)
    attendance = Attendance(Path(order.state))
    reach = Reach(order.socket)
    while not server.gone(order.tick_s):
        if asked or reach.lost():
            end(server)
            return
        if attendance.absent_s() >= order.grace_s and stop_unless_somebody_comes(order, server, attendance):
            return


def stop_unless_somebody_comes(order: Order, server: Process, attendance: Attendance) -> bool:
    """Stop the server while holding both doors; report False, having done nothing, if either is taken."""
    try:
        door = try_take(Path(order.state) / "start.lock")
    except FileNotFoundError:  # the home was removed under us
        end(server)
        return True
    if door is None:
        return False
    try:
        if not try_lock(attendance.lock, EXCLUSIVE):
            return False
        sign(door)
        end(server)
        return True
    finally:
        os.close(door)
