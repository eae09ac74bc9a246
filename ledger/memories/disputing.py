"""How a contradiction inside a lineage is stated and ended.

A live `conflicts` edge joins two revisions that cannot both hold. Promoting one ends every edge of those that it
touches; a revision whose edges are all gone waits, conflicted, for somebody to promote or reject it.
"""

from collections.abc import Collection

from ledger.errors import refuse
from ledger.memories.commands import Contest, Promote, Reject
from ledger.memories.facts import RevisionContested, RevisionPromoted, RevisionRejected
from ledger.memories.rules import left_by, moved, present, refuse_state, standing, unrevoked
from ledger.memories.state import LineageState, RevisionState
from ledger.message import Edge, Event, Move, Reason, Values

_CONTESTABLE = ("active", "processing", "conflicted")
_REJECTABLE = ("processing", "conflicted")


def contest(state: LineageState, command: Contest) -> Event:
    """State that two revisions contradict each other; neither is served until one is promoted."""
    if command.first_revision == command.second_revision:
        refuse("INVALID_INPUT", "A revision cannot contradict itself. Name two revisions of one memory.")
    pair = [_contestable(state, revision) for revision in (command.second_revision, command.first_revision)]
    older, newer = sorted(pair, key=lambda item: item.version)
    stated = {(newer.revision, older.revision), (older.revision, newer.revision)} & state.conflicts.keys()
    if stated:
        refuse("NO_CHANGE", "That these two revisions contradict each other is stated already; nothing was stored.")
    facts = RevisionContested(
        edges=(Edge("conflicts", newer.revision, older.revision, None),),
        moves=tuple(_to(item, "conflicted") for item in pair if item.values.state != "conflicted"),
        standing=left_by(state, newer.revision, older.revision),
    )
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def promote(state: LineageState, command: Promote) -> Event:
    """Let a contested revision win over its partners, and over the head that the caller says there is."""
    won = present(state, command.revision, "promoted")
    if won.values.state != "conflicted":
        refuse_state(won, f"Only a conflicted revision can be promoted, and this one is {won.values.state}.")
    unrevoked(won, "promoted")
    _check_expected(state, command.expected)
    lost = [item for item in map(state.revisions.__getitem__, _partners(state, won.revision)) if _is_open(item)]
    ended = [] if state.head is None else [state.revisions[state.head]]
    after = Values("active", won.values.trust, won.values.floor)
    facts = RevisionPromoted(
        edges=(
            *_withdrawn(state, [won, *lost, *ended]),
            *(Edge("supersedes", won.revision, old.revision, None) for old in ended),
        ),
        moves=(
            *(_to(item, "rejected") for item in lost),
            *(_to(item, "superseded") for item in ended),
            moved(won, after),
        ),
        standing=standing(won.revision, won.content_seq, won.meta_seq, after),
    )
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def reject(state: LineageState, command: Reject) -> Event:
    """Turn down a held or contested revision. Whom it contradicted stays conflicted."""
    old = present(state, command.revision, "rejected")
    if old.values.state == "active":
        refuse(
            "INVALID_INPUT",
            "Only a held or contested revision can be rejected, and this one is active: people may rely on it. "
            "Replace it by the right text (`corrigenda memories correct`), or state what contradicts it "
            "(`corrigenda memories contest`).",
            state=old.values.state,
        )
    if old.values.state not in _REJECTABLE:
        refuse_state(old, f"Only a held or contested revision can be rejected, and this one is {old.values.state}.")
    facts = RevisionRejected(
        edges=tuple(_withdrawn(state, [old])), moves=(_to(old, "rejected"),), standing=state.standing
    )
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def _contestable(state: LineageState, revision: str) -> RevisionState:
    found = present(state, revision, "contested")
    if found.values.state not in _CONTESTABLE:
        refuse_state(found, f"What holds or may hold can be contested, and this revision is {found.values.state}.")
    return unrevoked(found, "contested")


def _check_expected(state: LineageState, expected: str | None) -> None:
    if expected == state.head:
        return
    wanted = "no head was expected" if expected is None else f"{expected} was expected as the memory's head"
    found = "it has none" if state.head is None else f"its head is {state.head}"
    refuse(
        "EXPECTED_ACTIVE_MISMATCH",
        f"To promote a revision the head that it replaces has to be named: {wanted}, and {found}. Read the memory "
        "again, and name that head, or none (--expected-active).",
        expected=expected,
        head=state.head,
    )


def _partners(state: LineageState, revision: str) -> list[str]:
    """Return the revisions that a live edge says contradict this one."""
    return [newer if older == revision else older for newer, older in state.conflicts if revision in (newer, older)]


def _is_open(revision: RevisionState) -> bool:
    return revision.values.state == "conflicted"


def _withdrawn(state: LineageState, touched: Collection[RevisionState]) -> list[Edge]:
    """Return the withdrawals of every edge that holds a touched revision open: its conflicts, and what it proposes."""
    names = {item.revision for item in touched}
    conflicts = [Edge("conflicts", *pair, since) for pair, since in state.conflicts.items() if names & {*pair}]
    proposals = [Edge("proposes", item.revision, item.proposes, item.content_seq) for item in touched if item.proposes]
    return [*conflicts, *proposals]


def _to(old: RevisionState, state: str) -> Move:
    return moved(old, Values(state, old.values.trust, old.values.floor))
