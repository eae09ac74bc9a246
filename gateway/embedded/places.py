"""Where a home's server keeps its things, and whom it runs as.

An ordinary user's server lies wholly in HOME/postgres. Root's cannot: PostgreSQL refuses to run as root,
and its account may not read root's directories. So as root the home holds only a random id, and everything
else is in /var/lib/corrigenda/<id>, the data owned by the account `corrigenda` if there is one, else
`nobody`.

`find` looks and makes nothing; `prepare` makes what is missing. Must never act on a home of another user.
"""

import contextlib
import hashlib
import os
import pwd
import re
import secrets
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.embedded.failures import EXTERNAL, trouble, unwritable, writing
from gateway.embedded.files import own_directory, write_whole
from gateway.embedded.locks import EXCLUSIVE, take
from gateway.embedded.processes import Identity

NAME = "corrigenda"
BASE = Path("/var/lib/corrigenda")
SOCKET = ".s.PGSQL.5432"  # the port is only part of the socket's name: nothing listens on TCP

_SOCKET_PATH_BYTES_MAX = 107 if sys.platform.startswith("linux") else 103
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+@=~ -]+")  # libpq splits a host at commas; psycopg wants UTF-8
_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Place:
    """One home's server: `state` holds locks, log and access files, `run` the socket, `data` the cluster."""

    home: Path
    state: Path
    run: Path
    me: pwd.struct_passwd
    account: pwd.struct_passwd

    @property
    def data(self) -> Path:
        """Return the data directory, which may not exist yet."""
        return self.state / "data"

    @property
    def socket(self) -> str:
        """Return the path of the server's Unix socket."""
        return str(self.run / SOCKET)

    @property
    def log(self) -> Path:
        """Return the file that the server and its watcher write their messages to."""
        return self.state / "server.log"

    @property
    def made(self) -> bool:
        """Report whether a cluster has been made here."""
        with writing(self.data):
            return (self.data / "PG_VERSION").exists()

    @property
    def drops(self) -> bool:
        """Report whether the server runs as another user than we do."""
        return self.account.pw_uid != self.me.pw_uid

    def as_account(self) -> Identity:
        """Return the Popen arguments of a child that runs as the account, its files closed to others."""
        if not self.drops:
            return {"umask": 0o077}
        return {
            "user": self.account.pw_uid,
            "group": self.account.pw_gid,
            "extra_groups": [],
            "umask": 0o077,
        }


def find(home: str | os.PathLike[str]) -> Place | None:
    """Return where the home's server is or would be, making nothing; None where root's home has no id yet."""
    me, path = _whoami(), _resolve(home)
    _refuse_home_of_another(path, me)
    if me.pw_uid:
        return _user_place(path, me)
    number = _read_id(path)
    if number is None:
        return None
    state = BASE / number
    _refuse_copy(path, state, number)
    return _root_place(path, state, me)


def prepare(home: str | os.PathLike[str]) -> Place:
    """Return where the home's server is, with every directory made that it needs."""
    me, path = _whoami(), _resolve(home)
    with writing(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_home_of_another(path, me)
    own_directory(path / "postgres", 0o700, me)
    if me.pw_uid:
        place = _user_place(path, me)
        own_directory(place.run, 0o700, me)
        return place
    own_directory(BASE, 0o755, me)
    number = _read_id(path) or _make_id(path)
    state = BASE / number
    own_directory(state, 0o711, me)
    with writing(state):
        _refuse_copy(path, state, number)
        if recorded_home(state) != path:
            write_whole(state / "home", str(path), 0o600)
    place = _root_place(path, state, me)
    own_directory(place.run, 0o700, place.account)
    return place


def recorded_home(state: Path) -> Path | None:
    """Return the home that root's state directory last belonged to, or None if it does not say."""
    with contextlib.suppress(FileNotFoundError):
        return Path(os.fsdecode((state / "home").read_bytes()))
    return None


def names(home: Path, number: str) -> bool:
    """Report whether the home at that path exists and names this id."""
    with contextlib.suppress(OSError):
        return _id_file(home).read_text().strip() == number
    return False


def forget(place: Place) -> None:
    """Remove the home's id, so that the next start makes a new cluster."""
    if place.me.pw_uid == 0:
        _id_file(place.home).unlink(missing_ok=True)


def states() -> Iterator[Path]:
    """Yield the state directories of root's homes."""
    with contextlib.suppress(OSError):
        yield from (path for path in sorted(BASE.iterdir()) if _ID.fullmatch(path.name))


def _whoami() -> pwd.struct_passwd:
    if not hasattr(os, "geteuid"):
        raise trouble("NO_SERVER", f"The embedded PostgreSQL needs Linux or macOS; {EXTERNAL}.")
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid)
    except KeyError as error:
        raise trouble(
            "NO_ACCOUNT",
            f"User id {uid} has no name in /etc/passwd, and PostgreSQL's initdb and its peer authentication "
            f"need one. Add an entry, use another user id, or {EXTERNAL}.",
        ) from error


def _resolve(home: str | os.PathLike[str]) -> Path:
    if any(ord(character) < 32 for character in os.fspath(home)):
        raise trouble(
            "HOME_NOT_WRITABLE",
            "CORRIGENDA_HOME must be a path of printable characters, and holds a control character. Choose another.",
        )
    return Path(os.path.realpath(home))


def _refuse_home_of_another(home: Path, me: pwd.struct_passwd) -> None:
    try:
        owner = home.stat().st_uid
        inner = home / "postgres"
        theirs = me.pw_uid == 0 and (inner / "data").exists()
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(home, error) from error
    if owner != me.pw_uid or theirs:
        whose = f"belongs to user id {owner}" if owner != me.pw_uid else "holds an ordinary user's database"
        raise trouble(
            "HOME_OF_ANOTHER",
            f"{home} {whose}, and this process runs as {me.pw_name} (user id {me.pw_uid}). Run as its owner "
            "(sudo -u), or set CORRIGENDA_HOME to a directory of your own.",
        )


def _user_place(home: Path, me: pwd.struct_passwd) -> Place:
    state = home / "postgres"
    return Place(home, state, _socket_directory(state, me.pw_uid), me, me)


def _root_place(home: Path, state: Path, me: pwd.struct_passwd) -> Place:
    return Place(home, state, state / "run", me, _server_account(state / "data"))


def _socket_directory(state: Path, uid: int) -> Path:
    """Return `run` beside the data; where its path is too long or too odd for libpq, a short one in /tmp."""
    run = state / "run"
    if len(os.fsencode(run / SOCKET)) <= _SOCKET_PATH_BYTES_MAX and _PLAIN_PATH.fullmatch(str(run)):
        return run
    return Path(f"/tmp/{NAME}-{uid}-{hashlib.sha256(os.fsencode(state)).hexdigest()[:12]}")


def _id_file(home: Path) -> Path:
    return home / "postgres" / "id"


def _read_id(home: Path) -> str | None:
    path = _id_file(home)
    try:
        number = path.read_text(errors="replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unwritable(path, error) from error
    if not _ID.fullmatch(number):
        raise trouble(
            "HOME_DAMAGED",
            f"{path} should hold 16 hexadecimal digits, and does not. The data lie in {BASE}/<id>, each with "
            "the name of its home in the file `home`: write the right id back.",
        )
    return number


def _make_id(home: Path) -> str:
    """Return a random id: a home made again at the same path must not meet its predecessor's data."""
    with _locked(home / "postgres" / "id.lock"):
        number = _read_id(home)
        if number is None:
            number = secrets.token_hex(8)
            write_whole(_id_file(home), number + "\n", 0o600)
        return number


@contextmanager
def _locked(path: Path) -> Generator[None, None, None]:
    with writing(path):
        descriptor = take(path, EXCLUSIVE)
        try:
            yield
        finally:
            os.close(descriptor)


def _refuse_copy(home: Path, state: Path, number: str) -> None:
    """A moved home keeps its data; a copied one would share them with the original."""
    original = recorded_home(state)
    if original is not None and original != home and names(original, number):
        raise trouble(
            "HOME_COPIED",
            f"{home} is a copy of {original}, and both name the same data in {state}. Remove "
            f"{_id_file(home)} to give the copy a new, empty database.",
        )


def _server_account(data: Path) -> pwd.struct_passwd:
    with contextlib.suppress(OSError, KeyError):
        return pwd.getpwuid(data.stat().st_uid)  # an existing cluster keeps its owner
    for name in (NAME, "nobody"):
        with contextlib.suppress(KeyError):
            account = pwd.getpwnam(name)
            if account.pw_uid:
                return account
    raise trouble(
        "NO_ACCOUNT",
        f"PostgreSQL does not run as root, and there is neither an account {NAME} nor nobody. Make one "
        f"(useradd --system {NAME}), or run as an ordinary user.",
    )
