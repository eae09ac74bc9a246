"""`corrigenda evidence`: files, stdin and mentions to calls, and bytes out as they are."""

import json
from pathlib import Path

import pytest

from gateway.shapes.replies import memories as replies
from tests.surfaces import cli_hands
from tests.surfaces.cli_hands import corrigenda

HASH = "b3:" + "ab" * 32
FOUND = replies.Evidence(
    hash=HASH,
    size=3,
    stored=True,
    media_type="text/plain",
    name="a\x1b.txt",
    uri=None,
    added_at=cli_hands.T1,
    added=4,
    position=4,
    incarnation=1,
)


def test_add_takes_a_path_stdin_or_a_mention(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A path goes on as it is, `-` as the bytes of stdin, and a mention as its hash and uri."""
    path = str(tmp_path / "a")
    for words, source, named in (
        ([path], path, {"hash": None, "uri": None}),
        (["-"], b"\x00\xff", {"hash": None, "uri": None}),
        (["--hash", HASH, "--uri", "s3://b/a"], None, {"hash": HASH, "uri": "s3://b/a"}),
    ):
        stub = cli_hands.install(monkeypatch, add_evidence=FOUND)
        assert corrigenda("evidence", "add", *words, stdin=b"\x00\xff").code == 0
        args, given = stub.asked("add_evidence")
        assert (args, {name: given[name] for name in named}) == ((source,), named)


@pytest.mark.parametrize("words", [[], ["--hash", HASH], ["--uri", "x:y"], ["a", "--hash", HASH, "--uri", "x:y"]])
def test_add_wants_one_of_the_two(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """Neither a path nor a whole mention, or both, is exit 2, and nothing is opened."""
    stub = cli_hands.install(monkeypatch)
    assert cli_hands.refused(corrigenda("evidence", "add", *words), "PATH")
    assert stub.opened == []


def test_show_tells_what_is_known_or_gives_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is inert, JSON whole, and --raw gives the very bytes."""
    cli_hands.install(monkeypatch, show_evidence=FOUND, read_evidence=b"\x00\x01\r\n")
    assert "a\\x1b.txt" in corrigenda("evidence", "show", HASH).out
    assert json.loads(corrigenda("evidence", "show", HASH, "-o", "json").out)["hash"] == HASH
    assert corrigenda("evidence", "show", HASH, "--raw").raw == b"\x00\x01\r\n"
    assert cli_hands.refused(corrigenda("evidence", "show", HASH, "--raw", "-o", "json"), "--raw")
