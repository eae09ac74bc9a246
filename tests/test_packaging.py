"""The wheel holds what it should and nothing else, and works where strangers' packages bear our names."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("ledger", "projections", "gateway", "cli", "migrations")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
DATA_SUFFIXES = {".sql", ".jsonl", ".json", ".gz", ".txt", ".typed"}


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end with no import path of ours in the environment."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CORRIGENDA_"))}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel built from this tree, with no network."""
    out = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the scripts' folder of a new environment that holds the wheel.

    The libraries that it needs come from the running environment, after its own packages: nothing is downloaded.
    """
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=False)
    scripts = environment / "bin"
    install = ["-m", "pip", "--python", scripts / "python", "install", "--no-deps", "--no-index", wheel]
    done = run(sys.executable, *install, cwd=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (site_packages,) = environment.glob("lib/python*/site-packages")
    borrowed = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (site_packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n", encoding="utf-8")
    return scripts


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a folder with packages of our names that leave a mark and raise as soon as they are imported."""
    for name in ("cli", "migrations"):
        package = tmp_path / name
        package.mkdir()
        code = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\nraise RuntimeError('hostile')\n"
        (package / "__init__.py").write_text(code, encoding="utf-8")
    return tmp_path


def ran(hostile: Path) -> list[Path]:
    """Return the marks of the strangers' packages that were executed."""
    return list(hostile.glob("*/ran"))


def test_the_wheel_holds_exactly_the_house(wheel: Path) -> None:
    """Five packages, the front door and its stub; no tests, no documentation, no tools."""
    with zipfile.ZipFile(wheel) as archive:
        top = {name.partition("/")[0] for name in archive.namelist()}
    assert top == {*FLOORS, "corrigenda.py", "corrigenda-stubs", f"corrigenda-{VERSION}.dist-info"}


def test_the_wheel_carries_every_data_file(wheel: Path) -> None:
    """SQL, vocabularies, the excerpt and the marks of typed packages are shipped beside the code that reads them."""
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    expected = {
        path.relative_to(ROOT).as_posix()
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*")
        if path.suffix in DATA_SUFFIXES
    }
    assert {f"{floor}/py.typed" for floor in FLOORS} <= expected <= shipped


def test_the_stub_is_the_front_door(wheel: Path) -> None:
    """Type checkers read in the stub what the interpreter reads in the module."""
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("corrigenda-stubs/__init__.pyi") == archive.read("corrigenda.py")


def test_the_library_imports_from_anywhere(bin_folder: Path, tmp_path: Path) -> None:
    """The installed front door opens in a folder that has nothing to do with it, and knows its version."""
    done = run(bin_folder / "python", "-c", "import corrigenda; print(corrigenda.__version__)", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{VERSION}\n", "")


@pytest.mark.parametrize(("argument", "answer"), [("--help", "memories"), ("version", VERSION)])
def test_the_command_works_in_a_hostile_folder(bin_folder: Path, hostile: Path, argument: str, answer: str) -> None:
    """`corrigenda` never looks for its packages in the folder where it is called."""
    done = run(bin_folder / "corrigenda", argument, cwd=hostile)
    assert (done.returncode, done.stderr) == (0, "")
    assert answer in done.stdout
    assert ran(hostile) == []


def test_the_library_refuses_a_stranger_s_package(bin_folder: Path, hostile: Path) -> None:
    """`python -c` looks in the current folder first: the ImportError names that folder, and none of its code runs."""
    done = run(bin_folder / "python", "-c", "import corrigenda", cwd=hostile)
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert message.startswith("ImportError: corrigenda expected its package 'cli' in ")
    assert f"the one that Python finds is {hostile / 'cli'}." in message
    assert "virtual environment of its own" in message
    assert ran(hostile) == []


def test_the_library_imports_in_a_hostile_folder_that_is_not_on_the_path(bin_folder: Path, hostile: Path) -> None:
    """With `python -P` the current folder is not looked in, and a hostile one does no harm."""
    done = run(bin_folder / "python", "-P", "-c", "import corrigenda", cwd=hostile)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_plain_folder_of_our_name_does_no_harm(bin_folder: Path, tmp_path: Path) -> None:
    """A `migrations/` that is no package, as many projects have one, loses to ours."""
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0001_theirs.sql").write_text("SELECT 1;\n", encoding="utf-8")
    done = run(bin_folder / "python", "-c", "import corrigenda, migrations; print(migrations.__file__)", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(done.stdout.strip()).is_relative_to(tmp_path)


def test_the_readme_starts_with_its_two_commands() -> None:
    """After the title and one sentence come two one-line commands: one ends in the demo, one in the tests."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^```sh\n(.+)\n```$", text, re.MULTILINE)[:2]
    assert commands[0].endswith("/corrigenda demo")
    assert commands[1].endswith("/pytest -n auto")
    before = text[: text.index("```sh")].split("\n\n")
    assert [part.lstrip("# ").partition(" ")[0] for part in before if part.strip()] == ["Corrigenda", "The", "See"]
