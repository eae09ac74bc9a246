"""The command line as a process: closed pipes, full disks, and what is imported before anything is opened."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FULL = b"error UNEXPECTED: the answer could not be written: No space left on device\n"
CHILD = """
import sys
sys.path[:0] = ["tests/surfaces", "."]
from cli_hands import Stub, endless_log
import types
stub = Stub({"log": endless_log()})
sys.modules["gateway.upkeep.bare"] = types.ModuleType("gateway.upkeep.bare")
vars(sys.modules["gateway.upkeep.bare"]).update(open_bare=stub.open_bare)
from cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("words", [["--oneline"], ["-o", "json"], ["-o", "jsonl"]])
def test_a_reader_that_leaves(words: list[str]) -> None:
    """`corrigenda log | head` ends at once, without a word on stderr, as any program whose reader has left."""
    command = [sys.executable, "-c", CHILD, "log", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout and child.stderr
        child.stdout.readline()
        child.stdout.close()
        assert (child.wait(30), child.stderr.read()) == (141, b"")


def test_a_full_disk_is_not_exit_0() -> None:
    """What could not be written is told."""
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-c", "from cli.main import main; main(['--help'])"]
        child = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=30)
    assert (child.returncode, child.stderr) == (1, FULL)


@pytest.mark.parametrize("words", [["log", "--oneline"], ["log", "-o", "json"], ["log", "--oneline", "--traceback"]])
def test_a_disk_that_fills_up(words: list[str]) -> None:
    """An answer that could not be written is exit 1 with the reason, and no advice that does not help."""
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-c", CHILD, *words]
        child = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=30)
    told = json.loads(child.stderr)["message"].encode() if "json" in words else child.stderr
    assert (child.returncode, told) == (1, FULL[18:-1] if "json" in words else FULL)


def test_a_closed_stdout() -> None:
    """Without a stdout nothing is done, because nothing could be answered."""
    command = ["/bin/sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "-c", CHILD, "log", "--oneline"]
    child = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, timeout=30)
    assert child.returncode == 1
    assert child.stderr == b"error UNEXPECTED: the answer could not be written: stdout is closed\n"


HEAVY = {"psycopg", "pydantic", "numpy", "rich", "faiss", "msgspec", "alembic", "blake3", "onnxruntime", "asyncio"}


def modules_after(*words: str) -> set[str]:
    """The modules that a process has loaded when it is done with a command line."""
    run = (
        "import sys; from cli.main import main\ntry: main(sys.argv[1:])\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", run, *words]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
    return set(child.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "words", [["--help"], ["version"], ["--version"], ["memories", "remember", "--help"], ["log", "--bogus"]]
)
def test_help_and_typing_errors_import_click_only(words: list[str]) -> None:
    """Nothing of the floors below and nothing heavy is imported before a command opens a ledger."""
    run = (
        "import sys\nfrom cli.main import main\ntry: main(sys.argv[1:])\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    child = subprocess.run([sys.executable, "-c", run, *words], cwd=ROOT, capture_output=True, text=True, timeout=30)
    loaded = set(child.stderr.splitlines()[-1].split())
    assert "click" in loaded
    assert not HEAVY & loaded
    assert not {name for name in loaded if name.partition(".")[0] in ("gateway", "projections", "migrations")}


def test_a_verb_loads_no_other_noun() -> None:
    """A command imports its own module and not its neighbours'."""
    loaded = modules_after("db", "--help")
    assert "cli.db" in loaded
    assert not {"cli.memories.beginning", "cli.audit", "cli.imports", "cli.verify"} & loaded
