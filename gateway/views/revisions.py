"""A lineage's verified history as the revisions that people read. Pure: state, texts and times in, answers out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from gateway.shapes.replies.memories import Revision
from gateway.shapes.replies.past import AuditEntry
from gateway.views.applicability import document
from gateway.views.hidden import bare, is_hidden, is_silenced
from gateway.views.texts import mended
from ledger.chain import Entry, broken
from ledger.corrections import CorrectionRecorded, CorrectionText
from ledger.digest import leaf, public
from ledger.memories import (
    LINEAGE,
    Admission,
    Birth,
    Contradiction,
    LearningInvalidated,
    LineageState,
    Metadata,
    MetadataPatch,
    MetadataPatched,
    RevisionAdmitted,
    RevisionState,
    RevisionText,
)
from ledger.message import Move, Payload, ScopeIds
from ledger.scope import SEGMENTS
from ledger.verified import Recorded

PayloadT = TypeVar("PayloadT", bound=Payload)

WITHHELD: dict[str, object] = {"content": None, "content_hash": None, "applies": None, "institutional": None}
_ERASED = RevisionText.plain("")
_NO_METADATA = Metadata(confidence=None, review_by=None, sources=(), tags=(), valid_from=None, valid_to=None)
_NO_CORRECTION = CorrectionText(
    corrected_value="", entity_key=None, field=None, original_input=None, original_value="", reason=None,
    recorded_at=None, run=None, tags=(),
)  # fmt: skip
_NO_PATCH = MetadataPatch(after=_NO_METADATA, before=_NO_METADATA, reason=None)


class LineageView(Struct, frozen=True, kw_only=True):
    """One lineage: its folded state, and its events by position, at the ledger's head or as they stood before.

    `others` are views of other lineages by the revisions of theirs that this one's supersede, or were superseded by.
    `unseen` are revisions that may not be read any more, whatever they were when the view was true; `untold` are the
    positions of events whose payload is not told, because it speaks of these, or is not the reader's to see. `ended`
    says where a revision was superseded, `patched` where its metadata was mended, `admitted` where it was vouched for,
    in order.
    """

    lineage: str
    state: LineageState
    recorded: Mapping[int, Recorded]
    ended: Mapping[str, int]
    patched: Mapping[str, Sequence[int]]
    admitted: Mapping[str, Sequence[int]]
    others: Mapping[str, "LineageView"] = {}
    unseen: frozenset[str] = frozenset()
    untold: frozenset[int] = frozenset()

    def text(self, revision: str) -> RevisionText:
        """Return what a revision says, as its metadata was mended last."""
        item = self.state.revisions[revision]
        return self.told(revision, said(self.recorded[item.content_seq], self.recorded[item.meta_seq]))

    def text_at(self, revision: str, position: int) -> RevisionText:
        """Return what a revision said at a position that it had reached."""
        content_seq = self.state.revisions[revision].content_seq
        metadata = max((at for at in self.patched.get(revision, ()) if at <= position), default=content_seq)
        return self.told(revision, said(self.recorded[content_seq], self.recorded[metadata]))

    def tags(self, revision: str) -> tuple[str, ...]:
        """Return a revision's tags, also where it is unseen: for a filter, whose answer must not change between pages.

        Whoever names a tag is told nothing by this but who has it.
        """
        item = self.state.revisions[revision]
        return said(self.recorded[item.content_seq], self.recorded[item.meta_seq]).tags

    def told(self, revision: str, text: RevisionText) -> RevisionText:
        """Return what is told of a text of a revision: all of it, or, where it is unseen, what may be known of it."""
        return bare(text) if revision in self.unseen else text

    def at(self, position: int) -> str:
        """Return when an event was recorded."""
        return self.recorded[position].entry.envelope.at

    def holder(self, revision: str) -> "LineageView | None":
        """Return the view that holds a revision: this one, or that of another lineage as far as it was read."""
        found = self if revision in self.state.revisions else self.others.get(revision)
        return None if found is None or revision not in found.state.revisions else found

    def began(self, revision: str) -> str | None:
        """Return from when on a revision holds by its own word, as far as that was read."""
        holder = self.holder(revision)
        return None if holder is None else holder.text(revision).valid_from


def view(lineage: str, recorded: Sequence[Recorded]) -> LineageView:
    """Fold a history into its view."""
    state = LINEAGE.fold(item.event for item in recorded)
    return LineageView(
        lineage=lineage,
        state=state,
        recorded={item.entry.position: item for item in recorded},
        ended=_ends(recorded),
        patched=_mendings(recorded),
        admitted=_admissions(recorded),
        unseen=frozenset(item.revision for item in state.revisions.values() if is_hidden(item)),
        untold=frozenset(item.entry.position for item in recorded if is_silenced(item.entry.envelope.facts, state)),
    )


def _ends(recorded: Sequence[Recorded]) -> dict[str, int]:
    """Return the position at which each revision was superseded, whatever became of it since."""
    return {
        move.revision: item.entry.position
        for item in recorded
        for move in getattr(item.entry.envelope.facts, "moves", ())
        if move.after.state == "superseded" and move.before is not None and move.before.state != "superseded"
    }


def _mendings(recorded: Sequence[Recorded]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for item in recorded:
        facts = item.entry.envelope.facts
        if isinstance(facts, MetadataPatched):
            found.setdefault(facts.revision, []).append(item.entry.position)
    return found


def _admissions(recorded: Sequence[Recorded]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for item in recorded:
        facts = item.entry.envelope.facts
        if isinstance(facts, RevisionAdmitted):
            for move in facts.moves:
                found.setdefault(move.revision, []).append(item.entry.position)
    return found


def view_at(now: LineageView, position: int) -> LineageView:
    """Return a lineage as it stood at a position: without events if it had not begun.

    What was forgotten since stays unseen.
    """
    recorded = [item for at, item in sorted(now.recorded.items()) if at <= position]
    return msgspec.structs.replace(view(now.lineage, recorded), unseen=now.unseen, untold=now.untold)


def said(content: Recorded, meta: Recorded) -> RevisionText:
    """Return the text that an event holds, with the metadata that another one gave it, if it did."""
    text = text_of(content)
    if meta.payload is None or meta.entry.position == content.entry.position:
        return text
    return mended(text, patch_of(meta).after)


def text_of(item: Recorded) -> RevisionText:
    """Return the text that an event holds, nothing where it was erased, or INTEGRITY_BROKEN if it is no revision's."""
    erased = _ERASED if isinstance(item.entry.envelope.facts, Birth) else None
    return _held(item, RevisionText, erased, "the text of a revision")


def patch_of(item: Recorded) -> MetadataPatch:
    """Return the metadata that an event holds, nothing where it was erased, or INTEGRITY_BROKEN if it is no patch."""
    erased = _NO_PATCH if isinstance(item.entry.envelope.facts, MetadataPatched) else None
    return _held(item, MetadataPatch, erased, "the metadata of a revision")


def correction_text_of(item: Recorded) -> CorrectionText:
    """Return what a correction says, nothing where it was erased, or INTEGRITY_BROKEN if the event holds none."""
    erased = _NO_CORRECTION if isinstance(item.entry.envelope.facts, CorrectionRecorded) else None
    return _held(item, CorrectionText, erased, "the text of a correction")


def _held(item: Recorded, kind: type[PayloadT], erased: PayloadT | None, what: str) -> PayloadT:
    """Return what an event says, or, where that was erased, what stands for it."""
    if item.payload is None and erased is not None:
        return erased
    if not isinstance(item.payload, kind):
        raise broken(item.entry.position, "payloads", what, "another payload")
    return item.payload


def revision_fields(lineage: LineageView, item: RevisionState, show: Callable[[str], str]) -> dict[str, object]:
    """Return the fields of `memories_replies.Revision` for one revision; `show` gives the caller's name for an id."""
    text = lineage.text(item.revision)
    ended = lineage.ended.get(item.revision)
    superseded_at = None if ended is None else lineage.at(ended)
    fields: dict[str, object] = {
        **said_fields(item, text, show),
        "memory_id": show(lineage.lineage),
        "stream_version": lineage.state.version,
        "valid_to": text.valid_to or _derived_end(lineage, item, text, superseded_at),
        "recorded_at": lineage.at(item.content_seq),
        "superseded_at": superseded_at,
        "retired_by": _retired_by(lineage, item),
        "evidence": _evidence(lineage, item, text),
    }
    return fields | WITHHELD if item.revision in lineage.unseen else fields


def _evidence(lineage: LineageView, item: RevisionState, text: RevisionText) -> tuple[str, ...]:
    """Return the hashes of what a revision rests on: named by itself, then by those who vouched for it, each once."""
    admitted = (vouched(lineage.recorded[at]) for at in lineage.admitted.get(item.revision, ()))
    return tuple(dict.fromkeys([*text.evidence, *(one for named in admitted for one in named)]))


def vouched(item: Recorded) -> tuple[str, ...]:
    """Return the hashes of the evidence that an event vouches with, as far as that is told."""
    return item.payload.evidence if isinstance(item.payload, Admission) else ()


def _retired_by(lineage: LineageView, item: RevisionState) -> str | None:
    """Return the correction for which a revision is retired, or None: it is not, or for another reason."""
    retiring = [one for one in item.withdrawals if one.act in ("retire", "invalidate")]
    if item.values.state != "retired" or not retiring:
        return None
    return invalidation(lineage.recorded[retiring[-1].position])[0]


def invalidation(item: Recorded) -> tuple[str | None, str | None]:
    """Return for which correction an event retired a learning, and how near they are, as far as that is told."""
    facts, payload = item.entry.envelope.facts, item.payload
    return (
        facts.correction if isinstance(facts, LearningInvalidated) else None,
        payload.similarity if isinstance(payload, Contradiction) else None,
    )


def said_fields(item: RevisionState, text: RevisionText, show: Callable[[str], str]) -> dict[str, object]:
    """Return those fields that a revision's own event and state give, without the rest of its lineage."""
    fields: dict[str, object] = {
        "revision_id": item.revision,
        "version": item.version,
        "state": item.values.state,
        "trust": item.values.trust,
        "kind": item.kind,
        "content": None if is_hidden(item) else text.content,
        "tags": text.tags,
        "scope": shown_scope(item.scope, show),
        "visibility": item.visibility,
        "subjects": text.subjects,
        "origin": item.origin,
        "confidence": text.confidence,
        "valid_from": text.valid_from,
        "valid_to": text.valid_to,
        "review_by": text.review_by,
        "supersedes": item.supersedes,
        "superseded_by": item.superseded_by,
        "position": item.content_seq,
        "content_hash": None if is_hidden(item) else public(text.content.encode()),
        "applies": document(text.applies),
        "institutional": document(text.institutional),
        "provenance": {
            "run": text.provenance.run,
            "session": text.provenance.session,
            "sources": list(text.provenance.sources),
        },
        "evidence": text.evidence,
        "depends_on": (),
    }
    return fields | WITHHELD if is_hidden(item) else fields


def revision_reply(lineage: LineageView, item: RevisionState, show: Callable[[str], str]) -> Revision:
    """Return one revision as an answer."""
    fields: dict[str, Any] = revision_fields(lineage, item, show)  # Any: one value of each field's type
    return Revision(**fields)


def audit(lineage: LineageView, show: Callable[[str], str]) -> tuple[AuditEntry, ...]:
    """Return a lineage's events, oldest first, as an auditor reads them."""
    return tuple(
        audit_entry(item if at not in lineage.untold else msgspec.structs.replace(item, payload=None), show)
        for at, item in sorted(lineage.recorded.items())
    )


def log_item(entry: Entry, actor: str) -> dict[str, Any]:  # Any: one value of each field's type
    """Return the fields of `LogItem` for one entry."""
    envelope = entry.envelope
    return {
        "seq": envelope.seq,
        "type": envelope.type,
        "at": envelope.at,
        "actor": actor,
        "stream": envelope.stream,
        "stream_seq": envelope.stream_seq,
        "hash": entry.hash.hex(),
        "trace_id": envelope.op,
    }


def chain_fields(entry: Entry) -> dict[str, Any]:  # Any: one value of each field's type
    """Return the fields of `EventDetail` by which an entry is linked, sealed and committed to its payload."""
    envelope = entry.envelope
    return {
        "log": envelope.log,
        "op_index": envelope.op_index,
        "op_count": envelope.op_count,
        "prev_b3": envelope.prev_b3,
        "stream_prev_b3": envelope.stream_prev_b3,
        "seal": entry.seal.hex(),
        "leaf": leaf(entry.raw).hex(),
        "payload_sha256": envelope.payload_sha256,
        "payload_len": envelope.payload_len,
    }


def shown_scope(scope: ScopeIds, show: Callable[[str], str]) -> dict[str, str]:
    """Return a scope by the callers' names, its empty segments left out."""
    ids = {"project": scope.project} | {name: getattr(scope, name) for name in SEGMENTS}
    return {name: show(identifier) for name, identifier in ids.items() if identifier}


def audit_entry(item: Recorded, show: Callable[[str], str]) -> AuditEntry:
    """Return one event as an auditor reads it."""
    envelope = item.entry.envelope
    moves: tuple[Move, ...] = getattr(envelope.facts, "moves", ())
    retired_by, similarity = invalidation(item)
    return AuditEntry(
        seq=envelope.seq,
        type=envelope.type,
        at=envelope.at,
        actor=show(envelope.actor),
        trace_id=envelope.op,
        reason=getattr(item.payload, "reason", None),
        moves=tuple(
            {
                "revision": move.revision,
                "from_state": move.before.state if move.before else None,
                "to_state": move.after.state,
                "from_trust": move.before.trust if move.before else None,
                "to_trust": move.after.trust,
            }
            for move in moves
        ),
        patch=_patch(item),
        retired_by=retired_by,
        similarity=similarity,
        evidence=vouched(item),
    )


def _patch(item: Recorded) -> dict[str, Any] | None:  # Any: as in AuditEntry
    """Return what a patch changed: the revision, and the metadata that differs, as it was and as it is since."""
    facts, payload = item.entry.envelope.facts, item.payload
    if not isinstance(facts, MetadataPatched) or not isinstance(payload, MetadataPatch):
        return None
    before, after = (msgspec.to_builtins(side) for side in (payload.before, payload.after))
    changed = [name for name in after if before[name] != after[name]]
    sides = {"before": before, "after": after}
    return {"revision": facts.revision} | {side: {name: said[name] for name in changed} for side, said in sides.items()}


def _derived_end(
    lineage: LineageView, item: RevisionState, text: RevisionText, superseded_at: str | None
) -> str | None:
    """Return when a superseded revision ceased to hold: its earliest successor's time, never before its own."""
    if superseded_at is None:
        return None
    began = min((lineage.began(successor) or superseded_at for successor in item.superseded_by), default=superseded_at)
    return max(text.valid_from or began, began)
