"""What people read of corrections. Pure: a reply in, text out, and nothing stored leaves unless inert."""

from typing import TYPE_CHECKING

from cli.text import Paint, block, clip, count, inert, inert_json, moment, pairs, plain, table

if TYPE_CHECKING:
    from gateway.replies import Correction, CorrectionStats, EvalCase

_VALUE_COLUMNS = 32  # of a value, where many corrections stand below each other
_STATE_COLOURS = {"active": "green", "unconfirmed": "yellow", "superseded": "cyan", "revoked": "red"}


def correction(item: "Correction", *, paint: Paint = plain) -> str:
    """One correction: what was put out, what was right, and everything that is known of it."""
    title = f"{item.correction_id}  {inert(item.agent)}"
    by = f" by {item.superseded_by}" if item.superseded_by else ""
    state = paint(_STATE_COLOURS.get(item.state, "bold"), inert(item.state)) + by
    right = block(item.corrected_value, gutter="  + ") if item.corrected_value else "  + (should be empty)"
    return f"{paint('bold', title)}\n  {state}\n{block(item.original_value, gutter='  - ')}\n{right}\n{_rest(item)}"


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


def line(item: "Correction") -> str:
    """One correction in one line: when, id, state, agent, what it was about, both values."""
    about = " ".join(inert(part) for part in (item.entity_key, item.field) if part)
    right = _short(item.corrected_value) or "(empty)"
    values = f"{about + ': ' if about else ''}{_short(item.original_value)} → {right}"
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
