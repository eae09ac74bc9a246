"""How what is known about a revision changes while its text stays."""

from collections.abc import Sequence

from ledger.memories.commands import Admit, Patch
from ledger.memories.facts import MetadataPatched, RevisionAdmitted
from ledger.memories.rules import live, moved, refuse_state, standing, trusted
from ledger.memories.state import LineageState
from ledger.message import Event, Values

_MENDABLE = ("active", "processing", "conflicted")


def patch(state: LineageState, command: Patch) -> Sequence[Event]:
    """Mend a revision's metadata; equal metadata makes no event."""
    old = trusted(state, command.revision, _MENDABLE, "Only a revision that still may hold can be patched")
    if command.patch.before == command.patch.after:
        return ()
    left = state.standing
    if state.head == old.revision:
        left = standing(old.revision, old.content_seq, command.first, old.values)
    facts = MetadataPatched(revision=old.revision, since=old.meta_seq, standing=left)
    return (Event(facts=facts, payload=command.patch, position=command.first),)


def admit(state: LineageState, command: Admit) -> Event:
    """Make a revision verified."""
    old = live(state, command.revision, "admitted")
    if old.values.trust != "unverified":
        refuse_state(old, f"Only an unverified revision can be admitted, and this one is {old.values.trust}.")
    after = Values(old.values.state, "verified", old.values.floor)
    facts = RevisionAdmitted(
        moves=(moved(old, after),), standing=standing(old.revision, old.content_seq, old.meta_seq, after)
    )
    return Event(facts=facts, payload=command.admission, position=command.first)
