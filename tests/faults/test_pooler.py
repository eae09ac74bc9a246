"""Through Debian's pgbouncer in transaction mode: every transaction may run on another session, and two serve all."""

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import corrigenda
from gateway.embedded.cluster import ROLES
from gateway.embedded.processes import Identity
from tests.faults.embedded_home import ROOT, until
from tests.house import assert_house_in_order, rows, types, written

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
CLIENT = Path(__file__).with_name("pooled_client.py")
POOL = 2
PORT = 6432
PROCESSES, THREADS, ACTS = 3, 3, 4
SLOW_S = 90.0

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


class Pooler:
    """One pgbouncer, before one server, with a pool of two for each database and user."""

    def __init__(self, server_url: str, folder: Path) -> None:
        self._server = conninfo_to_dict(server_url)
        self._account = _account(str(self._server["host"]))
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._configure()

    def url(self, ledger_url: str) -> str:
        """Return the connection string of a database of the server's by way of the pooler."""
        given = conninfo_to_dict(ledger_url)
        return make_conninfo(host=str(self._folder), port=PORT, user=given["user"], dbname=given["dbname"])

    def start(self) -> None:
        """Start it, and wait until it listens."""
        change: Identity = {} if self._account.pw_uid == os.geteuid() else _identity(self._account)
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [str(PGBOUNCER), str(self._folder / "pgbouncer.ini")],
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=self._folder,
                **change,
            )
        self._process = process
        door = self._folder / f".s.PGSQL.{PORT}"
        assert until(lambda: door.exists() or process.poll() is not None)
        assert process.poll() is None, (self._folder / "log").read_text()

    def kill(self) -> None:
        """Kill -9, and take away the socket that it leaves."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(SLOW_S)
            (self._folder / f".s.PGSQL.{PORT}").unlink(missing_ok=True)
            self._process = None

    def _configure(self) -> None:
        password = f" password={self._server['password']}" if "password" in self._server else ""
        users = "".join(f'"{name}" ""\n' for name in {*ROLES, str(self._server["user"])})
        for name, content in {
            "users.txt": users,
            "pgbouncer.ini": f"""[databases]
* = host={self._server["host"]} port={self._server.get("port", 5432)}{password}
[pgbouncer]
listen_addr =
listen_port = {PORT}
unix_socket_dir = {self._folder}
auth_type = trust
auth_file = {self._folder / "users.txt"}
pool_mode = transaction
default_pool_size = {POOL}
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
""",
        }.items():
            (self._folder / name).write_text(content)
            os.chown(self._folder / name, self._account.pw_uid, self._account.pw_gid)


def _account(host: str) -> pwd.struct_passwd:
    """Return whom the pooler runs as: it refuses root, so as root it is the owner of the server's socket."""
    owner = os.stat(host).st_uid if os.geteuid() == 0 and host.startswith("/") else os.geteuid()
    return pwd.getpwuid(owner) if owner else pwd.getpwnam("nobody")


def _identity(account: pwd.struct_passwd) -> Identity:
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


@pytest.fixture
def pooler(server_url: str) -> Iterator[Pooler]:
    """Return a pooler that runs, and that the server lets in."""
    folder = Path(tempfile.mkdtemp(prefix="corrigenda-pool-"))
    made = Pooler(server_url, folder)
    account = _account(str(conninfo_to_dict(server_url)["host"]))
    os.chown(folder, account.pw_uid, account.pw_gid)
    try:
        with _let_in(server_url, account):
            made.start()
            yield made
    finally:
        made.kill()
        shutil.rmtree(folder)


@contextlib.contextmanager
def _let_in(server_url: str, account: pwd.struct_passwd) -> Iterator[None]:
    """Let the pooler's account in where the embedded server lets in only ours."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        (found,) = connection.execute("SELECT current_setting('ident_file')").fetchone() or ("",)
        file = Path(found)
        if account.pw_uid == os.geteuid() or not file.exists():
            yield
            return
        before = file.read_text()
        file.write_text(before + "".join(f'corrigenda "{account.pw_name}" {role}\n' for role in ROLES))
        connection.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            file.write_text(before)
            connection.execute("SELECT pg_reload_conf()")


class Writers:
    """Processes that write through the pooler, all at once."""

    def __init__(self, url: str, home: Path, gate: Path) -> None:
        self._gate = gate
        environment = {
            "PYTHONPATH": str(ROOT),
            "PATH": "/usr/bin:/bin",
            "CORRIGENDA_POOLED": "1",
            "PYTHONWARNINGS": "error",
        }
        self._processes = [
            subprocess.Popen(
                [sys.executable, CLIENT, url, home, name, str(THREADS), str(ACTS), str(gate)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=ROOT,
                env=environment,
            )
            for name in ("ana", "bo", "cy")[:PROCESSES]
        ]

    def begin(self) -> None:
        """Wait until each has opened the ledger; then let them go."""
        for process in self._processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()[1].decode()
        self._gate.touch()

    def end(self) -> list[str]:
        """Wait until all are done; return what was acknowledged."""
        texts: list[str] = []
        for process in self._processes:
            out, complaints = process.communicate(timeout=SLOW_S)
            assert process.returncode == 0, complaints.decode()
            texts += json.loads(out.splitlines()[-1])["texts"]
        return texts

    def kill(self) -> None:
        """End what is left of them."""
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def writers(
    pooler: Pooler, ledger_url: str, home: Path, tmp_path: Path, no_settings: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Writers]:
    """Return the processes, on a ledger with one memory, `shared`, that was made through the pooler too."""
    monkeypatch.setenv("CORRIGENDA_POOLED", "1")
    with corrigenda.open(pooler.url(ledger_url), home=home, project="pool", embedder="none") as gateway:
        gateway.remember("the first", memory_id="shared")
    made = Writers(pooler.url(ledger_url), home, tmp_path / "gate")
    try:
        yield made
    finally:
        made.kill()


def assert_each_once(ledger_url: str, home: Path, texts: list[str]) -> None:
    """Fail unless every acknowledged write is there once, nothing else is, and the house is in order."""
    assert len(texts) == len(set(texts)) == PROCESSES * THREADS * ACTS * 2
    found = types(written(ledger_url))
    assert found.count("memory.remembered") == 1 + PROCESSES * THREADS * ACTS
    assert found.count("revision.corrected") == PROCESSES * THREADS * ACTS
    assert_house_in_order(ledger_url, home)
    with corrigenda.open(ledger_url, home=home, project="pool", embedder="none") as gateway:
        told = {item.content for item in gateway.history("shared").items}
        assert told == {"the first"} | {text.removeprefix("shared by ") for text in texts if text.startswith("shared")}


def test_many_write_and_read_through_two_sessions(writers: Writers, ledger_url: str, home: Path) -> None:
    """Given three processes of three threads and a pool of two, every act takes effect once and is read where it was
    written; no session of the server is relied on.
    """
    writers.begin()
    texts = writers.end()
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    assert 1 <= rows(ledger_url, sessions)[0][0] <= POOL
    assert_each_once(ledger_url, home, texts)


def test_a_pooler_that_is_killed_loses_and_doubles_nothing(
    writers: Writers, pooler: Pooler, ledger_url: str, home: Path
) -> None:
    """Given a pooler that is killed twice while they write, what is repeated with its key takes effect once."""
    writers.begin()
    for _ in range(2):
        before = len(rows(ledger_url, "SELECT seq FROM corrigenda.event"))
        assert until(lambda before=before: len(rows(ledger_url, "SELECT seq FROM corrigenda.event")) > before + 20)
        pooler.kill()
        time.sleep(0.1)
        pooler.start()
    assert_each_once(ledger_url, home, writers.end())
