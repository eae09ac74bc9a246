"""The embedded server's start: durable, reachable by its own user alone, one however many come at once."""

import os
import pwd
import re
import struct
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace

import pytest
from psycopg import pq

from gateway.embedded import attach, check, locate, stop
from gateway.embedded.check import DURABLE, LogTail
from gateway.embedded.failures import ServerGone
from gateway.embedded.places import Place
from gateway.embedded.processes import alive
from ledger.errors import UnavailableError
from tests.faults.embedded_home import (
    CLIENT,
    IS_ROOT,
    Answer,
    House,
    caller,
    gone_after_s,
    needs_root,
    open_files,
    ordinary,
    watcher_of,
)

Running = tuple[House, Answer]


@pytest.fixture(scope="module", params=["caller", "ordinary"])
def running(request: pytest.FixtureRequest) -> Generator[Running, None, None]:
    """A running server that the tests of this module only look at, with a client that stays."""
    with House(caller() if request.param == "caller" else ordinary()) as house:
        _, answer = house.stay()
        yield house, answer


def test_settings_are_durable(running: Running) -> None:
    """A first start ends in a server whose settings keep what was committed."""
    facts = running[1].facts
    assert {name: facts[name] for name in DURABLE} == DURABLE


def test_nothing_listens_on_tcp(running: Running) -> None:
    """The postmaster holds no TCP socket."""
    _, answer = running
    held = open_files(answer.postmaster)
    inodes = {re.findall(r"\d+", target)[0] for target in held if target.startswith("socket:")}
    tables = [Path(f"/proc/{answer.postmaster}/net/{name}").read_text() for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    assert answer.facts["listen_addresses"] == ""
    assert not {row[9] for row in rows} & inodes


def test_the_server_is_not_root_and_keeps_nothing_of_root(running: Running) -> None:
    """The server runs as the account alone, without its caller's groups, environment or directories."""
    _, answer = running
    process = Path(f"/proc/{answer.postmaster}")
    status = (process / "status").read_text()
    assert answer.uid != 0
    assert f"Uid:\t{answer.uid}\t{answer.uid}\t{answer.uid}\t{answer.uid}\n" in status
    assert "Umask:\t0077\n" in status
    variables = {line.split(b"=")[0] for line in (process / "environ").read_bytes().split(b"\0") if line}
    assert variables <= {b"PATH", b"LC_ALL", b"TZ", b"PG_GRANDPARENT_PID"}
    if IS_ROOT:
        assert re.search(r"^Groups:\t\s*$", status, re.MULTILINE)


def test_everything_is_closed_to_others(running: Running) -> None:
    """Data, socket directory and socket have no mode bit for group or others."""
    _, answer = running
    for path in (answer.state / "data", answer.run, answer.run / ".s.PGSQL.5432"):
        assert path.stat().st_mode & 0o077 == 0, path


@needs_root
def test_the_directory_refuses_another_user(running: Running) -> None:
    """First door: another user cannot reach the socket."""
    _, answer = running
    assert "PermissionError" in _connect(answer, pwd.getpwnam("games"))


@needs_root
def test_peer_refuses_another_user_when_every_directory_is_open(running: Running) -> None:
    """Second door: with every directory and the socket open, the kernel's word keeps another user out."""
    house, answer = running
    socket = answer.run / ".s.PGSQL.5432"
    opened = [socket, *(path for path in (answer.run, *answer.run.parents) if _ours(path, house, answer))]
    modes = {path: path.stat().st_mode for path in opened}
    try:
        for path in opened:
            path.chmod(0o777 if path == socket else 0o755)
        said = _startup_packet(answer, pwd.getpwnam("games"))
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert "Peer authentication failed" in said, said


def test_a_second_client_finds_the_same_server(running: Running) -> None:
    """Whoever comes while it runs attaches to it, and quickly."""
    house, answer = running
    again = house.visit("--existing")
    assert again.postmaster == answer.postmaster
    assert again.attach_s < 1.0


def test_twenty_cold_starts_make_one_cluster(anybodys_house: House) -> None:
    """Twenty attaches by four processes at once, on a fresh home: one initdb, one server, one watcher."""
    clients = [anybodys_house.client("--attaches", "5") for _ in range(4)]
    answers = [anybodys_house.noted(client.answer()) for client in clients]
    assert len({answer.postmaster for answer in answers}) == 1
    assert sum("making a new database cluster" in answer.told for answer in answers) == 1
    assert len({answer.facts["system_identifier"] for answer in answers}) == 1


def test_locate_and_an_attach_without_create_make_nothing(house: House) -> None:
    """Readers leave a home that has no server exactly as it is, absent included."""
    assert locate(house.home) is None
    with pytest.raises(UnavailableError) as refused:
        attach(house.home, create=False)
    assert refused.value.details["reason"] == "NO_CLUSTER"
    assert not house.home.exists()
    house.home.mkdir()
    assert locate(house.home) is None
    stop(house.home)
    assert not list(house.home.iterdir())


def test_locate_names_a_stopped_server(lived_in: House) -> None:
    """The connection string is known without starting anything."""
    answer = lived_in.visit()
    lived_in.stop()
    assert locate(lived_in.home) == answer.dsn
    assert not alive(answer.postmaster)


def test_stop_is_refused_while_a_client_is_there(lived_in: House) -> None:
    """A server with a client is left alone; BUSY says so."""
    _, answer = lived_in.stay()
    with pytest.raises(UnavailableError) as refused:
        stop(lived_in.home)
    assert refused.value.details["reason"] == "BUSY"
    assert alive(answer.postmaster)


def test_stop_with_remove_leaves_no_data(house: House) -> None:
    """After `stop(remove=True)` a new attach makes another cluster."""
    first = house.visit()
    stop(house.home, remove=True)
    assert not first.state.exists()
    second = house.visit()
    assert second.facts["system_identifier"] != first.facts["system_identifier"]


def test_no_pipe_of_the_client_is_held(lived_in: House) -> None:
    """`subprocess.run(capture_output=True)` returns, and `| tail` ends, while the server lives on."""
    began = time.monotonic()
    line = f'"{sys.executable}" "{CLIENT}" visit "{lived_in.home}" 30 2>&1 | tail -n 1'
    lived_in.homes.add(str(lived_in.home))
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, timeout=25, cwd="/")
    assert time.monotonic() - began < 20
    assert b"attach_s" in done.stdout
    answer = lived_in.visit()
    assert alive(answer.postmaster) and alive(watcher_of(answer))


def test_an_interrupt_of_the_clients_group_leaves_the_server(lived_in: House) -> None:
    """Ctrl-C ends the client and its group, and not the server or its watcher, which have their own sessions."""
    client, answer = lived_in.stay()
    groups = {os.getpgid(pid) for pid in (answer.postmaster, watcher_of(answer))}
    assert os.getpgid(client.process.pid) not in groups


def test_a_closed_server_may_be_closed_again(lived_in: House) -> None:
    """`close` is idempotent, and the context manager closes."""
    lived_in.homes.add(str(lived_in.home))
    with attach(lived_in.home, grace_s=0.5) as server:
        postmaster = int((server.place.data / "postmaster.pid").read_text().split()[0])
    server.close()
    assert gone_after_s(postmaster, 20) is not None


def _ours(path: Path, house: House, answer: Answer) -> bool:
    return path.is_relative_to(house.folder) or path.is_relative_to(answer.state)


def _connect(answer: Answer, who: pwd.struct_passwd) -> str:
    return _speak(answer, who, "")


def _startup_packet(answer: Answer, who: pwd.struct_passwd) -> str:
    """Return what the server says to a connection of that user under our role; no libpq is needed for it."""
    return _speak(
        answer,
        who,
        "body=b'\\0\\3\\0\\0user\\0corrigenda\\0database\\0postgres\\0\\0'\n"
        "s.sendall(struct.pack('!i',len(body)+4)+body)\n"
        "print(s.recv(1000))",
    )


def _speak(answer: Answer, who: pwd.struct_passwd, more: str) -> str:
    code = f"import socket,struct\ns=socket.socket(socket.AF_UNIX)\ns.connect({str(answer.run)!r}+'/.s.PGSQL.5432')\n"
    program = ordinary().python[0]
    done = subprocess.run(
        [program, "-I", "-S", "-c", code + more],
        capture_output=True,
        text=True,
        cwd="/",
        user=who.pw_uid,
        group=who.pw_gid,
        extra_groups=[],
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("ended", "doing"), [(1, "is starting"), (6, "is recovering after a crash"), (4, "is recovering after a crash")]
)
def test_a_start_that_takes_long_is_told_after_a_second(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ended: int, doing: str
) -> None:
    """Given a server that lets nobody in for eight seconds, then that is said after one, and after six.

    How it ended the last time its control file says: shut down, in production, or in recovery.
    """
    me = pwd.getpwuid(os.geteuid())
    place = Place(home=tmp_path, state=tmp_path, run=tmp_path, me=me, account=me)
    control = place.data / "global/pg_control"
    control.parent.mkdir(parents=True)
    control.write_bytes(struct.pack("=QIIi", 7, 1800, 202505071, ended))
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda s: now.append(now.pop() + s))
    monkeypatch.setattr(check, "time", clock)

    def ping(_: bytes) -> pq.Ping:
        return pq.Ping.REJECT if now[0] < 8 else pq.Ping.OK

    monkeypatch.setattr(check, "pq", SimpleNamespace(Ping=pq.Ping, PGconn=SimpleNamespace(ping=ping)))
    told: list[str] = []

    with pytest.raises(ServerGone):  # nobody listens there
        check.wait_until_sound(place, told.append, LogTail(place))

    assert told == [f"the database server {doing}, {seconds} s so far" for seconds in (1, 6)]
