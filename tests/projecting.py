"""Shared hands: events made by hand, of every type that a read model takes up, and what projectors make of them."""

from collections.abc import Iterable, Sequence

from ledger.chain import Entry, Envelope
from ledger.codec import TAGS
from ledger.corrections import (
    CorrectionConfirmed,
    CorrectionRecorded,
    CorrectionRevoked,
    CorrectionSuperseded,
    RecordStanding,
)
from ledger.flush import Flush
from ledger.governance import NameAssigned
from ledger.memories import (
    FRESH,
    LearningInvalidated,
    LineageLinked,
    LineageUnlinked,
    MemoryForgotten,
    MemoryRemembered,
    MemoryRestored,
    MemoryRetired,
    MetadataPatched,
    RevisionAdmitted,
    RevisionContested,
    RevisionCorrected,
    RevisionPromoted,
    RevisionPublished,
    RevisionRejected,
    RevisionRevoked,
    RevisionSuperseded,
)
from ledger.message import HEADLESS, Edge, Facts, Move, ScopeIds, Values
from ledger.store import Database, Write
from ledger.verified import Recorded
from projections.models import ALL

LEDGER = "01JZ8Q0000000000000000000A"
SCOPE = ScopeIds(agent="agt_1", project="prj_1", session=None, task_family=None, user="usr_1")
HELD = Values("processing", "unverified", "verified")


def after(state: str, trust: str = "unverified") -> Values:
    """Return a revision's values, its floor as it is at birth."""
    return Values(state, trust, "verified")


def recorded(position: int, stream: str, facts: Facts) -> Recorded:
    """Return an event at a position, as a projector reads it."""
    envelope = Envelope(
        actor="pr_1",
        at=f"2026-01-02T03:04:05.{position:06}Z",
        authn="local",
        facts=facts,
        log="o",
        op=f"op_{position}",
        op_count=1,
        op_index=0,
        payload_len=None,
        payload_sha256=None,
        prev_b3="",
        request=None,
        request_fp=None,
        schema=1,
        seq=position,
        stream=stream,
        stream_prev_b3="",
        stream_seq=0,
        subjects=(),
        type=TAGS[type(facts)],
        v=1,
    )
    return Recorded(Entry(envelope=envelope, raw=b"", hash=b"", stream_hash=b"", seal=b""), None)


class Story:
    """A history that is told event by event; it knows where each revision's values began."""

    def __init__(self) -> None:
        self.events: list[Recorded] = []
        self._since: dict[str, tuple[int, Values, int]] = {}

    def tell(self, stream: str, facts: Facts) -> int:
        """Add an event; return its position."""
        self.events.append(recorded(len(self.events) + 1, stream, facts))
        return len(self.events)

    def move(self, revision: str, values: Values) -> Move:
        """Return the move of a revision to other values, in the event that comes next."""
        position = len(self.events) + 1
        since, before, version = self._since.get(revision, (None, None, 1))
        self._since[revision] = (position, values, version)
        return Move(after=values, before=before, revision=revision, since=since, version=version)

    def remember(self, stream: str, revision: str, values: Values = FRESH, *edges: Edge) -> int:
        """Let a lineage begin, or go on, with a revision."""
        return self.tell(
            stream,
            MemoryRemembered(
                content="c",
                edges=edges,
                kind="fact",
                moves=(self.move(revision, values),),
                origin="human",
                scope=SCOPE,
                standing=HEADLESS,
                supports=(),
                visibility="project",
            ),
        )

    def correct(self, stream: str, old: str, new: str, *edges: Edge) -> int:
        """Replace a revision; `edges` come beside the one that says so."""
        return self.tell(
            stream,
            RevisionCorrected(
                content="c",
                edges=(stated("supersedes", new, old), *edges),
                kind="fact",
                moves=(self.move(old, after("superseded")), self.move(new, FRESH)),
                origin="human",
                scope=SCOPE,
                standing=HEADLESS,
                supports=(),
                trace=None,
                visibility="project",
            ),
        )


def stated(kind: str, newer: str, older: str) -> Edge:
    """Return an edge as it is stated."""
    return Edge(kind, newer, older, None)


def whole_story() -> list[Recorded]:
    """Return a history in which every event of memories and corrections occurs that a read model takes up."""
    story = Story()
    tell, move = story.tell, story.move
    tell("name_1", NameAssigned(id="mem_a", kind="memory", parent="prj_1"))
    story.remember("mem_a", "rev_a1")
    story.correct("mem_a", "rev_a1", "rev_a2")
    tell("mem_a", MetadataPatched(revision="rev_a2", since=3, standing=HEADLESS))
    held = story.remember("mem_a", "rev_a3", HELD, stated("proposes", "rev_a3", "rev_a2"))
    published = (move("rev_a2", after("superseded")), move("rev_a3", FRESH))
    ending = Edge("proposes", "rev_a3", "rev_a2", held)
    publishing = (ending, stated("supersedes", "rev_a3", "rev_a2"))
    tell("mem_a", RevisionPublished(edges=publishing, moves=published, standing=HEADLESS))
    tell("mem_a", RevisionAdmitted(moves=(move("rev_a3", after("active", "verified")),), standing=HEADLESS))
    # a merge of b into a: both streams say so
    story.remember("mem_b", "rev_b1")
    story.correct("mem_a", "rev_a3", "rev_a4", stated("supersedes", "rev_a4", "rev_b1"))
    merged = (stated("supersedes", "rev_a4", "rev_b1"),)
    tell("mem_b", RevisionSuperseded(edges=merged, moves=(move("rev_b1", after("superseded")),), standing=HEADLESS))
    # a split of a into a and c: the other half says so, too
    story.correct("mem_a", "rev_a4", "rev_a5", stated("supersedes", "rev_c1", "rev_a4"))
    story.remember("mem_c", "rev_c1", FRESH, stated("supersedes", "rev_c1", "rev_a4"))
    tell("mem_a", RevisionRevoked(moves=(move("rev_a5", after("active", "revoked")),), standing=HEADLESS))
    tell("mem_a", MemoryRestored(moves=(move("rev_a5", FRESH),), standing=HEADLESS, undoes=13))
    # a dispute in d, and another that is turned down
    story.remember("mem_d", "rev_d1")
    story.remember("mem_d", "rev_d2", HELD)
    both = (move("rev_d1", after("conflicted")), move("rev_d2", after("conflicted")))
    dispute = tell(
        "mem_d", RevisionContested(edges=(stated("conflicts", "rev_d2", "rev_d1"),), moves=both, standing=HEADLESS)
    )
    settled = (move("rev_d2", FRESH), move("rev_d1", after("rejected")))
    ended = (Edge("conflicts", "rev_d2", "rev_d1", dispute),)
    tell("mem_d", RevisionPromoted(edges=ended, moves=settled, standing=HEADLESS))
    story.remember("mem_d", "rev_d3", HELD)
    tell("mem_d", RevisionRejected(edges=(), moves=(move("rev_d3", after("rejected")),), standing=HEADLESS))
    # links between lineages, in both of them, stated, withdrawn, and stated again
    link = stated("supersedes", "mem_d", "mem_c")
    at = tell("mem_d", LineageLinked(edges=(link,), role="newer", standing=HEADLESS))
    tell("mem_c", LineageLinked(edges=(link,), role="older", standing=HEADLESS))
    tell("mem_d", LineageUnlinked(edges=(Edge(*_ends(link), at),), role="newer", standing=HEADLESS))
    tell("mem_c", LineageUnlinked(edges=(Edge(*_ends(link), at + 1),), role="older", standing=HEADLESS))
    tell("mem_d", LineageLinked(edges=(link,), role="newer", standing=HEADLESS))
    tell("mem_c", LineageLinked(edges=(link,), role="older", standing=HEADLESS))
    _ends_of_revisions(story)
    _corrections(story)
    return story.events


def _ends_of_revisions(story: Story) -> None:
    tell, move = story.tell, story.move
    tell("mem_c", MemoryRetired(cause="person", moves=(move("rev_c1", after("retired")),), standing=HEADLESS))
    tell("mem_c", MemoryForgotten(cause="person", moves=(move("rev_c1", after("forgotten")),), standing=HEADLESS))
    story.remember("mem_e", "rev_e1")
    retired = (move("rev_e1", after("retired")),)
    tell("mem_e", LearningInvalidated(correction="cor_1", moves=retired, standing=HEADLESS))


def _corrections(story: Story) -> None:
    for name, first in (("cor_1", "unconfirmed"), ("cor_2", "active")):
        recorded_as = CorrectionRecorded(
            content="c", contradiction="off", origin="agent", revision="rev_a5" if name == "cor_2" else None,
            scope=SCOPE, standing=RecordStanding(state=first), visibility="agent",
        )  # fmt: skip
        story.tell(name, recorded_as)
    active, ended = RecordStanding(state="active"), RecordStanding(state="superseded")
    story.tell("cor_1", CorrectionConfirmed(after="active", before="unconfirmed", contradiction="off", standing=active))
    story.tell("cor_1", CorrectionSuperseded(after="superseded", before="active", standing=ended, successor="cor_2"))
    revoked = RecordStanding(state="revoked")
    story.tell("cor_2", CorrectionRevoked(after="revoked", before="active", standing=revoked))


def _ends(edge: Edge) -> tuple[str, str, str]:
    return edge.kind, edge.newer, edge.older


def project(url: str, events: Iterable[Sequence[Recorded]], *, gen: int = 1, ledger: str = LEDGER) -> None:
    """Let every projector write groups of events into a generation, each group in a transaction of its own."""
    database = Database(url)
    try:
        for group in events:
            writes = [write for projector in ALL for write in projector.writes(gen, group)]
            with database.transaction(ledger=ledger) as connection:
                Flush(connection, prepare=False).run(
                    [Write(one.query, {"ledger": ledger, **one.params}) for one in writes]
                )
    finally:
        database.close()
