"""A process that uses an embedded server, for the fault tests to run, kill and measure. One JSON line per answer.

    embedded_client.py visit HOME GRACE_S [--hold] [--fork S] [--attaches N] [--existing] [--unchecked-disk]
                                     [--postgres-bin DIR]
    embedded_client.py sql DSN STATEMENT…
    embedded_client.py stop HOME [--remove]

Imports nothing of the tests, since it also runs as a user who may read little.
"""

import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import psycopg

from gateway.embedded import Server, attach, cluster, places, stop
from gateway.embedded.processes import listener
from ledger.errors import CorrigendaError


def main() -> int:
    """Run one of the three commands; exit 3 on an error of the registry, which is printed."""
    words = parser().parse_args()
    if base := os.environ.get("EMBEDDED_BASE"):
        places.BASE = Path(base)
    try:
        {"visit": visit, "sql": sql, "stop": end}[words.command](words)
    except CorrigendaError as error:
        say({"error": error.code, "reason": error.details.get("reason"), "text": str(error)})
        return 3
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    top = argparse.ArgumentParser()
    commands = top.add_subparsers(dest="command", required=True)
    visiting = commands.add_parser("visit")
    visiting.add_argument("home")
    visiting.add_argument("grace_s", type=float)
    visiting.add_argument("--hold", action="store_true", help="stay until standard input ends")
    visiting.add_argument("--fork", type=float, help="leave a forked child behind for this many seconds")
    visiting.add_argument("--attaches", type=int, default=1, help="attach so often at once, in threads")
    visiting.add_argument("--existing", action="store_true")
    visiting.add_argument("--unchecked-disk", action="store_true", help="leave out the early look at the disk")
    visiting.add_argument("--postgres-bin", type=Path, help="the programs of a system PostgreSQL")
    asking = commands.add_parser("sql")
    asking.add_argument("dsn")
    asking.add_argument("statements", nargs="+")
    ending = commands.add_parser("stop")
    ending.add_argument("home")
    ending.add_argument("--remove", action="store_true")
    return top


def visit(words: argparse.Namespace) -> None:
    """Attach, print what was found, and stay as long as told."""
    if words.unchecked_disk:
        cluster.NEW_CLUSTER_BYTES = cluster.START_BYTES = 0
    began = time.monotonic()
    servers = attach_all(words)
    took_s = time.monotonic() - began
    found = [listener(server.place.socket) for server in servers]
    server = servers[0]
    say(
        {
            "attach_s": round(took_s, 3),
            "postmasters": sorted({one.pid if one else -1 for one in found}),
            "uid": found[0].uid if found[0] else -1,
            "dsn": server.owner_dsn,
            "state": str(server.place.state),
            "run": str(server.place.run),
            "facts": server.facts,
        }
    )
    if words.fork is not None and os.fork() == 0:
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        time.sleep(words.fork)
        os._exit(0)
    if words.hold:
        sys.stdin.buffer.read()
    for server in servers:
        server.close()


def attach_all(words: argparse.Namespace) -> list[Server]:
    """Attach as often as told, all at once; the first error is raised."""
    servers: list[Server] = []
    errors: list[Exception] = []

    def one() -> None:
        try:
            servers.append(
                attach(
                    words.home,
                    grace_s=words.grace_s,
                    say=complain,
                    create=not words.existing,
                    postgres_bin=words.postgres_bin,
                )
            )
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(words.attaches - 1)]
    for thread in threads:
        thread.start()
    one()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return servers


def sql(words: argparse.Namespace) -> None:
    """Run each statement by itself and print the last one's rows."""
    with psycopg.connect(words.dsn, autocommit=True) as connection:
        for statement in words.statements[:-1]:
            connection.execute(statement)
        cursor = connection.execute(words.statements[-1])
        say(cursor.fetchall() if cursor.description else [])


def end(words: argparse.Namespace) -> None:
    """Stop the home's server."""
    stop(words.home, remove=words.remove)
    say({})


def complain(text: str) -> None:
    """Tell the test on standard error."""
    print(text, file=sys.stderr, flush=True)


def say(answer: object) -> None:
    """Print one JSON line."""
    print(json.dumps(answer, default=str), flush=True)


if __name__ == "__main__":
    sys.exit(main())
