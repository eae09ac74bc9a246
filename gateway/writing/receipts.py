"""Receipts, made from an append's own events: the same whether it has just happened or is told again."""

from collections.abc import Callable, Sequence

import msgspec

from gateway.shapes.replies.writes import CorrectionReceipt, EventRef, Receipt, RevisionReceipt
from ledger.corrections import DEFERRED, CorrectionConfirmed, CorrectionRecorded, CorrectionSuperseded
from ledger.ids import CORRECTION
from ledger.memories import LearningInvalidated, MetadataPatched
from ledger.message import Move
from ledger.verified import Recorded

DRY_RUN = "dry_run: nothing was stored; ids and positions are what they would have been"
CONTRADICTION_DEFERRED = "contradiction: deferred: which learnings this contradicts is looked for later"


def receipt(
    group: Sequence[Recorded],
    show: Callable[[str], str],
    *,
    incarnation: int,
    replayed: bool = False,
    dry_run: bool = False,
    unanchored: str | None = None,
    warnings: Sequence[str] = (),
) -> Receipt:
    """Return the receipt of one append; `show` gives the name of a memory that was not named in it."""
    envelopes = [item.entry.envelope for item in group]
    asked = [envelope for envelope in envelopes if not isinstance(envelope.facts, LearningInvalidated)]
    moves: list[Move] = [move for envelope in asked for move in getattr(envelope.facts, "moves", ())]
    memory = next((envelope.stream for envelope in asked if envelope.stream.startswith("mem_")), None)
    revision = _revision(group, moves)
    left = next((move.after for move in reversed(moves) if move.revision == revision), None)
    return Receipt(
        outcome="unchanged" if dry_run else "stored",
        replayed=replayed,
        position=envelopes[-1].seq,
        incarnation=incarnation,
        events=tuple(EventRef(seq=envelope.seq, type=envelope.type) for envelope in envelopes),
        trace_id=envelopes[0].op,
        warnings=(
            *((DRY_RUN,) if dry_run else ()),
            *_unanchored(unanchored),
            *((CONTRADICTION_DEFERRED,) if DEFERRED in _checks(group) else ()),
            *warnings,
        ),
        memory_id=_shown(memory, group, show),
        revision_id=revision,
        state=None if left is None else left.state,
        trust=None if left is None else left.trust,
        superseded=_superseded(moves) + _replaced(group) if moves or _replaced(group) else None,
        correction_id=next((item.entry.envelope.stream for item in group if _is_of_correction(item)), None),
        successors=_several(_born(moves)),
        invalidated=_invalidated(group),
    )


def of_revision(done: Receipt) -> RevisionReceipt:
    """Return the receipt of an act that always is about one revision, typed as one that has its ids."""
    return RevisionReceipt(**msgspec.structs.asdict(done))


def of_correction(done: Receipt) -> CorrectionReceipt:
    """Return the receipt of an act that always is about a correction, typed as one that has its id."""
    return CorrectionReceipt(**msgspec.structs.asdict(done))


def _checks(group: Sequence[Recorded]) -> list[str]:
    """Return what corrections say of the check for learnings that they contradict."""
    facts = [item.entry.envelope.facts for item in group]
    return [one.contradiction for one in facts if isinstance(one, CorrectionRecorded | CorrectionConfirmed)]


def _invalidated(group: Sequence[Recorded]) -> tuple[str, ...] | None:
    """Return the learnings that were invalidated; None where nothing in the append could do that."""
    facts = [item.entry.envelope.facts for item in group]
    found = [move.revision for one in facts if isinstance(one, LearningInvalidated) for move in one.moves]
    return tuple(found) if found or _checks(group) else None


def _is_of_correction(item: Recorded) -> bool:
    return item.entry.envelope.stream.startswith(f"{CORRECTION}_")


def _replaced(group: Sequence[Recorded]) -> tuple[str, ...]:
    """Return the corrections that ended in favour of another."""
    envelopes = [item.entry.envelope for item in group]
    return tuple(envelope.stream for envelope in envelopes if isinstance(envelope.facts, CorrectionSuperseded))


def unchanged(
    op: str,
    about: tuple[str, str] | None,
    show: Callable[[str], str],
    *,
    position: int,
    incarnation: int,
    unanchored: str | None = None,
) -> Receipt:
    """Return the receipt of an act that found everything as it was to be: no events, at the position of the answer."""
    memory, revision = about or (None, None)
    return Receipt(
        outcome="unchanged",
        replayed=False,
        position=position,
        incarnation=incarnation,
        events=(),
        trace_id=op,
        warnings=_unanchored(unanchored),
        memory_id=None if memory is None else show(memory),
        revision_id=revision,
    )


def _unanchored(why: str | None) -> tuple[str, ...]:
    return (f"unanchored: the anchor {why}",) if why else ()


def _revision(group: Sequence[Recorded], moves: Sequence[Move]) -> str | None:
    """Return the revision that an append is about: the first that it brought into being, else what it touched last."""
    patched = [facts.revision for item in group if isinstance(facts := item.entry.envelope.facts, MetadataPatched)]
    touched = [*patched, *(move.revision for move in moves)]
    return next(iter(_born(moves)), touched[-1] if touched else None)


def _born(moves: Sequence[Move]) -> tuple[str, ...]:
    return tuple(move.revision for move in moves if move.before is None)


def _several(revisions: tuple[str, ...]) -> tuple[str, ...] | None:
    return revisions if len(revisions) > 1 else None


def _superseded(moves: Sequence[Move]) -> tuple[str, ...]:
    ended = [move for move in moves if move.before is not None and move.before.state != "superseded"]
    return tuple(move.revision for move in ended if move.after.state == "superseded")


def _shown(memory: str | None, group: Sequence[Recorded], show: Callable[[str], str]) -> str | None:
    """Return the caller's name of the memory, which may have been given in this very append."""
    if memory is None:
        return None
    for item in group:
        facts = item.entry.envelope.facts
        if getattr(facts, "id", None) == memory:
            return getattr(item.payload, "name", memory)
    return show(memory)
