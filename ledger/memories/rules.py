"""What every decision on a lineage needs: the revision that is meant, or the refusal that tells what became of it."""

from typing import NoReturn

from ledger.errors import refuse
from ledger.memories.state import LineageState, RevisionState
from ledger.message import HEADLESS, Move, Standing, Values

DELETED = ("retired", "forgotten", "erased")


def known(state: LineageState, revision: str) -> RevisionState:
    found = state.revisions.get(revision)
    if found is None:
        refuse("MEMORY_NOT_FOUND", "There is no such revision in this memory. Look at its history.")
    return found


def live(state: LineageState, revision: str, wish: str) -> RevisionState:
    """Return the revision if it is active and trusted, else refuse with what became of it."""
    return trusted(state, revision, ("active",), f"Only a head can be {wish}")


def trusted(state: LineageState, revision: str, states: tuple[str, ...], rule: str) -> RevisionState:
    """Return the revision if it is in one of `states` and not revoked, else refuse it: `rule` says what was expected.

    The refusal names the revision, since one of several may have been meant.
    """
    found = known(state, revision)
    if found.values.state not in states:
        _refuse_state(state, found, rule)
    if found.values.trust == "revoked":
        refuse(
            "MEMORY_REVOKED",
            f"{rule}, and {revision} is revoked. Restore it first, or remember the right text under the same id.",
            revision_id=revision,
        )
    return found


def _refuse_state(state: LineageState, found: RevisionState, rule: str) -> NoReturn:
    match found.values.state:
        case "superseded":
            refuse(
                "MEMORY_ALREADY_SUPERSEDED",
                f"{rule}, and {found.revision} was superseded by {', '.join(found.superseded_by)}. "
                f"Act on the memory's head ({state.head or 'it has none now'}) if that is still what you want.",
                revision_id=found.revision,
                superseded_by=list(found.superseded_by),
                head=state.head,
            )
        case "retired" | "forgotten" | "erased" as kind:
            refuse(
                "MEMORY_DELETED",
                f"{rule}, and {found.revision} is {kind}. Restore it first, or remember the text anew.",
                revision_id=found.revision,
                kind=kind,
            )
        case other:
            refuse(
                "INVALID_TRANSITION",
                f"{rule}, and {found.revision} is {other}. Look at its history for what became of it.",
                revision_id=found.revision,
                state=other,
                allowed=allowed(found),
            )


def last_head(state: LineageState) -> RevisionState | None:
    """Return the revision that a headless lineage had as its last head, as far as the revisions' values tell."""
    heads = [item for item in state.revisions.values() if _has_ended(state, item)]
    return max(heads, key=lambda item: item.version, default=None)


def _has_ended(state: LineageState, item: RevisionState) -> bool:
    """Report whether a revision was a head, and no other revision of its lineage took its place."""
    before = item.withdrawals[0].before if item.withdrawals else item.values
    return before.state in ("active", "superseded") and not state.revisions.keys() & set(item.superseded_by)


def present(state: LineageState, revision: str, wish: str, *, restorable: tuple[str, ...] = DELETED) -> RevisionState:
    """Return a revision in whatever state, unless it was withdrawn into one of those that only `restore` ends."""
    found = known(state, revision)
    kind = found.values.state
    if kind in restorable:
        refuse(
            "MEMORY_DELETED",
            f"A revision was to be {wish}, and this one is {kind}"
            + (" already." if kind == wish else ". Restore it first.")
            + " Its history tells by whom.",
            kind=kind,
        )
    return found


def unrevoked(found: RevisionState, wish: str) -> RevisionState:
    """Return a revision unless its trust was withdrawn."""
    if found.values.trust == "revoked":
        refuse("MEMORY_REVOKED", f"A revision was to be {wish}, and this one is revoked. Restore it first.")
    return found


def refuse_state(found: RevisionState, why: str) -> NoReturn:
    """Refuse with INVALID_TRANSITION, and say what the revision does allow."""
    acts = allowed(found)
    able = f"It allows: {', '.join(acts)}." if acts else "It allows nothing any more."
    refuse("INVALID_TRANSITION", f"{why} {able}", state=found.values.state, allowed=acts)


_ALLOWED = {
    "processing": ("publish", "patch", "contest", "reject", "forget"),
    "active": ("correct", "supersede", "patch", "retire", "contest", "forget"),
    "conflicted": ("promote", "patch", "contest", "reject", "forget"),
    "superseded": ("forget",),
    "rejected": ("forget",),
    "retired": ("forget",),
}
_ALLOWED_REVOKED = ("reject", "forget")


def allowed(revision: RevisionState) -> list[str]:
    """Return the acts that the revision's present values allow."""
    state, trust = revision.values.state, revision.values.trust
    acts = [act for act in _ALLOWED.get(state, ()) if trust != "revoked" or act in _ALLOWED_REVOKED]
    if (state, trust) == ("active", "unverified"):
        acts.append("admit")
    if trust != "revoked" and state in _ALLOWED and state != "rejected":
        acts.append("revoke")
    return [*acts, "restore"] if revision.withdrawals else acts


def left_by(state: LineageState, *gone: str) -> Standing:
    """Return the standing that a lineage has once these revisions are no head any more."""
    return HEADLESS if state.head in gone else state.standing


def moved(old: RevisionState, after: Values) -> Move:
    return Move(after=after, before=old.values, revision=old.revision, since=old.since, version=old.version)


def standing(head: str, content_seq: int, meta_seq: int, values: Values) -> Standing:
    return Standing(content_seq=content_seq, floor=values.floor, head=head, meta_seq=meta_seq, trust=values.trust)


def next_version(state: LineageState) -> int:
    return len(state.revisions) + 1
