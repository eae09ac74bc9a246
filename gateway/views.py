"""A lineage's verified history as the revisions that people read. Pure: state, texts and times in, answers out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from gateway.replies import AuditEntry, Revision
from ledger.chain import Entry, broken
from ledger.corrections import CorrectionText
from ledger.digest import leaf, public
from ledger.memories import LINEAGE, LineageState, RevisionState, RevisionText
from ledger.message import Move, ScopeIds
from ledger.scope import SEGMENTS
from ledger.verified import Recorded


class LineageView(Struct, frozen=True, kw_only=True):
    """One lineage: its folded state, and its events by position."""

    lineage: str
    state: LineageState
    recorded: Mapping[int, Recorded]

    def text(self, revision: str) -> RevisionText:
        """Return what a revision says."""
        position = self.state.revisions[revision].content_seq
        return text_of(self.recorded[position])

    def at(self, position: int) -> str:
        """Return when an event was recorded."""
        return self.recorded[position].entry.envelope.at


def view(lineage: str, recorded: Sequence[Recorded]) -> LineageView:
    """Fold a history into its view."""
    return LineageView(
        lineage=lineage,
        state=LINEAGE.fold(item.event for item in recorded),
        recorded={item.entry.position: item for item in recorded},
    )


def text_of(item: Recorded) -> RevisionText:
    """Return the text that an event holds, or INTEGRITY_BROKEN if it holds none."""
    if not isinstance(item.payload, RevisionText):
        raise broken(item.entry.position, "payloads", "the text of a revision", "another payload")
    return item.payload


def correction_text_of(item: Recorded) -> CorrectionText:
    """Return what a correction says, or INTEGRITY_BROKEN if the event holds none."""
    if not isinstance(item.payload, CorrectionText):
        raise broken(item.entry.position, "payloads", "the text of a correction", "another payload")
    return item.payload


def is_hidden(item: RevisionState) -> bool:
    """Report whether a revision was withdrawn from view: then neither its text nor the text's hash is shown."""
    return item.values.state in ("forgotten", "erased")


def revision_fields(lineage: LineageView, item: RevisionState, show: Callable[[str], str]) -> dict[str, object]:
    """Return the fields of `replies.Revision` for one revision; `show` gives the caller's name for an id."""
    text = lineage.text(item.revision)
    successor = lineage.state.revisions[item.superseded_by[0]] if item.superseded_by else None
    return {
        **said_fields(item, text, show),
        "memory_id": show(lineage.lineage),
        "stream_version": lineage.state.version,
        "valid_to": text.valid_to or _derived_end(lineage, text, successor),
        "recorded_at": lineage.at(item.content_seq),
        "superseded_at": None if successor is None else lineage.at(successor.content_seq),
    }


def said_fields(item: RevisionState, text: RevisionText, show: Callable[[str], str]) -> dict[str, object]:
    """Return those fields that a revision's own event and state give, without the rest of its lineage."""
    return {
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
        "applies": None,
        "institutional": None,
        "provenance": {
            "run": text.provenance.run,
            "session": text.provenance.session,
            "sources": list(text.provenance.sources),
        },
        "evidence": text.evidence,
        "depends_on": (),
    }


def revision_reply(lineage: LineageView, item: RevisionState, show: Callable[[str], str]) -> Revision:
    """Return one revision as an answer."""
    fields: dict[str, Any] = revision_fields(lineage, item, show)  # Any: one value of each field's type
    return Revision(**fields)


def audit(lineage: LineageView, show: Callable[[str], str]) -> tuple[AuditEntry, ...]:
    """Return a lineage's events, oldest first, as an auditor reads them."""
    return tuple(audit_entry(item, show) for _, item in sorted(lineage.recorded.items()))


def log_item(entry: Entry, actor: str) -> dict[str, Any]:  # Any: one value of each field's type
    """Return the fields of `replies.LogItem` for one entry."""
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
    """Return the fields of `replies.EventDetail` by which an entry is linked, sealed and committed to its payload."""
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
    )


def _derived_end(lineage: LineageView, text: RevisionText, successor: RevisionState | None) -> str | None:
    """Return when a superseded revision ceased to hold: its successor's time, never before its own."""
    if successor is None:
        return None
    began = lineage.text(successor.revision).valid_from or lineage.at(successor.content_seq)
    return max(text.valid_from or began, began)
