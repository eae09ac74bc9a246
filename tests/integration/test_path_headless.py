"""A memory without a head: how it gets one again, who may give it one, and in which order withdrawals are undone."""

from collections.abc import Callable

import psycopg
import pytest

from gateway.service import Gateway
from ledger.errors import CorrigendaError
from tests.house import last_position, refused, tamper
from tests.integration.conftest import Here


def test_a_memory_with_a_head_is_not_begun_anew(gateway: Gateway) -> None:
    """LM-17: given a memory with a head, when a text is remembered under its id, then STALE_PREDECESSOR names it."""
    first = gateway.remember("a", memory_id="m")

    with refused("STALE_PREDECESSOR") as refusal:
        gateway.remember("b", memory_id="m")

    assert refusal.details["head"] == first.revision_id


def test_a_retired_memory_goes_on_with_the_next_version(open_here: Here) -> None:
    """RC-32: given a retired memory, when an agent remembers under its id, then the version goes on without an edge."""
    open_here().remember("a", memory_id="m")
    open_here().retire("m")

    open_here(actor="agent:scout").remember("b", memory_id="m")

    first, second = open_here().history("m").items
    assert (second.version, second.state, second.supersedes, first.superseded_by) == (2, "active", (), ())
    assert (first.state, second.origin) == ("retired", "agent")


def test_a_revoked_memory_needs_the_permission_to_overrule(open_here: Here, ledger_url: str) -> None:
    """XC-09: given a revoked memory, when an agent begins it anew, FORBIDDEN_ACTOR names `correct`; a person may."""
    open_here().remember("a", memory_id="m")
    open_here().revoke("m", reason="wrong")
    open_here(actor="agent:scout").remember("something else")
    before = last_position(ledger_url)

    with refused("FORBIDDEN_ACTOR") as refusal:
        open_here(actor="agent:scout").remember("b", memory_id="m")

    assert refusal.details["permission"] == "correct"
    assert last_position(ledger_url) == before
    assert open_here().remember("b", memory_id="m").events[-1].type == "memory.remembered.v1"


def test_a_memory_keeps_its_kind(gateway: Gateway) -> None:
    """Given a headless decision, when a fact is remembered under its id, then INVALID_INPUT names the kind it keeps."""
    gateway.remember("a", kind="decision", memory_id="m")
    gateway.retire("m")

    with refused("INVALID_INPUT") as refusal:
        gateway.remember("b", kind="fact", memory_id="m")

    assert "decision" in refusal.error.message


def test_a_memory_without_a_name_goes_on_by_our_id(gateway: Gateway) -> None:
    """Given a headless memory that nobody named, when a text is remembered under the id of ours, then it has a head."""
    first = gateway.remember("a")
    gateway.retire(first.revision_id or "")

    second = gateway.remember("b", memory_id=first.memory_id)

    assert second.memory_id == first.memory_id
    assert [item.version for item in gateway.history(first.memory_id or "").items] == [1, 2]


def test_a_foreign_memory_does_not_go_on_here(open_here: Here, ledger_url: str) -> None:
    """Given a headless memory of another project, when its id is used to remember, then MEMORY_NOT_FOUND."""
    foreign = open_here(project="borea").remember("a")
    open_here(project="borea").retire(foreign.revision_id or "")
    open_here().remember("mine")
    before = last_position(ledger_url)

    with refused("MEMORY_NOT_FOUND"):
        open_here().remember("b", memory_id=foreign.memory_id)

    assert last_position(ledger_url) == before


@pytest.mark.parametrize("withdraw", ["forget", "retire", "revoke", "contest", "hold", "reject", "supersede"])
def test_what_is_advised_about_a_headless_memory_can_be_done(gateway: Gateway, withdraw: str) -> None:
    """RC-42: given a memory without a head, each act that the refusal allows is accepted, and no other is allowed."""
    _begin(gateway, withdraw)
    with refused("INVALID_TRANSITION") as refusal:
        gateway.correct("m", "right")

    acts = {
        "remember": lambda: gateway.remember("right", memory_id="m", dry_run=True),
        "restore": lambda: gateway.restore("m", dry_run=True),
        "publish": lambda: gateway.publish("m", dry_run=True),
        "promote": lambda: gateway.promote(gateway.history("m").items[-1].revision_id, dry_run=True),
    }
    assert set(refusal.details["allowed"]) == {name for name, act in acts.items() if _works(act)}
    assert ("under another id" in refusal.error.message) == (withdraw == "forget")
    assert gateway.remember("right", memory_id="m2").outcome == "stored"


def _begin(gateway: Gateway, withdraw: str) -> None:
    """Make a memory m that has no head any more, or none yet."""
    made = gateway.remember("wrong", memory_id="m", hold=withdraw in ("hold", "reject"))
    revision = made.revision_id or ""
    match withdraw:
        case "contest":
            held = gateway.remember("wrong, too", memory_id="m", predecessor="m", hold=True)
            gateway.contest(revision, held.revision_id or "")
        case "reject":
            gateway.reject_revision(revision)
        case "supersede":
            gateway.remember("another", memory_id="n")
            gateway.supersede(["n", "m"], ["both"])
        case "revoke":
            gateway.revoke("m", reason="r")
        case "hold":
            pass
        case act:
            getattr(gateway, act)("m")


def _works(act: Callable[[], object]) -> bool:
    try:
        act()
    except CorrigendaError:
        return False
    return True


def test_withdrawals_are_undone_last_first(gateway: Gateway) -> None:
    """Given a retired, then revoked A, when it is restored twice, the revocation is undone first."""
    first = gateway.remember("a")
    revision = first.revision_id or ""
    gateway.retire(revision)
    gateway.revoke(revision, reason="wrong too")

    seen = [(gateway.show(revision).state, gateway.show(revision).trust)]
    for _ in range(2):
        gateway.restore(revision)
        seen.append((gateway.show(revision).state, gateway.show(revision).trust))

    assert seen == [("retired", "revoked"), ("retired", "unverified"), ("active", "unverified")]
    with refused("INVALID_TRANSITION"):
        gateway.restore(revision)


def test_restore_of_a_memory_means_its_last_withdrawn_revision(gateway: Gateway) -> None:
    """Given A retired, B remembered and revoked, when the memory is restored, then B is back and A is not."""
    gateway.remember("a", memory_id="m")
    gateway.retire("m")
    second = gateway.remember("b", memory_id="m")
    gateway.revoke("m", reason="wrong")

    assert gateway.restore("m").revision_id == second.revision_id
    assert [item.state for item in gateway.history("m").items] == ["retired", "active"]


def test_no_restore_makes_a_second_head(gateway: Gateway, ledger_url: str) -> None:
    """Given A retired and B the head, when A is restored, then EXPECTED_ACTIVE_MISMATCH names B and nothing moves."""
    first = gateway.remember("a", memory_id="m")
    gateway.retire("m")
    second = gateway.remember("b", memory_id="m")
    before = last_position(ledger_url)

    with refused("EXPECTED_ACTIVE_MISMATCH") as refusal:
        gateway.restore(first.revision_id or "")

    assert refusal.details["head"] == second.revision_id
    assert last_position(ledger_url) == before


def test_a_revocation_is_undone_beside_a_head_where_no_second_one_comes_of_it(gateway: Gateway) -> None:
    """Given a superseded and revoked A, when A is restored, then it is superseded again and B stays the head."""
    first = gateway.remember("a", memory_id="m")
    second = gateway.correct("m", "b")
    gateway.revoke(first.revision_id or "", reason="it never held")

    assert gateway.explain("m").head == second.revision_id
    gateway.restore(first.revision_id or "")

    old = gateway.explain(first.revision_id or "")
    assert (old.state, old.trust, old.head) == ("superseded", "unverified", second.revision_id)
    assert [hit.revision_id for hit in gateway.search("a b").hits] == [second.revision_id]


def test_a_revocation_is_said_once(gateway: Gateway) -> None:
    """Given a revoked A, when it is revoked again by its own id, then MEMORY_REVOKED."""
    first = gateway.remember("a")
    gateway.revoke(first.revision_id or "", reason="wrong")

    with refused("MEMORY_REVOKED"):
        gateway.revoke(first.revision_id or "", reason="wrong")


def test_the_database_refuses_a_second_head(gateway: Gateway, ledger_url: str) -> None:
    """LM-43: given a lineage with a head, when a row is edited into a second one, then a unique constraint refuses."""
    first = gateway.remember("a", memory_id="m")
    gateway.correct("m", "b")

    with pytest.raises(psycopg.errors.UniqueViolation, match="revision_head"):
        tamper(
            ledger_url,
            ("UPDATE corrigenda.revision SET state = 'active' WHERE revision = %s", [first.revision_id]),
        )
