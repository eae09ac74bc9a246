"""What people read of corrections. Pure: a reply in, text out, and nothing stored leaves unless inert."""

from typing import TYPE_CHECKING

from cli.text import Paint, block, clip, count, inert, inert_json, moment, pairs, plain, table
from cli.views import traces

if TYPE_CHECKING:
    from gateway.shapes.replies.corrections import (
        Correction,
        CorrectionHistory,
        CorrectionSearch,
        CorrectionStats,
        EvalCase,
        ExplainedCorrection,
    )
    from gateway.shapes.replies.past import AuditEntry

_EMPTY = {
    "no_match": "nothing found: no correction that this reader sees is near enough. Ask in other words, or lower "
    "--min-score.",
    "filtered": "nothing found: what is near has ended, is about another entity, or is not this reader's to see.",
    "nothing_indexed": "nothing found: this project holds no corrections yet. Check --project.",
    "no_embedder": "nothing found: no embedder is set, so nothing can be compared. Unset CORRIGENDA_EMBEDDER to use "
    "the builtin one.",
}
_VALUE_COLUMNS = 32  # of a value, where many corrections stand below each other
_STATE_COLOURS = {"active": "green", "unconfirmed": "yellow", "superseded": "cyan", "revoked": "red"}


def correction(item: "ExplainedCorrection", *, paint: Paint = plain) -> str:
    """One correction: what was put out, what was right, everything that is known of it, and what happened to it."""
    title = f"{item.correction_id}  {inert(item.agent)}"
    then = [] if item.at_position is None else [f"As it stood at position {item.at_position}."]
    met = [traces.met(item.in_trace), ""] if item.in_trace else []
    told = [paint("bold", "What happened"), *(_happened(entry) for entry in item.audit)]
    return "\n".join([paint("bold", title), *then, _said(item, paint), "", *met, *told])


def chain(found: "CorrectionHistory", *, paint: Paint = plain) -> str:
    """The corrections that took each other's place, oldest first: a block for each."""
    titles = (f"{item.correction_id}  {inert(item.agent)}" for item in found.items)
    return "\n\n".join(
        f"{paint('bold', title)}\n{_said(item, paint)}" for title, item in zip(titles, found.items, strict=True)
    )


def standing(item: "Correction", *, paint: Paint = plain) -> str:
    """Return a correction's state, and what took its place."""
    by = f" by {item.superseded_by}" if item.superseded_by else ""
    return paint(_STATE_COLOURS.get(item.state, "bold"), inert(item.state)) + by


def _said(item: "Correction", paint: Paint) -> str:
    return f"  {standing(item, paint=paint)}\n{_values(item)}\n{_rest(item)}"


def _values(item: "Correction") -> str:
    if item.original_value is None:
        return f"  ({_unsaid(item)})"
    right = block(item.corrected_value, gutter="  + ") if item.corrected_value else "  + (should be empty)"
    return f"{block(item.original_value, gutter='  - ')}\n{right}"


def _unsaid(item: "Correction") -> str:
    return "its values are no longer shown: they were forgotten" if item.forgotten else "erased"


def _happened(entry: "AuditEntry") -> str:
    line = f"  {entry.seq}  {moment(entry.at)}  {entry.type}  by {inert(entry.actor)}"
    return f"{line}\n{block(entry.reason, gutter='      why: ')}" if entry.reason else line


def _rest(item: "Correction") -> str:
    rows = [
        ("field", item.field),
        ("entity", item.entity_key),
        ("reason", item.reason),
        ("input", item.original_input),
        ("tags", ", ".join(item.tags)),
        ("run", item.run),
        ("session", item.session),
        ("user", item.user),
        ("visibility", item.visibility),
        ("memory", item.memory),
        ("origin", item.origin),
        ("contradiction", item.contradiction),
        ("stream version", str(item.stream_version)),
    ]
    told = [(name, value and inert(value)) for name, value in rows]
    return pairs([*told, ("recorded", f"{moment(item.created_at)} at {item.position}")])


def hits(found: "CorrectionSearch") -> str:
    """One line per hit: rank, score, and the correction as `line` gives it."""
    return "\n".join(f"{hit.rank:>2}  {hit.score:.3f}  {line(hit)}" for hit in found.hits)


def empty(reason: str) -> str:
    """Say why a search found nothing and what to do next."""
    return _EMPTY.get(reason, f"nothing found: {reason}")


def line(item: "Correction") -> str:
    """One correction in one line: when, id, state, agent, what it was about, both values."""
    about = " ".join(inert(part) for part in (item.entity_key, item.field) if part)
    right = _short(item.corrected_value or "") or "(empty)"
    said = f"({_unsaid(item)})" if item.original_value is None else f"{_short(item.original_value)} → {right}"
    values = f"{about + ': ' if about else ''}{said}"
    return f"{moment(item.created_at):<24}  {item.correction_id}  {item.state:<11}  {inert(item.agent)}  {values}"


def _short(value: str) -> str:
    return clip(inert(value), _VALUE_COLUMNS)


def stats(found: "CorrectionStats") -> str:
    """How many there are, and how many by each thing that was asked for."""
    parts = [("entity", found.by_entity_key), ("field", found.by_field)]
    parts += [(name, by) for name, by in (("agent", found.by_agent), ("period", found.by_period)) if by is not None]
    blocks = [count(found.total, "correction")]
    for name, counted in parts:
        rows = [(f"  {inert(key)}", f"{number:,}") for key, number in counted.items()]
        blocks.append(f"by {name}" + ("\n" + table(rows) if rows else ": none"))
    return "\n\n".join(blocks)


def eval_case(case: "EvalCase") -> str:
    """A case as the one line of JSON that an evaluation reads."""
    import json

    import msgspec

    return inert_json(json.dumps(msgspec.to_builtins(case), ensure_ascii=False))
