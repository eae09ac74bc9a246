"""When the embedded server is stopped, and by whom: the grace period, the watcher, its guardian."""

import os
import shutil
import signal
import time

import pytest

from gateway.embedded.processes import alive
from tests.faults.embedded_home import (
    House,
    gone_after_s,
    guardian_of,
    kill,
    until,
    watcher_of,
    worker,
)


def test_killed_clients_start_the_grace_period(house: House) -> None:
    """The server stays while clients live, and is shut down cleanly after the last one was killed -9."""
    clients = [house.stay(grace_s=2.0)[0] for _ in range(2)]
    answer = house.visit()
    time.sleep(2.5)
    assert alive(answer.postmaster)
    watcher = watcher_of(answer)
    for client in clients:
        client.kill()
    waited_s = gone_after_s(answer.postmaster)
    assert waited_s is not None and 1.4 < waited_s < 6
    assert "database system is shut down" in (answer.state / "server.log").read_text()
    assert gone_after_s(watcher, 5) is not None


def test_a_visit_begins_the_grace_period_anew(house: House) -> None:
    """A visit shorter than the watcher's tick counts."""
    first = house.visit(grace_s=3.0)
    time.sleep(2.0)
    assert house.visit().postmaster == first.postmaster
    waited_s = gone_after_s(first.postmaster)
    assert waited_s is not None and 2.0 < waited_s < 7


def test_a_stay_within_the_grace_period_cancels_the_stop(house: House) -> None:
    """A client that comes in the grace period and stays keeps the server."""
    first = house.visit(grace_s=1.5)
    _, second = house.stay()
    time.sleep(2.5)
    assert second.postmaster == first.postmaster
    assert alive(first.postmaster)


@pytest.mark.soak
def test_the_default_grace_period(house: House) -> None:
    """With thirty seconds of grace, the server goes thirty seconds after a kill -9."""
    client, answer = house.stay(grace_s=30.0)
    client.kill()
    waited_s = gone_after_s(answer.postmaster)
    assert waited_s is not None and 28 < waited_s < 35


def test_an_arrival_during_a_stop_waits_and_starts_it_anew(house: House) -> None:
    """While the watcher stops a slow server, a client waits, is told, and gets a new one."""
    answer = house.visit(grace_s=0.4)
    checkpointer = worker(answer, "checkpointer")
    assert checkpointer is not None
    os.kill(checkpointer, signal.SIGSTOP)
    log = answer.state / "server.log"
    assert until(lambda: "received fast shutdown request" in log.read_text())
    late = house.client()
    time.sleep(3.0)
    assert late.waits
    os.kill(checkpointer, signal.SIGCONT)
    new = house._noted(late.answer())
    assert new.postmaster != answer.postmaster
    assert "waiting for another process" in new.told


def test_a_forked_child_keeps_the_server(house: House) -> None:
    """The lock belongs to the open file: a child that outlives the client keeps the server until it ends."""
    answer = house.visit("--fork", "3", grace_s=0.5)
    time.sleep(2.0)
    assert alive(answer.postmaster)
    assert gone_after_s(answer.postmaster, 10) is not None


def test_a_killed_watcher_is_replaced_without_a_client(house: House) -> None:
    """The guardian makes a new watcher, which stops the server when its time has come."""
    answer = house.visit(grace_s=2.0)
    watcher = watcher_of(answer)
    kill(watcher)
    assert until(lambda: watcher_of(answer) != watcher)
    assert alive(answer.postmaster)
    assert gone_after_s(answer.postmaster, 15) is not None


def test_a_killed_guardian_leaves_the_watcher_at_work(house: House) -> None:
    """Without its guardian the watcher still stops the server."""
    answer = house.visit(grace_s=1.0)
    watcher = watcher_of(answer)
    kill(guardian_of(answer))
    assert alive(watcher)
    assert gone_after_s(answer.postmaster, 15) is not None


def test_a_server_without_any_watcher_is_adopted(house: House) -> None:
    """Both watching processes killed: the server is unharmed, and the next client brings a watcher that stops it."""
    client, answer = house.stay(grace_s=1.0)
    watcher, guardian = watcher_of(answer), guardian_of(answer)
    kill(guardian)
    kill(watcher)
    assert alive(answer.postmaster)
    assert house.visit(grace_s=1.0).postmaster == answer.postmaster
    assert watcher_of(answer) != watcher
    client.kill()
    assert gone_after_s(answer.postmaster, 15) is not None


def test_asking_the_watcher_to_end_stops_the_server(house: House) -> None:
    """SIGTERM to the watcher is a clean stop, clients or not."""
    _, answer = house.stay(grace_s=0.4)
    os.kill(watcher_of(answer), signal.SIGTERM)
    assert gone_after_s(answer.postmaster, 10) is not None
    assert "database system is shut down" in (answer.state / "server.log").read_text()


def test_a_server_whose_socket_was_deleted_is_replaced(house: House) -> None:
    """A cleaner of temporary files removed the socket: the watcher stops the server, and the next client starts it."""
    _, answer = house.stay()
    (answer.run / ".s.PGSQL.5432").unlink()
    new = house.visit()
    assert new.postmaster != answer.postmaster


@pytest.mark.soak
def test_a_server_whose_home_was_removed_ends(anybodys_house: House) -> None:
    """Nobody can find it any more, so it ends, client or not."""
    house = anybodys_house
    client, answer = house.stay(grace_s=1.0)
    shutil.rmtree(house.home)
    client.kill()
    assert gone_after_s(answer.postmaster, 90) is not None
