"""The page inside a bundle, in a real browser: it proves what it shows, and what an event says is only ever text."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import NO_BROWSER, Browser, browser

from gateway.upkeep.bare import open_bare
from ledger.bundle import layout
from ledger.bundle import writing as bundle_writing
from tests import erasing
from tests.conftest import fresh_database
from tests.integration.conftest import Here
from tests.roles import as_writer

pytestmark = pytest.mark.skipif(NO_BROWSER is not None, reason=str(NO_BROWSER))

HOSTILE = (
    '</script><script>document.title="owned"</script><img src=x onerror=\'document.title="owned"\'>\u2028\u202e<!--'
)
STATE = "document.getElementById('verdict').dataset.state"


@pytest.fixture(scope="module")
def shown(
    server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, str]]:
    """Return the page of a bundle in which somebody has tried to be more than text, and the key that checks it."""
    made = tmp_path_factory.mktemp("viewer")
    with fresh_database(server_url, template=migrated_template) as owner:
        here = Here(as_writer(owner), made / "home")
        gateway = here(embedder="none")
        first = gateway.remember(HOSTILE, memory_id="deploys")
        gateway.correct(first.revision_id or "", "Deploys happen on Tuesdays.", reason=HOSTILE)
        gateway.export_supersession(["deploys"], made / "bundle")
        here.close()
        with open_bare(database_url=here.ledger_url, home=here.home) as bare:
            key = bare.public_key()["public_key"]
    yield made / "bundle" / layout.VIEWER, key


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a browser."""
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_without_a_key_nothing_is_verified(page: Browser, shown: tuple[Path, str]) -> None:
    """The page says that nobody whom the reader knows has signed it."""
    page.open(shown[0])
    assert page.wait(STATE) == "unpinned"


def test_with_the_key_every_event_is_proven(page: Browser, shown: tuple[Path, str]) -> None:
    """Signature, places in the tree and payloads are computed in the page."""
    page.open(shown[0])
    page.write("#key", shown[1])
    page.wait(f"{STATE} === 'good'")
    states = page.script("return [...document.querySelectorAll('#events span')].map((one) => one.textContent)")
    assert set(states) == {"in the signed tree", "payload as committed to"}
    assert len(states) == 2 * 5


def test_a_page_of_a_part_says_that_it_is_one(page: Browser, shown: tuple[Path, str], tmp_path: Path) -> None:
    """Of a long log the page has the first events: it says so before and after the key was given."""
    text = shown[0].read_text(encoding="utf-8")
    found = re.search(r'"told":(\d+)', text)
    assert found is not None
    part = tmp_path / "viewer.html"
    part.write_text(text.replace(found[0], '"told":5000'), encoding="utf-8")
    page.open(part)
    assert page.wait(STATE) == "unpinned"
    said = str(page.script("return document.getElementById('part').textContent"))
    assert said.startswith(f"This page shows the first {found[1]} of 5000 events. chain.jsonl lists all of them")
    page.write("#key", shown[1])
    page.wait(f"{STATE} === 'good'")
    verdict = str(page.script("return document.getElementById('verdict').textContent"))
    assert f"{5000 - int(found[1])} further events of the bundle are not on this page." in verdict
    page.open(shown[0])
    assert page.script("return document.getElementById('part').hidden") is True


def test_another_key_is_not_believed(page: Browser, shown: tuple[Path, str]) -> None:
    """A key that did not sign the checkpoint, or is none, verifies nothing."""
    page.open(shown[0])
    for key in (shown[1].replace("corrigenda", "corrigendo"), "nonsense"):
        page.write("#key", key)
        page.wait(f"{STATE} === 'bad'")


def test_what_an_event_says_stays_text(page: Browser, shown: tuple[Path, str]) -> None:
    """G10: markup in a memory is shown as the characters that it is; nothing of it runs."""
    page.open(shown[0])
    page.wait(STATE)
    quoted = page.script("return [...document.querySelectorAll('blockquote')].map((one) => one.textContent)")
    assert quoted.count(HOSTILE) == 2
    assert page.script("return document.title") == "A chain of events, and its proofs"
    assert page.script("return document.querySelectorAll('img').length") == 0


def test_the_chain_is_drawn(page: Browser, shown: tuple[Path, str]) -> None:
    """Each revision has its place in the graph, with what became of it, and a line to what it superseded."""
    page.open(shown[0])
    page.wait(STATE)
    drawn = page.script("return [...document.querySelectorAll('svg text')].map((one) => one.textContent)")
    assert drawn == ["deploys version 1: superseded, unverified", "deploys version 2: active, unverified"]
    assert page.script("return document.querySelectorAll('svg line').length") == 1


def test_what_was_erased_is_told_from_what_was_withheld(
    page: Browser, server_url: str, migrated_template: str, tmp_path: Path
) -> None:
    """Where a certificate in the tree says so, the page says erased, and counts it."""
    with fresh_database(server_url, template=migrated_template) as owner:
        here = Here(as_writer(owner), tmp_path / "home")
        gateway = here(embedder="none")
        gateway.remember("Her number is 4711.", memory_id="ana")
        erasing.erase(gateway, "ana", owner, here.home)
        gateway.export_supersession(["ana"], tmp_path / "bundle")
        here.close()
        with open_bare(database_url=here.ledger_url, home=here.home) as bare:
            key = bare.public_key()["public_key"]
    page.open(tmp_path / "bundle" / layout.VIEWER)
    page.write("#key", key)
    page.wait(f"{STATE} === 'good'")
    assert "1 payloads were erased, with a certificate" in page.script(
        "return document.getElementById('verdict').textContent"
    )
    states = page.script("return [...document.querySelectorAll('#events span')].map((one) => one.textContent)")
    assert states.count("payload erased, with a certificate") == 1 and "payload withheld" not in states


@pytest.mark.parametrize("what", ["envelope", "proof", "payload"])
def test_an_altered_page_says_so(page: Browser, shown: tuple[Path, str], tmp_path: Path, what: str) -> None:
    """Where the bytes in the page are not what was signed, it says tampered, key or no key."""
    text = shown[0].read_text(encoding="utf-8")
    found = re.search(r'(id="data">)(.*?)(</script>)', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[2])
    event = data["events"][-1]
    match what:
        case "envelope":
            event["envelope"] = event["envelope"].replace('"op_index":0', '"op_index":1')
        case "proof":
            event["proof"][0] = "00" * 32
        case _:
            event["payload"] = event["payload"].replace("Tuesdays", "Fridays")
    altered = tmp_path / "viewer.html"
    raw = json.dumps(data).replace("<", "\\u003c")
    altered.write_text(text[: found.start(2)] + raw + text[found.end(2) :], encoding="utf-8")
    page.open(altered)
    page.wait(f"{STATE} === 'bad'")


def test_the_page_runs_one_script_and_reaches_nothing() -> None:
    """Its policy allows the script by its hash, styles, and no connection, image or frame."""
    text = (Path(bundle_writing.__file__).parent / "shipped" / "viewer.html").read_text(encoding="utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    made = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{made}'" in text
    assert "http://www.w3.org/2000/svg" in text and len(re.findall("https?://", text)) == 1
