"""What was forgotten is served by no reader of memories, in whatever form it asks, now or about the past."""

import json
from collections.abc import Callable, Mapping

import msgspec
import pytest

from cli.views import graph
from gateway.service import Gateway

SECRET = "zanzibar"
TEXT = f"the safe is in {SECRET}"
INSTITUTIONAL = {
    "id": "p1", "role": "procedure", "source_refs": ["s"], "boundary_conditions": ["always"],
    "steps": [{"id": "1", "instruction": f"go to {SECRET}"}],
    "review": {"reviewed_at": "2026-01-02T03:04:05Z", "expires_at": None},
}  # fmt: skip
APPLIES = {"match": "all", "conditions": [{"id": "c", "kind": "topic", "value": SECRET}]}

Reading = Callable[[Gateway], object]
READINGS: Mapping[str, Reading] = {
    "show": lambda gateway: gateway.show("safe"),
    "explain": lambda gateway: gateway.explain("safe"),
    "explain, in the past": lambda gateway: gateway.explain("safe", at=_born(gateway)),
    "history": lambda gateway: gateway.history("safe"),
    "history, as patches": lambda gateway: gateway.history("safe", patch=True),
    "lineage": lambda gateway: gateway.lineage("safe"),
    "lineage, as a tree": lambda gateway: graph.tree(gateway.lineage("safe")),
    "lineage, as a graph": lambda gateway: graph.lanes(gateway.lineage("safe")),
    "lineage, as dot": lambda gateway: graph.dot(gateway.lineage("safe")),
    "lineage of the correction": lambda gateway: gateway.lineage(_correction(gateway)),
    "diff": lambda gateway: gateway.diff("safe", "other"),
    "diff of the project": lambda gateway: [*gateway.diff_between(_born(gateway) - 1, _born(gateway))],
    "diff up to now": lambda gateway: [*gateway.diff_between(0, _head(gateway))],
    "search": lambda gateway: gateway.search(f"where is {SECRET}", why=True),
    "search in the past": lambda gateway: gateway.search(TEXT, at_position=_born(gateway)),
    "search of the past": lambda gateway: gateway.search(TEXT, as_of="2999-01-01T00:00:00Z"),
    "list": lambda gateway: gateway.list_memories(states=["forgotten"]),
    "list of one": lambda gateway: gateway.list_memories(states=["forgotten", "superseded"], memory="safe"),
    "event": lambda gateway: [
        gateway.show_event(item.seq) for item in gateway.events() if item.stream.startswith("mem_")
    ],
    "trace": lambda gateway: [
        item
        for trace in dict.fromkeys(item.trace_id for item in gateway.events())
        for item in gateway.show_trace(trace).items
        if item.stream.startswith("mem_")
    ],
}


def _born(gateway: Gateway) -> int:
    """Return the position at which the text with all that it holds to was there."""
    return next(item.seq for item in gateway.events() if item.type == "revision.corrected.v1")


def _head(gateway: Gateway) -> int:
    return [item.seq for item in gateway.events()][-1]


def _correction(gateway: Gateway) -> str:
    return gateway.list_corrections()[0].correction_id


@pytest.fixture
def forgotten(gateway: Gateway) -> Gateway:
    """Return a gateway to a memory whose three texts, the last by a correction, were forgotten."""
    made = [
        gateway.remember(f"{TEXT}, they say", memory_id="safe", kind="procedure"),
        gateway.remember(TEXT, kind="procedure", predecessor="safe", applies=APPLIES, institutional=INSTITUTIONAL),
        gateway.record_correction(
            agent="bot", original_value=TEXT, corrected_value=f"{TEXT} now", memory="safe", visibility="tenant"
        ),
    ]
    gateway.remember("something else", memory_id="other", kind="procedure")
    for receipt in made:
        gateway.forget(receipt.revision_id or "")
    return gateway


def test_no_reader_serves_it(forgotten: Gateway) -> None:
    """RC-10, RC-31: given a forgotten memory, no reader's answer has a word of its text, nor of what it holds to."""
    answers = {name: read(forgotten) for name, read in READINGS.items()}

    told = {
        name: one if isinstance(one, str) else json.dumps(msgspec.to_builtins(one)) for name, one in answers.items()
    }
    assert [name for name, text in told.items() if SECRET in text] == []


def test_what_is_restored_is_served_again(forgotten: Gateway) -> None:
    """Given the forgotten memory, when all of it is restored, then the correction of it is told again, and not before.

    A correction says what was before and what came of it, so it is told once neither is forgotten any more.
    """

    def told() -> list[bool]:
        return [SECRET in node.label for node in forgotten.lineage("safe").nodes if node.type == "correction"]

    _, before, after = (item.revision_id for item in forgotten.history("safe").items)
    forgotten.restore(after)
    assert told() == [False]

    forgotten.restore(before)

    assert told() == [True]
