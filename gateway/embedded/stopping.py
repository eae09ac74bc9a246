"""Stops an embedded server now, and removes its data if told to: only where no client is left.

Holds `start.lock` and the exclusive side of `clients.lock` throughout, so nobody can come meanwhile. Must never
stop a server while a client holds its lock, nor remove data that a process still uses.
"""

import contextlib
import os
import shutil
import time

from gateway.embedded import places, remains
from gateway.embedded.failures import trouble, writing
from gateway.embedded.locks import EXCLUSIVE, is_free, take, try_take
from gateway.embedded.places import Place
from gateway.embedded.processes import Process, end, listener

_WATCHER_S = 60.0
_POLL_S = 0.005


def stop(home: str | os.PathLike[str], *, remove: bool = False) -> None:
    """Stop the home's server now; with `remove`, destroy its data, too. BUSY while any client is attached.

    A home that never had a server is left as it is.
    """
    place = places.find(home)
    if place is None or not place.state.exists():
        return
    with writing(place.state), contextlib.ExitStack() as held:
        held.callback(os.close, take(place.state / "start.lock", EXCLUSIVE))
        clients = try_take(place.state / "clients.lock")
        if clients is None:
            raise trouble(
                "BUSY",
                f"The embedded server of {place.home} should have no client left, and another process uses "
                "it. End that process, then try again.",
            )
        held.callback(os.close, clients)
        _stop(place)
        if remove:
            _remove(place)


def _stop(place: Place) -> None:
    found = listener(place.socket)
    if found and not found.pid:
        raise trouble(
            "BUSY",
            f"The server of {place.home} should run in this process namespace to be stopped, and runs in "
            "another. Stop it from there.",
        )
    if found and found.uid in (place.account.pw_uid, -1):  # a stranger's process is not ours to stop
        process = Process(found.pid)
        if listener(place.socket) == found:
            end(process)
        process.close()
    until = time.monotonic() + _WATCHER_S
    while not is_free(place.state / "watcher.lock") and time.monotonic() < until:
        time.sleep(_POLL_S)


def _remove(place: Place) -> None:
    os.close(remains.clear(place, lambda _: None))
    remains.remove_cluster(place.state)
    shutil.rmtree(place.run, ignore_errors=True)
    places.forget(place)
