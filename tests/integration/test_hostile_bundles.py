"""A corpus of bundles that an enemy made: each ends in the right exit, quickly, in little memory, and writes nothing.

Rows 18 to 22 of the threat model, and what else an archive or a file can be. Each is given to our own check and to the
program that lies in every bundle; one process of each checks the whole corpus, so that its peak of memory bounds all.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ledger.bundle import writing as bundle_writing
from tests import hostile, hostile_tiled
from tests.conftest import fresh_database
from tests.integration.conftest import Here
from tests.integration.test_export import key_of, remembered
from tests.roles import as_writer

SECONDS_MAX, BYTES_MAX = 2.0, 200 << 20
ALONE = Path(bundle_writing.__file__).parent / "shipped" / "verify.py"
SINGLE, TILED = dict(hostile.cases()), dict(hostile_tiled.cases())
CASES = SINGLE | TILED
FILLING = 125  # memories with a name, two entries each: more than a tile of them in all

OURS = (
    "from gateway.audit.bundles import verify_bundle\n"
    "def check(path, key):\n    return verify_bundle(path, key).exit_code\n"
)
SMALL = (
    "import importlib.util\n"
    f"spec = importlib.util.spec_from_file_location('alone', {str(ALONE)!r})\n"
    "alone = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(alone)\n"
    "def check(path, key):\n    return alone.main([key, path])\n"
)
ALL = """
import contextlib, io, json, os, re, sys, time
def peak():  # of this program alone: what getrusage says began with the process that started it
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) * 1024
found = {}
for name in sorted(os.listdir(sys.argv[1])):
    begun = time.process_time()  # of work: what others do on the machine is none of a bundle's
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            code = check(os.path.join(sys.argv[1], name, "bundle"), sys.argv[2])
        except Exception as error:
            code = repr(error)
    found[name] = [code, time.process_time() - begun, peak()]
print(json.dumps(found))
"""


class Found(NamedTuple):
    """What became of one case under one program: exit, seconds, and the process's peak of memory after it."""

    exit: int | str
    seconds: float
    peak: int


class Corpus(NamedTuple):
    """What both programs said of each case, and what lay where after they had run."""

    ours: Mapping[str, Found]
    alone: Mapping[str, Found]
    left_behind: list[str]
    changed: list[str]


@pytest.fixture(scope="module")
def corpus(server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    """Return what became of every case; they all are of one ledger's bundles, of a memory or of the whole log."""
    made = tmp_path_factory.mktemp("hostile")
    with fresh_database(server_url, template=migrated_template) as owner:
        here = Here(as_writer(owner), made / "home")
        gateway = here(embedder="none")
        remembered(gateway)
        gateway.export_supersession(["deploys"], made / "complete", complete=True)
        gateway.export_supersession(["deploys"], made / "plain")
        gateway.remember("Gone.", memory_id="gone")
        gateway.forget("gone")  # which leaves a tombstone: an event without a payload
        for number in range(FILLING):
            gateway.remember(f"It is {number}.", memory_id=f"number-{number}")
        gateway.export_ledger(made / "tiled", complete=True)
        key, signing = key_of(here), here.home / "keys" / "signing.pem"
        here.close()
        good = hostile.loaded(made / "plain", made / "complete", key, signing)
        folder = made / "cases"
        for what, cases, path in (("good", SINGLE, good.path), ("good-tiled", TILED, made / "tiled")):
            for name, case in cases.items():
                (folder / name).mkdir(parents=True)
                case.act(good._replace(path=Path(shutil.copytree(path, folder / name / "bundle"))))
            shutil.copytree(path, folder / what / "bundle")
        before = sorted(map(str, folder.rglob("*")))
        (aside := made / "tmp").mkdir()
        ours, small = (_run(program, folder, key, aside) for program in (OURS, SMALL))
        changed = sorted(set(map(str, folder.rglob("*"))) ^ set(before))
        yield Corpus(ours, small, os.listdir(aside), changed)


def _run(program: str, folder: Path, key: str, aside: Path) -> Mapping[str, Found]:
    environment: dict[str, Any] = {**os.environ, "TMPDIR": str(aside), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", program + ALL, str(folder), key],
        env=environment, cwd=aside, capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    return {name: Found(*each) for name, each in json.loads(done.stdout).items()}


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_bundle_ends_in_the_right_exit(corpus: Corpus, name: str) -> None:
    """Row 18 to 22: tampered or malformed is 14, what the key does not show is 15; in two seconds, by both programs."""
    ours, alone = corpus.ours[name], corpus.alone[name]
    assert (ours.exit, alone.exit) == (CASES[name].ours, CASES[name].alone)
    assert max(ours.seconds, alone.seconds) < SECONDS_MAX


def test_the_bundle_that_all_were_made_of_is_good(corpus: Corpus) -> None:
    """The corpus shows something only because nothing but the enemy's act is wrong with it."""
    for good in ("good", "good-tiled"):
        assert (corpus.ours[good].exit, corpus.alone[good].exit) == (0, 0)


def test_no_hostile_bundle_takes_much_memory(corpus: Corpus) -> None:
    """The peak of a process that has checked all of them is below 200 MB."""
    for found in (corpus.ours, corpus.alone):
        name, worst = max(found.items(), key=lambda one: one[1].peak)
        assert worst.peak < BYTES_MAX, name


def test_the_program_in_a_bundle_is_read_at_one_sitting() -> None:
    """A reviewer can read all of it: three hundred lines at most."""
    assert len(ALONE.read_text(encoding="utf-8").splitlines()) <= 300


def test_no_hostile_bundle_writes_a_file(corpus: Corpus) -> None:
    """Nothing is left in the folder for temporary files, beside the bundles, or where a path wanted to lead."""
    assert (corpus.left_behind, corpus.changed) == ([], [])
    assert not any(Path(one).exists() for one in ("/tmp/escaped", "/escaped"))
