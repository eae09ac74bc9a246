"""Hands for the embedded server's fault tests: people, homes, clients, and the cleaning up after them.

A `House` is one temporary home of one person. Whatever was started in it is ended when it is closed, and nothing
else is: processes are ended as children of ours, or because they stand in this house's own data directory.
"""

import contextlib
import functools
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from gateway.embedded import attach, places, remains
from gateway.embedded.locks import holder, is_free
from gateway.embedded.processes import Identity, alive, listener, standing_in
from ledger.errors import CorrigendaError

ROOT = Path(__file__).resolve().parents[2]
CLIENT = Path(__file__).with_name("embedded_client.py")
GRACE_S = 60.0  # long: a test that does not speak of the grace must not depend on it
SLOW_S = 120.0  # the bound of every wait of a test

IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root: it changes users or mounts a disk")


@dataclass(frozen=True)
class Person:
    """Somebody who runs clients: a user, and a Python that this user can read."""

    account: pwd.struct_passwd
    python: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """Return the Popen arguments that become this person."""
        if self.account.pw_uid == os.geteuid():
            return {}
        return {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}

    @property
    def environment(self) -> dict[str, str]:
        """Return a bare environment; PYTHONWARNINGS makes any warning of ours an error."""
        return {
            "PATH": "/usr/bin:/bin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "error",
            **self.variables,
        }


def caller() -> Person:
    """Return whoever runs the tests."""
    path = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return Person(pwd.getpwuid(os.geteuid()), (sys.executable,), path)


@functools.cache
def ordinary() -> Person:
    """Return a user without privileges who can run our code; skips where that cannot be arranged."""
    if not IS_ROOT:
        pytest.skip("the caller is an ordinary user already")
    site = str(Path(psycopg.__file__).parents[1])
    pythons = (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}")
    for name in ("daemon", "games", "bin"):
        for python in pythons:
            with contextlib.suppress(KeyError, OSError):
                person = Person(pwd.getpwnam(name), (python,), {"PYTHONPATH": site})
                done = subprocess.run(
                    [*person.python, str(CLIENT), "--help"],
                    capture_output=True,
                    cwd="/",
                    env=person.environment,
                    **person.identity,
                )
                if done.returncode == 0:
                    return person
    pytest.skip("no unprivileged user can read this Python and this checkout")


@dataclass(frozen=True)
class Answer:
    """What a client said: either an error, or the server it found. `told` is what it was told while it waited."""

    error: str | None = None
    reason: str | None = None
    text: str = ""
    attach_s: float = 0.0
    postmasters: tuple[int, ...] = ()
    uid: int = -1
    dsn: str = ""
    state: Path = Path("/nonexistent")
    run: Path = Path("/nonexistent")
    facts: dict[str, str] = field(default_factory=dict)
    told: str = ""

    @property
    def postmaster(self) -> int:
        """Return the one postmaster that was found; a test that meets an error or two of them fails here."""
        assert self.error is None, f"{self.error} {self.reason}: {self.text} {self.told}"
        assert len(self.postmasters) == 1, f"more than one server: {self.postmasters}"
        return self.postmasters[0]


class Client:
    """A client process of ours."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def first(self) -> Answer:
        """Return what it says while it stays."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return _read(line, b"") if line else self.answer()

    def answer(self) -> Answer:
        """Wait until it ends; return what it said."""
        out, complaints = self.process.communicate(timeout=SLOW_S)
        lines = out.splitlines()
        return _read(lines[-1] if lines else b"", complaints)

    def hears(self, text: str) -> bool:
        """Wait until it is told something that holds `text`; report False if it ends untold."""
        assert self.process.stderr is not None
        return any(text in line.decode() for line in iter(self.process.stderr.readline, b""))

    def kill(self) -> None:
        """Kill -9, and reap."""
        self.process.kill()
        self.process.communicate()

    @property
    def waits(self) -> bool:
        """Report whether it is still running."""
        return self.process.poll() is None


class House:
    """A temporary folder of one person, with `home` in it. A context manager that leaves nothing behind."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.folder = Path(tempfile.mkdtemp(prefix="corrigenda-test-"))
        os.chown(self.folder, person.account.pw_uid, person.account.pw_gid)
        self.home = self.folder / "home"
        self._clients: list[Client] = []
        self._states: set[Path] = set()
        self._runs: set[Path] = set()
        self.homes: set[str] = set()

    def client(
        self,
        *options: str,
        home: str | os.PathLike[str] | None = None,
        grace_s: float = GRACE_S,
        variables: dict[str, str] | None = None,
        person: Person | None = None,
        before: tuple[str, ...] = (),
    ) -> Client:
        """Start a client; `before` is a command that runs it (unshare, setpriv)."""
        who = person or self.person
        where = os.fspath(home or self.home)
        self.homes.add(where)
        process = subprocess.Popen(
            [*before, *who.python, str(CLIENT), "visit", where, str(grace_s), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=who.environment | (variables or {}),
            **who.identity,
        )
        self._clients.append(Client(process))
        return self._clients[-1]

    def visit(self, *options: str, **more: Any) -> Answer:
        """Run a client to its end: in this process where it asks for nothing special, for that is faster."""
        if self.person.identity or options or not more.keys() <= {"home", "grace_s"}:
            return self.noted(self.client(*options, **more).answer())
        home = more.get("home", self.home)
        self.homes.add(os.fspath(home))
        return self.noted(_visit_here(home, more.get("grace_s", GRACE_S)))

    def stay(self, *options: str, **more: Any) -> tuple[Client, Answer]:
        """Start a client that stays; return it with what it found."""
        client = self.client("--hold", *options, **more)
        answer = self.noted(client.first())
        assert answer.postmaster
        return client, answer

    def sql(self, answer: Answer, *statements: str, person: Person | None = None) -> list[list[Any]]:
        """Run statements in a session of the person's; return the last one's rows."""
        if not self.person.identity and person is None:
            return _sql_here(answer.dsn, statements)
        done = self._run("sql", answer.dsn, *statements, person=person)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    def stop(self, home: str | os.PathLike[str] | None = None, *options: str) -> None:
        """Stop the server of a home; nobody may be attached."""
        done = self._run("stop", os.fspath(home or self.home), *options)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()

    def _run(self, *words: str, person: Person | None = None) -> "subprocess.CompletedProcess[bytes]":
        who = person or self.person
        return subprocess.run(
            [*who.python, str(CLIENT), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd="/",
            env=who.environment,
            timeout=SLOW_S,
            **who.identity,
        )

    def noted(self, answer: Answer) -> Answer:
        """Remember what a client found, to end it later; return it."""
        if answer.error is None:
            self._states.add(answer.state)
            self._runs.add(answer.run)
        return answer

    def __enter__(self) -> "House":
        return self

    def __exit__(self, *_: object) -> None:
        self.end_servers()
        for state in self._states:
            if state.is_relative_to(places.BASE):
                shutil.rmtree(state, ignore_errors=True)
        for run in self._runs:
            shutil.rmtree(run, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def end_servers(self) -> None:
        """Kill the clients of this house, then its servers; wait until their watchers have ended."""
        while self._clients:
            self._clients.pop().kill()
        for home in self.homes:
            with contextlib.suppress(OSError):
                self._states.add(_state_of(home))
        for state in self._states:
            _end_server(state)


def log_size(answer: Answer) -> int:
    """Return how long the server's log is now."""
    return (answer.state / "server.log").stat().st_size


def log_since(answer: Answer, size: int) -> str:
    """Return what the server has logged since its log was that long."""
    return (answer.state / "server.log").read_bytes()[size:].decode(errors="replace")


def open_files(pid: int) -> set[str]:
    """Return what a process holds open; a descriptor that it closes while we look is none of them."""
    held: set[str] = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            held.add(os.readlink(path))
    return held


def watcher_of(answer: Answer, limit_s: float = 30.0) -> int:
    """Return the pid of the process that watches the server, once it has signed its lock."""
    lock = answer.state / "watcher.lock"
    assert until(lambda: _watches(holder(lock), answer.state), limit_s), "no watcher has signed"
    return int(holder(lock))


def guardian_of(answer: Answer, limit_s: float = 30.0) -> int:
    """Return the pid of the watcher's parent."""
    stat = Path(f"/proc/{watcher_of(answer, limit_s)}/stat").read_text()
    parent = stat.rsplit(")", 1)[1].split()[1]
    assert _watches(parent, answer.state), "the watcher has no guardian"
    return int(parent)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal a process that this test has started, and wait until it has ended if that is what the signal does."""
    os.kill(pid, number)
    if number == signal.SIGKILL:
        assert gone_after_s(pid) is not None


def gone_after_s(pid: int, limit_s: float = SLOW_S) -> float | None:
    """Wait for a process to end; return the seconds it took, or None if it outlives the limit."""
    began = time.monotonic()
    while alive(pid):
        if time.monotonic() - began > limit_s:
            return None
        time.sleep(0.02)
    return time.monotonic() - began


def until(true: Any, limit_s: float = 30.0) -> bool:
    """Wait until `true()` is; report False if it is not within the limit."""
    end = time.monotonic() + limit_s
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def worker(answer: Answer, title: str) -> int | None:
    """Return the pid of the server's process of that title (`startup`, `checkpointer`), if there is one now."""
    for pid in standing_in(answer.state / "data"):
        with contextlib.suppress(OSError):
            if title.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    return None


def _visit_here(home: str | os.PathLike[str], grace_s: float) -> Answer:
    told: list[str] = []
    try:
        began = time.monotonic()
        with attach(home, grace_s=grace_s, say=told.append) as server:
            attach_s = time.monotonic() - began
            found = listener(server.place.socket)
            assert found is not None
            place = server.place
            return Answer(
                attach_s=attach_s,
                postmasters=(found.pid,),
                uid=found.uid,
                dsn=server.owner_dsn,
                state=place.state,
                run=place.run,
                facts=server.facts,
                told="\n".join(told),
            )
    except CorrigendaError as error:
        return Answer(error.code, error.details.get("reason"), str(error), told="\n".join(told))


def _sql_here(dsn: str, statements: tuple[str, ...]) -> list[list[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements[:-1]:
            connection.execute(statement.encode())
        cursor = connection.execute(statements[-1].encode())
        return [list(row) for row in cursor] if cursor.description else []


def _read(line: bytes, complaints: bytes) -> Answer:
    told = complaints.decode(errors="replace")
    try:
        said = json.loads(line)
    except ValueError:
        return Answer(error="NOTHING", text=line.decode(errors="replace"), told=told)
    for name in ("state", "run"):
        if name in said:
            said[name] = Path(said[name])
    said["postmasters"] = tuple(said.get("postmasters", ()))
    return Answer(**said, told=told)


def _state_of(home: str) -> Path:
    inner = Path(os.path.realpath(home)) / "postgres"
    number = inner / "id"
    return places.BASE / number.read_text().strip() if number.exists() else inner


def _watches(pid: str, state: Path) -> bool:
    """Report whether that process is one of ours; a pid in a file may have been given to a stranger."""
    with contextlib.suppress(OSError):
        return os.fsencode(state) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") and alive(int(pid))
    return False


def _end_server(state: Path) -> None:
    """Kill what stands in the data directory: all of it was started by this house."""
    for number in (signal.SIGCONT, signal.SIGKILL):
        for pid in standing_in(state / "data"):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
    until(lambda: not standing_in(state / "data"), 10)
    with contextlib.suppress(OSError):
        until(lambda: is_free(state / "watcher.lock"), 10)
    remains.remove_shared_memory(state / "data")
