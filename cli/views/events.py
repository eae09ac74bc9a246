"""What people read of events. Pure: a reply in, text out, and nothing stored leaves unless inert."""

from typing import TYPE_CHECKING, cast

from cli.text import block, inert, moment, pairs

if TYPE_CHECKING:
    from gateway.shapes.replies.log import LogItem, Trace

_STREAM_COLUMNS = 20  # of a stream's id, where many stand below each other


def event_line(item: "LogItem") -> str:
    """One event in one line: position, time, type, stream and its place there, actor."""
    stream = inert(item.stream)
    stream = stream if len(stream) <= _STREAM_COLUMNS else stream[:_STREAM_COLUMNS] + "…"
    place = f"{stream:<{_STREAM_COLUMNS + 1}}  {f'#{item.stream_seq}':<5}"
    return f"{item.seq:>8}  {moment(item.at):<24}  {item.type:<24}  {place}  {inert(item.actor)}".rstrip()


def event(item: "LogItem") -> str:
    """One event in a block, with its payload where the answer has one."""
    rows = [
        ("at", moment(item.at)),
        ("actor", inert(item.actor)),
        ("stream", f"{inert(item.stream)} #{item.stream_seq}"),
        ("hash", item.hash),
        ("trace", item.trace_id),
        *_chain(item),
    ]
    inner = [_inner(item, name) for name in ("facts", "payload")]
    inner += [f"  payload\n  │ ({gone})" for gone in ("erased", "forgotten") if getattr(item, gone, False)]
    return "\n".join([f"{item.seq}  {item.type}", pairs(rows), *(text for text in inner if text)])


def trace(found: "Trace") -> str:
    """What one command stored: each event in a block."""
    return "\n\n".join(event(item) for item in found.items)


def _chain(item: "LogItem") -> list[tuple[str, str]]:
    """Return what links the event, where the answer has it: under the names that stand in the envelope."""
    names = ("prev_b3", "stream_prev_b3", "seal", "leaf", "payload_sha256")
    found = [(name, cast(object, getattr(item, name, None))) for name in names]
    return [(name, value) for name, value in found if isinstance(value, str)]


def _inner(item: "LogItem", name: str) -> str | None:
    import json

    value = cast(object, getattr(item, name, None))
    if value is None:
        return None
    return f"  {name}\n{block(json.dumps(value, ensure_ascii=False, indent=2, default=str), gutter='  │ ')}"
