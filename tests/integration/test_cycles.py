"""Circles of supersession that no act makes: whoever verifies is told of one that a writer with a fault has left."""

import pytest

from gateway.bootstrap import open_bare
from gateway.reading import graph
from gateway.service import Gateway
from gateway.shapes.replies.audit import Check
from gateway.shapes.replies.models import ModelsCheck
from tests.house import rows, tamper
from tests.integration.conftest import Here


def told(here: Here) -> tuple[Check, ModelsCheck]:
    """Return what `verify --projections` says of the read models, and what `projections verify` does."""
    with open_bare(database_url=here.ledger_url, home=here.home, create=False) as bare:
        return bare.verify(projections=True).checks["projections"], bare.check_models()


def test_a_circle_of_links_is_reported(gateway: Gateway, open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """RC-36: given links that close a circle in a ledger that is whole, verify names who supersedes itself."""
    for name in "abcd":
        gateway.remember(name, memory_id=name)
    for above, below in ("ab", "bc", "cd"):
        gateway.link(above, below)
    assert [told(open_here)[0].status, told(open_here)[1].ok] == ["ok", True]

    monkeypatch.setattr(graph, "link_would_cycle", lambda *_, **__: False)
    gateway.link("c", "a")

    check, models = told(open_here)
    newer = {one for (one,) in rows(open_here.ledger_url, "SELECT newer FROM corrigenda.edge")}
    assert (check.status, check.expected) == ("failed", "nothing that supersedes itself")
    assert (models.ok, models.exit_code, models.differences) == (False, 12, ())
    assert models.cycles and set(models.cycles) <= newer
    assert all(name in (check.found or "") for name in models.cycles)
    gateway.unlink("b", "c", reason="it closed a circle")
    assert told(open_here)[1].cycles == ()


def test_a_circle_of_revisions_is_reported(gateway: Gateway, open_here: Here) -> None:
    """RC-36: given an edge from a revision to its own successor, verify names it beside the row that differs."""
    first = gateway.remember("a", memory_id="m").revision_id
    second = gateway.correct("m", "b").revision_id
    plant = (
        "INSERT INTO corrigenda.edge (ledger, gen, kind, newer, older, from_seq)"
        " SELECT ledger, gen, kind, older, newer, from_seq FROM corrigenda.edge WHERE newer = %s"
    )
    tamper(open_here.ledger_url, (plant, [second]))

    check, models = told(open_here)
    assert (models.exit_code, models.cycles) == (12, (first,))
    assert first is not None and first in (check.why or "")
    assert [one.table for one in models.differences] == ["edge"]
    tamper(open_here.ledger_url, ("DELETE FROM corrigenda.edge WHERE newer = %s", [first]))
