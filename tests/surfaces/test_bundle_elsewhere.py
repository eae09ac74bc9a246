"""Programs that we did not write check a bundle's entries, and refuse an altered one.

Go's checksum database code where it is installed, else PyPI's proofbundle; each test's name says which of them it was.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from others import NO_GO, build, install_proofbundle, run

from gateway.upkeep.bare import open_bare
from ledger.bundle import layout
from tests.conftest import fresh_database
from tests.integration.conftest import Here
from tests.roles import as_writer

pytestmark = pytest.mark.soak

WHO = "go" if NO_GO is None else "proofbundle"
Checker = Callable[[str, Path, int], int]


@pytest.fixture(scope="module")
def bundle(
    server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """Return a key, and a bundle of a memory in a log of several hundred entries."""
    made = tmp_path_factory.mktemp("bundle")
    with fresh_database(server_url, template=migrated_template) as owner:
        here = Here(as_writer(owner), made / "home")
        gateway = here(embedder="none")
        for number in range(300):
            gateway.remember(f"It is {number}.", memory_id=f"number-{number}")
        gateway.correct("number-7", "It is eight.", reason="counted again")
        gateway.export_supersession(["number-7"], made / "bundle")
        here.close()
        with open_bare(database_url=here.ledger_url, home=here.home) as bare:
            key = bare.public_key()["public_key"]
    yield key, made / "bundle"


@pytest.fixture(scope="module", params=[WHO])
def checker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checker:
    """What checks one entry of a bundle: its exit."""
    made = tmp_path_factory.mktemp("checker")
    if request.param == "go":
        program = build(Path(__file__).with_name("bundle.go"), made)
        return lambda key, folder, position: run(program, key, folder, str(position))[0]
    command = install_proofbundle(made)
    if command is None:
        pytest.skip(f"{NO_GO}, and PyPI's proofbundle could not be had")

    def check(key: str, folder: Path, position: int) -> int:
        leaf, proof = folder / layout.envelope(position), folder / layout.proof(position)
        origin = key.split("+")[0]
        return run(
            command, "verify-proof", "--payload-file", leaf, "--log-vkey", key, "--expected-origin", origin, proof
        )[0]

    return check


def test_every_entry_is_checked_by_others(bundle: tuple[str, Path], checker: Checker) -> None:
    """RC-37: the signature over the checkpoint, and each entry's place in the tree."""
    key, folder = bundle
    positions = layout.positions((path.relative_to(folder).as_posix() for path in folder.rglob("*")), "envelopes")
    assert len(positions) >= 5
    assert [checker(key, folder, position) for position in positions] == [0] * len(positions)


@pytest.mark.parametrize("folder", ["envelopes", "proofs"])
def test_others_refuse_what_was_altered(bundle: tuple[str, Path], checker: Checker, folder: str) -> None:
    """The check can fail: one byte of an entry or of its proof."""
    key, made = bundle
    position = layout.positions((path.relative_to(made).as_posix() for path in made.rglob("*")), "envelopes")[-1]
    path = made / (layout.envelope(position) if folder == "envelopes" else layout.proof(position))
    raw = path.read_bytes()
    changed = (
        raw.replace(b'"op_index":0', b'"op_index":1') if folder == "envelopes" else raw.replace(b"=\n", b"==\n", 1)
    )
    assert changed != raw
    path.write_bytes(changed)
    try:
        assert checker(key, made, position) != 0
    finally:
        path.write_bytes(raw)
