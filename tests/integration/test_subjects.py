"""Whom a memory concerns: a name in the payload, a keyed digest in each envelope that says something of that person."""

from pathlib import Path

import pytest

from gateway.service import Gateway
from ledger.keys import read_ledger_key
from tests.house import last_position, refused, rows
from tests.integration.conftest import Here

ANA, BO = "ana@example.com", "+49 171 1234567"


def digests(ledger_url: str, home: Path, *names: str) -> list[str]:
    """Return the digests of persons as an auditor with the ledger's key computes them, in an envelope's order."""
    ledger = rows(ledger_url, "SELECT ledger FROM corrigenda.head")[0][0]
    keys = read_ledger_key(home / "keys" / "ledger.key").for_ledger(ledger)
    return sorted(keys.keyed("subject", name).hex() for name in names)


def concerned(ledger_url: str) -> dict[str, list[list[str]]]:
    """Return the subjects of every event as its envelope states them, by its type, in order."""
    found: dict[str, list[list[str]]] = {}
    query = "SELECT convert_from(envelope, 'UTF8')::json FROM corrigenda.event ORDER BY seq"
    for (envelope,) in rows(ledger_url, query):
        found.setdefault(envelope["type"].removesuffix(".v1"), []).append(envelope["subjects"])
    return found


def test_a_person_is_named_in_the_payload_and_hashed_in_the_envelope(
    gateway: Gateway, ledger_url: str, home: Path
) -> None:
    """Given subjects, named twice too, then the answer has each once, and no envelope a letter of them."""
    made = gateway.remember("Ana moved in with Bo", memory_id="m", subjects=[BO, ANA, BO])

    assert gateway.show("m").subjects == gateway.search("Ana moved").hits[0].subjects == (BO, ANA)
    assert concerned(ledger_url)["memory.remembered"] == [digests(ledger_url, home, ANA, BO)]
    hashed = b"".join(bytes(one) for (one,) in rows(ledger_url, "SELECT envelope FROM corrigenda.event"))
    assert b"ana@" not in hashed and b"+49 171" not in hashed
    assert (gateway.show_event(made.position).payload or {})["subjects"] == (BO, ANA)


def test_whatever_happens_to_the_memory_concerns_them(open_here: Here, ledger_url: str, home: Path) -> None:
    """Given a memory about a person, then each event of it, and of a correction of it, has that one's digest."""
    open_here().remember("a", memory_id="m", subjects=[ANA])
    gateway = open_here()
    gateway.correct("m", "b", reason="r")
    gateway.patch("m", tags=["t"])
    gateway.set_policy({"verifier_is_producer": "allow"})
    gateway.admit("m", reason="r")
    made = gateway.record_correction(agent="bot", original_value="b", corrected_value="c", memory="m")
    replaced = gateway.supersede_correction(made.correction_id or "", corrected_value="d")
    gateway.revoke_correction(replaced.correction_id or "", reason="r")
    gateway.forget("m")
    gateway.restore("m")
    gateway.revoke("m", reason="r")

    one = digests(ledger_url, home, ANA)
    told = concerned(ledger_url)
    for type_ in (
        "memory.remembered", "revision.corrected", "metadata.patched", "revision.admitted", "correction.recorded",
        "correction.superseded", "correction.revoked", "memory.forgotten", "memory.restored", "revision.revoked",
    ):  # fmt: skip
        assert told[type_] and all(found == one for found in told[type_]), type_
    assert all(found == [] for type_ in ("name.assigned", "policy.set") for found in told[type_])
    assert [item.subjects for item in gateway.history("m").items] == [(ANA,)] * 3


def test_a_merge_concerns_all_and_another_text_only_its_own(open_here: Here, ledger_url: str, home: Path) -> None:
    """Given memories about two persons, a merge concerns both, and a text that begins anew whom it names."""
    gateway = open_here()
    gateway.remember("a", memory_id="m", subjects=[ANA])
    gateway.remember("b", memory_id="n", subjects=[BO])
    gateway.supersede(["m", "n"], ["both"])
    assert gateway.show("m").subjects == (ANA, BO)
    gateway.remember("of Ana still", predecessor="m", hold=True)
    gateway.remember("of Bo alone", predecessor="m", subjects=[BO])
    gateway.retire("m")
    gateway.remember("of nobody", memory_id="m")

    corrected = concerned(ledger_url)["revision.corrected"]
    assert corrected == [digests(ledger_url, home, ANA, BO), digests(ledger_url, home, BO)]
    held = concerned(ledger_url)["memory.remembered"]
    assert held[2:] == [digests(ledger_url, home, ANA, BO), []]
    assert concerned(ledger_url)["memory.retired"] == [digests(ledger_url, home, BO)]


def test_a_request_without_subjects_is_the_one_it_was(gateway: Gateway, ledger_url: str) -> None:
    """RC-41: given a key, the same request is told again, also with its subjects; with others the key is refused."""
    gateway.remember("a", idempotency_key="k", subjects=[ANA])
    before = last_position(ledger_url)

    assert gateway.remember("a", idempotency_key="k", subjects=(ANA,)).replayed
    with refused("IDEMPOTENCY_KEY_REUSED"):
        gateway.remember("a", idempotency_key="k")
    assert last_position(ledger_url) == before


@pytest.mark.parametrize("bad", [[""], [" "], "ana", [5], ["x" * 256], [f"s{n}" for n in range(101)], ["a\x00"], None])
def test_what_names_nobody(gateway: Gateway, ledger_url: str, bad: object) -> None:
    """LM-36: given no list of at most 100 names, then VALIDATION_FAILED names the field, and nothing is stored."""
    gateway.remember("a")
    before = last_position(ledger_url)

    with refused("VALIDATION_FAILED") as refusal:
        gateway.remember("b", subjects=bad)  # pyright: ignore[reportArgumentType] - on purpose

    assert {fault["field"].split(".")[0] for fault in refusal.details["fields"]} == {"subjects"}
    assert last_position(ledger_url) == before
