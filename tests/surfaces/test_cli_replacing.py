"""The words of the acts that let a text take another's place: remember --predecessor, publish, supersede, patch."""

import json
from pathlib import Path

import pytest
from cli_hands import MEM, NEXT, REV, T1, Stub, corrigenda, install, receipt, refused


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Stub:
    return install(monkeypatch, complete=(REV,))


def test_a_text_is_held_for_a_head(gateway: Stub) -> None:
    """LM-16: `--predecessor` takes the beginning of an id, and `--hold` lets the text wait."""
    corrigenda("memories", "remember", "Hamburg", "--id", "home", "--predecessor", REV[:12], "--hold")
    (content,), named = gateway.asked("remember")
    assert (content, named["memory_id"], named["predecessor"], named["hold"]) == ("Hamburg", "home", REV, True)


def test_a_held_text_is_published(gateway: Stub) -> None:
    """`publish` passes its revision, the reason and the expected version."""
    corrigenda("memories", "publish", REV, "--reason", "asked", "--if-revision", "3")
    args, named = gateway.asked("publish")
    assert args == (REV,)
    assert (named["reason"], named["if_revision"]) == ("asked", 3)


@pytest.mark.parametrize(
    ("words", "revs", "texts"),
    [
        ([REV, NEXT, "--with", "both"], [REV, NEXT], ("both",)),
        ([REV, "--with", "one", "two", "--reason", "r"], [REV], ("one", "two")),
        ([REV, "--with", "one", "--with", "two"], [REV], ("one", "two")),
        (["--with", "one", "--reason", "r", REV, NEXT], [REV, NEXT], ("one",)),
        ([REV, "--with=one", NEXT], [REV, NEXT], ("one",)),
        ([REV, "--with", "--dashes", "@@at"], [REV], ("--dashes", "@at")),
    ],
)
def test_what_takes_the_place_of_what(gateway: Stub, words: list[str], revs: list[str], texts: tuple[str, ...]) -> None:
    """RC-43: `--with` takes every word up to the next option; what stands elsewhere is a revision."""
    assert corrigenda("memories", "supersede", *words).code == 0
    args, _ = gateway.asked("supersede")
    assert args == (revs, texts)


@pytest.mark.parametrize(
    "words",
    [[REV], ["--with", "x"], [REV, "--with"], [REV, "--with", "x", NEXT], [REV, "--with", "@/no/such/file"]],
)
def test_a_supersession_needs_both_sides(gateway: Stub, words: list[str]) -> None:
    """Without a revision, without a text, or with an id where a text should be, it is exit 2, and nothing is opened."""
    assert refused(corrigenda("memories", "supersede", *words))
    assert gateway.opened == []


def test_a_text_comes_from_stdin(gateway: Stub) -> None:
    """One of the texts may be `-`."""
    corrigenda("memories", "supersede", REV, "--with", "one", "-", stdin="two\n")
    assert gateway.asked("supersede")[0][1] == ("one", "two")


def test_a_patch_passes_only_what_is_named(gateway: Stub) -> None:
    """RC-28: what is not named is not mentioned to the gateway, so that it stays as it is."""
    corrigenda("memories", "patch", REV, "--tag", "a", "--tag", "b", "--valid-from", T1)
    args, named = gateway.asked("patch")
    assert args == (REV,)
    assert (named["tags"], named["valid_from"]) == (("a", "b"), T1)
    assert {"sources", "confidence", "valid_to", "review_by", "content"} & named.keys() == set()


def test_tags_can_be_taken_away(gateway: Stub) -> None:
    """`--no-tags` is a patch to no tags; with `--tag` it is exit 2, and so is a patch of nothing."""
    corrigenda("memories", "patch", REV, "--no-tags")
    assert gateway.asked("patch")[1]["tags"] == ()
    assert refused(corrigenda("memories", "patch", REV, "--no-tags", "--tag", "a"), "--no-tags")
    assert refused(corrigenda("memories", "patch", REV), "--no-tags")
    assert refused(corrigenda("memories", "patch", REV, "--content", "x"), "No such option")


def test_an_unchanged_patch_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """RC-25: nothing to mend is exit 0, and the answer is not that something was stored."""
    install(monkeypatch, patch=receipt(outcome="unchanged", events=()))
    done = corrigenda("memories", "patch", REV, "--no-tags")
    assert (done.code, done.out.splitlines()[0]) == (0, "unchanged at 4")


def test_a_document_is_the_whole_request(gateway: Stub, tmp_path: Path) -> None:
    """`--input` gives the fields by their JSON names; how the write is to be done stays beside it."""
    body = {"content": "Hamburg", "memory_id": "home", "hold": True, "session": "s"}
    corrigenda("memories", "remember", "--input", "-", "--idempotency-key", "k", stdin=json.dumps(body))
    (content,), named = gateway.asked("remember")
    assert (content, named) == (
        "Hamburg",
        {"memory_id": "home", "hold": True, "session": "s", "idempotency_key": "k", "dry_run": False},
    )
    file = tmp_path / "body.json"
    file.write_text(json.dumps({"predecessors": [MEM], "successors": ["a", {"content": "b", "tags": ["t"]}]}))
    corrigenda("memories", "supersede", "--input", str(file), "--dry-run")
    args, named = gateway.asked("supersede")
    assert args == ([MEM], ["a", {"content": "b", "tags": ["t"]}])
    assert named["dry_run"] is True


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", ()),
        ("[]", ()),
        ("\xff", ()),
        ("{}", ()),
        ('{"content": "x", "colour": "red"}', ()),
        ('{"content": "x", "dry_run": true}', ()),
        ('{"content": "x"}', ("words",)),
        ('{"content": "x"}', ("",)),
        ('{"content": "x"}', ("--tag", "t")),
        ('{"content": "x"}', ("--reason", "r")),
        ('{"content": "x"}', ("--hold",)),
    ],
)
def test_a_document_that_cannot_be_taken(gateway: Stub, document: str, words: tuple[str, ...]) -> None:
    """No JSON object, an unknown field, no content, or words beside it: exit 2, and nothing is opened."""
    raw = document.encode("latin-1")
    assert refused(corrigenda("memories", "remember", *words, "--input", "-", stdin=raw))
    assert gateway.opened == []
