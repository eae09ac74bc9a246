"""The house keeps its shape: floors, a tidy top level, SQL in its own files, short functions, a quick command line."""

import ast
import fnmatch
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("ledger", "projections", "gateway", "cli", "migrations")
FUNCTION_LINES_MAX = 60

KNOWN_AT_TOP = {
    ".ci": "what continuous integration runs",
    ".gitignore": "what is never committed",
    "CHANGELOG.md": "what changed, by release",
    "LICENSE": "the terms",
    "Makefile": "the gates",
    "README.md": "the way in",
    "benchmarks": "the measurements behind the figures in the documentation",
    "changelog.d": "what changed since the last release, one fragment a change",
    "cli": "a floor",
    "corrigenda.py": "the front door",
    "docs": "architecture, format, words, decisions",
    "gateway": "a floor",
    "ledger": "a floor",
    "migrations": "a floor",
    "projections": "a floor",
    "pyproject.toml": "distribution, tools and contracts",
    "tests": "never shipped",
    "typings": "narrow stubs of libraries that ship no types",
}

# What touches a clock, a disk, a database or a secret. Every other module of the ledger is the core, and pure.
LEDGER_SHELL = {
    "anchor", "anchor_file", "anchor_log", "anchor_growth", "appending", "bundle", "census", "clock", "committer",
    "driver", "flush", "keys", "opening", "outbox", "parking", "placing", "rendering", "sealing", "sql", "store",
    "storing", "verified", "verify", "waiting", "walk", "wire",
}  # fmt: skip

# A statement that reads or changes tables. What only asks a server about itself (SHOW, SELECT 1) is none.
SQL = re.compile(
    r"\s*(SELECT\b.+\bFROM|INSERT\s+INTO|UPDATE\b.+\bSET|DELETE\s+FROM|TRUNCATE\s|WITH\b.+\bAS\s*\(|(CREATE|ALTER|DROP)"
    r"\s+(TABLE|INDEX|TRIGGER|FUNCTION|VIEW|TYPE))\b",
    re.DOTALL,
)


def shipped() -> list[Path]:
    """Return every Python file that is part of the wheel."""
    return [ROOT / "corrigenda.py", *(path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py")))]


def contracts() -> dict[str, dict[str, Any]]:
    """Return the import contracts of pyproject.toml by name."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return {contract["name"]: contract for contract in settings["contracts"]}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method of a module, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines that a function takes, without its docstring."""
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def test_imports_point_down_the_floors() -> None:
    """Every import contract of pyproject.toml is kept, and every module has its place in one."""
    run = "from importlinter.cli import lint_imports_command as run; run(['--no-logo', '--no-cache'])"
    done = subprocess.run([sys.executable, "-c", run], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_of_the_ledger_is_declared_pure_or_shell() -> None:
    """A new module of the ledger is in the contract of the pure core unless it is named as part of the shell."""
    packages = {path.parent.name for path in (ROOT / "ledger").glob("*/__init__.py")}
    modules = {path.stem for path in (ROOT / "ledger").glob("*.py")} - {"__init__"} | packages
    pure = {name.removeprefix("ledger.") for name in contracts()["the core is pure"]["source_modules"]}
    assert pure == modules - LEDGER_SHELL


def test_everything_at_the_top_level_has_a_known_purpose() -> None:
    """Nothing lies at the top level but what is named here or ignored."""
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    ignored = [line.strip("/") for line in lines if line and not line.startswith("#")] + [".git"]
    found = {path.name for path in ROOT.iterdir()}
    kept = {name for name in found if not any(fnmatch.fnmatch(name, pattern) for pattern in ignored)}
    assert kept - KNOWN_AT_TOP.keys() == set()


def test_no_module_is_named_like_a_floor() -> None:
    """`cli/ledger.py` would make two things of one name."""
    assert [path for path in shipped() if path.stem in FLOORS] == []


def test_sql_lies_in_its_own_files() -> None:
    """No string of a shipped module is a statement over tables: those have their names in .sql files."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in shipped()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_sql"),
    [
        ("SELECT seq FROM events", True),
        ("\n    INSERT INTO events VALUES (1)", True),
        ("UPDATE heads\nSET size = 1", True),
        ("SELECT 1", False),
        ("Select a revision from the list", False),
        ("UPDATE and DELETE are refused", False),
    ],
)
def test_the_tidiness_check_tells_sql_from_prose(text: str, is_sql: bool) -> None:
    """The check above finds statements over tables, and nothing else."""
    assert bool(SQL.match(text)) is is_sql


def test_functions_fit_a_screen() -> None:
    """No function is longer than a screen, its docstring apart."""
    long = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}: {code_lines(function)} lines"
        for path in shipped()
        for function in functions(ast.parse(path.read_text(encoding="utf-8")))
        if code_lines(function) > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_every_module_says_what_it_is_for() -> None:
    """Every shipped module that holds code starts with a docstring."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in shipped()}
    assert [str(path) for path, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []


def test_help_loads_click_and_nothing_else() -> None:
    """`corrigenda --help` answers without a database driver, an index or a model in memory."""
    program = """
import sys
before = set(sys.modules)
from cli.main import main
sys.argv = ["corrigenda", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
where = {name.partition(".")[0]: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()
         if name not in before}
print("loaded:", *sorted(name for name, file in where.items() if "site-packages" in file))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == ["loaded:", "click"]
