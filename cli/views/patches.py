"""Differences as people read them: fields before and after, contents line by line. Pure, as all views are."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from cli.text import Paint, block, inert, moment, plain
from cli.views.corrections import standing

if TYPE_CHECKING:
    from gateway.shapes.replies.corrections import Correction, CorrectionHistory, PatchedCorrection
    from gateway.shapes.replies.memories import Revision
    from gateway.shapes.replies.past import (
        Change,
        CorrectionDiff,
        History,
        MemoryDiff,
        MemoryThen,
        MetadataChange,
        PatchedRevision,
        RevisionDiff,
        RevisionRef,
    )

_NOTHING = "–"
_SIGNS = {"+": "green", "-": "red", "@": "cyan"}


def history(found: "History", *, paint: Paint = plain) -> str:
    """One block per revision, in version order: what it changed, and how its metadata was mended since."""
    return "\n\n".join(_revision(item, paint) for item in found.items)


def _revision(item: "Revision | PatchedRevision", paint: Paint) -> str:
    title = f"{inert(item.memory_id)}  version {item.version}  {item.revision_id}"
    lines = [
        paint("bold", title),
        f"  {item.state}, {item.trust}, recorded {moment(item.recorded_at)} at {item.position}",
    ]
    patch: Mapping[str, Change] | None = getattr(item, "patch", None)
    if patch is None:
        content = "(its content is no longer shown)" if item.content is None else item.content
        return "\n".join([*lines, "  begun", block(content, gutter="  │ ")])
    lines += _changes(patch, paint) or ["  (nothing changed)"]
    mended: Iterable[MetadataChange] = getattr(item, "patched", ())
    return "\n".join([*lines, *(line for one in mended for line in _mended(one, paint))])


def _mended(change: "MetadataChange", paint: Paint) -> list[str]:
    why = f": {inert(change.reason)}" if change.reason else ""
    head = f"  mended at {change.seq}, {moment(change.at)}, by {inert(change.actor)}{why}"
    return [head, *(f"  {line}" for line in _changes(change.patch, paint))]


def corrections(found: "CorrectionHistory", *, paint: Paint = plain) -> str:
    """The corrections that took each other's place, oldest first: what each says otherwise than the one before."""
    return "\n\n".join(_correction(item, paint) for item in found.items)


def _correction(item: "Correction | PatchedCorrection", paint: Paint) -> str:
    lines = [
        paint("bold", f"{item.correction_id}  {inert(item.agent)}"),
        f"  {standing(item, paint=paint)}, recorded {moment(item.created_at)} at {item.position}",
    ]
    patch: Mapping[str, Change] | None = getattr(item, "patch", None)
    if item.original_value is None or item.corrected_value is None:
        return "\n".join([*lines, "  (erased)"])
    if patch is None:
        values = (block(item.original_value, gutter="  - "), block(item.corrected_value, gutter="  + "))
        return "\n".join([*lines, "  begun", *values])
    return "\n".join([*lines, *_changes(patch, paint)])


def difference(told: "RevisionDiff", *, paint: Paint = plain) -> str:
    """Which two revisions are compared, and each field that differs."""
    sides = [paint("red", f"- {_side(told.before)}"), paint("green", f"+ {_side(told.after)}")]
    return "\n".join([*sides, *_changes(told.patch, paint)])


def _side(item: "RevisionRef") -> str:
    title = f"{inert(item.memory_id)}  version {item.version}  {item.revision_id}"
    return f"{title}  {item.state}, {item.trust}, recorded {moment(item.recorded_at)} at {item.position}"


def memory(item: "MemoryDiff", *, paint: Paint = plain) -> str:
    """What happened to one memory: its acts, its head before and after, links, and each field that differs."""
    sign = "~" if item.before else "+"
    title = f"{sign} {inert(item.memory_id)}  {', '.join(item.acts)}"
    lines = [paint("bold" if item.before else "green", title), f"  {_stood(item.before)} → {_stood(item.after)}"]
    lines += [f"  + {inert(edge.source)} supersedes {inert(edge.target)}" for edge in item.linked]
    lines += [f"  - {inert(edge.source)} supersedes {inert(edge.target)}" for edge in item.unlinked]
    if item.before is None and item.after.content is not None:
        lines += [paint("green", line) for line in block(item.after.content, gutter="  │ +").split("\n")]
    return "\n".join([*lines, *_changes(item.patch, paint)])


def changed(item: "MemoryDiff | CorrectionDiff", *, paint: Paint = plain) -> str:
    """What happened to one memory or correction of a project."""
    return correction(item, paint=paint) if item.correction_id is not None else memory(item, paint=paint)


def correction(item: "CorrectionDiff", *, paint: Paint = plain) -> str:
    """What happened to one correction: its acts, its state before and after, and what it says."""
    sign, before, after = "~" if item.before else "+", item.before, item.after
    title = f"{sign} {item.correction_id}  {', '.join(item.acts)}"
    by = f" by {after.superseded_by}" if after.superseded_by else ""
    about = [word for word in (after.field, after.entity_key) if word]
    lines = [
        paint("bold" if before else "green", title),
        f"  {before.state if before else 'not there'} → {after.state}{by}",
        f"  of {inert(after.agent)}{': ' if about else ''}{inert(', '.join(about))}",
    ]
    if after.original_value is None or after.corrected_value is None:
        return "\n".join([*lines, "  what it says is no longer shown: it was erased, or repeats what was forgotten"])
    said = (
        ("red", block(after.original_value, gutter="  │ -")),
        ("green", block(after.corrected_value, gutter="  │ +")),
    )
    return "\n".join([*lines, *(paint(colour, told) for colour, told in said)])


def _stood(item: "MemoryThen | None") -> str:
    if item is None:
        return "not there"
    headless = "" if item.head else ", no head"
    return f"version {item.version} {item.revision_id} ({item.state}, {item.trust}{headless})"


def _changes(patch: "Mapping[str, Change]", paint: Paint) -> list[str]:
    """Return the lines of a patch: metadata in one line each, then the content's."""
    lines = [
        f"  {name.replace('_', ' ')}: {_value(change.before)} → {_value(change.after)}"
        for name, change in patch.items()
        if name != "content"
    ]
    if "content" not in patch:
        return lines
    if patch["content"].diff is None:
        return [*lines, "  content: differs, and is no longer shown"]
    return [*lines, "  content:", *(_line(line, paint) for line in patch["content"].diff.split("\n"))]


def _line(line: str, paint: Paint) -> str:
    shown = block(line, gutter="  │ ")
    return paint(_SIGNS[line[0]], shown) if line[:1] in _SIGNS else shown


def _value(value: object) -> str:
    match value:
        case None | () | "":
            return _NOTHING
        case str():
            return moment(value)
        case tuple():
            return inert(", ".join(cast("tuple[str, ...]", value)))
        case _:
            return inert(json.dumps(value, ensure_ascii=False, sort_keys=True))
