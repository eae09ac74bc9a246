"""The demo is played for real: a server, an import, a killed process, a changed byte."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cli.demo import Story

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_holds_every_claim_and_leaves_nothing(tmp_path: Path) -> None:
    """`corrigenda demo` tells about a dozen checked things, exits 0, and takes its home away again."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-c", "from cli.main import main; main()", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = [line for line in done.stdout.splitlines() if line[:2].strip().isdigit()]
    assert len(told) == 11
    assert "exit 10" in told[8] and "refused all the same" in told[7]
    assert list(tmp_path.glob("corrigenda-demo-*")) == []


def test_a_claim_that_does_not_hold_ends_the_demo() -> None:
    """Nothing is told that was not so: the first claim that fails is an error with its words."""
    with pytest.raises(click.ClickException, match="expected that the moon is round") as caught:
        Story().claim(False, "the moon is round")
    assert caught.value.exit_code == 1
