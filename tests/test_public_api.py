"""The front door offers what it says: a complete, sorted and documented list of public names."""

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import corrigenda
from gateway.shapes import replies
from gateway.shapes.replies.base import Reply
from ledger import errors

ROOT = Path(__file__).resolve().parents[1]


def classes_of(module: object, base: type) -> set[str]:
    """Return the names of the subclasses of `base`, itself included, that a module offers."""
    return {name for name, value in vars(module).items() if inspect.isclass(value) and issubclass(value, base)}


def test_the_list_is_sorted_and_without_doubles() -> None:
    """A reader finds a name where the alphabet puts it."""
    assert corrigenda.__all__ == sorted(set(corrigenda.__all__))


def test_the_list_is_complete() -> None:
    """Every error family and every shape of an answer can be had from the front door."""
    topics = [import_module(f"{replies.__name__}.{found.name}") for found in iter_modules(replies.__path__)]
    answers = set[str]().union(*(classes_of(topic, Reply) for topic in topics))
    expected = classes_of(errors, errors.CorrigendaError) | answers
    functions = {"contains", "open", "verify_bundle"}
    assert expected | functions | {"Gateway", "__version__"} == set(corrigenda.__all__)


def test_every_public_name_is_there_and_documented() -> None:
    """Each name resolves, and each that can carry a docstring says what it is."""
    values = {name: getattr(corrigenda, name) for name in corrigenda.__all__}
    assert [name for name, value in values.items() if not inspect.getdoc(value)] == []
    assert inspect.getdoc(corrigenda)


def test_documentation_is_its_own_and_not_inherited() -> None:
    """A class that is public has a sentence of its own."""
    values = {name: getattr(corrigenda, name) for name in corrigenda.__all__}
    assert [name for name, value in values.items() if inspect.isclass(value) and not value.__doc__] == []


def test_every_method_of_the_gateway_is_documented() -> None:
    """Whoever asks for help on a use case gets an answer."""
    methods = inspect.getmembers(corrigenda.Gateway, inspect.isfunction)
    assert [name for name, method in methods if not name.startswith("_") and not method.__doc__] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    """Names that are loaded late do not hide the ones that do not exist."""
    assert not hasattr(corrigenda, "no_such_name")


def test_importing_the_front_door_is_light() -> None:
    """`import corrigenda` loads no database driver, no index, no model and no door."""
    program = "import sys, corrigenda; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"alembic", "cryptography", "faiss", "numpy", "onnxruntime", "psycopg", "pydantic", "rich", "tokenizers"}
    assert heavy & set(done.stdout.split()) == set()
