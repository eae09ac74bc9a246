"""Waits until a listening server answers, then asserts that it is ours and durable.

Recovery may take any time, so it is waited for without limit, with a word after one second and then every five.
What a session of ours sees is asserted, since ALTER ROLE beats even the command line. Must never judge by the text
of a message where the protocol says it better.
"""

import os
import re
import struct
import time
from collections.abc import Callable

import psycopg
from psycopg import pq

from gateway.embedded.cluster import START_BYTES, WRITER, gist, ran_out_of_space
from gateway.embedded.dsn import dsn
from gateway.embedded.failures import ServerGone, cannot_become, disk_full, trouble
from gateway.embedded.login import ensure_writer
from gateway.embedded.places import Place
from gateway.embedded.processes import listener
from ledger.errors import CorrigendaError
from ledger.sql import load

DURABLE = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "data_checksums": "on",
    "zero_damaged_pages": "off",
    "ignore_checksum_failure": "off",
}

_POLL_S = 0.02
_SAY_AFTER_S = 1.0
_SAY_EVERY_S = 5.0
_PING_S = 10
_CONNECT_S = 30
_LOG_TAIL_BYTES = 1 << 16
_NO_SETUID = r"^(PermissionError: \[Errno 1\]|OSError: \[Errno 22\])"  # the watcher's Popen(user=…)
_STATE_AT, _SHUT_DOWN = 16, 1  # in pg_control: the identifier, two versions, then DBState; DB_SHUTDOWNED
_QUERIES = load("gateway.embedded")


class LogTail:
    """The part of `server.log` that has been written since this object was made."""

    def __init__(self, place: Place) -> None:
        self._path = place.log
        self._start = self._size()

    def text(self) -> str:
        """Return what is new, at most the last 64 KiB; after a rotation, of the whole new file."""
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                start = self._start if self._start <= size else 0
                file.seek(max(start, size - _LOG_TAIL_BYTES))
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0


def wait_until_sound(place: Place, say: Callable[[str], None], log: LogTail) -> dict[str, str]:
    """Return the server's facts once it answers and is found sound. ServerGone if it went away meanwhile."""
    _wait_until_answering(place, say, log)
    try:
        with psycopg.connect(dsn(place), connect_timeout=_CONNECT_S, autocommit=True) as connection:
            facts = _ask(place, connection)
            ensure_writer(connection, facts.pop("writer", ""))
    except psycopg.OperationalError as error:
        text = " ".join(str(error).split())
        if not listener(place.socket) or "shutting down" in text or "starting up" in text:
            time.sleep(0.1)
            raise ServerGone from error
        if ran_out_of_space(text):
            raise disk_full(place.data, START_BYTES) from error
        hint = " Unset PGSERVICE and PGSERVICEFILE." if "PGSERVICE" in os.environ else ""
        raise trouble(
            "NO_CONNECTION",
            f"The embedded server at {place.run} should accept a connection, and does not: "
            f"{text[:300]}.{hint} Close other sessions or try again.",
        ) from error
    return facts


def why_it_died(place: Place, log: LogTail) -> CorrigendaError:
    """Return the error that the server's own last messages explain."""
    said = log.text()
    if ran_out_of_space(said):
        return disk_full(place.data, START_BYTES)
    if place.drops and re.search(_NO_SETUID, said, re.MULTILINE):
        return cannot_become(place.account)
    return trouble(
        "START_FAILED",
        f"The embedded server should have started, and ended: {gist(said)}. The whole log is {place.log}.",
    )


def _wait_until_answering(place: Place, say: Callable[[str], None], log: LogTail) -> None:
    began = time.monotonic()
    due = began + _SAY_AFTER_S
    target = f"{dsn(place)} connect_timeout={_PING_S}".encode()
    # NO_ATTEMPT: libpq does not like our options (an unknown PGSERVICE); connecting will say why.
    while (answer := pq.PGconn.ping(target)) not in (pq.Ping.OK, pq.Ping.NO_ATTEMPT):
        if answer != pq.Ping.REJECT and not listener(place.socket):
            raise ServerGone
        now = time.monotonic()
        if now > due:
            due = now + _SAY_EVERY_S
            state = _state(place) if answer == pq.Ping.REJECT else "does not answer yet"
            say(f"the database server {state}, {now - began:.0f} s so far{_progress(log.text())}")
        time.sleep(_POLL_S)


def _state(place: Place) -> str:
    """Return what a server is doing that lets nobody in: its control file says how it ended the last time."""
    (state,) = struct.unpack_from("=i", (place.data / "global/pg_control").read_bytes(), _STATE_AT)
    return "is starting" if state == _SHUT_DOWN else "is recovering after a crash"


def _progress(said: str) -> str:
    found = re.findall(r"LOG: +(redo in progress.*|syncing data directory.*|.*elapsed time.*)", said)
    return f" ({found[-1]})" if found else ""


def _ask(place: Place, connection: psycopg.Connection) -> dict[str, str]:
    names = [*DURABLE, "listen_addresses", "server_version"]
    facts: dict[str, str] = {}
    asked = {"names": names, "writer": WRITER}
    for name, value, source, file in connection.execute(_QUERIES["read_server_facts"], asked):
        facts[name] = value
        if name in DURABLE and value != DURABLE[name]:
            raise trouble(
                "NOT_DURABLE",
                f"A ledger needs {name}={DURABLE[name]}, and the server runs with {name}={value} (from "
                f"{' '.join((source, file)).strip()}). Remove that setting and try again; nothing was "
                "written.",
            )
    _assert_ours(place, facts)
    return facts


def _assert_ours(place: Place, facts: dict[str, str]) -> None:
    """Compare the system identifier, not the data directory's name, which need not be UTF-8."""
    (identifier,) = struct.unpack("=Q", (place.data / "global/pg_control").read_bytes()[:8])
    if int(facts["system_identifier"]) != identifier or facts["listen_addresses"]:
        raise trouble(
            "UNSAFE_DIRECTORY",
            f"The server on {place.socket} should serve {place.data} and nothing over TCP, and does not. "
            "Stop it and try again.",
        )
