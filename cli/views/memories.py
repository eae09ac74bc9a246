"""What people read of memories, and of acts on them. Pure: a reply in, text out; nothing stored leaves unless inert."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli.text import Paint, block, clip, count, inert, moment, pairs, plain
from cli.views import traces

if TYPE_CHECKING:
    from gateway.shapes.replies.memories import Revision, RevisionAct
    from gateway.shapes.replies.past import AuditEntry, Explanation, History
    from gateway.shapes.replies.searches import Hit, Search
    from gateway.shapes.replies.writes import Impact, Pruned, Receipt

_SAID_COLUMNS = 60  # of a text in a list
_EMPTY = {
    "no_match": "nothing found: no memory is near this query. Ask in other words, or raise -k.",
    "filtered": "nothing found: what is near is not served here. It was withdrawn, does not hold at the time asked "
    "for, or --min-trust, another filter, its own conditions or the scope leaves it out. --why says which; ask with "
    "fewer filters.",
    "integrity": "nothing found: what is near is not what was written, and nothing of it is served. `corrigenda "
    "verify` says which events.",
    "budget": "nothing found: no hit fits the budget. Allow more, or ask for fewer hits.",
    "headless": "nothing found: every memory of this project has been withdrawn. `corrigenda log` says by whom; "
    "`corrigenda memories restore` undoes it.",
    "nothing_indexed": "nothing found: this project holds no memories yet. Check --project, or add one with "
    "`corrigenda memories remember`.",
    "no_embedder": "nothing found: no embedder answers, so only words were compared, and no memory has one of these. "
    "Ask in other words, or unset CORRIGENDA_EMBEDDER to use the builtin one.",
}
_EMPTY_THEN = {  # of a search in the past
    "headless": "nothing found: {then} every memory of this project had been withdrawn. Ask for an earlier position, "
    "or for a later one.",
    "nothing_indexed": "nothing found: {then} this project held no memories yet. Check --project, or ask for a later "
    "position.",
}
_STATE_COLOURS = {"active": "green", "processing": "yellow", "verified": "green", "superseded": "cyan"}


def _coloured(word: str, paint: Paint) -> str:
    return paint(_STATE_COLOURS.get(word, "red" if word in ("revoked", "rejected") else "bold"), word)


def receipt(done: "Receipt", *, dry_run: bool = False) -> str:
    """What one write did, or would have done."""
    types = ", ".join(dict.fromkeys(event.type for event in done.events))
    if not dry_run:
        head = f"{done.outcome} at {done.position}" + (f": {types}" if types else "")
    else:
        head = f"would be stored at {done.position}: {types}" if types else "would change nothing"
    again = " (this key was used before; this is its answer)" if done.replayed else ""
    rows = [
        ("memory", done.memory_id and inert(done.memory_id)),
        ("correction", done.correction_id),
        ("revision", done.revision_id),
        ("superseded", ", ".join(done.superseded or ())),
        ("successors", ", ".join(done.successors or ())),
        ("invalidated", ", ".join(done.invalidated or ())),
        ("trace", done.trace_id),
    ]
    return f"{head}{again}\n{pairs(rows)}"


def impact(found: "Impact") -> str:
    """What a revocation would take with it."""
    rows = [
        ("revisions", ", ".join(found.revisions)),
        ("candidates", ", ".join(found.candidates)),
        ("episodes", ", ".join(found.episodes)),
        ("runs", inert(", ".join(found.runs))),
    ]
    return f"would be revoked\n{pairs(rows)}"


def pruned(done: "Pruned", *, dry_run: bool = False) -> str:
    """How many learnings a pruning withdrew, or would have withdrawn, and which."""
    verbs = ("would retire", "forget") if dry_run else ("retired", "forgotten")
    counts = f"{verbs[0]} {count(len(done.retired), 'learning')}, {verbs[1]} {len(done.forgotten)}"
    return "\n".join([counts, *(f"  {item}" for item in (*done.retired, *done.forgotten))])


def search(found: "Search", *, paint: Paint = plain) -> str:
    """The hits, and where it was asked for, what was left out, and the trace of it all."""
    left_out = [
        f"  {inert(one.memory_id)}  {one.revision_id}  score {one.score:.3f}: {inert(one.reason)}"
        for one in found.excluded or ()
    ]
    trace = f"trace: {found.trace_id}" if found.excluded is not None and found.trace_id else ""
    parts = [hits(found, paint=paint), "\n".join(["left out:", *left_out]) if left_out else "", trace]
    return "\n\n".join(part for part in parts if part)


def hits(found: "Search", *, paint: Paint = plain) -> str:
    """One block per hit: which memory and revision, how far it is trusted, what it says and why it was found."""
    return "\n\n".join(_hit(hit, paint) for hit in found.hits)


def _hit(hit: "Hit", paint: Paint) -> str:
    title = f"{hit.rank}  {inert(hit.memory_id)}  {hit.revision_id}"
    standing = [word for word in (hit.state, hit.trust) if word != "active"]
    trust = ", ".join(_coloured(inert(word), paint) for word in standing)
    return f"{paint('bold', title)}\n  {trust}, score {hit.score:.3f}\n{_content(hit)}\n  why: {inert(hit.why)}"


def empty(reason: str, warnings: Sequence[str] = (), at_position: int | None = None) -> str:
    """Say why a search found nothing and what to do next; that something is not what was written goes before all.

    `at_position` is where the ledger was asked about, −1 being a time before all of it; None is now.
    """
    if any(warning.startswith("INTEGRITY_BROKEN") for warning in warnings):
        return _EMPTY["integrity"]
    if at_position is not None and reason in _EMPTY_THEN:
        return _EMPTY_THEN[reason].format(then="at that time" if at_position < 0 else f"at position {at_position}")
    return _EMPTY.get(reason, f"nothing found: {reason}")


def revision(item: "Revision", *, paint: Paint = plain) -> str:
    """One revision: what it says, and everything that is known of it."""
    title = f"{inert(item.memory_id)}  version {item.version}  {item.revision_id}"
    standing = f"{_coloured(item.state, paint)}, {_coloured(item.trust, paint)}"
    return f"{paint('bold', title)}\n  {standing}\n{_content(item)}\n{pairs(_particulars(item))}"


def _content(item: "Revision") -> str:
    if item.content is not None:
        return block(item.content, gutter="  │ ")
    return "  (its content was erased)" if item.state == "erased" else "  (its content is no longer shown)"


def _particulars(item: "Revision") -> list[tuple[str, str | None]]:
    return [
        ("kind", inert(item.kind)),
        ("tags", inert(", ".join(item.tags))),
        ("scope", inert(" ".join(f"{name}={value}" for name, value in item.scope.items()))),
        ("visibility", inert(item.visibility)),
        ("origin", inert(item.origin)),
        ("subjects", inert(", ".join(item.subjects))),
        ("sources", inert(", ".join(item.provenance.get("sources") or ()))),
        ("confidence", item.confidence),
        ("valid", _span(item.valid_from, item.valid_to)),
        ("review by", item.review_by and moment(item.review_by)),
        ("evidence", ", ".join(inert(one) for one in item.evidence)),
        ("supersedes", ", ".join(item.supersedes)),
        ("superseded by", ", ".join(item.superseded_by)),
        ("retired by", item.retired_by and f"correction {item.retired_by}"),
        ("recorded", f"{moment(item.recorded_at)} at {item.position}"),
        ("superseded", item.superseded_at and moment(item.superseded_at)),
        ("stream version", str(item.stream_version)),
        ("content hash", item.content_hash),
    ]


def _span(start: str | None, end: str | None) -> str | None:
    ends = (moment(end) if end else "…" for end in (start, end))
    return " to ".join(ends) if start or end else None


def listed(item: "Revision", *, wide: bool = False, paint: Paint = plain) -> str:
    """One line per revision: whose it is, how it stands and how it begins; with `wide` also when, its tags, and whole.

    What happened to it follows, where the answer has that.
    """
    title = f"{inert(item.memory_id)}  v{item.version}  {item.revision_id}"
    unsaid = "(erased)" if item.state == "erased" else "(no longer shown)"
    said = unsaid if item.content is None else inert(item.content)
    standing = f"{_coloured(item.state, paint)}, {_coloured(item.trust, paint)}"
    more = [moment(item.recorded_at), inert(item.kind), *(f"#{inert(tag)}" for tag in item.tags)] if wide else []
    line = "  ".join([title, standing, *more, said if wide else clip(said, _SAID_COLUMNS)])
    return "\n".join([line, *(_act(act) for act in getattr(item, "audit", ()))])


def _act(act: "RevisionAct") -> str:
    change = f"{act.from_state or 'new'} → {act.to_state}"
    trust = "" if act.from_trust in (None, act.to_trust) else f", {act.to_trust}"
    why = f": {inert(act.reason)}" if act.reason else ""
    other = f", with {act.conflict_with}" if act.conflict_with else ""
    retired = f"\n        {_retired(act)}" if act.retired_by else ""
    return f"    {act.seq}  {moment(act.at)}  {act.action}  {change}{trust}  by {inert(act.actor)}{why}{other}{retired}"


def _retired(entry: "AuditEntry | RevisionAct") -> str:
    """Say for which correction a learning was retired."""
    near = f", similarity {float(entry.similarity):.2f}" if entry.similarity else ""
    return f"retired by correction {entry.retired_by}{near}"


def history(found: "History", *, paint: Paint = plain) -> str:
    """One block per revision, in version order."""
    return "\n\n".join(revision(item, paint=paint) for item in found.items)


def explanation(story: "Explanation", *, paint: Paint = plain) -> str:
    """How a revision stands and why, what it says, and the story of its lineage."""
    title = f"{inert(story.memory_id)}  version {story.version}  {story.revision_id}"
    then = [] if story.at_position is None else [f"As it stood at position {story.at_position}."]
    met = [traces.met(story.in_trace), ""] if story.in_trace else []
    parts = [paint("bold", title), *then, _lead(story, paint), _content(story), "", *met, _head(story)]
    told = [paint("bold", "What happened"), *(_audit(entry) for entry in story.audit)]
    return "\n".join([*parts, "", *told, "", pairs([("trust", inert(story.trust)), *_particulars(story)])])


def _lead(story: "Explanation", paint: Paint) -> str:
    """Say in one sentence what matters: who withdrew or replaced the revision, when and why, or that it stands."""
    if story.trust == "revoked" or story.state != "active":
        word = "revoked" if story.trust == "revoked" else story.state
        successors = f" by {', '.join(story.superseded_by)}" if word == "superseded" and story.superseded_by else ""
        return f"{_coloured(word.capitalize(), paint)}{successors}{_doing(story, word, actor=bool(successors))}"
    place = "it is the head of its memory" if story.head == story.revision_id else "it is not the head of its memory"
    return f"{_coloured(story.state.capitalize(), paint)}, {_coloured(story.trust, paint)}: {place}."


def _doing(story: "Explanation", word: str, *, actor: bool) -> str:
    """Say who brought the revision where it stands, when, and why; only a full stop if the story does not tell."""
    entry = next((entry for entry in reversed(story.audit) if _brought(entry, story.revision_id, word)), None)
    if entry is None:
        return "."
    who = f", by {inert(entry.actor)}," if actor else f" by {inert(entry.actor)}"
    why = f": {inert(entry.reason).rstrip('.')}" if entry.reason else ""
    return f"{who} at {moment(entry.at)} (position {entry.seq}){why}."


def _brought(entry: "AuditEntry", revision: str, word: str) -> bool:
    return any(
        move["revision"] == revision
        and ((move["to_state"] == word != move["from_state"]) or (move["to_trust"] == word != move["from_trust"]))
        for move in entry.moves
    )


def _head(story: "Explanation") -> str:
    if story.head is None:
        return f"Its lineage began with {story.root} and has no head now, so nothing of it is served."
    head = "it is the head" if story.head == story.revision_id else f"the head is {story.head}"
    return f"Its lineage began with {story.root}; {head}."


def _audit(entry: "AuditEntry") -> str:
    lines = [f"  {entry.seq}  {moment(entry.at)}  {entry.type}  by {inert(entry.actor)}"]
    lines += [f"      {_move(move)}" for move in entry.moves]
    lines += [f"      {line}" for line in _patch_lines(entry.patch)]
    if entry.retired_by:
        lines.append(f"      {_retired(entry)}")
    lines += [f"      evidence: {inert(one)}" for one in entry.evidence]
    if entry.reason:
        lines.append(block(entry.reason, gutter="      why: "))
    return "\n".join(lines)


def _move(move: Mapping[str, Any]) -> str:  # Any: as in AuditEntry
    before, after = (
        ", ".join(move[name] for name in names if move[name])
        for names in (("from_state", "from_trust"), ("to_state", "to_trust"))
    )
    return inert(f"{move['revision']}: {before or 'new'} → {after}")


def _patch_lines(patch: Mapping[str, Any] | None) -> list[str]:  # Any: as in AuditEntry
    """Say what a patch changed, one line for each of the metadata."""
    if patch is None:
        return []
    shown = {side: {name: _metadata(value) for name, value in patch[side].items()} for side in ("before", "after")}
    return [f"{patch['revision']}: {name} {shown['before'][name]} → {shown['after'][name]}" for name in shown["after"]]


def _metadata(value: str | Sequence[str] | None) -> str:
    text = value if isinstance(value, str) or value is None else ", ".join(value)
    return inert(text) if text else "none"
