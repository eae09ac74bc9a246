"""The past is what the present was: whatever is done to memories, each moment is told later as it was told then."""

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import corrigenda
from gateway.service import Gateway
from gateway.shapes.replies.past import AuditEntry
from ledger.errors import CorrigendaError

NAMES = "abcd"
ACTS = 40
Told = dict[str, dict[str, object]]


def acts(gateway: Gateway, chance: random.Random) -> list[Callable[[], object]]:
    """Return what may be tried next, with ends that chance picks; much of it is refused."""
    one, other = chance.sample(NAMES, 2)
    revision = chance.choice([item.revision_id for item in gateway.history(one).items])
    text = f"text {chance.randint(0, 10**9)}"
    return [
        lambda: gateway.correct(one, text),
        lambda: gateway.supersede([one, other], [text]),
        lambda: gateway.supersede([one], [text, text + " too"]),
        lambda: gateway.remember(text, memory_id=one),
        lambda: gateway.remember(text, predecessor=one, hold=True),
        lambda: gateway.publish(revision),
        lambda: gateway.contest(one, revision),
        lambda: gateway.promote(revision),
        lambda: gateway.reject_revision(revision, reason="no"),
        lambda: gateway.patch(revision, tags=[text], valid_from=f"20{chance.randint(10, 40)}-01-01T00:00:00Z"),
        lambda: gateway.retire(revision),
        lambda: gateway.revoke(revision, reason="doubt"),
        lambda: gateway.forget(revision),
        lambda: gateway.restore(revision),
        lambda: gateway.link(one, other),
    ]


def told(gateway: Gateway, at: int | None = None) -> Told:
    """Return how every memory is explained, but for what says when it was asked and what may not be read any more."""
    found: Told = {}
    for name in NAMES:
        story = gateway.explain(name, at=at)
        fields: dict[str, object] = {field: getattr(story, field) for field in story.__struct_fields__}
        found[name] = fields | {"at_position": None}
    return found


def unseen(gateway: Gateway) -> set[str]:
    """Return the revisions that are forgotten at present."""
    items = [item for name in NAMES for item in gateway.history(name).items]
    return {item.revision_id for item in items if item.content is None}


def without(found: Told, revisions: set[str]) -> Told:
    """Return explanations without what is not told any more of some revisions, and of the events that speak of them."""
    gone = {"content": None, "content_hash": None, "tags": ()}
    told = {name: fields | gone if fields["revision_id"] in revisions else fields for name, fields in found.items()}
    return {name: fields | {"audit": silenced(fields["audit"], revisions)} for name, fields in told.items()}


def silenced(audit: Any, revisions: set[str]) -> list[AuditEntry]:  # Any: what an explanation holds
    """Return a story without the reasons and patches of those events that speak of some revisions."""
    return [
        msgspec.structs.replace(entry, reason=None, patch=None)
        if not revisions.isdisjoint({(entry.patch or {}).get("revision"), *(move["revision"] for move in entry.moves)})
        else entry
        for entry in audit
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_every_moment_is_told_as_it_was(gateway: Gateway, seed: int) -> None:
    """Given forty acts of every kind, when each moment between them is explained afterwards, then as it was then."""
    chance = random.Random(seed)
    begun = [gateway.remember(f"first {name}", memory_id=name) for name in NAMES]
    moments: dict[int, Told] = {begun[-1].position: told(gateway)}
    kinds: set[str] = set()
    while len(moments) < ACTS:
        try:
            done = chance.choice(acts(gateway, chance))()
        except CorrigendaError:
            continue
        assert isinstance(done, corrigenda.Receipt)
        if done.outcome == "stored":
            kinds |= {event.type for event in done.events}
            moments[done.position] = told(gateway)

    hidden = unseen(gateway)
    for position, then in moments.items():
        assert without(told(gateway, position), hidden) == without(then, hidden), position
    for name in NAMES:
        for item in gateway.history(name).items:
            assert None in (item.valid_from, item.valid_to) or str(item.valid_from) <= str(item.valid_to)
    assert len(kinds) > 8
