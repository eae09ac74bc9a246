"""`corrigenda export supersession` and `corrigenda verify --bundle`, from the memory to the auditor's verdict."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_hands import corrigenda, refused

from ledger.bundle import layout
from tests.conftest import fresh_database
from tests.integration.conftest import Here
from tests.roles import as_writer


@pytest.fixture(scope="module")
def here(server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Return the options that name a ledger with one memory, `deploys`."""
    made = tmp_path_factory.mktemp("export")
    with fresh_database(server_url, template=migrated_template) as owner:
        opened = Here(as_writer(owner), made / "home")
        gateway = opened(embedder="none")
        first = gateway.remember("Deploys happen on Mondays.", memory_id="deploys")
        gateway.correct(first.revision_id or "", "Deploys happen on Tuesdays.", reason="asked Ben")
        opened.close()
        yield [
            "--database-url",
            opened.ledger_url,
            "--home",
            str(opened.home),
            "--project",
            "atlas",
            "--actor",
            "human:ana",
        ]


def exported(here: list[str], path: Path, *more: str) -> str:
    """Make a bundle, and return the key that checks it."""
    made = corrigenda("export", "supersession", "deploys", "--out", str(path), *more, *here)
    assert made.code == 0, made.err
    return corrigenda("keys", "export-public", *here).out.strip()


def test_an_export_is_made_and_verified(here: list[str], tmp_path: Path) -> None:
    """The auditor needs the bundle and a key in a file, and none of our settings."""
    path = tmp_path / "bundle.tar.gz"
    (tmp_path / "key").write_text(exported(here, path) + "\n")
    found = corrigenda("verify", "--bundle", str(path), "--key", f"@{tmp_path / 'key'}")
    assert (found.code, found.out.splitlines()[0]) == (0, "verified")
    assert "Later events of these streams are not excluded" in found.out


def test_a_complete_bundle_and_its_check_show_how_far_they_are(here: list[str], tmp_path: Path) -> None:
    """Given --progress, then each part of the work is told on stderr to its end; stdout is the answer's."""
    path = str(tmp_path / "b.tar")
    words = ("export", "supersession", "deploys", "--complete", "--out", path, "--progress", "-o", "json", *here)
    made = corrigenda(*words)
    size, events = json.loads(made.out)["size"], json.loads(made.out)["events"]
    told = [" ".join(line.split()) for line in made.err.splitlines()]
    for verb, total, unit in (
        ("exported", events, "events"),
        ("written", size, "entries"),
        ("proven", events, "events"),
    ):
        assert any(line.startswith(verb) and f" {total}/{total} {unit} " in line for line in told), (verb, told)
    key = corrigenda("keys", "export-public", *here).out.strip()
    found = corrigenda("verify", "--bundle", path, "--key", key, "--progress")
    (done, total) = re.findall(r"verified .* (\d+)/(\d+) parts", found.err)[-1]
    assert found.code == 0 and done == total and "parts" not in found.out
    whole = corrigenda("export", "ledger", "--out", str(tmp_path / "c"), "--progress", *here)
    assert whole.code == 0 and "proven" in whole.err and "written" not in whole.err
    log = corrigenda("export", "ledger", "--complete", "--out", str(tmp_path / "d"), "--progress", "-o", "json", *here)
    events = json.loads(log.out)["events"]
    assert events == json.loads(log.out)["size"]
    shown = " ".join(log.err.split())
    assert f"{events}/{events} events " in shown and "proven" not in shown
    parts = corrigenda("verify", "--bundle", str(tmp_path / "d"), "--key", key, "--progress")
    (done, total) = re.findall(r"verified .* (\d+)/(\d+) parts", parts.err)[-1]
    assert parts.code == 0 and done == total


def test_the_verdict_is_a_document(here: list[str], tmp_path: Path) -> None:
    """With -o json both commands answer with one document."""
    made = corrigenda("export", "supersession", "deploys", "--out", str(tmp_path / "b"), "-o", "json", *here)
    assert json.loads(made.out)["profile"] == "proofs"
    key = corrigenda("keys", "export-public", *here).out.strip()
    found = json.loads(corrigenda("verify", "--bundle", str(tmp_path / "b"), "--key", key, "-o", "json").out)
    assert (found["ok"], found["exit_code"], found["verdict"]) == (True, 0, "verified")


def test_a_ledger_is_carried_to_another_tenant(here: list[str], tmp_path: Path) -> None:
    """Exported as lines and as a bundle, with progress on stderr, and imported into another ledger, twice."""
    path = tmp_path / "all.jsonl.gz"
    made = corrigenda("export", "ledger", "--format", "jsonl", "--out", str(path), "--progress", "-o", "json", *here)
    assert json.loads(made.out)["profile"] == "jsonl" and "events" in made.err
    again = corrigenda("export", "ledger", "--format", "jsonl", "--out", str(path), *here)
    assert again.code == 2 and "something is there" in again.err
    table = corrigenda("export", "corrections", "--format", "csv", "--out", str(tmp_path / "c.csv"), *here)
    assert (table.code, (tmp_path / "c.csv").read_text().count("\n")) == (0, 1)
    back = corrigenda("import", str(path), "-o", "json", *here)
    assert (back.code, json.loads(back.out)["stored"]) == (0, 0)
    key = exported(here, tmp_path / "b.tar")
    bundled = corrigenda("import", str(tmp_path / "b.tar"), "--key", key, *here)
    assert bundled.code == 0 and "signed by its key" in bundled.out


def test_an_altered_bundle_exits_14(here: list[str], tmp_path: Path) -> None:
    """It names the file, and says that nothing in the bundle is to be relied on."""
    key = exported(here, tmp_path / "b")
    (tmp_path / "b" / layout.CHAIN).write_text("")
    found = corrigenda("verify", "--bundle", str(tmp_path / "b"), "--key", key)
    assert found.code == 14
    assert found.out.startswith("TAMPERED") and layout.CHAIN in found.out


def test_another_origin_exits_15(here: list[str], tmp_path: Path) -> None:
    """A key of another log than the one that was asked for shows nothing."""
    key = exported(here, tmp_path / "b")
    found = corrigenda("verify", "--bundle", str(tmp_path / "b"), "--key", key, "--origin", "example.org/other")
    assert (found.code, found.out.splitlines()[0]) == (15, "UNVERIFIABLE")


@pytest.mark.parametrize(
    "words",
    [
        ("--bundle", "b"),
        ("--key", "k"),
        ("--origin", "o"),
        ("--bundle", "b", "--key", "k", "0..3"),
        ("--bundle", "nowhere", "--key", "a+b+c"),
    ],
)
def test_a_bundle_is_checked_by_itself(words: tuple[str, ...]) -> None:
    """Half of the options, options of the ledger's check, and a key that is none: exit 2, and nothing on stdout."""
    assert refused(corrigenda("verify", *words))


def test_texts_are_withheld_by_option(here: list[str], tmp_path: Path) -> None:
    """`--with-payloads none` keeps every text, and the verdict says so."""
    key = exported(here, tmp_path / "b", "--with-payloads", "none")
    found = corrigenda("verify", "--bundle", str(tmp_path / "b"), "--key", key)
    assert (found.code, found.out.splitlines()[0]) == (0, "verified, with payloads withheld")


@pytest.mark.parametrize(
    "words",
    [
        ["export", "supersession", "deploys"],
        ["export", "supersession", "deploys", "--complete"],
        *(["export", "ledger", "--format", form] for form in ("bundle", "jsonl", "csv")),
        ["export", "ledger", "--complete"],
        ["export", "corrections"],
        ["checkpoint", "sign"],
    ],
    ids=" ".join,
)
def test_where_there_is_no_folder_nothing_is_made(here: list[str], tmp_path: Path, words: list[str]) -> None:
    """Every command that writes a file refuses a folder that is not there alike: exit 2, its name, nothing recorded."""
    nowhere = tmp_path / "nowhere"

    def recorded() -> list[object]:
        shown = json.loads(corrigenda("status", "-o", "json", *here).out)
        return [shown["ledger"], shown["anchor"]]

    before = recorded()
    found = corrigenda(*words, "--out", str(nowhere / "out"), *here)
    assert refused(found, "VALIDATION_FAILED", f"there is no folder {nowhere}.")
    assert json.loads(corrigenda(*words, "--out", str(nowhere / "out"), "-o", "json", *here).err)["code"] == (
        "VALIDATION_FAILED"
    )
    assert recorded() == before and not nowhere.exists()
