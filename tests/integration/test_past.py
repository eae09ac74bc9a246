"""Two clocks: a memory as it stood at a position or a time, what each revision changed, and what lies between."""

from datetime import UTC, datetime, timedelta

import pytest

import corrigenda
from gateway.service import Gateway
from tests.house import refused, tamper, written
from tests.integration.conftest import Here
from tests.roles import as_owner

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Hands:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        """Return the time that it shows."""
        return self.now

    def forward(self, **by: float) -> str:
        """Move it on, and return the time that it showed before, as callers write it."""
        before, self.now = self.now, self.now + timedelta(**by)
        return before.isoformat()


@pytest.fixture
def hands() -> Hands:
    """Return the clock of the gateway."""
    return Hands()


@pytest.fixture
def clocked(open_here: Here, hands: Hands) -> Gateway:
    """Return Ana's gateway, with that clock."""
    return open_here(clock=hands)


@pytest.fixture
def pump(gateway: Gateway) -> tuple[Gateway, list[corrigenda.Receipt]]:
    """Return a memory that was remembered, corrected, revoked and restored; and the receipts of that."""
    return gateway, [
        gateway.remember("the pump runs at 50 Hz", memory_id="pump", tags=["power"]),
        gateway.correct("pump", "the pump runs at 60 Hz", reason="measured"),
        gateway.revoke("pump", reason="by whom?"),
        gateway.restore("pump", reason="by Bo"),
    ]


class TestExplainAt:
    """`explain` of the past."""

    def test_a_memory_stands_as_it_stood(self, pump: tuple[Gateway, list[corrigenda.Receipt]]) -> None:
        """Given four acts, when the memory is explained behind each, then head, trust and audit are those of then."""
        gateway, receipts = pump
        told = [gateway.explain("pump", at=receipt.position) for receipt in receipts]
        first, second = (receipt.revision_id for receipt in receipts[:2])

        assert [item.head for item in told] == [first, second, None, second]
        assert [item.revision_id for item in told] == [first, second, second, second]
        assert [item.trust for item in told] == ["unverified", "unverified", "revoked", "unverified"]
        assert [len(item.audit) for item in told] == [1, 2, 3, 4]
        assert [item.stream_version for item in told] == [1, 2, 3, 4]
        assert [item.at_position for item in told] == [receipt.position for receipt in receipts]

    def test_a_revision_had_no_successor_yet(self, pump: tuple[Gateway, list[corrigenda.Receipt]]) -> None:
        """RC-06: given A → B, when A is explained before the correction, then nothing supersedes it."""
        gateway, (first, second, *_) = pump
        then = gateway.explain(first.revision_id or "", at=first.position)
        now = gateway.explain(first.revision_id or "", at=second.position)

        assert (then.state, then.superseded_by, then.superseded_at, then.valid_to) == ("active", (), None, None)
        assert "supersededBy" not in then.provenance
        assert (now.state, now.superseded_by) == ("superseded", (second.revision_id,))

    def test_the_head_is_the_present(self, pump: tuple[Gateway, list[corrigenda.Receipt]]) -> None:
        """Given a memory, when it is explained at the head, then as without a position."""
        gateway, receipts = pump
        there = gateway.explain("pump", at=receipts[-1].position)
        assert corrigenda.Explanation(**{**fields(there), "at_position": None}) == gateway.explain("pump")

    def test_inside_an_append_is_the_end_of_the_one_before(self, gateway: Gateway, ledger_url: str) -> None:
        """Given appends of several events, when a position inside one is asked for, the one before it is meant."""
        first = gateway.remember("a", memory_id="a")
        second = gateway.remember("b", memory_id="b")
        inside = second.events[0].seq
        assert inside < second.position == len(written(ledger_url)) - 1
        assert gateway.explain("a", at=inside).at_position == first.position
        with refused("MEMORY_NOT_FOUND"):
            gateway.explain("b", at=inside)

    def test_what_was_not_there_yet(self, pump: tuple[Gateway, list[corrigenda.Receipt]]) -> None:
        """Given a position before a memory or a revision began, when explained, then MEMORY_NOT_FOUND says so."""
        gateway, (first, second, *_) = pump
        with refused("MEMORY_NOT_FOUND") as early:
            gateway.explain("pump", at=0)
        assert "not there yet at position 0" in early.error.message
        with refused("MEMORY_NOT_FOUND") as before_all:
            gateway.explain("pump", at="1999-01-01T00:00:00Z")
        assert "not there yet when the ledger held nothing" in before_all.error.message
        with refused("MEMORY_NOT_FOUND"):
            gateway.explain(second.revision_id or "", at=first.position)

    def test_above_the_head_there_is_nothing(self, pump: tuple[Gateway, list[corrigenda.Receipt]]) -> None:
        """Given a position above the head, when asked for, EVENT_NOT_FOUND; with min_position UNAVAILABLE."""
        gateway, receipts = pump
        beyond = receipts[-1].position + 1
        with refused("EVENT_NOT_FOUND"):
            gateway.explain("pump", at=beyond)
        with refused("UNAVAILABLE"):
            gateway.explain("pump", at=beyond, min_position=str(beyond))

    @pytest.mark.parametrize(
        "moment",
        ["x", "", "-1", -1, "2026-01-02", "2026-01-02T03:04:05", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z",
         "2026-12-31T23:59:60Z", "9.1", True, datetime(2026, 1, 2)],  # noqa: DTZ001 - a time without a zone is the point
    )  # fmt: skip
    def test_what_is_no_moment(self, gateway: Gateway, moment: str | int | datetime) -> None:
        """Given no zone, the years 0 and 10000, a leap second, another incarnation, when asked, VALIDATION_FAILED."""
        gateway.remember("a", memory_id="a")
        with refused("VALIDATION_FAILED"):
            gateway.explain("a", at=moment)

    def test_another_projects_past_is_unknown(self, open_here: Here, pump: tuple[Gateway, object]) -> None:
        """RC-35: given another project, when the memory is explained there at any position, it is just unknown."""
        gateway, _ = pump
        revision = gateway.explain("pump").revision_id
        with open_here(project="hermes") as other:
            other.remember("mine")
            messages = [refusal(other, revision, at) for at in (0, 4, 6)]
            assert messages == [refusal(other, "rev_01JZ8Q0000000000000000000B", 4)] * 3


def refusal(gateway: Gateway, reference: str, at: int) -> str:
    """Return what is said when a past is refused."""
    with refused("MEMORY_NOT_FOUND") as caught:
        gateway.explain(reference, at=at)
    return caught.error.message


def fields(reply: corrigenda.Reply) -> dict[str, object]:
    """Return a reply's fields by name."""
    return {name: getattr(reply, name) for name in reply.__struct_fields__}


class TestTimes:
    """A time means the greatest position whose own time is not after it."""

    def test_a_time_is_the_last_position_by_then(self, clocked: Gateway, hands: Hands) -> None:
        """Given acts an hour apart, when a memory is explained between two of them, then as the first one left it."""
        clocked.remember("a1", memory_id="a")
        hands.forward(hours=1)
        corrected = clocked.correct("a", "a2")
        at = hands.forward(hours=1)
        clocked.correct("a", "a3")

        between = (NOON + timedelta(minutes=30)).isoformat()
        assert [clocked.explain("a", at=one).content for one in (NOON, between, at, hands.now)] == [
            "a1",
            "a1",
            "a2",
            "a3",
        ]
        assert clocked.explain("a", at=at).at_position == corrected.position
        with refused("MEMORY_NOT_FOUND"):
            clocked.explain("a", at=NOON - timedelta(seconds=1))

    def test_a_clock_that_went_back(self, clocked: Gateway, hands: Hands) -> None:
        """Given a clock that was set back, when a time is asked for, then the greatest position by then is meant."""
        clocked.remember("a1", memory_id="a")
        hands.forward(hours=2)
        clocked.correct("a", "a2")
        hands.forward(hours=-1)
        clocked.correct("a", "a3")

        assert clocked.explain("a", at=NOON + timedelta(hours=1)).content == "a3"
        assert clocked.explain("a", at=NOON + timedelta(minutes=59)).content == "a1"

    @pytest.mark.parametrize(
        "edit",
        [
            "DELETE FROM corrigenda.log_entry",
            "UPDATE corrigenda.log_entry SET at = '2020-01-01T00:00:00.000000Z'",
            "UPDATE corrigenda.log_entry SET seq = seq + 1000",
            "UPDATE corrigenda.log_entry SET at = '2030-01-01T00:00:00.000000Z' WHERE seq > 2",
        ],
    )
    def test_an_edited_read_model_is_not_believed(
        self, open_here: Here, clocked: Gateway, hands: Hands, edit: str
    ) -> None:
        """Given a log that was edited, when a time is asked for, then the entries say which position it is."""
        clocked.remember("a1", memory_id="a")
        hands.forward(hours=1)
        clocked.correct("a", "a2")
        tamper(as_owner(open_here.ledger_url), (edit, ()))
        open_here.broken = True

        assert clocked.explain("a", at=NOON).content == "a1"
        assert clocked.explain("a", at=hands.now).content == "a2"


class TestIntervals:
    """Until when a revision held, in the world and in the ledger."""

    def test_a_backdated_successor_ends_nothing_before_it_began(self, clocked: Gateway) -> None:
        """RC-34: given a successor that holds since before its predecessor, then that one ends where it began."""
        first = clocked.remember("a1", memory_id="a", valid_from="2026-02-01T00:00:00Z")
        clocked.retire("a")
        clocked.remember("b", memory_id="b", valid_from="2026-02-01T00:00:00Z", valid_to="2026-02-02T00:00:00Z")
        clocked.restore("a")
        clocked.correct("a", "a2")
        ended = clocked.show(first.revision_id or "")

        assert (ended.valid_from, ended.valid_to) == ("2026-02-01T00:00:00.000000Z", "2026-03-01T12:00:00.000000Z")
        assert ended.superseded_at == ended.valid_to
        clocked.correct("b", "b2")
        assert clocked.history("b").items[0].valid_to == "2026-02-02T00:00:00.000000Z"


class TestPatches:
    """`history` with patches, and the difference of two revisions."""

    def test_each_revision_names_what_it_changed(self, pump: tuple[Gateway, list[corrigenda.Receipt]]) -> None:
        """RC-33: given A → B, when the history is asked for with patches, then B names its content, line by line."""
        gateway, (first, _, *_) = pump
        old, new = gateway.history("pump", patch=True).items
        assert isinstance(old, corrigenda.PatchedRevision) and isinstance(new, corrigenda.PatchedRevision)

        assert (old.compared_with, old.patch, old.patched) == (None, None, ())
        assert (new.compared_with, new.patched) == (first.revision_id, ())
        assert new.patch == {
            "content": corrigenda.Change(
                before="the pump runs at 50 Hz",
                after="the pump runs at 60 Hz",
                diff="@@ -1 +1 @@\n-the pump runs at 50 Hz\n+the pump runs at 60 Hz",
            )
        }

    def test_a_memory_that_was_remembered_anew_goes_on(self, gateway: Gateway) -> None:
        """Given a retired memory, when it is remembered anew, then that is compared with the version before."""
        first = gateway.remember("old", memory_id="m", tags=["a", "b"], confidence="0.5")
        gateway.retire("m")
        gateway.remember("new", memory_id="m", tags=["b"])
        item = gateway.history("m", patch=True).items[1]
        assert isinstance(item, corrigenda.PatchedRevision) and item.patch is not None
        assert (item.supersedes, item.compared_with) == ((), first.revision_id)
        assert item.patch["tags"] == corrigenda.Change(before=("a", "b"), after=("b",))
        assert item.patch["confidence"] == corrigenda.Change(before="0.5", after=None)

    def test_two_revisions_differ(self, gateway: Gateway) -> None:
        """Given two memories, when they are compared, then every field that differs is named, and no other."""
        gateway.remember("same", memory_id="a", tags=["x"], sources=["s"])
        gateway.remember("same", memory_id="b", kind="decision", sources=["t"])
        told = gateway.diff("a", "b")
        assert (told.before.memory_id, told.after.memory_id) == ("a", "b")
        assert list(told.patch) == ["kind", "tags", "sources"]
        assert gateway.diff("a", "a").patch == {}
        with refused("MEMORY_NOT_FOUND"):
            gateway.diff("a", "nobody")


class TestBetween:
    """The ledger at two positions."""

    def test_each_memory_is_told_once(self, pump: tuple[Gateway, list[corrigenda.Receipt]]) -> None:
        """Given acts between two positions, then each memory has its acts in order, and its head before and after."""
        gateway, receipts = pump
        gateway.remember("the valve leaks", memory_id="valve")
        last = gateway.link("valve", "pump")
        found = {
            item.memory_id: item
            for item in gateway.diff_between(receipts[0].position, last.position)
            if isinstance(item, corrigenda.MemoryDiff)
        }

        assert list(found) == ["pump", "valve"]
        assert found["pump"].acts == ("corrected", "revoked", "restored", "linked")
        assert found["valve"].acts == ("begun", "linked")
        before, after = found["pump"].before, found["pump"].after
        assert before is not None and (before.head, after.head) == tuple(item.revision_id for item in receipts[:2])
        assert list(found["pump"].patch) == ["content"]
        assert found["valve"].before is None
        edge = corrigenda.LineageEdge(source="valve", target="pump", kind="supersedes")
        assert found["pump"].linked == found["valve"].linked == (edge,)
        gateway.unlink("valve", "pump", reason="no")
        (one, _) = gateway.diff_between(last.position, last.position + 2)
        assert (one.linked, one.unlinked) == ((), (edge,))

    def test_times_are_positions(self, clocked: Gateway, hands: Hands) -> None:
        """Given times, when the ledger is compared from before it began, then everything was begun."""
        clocked.remember("a", memory_id="a")
        at = hands.forward(hours=1)
        clocked.remember("b", memory_id="b")
        ancient = "1999-01-01T00:00:00Z"
        assert [item.memory_id for item in clocked.diff_between(ancient, at)] == ["a"]
        assert [item.memory_id for item in clocked.diff_between(at, hands.now)] == ["b"]
        assert list(clocked.diff_between(at, at)) == []

    def test_the_earlier_one_comes_first(self, pump: tuple[Gateway, list[corrigenda.Receipt]]) -> None:
        """Given a pair the wrong way round, when it is compared, then VALIDATION_FAILED at once."""
        gateway, receipts = pump
        with refused("VALIDATION_FAILED"):
            gateway.diff_between(receipts[1].position, receipts[0].position)
        with refused("VALIDATION_FAILED") as caught:
            gateway.diff_between(receipts[1].position, "1999-01-01T00:00:00Z")
        assert "-1" not in caught.error.message  # a time before the first event has no position to be shown

    def test_only_the_projects_own_memories(self, open_here: Here, pump: tuple[Gateway, object]) -> None:
        """Given two projects, when the ledger is compared in one, then nothing of the other is in it."""
        gateway, _ = pump
        with open_here(project="hermes") as other:
            last = other.remember("mine", memory_id="mine").position
            assert [item.memory_id for item in other.diff_between(0, last)] == ["mine"]
        assert [item.memory_id for item in gateway.diff_between(0, last)] == ["pump"]
