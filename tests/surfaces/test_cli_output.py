"""What comes out: one document for machines, tables for people, and stored text that only lies there."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_hands import (
    MEM,
    OP,
    REV,
    T1,
    corrigenda,
    explanation,
    hit,
    install,
    item,
    lineage,
    receipt,
    revision,
    search,
    status,
    verify_report,
)

from cli.views import audit, memories
from gateway.shapes.replies import log as log_replies
from gateway.shapes.replies import past as past_replies
from gateway.shapes.replies import upkeep as upkeep_replies
from ledger.errors import failure

ROOT = Path(__file__).parents[2]
HOSTILE = "plain\x1b[2J\x1b]0;title\x07\r\nstored at 9\u2028\u202eevil\u2066\x9b31m\ufeff\U000e0041 שלום 👩‍👩‍👧"


def readers(content: str) -> dict[str, tuple[list[str], object]]:
    """Every command that answers with stored text, and an answer full of `content`."""
    hostile = revision(content=content, tags=(content,), kind=content, scope={"user": content}, origin=content)
    audit = past_replies.AuditEntry(seq=5, type="t", at=T1, actor=content, trace_id=OP, reason=content, moves=())
    change = {
        "content": past_replies.Change(before=content, after="", diff=f"-{content}"),
        "tags": past_replies.Change(before=(content,), after=()),
    }
    side = past_replies.RevisionRef(
        memory_id=content, revision_id="r", version=1, state="s", trust="t", recorded_at=T1, position=4
    )
    parts: dict[str, Any] = dict(
        ok=True, replayed=0, skipped=0, parked=0, repaired=0, claims=(), position=1, incarnation=0
    )
    return {
        "search": (["memories", "search", "q"], search(hit(content=content), warnings=(content,))),
        "show": (["show", MEM], hostile),
        "history": (
            ["history", MEM],
            past_replies.History(memory_id=MEM, items=(hostile,) * 2, position=9, incarnation=0),
        ),
        "explain": (["explain", MEM], explanation(content=content, audit=(audit,), head=None)),
        "diff": (["diff", "a", "b"], past_replies.RevisionDiff(before=side, after=side, patch=change)),
        "lineage": (["lineage", "a"], lineage(("b", "a"), root="a", labels={"a": content})),
        "log": (["log"], [item(actor=content), item(3)]),
        "verify": (["verify"], verify_report(seals={"status": "failed", "why": content})),
        "status": (["status"], status()),
        "recover": (["recover"], upkeep_replies.Recovery(index={"action": "none", "why": content}, **parts)),
        "retire": (["memories", "retire", REV], receipt(memory_id="pep-1", warnings=(content,))),
        "doctor": (["doctor"], [("name", True, content, None)]),
    }


def active(shown: str) -> set[str]:
    """The characters in `shown` that a terminal would act upon; line feeds and the joiners of emoji are ours."""
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return {character for character in shown if unicodedata.category(character) in kinds} - {"\n", "\u200c", "\u200d"}


@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
@pytest.mark.parametrize("name", readers(""))
def test_stored_text_is_inert(monkeypatch: pytest.MonkeyPatch, name: str, form: str) -> None:
    """No control, bidi or separator character of a stored text reaches a stream, in any format."""
    words, reply = readers(HOSTILE)[name]
    install(monkeypatch, **{name: reply})
    answer = corrigenda(*words, "-o", form)
    assert answer.code == 0, answer.err
    assert active(answer.out + answer.err) == set()
    assert not any(line.startswith("stored at 9") for line in answer.out.splitlines())


@pytest.mark.parametrize("name", readers(""))
def test_json_is_one_document(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """`-o json` writes one document with its schema version on stdout, and nothing on stderr; nothing is lost."""
    words, reply = readers(HOSTILE)[name]
    install(monkeypatch, **{name: reply})
    answer = corrigenda(*words, "-o", "json")
    body = json.loads(answer.out)
    assert body["schema_version"] == 1
    assert answer.err == ""
    if name not in ("status",):
        assert HOSTILE in _strings(body)


def _strings(body: object) -> list[str]:
    if isinstance(body, str):
        return [body]
    inner = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    return [found for value in inner for found in _strings(value)]


@pytest.mark.parametrize(("name", "lines"), [("search", 1), ("history", 2), ("log", 2), ("explain", 1), ("lineage", 1)])
def test_jsonl_is_one_line_per_item(monkeypatch: pytest.MonkeyPatch, name: str, lines: int) -> None:
    """`-o jsonl` writes lists line by line, each a document, and other answers as one line."""
    words, reply = readers("x")[name]
    install(monkeypatch, **{name: reply})
    bodies = [json.loads(line) for line in corrigenda(*words, "-o", "jsonl").out.splitlines()]
    assert len(bodies) == lines
    assert all(body["schema_version"] == 1 for body in bodies)


def test_the_log_as_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log's document has the fields of every list."""
    install(monkeypatch, log=iter([item(2), item(1)]))
    body = json.loads(corrigenda("log", "-o", "json").out)
    assert [event["seq"] for event in body["items"]] == [2, 1]
    assert (body["next_cursor"], body["truncated"]) == (None, False)
    install(monkeypatch, log=iter([]))
    assert json.loads(corrigenda("log", "-o", "json").out)["items"] == []


def test_raw_bytes_are_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`show SEQ --raw` writes the stored bytes and not one more."""
    gateway = install(monkeypatch, raw=b'{"a":"\xc3\xa9\\u001b"}')
    assert corrigenda("show", "7", "--raw").raw == b'{"a":"\xc3\xa9\\u001b"}'
    assert gateway.asked("raw")[0] == (7,)
    assert corrigenda("show", "7", "--raw", "-o", "json").code == 2


def test_raw_bytes_of_a_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    """`show ID --raw` is the event that recorded the revision."""
    gateway = install(monkeypatch, show=revision(position=41), raw=b"{}")
    assert corrigenda("show", MEM, "--raw").raw == b"{}"
    assert gateway.asked("raw")[0] == (41,)


def test_an_event_with_its_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    """`show SEQ` shows an event, what links it, and its payload behind a gutter."""
    shown = msgspec.structs.asdict(item(7)) | {"facts": {"a": 1}, "payload": {"reason": "moved"}}
    linked = {name: name[0] * 64 for name in ("prev_b3", "stream_prev_b3", "seal", "leaf")}
    rest = {"log": "example.org/log", "op_index": 0, "op_count": 1, "payload_sha256": "f" * 64, "payload_len": 9}
    install(monkeypatch, show_event=log_replies.EventDetail(**shown, **linked, **rest))
    out = corrigenda("show", "7").out
    assert out.startswith("7  memory.remembered.v1\n") and '  │   "reason": "moved"' in out
    assert all(f"{name:<16}{value}" in out for name, value in linked.items())
    body = json.loads(corrigenda("show", "7", "-o", "json").out)
    assert linked.items() <= body.items() and rest.items() <= body.items()


def test_a_number_is_an_event_whatever_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """`show 12` is event 12, and says so aside where a memory has that name; a program is told nothing beside."""
    gateway = install(monkeypatch, show_event=item(12), show=revision(memory_id="12"))
    done = corrigenda("show", "12")
    assert done.out.startswith("12  memory.remembered.v1") and "`corrigenda memories show 12`" in done.err
    assert gateway.asked("show_event")[0] == (12,)
    assert corrigenda("show", "12", "-o", "json").err == ""
    install(monkeypatch, show_event=item(12), show=failure("MEMORY_NOT_FOUND", "There is no such memory."))
    assert corrigenda("show", "12").err == ""


@pytest.mark.parametrize("words", [["memories", "show"], ["explain"], ["history"], ["lineage"]])
def test_where_only_an_id_can_stand_a_number_is_a_name(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """A memory named 12 is explained, and its history and lineage told, by that name."""
    found = {"history": past_replies.History(memory_id="12", items=(), position=4, incarnation=0)}
    stub = install(monkeypatch, show=revision(), explain=explanation(), lineage=lineage(root="12"), **found)
    assert corrigenda(*words, "12").code == 0
    assert [args for name, args, _ in stub.calls if name == words[-1]] == [("12",)]


def test_a_trace_is_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """RC-26: `show TRACE` shows each event of a command, `-o jsonl` a line for each, `--raw` the first one's bytes."""
    empty: dict[str, Any] = dict.fromkeys(("log", "prev_b3", "stream_prev_b3", "seal", "leaf"), "x")
    rest: dict[str, Any] = {"op_index": 0, "op_count": 2, "payload_sha256": None, "payload_len": None, "facts": {}}
    events = tuple(
        log_replies.EventDetail(**msgspec.structs.asdict(item(seq)), **empty, **rest, payload=None) for seq in (7, 8)
    )
    trace = log_replies.Trace(trace_id=OP, at=T1, actor="human:ana", items=events, position=9, incarnation=1)
    gateway = install(monkeypatch, show_trace=trace, complete=(OP,), raw=b"{}")
    told = corrigenda("show", OP[:12]).out
    assert [block.splitlines()[0] for block in told.split("\n\n")] == [f"{seq}  {item().type}" for seq in (7, 8)]
    assert gateway.asked("show_trace")[0] == (OP,)
    lines = corrigenda("show", OP, "-o", "jsonl").out.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [7, 8]
    assert corrigenda("show", OP, "--raw").raw == b"{}"
    assert gateway.asked("raw")[0] == (7,)


def test_what_was_erased_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A revision whose text was destroyed says so, on a page and in a line, and its event says it of the payload."""
    install(monkeypatch, show=revision(state="erased", content=None, content_hash=None))
    assert "(its content was erased)" in corrigenda("show", MEM).out
    assert "(erased)" in memories.listed(revision(state="erased", content=None))
    empty: dict[str, Any] = dict.fromkeys(("log", "prev_b3", "stream_prev_b3", "seal", "leaf"), "x")
    rest: dict[str, Any] = {"op_index": 0, "op_count": 1, "payload_sha256": "f" * 64, "payload_len": 9, "facts": {}}
    gone = log_replies.EventDetail(**msgspec.structs.asdict(item(7)), **empty, **rest, payload=None, erased=True)
    install(monkeypatch, show_event=gone)
    assert "  payload\n  │ (erased)" in corrigenda("show", "7").out
    report = {"ok": True, "checks": {}, "events": 9, "size": 9, "erased": 2, "exit_code": 0}
    assert audit.verification(report).endswith("ledger size 9, 2 payloads erased with certificate")
