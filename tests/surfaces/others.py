"""Hands for the tests in which a program that we did not write has the word: where they are, and how they are run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path("/usr/share/gocode")
PROOFBUNDLE = "proofbundle==6.3.1"

NO_GO = (
    "Go is not installed (Debian: golang-go)"
    if shutil.which("go") is None
    else "golang.org/x/mod is not installed (Debian: golang-golang-x-mod-dev)"
    if not (SOURCES / "src/golang.org/x/mod/sumdb").is_dir()
    else None
)


def build(source: Path, made: Path) -> Path:
    """Build a Go program into a directory, without modules and without a network."""
    where = {"GOPATH": str(SOURCES), "GO111MODULE": "off", "GOCACHE": str(made / "cache"), "GOFLAGS": ""}
    command = ["go", "build", "-o", str(made / source.stem), str(source)]
    subprocess.run(command, env={**os.environ, **where}, check=True, capture_output=True, timeout=300)
    return made / source.stem


def install_proofbundle(made: Path) -> Path | None:
    """Install PyPI's proofbundle in an environment of its own, and return its command; None where that fails."""
    pip = [str(made / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PROOFBUNDLE]
    for command in ([sys.executable, "-m", "venv", str(made)], pip):
        if subprocess.run(command, capture_output=True, timeout=300).returncode:
            return None
    return made / "bin" / "proofbundle"


def run(*command: str | Path) -> tuple[int, str]:
    """Run a program, and return its exit and what it said."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.strip()
