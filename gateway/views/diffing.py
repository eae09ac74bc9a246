"""What differs between two revisions, field by field. Pure: what they say in, differences out."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from gateway.shapes.replies.past import Change, MetadataChange, PatchedRevision, RevisionDiff, RevisionRef
from gateway.views.revisions import WITHHELD, LineageView, patch_of, revision_fields, said_fields
from gateway.views.texts import mended
from ledger.memories import RevisionState, RevisionText

Fields = Mapping[str, Any]  # Any: one value of each field's type
Show = Callable[[str], str]

FIELDS = (
    "content", "kind", "tags", "confidence", "valid_from", "valid_to", "review_by", "sources", "run", "session",
    "subjects", "applies", "institutional", "evidence", "depends_on", "origin", "visibility", "scope",
)  # fmt: skip
CONTEXT_LINES = 3


def differences(before: Fields, after: Fields) -> dict[str, Change]:
    """Return the fields whose values differ, in a fixed order; of a content its lines, too."""
    changed = {name: (before.get(name), after.get(name)) for name in FIELDS if before.get(name) != after.get(name)}
    return {
        name: Change(before=old, after=new, diff=unified(old, new) if name == "content" else None)
        for name, (old, new) in changed.items()
    }


def unified(before: str | None, after: str | None) -> str | None:
    """Return a unified diff of two texts, its two lines of names left out; None where one may not be read."""
    if before is None or after is None:
        return None
    lines = difflib.unified_diff(_lines(before), _lines(after), n=CONTEXT_LINES, lineterm="")
    return "\n".join(list(lines)[2:])


def said_then(view: LineageView, item: RevisionState, text: RevisionText, show: Show) -> Fields:
    """Return the fields that are compared of a revision that says this; what it says is None where it is unseen."""
    fields: dict[str, Any] = said_fields(item, text, show)  # Any: as in Fields
    if item.revision in view.unseen:
        fields |= WITHHELD
    return {**fields, **fields.pop("provenance")}


def patched_revision(view: LineageView, item: RevisionState, show: Show) -> PatchedRevision:
    """Return a revision with what it changed of the one before it, and how its own metadata was mended."""
    fields: dict[str, Any] = revision_fields(view, item, show)  # Any: as in Fields
    before = _predecessor(view, item)
    holder = None if before is None else view.holder(before)
    patch = None
    if before is not None and holder is not None:
        old = said_then(holder, holder.state.revisions[before], holder.text_at(before, item.content_seq), show)
        patch = differences(old, said_then(view, item, view.text_at(item.revision, item.content_seq), show))
    return PatchedRevision(
        **fields,
        compared_with=None if patch is None else before,
        patch=patch,
        patched=tuple(_mending(view, item, at, show) for at in view.patched.get(item.revision, ())),
    )


def revision_diff(sides: tuple[tuple[LineageView, str], tuple[LineageView, str]], show: Show) -> RevisionDiff:
    """Return what differs between two revisions as their lineages stand."""
    (old, a), (new, b) = sides
    before, after = old.state.revisions[a], new.state.revisions[b]
    return RevisionDiff(
        before=_ref(old, before, show),
        after=_ref(new, after, show),
        patch=differences(
            said_then(old, before, old.text(a), show),
            said_then(new, after, new.text(b), show),
        ),
    )


def _ref(view: LineageView, item: RevisionState, show: Show) -> RevisionRef:
    return RevisionRef(
        memory_id=show(view.lineage),
        revision_id=item.revision,
        version=item.version,
        state=item.values.state,
        trust=item.values.trust,
        recorded_at=view.at(item.content_seq),
        position=item.content_seq,
    )


def _predecessor(view: LineageView, item: RevisionState) -> str | None:
    """Return what a revision is compared with: what it superseded, was held to replace, or came after."""
    ours = [one for one in item.supersedes if one in view.state.revisions]
    found = next(iter([*ours, *([item.proposes] if item.proposes else ()), *item.supersedes]), None)
    if found is not None:
        return found
    return next((one.revision for one in view.state.revisions.values() if one.version == item.version - 1), None)


def _mending(view: LineageView, item: RevisionState, at: int, show: Show) -> MetadataChange:
    recorded = view.recorded[at]
    payload = patch_of(recorded)
    text = view.text_at(item.revision, item.content_seq)
    before, after = (
        said_then(view, item, view.told(item.revision, mended(text, one)), show)
        for one in (payload.before, payload.after)
    )
    return MetadataChange(
        seq=at,
        at=recorded.entry.envelope.at,
        actor=show(recorded.entry.envelope.actor),
        reason=None if at in view.untold else payload.reason,
        patch=differences(before, after),
    )


def _lines(text: str) -> list[str]:
    return text.split("\n")
