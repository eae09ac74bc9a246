"""The README's console, typed as it stands there: it shows what comes, but for ids, hashes, sizes and places."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"

# What a shell would find after the environment was activated.
SHELL = f"""
python() {{ '{sys.executable}' "$@"; }}
corrigenda() {{ python -c 'from cli.main import main; main()' "$@"; }}
"""
VARIES = (
    (r"\b(rev|mem|op|cor)_[0-9A-Z]{26}\b", r"\1_…"),
    (r"\bcorrigenda\.invalid/[0-9A-Z]{26}\b", "ORIGIN"),
    (r"\b[0-9a-f]{64}\b", "HASH"),
    (r"\S*/office\.tar\.gz", "office.tar.gz"),
    (r"\b[\d,]+ bytes\b", "N bytes"),
)


def typed(text: str) -> list[tuple[str, str]]:
    """Return each command of the console blocks, as it is typed, with what is shown under it."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            whole = r"(?:.*<<'END'\n(?:.*\n)*?END\n|(?:.*\\\n)*.*\n)"
            command = re.match(whole, part)
            assert command is not None
            found.append((command[0].rstrip("\n"), part[command.end() :]))
    return found


def plain(text: str) -> str:
    """Return a text without what is another one each time, and without blank lines."""
    for pattern, instead in VARIES:
        text = re.sub(pattern, instead, text)
    return "".join(f"{line}\n" for line in text.splitlines() if line.strip())


def shown(expected: str) -> re.Pattern[str]:
    """Return what matches an output: a line of `…` stands for any lines."""
    lines = plain(expected).splitlines()
    return re.compile("".join(r"(?:.*\n)*" if line == "…" else re.escape(line) + r"\n" for line in lines))


def test_the_console_of_the_readme_shows_what_comes(
    ledger_url: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of the README, in order, ends well and prints what is shown under it."""
    for name, value in {"HOME": str(home), "PROJECT": "handbook", "DATABASE_URL": ledger_url}.items():
        monkeypatch.setenv(f"CORRIGENDA_{name}", value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    subprocess.run(["bash", "-c", f"{SHELL}corrigenda db init"], cwd=tmp_path, check=True, capture_output=True)
    commands = typed(README.read_text(encoding="utf-8"))
    assert len(commands) > 15
    for command, expected in commands:
        if command.startswith((". ", "export ")):
            continue
        done = subprocess.run(
            ["bash", "-c", SHELL + command],
            cwd=tmp_path,
            env=os.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        if expected == "Killed\n":
            assert done.returncode == 137, command
            continue
        assert done.returncode == 0, (command, done.stdout)
        assert shown(expected).fullmatch(plain(done.stdout)), (command, done.stdout)
