"""Homes of every kind: odd names, deep ones, unwritable ones, other people's, copied, moved and damaged ones."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.embedded import attach, places
from gateway.embedded.failures import trouble
from ledger.errors import ForbiddenError, UnavailableError
from tests.faults.embedded_home import CLIENT, IS_ROOT, House, Person, caller, needs_root, ordinary

ODD = {
    "200 deep": "/".join(["x" * 40] * 5),
    "odd": "a,b c'd\"e\\f%2fg$(id)`h` наследие 日本",
    "not UTF-8": os.fsdecode(b"a\xffb"),
}


@pytest.fixture
def unprivileged() -> Person:
    """Somebody whom the file system refuses: the caller, or where that is root, an ordinary user."""
    return ordinary() if IS_ROOT else caller()


@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
def test_homes_with_odd_names_work(unprivileged: Person, name: str) -> None:
    """Whatever a path may hold, an ordinary user's server starts there and is found again."""
    with House(unprivileged) as house:
        first = house.visit(home=house.folder / name)
        assert first.postmaster == house.visit(home=house.folder / name).postmaster
        assert len(os.fsencode(first.run / ".s.PGSQL.5432")) <= 107


@needs_root
@pytest.mark.soak
@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
def test_roots_homes_with_odd_names_work(house: House, name: str) -> None:
    """The same for root, whose server lies elsewhere."""
    first = house.visit(home=house.folder / name)
    assert first.postmaster == house.visit(home=house.folder / name).postmaster


def test_a_home_with_a_control_character_is_refused(house: House) -> None:
    """A line break in the path would break the server's own files."""
    assert house.visit(home=f"{house.folder}/new\nline").reason == "HOME_NOT_WRITABLE"


def test_a_home_that_is_a_file_is_refused(house: House) -> None:
    """The message names the path and what to set instead."""
    house.home.write_text("")
    answer = house.visit()
    assert (answer.error, answer.reason) == ("UNAVAILABLE", "HOME_NOT_WRITABLE")
    assert str(house.home) in answer.text and "CORRIGENDA_HOME" in answer.text


def test_a_home_that_cannot_be_written_is_refused(unprivileged: Person) -> None:
    """One's own home without the write bit."""
    with House(unprivileged) as house:
        house.home.mkdir(0o500)
        os.chown(house.home, unprivileged.account.pw_uid, -1)
        answer = house.visit()
        assert (answer.error, answer.reason) == ("UNAVAILABLE", "HOME_NOT_WRITABLE")


@needs_root
def test_a_home_in_a_directory_of_another_is_refused(unprivileged: Person) -> None:
    """A home that would have to be made where this user may not."""
    with House(unprivileged) as house:
        (house.folder / "roots").mkdir()
        assert house.visit(home=house.folder / "roots" / "h").reason == "HOME_NOT_WRITABLE"


@needs_root
def test_a_home_of_another_user_is_forbidden(unprivileged: Person) -> None:
    """FORBIDDEN_ACTOR: an ordinary user in root's home, and root in an ordinary user's; nothing is made there."""
    with House(unprivileged) as house:
        house.home.mkdir(0o755)
        answer = house.visit()
        assert (answer.error, answer.reason) == ("FORBIDDEN_ACTOR", "HOME_OF_ANOTHER")
        os.chown(house.home, unprivileged.account.pw_uid, -1)
        with pytest.raises(ForbiddenError) as refused:
            attach(house.home)
        assert refused.value.details["reason"] == "HOME_OF_ANOTHER"
        assert not list(house.home.iterdir())


@needs_root
def test_root_over_an_ordinary_users_database_is_forbidden(unprivileged: Person) -> None:
    """Root must not begin a second database beside a user's, even where the home has become root's."""
    with House(unprivileged) as house:
        house.visit()
        house.stop()
        os.chown(house.home, 0, 0)
        assert house.visit(person=caller()).reason == "HOME_OF_ANOTHER"


@needs_root
def test_a_squatted_socket_directory_is_refused(unprivileged: Person) -> None:
    """The short socket directory in /tmp must be ours: not a stranger's, and not a link."""
    with House(unprivileged) as house:
        deep = house.folder / ODD["200 deep"]
        run = house.visit(home=deep).run
        house.stop(deep)
        assert run.parent == Path("/tmp")
        os.chown(run, pwd.getpwnam("games").pw_uid, -1)
        assert house.visit(home=deep).reason == "UNSAFE_DIRECTORY"
        shutil.rmtree(run)
        run.symlink_to("/tmp")
        try:
            assert house.visit(home=deep).reason == "UNSAFE_DIRECTORY"
        finally:
            run.unlink()


@needs_root
def test_a_user_id_without_a_name_is_refused(unprivileged: Person) -> None:
    """PostgreSQL needs an account's name; nothing is made before that is known."""
    done = subprocess.run(
        [*unprivileged.python, str(CLIENT), "visit", "/tmp/corrigenda-test-nameless", "1"],
        capture_output=True,
        text=True,
        cwd="/",
        env=unprivileged.environment,
        user=54321,
        group=54321,
        extra_groups=[],
    )
    assert '"NO_ACCOUNT"' in done.stdout, done.stderr
    assert not Path("/tmp/corrigenda-test-nameless").exists()


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_a_root_that_may_not_change_its_user_is_told(house: House) -> None:
    """A container without CAP_SETUID: a clear message, and no server as root."""
    capabilities = ("setpriv", "--bounding-set", "-setuid,-setgid", "--inh-caps", "-setuid,-setgid")
    assert house.visit(before=capabilities).reason == "NO_ACCOUNT"
    house.visit()
    house.stop()
    assert house.visit(before=capabilities).reason == "NO_ACCOUNT"


@needs_root
def test_a_copied_home_is_refused_and_a_moved_one_keeps_its_data(house: House) -> None:
    """A copy names the original's data; once the original is gone, it is a moved home."""
    first = house.visit()
    copy = house.folder / "copy"
    shutil.copytree(house.home, copy)
    refused = house.visit(home=copy)
    assert refused.reason == "HOME_COPIED" and str(copy) in refused.text
    shutil.rmtree(house.home)
    moved = house.visit(home=copy)
    assert moved.state == first.state and moved.postmaster == first.postmaster


@needs_root
def test_a_home_made_again_at_the_same_path_is_new(house: House) -> None:
    """It must not meet its predecessor's data."""
    first = house.visit()
    shutil.rmtree(house.home)
    assert house.visit().state != first.state


@needs_root
def test_a_damaged_id_is_named(house: House) -> None:
    """Root's home that lost its id is not given an empty database in silence."""
    house.visit()
    (house.home / "postgres" / "id").write_text("nonsense\n")
    answer = house.visit()
    assert answer.reason == "HOME_DAMAGED" and "write the right id back" in answer.text


@needs_root
def test_a_base_directory_of_another_is_refused(house: House) -> None:
    """Where /var/lib/corrigenda belongs to somebody else, root writes nothing into it."""
    base = house.folder / "base"
    base.mkdir()
    os.chown(base, pwd.getpwnam("games").pw_uid, -1)
    assert house.visit(variables={"EMBEDDED_BASE": str(base)}).reason == "UNSAFE_DIRECTORY"
    assert not list(base.iterdir())


def test_data_of_another_major_version_are_refused(house: House) -> None:
    """The message names both versions, and the setting that gives the server which reads the data."""
    answer = house.visit()
    house.stop()
    (answer.state / "data" / "PG_VERSION").write_text("17\n")
    refused = house.visit()
    assert refused.reason == "OTHER_VERSION"
    assert "version 17" in refused.text and "CORRIGENDA_POSTGRES_BIN to the `bin` of a PostgreSQL 17" in refused.text


def test_only_what_may_pass_is_worth_another_try() -> None:
    """Data of another version are that the next time too; a server that is busy may be free then."""
    assert not trouble("OTHER_VERSION", "as it was").retriable
    assert trouble("BUSY", "for now").retriable


def test_a_folder_that_is_no_database_is_left_alone(house: House) -> None:
    """Files in the data directory's place are not overwritten."""
    answer = house.visit()
    house.stop()
    (answer.state / "data" / "PG_VERSION").unlink()
    assert house.visit().reason == "HOME_DAMAGED"
    assert (answer.state / "data" / "global").exists()


def test_two_homes_have_two_servers(house: House) -> None:
    """Homes share nothing."""
    others = [house.client(home=house.folder / name) for name in ("a", "b")]
    answers = [house.noted(client.answer()) for client in others]
    assert answers[0].postmaster != answers[1].postmaster


def test_a_place_is_found_without_being_made(house: House) -> None:
    """`find` computes; `prepare` makes."""
    found = places.find(house.home)
    assert found is None or not found.state.exists()
    assert not house.home.exists()


def test_no_cluster_is_unavailable(house: House) -> None:
    """The registry's code of a home without a database."""
    answer = house.visit("--existing")
    assert (answer.error, answer.reason) == (UnavailableError("UNAVAILABLE", "").code, "NO_CLUSTER")
