"""The cluster itself: how it is made, with which settings it runs, and who may come in.

Settings are given on the postmaster's command line, where ALTER SYSTEM cannot undo them; what ALTER ROLE
may still do is found by `check` at every attach. Must never offer TCP, a password, or a run without fsync.
"""

import os
import secrets
import subprocess
from pathlib import Path

from gateway.embedded.failures import disk_full, free_bytes, not_runnable, trouble
from gateway.embedded.files import own_directory, sync, write_whole
from gateway.embedded.places import Place
from gateway.embedded.processes import clean_environment
from gateway.embedded.remains import remove_draft
from gateway.embedded.wheel import Binaries, Source, ensure_runs

OWNER = "corrigenda"
WRITER = "corrigenda_writer"
# A statement that waits for a lock, or a transaction that stands still, holds up every writer of its ledger. Set for
# the role, so that they hold through a pooler, too.
TIME_OUTS = {"lock_timeout": "5s", "statement_timeout": "5min", "idle_in_transaction_session_timeout": "1min"}
# Named one by one: PostgreSQL 15 has no `all` in the last column, and a role nobody listed cannot log in.
ROLES = (OWNER, WRITER, "corrigenda_maintainer", "corrigenda_eraser")
PORT = 5432

NEW_CLUSTER_BYTES = 128 << 20  # a fresh cluster takes 39 MB, and its first checkpoints a second WAL segment
START_BYTES = 32 << 20

_SHORT_WRITE_HINT = "Check free disk space."  # PostgreSQL's whole word on a write that the disk cut short


def make(place: Place, binaries: Binaries, start_lock: int) -> None:
    """Make a new cluster, whole or not at all.

    initdb inherits `start_lock`: if we are killed, nobody starts anything before it has ended.
    """
    _clear_drafts(place)
    if free_bytes(place.state) < NEW_CLUSTER_BYTES:
        raise disk_full(place.state, NEW_CLUSTER_BYTES)
    ensure_runs(binaries.folder / "postgres", place.me)
    draft = place.state / f"data.new-{secrets.token_hex(4)}"
    own_directory(draft, 0o700, place.account)
    try:
        _initdb(place, binaries, draft, start_lock)
        if place.data.exists():
            place.data.rmdir()
        draft.rename(place.data)
        sync(place.state)
    except PermissionError as error:
        raise not_runnable(binaries.folder / "initdb", place.account, error) from error
    finally:
        remove_draft(draft)


def ensure_readable(place: Place, source: Source) -> None:
    """Refuse data of another major version, and a disk on which recovery could not even begin."""
    major = (place.data / "PG_VERSION").read_text().strip()
    if major != source.major:
        raise trouble(
            "OTHER_VERSION",
            f"The installed server is PostgreSQL {source.version}, and the data in {place.data} are of "
            f"version {major}. {source.mend(major)}",
        )
    if free_bytes(place.data) < START_BYTES:
        raise disk_full(place.data, START_BYTES)


def write_access_files(place: Place) -> None:
    """Say who may come in: whoever the kernel says is our user, as one of our roles."""
    user = place.me.pw_name
    access = "local all all peer map=corrigenda\nlocal replication all peer map=corrigenda\n"
    identities = "".join(f'corrigenda "{user}" {role}\n' for role in ROLES)
    for name, content in (("pg_hba.conf", access), ("pg_ident.conf", identities)):
        path = place.state / name
        if not path.exists() or path.read_text(errors="replace") != content:
            write_whole(path, content, 0o644)  # read by the server's account; the directory is ours


def postmaster_argv(place: Place, binaries: Binaries) -> list[str]:
    """Return the command line of the server."""
    settings = {
        "listen_addresses": "",
        "port": str(PORT),
        # a list, hence the quotes
        "unix_socket_directories": '"' + str(place.run).replace('"', '""') + '"',
        "unix_socket_permissions": "0700",
        "hba_file": str(place.state / "pg_hba.conf"),
        "ident_file": str(place.state / "pg_ident.conf"),
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        # /dev/shm is 64 MB in a container, and logind empties it at logout (RemoveIPC)
        "dynamic_shared_memory_type": "mmap",
        "logging_collector": "off",
        "log_destination": "stderr",
        "lc_messages": "C",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_startup_progress_interval": "5s",
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [str(binaries.folder / "postgres"), "-D", str(place.data), *options]


def _clear_drafts(place: Place) -> None:
    for left_over in place.state.glob("data.new-*"):
        remove_draft(left_over)
    if place.data.exists() and any(place.data.iterdir()):
        raise trouble(
            "HOME_DAMAGED",
            f"{place.data} should hold a database or nothing, and holds something else. Move it away, then try again.",
        )


def _initdb(place: Place, binaries: Binaries, draft: Path, start_lock: int) -> None:
    done = subprocess.run(
        [
            *(str(binaries.folder / "initdb"), "-D", str(draft), "-U", OWNER),
            *("--auth-local=peer", "--auth-host=reject", "--encoding=UTF8", "--locale=C"),
            *("--data-checksums", "--no-instructions"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=place.state,
        env=clean_environment(),
        pass_fds=[start_lock],
        start_new_session=True,
        **place.as_account(),
    )
    if done.returncode:
        said = os.fsdecode(done.stdout)
        if ran_out_of_space(said):
            raise disk_full(place.state, NEW_CLUSTER_BYTES)
        raise trouble(
            "START_FAILED",
            f"initdb should make a cluster in {place.state}, and failed: {gist(said)}. Put that right and try again.",
        )


def ran_out_of_space(said: str) -> bool:
    """Report whether PostgreSQL's messages tell of a full disk."""
    return any(sign in said for sign in ("No space left on device", "Disk quota exceeded", _SHORT_WRITE_HINT))


def gist(said: str) -> str:
    """Return the last three lines of a program's output that tell what went wrong."""
    words = ("FATAL", "PANIC", "error", "Error", "could not")
    lines = [line for line in said.splitlines() if any(word in line for word in words)] or said.splitlines()
    return " / ".join(lines[-3:])[:600] or "it said nothing"
