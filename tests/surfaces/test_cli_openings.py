"""Who opens what, and what is refused or set before anything is opened."""

import logging

import pytest
from cli_hands import MEM, REV, Stub, corrigenda, install, refused, revision, search


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Stub:
    return install(monkeypatch, search=search(), show=revision(), log=iter(()), complete=())


class TestOpenings:
    """Who opens what: the commands that must answer on a broken chain never walk it."""

    @pytest.mark.parametrize("words", [["log"], ["status"], ["show", "3", "--raw"]])
    def test_bare(self, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
        """`log`, `status` and `show --raw` open bare and make nothing."""
        gateway = install(monkeypatch, log=iter(()), status=SystemExit(0), raw=b"{}")
        corrigenda(*words)
        assert [(kind, how["create"]) for kind, how in gateway.opened] == [("bare", False)]

    @pytest.mark.parametrize("words", [["memories", "search", "q"], ["log"]])
    def test_why_it_takes_long_is_told_to_people(self, gateway: Stub, words: list[str]) -> None:
        """What opening waits for is said on stderr; a program, and whoever asked for quiet, is not told."""
        gateway.says = "the database server is starting, 1 s so far"
        told = corrigenda(*words)
        assert gateway.says in told.err and gateway.says not in told.out
        assert all(gateway.says not in corrigenda(*words, *how).err for how in (["-o", "json"], ["-q"]))

    @pytest.mark.parametrize("words", [["verify"], ["doctor"], ["db", "url"], ["db", "check"], ["db", "current"]])
    def test_nothing_is_made(self, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
        """`verify`, `doctor` and the readers of `db` open bare and make nothing."""
        gateway = install(monkeypatch, open=SystemExit(0))
        corrigenda(*words)
        assert [(kind, how["create"]) for kind, how in gateway.opened] == [("bare", False)]

    @pytest.mark.parametrize(
        ("words", "replay"),
        [
            (["show", MEM], False),
            (["history", MEM], False),
            (["explain", MEM], False),
            (["lineage", MEM], False),
            (["recover"], False),
            (["memories", "search", "q"], True),
        ],
    )
    def test_readers_make_nothing(self, monkeypatch: pytest.MonkeyPatch, words: list[str], replay: bool) -> None:
        """A reader makes no ledger; only a search needs the index to have caught up."""
        gateway = install(monkeypatch, open=SystemExit(0))
        corrigenda(*words)
        assert [(kind, how["create"], how["replay"]) for kind, how in gateway.opened] == [("gateway", False, replay)]

    @pytest.mark.parametrize("words", [["memories", "remember", "x"], ["import", __file__, "--format", "peps"]])
    def test_writers_make_what_is_missing(self, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
        """The first write makes the ledger."""
        gateway = install(monkeypatch, open=SystemExit(0))
        corrigenda(*words)
        assert [(how["create"], how["replay"]) for _, how in gateway.opened] == [(True, True)]

    def test_recover_replays_by_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`recover` opens without start-up replay, or there would be nothing left to count."""
        gateway = install(monkeypatch, recover=SystemExit(0))
        corrigenda("recover", "--check-only")
        assert gateway.opened[0][1]["replay"] is False
        named = gateway.asked("recover")[1]
        assert (named["check_only"], named["dry_run"]) == (True, False)

    def test_the_gateway_is_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever happens, what was opened is closed."""
        gateway = install(monkeypatch, retire=RuntimeError("no"))
        assert corrigenda("memories", "retire", REV).code == 1
        assert gateway.calls[-1][0] == "close"


@pytest.mark.parametrize(
    "words", [["memories", "remember", "x"], ["memories", "search", "x"], ["import", __file__, "--format", "peps"]]
)
def test_a_project_is_needed(gateway: Stub, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """Without a project these are exit 2 before anything is opened; the flag or the environment names it."""
    monkeypatch.delenv("CORRIGENDA_PROJECT")
    assert refused(corrigenda(*words), "error VALIDATION_FAILED", "--project", "CORRIGENDA_PROJECT")
    assert gateway.opened == []
    corrigenda(*words, "--project", "ap")
    assert [how["project"] for _, how in gateway.opened] == ["ap"]


@pytest.mark.parametrize(("word", "ours"), [("-q", logging.ERROR), ("-v", logging.INFO), ("-vv", logging.DEBUG)])
def test_only_our_own_loggers_tell_more(gateway: Stub, word: str, ours: int) -> None:
    """`-v` and `-vv` make our own modules talk, not the libraries under them."""
    names = ("", "cli", "corrigenda", "gateway", "ledger", "migrations", "projections")
    before = {name: logging.getLogger(name).level for name in names}
    try:
        corrigenda("log", word)
        assert logging.getLogger("projections.index.disk").getEffectiveLevel() == ours
        assert logging.getLogger("alembic.x").getEffectiveLevel() == max(ours, logging.WARNING)
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
