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
    log_since,
    log_size,
    until,
    watcher_of,
    worker,
)

STOPPING = "received fast shutdown request"
STOPPED = "database system is shut down"


def test_killed_clients_start_the_grace_period(lived_in: House) -> None:
    """The server stays while clients live, and is shut down cleanly after the last one was killed -9."""
    clients = [lived_in.stay(grace_s=2.0)[0] for _ in range(2)]
    answer = lived_in.visit()
    logged = log_size(answer)
    time.sleep(2.2)
    assert alive(answer.postmaster)
    watcher = watcher_of(answer)
    for client in clients:
        client.kill()
    waited_s = gone_after_s(answer.postmaster)
    assert waited_s is not None and 1.4 < waited_s < 6
    assert STOPPED in log_since(answer, logged)
    assert gone_after_s(watcher, 5) is not None


def test_a_visit_begins_the_grace_period_anew(lived_in: House) -> None:
    """A visit shorter than the watcher's tick counts."""
    first = lived_in.visit(grace_s=2.5)
    time.sleep(1.5)
    assert lived_in.visit().postmaster == first.postmaster
    waited_s = gone_after_s(first.postmaster)
    assert waited_s is not None and 1.6 < waited_s < 7


@pytest.mark.soak
def test_a_stay_within_the_grace_period_cancels_the_stop(lived_in: House) -> None:
    """A client that comes in the grace period and stays keeps the server."""
    first = lived_in.visit(grace_s=1.2)
    _, second = lived_in.stay()
    time.sleep(1.8)
    assert second.postmaster == first.postmaster
    assert alive(first.postmaster)


@pytest.mark.soak
def test_the_default_grace_period(lived_in: House) -> None:
    """With thirty seconds of grace, the server goes thirty seconds after a kill -9."""
    client, answer = lived_in.stay(grace_s=30.0)
    client.kill()
    waited_s = gone_after_s(answer.postmaster)
    assert waited_s is not None and 28 < waited_s < 35


def test_an_arrival_during_a_stop_waits_and_starts_it_anew(lived_in: House) -> None:
    """While the watcher stops a slow server, a client waits, is told, and gets a new one."""
    answer = lived_in.visit(grace_s=0.4)
    checkpointer = worker(answer, "checkpointer")
    assert checkpointer is not None
    os.kill(checkpointer, signal.SIGSTOP)
    logged = log_size(answer)
    assert until(lambda: STOPPING in log_since(answer, logged))
    late = lived_in.client()
    assert late.hears("waiting for another process")
    os.kill(checkpointer, signal.SIGCONT)
    new = lived_in.noted(late.answer())
    assert new.postmaster != answer.postmaster


@pytest.mark.soak
def test_a_forked_child_keeps_the_server(lived_in: House) -> None:
    """The lock belongs to the open file: a child that outlives the client keeps the server until it ends."""
    answer = lived_in.visit("--fork", "2.5", grace_s=0.4)
    time.sleep(1.5)
    assert alive(answer.postmaster)
    assert gone_after_s(answer.postmaster, 10) is not None


def test_a_killed_watcher_is_replaced_without_a_client(lived_in: House) -> None:
    """The guardian makes a new watcher, which stops the server when its time has come."""
    answer = lived_in.visit(grace_s=1.0)
    watcher = watcher_of(answer)
    kill(watcher)
    assert until(lambda: watcher_of(answer) != watcher)
    assert alive(answer.postmaster)
    assert gone_after_s(answer.postmaster, 15) is not None


def test_a_killed_guardian_leaves_the_watcher_at_work(lived_in: House) -> None:
    """Without its guardian the watcher still stops the server."""
    answer = lived_in.visit(grace_s=1.0)
    watcher = watcher_of(answer)
    kill(guardian_of(answer))
    assert alive(watcher)
    assert gone_after_s(answer.postmaster, 15) is not None


def test_a_server_without_any_watcher_is_adopted(lived_in: House) -> None:
    """Both watching processes killed: the server is unharmed, and the next client brings a watcher that stops it."""
    client, answer = lived_in.stay(grace_s=1.0)
    watcher, guardian = watcher_of(answer), guardian_of(answer)
    kill(guardian)
    kill(watcher)
    assert alive(answer.postmaster)
    assert lived_in.visit(grace_s=1.0).postmaster == answer.postmaster
    assert watcher_of(answer) != watcher
    client.kill()
    assert gone_after_s(answer.postmaster, 15) is not None


def test_asking_the_watcher_to_end_stops_the_server(lived_in: House) -> None:
    """SIGTERM to the watcher is a clean stop, clients or not."""
    _, answer = lived_in.stay(grace_s=0.4)
    logged = log_size(answer)
    os.kill(watcher_of(answer), signal.SIGTERM)
    assert gone_after_s(answer.postmaster, 10) is not None
    assert STOPPED in log_since(answer, logged)


def test_a_server_whose_socket_was_deleted_is_replaced(lived_in: House) -> None:
    """A cleaner of temporary files removed the socket: the watcher stops the server, and the next client starts it."""
    _, answer = lived_in.stay()
    (answer.run / ".s.PGSQL.5432").unlink()
    new = lived_in.visit()
    assert new.postmaster != answer.postmaster


@pytest.mark.soak
def test_a_server_whose_home_was_removed_ends(anybodys_house: House) -> None:
    """Nobody can find it any more, so it ends, client or not."""
    client, answer = anybodys_house.stay(grace_s=1.0)
    shutil.rmtree(anybodys_house.home)
    client.kill()
    assert gone_after_s(answer.postmaster, 90) is not None
