"""`explain --at`, `history --patch` and `diff`: what they pass on, and what people read."""

import json
from typing import Any

import msgspec
import pytest
from cli_hands import MEM, NEXT, REV, T1, T2, corrigenda, explanation, install, refused, revision

from cli.views import memories, patches
from gateway.shapes.replies import lineages as lineages_replies
from gateway.shapes.replies import memories as memories_replies
from gateway.shapes.replies import past as past_replies

COR = "cor_01J9ZKEEEEEEEEEEEEEEEEEEEE"
BERLIN, HAMBURG = "home: Berlin\nsince: 2019", "home: Hamburg\nsince: 2019"
CONTENT = past_replies.Change(
    before=BERLIN, after=HAMBURG, diff="@@ -1,2 +1,2 @@\n-home: Berlin\n+home: Hamburg\n since: 2019"
)
TAGS = past_replies.Change(before=("home", "old"), after=())


def patched(**changes: Any) -> past_replies.PatchedRevision:
    """The second revision of a memory, which changed its content and lost its tags."""
    plain: dict[str, Any] = dict(
        revision_id=NEXT, version=2, compared_with=REV, patch={"content": CONTENT, "tags": TAGS}, patched=()
    )
    return revision(past_replies.PatchedRevision, **{**plain, **changes})


def history(*items: memories_replies.Revision) -> past_replies.History:
    """A history of these revisions."""
    return past_replies.History(memory_id=MEM, items=items, position=9, incarnation=1)


def then(revision_id: str, **changes: Any) -> past_replies.MemoryThen:
    """A memory at some position."""
    plain: dict[str, Any] = dict(
        head=revision_id, revision_id=revision_id, version=1, state="active", trust="unverified", content=BERLIN
    )
    return past_replies.MemoryThen(**{**plain, **changes})


def memory(**changes: Any) -> past_replies.MemoryDiff:
    """A memory that was corrected and retired."""
    plain: dict[str, Any] = dict(
        memory_id="home",
        acts=("corrected", "retired"),
        before=then(REV),
        after=then(NEXT, version=2, head=None, state="retired", content=HAMBURG),
        patch={"content": CONTENT},
        linked=(lineages_replies.LineageEdge(source="home", target="hut", kind="supersedes"),),
        unlinked=(),
    )
    return past_replies.MemoryDiff(**{**plain, **changes})


def test_the_past_of_a_correction(monkeypatch: pytest.MonkeyPatch) -> None:
    """`history`, `explain --at` and `lineage` of a correction's id ask for the correction's past."""
    gateway = install(monkeypatch, complete=(COR,))
    for words in (["history", COR[:12], "--patch"], ["explain", COR, "--at", "812"], ["lineage", COR]):
        corrigenda(*words, "-o", "json")
    assert gateway.asked("correction_history") == ((COR,), {"patch": True})
    assert gateway.asked("explain_correction") == ((COR,), {"at": "812"})
    assert gateway.asked("lineage")[0] == (COR,)


class TestAsking:
    """What the words of a command line become."""

    @pytest.mark.parametrize(
        ("word", "at"),
        [("812", "812"), ("1.812", "1.812"), ("2026-01-02T04:04:05+01:00", "2026-01-02T03:04:05.000000Z")],
    )
    def test_a_moment_is_a_position_or_a_time(self, monkeypatch: pytest.MonkeyPatch, word: str, at: str) -> None:
        """`--at` passes a position on as it is, and a time as the ledger writes it."""
        gateway = install(monkeypatch, explain=explanation())
        assert corrigenda("explain", MEM, "--at", word).code == 0
        assert gateway.asked("explain") == ((MEM,), {"at": at})

    @pytest.mark.parametrize(
        "word", ["", "x", "-1", "2026-01-02T03:04:05", "0000-01-01T00:00:00Z", "2026-12-31T23:59:60Z"]
    )
    def test_what_is_no_moment(self, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
        """No zone, the year 0, a leap second and other words are exit 2, and nothing is opened."""
        gateway = install(monkeypatch)
        assert refused(corrigenda("explain", MEM, f"--at={word}"), "--at")
        assert gateway.opened == []

    def test_history_asks_for_its_patches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`--patch` reaches the gateway, and is off by itself."""
        gateway = install(monkeypatch, history=history())
        corrigenda("history", MEM, "--patch")
        assert gateway.asked("history") == ((MEM,), {"patch": True})

    def test_two_ids_are_two_revisions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`diff` of two ids or names asks for the revisions."""
        gateway = install(monkeypatch, diff=difference())
        corrigenda("diff", REV, "pep-8")
        assert gateway.asked("diff") == ((REV, "pep-8"), {})

    def test_two_moments_are_the_ledger(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`diff` of positions or times asks for the whole project."""
        gateway = install(monkeypatch, diff_between=lambda *_: iter([memory()]))
        assert corrigenda("diff", "3", "2026-01-02T03:04:05Z").code == 0
        assert gateway.asked("diff_between") == (("3", "2026-01-02T03:04:05.000000Z"), {})

    @pytest.mark.parametrize("words", [("3", REV), (REV, "2026-01-02T03:04:05Z"), ("2026-01-02", "2026-01-03")])
    def test_what_is_no_pair(self, monkeypatch: pytest.MonkeyPatch, words: tuple[str, str]) -> None:
        """An id and a moment, and days without a time, are exit 2."""
        install(monkeypatch)
        assert refused(corrigenda("diff", *words))


def difference(**changes: Any) -> past_replies.RevisionDiff:
    """The difference of two revisions."""
    sides = [
        past_replies.RevisionRef(
            memory_id=MEM, revision_id=one, version=n, state="active", trust="verified", recorded_at=at, position=n
        )
        for n, (one, at) in enumerate(((REV, T1), (NEXT, T2)), start=1)
    ]
    return past_replies.RevisionDiff(
        **{"before": sides[0], "after": sides[1], "patch": {"content": CONTENT}, **changes}
    )


class TestReading:
    """What people read."""

    def test_an_explanation_says_when_it_was_so(self) -> None:
        """`explain --at` names the position that it answers for, under the title."""
        assert memories.explanation(explanation(at_position=7)).splitlines()[1] == "As it stood at position 7."
        assert "As it stood" not in memories.explanation(explanation())

    def test_a_patch_names_each_field(self) -> None:
        """Metadata is one line a field, the content its lines, behind a gutter."""
        told = patches.history(history(patched(patch={"tags": TAGS, "content": CONTENT})))
        assert told.splitlines()[2:] == [
            "  tags: home, old → –",
            "  content:",
            "  │ @@ -1,2 +1,2 @@",
            "  │ -home: Berlin",
            "  │ +home: Hamburg",
            "  │  since: 2019",
        ]

    def test_the_first_revision_says_what_it_says(self) -> None:
        """What is compared with nothing shows its content."""
        told = patches.history(history(patched(content=BERLIN, compared_with=None, patch=None)))
        assert told.splitlines()[2:] == ["  begun", "  │ home: Berlin", "  │ since: 2019"]

    def test_what_was_mended_stands_behind(self) -> None:
        """A mended metadata says where, when, by whom and why, and what it changed."""
        mended = past_replies.MetadataChange(seq=9, at=T2, actor="human:ana", reason="wrong", patch={"tags": TAGS})
        told = patches.history(history(patched(patch={}, patched=(mended,))))
        assert told.splitlines()[2:] == [
            "  (nothing changed)",
            "  mended at 9, 2026-01-03T03:04:05.000Z, by human:ana: wrong",
            "    tags: home, old → –",
        ]

    def test_a_content_that_is_not_shown(self) -> None:
        """Of a forgotten content it is only said that it differs."""
        unseen = past_replies.Change(before=None, after=HAMBURG)
        assert "  content: differs, and is no longer shown" in patches.difference(difference(patch={"content": unseen}))

    def test_two_revisions(self) -> None:
        """A difference names both sides first."""
        lines = patches.difference(difference()).splitlines()
        assert lines[0].startswith(f"- {MEM}  version 1  {REV}") and lines[1].startswith(f"+ {MEM}  version 2  {NEXT}")

    def test_a_memory_between_two_positions(self) -> None:
        """A memory's acts, its head before and after, its links and its content's lines."""
        assert patches.memory(memory()).splitlines()[:4] == [
            "~ home  corrected, retired",
            f"  version 1 {REV} (active, unverified) → version 2 {NEXT} (retired, unverified, no head)",
            "  + home supersedes hut",
            "  content:",
        ]

    def test_a_memory_that_was_begun(self) -> None:
        """A new memory is marked as one, and shows what it says."""
        told = patches.memory(memory(before=None, acts=("begun",), after=then(REV), patch={}, linked=()))
        assert told.splitlines() == [
            "+ home  begun",
            f"  not there → version 1 {REV} (active, unverified)",
            "  │ +home: Berlin",
            "  │ +since: 2019",
        ]

    def test_nothing_differs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """That nothing differs is said aside, and is no failure; a document is one all the same."""
        install(monkeypatch, diff_between=lambda *_: iter(()))
        answer = corrigenda("diff", "3", "4")
        assert (answer.code, answer.out, answer.err) == (0, "", "nothing differs\n")
        assert json.loads(corrigenda("diff", "3", "4", "-o", "json").out)["items"] == []

    def test_an_unseen_diff_is_left_out_of_json(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A change in JSON has before and after, and its lines where it has any."""
        install(monkeypatch, history=history(patched()))
        (item,) = json.loads(corrigenda("history", MEM, "--patch", "-o", "json").out)["items"]
        assert item["patch"]["tags"] == {"before": ["home", "old"], "after": []}
        assert item["patch"]["content"]["diff"].startswith("@@ -1,2 +1,2 @@")


class TestCorrections:
    """What the diff of a project says of corrections."""

    DIFF = past_replies.CorrectionDiff(
        correction_id=COR,
        acts=("confirmed", "superseded"),
        before=past_replies.CorrectionThen(
            state="unconfirmed", superseded_by=None, agent="bot", field="charge", entity_key="MSC",
            original_value="THC", corrected_value="DTHC", memory=None,
        ),
        after=past_replies.CorrectionThen(
            state="superseded", superseded_by="cor_2", agent="bot", field="charge", entity_key="MSC",
            original_value="THC", corrected_value="DTHC", memory=None,
        ),
    )  # fmt: skip

    def test_as_text(self) -> None:
        """Its acts, its state before and after, whose it is and what it says; nothing of what was forgotten."""
        assert patches.changed(self.DIFF).splitlines() == [
            f"~ {COR}  confirmed, superseded",
            "  unconfirmed → superseded by cor_2",
            "  of bot: charge, MSC",
            "  │ -THC",
            "  │ +DTHC",
        ]
        after = msgspec.structs.replace(self.DIFF.after, original_value=None, corrected_value=None)
        told = patches.changed(msgspec.structs.replace(self.DIFF, before=None, after=after))
        assert told.startswith(f"+ {COR}") and "not there → superseded" in told and "forgotten" in told

    def test_beside_memories_in_every_format(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lines have one form for both, a name is what `show` takes, and a document has both in one list."""
        install(monkeypatch, diff_between=lambda *_: iter([memory(), self.DIFF]))
        words = ("diff", "3", "9", "-o")
        header, first, second = corrigenda(*words, "csv").out.splitlines()
        assert header == "memory_id,correction_id,acts,before,after,patch,linked,unlinked"
        assert first.startswith("home,,") and second.startswith(f",{COR},")
        assert corrigenda(*words, "name").out.splitlines() == ["home", COR]
        for form in ("json", "jsonl", "yaml", "wide"):
            told = corrigenda(*words, form).out
            assert COR in told and "home" in told, form
        assert [item["correction_id"] for item in json.loads(corrigenda(*words, "json").out)["items"]] == [None, COR]
