"""What people read: every answer as text."""

from typing import Any

import pytest
from cli_hands import (
    MEM,
    NEXT,
    REV,
    T2,
    corrigenda,
    explanation,
    hit,
    install,
    item,
    receipt,
    revision,
    search,
    status,
    verify_report,
)

from cli import text
from cli.views import audit, events, memories, upkeep
from gateway.shapes.replies import past as past_replies
from gateway.shapes.replies import searches as searches_replies

ZERO = "2026-01-02T03:04:05.000000Z"


def moved(
    type_: str,
    *,
    seq: int = 4,
    reason: str | None = None,
    patch: dict[str, Any] | None = None,  # Any: as in AuditEntry
    **move: str,
) -> past_replies.AuditEntry:
    """One event of a story, in which the revision moves as given."""
    names = ("from_state", "from_trust", "to_state", "to_trust")
    moves: tuple[dict[str, str | None], ...] = ({"revision": REV, **{name: move.get(name) for name in names}},)
    return past_replies.AuditEntry(
        seq=seq,
        type=type_,
        at=T2,
        actor="human:ana",
        trace_id="op_1",
        reason=reason,
        moves=moves if move else (),
        patch=patch,
    )


class TestTexts:
    """What people read."""

    @pytest.mark.parametrize("trust", ["verified", "unverified"])
    def test_a_hit_says_how_far_it_is_trusted(self, trust: str) -> None:
        """LM-02: every hit carries the word verified or unverified."""
        assert memories.hits(search(hit(trust=trust))).splitlines()[1] == f"  {trust}, score 0.831"

    def test_a_hit_shows_what_the_next_command_needs(self) -> None:
        """A hit names its memory and its revision, keeps the lines of its content, and says why it was found."""
        told = memories.hits(search(hit(content="two\nlines"), hit(rank=2)))
        first, second = told.split("\n\n")
        assert first.splitlines()[0] == f"1  {MEM}  {REV}"
        assert first.splitlines()[2:] == ["  │ two", "  │ lines", "  why: near"]
        assert second.startswith("2  ")

    def test_a_hit_of_the_past_says_where_it_stands_now(self) -> None:
        """LM-02: the trust is always said, and the state where it is not active any more."""
        assert memories.hits(search(hit())).splitlines()[1].startswith("  unverified, score")
        assert (
            memories.hits(search(hit(state="superseded"))).splitlines()[1].startswith("  superseded, unverified, score")
        )

    def test_what_was_left_out_is_told_after_the_hits(self) -> None:
        """Each is named with the rule that left it out; without any there is no heading."""
        left = searches_replies.Excluded(memory_id="home", revision_id=REV, score=0.5, reason="its kind is \x1b task")
        told = memories.search(search(hit(), excluded=(left,)))
        assert told.split("\n\n")[1].splitlines() == [
            "left out:",
            f"  home  {REV}  score 0.500: its kind is \\x1b task",
        ]
        assert memories.search(search(hit(), excluded=())) == memories.hits(search(hit()))
        assert memories.search(search(excluded=(left,))).startswith("left out:")

    def test_nothing_found_is_said_aside(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without hits stdout is empty and stderr names the reason; `-q` is silent."""
        install(monkeypatch, search=search(empty_reason="headless"))
        answer = corrigenda("memories", "search", "q")
        assert (answer.code, answer.out) == (0, "")
        assert "withdrawn" in answer.err and "corrigenda memories restore" in answer.err
        assert corrigenda("memories", "search", "q", "-q").err == ""

    @pytest.mark.parametrize(
        ("reason", "advice"),
        [
            ("no_match", "other words"),
            ("filtered", "--min-trust"),
            ("budget", "fewer hits"),
            ("headless", "restore"),
            ("nothing_indexed", "corrigenda memories remember"),
            ("no_embedder", "CORRIGENDA_EMBEDDER"),
        ],
    )
    def test_an_empty_answer_says_what_to_do(self, reason: str, advice: str) -> None:
        """Every reason for an empty answer is a sentence of its own with what to do next."""
        told = memories.empty(reason)
        assert told.startswith("nothing found: ") and advice in told and "_" not in told.split("CORRIGENDA_")[0]

    @pytest.mark.parametrize(("position", "then"), [(7, "at position 7 "), (-1, "at that time ")])
    def test_an_empty_answer_of_the_past_tells_of_the_past(self, position: int, then: str) -> None:
        """Given nothing there yet, or nothing left, then it is said of that moment, without the advice of today."""
        for reason in ("nothing_indexed", "headless"):
            told = memories.empty(reason, (), position)
            assert told.startswith(f"nothing found: {then}") and "corrigenda memories" not in told
        assert memories.empty("filtered", (), position) == memories.empty("filtered")

    def test_a_receipt(self) -> None:
        """A receipt tells the outcome, the position and the ids."""
        told = memories.receipt(receipt(superseded=(REV,), revision_id=NEXT))
        assert told.splitlines()[0] == "stored at 4: memory.remembered.v1"
        assert [line.split()[0] for line in told.splitlines()[1:]] == ["memory", "revision", "superseded", "trace"]

    def test_a_dry_run(self) -> None:
        """A dry run cannot be taken for a receipt, whether it would have changed something or not."""
        assert memories.receipt(receipt(), dry_run=True).startswith("would be stored at 4: memory.remembered.v1\n")
        assert memories.receipt(receipt(events=()), dry_run=True).startswith("would change nothing\n")

    def test_a_dry_run_is_told_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """That nothing was stored is said on stderr, once, and not again on stdout."""
        install(monkeypatch, retire=receipt(warnings=("dry_run: nothing was stored",)))
        answer = corrigenda("memories", "retire", REV, "--dry-run")
        assert answer.err == "warning: dry_run: nothing was stored\n"
        assert answer.out.startswith("would be stored at 4") and "nothing" not in answer.out

    def test_a_replayed_receipt(self) -> None:
        """A replay is told apart from a first answer."""
        assert "used before" in memories.receipt(receipt(replayed=True))

    def test_history_is_one_block_per_revision(self) -> None:
        """Every revision is a block of its own, in the order of the answer."""
        items = (revision(version=1), revision(version=2, content=None))
        blocks = memories.history(past_replies.History(memory_id=MEM, items=items, position=9, incarnation=0)).split(
            "\n\n"
        )
        assert [block.split("  ")[1] for block in blocks] == ["version 1", "version 2"]
        assert "no longer shown" in blocks[1]

    def test_an_explanation_names_the_successor_and_the_reason(self) -> None:
        """The story says what took its place, where the lineage stands, who acted and why."""
        story = memories.explanation(explanation())
        lead = f"Superseded by {NEXT}, by human:ana, at 2026-01-03T03:04:05.000Z (position 5): moved in May."
        assert story.splitlines()[1] == lead
        assert f"began with {REV}; the head is {NEXT}." in story
        assert "by human:ana" in story and "why: moved in May" in story
        assert f"{REV}: active, unverified → superseded, unverified" in story

    def test_an_explanation_says_what_a_patch_changed(self) -> None:
        """RC-28: each piece of metadata as it was and as it is, stored text made inert."""
        patch = {
            "revision": REV,
            "before": {"tags": ["old", "b"], "valid_to": None},
            "after": {"tags": [], "valid_to": "\x1b[2K"},
        }
        story = memories.explanation(explanation(audit=(moved("metadata.patched.v1", patch=patch),)))
        assert f"      {REV}: tags old, b → none\n" in story
        assert f"      {REV}: valid_to none → \\x1b[2K" in story

    def test_an_explanation_without_a_head(self) -> None:
        """A headless lineage is told to serve nothing."""
        assert "no head now" in memories.explanation(explanation(head=None))

    def test_an_explanation_of_what_was_revoked(self) -> None:
        """A revoked revision's story begins with who revoked it, when and why, whatever happened before and after."""
        told = explanation(
            state="active",
            trust="revoked",
            superseded_by=(),
            head=None,
            audit=(
                moved("memory.remembered.v1", to_state="active", to_trust="unverified"),
                moved(
                    "revision.revoked.v1",
                    seq=5,
                    reason="the source was forged.\nReally",
                    from_state="active",
                    from_trust="unverified",
                    to_state="active",
                    to_trust="revoked",
                ),
                moved("lineage.linked.v1", seq=6),
            ),
        )
        lead = "Revoked by human:ana at 2026-01-03T03:04:05.000Z (position 5): the source was forged.\\nReally."
        assert memories.explanation(told).splitlines()[1] == lead

    def test_an_explanation_of_a_head(self) -> None:
        """What stands is said to stand, and how far it is trusted."""
        told = memories.explanation(explanation(state="active", head=REV, superseded_by=(), superseded_at=None))
        assert told.splitlines()[1] == "Active, unverified: it is the head of its memory."

    def test_one_line_per_event(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`log --oneline` is one line per event, in the order of the answer."""
        install(monkeypatch, log=iter([item(12), item(11)]))
        lines = corrigenda("log", "--oneline").out.splitlines()
        assert [line.split()[0] for line in lines] == ["12", "11"]

    def test_the_lines_of_the_log_are_aligned(self) -> None:
        """The actor begins in the same column, whatever the stream's id and however exact the time."""
        lines = [events.event_line(item(4, at=at, stream=s)) for at in (T2, ZERO) for s in (MEM, "name_" + "0" * 32)]
        assert len({line.index("human:ana") for line in lines}) == 1
        assert "name_000000000000000…  #0" in lines[1]

    def test_the_log_ends_with_its_last_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Events are parted by a blank line, and none follows the last one."""
        install(monkeypatch, log=lambda **_: iter([item(12), item(11)]), show_event=item(12))
        told = corrigenda("log").out
        assert told.count("\n\n") == 1 and not told.endswith("\n\n")
        assert not corrigenda("show", "12").out.endswith("\n\n")

    def test_a_log_of_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """That no event matches is said aside, and is no failure."""
        install(monkeypatch, log=lambda **_: iter(()))
        answer = corrigenda("log", "--actor", "human:bob")
        assert (answer.code, answer.out, answer.err) == (0, "", "no event matches\n")
        assert corrigenda("log", "-o", "json").err == ""

    def test_a_verification(self) -> None:
        """Each check has its line; the verdict stands last and does not hide the exit."""
        report = verify_report(
            ok=False, exit_code=10, chain={"status": "failed", "first_bad_position": 7, "expected": "a", "found": "b"}
        )
        lines = audit.verification(report).splitlines()
        assert lines[1].split()[:2] == ["chain", "failed"] and "first at 7; expected a; found b" in lines[1]
        assert lines[-1] == "NOT OK: 12 events, ledger size 12; exit 10"

    def test_what_was_not_checked_takes_one_line(self) -> None:
        """The checks that this version does not make share one line, before the verdict."""
        lines = audit.verification(verify_report(anchor={"status": "skipped", "why": "not built"})).splitlines()
        assert lines[0].split() == ["canonical", "ok"]
        assert lines[1:] == ["not checked: tree, anchor", "ok: 12 events, ledger size 12"]

    def test_one_of_a_thing(self) -> None:
        """One event is not `1 events`."""
        said = audit.verification({**verify_report(), "events": 1})
        assert said.endswith("ok: 1 event read, 11 not read, ledger size 12")
        assert [text.count(n, "row") for n in (0, 1, 2, 1000)] == ["0 rows", "1 row", "2 rows", "1,000 rows"]

    def test_a_status(self) -> None:
        """One fact or part per line, in 80 columns; of the head its beginning, of the embedder its model."""
        told = upkeep.status(status(problem="x" * 20 + " y" * 60))
        rows = dict(line.split(":", 1) for line in told.splitlines() if not line.startswith(" "))
        assert {name: rows[name].strip() for name in ("size", "head", "revisions", "outbox")} == {
            "size": "12",
            "head": "abababababababab",
            "revisions": "active: 3",
            "outbox": "pending: 0, parked: 0",
        }
        assert rows["index"].strip() == "cursor: 11, embedder: all-MiniLM-L6-v2, items: 3, pending: 0"
        assert rows["anchor"].strip() == "none (this version keeps no anchor outside the database)"
        assert max(map(len, told.splitlines())) <= 80

    @pytest.mark.parametrize(("chain", "first"), [("broken", True), ("unverified", True), ("ok", False)])
    def test_a_chain_that_is_not_well_comes_first(self, chain: str, first: bool) -> None:
        """A status whose chain is broken or unverified says so before anything else."""
        told = upkeep.status(status(chain=chain, problem=None if chain == "ok" else "at 7"))
        assert (told.startswith("chain:") and told.splitlines()[0].endswith(f"{chain}: at 7")) == first
        assert told.count("chain:") == 1

    def test_times(self) -> None:
        """A time has no fraction where it is zero, else milliseconds; what is no time is shown as it is."""
        assert text.moment(ZERO) == "2026-01-02T03:04:05Z"
        assert text.moment("2026-01-02T03:04:05.123456Z") == "2026-01-02T03:04:05.123Z"
        assert text.moment("soon\x1b") == "soon\\x1b"
        assert "2026-01-02T03:04:05Z at 4" in memories.revision(revision(recorded_at=ZERO))
