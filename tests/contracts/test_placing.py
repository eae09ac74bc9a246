"""A file that is given its name, on file systems with and without hard links."""

import errno
import os
from pathlib import Path

import pytest

from ledger.placing import place_file


def refuse(*_: object) -> None:
    """Be a file system that has no hard links."""
    raise PermissionError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("linking", [True, False], ids=["hard links", "no hard links"])
def test_a_finished_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linking: bool) -> None:
    """The content is there under the name, whole."""
    if not linking:
        monkeypatch.setattr(os, "link", refuse)
    written = tmp_path / "aside"
    written.write_bytes(b"whole")
    place_file(written, tmp_path / "final")
    assert (tmp_path / "final").read_bytes() == b"whole"


def test_what_is_there_is_never_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given something of that name, then it stays, and so does what was written; without hard links, too."""
    written, final = tmp_path / "aside", tmp_path / "final"
    written.write_bytes(b"new")
    final.write_bytes(b"old")

    for _ in range(2):
        with pytest.raises(FileExistsError):
            place_file(written, final)
        assert (final.read_bytes(), written.read_bytes()) == (b"old", b"new")
        monkeypatch.setattr(os, "link", refuse)
