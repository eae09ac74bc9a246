"""Hands for the command line's tests: a gateway that only notes what it was asked, and a way to run a command line."""

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from click.testing import CliRunner

from cli.main import main
from gateway.shapes.replies import lineages as lineages_replies
from gateway.shapes.replies import log as log_replies
from gateway.shapes.replies import memories as memories_replies
from gateway.shapes.replies import past as past_replies
from gateway.shapes.replies import searches as searches_replies
from gateway.shapes.replies import upkeep as upkeep_replies
from gateway.shapes.replies import writes as writes_replies

MEM = "mem_01J9ZKAAAAAAAAAAAAAAAAAAAA"
REV = "rev_01J9ZKBBBBBBBBBBBBBBBBBBBB"
NEXT = "rev_01J9ZKCCCCCCCCCCCCCCCCCCCC"
SIGNATURE = "provider=onnxruntime;model=all-MiniLM-L6-v2;weights=0123456789ab;dimension=384;tokens_max=256"
OP = "op_01J9ZKDDDDDDDDDDDDDDDDDDDD"
T1, T2 = "2026-01-02T03:04:05.000006Z", "2026-01-03T03:04:05.000006Z"


@dataclass(frozen=True)
class Answer:
    """What a command line left behind."""

    code: int
    out: str
    err: str
    raw: bytes


def corrigenda(*args: str, stdin: str | bytes | None = None) -> Answer:
    """Run `corrigenda` with these words in this process."""
    code = 0
    with CliRunner().isolation(input=stdin) as (out, err, _):
        try:
            main(args)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 0
        sys.stdout.flush()
        sys.stderr.flush()
    return Answer(code, out.getvalue().decode(), err.getvalue().decode(), out.getvalue())


def refused(answer: Answer, *words: str) -> bool:
    """Whether it ended as a usage error that names these words, with nothing on stdout."""
    return (answer.code, answer.out) == (2, "") and all(word in answer.err for word in words)


def revision(cls: type = memories_replies.Revision, **changes: Any) -> Any:
    """A revision that nothing is special about, but for the changes."""
    plain: dict[str, Any] = dict(
        memory_id=MEM,
        revision_id=REV,
        version=1,
        state="active",
        trust="unverified",
        kind="fact",
        content="user lives in Berlin",
        tags=("profile",),
        scope={"project": "ap"},
        visibility="project",
        subjects=(),
        stream_version=1,
        origin="human",
        confidence=None,
        valid_from=None,
        valid_to=None,
        review_by=None,
        supersedes=(),
        superseded_by=(),
        recorded_at=T1,
        superseded_at=None,
        position=4,
        content_hash="b3:00",
        applies=None,
        institutional=None,
        provenance={},
        evidence=(),
        depends_on=(),
    )
    return cls(**{**plain, **changes})


def hit(**changes: Any) -> searches_replies.Hit:
    """A hit, the first one but for the changes."""
    return revision(searches_replies.Hit, **{"rank": 1, "score": 0.8312, "why": "near", **changes})


def search(*hits: searches_replies.Hit, **changes: Any) -> searches_replies.Search:
    """An answer to a search."""
    plain: dict[str, Any] = dict(hits=hits, warnings=(), empty_reason=None, trace_id=None, position=4, incarnation=0)
    return searches_replies.Search(**{**plain, **changes})


def receipt(**changes: Any) -> writes_replies.Receipt:
    """The receipt of a plain remember."""
    plain: dict[str, Any] = dict(
        outcome="stored",
        replayed=False,
        position=4,
        incarnation=0,
        events=(writes_replies.EventRef(seq=4, type="memory.remembered.v1"),),
        trace_id=OP,
        memory_id=MEM,
        revision_id=REV,
    )
    return writes_replies.Receipt(**{**plain, **changes})


def item(seq: int = 4, **changes: Any) -> log_replies.LogItem:
    """One event of the log."""
    plain: dict[str, Any] = dict(
        seq=seq,
        type="memory.remembered.v1",
        at=T1,
        actor="human:ana",
        stream=MEM,
        stream_seq=0,
        hash="ab" * 32,
        trace_id=OP,
    )
    return log_replies.LogItem(**{**plain, **changes})


def lineage(*edges: tuple[str, str], root: str, labels: Mapping[str, str] | None = None) -> lineages_replies.Lineage:
    """A lineage with these edges, newer first, and their ends as nodes; a root without edges stands alone."""
    names = dict.fromkeys([end for edge in edges for end in edge] or [root])
    return lineages_replies.Lineage(
        root=root,
        nodes=tuple(
            lineages_replies.LineageNode(id=name, type="memory", state="active", label=(labels or {}).get(name, name))
            for name in names
        ),
        edges=tuple(lineages_replies.LineageEdge(source=new, target=old, kind="supersedes") for new, old in edges),
        position=9,
        incarnation=0,
    )


def verify_report(*, ok: bool = True, exit_code: int = 0, **checks: dict[str, Any]) -> dict[str, Any]:
    """The document of a verification."""
    return {
        "ok": ok,
        "exit_code": exit_code,
        "events": 12,
        "size": 12,
        "checks": {"canonical": {"status": "ok"}, "tree": {"status": "skipped", "why": "not built"}, **checks},
    }


def explanation(**changes: Any) -> past_replies.Explanation:
    """An explanation of a superseded revision."""
    told = past_replies.AuditEntry(
        seq=5,
        type="revision.corrected.v1",
        at=T2,
        actor="human:ana",
        trace_id=OP,
        reason="moved in May",
        moves=(
            {
                "revision": REV,
                "from_state": "active",
                "from_trust": "unverified",
                "to_state": "superseded",
                "to_trust": "unverified",
            },
        ),
    )
    plain: dict[str, Any] = dict(
        state="superseded", superseded_by=(NEXT,), superseded_at=T2, head=NEXT, root=REV, audit=(told,)
    )
    return revision(past_replies.Explanation, **{**plain, **changes})


def status(**ledger: Any) -> upkeep_replies.Status:
    """A status with something in every part; the arguments change what is said of the ledger."""
    plain = {"id": "led_01J9ZKAAAAAAAAAAAAAAAAAAAA", "size": 12, "head": "ab" * 32, "chain": "ok", "problem": None}
    return upkeep_replies.Status(
        ledger={**plain, **ledger},
        anchor={"state": "none", "why": "this version keeps no anchor outside the database"},
        projections={"generation": 1},
        index={"cursor": 11, "embedder": SIGNATURE, "items": 3},
        outbox={"pending": 0, "parked": 0},
        index_pending=0,
        memories={"active": 3},
        conflicts_open=0,
        candidates={},
    )


UNASKED: dict[str, Any] = {"probe_index": (True, "each entry comes first for its own vector")}


@dataclass
class Stub:
    """A gateway and a bare gateway in one: notes each call and gives the answer that was laid out for it."""

    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    opened: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    says: str | None = None  # why opening takes long

    def __enter__(self) -> "Stub":
        return self

    def __exit__(self, *failure: object) -> None:
        self.calls.append(("close", (), {}))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self.calls.append((name, args, named))
            answer = self.answers.get(name, UNASKED.get(name) or receipt())
            if isinstance(answer, BaseException):
                raise answer
            return answer(*args, **named) if callable(answer) else answer

        return call

    def asked(self, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the only call of this name was given."""
        [(_, args, named)] = [call for call in self.calls if call[0] == name]
        return args, named

    def open_gateway(self, *, say: Callable[[str], None], **how: Any) -> "Stub":
        self.opened.append(("gateway", how))
        return self._opened(say)

    def open_bare(self, *, say: Callable[[str], None], **how: Any) -> "Stub":
        self.opened.append(("bare", how))
        return self._opened(say)

    def _opened(self, say: Callable[[str], None]) -> "Stub":
        if self.says:
            say(self.says)
        if isinstance(failure := self.answers.get("open"), BaseException):
            raise failure
        return self


def install(monkeypatch: Any, **answers: Any) -> Stub:
    """Put a stub where the command line looks for its two ways of opening a ledger, and name a project."""
    monkeypatch.setenv("CORRIGENDA_PROJECT", "ap")
    stub = Stub(answers)
    for name, opening in (("bootstrap", "open_gateway"), ("upkeep.bare", "open_bare")):
        module = types.ModuleType(f"gateway.{name}")
        setattr(module, opening, getattr(stub, opening))
        monkeypatch.setitem(sys.modules, f"gateway.{name}", module)
    return stub


def endless_log() -> Iterator[log_replies.LogItem]:
    """More events than any reader takes."""
    for seq in range(1_000_000):
        yield item(seq)
