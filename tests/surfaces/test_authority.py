"""Every verb that writes, by every kind of actor, from Python and from the command line: one table of who may."""

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_hands import Answer
from cli_hands import corrigenda as command_line

import corrigenda
from gateway import bootstrap
from gateway.service import Gateway
from ledger.errors import ForbiddenError
from tests.house import last_position, rows
from tests.integration.planting import hold, invalidate
from tests.pep_histories import packed

ACTORS = ("agent:scout", "human:bo", "service:backup")
MAY = {
    "write": {"agent", "human"}, "contest": {"agent", "human"}, "correct": {"human"}, "decide": {"human"},
    "admit": {"human"}, "revoke": {"human"}, "admin": {"human"}, "recover": {"human"}, "export": {"human"},
}  # fmt: skip
WHY = ("--reason", "r")

NOUNS = ("corrections", "evidence", "policy", "projections", "import", "export")  # words of `memories` go without it
RECORD: dict[str, Any] = {"agent": "a", "original_value": "x", "corrected_value": "y"}
RECORD_WORDS = ("--agent", "a", "--original-value", "x", "--corrected-value", "y")

# What a verb needs, how it is called, and the words that say the same. All are tried dry, so none changes another's
# ground; what the operator alone may comes last.
Act = tuple[str, Callable[[Gateway], object], tuple[str, ...]]
ACTS: dict[str, Act] = {
    "remember": ("write", lambda c: c.remember("x", dry_run=True), ("remember", "x")),
    "correct": ("correct", lambda c: c.correct("live", "y", dry_run=True), ("correct", "live", "y")),
    "publish": ("correct", lambda c: c.publish(HELD["agents"], dry_run=True), ("publish", "HELD")),
    "supersede": (
        "correct",
        lambda c: c.supersede(["live"], ["y", "z"], dry_run=True),
        ("supersede", "live", "--with", "y", "z"),
    ),
    "patch": ("correct", lambda c: c.patch("live", tags=["t"], dry_run=True), ("patch", "live", "--tag", "t")),
    "retire": ("correct", lambda c: c.retire("live", dry_run=True), ("retire", "live")),
    "forget": ("correct", lambda c: c.forget("live", dry_run=True), ("forget", "live")),
    "revoke": ("revoke", lambda c: c.revoke("live", reason="r", dry_run=True), ("revoke", "live", *WHY)),
    "restore retired": ("correct", lambda c: c.restore("retired", dry_run=True), ("restore", "retired")),
    "restore forgotten": ("correct", lambda c: c.restore("forgotten", dry_run=True), ("restore", "forgotten")),
    "restore invalidated": ("correct", lambda c: c.restore("invalidated", dry_run=True), ("restore", "invalidated")),
    "restore revoked": ("revoke", lambda c: c.restore("revoked", dry_run=True), ("restore", "revoked")),
    "link": ("correct", lambda c: c.link("live", "retired", dry_run=True), ("link", "live", "retired")),
    "unlink": (
        "correct",
        lambda c: c.unlink("retired", "revoked", reason="r", dry_run=True),
        ("unlink", "retired", "revoked", *WHY),
    ),
    "contest": ("contest", lambda c: c.contest("agents", HELD["agents"], dry_run=True), ("contest", "agents", "HELD")),
    "promote": ("decide", lambda c: c.promote(HELD["open"], dry_run=True), ("promote", "OPEN")),
    "reject": ("decide", lambda c: c.reject_revision(HELD["open"], dry_run=True), ("reject", "OPEN")),
    "admit": ("admit", lambda c: c.admit("live", reason="r", dry_run=True), ("admit", "live", *WHY)),
    "record": (
        "write", lambda c: c.record_correction(**RECORD, dry_run=True), ("corrections", "record", *RECORD_WORDS)
    ),
    "record with a memory": (
        "write correct",
        lambda c: c.record_correction(**RECORD, memory="live", dry_run=True),
        ("corrections", "record", *RECORD_WORDS, "--memory", "live"),
    ),
    "confirm": (
        "decide", lambda c: c.confirm_correction(HELD["told"], dry_run=True), ("corrections", "confirm", "TOLD")
    ),
    "supersede a correction": (
        "correct",
        lambda c: c.supersede_correction(HELD["told"], corrected_value="z", dry_run=True),
        ("corrections", "supersede", "TOLD", "--corrected-value", "z"),
    ),
    "revoke a correction": (
        "revoke",
        lambda c: c.revoke_correction(HELD["told"], reason="r", dry_run=True),
        ("corrections", "revoke", "TOLD", *WHY),
    ),
    "evidence": ("write", lambda c: c.add_evidence(__file__, dry_run=True), ("evidence", "add", __file__)),
    "policy": (
        "admin", lambda c: c.set_policy({"mode": "agent_lifecycle"}, dry_run=True),
        ("policy", "set", "mode=agent_lifecycle"),
    ),
    "prune": ("admin", lambda c: c.prune("1d", dry_run=True), ("prune", "--older-than", "1d")),
}  # fmt: skip
HELD: dict[str, str] = {}

# The verbs that cannot be tried dry. PATH is a file that is there for `import`, and one that is not for `export`.
DONE: dict[str, tuple[str, Callable[[Gateway, Path], object], tuple[str, ...]]] = {
    "import": ("admin", lambda c, path: c.import_peps(path), ("import", "PATH", "--format", "peps")),
    "rebuild": ("recover", lambda c, _: c.rebuild(), ("projections", "rebuild")),
    "export": (
        "export", lambda c, path: c.export_supersession(["live"], path),
        ("export", "supersession", "live", "--out", "PATH"),
    ),
    "export the ledger": (
        "export", lambda c, path: c.export_ledger(path),
        ("export", "ledger", "--out", "PATH"),
    ),
    "export corrections": (
        "export", lambda c, path: c.export_corrections(path), ("export", "corrections", "--out", "PATH")
    ),
}  # fmt: skip
PEP = {
    "at": 1, "pep": 1, "title": "T", "status": "Draft", "type": "Process", "replaces": [], "superseded_by": [],
    "abstract": "", "changed": [],
}  # fmt: skip


@pytest.fixture
def gateways(ledger_url: str, home: Path) -> Iterator[dict[str, Gateway]]:
    """Return each actor's gateway on one ledger with something for every verb."""
    how: dict[str, Any] = {"home": home, "project": "ap", "embedder": "none"}
    opened = {actor: corrigenda.open(ledger_url, actor=actor, **how) for actor in ("human:ana", *ACTORS)}
    ana = opened["human:ana"]
    for name in ("live", "retired", "revoked", "forgotten", "open"):
        ana.remember(f"this is {name}", memory_id=name)
    ana.remember("invalidated", memory_id="invalidated", kind="learning", user="u", visibility="project")
    ana.link("retired", "revoked")
    ana.retire("retired")
    ana.revoke("revoked", reason="r")
    ana.forget("forgotten")
    invalidate(ana, "invalidated")
    opened["agent:scout"].remember("this is an agent's", memory_id="agents")
    HELD.update({name: hold(ana, name, "held") for name in ("agents", "open")})
    ana.contest("open", HELD["open"])
    HELD["told"] = opened["agent:scout"].record_correction(**RECORD).correction_id or ""
    yield opened
    for gateway in opened.values():
        gateway.close()


@pytest.fixture
def shared(gateways: dict[str, Gateway], monkeypatch: pytest.MonkeyPatch) -> dict[str, Gateway]:
    """Let the command line use the gateway of the actor that its words name, and leave it open."""

    @contextmanager
    def opening(*, actor: str, **_: object) -> Generator[Gateway]:
        yield gateways[actor]

    monkeypatch.setattr(bootstrap, "open_gateway", opening)
    monkeypatch.setenv("CORRIGENDA_PROJECT", "ap")
    return gateways


def needed(act: Callable[[Gateway], object], gateway: Gateway) -> str | None:
    """Return the permission that an act is refused for, or None if it is carried out."""
    try:
        act(gateway)
    except ForbiddenError as error:
        assert error.code == "FORBIDDEN_ACTOR"
        return error.details["permission"]
    return None


@pytest.mark.parametrize("actor", ACTORS)
def test_the_table_of_default_permissions(shared: dict[str, Gateway], actor: str, ledger_url: str) -> None:
    """XC-09: each verb by each kind of actor is done or refused as the table says, in Python and by words alike."""
    before = last_position(ledger_url)
    for name, (permission, act, words) in ACTS.items():
        expected = missing(permission, actor)
        assert needed(act, shared[actor]) == expected, name

        meant = {"HELD": HELD["agents"], "OPEN": HELD["open"], "TOLD": HELD["told"]}
        named = [*(() if words[0] in NOUNS else ("memories",)), *(meant.get(word, word) for word in words)]
        assert_told(command_line("--actor", actor, *named, "--dry-run"), expected, name)
    assert last_position(ledger_url) == before


@pytest.mark.parametrize("actor", ACTORS)
def test_the_table_for_what_cannot_be_tried_dry(
    shared: dict[str, Gateway], actor: str, ledger_url: str, tmp_path: Path
) -> None:
    """XC-09: import, rebuild and export by each kind of actor are done, or refused with nothing written, as said."""
    made = "SELECT (SELECT max(seq) FROM corrigenda.event), gen FROM corrigenda.head"
    for name, (permission, act, words) in DONE.items():
        expected = missing(permission, actor)
        paths = [tmp_path / f"{name}-{number}.tar.gz" for number in range(2)]
        if name == "import":
            paths = [packed(path, [json.dumps(PEP).encode() + b"\n"]) for path in paths]
        before = rows(ledger_url, made)
        assert needed(lambda gateway, act=act, path=paths[0]: act(gateway, path), shared[actor]) == expected, name
        named = [str(paths[1]) if word == "PATH" else word for word in words]
        assert_told(command_line("--actor", actor, *named), expected, name)
        assert (rows(ledger_url, made) == before) is (expected is not None), name
        if name == "export":
            assert [path.exists() for path in paths] == [expected is None] * 2


def missing(permission: str, actor: str) -> str | None:
    """Return the first of the permissions an act needs that an actor has not."""
    return next((one for one in permission.split() if actor.partition(":")[0] not in MAY[one]), None)


def assert_told(told: Answer, expected: str | None, name: str) -> None:
    """Fail unless a command line was carried out, or refused for the permission that was expected."""
    assert told.code == (0 if expected is None else 4), (name, told.err)
    if expected is not None:
        assert told.out == "" and told.err.startswith("error FORBIDDEN_ACTOR") and f"'{expected}'" in told.err


def test_no_word_gives_trust(shared: dict[str, Gateway], ledger_url: str) -> None:
    """XC-10: an agent's origin `human` is refused, and trust, state, verifier and reviewer are no options at all."""
    before = last_position(ledger_url)

    told = command_line("--actor", "agent:scout", "memories", "remember", "x", "--origin", "human")
    assert (told.code, told.out) == (4, "") and "origin 'human'" in told.err
    for option in ("--trust", "--state", "--verifier", "--reviewer"):
        told = command_line("--actor", "agent:scout", "memories", "remember", "x", option, "verified")
        assert (told.code, told.out) == (2, "")
    assert last_position(ledger_url) == before


def test_the_verbs_do_from_words_what_they_do_from_python(shared: dict[str, Gateway]) -> None:
    """LM-18, 23, 29, AG-47: contest, promote, reject, forget, restore and admit by words leave what they should."""
    ana = shared["human:ana"]

    def does(*words: str) -> str:
        told = command_line("--actor", "human:ana", "memories", *words)
        assert told.code == 0, told.err
        return told.out

    does("promote", HELD["open"], "--reason", "r")
    assert [item.state for item in ana.history("open").items] == ["rejected", "active"]
    third = hold(ana, "open", "third")
    does("contest", "open", third)
    does("reject", third)
    assert [item.state for item in ana.history("open").items] == ["rejected", "conflicted", "rejected"]
    does("forget", "live")
    assert ana.show("live").content is None
    assert "(its content is no longer shown)" in command_line("--actor", "human:ana", "show", "live").out
    does("restore", "live")
    does("admit", "agents", "--reason", "r")
    assert ana.show("agents").trust == "verified"
    assert "would be revoked" in does("revoke", "live", "--reason", "r", "--dry-run")
    assert does("prune", "--older-than", "1h").startswith("retired 0 learnings, forgotten 0")
