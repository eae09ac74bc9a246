"""Random histories of every act there is: what was projected act by act is what the events make of it afterwards."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.bootstrap import open_bare
from gateway.service import Gateway
from gateway.shapes.replies.writes import Receipt
from ledger.errors import CorrigendaError
from tests.house import types, written
from tests.integration.conftest import Here

# What a history of some hundred acts always holds.
TYPES = {
    "name.assigned", "memory.remembered", "revision.corrected", "revision.superseded", "revision.published",
    "metadata.patched", "memory.forgotten", "memory.retired", "memory.restored", "revision.contested",
    "revision.promoted", "revision.rejected", "revision.admitted", "revision.revoked", "lineage.linked",
    "lineage.unlinked", "correction.recorded", "correction.revoked", "correction.confirmed", "correction.superseded",
    "learning.invalidated", "evidence.added", "policy.set", "tombstone.set",
}  # fmt: skip


# What a machine learns, and a person's or an agent's correction contradicts.
LEARNED = "chargeCode THC DTHC vendor x labels it so"
SAID: dict[str, Any] = {
    "agent": "ap", "user": "uma", "field": "chargeCode", "original_value": "THC", "corrected_value": "DTHC",
    "reason": "vendor x labels it so",
}  # fmt: skip
SETTINGS = {
    "corrections.contradiction_threshold": ("0.85", "0.95"),
    "corrections.top_k": ("3", "5"),
    "verifier_is_producer": ("deny", "allow"),
    "corrections.agents": ("*", ("ap", "a")),
}


class Minutes:
    """A clock on which three minutes pass whenever it is looked at."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the next moment."""
        self._now += timedelta(minutes=3)
        return self._now


class History:
    """Acts at random on a few memories and corrections; what is refused is passed over."""

    def __init__(self, gateway: Gateway, reviewer: Gateway, agent: Gateway, seed: int) -> None:
        self._gateway = gateway
        self._reviewer = reviewer
        self._agent = agent
        self._chance = random.Random(seed)
        self._memories: list[str] = []
        self._revisions: list[str] = []
        self._corrections: list[str] = []
        self._links: list[tuple[str, str]] = []
        self._texts = 0

    def make(self, count: int) -> None:
        """Try so many acts."""
        self._keep(self._gateway.remember("the first"))
        acts = self._acts()
        for _ in range(count):
            try:
                self._keep(self._chance.choice(acts)())
            except CorrigendaError as error:
                assert error.code not in ("INTEGRITY_BROKEN", "UNAVAILABLE"), error.message

    def _keep(self, done: object) -> None:
        if not isinstance(done, Receipt):
            return
        for known, new in (
            (self._memories, done.memory_id),
            (self._revisions, done.revision_id),
            (self._corrections, done.correction_id),
        ):
            if new is not None and new not in known[-50:]:
                known.append(new)

    def _acts(self) -> list[Callable[[], object]]:
        """Return every act, the frequent ones several times."""
        act, text, revision, memory = self._gateway, self._text, self._revision, self._memory
        return [
            *[lambda: act.remember(text(), **self._scope())] * 3,
            lambda: act.remember(text(), hold=True),
            lambda: act.remember(text(), predecessor=memory(), hold=True),
            lambda: act.remember(text(), memory_id=memory()),
            *[lambda: act.correct(memory(), text())] * 4,
            lambda: act.supersede([memory(), memory()], [text()]),
            lambda: act.supersede([memory()], [text(), text()]),
            lambda: act.supersede([memory(), memory()], [text(), text()]),
            *[lambda: act.publish(memory())] * 3,
            *[lambda: act.patch(revision(), tags=[text()])] * 2,
            lambda: act.forget(revision()),
            lambda: act.retire(revision()),
            lambda: act.revoke(revision(), reason="r"),
            *[lambda: act.restore(revision())] * 3,
            *[self._dispute] * 3,
            lambda: act.contest(revision(), revision()),
            *[lambda: act.promote(revision())] * 4,
            *[lambda: act.reject_revision(revision())] * 2,
            lambda: self._reviewer.admit(memory(), reason="r"),
            *[self._link] * 2,
            lambda: act.unlink(*self._chance.choice(self._links or [(memory(), memory())]), reason="r"),
            *[lambda: act.record_correction(agent="a", original_value="x", corrected_value=text())] * 2,
            lambda: act.record_correction(agent="a", original_value="x", corrected_value=text(), memory=memory()),
            lambda: act.confirm_correction(self._correction()),
            lambda: act.revoke_correction(self._correction(), reason="r"),
            lambda: act.supersede_correction(self._correction(), corrected_value=text()),
            *[lambda: self._agent.remember(LEARNED, kind="learning", user="uma", sources=["chat"])] * 2,
            lambda: act.record_correction(**SAID),
            lambda: act.confirm_correction(self._agent.record_correction(**SAID).correction_id or ""),
            lambda: act.prune("24h"),
            lambda: act.add_evidence(text().encode()),
            lambda: act.set_policy({(name := self._chance.choice([*SETTINGS])): self._chance.choice(SETTINGS[name])}),
        ]

    def _link(self) -> Receipt:
        newer, older = self._memory(), self._memory()
        done = self._gateway.link(newer, older)
        self._links.append((newer, older))
        return done

    def _dispute(self) -> Receipt:
        """Hold a text against a memory's head, and say that the two contradict each other."""
        held = self._gateway.remember(self._text(), predecessor=self._memory(), hold=True)
        self._keep(held)
        return self._gateway.contest(held.revision_id or "", held.memory_id or "")

    def _scope(self) -> dict[str, Any]:  # Any: one type for all fields
        return {name: self._chance.choice("ab") for name in ("agent", "user", "session") if self._chance.random() < 0.3}

    def _text(self) -> str:
        self._texts += 1
        return f"text {self._texts}"

    def _revision(self) -> str:
        return self._chance.choice(self._revisions[-12:])

    def _memory(self) -> str:
        return self._chance.choice(self._memories[-6:])

    def _correction(self) -> str:
        return self._chance.choice(self._corrections or self._memories)


@pytest.mark.parametrize(("seed", "acts"), [(1, 400), (2, 400), pytest.param(3, 10_000, marks=pytest.mark.soak)])
def test_what_was_projected_is_what_the_events_say(open_here: Here, seed: int, acts: int) -> None:
    """XC-02: after a random history the live generation, a told digest and a rebuilt generation say the same."""
    clock = Minutes()
    gateway, reviewer, agent = (open_here(clock=clock, actor=name) for name in ("human:ana", "human:bob", "agent:ap"))
    History(gateway, reviewer, agent, seed).make(acts)
    assert set(types(written(open_here.ledger_url))) >= TYPES
    with open_bare(database_url=open_here.ledger_url, home=open_here.home, create=False) as bare:
        assert bare.check_models().differences == ()
        done = gateway.rebuild()
        assert (done.differences, done.rows) == ((), done.rows_before)
        assert bare.check_models().differences == ()
