"""What people read: every answer as text. Pure: a reply in, text out, and nothing stored leaves unless inert."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from cli.text import Paint, block, inert, pairs, plain, table

if TYPE_CHECKING:
    from gateway.replies import (
        AuditEntry,
        Explanation,
        History,
        Hit,
        ImportReport,
        LogItem,
        Receipt,
        Recovery,
        Revision,
        Search,
        Status,
    )

_STATE_COLOURS = {"active": "green", "processing": "yellow", "verified": "green", "superseded": "cyan"}


def _coloured(word: str, paint: Paint) -> str:
    return paint(_STATE_COLOURS.get(word, "red" if word in ("revoked", "rejected") else "bold"), word)


def receipt(done: "Receipt", *, dry_run: bool = False) -> str:
    """What one write did, or would have done."""
    types = ", ".join(dict.fromkeys(event.type for event in done.events))
    if not dry_run:
        head = f"{done.outcome} at {done.position}" + (f": {types}" if types else "")
    elif types:
        head = f"dry run, nothing was stored; it would be at {done.position}: {types}"
    else:
        head = "dry run; it would change nothing"
    again = " (this key was used before; this is its answer)" if done.replayed else ""
    rows = [
        ("memory", done.memory_id and inert(done.memory_id)),
        ("revision", done.revision_id),
        ("superseded", ", ".join(done.superseded or ())),
        ("trace", done.trace_id),
    ]
    return f"{head}{again}\n{pairs(rows)}"


def hits(found: "Search", *, columns: int | None = None, paint: Paint = plain) -> str:
    """One line per hit: rank, score, how far it is trusted, which memory, and what it says."""
    if not found.hits:
        return ""
    lines = table([_hit(hit) for hit in found.hits], head=("", "score", "trust", "memory", "content"), columns=columns)
    head, *rest = lines.splitlines()
    return "\n".join([paint("bold", head), *rest])


def _hit(hit: "Hit") -> tuple[str, ...]:
    return str(hit.rank), f"{hit.score:.3f}", inert(hit.trust), inert(hit.memory_id), inert(hit.content or "")


def revision(item: "Revision", *, paint: Paint = plain) -> str:
    """One revision: what it says, and everything that is known of it."""
    title = f"{inert(item.memory_id)}  version {item.version}  {item.revision_id}"
    standing = f"{_coloured(item.state, paint)}, {_coloured(item.trust, paint)}"
    return f"{paint('bold', title)}\n  {standing}\n{_content(item)}\n{pairs(_particulars(item))}"


def _content(item: "Revision") -> str:
    return block(item.content, gutter="  │ ") if item.content is not None else "  (its content is no longer shown)"


def _particulars(item: "Revision") -> list[tuple[str, str | None]]:
    return [
        ("kind", inert(item.kind)),
        ("tags", inert(", ".join(item.tags))),
        ("scope", inert(" ".join(f"{name}={value}" for name, value in item.scope.items()))),
        ("visibility", inert(item.visibility)),
        ("origin", inert(item.origin)),
        ("confidence", item.confidence),
        ("valid", _span(item.valid_from, item.valid_to)),
        ("review by", item.review_by),
        ("supersedes", ", ".join(item.supersedes)),
        ("superseded by", ", ".join(item.superseded_by)),
        ("recorded", f"{item.recorded_at} at {item.position}"),
        ("superseded", item.superseded_at),
        ("stream version", str(item.stream_version)),
        ("content hash", item.content_hash),
    ]


def _span(start: str | None, end: str | None) -> str | None:
    return f"{start or '…'} to {end or '…'}" if start or end else None


def history(found: "History", *, paint: Paint = plain) -> str:
    """One block per revision, in version order."""
    return "\n\n".join(revision(item, paint=paint) for item in found.items)


def explanation(story: "Explanation", *, paint: Paint = plain) -> str:
    """What a revision says, how it stands and why, and the story of its lineage."""
    title = f"{inert(story.memory_id)}  version {story.version}  {story.revision_id}"
    parts = [paint("bold", title), _content(story), "", f"It is {_coloured(story.state, paint)} and "]
    parts[-1] += f"{_coloured(story.trust, paint)}. {_successor(story)} {_head(story)}"
    told = [paint("bold", "What happened"), *(_audit(entry) for entry in story.audit)]
    return "\n".join([*parts, "", *told, "", pairs(_particulars(story))])


def _successor(story: "Explanation") -> str:
    if not story.superseded_by:
        return "Nothing has taken its place."
    since = f" at {story.superseded_at}" if story.superseded_at else ""
    return f"{', '.join(story.superseded_by)} took its place{since}."


def _head(story: "Explanation") -> str:
    if story.head is None:
        return f"Its lineage began with {story.root} and has no head now, so nothing of it is served."
    head = "it is the head" if story.head == story.revision_id else f"the head is {story.head}"
    return f"Its lineage began with {story.root}; {head}."


def _audit(entry: "AuditEntry") -> str:
    lines = [f"  {entry.seq}  {entry.at}  {entry.type}  by {inert(entry.actor)}"]
    lines += [f"      {_move(move)}" for move in entry.moves]
    if entry.reason:
        lines.append(block(entry.reason, gutter="      why: "))
    return "\n".join(lines)


def _move(move: Mapping[str, Any]) -> str:  # Any: as in AuditEntry
    before, after = (
        ", ".join(move[name] for name in names if move[name])
        for names in (("from_state", "from_trust"), ("to_state", "to_trust"))
    )
    return inert(f"{move['revision']}: {before or 'new'} → {after}")


def event_line(item: "LogItem") -> str:
    """One event in one line: position, time, type, stream and its place there, actor."""
    moment = item.at[:19] + "Z"
    return f"{item.seq:>8}  {moment}  {item.type:<24}  {inert(item.stream)} #{item.stream_seq}  {inert(item.actor)}"


def event(item: "LogItem") -> str:
    """One event in a block, with its payload where the answer has one."""
    rows = [
        ("at", item.at),
        ("actor", inert(item.actor)),
        ("stream", f"{inert(item.stream)} #{item.stream_seq}"),
        ("hash", item.hash),
        ("trace", item.trace_id),
    ]
    inner = [_inner(item, name) for name in ("facts", "payload")]
    return "\n".join([f"{item.seq}  {item.type}", pairs(rows), *(text for text in inner if text), ""])


def _inner(item: "LogItem", name: str) -> str | None:
    import json

    value = cast(object, getattr(item, name, None))
    if value is None:
        return None
    return f"  {name}\n{block(json.dumps(value, ensure_ascii=False, indent=2, default=str), gutter='  │ ')}"


def verification(report: Mapping[str, Any], *, paint: Paint = plain) -> str:  # Any: the JSON form of a VerifyReport
    """One line per check, and the verdict."""
    rows = [(name, str(check["status"]), _finding(check)) for name, check in report["checks"].items()]
    lines = [paint("red", line) if row[1] == "failed" else line for line, row in zip(_rows(rows), rows, strict=True)]
    counted = f"{report['events']:,} events, ledger size {report['size']:,}"
    if report["ok"]:
        verdict = paint("green", f"ok: {counted}")
    else:
        verdict = paint("red", f"NOT OK: {counted}; exit {report['exit_code']}")
    root = [f"root {report['root']}"] if report.get("root") else []
    return "\n".join([*lines, *root, verdict])


def _rows(rows: list[tuple[str, str, str]]) -> list[str]:
    return table(rows).splitlines()


def _finding(check: Mapping[str, Any]) -> str:  # Any: JSON
    at = check.get("first_bad_position")
    parts = [
        "" if at is None else f"first at {at}",
        *(f"{name} {check[name]}" for name in ("expected", "found") if check.get(name) is not None),
        str(check.get("why") or ""),
    ]
    return inert("; ".join(part for part in parts if part))


def checkpoint(said: Mapping[str, Any]) -> str:  # Any: JSON
    """What a checkpoint says, and the key that signed it."""
    return pairs([(name.replace("_", " "), inert(str(said[name]))) for name in _CHECKPOINT], indent="")


_CHECKPOINT = ("origin", "size", "root", "public_key")


def status(found: "Status") -> str:
    """One screen: a line for each part."""
    rows = [
        ("ledger", _facts(found.ledger)),
        ("anchor", _facts(found.anchor)),
        ("projections", _facts(found.projections)),
        ("index", f"{_facts(found.index)}  pending {found.index_pending}"),
        ("outbox", _facts(found.outbox)),
        ("memories", _facts(found.memories) or "none"),
        ("conflicts", str(found.conflicts_open)),
        ("candidates", _facts(found.candidates) or "none"),
    ]
    return pairs(rows, indent="")


def _facts(values: Mapping[str, Any]) -> str:  # Any: as in Status
    return "  ".join(inert(f"{name} {value}") for name, value in values.items() if value is not None)


def recovery(done: "Recovery", *, changes: bool) -> str:
    """What start-up recovery did, or would do, and whether a person is needed."""
    rows = [(name, str(getattr(done, name))) for name in ("replayed", "skipped", "repaired", "parked")]
    rows += [("index", _facts(done.index)), *(("claim", _facts(claim)) for claim in done.claims)]
    verdict = "nothing needs a person" if done.ok else "something needs a person"
    return f"{verdict}{'' if changes else ' (nothing was changed)'}\n{pairs(rows)}"


def imported(report: "ImportReport") -> str:
    """How many rows were stored, unchanged and refused, and each refused row."""
    counts = f"{report.stored:,} stored, {report.unchanged:,} unchanged, {report.rejected:,} rejected"
    links = f"{report.links:,} links, {report.unlinks:,} unlinks, {report.waiting:,} waiting for their target"
    rows = [(f"row {item.row}", item.code or "", inert(item.message or "")) for item in report.items]
    return "\n".join([counts, links, *_rows(rows)])
