"""Histories of one lineage for specifications, and the parts of its events in short. Positions count from 0."""

from typing import Any

import msgspec

from ledger.memories import LINEAGE, Command, LineageState, MemoryForgotten, Metadata, MetadataPatch, Patch
from ledger.message import HEADLESS, Event, Move, Reason, Standing, Values
from tests.ledgers import remember
from tests.specifications import Given, given

A, B, C, D = "rev_a", "rev_b", "rev_c", "rev_d"
SUPERSEDED = Values("superseded", "unverified", "verified")
Wish = Given[Command, LineageState]


def history(*commands: Command) -> Wish:
    """Return the history that commands make of a lineage."""
    return given(LINEAGE, *commands)


def happened(before: Wish, facts: Any) -> Wish:  # Any: one event's facts
    """Return a history with an event that acts of other modules would make."""
    event = Event(facts=facts, payload=Reason(reason=None), position=len(before.history))
    return Given(LINEAGE, (*before.history, event))


def instead(revision: str, content: str, predecessor: str | None, **how: Any) -> Command:  # Any: fields of the wish
    """Return the wish to remember a text in the place of a head, or with `held=True` to hold it for that place."""
    return msgspec.structs.replace(remember(revision, content), predecessor=predecessor, **how)


def held(revision: str, content: str, predecessor: str | None = None) -> Command:
    """Return the wish to hold a text."""
    return instead(revision, content, predecessor, held=True)


def standing(head: str, position: int, meta: int | None = None) -> Standing:
    """Return the standing of a head whose text came at a position, and its metadata there or at `meta`."""
    meta_seq = position if meta is None else meta
    return Standing(content_seq=position, floor="verified", head=head, meta_seq=meta_seq, trust="unverified")


def move(revision: str, before: Values | None, after: Values, *, since: int | None, version: int) -> Move:
    """Return one revision's move."""
    return Move(after=after, before=before, revision=revision, since=since, version=version)


def forgotten(before: Wish, revision: str) -> Wish:
    """Return a history in which a revision was forgotten at its end."""
    old = before.state.revisions[revision]
    gone = Values("forgotten", old.values.trust, old.values.floor)
    moves = (move(revision, old.values, gone, since=old.since, version=old.version),)
    left = HEADLESS if before.state.head == revision else before.state.standing
    return happened(before, MemoryForgotten(cause="person", moves=moves, standing=left))


def metadata(**changes: Any) -> Metadata:  # Any: one of its fields
    """Return metadata that says nothing, but for the changes."""
    nothing = Metadata(confidence=None, review_by=None, sources=(), tags=(), valid_from=None, valid_to=None)
    return msgspec.structs.replace(nothing, **changes)


def patch(revision: str, *tags: str) -> Patch:
    """Return the wish to give a revision these tags."""
    return Patch(revision=revision, patch=MetadataPatch(before=metadata(), after=metadata(tags=tags), reason="typo"))
