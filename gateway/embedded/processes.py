"""Which processes live, by the kernel's word: a socket that answers, a descriptor of a process.

No pid file is ever read for liveness: pids are reused, in containers within seconds. Standard library only,
because the watcher runs on this. Must never signal a pid that was not first held by a descriptor.
"""

import contextlib
import glob
import os
import select
import signal
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

STOP_FAST_S = 300.0  # a checkpoint on a slow disk may take minutes; only a stuck server gets a harder signal
STOP_HARD_S = 60.0
STOP_KILL_S = 10.0

_CONNECT_S = 5.0


class Identity(TypedDict, total=False):
    """The arguments of Popen by which a child runs as another user, its files closed to others."""

    user: int
    group: int
    extra_groups: list[int]
    umask: int


@dataclass(frozen=True, slots=True)
class Listener:
    """Who called `listen` on a socket. `pid` is 0 in another process namespace; an unknown `uid` is -1."""

    pid: int
    uid: int


def listener(path: str) -> Listener | None:
    """Return who listens on the Unix socket, or None if nobody does."""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(_CONNECT_S)
        try:
            door.connect(path)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return None
        except (BlockingIOError, TimeoutError):  # its queue is full: somebody lives there
            return Listener(0, -1)
        if hasattr(socket, "SO_PEERCRED"):
            credentials = door.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            pid, uid, _ = struct.unpack("3i", credentials)
            return Listener(pid, uid)
        (pid,) = struct.unpack("i", door.getsockopt(0, 0x002, 4))  # macOS: SOL_LOCAL, LOCAL_PEERPID
        return Listener(pid, -1)


class Process:
    """A process held by a descriptor where the kernel has them, so that a reused pid is never signalled."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = -1
        with contextlib.suppress(AttributeError, OSError):
            self._descriptor = os.pidfd_open(pid)

    def signal(self, number: int) -> None:
        """Send a signal; a process that has ended is no error."""
        with contextlib.suppress(ProcessLookupError):
            if self._descriptor >= 0:
                signal.pidfd_send_signal(self._descriptor, number)
            else:
                os.kill(self.pid, number)

    def gone(self, within_s: float) -> bool:
        """Wait up to `within_s` seconds; report whether the process has ended."""
        if self._descriptor >= 0:
            poller = select.poll()
            poller.register(self._descriptor, select.POLLIN)
            return bool(poller.poll(within_s * 1000))
        time.sleep(within_s)
        return not alive(self.pid)

    def close(self) -> None:
        """Let the descriptor go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def end(process: Process) -> None:
    """Stop a postmaster: sessions are cut and a checkpoint is written; harder only if it does not end."""
    for number, patience_s in (
        (signal.SIGINT, STOP_FAST_S),
        (signal.SIGQUIT, STOP_HARD_S),
        (signal.SIGKILL, STOP_KILL_S),
    ):
        process.signal(number)
        if process.gone(patience_s):
            return


def alive(pid: int) -> bool:
    """Report whether a process of that pid runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    return True


def standing_in(data: Path) -> list[int]:
    """Return the server processes whose working directory is `data` (Linux; elsewhere none are seen)."""
    found: list[int] = []
    try:
        wanted = data.stat()
    except (FileNotFoundError, NotADirectoryError):
        return found
    for entry in glob.glob("/proc/[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            pid = int(entry.split("/")[2])
            program = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
            if os.path.samestat(os.stat(entry), wanted) and b"postgres" in program:
                found.append(pid)
    return found


def clean_environment() -> dict[str, str]:
    """Return the environment of a server process: nothing of the caller's.

    Not PGDATA or PGOPTIONS, not LD_PRELOAD, no locale that translates messages, no HOME of root.
    """
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
