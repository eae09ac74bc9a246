"""An export that is killed leaves nothing under the name that was asked for, and nothing beside it for long."""

from pathlib import Path

import pytest

from gateway.bootstrap import open_gateway
from tests.faults.ledger_hands import Child, Document, assert_in_order, kill, read_ledger, run

FORMS = [("jsonl", "a.jsonl"), ("csv", "a.csv.gz"), ("bundle", "a"), ("bundle", "a.tar.gz")]


@pytest.fixture
def lived(where: Document) -> Document:
    """The arguments that open a ledger in which a memory is."""
    where = {**where, "embedder": "none"}
    with open_gateway(**where) as gateway:
        gateway.remember("One.", memory_id="one")
    return where


def left(folder: Path) -> list[bool]:
    """Return of each thing in a folder if it is hidden."""
    return [path.name.startswith(".") for path in folder.iterdir()]


@pytest.mark.parametrize(("form", "name"), FORMS, ids=[name for _, name in FORMS])
def test_what_a_killed_export_left_is_swept_by_the_next(lived: Document, tmp_path: Path, form: str, name: str) -> None:
    """Killed while it writes, it recorded nothing and leaves one hidden folder, which the next export removes."""
    folder = tmp_path / "out"
    folder.mkdir()
    ended = Child("export", lived, path=str(folder / name), form=form, struck=True).end()
    assert ended.struck == "while exporting", ended.complaints
    assert left(folder) == [True]
    assert read_ledger(lived).types["export.made"] == 0

    run("export", lived, path=str(folder / name), form=form)

    assert left(folder) == [False]
    assert assert_in_order(lived).types["export.made"] == 1


@pytest.mark.parametrize(("form", "name"), FORMS[1:3], ids=[name for _, name in FORMS[1:3]])
def test_an_export_that_was_recorded_and_not_handed_out_is_handed_out(
    lived: Document, tmp_path: Path, form: str, name: str
) -> None:
    """Killed after its event was committed: asked for again with its key it is there, recorded once."""
    folder = tmp_path / "out"
    folder.mkdir()
    words = {"path": str(folder / name), "form": form, "key": "k-1"}
    kill("export", lived, "after the commit", **words)
    assert left(folder) == [True]
    assert read_ledger(lived).types["export.made"] == 1

    (answer,) = run("export", lived, **words).answers

    assert answer["replayed"]
    assert left(folder) == [False]
    assert assert_in_order(lived).types["export.made"] == 1
