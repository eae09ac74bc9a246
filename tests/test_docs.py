"""The documents name what is there: each file of the project, and each page that they link to."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TOPS = {path.name for path in ROOT.iterdir()}


def named(text: str) -> set[str]:
    """Return what stands in a text's code spans and begins with a file or directory at the top of the project."""
    spans = re.findall(r"`([\w./-]+)`", text)
    return {span for span in spans if ("/" in span or span.endswith(".py")) and span.split("/")[0] in TOPS}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_file_that_a_document_names_exists(document: Path) -> None:
    """Each path of the project in a document's code spans is a file or a directory."""
    assert [path for path in sorted(named(document.read_text(encoding="utf-8"))) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_page_that_a_document_links_to_exists(document: Path) -> None:
    """Each link that leads to no other site leads to a file, and to a heading that is in it."""
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", document.read_text(encoding="utf-8")):
        page = document.parent / target if target else document
        assert page.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in headings}, anchor


def test_every_package_of_the_gateway_is_told_in_the_architecture() -> None:
    """The table of the gateway's packages has each of them, with the first sentence that it says of itself."""
    told = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `gateway/(\w+)` \| (.+) \|$", told, re.MULTILINE))
    packages = {path.parent.name: path for path in (ROOT / "gateway").glob("*/__init__.py")}
    said = {name: path.read_text(encoding="utf-8").split('"""')[1].split("\n")[0] for name, path in packages.items()}
    assert rows == said
