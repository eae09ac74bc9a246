"""What every decision on a lineage needs: the revision that is meant, or the refusal that tells what became of it."""

from ledger.errors import refuse
from ledger.memories.state import LineageState, RevisionState
from ledger.message import Move, Standing, Values


def known(state: LineageState, revision: str) -> RevisionState:
    found = state.revisions.get(revision)
    if found is None:
        refuse("MEMORY_NOT_FOUND", "There is no such revision in this memory. Look at its history.")
    return found


def live(state: LineageState, revision: str, wish: str) -> RevisionState:
    """Return the revision if it is active and trusted, else refuse with what became of it."""
    found = known(state, revision)
    match found.values.state:
        case "superseded":
            refuse(
                "MEMORY_ALREADY_SUPERSEDED",
                f"Only a head can be {wish}, and this revision was superseded by {', '.join(found.superseded_by)}. "
                f"Act on the memory's head ({state.head or 'it has none now'}) if that is still what you want.",
                superseded_by=list(found.superseded_by),
                head=state.head,
            )
        case "retired" | "forgotten" | "erased" as kind:
            refuse(
                "MEMORY_DELETED",
                f"Only a head can be {wish}, and this revision is {kind}. Restore it first, or remember the text anew.",
                kind=kind,
            )
        case "active":
            pass
        case other:
            refuse(
                "INVALID_TRANSITION",
                f"Only an active revision can be {wish}, and this one is {other}.",
                state=other,
                allowed=allowed(found),
            )
    if found.values.trust == "revoked":
        refuse(
            "MEMORY_REVOKED",
            f"Only a trusted head can be {wish}, and this revision is revoked. Restore it first, or remember the "
            "right text under the same id.",
        )
    return found


def allowed(revision: RevisionState) -> list[str]:
    """Return the acts that the revision's present values allow."""
    acts = ["correct", "retire"] if revision.values.is_live else []
    if revision.values.trust != "revoked":
        acts.append("revoke")
    return [*acts, "restore"] if revision.withdrawals else acts


def moved(old: RevisionState, after: Values) -> Move:
    return Move(after=after, before=old.values, revision=old.revision, since=old.since, version=old.version)


def standing(head: str, content_seq: int, meta_seq: int, values: Values) -> Standing:
    return Standing(content_seq=content_seq, floor=values.floor, head=head, meta_seq=meta_seq, trust=values.trust)


def next_version(state: LineageState) -> int:
    return len(state.revisions) + 1
