"""Corrections as records: recorded with and without a memory, confirmed, superseded, revoked. One act, one append."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import msgspec

from gateway.service import Gateway
from gateway.shapes.replies.corrections import Correction
from ledger.errors import ConflictError
from tests.house import last_position, refused, tamper, types, written
from tests.integration.conftest import Here

EVERYTHING = {
    "agent": "ap-reconciler", "original_value": "THC", "corrected_value": "DTHC", "field": "chargeCode",
    "entity_key": "MSC", "run": "r1", "session": "s1", "original_input": "invoice 7", "reason": "billed apart",
    "tags": ("ap", "msc"), "visibility": "user", "user": "ana",
}  # fmt: skip
UNKNOWN = "cor_01J9ZKAAAAAAAAAAAAAAAAAAAA"
WARNED = "memory_untouched: the memory corrected at {} keeps its text"


def recorded(gateway: Gateway, original: str = "THC", corrected: str = "DTHC", **more: Any) -> str:
    """Record a correction of the agent `ap`, and return its id."""
    given = {"agent": "ap", "original_value": original, "corrected_value": corrected, **more}
    return gateway.record_correction(**given).correction_id or ""


def test_every_field_comes_back_unchanged(gateway: Gateway) -> None:
    """AG-01, AG-51: given all optional fields, when it is recorded, then show and list give every one of them back."""
    receipt = gateway.record_correction(**EVERYTHING)
    assert receipt.correction_id is not None and receipt.correction_id.startswith("cor_")
    shown = gateway.show_correction(receipt.correction_id)
    assert {name: getattr(shown, name) for name in EVERYTHING} == EVERYTHING
    assert (shown.correction_id, shown.state, shown.origin) == (receipt.correction_id, "active", "human")
    assert (shown.superseded_by, shown.memory, shown.stream_version, shown.position) == (
        None,
        None,
        1,
        receipt.position,
    )
    (listed,) = gateway.list_corrections(agent="ap-reconciler")
    assert {name: getattr(shown, name) for name in Correction.__struct_fields__} == msgspec.structs.asdict(listed)


def test_what_is_not_given_has_its_default(gateway: Gateway) -> None:
    """AG-01, AG-55: given the three that are needed, when it is recorded, then it is the agent's, without tags."""
    shown = gateway.show_correction(recorded(gateway))
    assert (shown.visibility, shown.tags, shown.field, shown.user) == ("agent", (), None, None)


FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("agent", {"agent": ""}),
    ("original_value", {"original_value": ""}),
    ("original_value", {"original_value": "x" * 8_001}),
    ("corrected_value", {"corrected_value": None}),
    ("corrected_value", {"corrected_value": 7}),
    ("corrected_value", {"corrected_value": "", "memory": "home"}),
    ("user", {"visibility": "user"}),
    ("visibility", {"visibility": "project"}),
    ("visibility", {"visibility": "everybody"}),
    ("tags", {"tags": "ap"}),
    ("tags", {"tags": ["t"] * 101}),
    ("reason", {"reason": "x" * 4_097}),
    ("field", {"field": "a\x00b"}),
    ("if_revision", {"if_revision": 1}),
]


def test_what_cannot_be_taken_names_its_field(gateway: Gateway) -> None:
    """AG-02, AG-03, AG-04, AG-07, AG-08: given a fault in a field, when it is recorded, then that field is named."""
    named: list[str] = []
    for _, changes in FAULTS:
        given = {"agent": "ap", "original_value": "THC", "corrected_value": "DTHC", **changes}
        with refused("VALIDATION_FAILED") as refusal:
            gateway.record_correction(**given)
        (fault,) = refusal.error.details["fields"]
        named.append(fault["field"].partition(".")[0])
    assert named == [field for field, _ in FAULTS]


def test_a_field_that_should_be_empty_can_be_said(gateway: Gateway) -> None:
    """AG-02: given an empty corrected value, when it is recorded, then it is kept as empty."""
    assert gateway.show_correction(recorded(gateway, corrected="")).corrected_value == ""


def test_two_equal_values_correct_nothing(gateway: Gateway, ledger_url: str) -> None:
    """Given the original value as the corrected one, when it is recorded, then NO_CHANGE, and nothing is stored."""
    before = last_position(ledger_url)
    with refused("NO_CHANGE"):
        recorded(gateway, "THC", "THC")
    assert last_position(ledger_url) == before


def test_a_policy_names_the_agents_that_are_corrected(gateway: Gateway) -> None:
    """AG-05: given a policy that names agents, when another one is corrected, then NOT_CONFIGURED."""
    gateway.policy(**{"corrections.agents": ["ap"], "corrections.invalidate_contradicted": False})
    with refused("NOT_CONFIGURED"):
        recorded(gateway, agent="other")
    assert gateway.show_correction(recorded(gateway)).contradiction == "off"


def test_a_repeated_key_records_once(gateway: Gateway, ledger_url: str) -> None:
    """AG-11: given a key, when the same is recorded twice with it, then there is one record, and one answer."""
    given: dict[str, Any] = {"agent": "ap", "original_value": "a", "corrected_value": "b", "idempotency_key": "k"}
    first = gateway.record_correction(**given)
    before = last_position(ledger_url)
    again = gateway.record_correction(**given)
    assert (again.correction_id, again.replayed) == (first.correction_id, True)
    assert last_position(ledger_url) == before
    with refused("IDEMPOTENCY_KEY_REUSED"):
        gateway.record_correction(**{**given, "corrected_value": "c"})


def test_a_dry_run_stores_nothing(gateway: Gateway, ledger_url: str) -> None:
    """Given a dry run, when it is recorded, then every check is made and nothing is stored."""
    gateway.remember("a")
    before = last_position(ledger_url)
    receipt = gateway.record_correction(agent="ap", original_value="a", corrected_value="b", dry_run=True)
    assert (receipt.outcome, last_position(ledger_url)) == ("unchanged", before)
    assert gateway.list_corrections() == ()


def test_one_event_tells_of_a_record(gateway: Gateway, ledger_url: str) -> None:
    """AG-26: given a ledger that knows the names, when a correction is recorded, then that is the one event of it."""
    recorded(gateway, "a", "b")
    before = last_position(ledger_url)
    correction = recorded(gateway, "c", "d", run="r1")
    (event,) = written(ledger_url, above=before)
    assert (event.type, event.stream) == ("correction.recorded.v1", correction)


# ---------------------------------------------------------------- with a memory


def test_a_correction_with_a_memory_corrects_it_in_the_same_append(gateway: Gateway) -> None:
    """Given a memory, when a correction names it, then one append records the one and corrects the other."""
    old = gateway.remember("Berlin", memory_id="home")
    receipt = gateway.record_correction(
        agent="ap", original_value="Berlin", corrected_value="Hamburg", memory="home", reason="moved", if_revision=1
    )
    assert [event.type for event in receipt.events][-2:] == ["correction.recorded.v1", "revision.corrected.v1"]
    assert (receipt.memory_id, receipt.superseded) == ("home", (old.revision_id,))
    head = gateway.explain("home")
    assert (head.content, head.revision_id, head.audit[-1].reason) == ("Hamburg", receipt.revision_id, "moved")
    assert gateway.show_correction(receipt.correction_id or "").memory == old.revision_id


def test_every_refusal_of_correct_keeps_the_record_out_too(gateway: Gateway, ledger_url: str) -> None:
    """Given memories that cannot be corrected so, when a correction names them, then nothing of it is stored."""
    old = gateway.remember("Berlin", memory_id="home").revision_id
    gateway.correct("home", "Hamburg")
    gateway.remember("x", memory_id="gone")
    gateway.retire("gone")
    before = last_position(ledger_url)
    for code, memory, more in (
        ("MEMORY_ALREADY_SUPERSEDED", old, {}),
        ("MEMORY_NOT_FOUND", "nowhere", {}),
        ("INVALID_TRANSITION", "gone", {}),
        ("NO_CHANGE", "home", {}),
        ("STALE_REVISION", "home", {"if_revision": 1, "corrected": "Bremen"}),
    ):
        with refused(code):
            recorded(gateway, "Berlin", **{"corrected": "Hamburg", "memory": memory, **more})
    assert last_position(ledger_url) == before
    assert gateway.list_corrections() == ()


def test_an_agent_corrects_no_memory_by_a_record(open_here: Here, ledger_url: str) -> None:
    """Given an agent, when its correction names a memory, then it lacks the permission `correct`."""
    open_here().remember("Berlin", memory_id="home")
    agent, before = open_here(actor="agent:ap"), last_position(ledger_url)
    with refused("FORBIDDEN_ACTOR") as refusal:
        recorded(agent, "Berlin", "Hamburg", memory="home")
    assert refusal.error.details["permission"] == "correct"
    assert last_position(ledger_url) == before


# ---------------------------------------------------------------- what becomes of it


def test_what_an_agent_reports_waits_for_a_person(open_here: Here) -> None:
    """AG-50: given a correction by an agent, when a person confirms it, then it is active, and still the agent's."""
    agent, ana = open_here(actor="agent:ap"), open_here()
    correction = recorded(agent)
    reported = ana.show_correction(correction)
    assert (reported.state, reported.origin, reported.contradiction) == ("unconfirmed", "agent", "off")
    for act in (
        lambda: agent.confirm_correction(correction),
        lambda: agent.supersede_correction(correction, corrected_value="x"),
        lambda: agent.revoke_correction(correction, reason="r"),
    ):
        with refused("FORBIDDEN_ACTOR"):
            act()
    ana.confirm_correction(correction, if_revision=1)
    confirmed = ana.show_correction(correction)
    assert (confirmed.state, confirmed.origin, confirmed.contradiction) == ("active", "agent", "done")


def test_a_successor_says_the_same_but_for_its_value(gateway: Gateway, ledger_url: str) -> None:
    """Given a correction, when it is superseded, then one append ends it and records one that inherits the rest."""
    old = gateway.record_correction(**EVERYTHING).correction_id or ""
    before = last_position(ledger_url)
    receipt = gateway.supersede_correction(old, corrected_value="OTHC", reason="a typing error")
    assert types(written(ledger_url, above=before)) == ["correction.recorded", "correction.superseded"]
    assert (receipt.superseded, receipt.warnings) == ((old,), ())
    ended, successor = gateway.show_correction(old), gateway.show_correction(receipt.correction_id or "")
    assert (ended.state, ended.superseded_by) == ("superseded", successor.correction_id)
    assert {name: getattr(successor, name) for name in EVERYTHING} == {**EVERYTHING, "corrected_value": "OTHC"}
    with refused("INVALID_TRANSITION") as refusal:
        gateway.supersede_correction(old, corrected_value="XTHC")
    assert refusal.error.details["superseded_by"] == successor.correction_id


def test_superseding_by_what_is_said_already_is_no_change(gateway: Gateway) -> None:
    """Given the same value again, or the original one, when a correction is superseded, then NO_CHANGE."""
    correction = recorded(gateway, "THC", "DTHC")
    for value in ("DTHC", "THC"):
        with refused("NO_CHANGE"):
            gateway.supersede_correction(correction, corrected_value=value)


def ended_by(gateway: Gateway, correction: str, barrier: Barrier) -> str:
    """Supersede a correction once everybody is ready; return the successor that it has then, one's own or not."""
    barrier.wait()
    try:
        return f"mine {gateway.supersede_correction(correction, corrected_value='x').correction_id}"
    except ConflictError as error:
        assert error.code == "INVALID_TRANSITION"
        return f"theirs {error.details['superseded_by']}"


def test_of_two_who_end_a_correction_at_once_one_does(open_here: Here) -> None:
    """D20: given two gateways, when both supersede one correction at once, then one wins, and the other is told who."""
    gateways = [open_here(), open_here()]
    for _ in range(5):
        old, barrier = recorded(gateways[0]), Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            told = [*pool.map(ended_by, gateways, [old] * 2, [barrier] * 2)]
        winner = gateways[1].show_correction(old).superseded_by
        assert sorted(told) == [f"mine {winner}", f"theirs {winner}"]


def test_revoking_leaves_the_record_and_takes_it_from_the_lists(gateway: Gateway) -> None:
    """AG-44: given a correction, when it is revoked, then lists and counts miss it, and show still tells of it."""
    correction = recorded(gateway, original_input="invoice 7")
    gateway.revoke_correction(correction, reason="a misreading")
    assert gateway.list_corrections() == () == gateway.eval_cases()
    assert gateway.correction_stats().total == 0
    shown = gateway.show_correction(correction)
    assert (shown.state, shown.audit[-1].actor, shown.audit[-1].reason) == ("revoked", "human:ana", "a misreading")
    assert [entry.type for entry in shown.audit] == ["correction.recorded.v1", "correction.revoked.v1"]
    assert [item.correction_id for item in gateway.list_corrections(states=["revoked"])] == [correction]


def test_ending_a_correction_leaves_its_memory_and_says_so(gateway: Gateway) -> None:
    """Given a correction of a memory, when it is superseded and revoked, then the memory stays, and is named."""
    old = gateway.remember("Berlin", memory_id="home").revision_id
    first = recorded(gateway, "Berlin", "Hamburg", memory="home")
    receipt = gateway.supersede_correction(first, corrected_value="Bremen")
    assert receipt.warnings == (WARNED.format(old),)
    given: dict[str, Any] = {"reason": "r", "idempotency_key": "k"}
    told = [gateway.revoke_correction(receipt.correction_id or "", **given) for _ in range(2)]
    assert [item.warnings for item in told] == [(WARNED.format(old),)] * 2
    assert [item.replayed for item in told] == [False, True]
    assert gateway.show("home").content == "Hamburg"


def test_a_version_that_has_moved_on_is_stale(gateway: Gateway) -> None:
    """Given a correction at version 1, when it is revoked as of version 2, then STALE_REVISION."""
    correction = recorded(gateway)
    with refused("STALE_REVISION") as refusal:
        gateway.revoke_correction(correction, reason="r", if_revision=2)
    assert refusal.error.details == {"expected": 2, "found": 1}


# ---------------------------------------------------------------- whose it is


def test_another_projects_correction_is_not_there(open_here: Here) -> None:
    """D26: given a correction of one project, when another one asks for it in any way, then it is told of none."""
    correction = recorded(open_here(), visibility="tenant")
    other = open_here(project="other")
    recorded(other)
    for act in (
        lambda: other.show_correction(correction),
        lambda: other.revoke_correction(correction, reason="r"),
        lambda: other.show_correction(UNKNOWN),
        lambda: other.show_correction("rev_01J9ZKAAAAAAAAAAAAAAAAAAAA"),
        lambda: other.show_correction("ap"),
    ):
        with refused("CORRECTION_NOT_FOUND"):
            act()
    assert len(other.list_corrections()) == other.correction_stats().total == 1
    assert other.complete(correction) == ()


def test_an_abbreviated_id_is_completed(gateway: Gateway) -> None:
    """Given a correction, when the beginning of its id is completed, then it is the one."""
    correction = recorded(gateway)
    assert gateway.complete(correction[:20]) == (correction,)


def test_an_edited_row_revives_and_moves_nothing(open_here: Here, ledger_url: str) -> None:
    """Given edited rows, when corrections are listed, then their own events say what is listed, and how."""
    open_here.broken = True
    gateway = open_here()
    revoked, active = recorded(gateway, "a", "b"), recorded(gateway, "c", "d")
    gateway.revoke_correction(revoked, reason="r")
    tamper(
        ledger_url,
        ("UPDATE corrigenda.correction SET state = 'active' WHERE correction = %s", [revoked]),
        (
            "INSERT INTO corrigenda.correction (correction, ledger, gen, project, visibility, origin, state,"
            " content_seq)"
            " SELECT %s, ledger, gen, project, 'agent', 'human', state, content_seq FROM corrigenda.correction"
            " WHERE correction = %s",
            [UNKNOWN, active],
        ),
    )
    assert [item.correction_id for item in gateway.list_corrections()] == [active]
    tamper(ledger_url, ("UPDATE corrigenda.correction SET content_seq = 0 WHERE correction = %s", [active]))
    assert gateway.list_corrections() == ()
