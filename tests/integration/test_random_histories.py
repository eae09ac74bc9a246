"""Random histories of every act there is: what was projected act by act is what the events make of it afterwards."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from gateway.bootstrap import open_bare
from gateway.replies import Receipt
from gateway.service import Gateway
from ledger.errors import CorrigendaError
from tests.house import types, written
from tests.integration.conftest import Here

ACTS_MADE = 400

# What a history of that many acts always holds.
TYPES = {
    "name.assigned", "memory.remembered", "revision.corrected", "revision.superseded", "revision.published",
    "metadata.patched", "memory.forgotten", "memory.retired", "memory.restored", "revision.contested",
    "revision.promoted", "revision.rejected", "revision.admitted", "revision.revoked", "lineage.linked",
    "lineage.unlinked", "correction.recorded", "correction.revoked",
}  # fmt: skip


class History:
    """Acts at random on a few memories and corrections; what is refused is passed over."""

    def __init__(self, gateway: Gateway, reviewer: Gateway, seed: int) -> None:
        self._gateway = gateway
        self._reviewer = reviewer
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

    def _keep(self, done: Receipt) -> None:
        for known, new in (
            (self._memories, done.memory_id),
            (self._revisions, done.revision_id),
            (self._corrections, done.correction_id),
        ):
            if new is not None and new not in known:
                known.append(new)

    def _acts(self) -> list[Callable[[], Receipt]]:
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


@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_projected_is_what_the_events_say(open_here: Here, seed: int) -> None:
    """XC-02: after a random history the live generation, a told digest and a rebuilt generation say the same."""
    gateway = open_here(embedder="none")
    History(gateway, open_here(embedder="none", actor="human:bob"), seed).make(ACTS_MADE)
    assert set(types(written(open_here.ledger_url))) >= TYPES
    with open_bare(database_url=open_here.ledger_url, home=open_here.home, create=False) as bare:
        assert bare.check_models().differences == ()
        done = gateway.rebuild()
        assert (done.differences, done.rows) == ((), done.rows_before)
        assert bare.check_models().differences == ()
