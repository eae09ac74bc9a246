"""What cannot be taken is refused by its code, in one paragraph, and leaves nothing behind."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.service import Gateway
from gateway.shapes import requests
from tests.house import last_position, refused
from tests.integration.conftest import Here

UNSAYABLE = {
    "empty": "",
    "blank": " \t\n\u2003",
    "too long": "x" * 8_001,
    "NUL": "a\x00b",
    "lone surrogate": "a\ud800b",
    "reversed pair": "\udc00\ud800",
}
STRANGE = {
    "emoji": "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁳󠁣󠁴󠁿 ❤️",
    "right to left": "שלום \u202e مرحبا \u202c ok",
    "longest, astral": "𝒳" * 8_000,
    "control": "a\x01\x1b[31m\x7f\u2028b",
    "decomposed": "e\u0301 and \u00e9",
    "quotes": "\"\\u0000 \\ \\\\u0000 </script> '; DROP TABLE event; --",
    "padded": "  kept as it is \n",
    "non-characters": "\ufffe\uffff\U0010ffff",
}
Act = Callable[[Gateway, Any], object]
ACTS: dict[str, Act] = {
    "remember": lambda gateway, value: gateway.remember(value),
    "correct": lambda gateway, value: gateway.correct("m", value),
    "search": lambda gateway, value: gateway.search(value),
    "revoke": lambda gateway, value: gateway.revoke("m", reason=value),
    "unlink": lambda gateway, value: gateway.unlink("m", "n", reason=value),
    "tag": lambda gateway, value: gateway.remember("a", tags=["good", value]),
    "source": lambda gateway, value: gateway.remember("a", sources=[value]),
    "agent": lambda gateway, value: gateway.remember("a", agent=value),
    "seen by": lambda gateway, value: gateway.search("a", user=value),
}
REFERENCED: dict[str, Act] = {
    "show": lambda gateway, value: gateway.show(value),
    "explain": lambda gateway, value: gateway.explain(value),
    "history": lambda gateway, value: gateway.history(value),
    "lineage": lambda gateway, value: gateway.lineage(value),
    "correct": lambda gateway, value: gateway.correct(value, "b"),
    "retire": lambda gateway, value: gateway.retire(value),
    "revoke": lambda gateway, value: gateway.revoke(value, reason="r"),
    "restore": lambda gateway, value: gateway.restore(value),
    "link newer": lambda gateway, value: gateway.link(value, "m"),
    "unlink older": lambda gateway, value: gateway.unlink("m", value, reason="r"),
}


@pytest.fixture
def filled(gateway: Gateway) -> Gateway:
    """Return a gateway to the memories m and n."""
    gateway.remember("text m", memory_id="m")
    gateway.remember("text n", memory_id="n")
    return gateway


@pytest.mark.parametrize("act", ACTS)
def test_a_text_that_cannot_be_kept_is_refused_whole(filled: Gateway, ledger_url: str, act: str) -> None:
    """RM-08, RC-24: given empty, blank, too long, NUL or surrogate text, it is refused by field, and not stored."""
    before = last_position(ledger_url)

    for what, text in UNSAYABLE.items():
        with refused("VALIDATION_FAILED") as refusal:
            ACTS[act](filled, text)
        assert len(refusal.details["fields"]) == 1, what
        assert "x" * 100 not in refusal.error.message
        assert refusal.error.exit_code == 2

    assert last_position(ledger_url) == before


def test_strange_text_comes_back_as_it_was(gateway: Gateway) -> None:
    """RC-24, C-22: given emoji, right-to-left, control and 8,000 astral characters, each comes back unchanged."""
    for what, text in STRANGE.items():
        made = gateway.remember(text, reason=text[:4_096], tags=[text[:255]])
        shown = gateway.show(made.revision_id or "")
        assert (shown.content, shown.tags) == (text, (text[:255],)), what
        assert gateway.explain(made.revision_id or "").audit[-1].reason == text[:4_096]
        assert text in [hit.content for hit in gateway.search(text, k=20).hits], what


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("reason", "x" * 4_096, "x" * 4_097),
        ("tags", ["t" * 255] * 100, ["t"] * 101),
        ("tags", ["𝒳" * 255], ["𝒳" * 256]),
        ("sources", ["s" * 2_000], ["s" * 2_001]),
        ("confidence", "0.123456", "0.1234567"),
        ("confidence", "1", "1.000001"),
        ("confidence", "0", "-0.1"),
        ("confidence", "0.5", "NaN"),
        ("confidence", "0.5", "Infinity"),
        ("confidence", "0.5", "half"),
        ("confidence", "1.0", "0.1e1"),
        ("confidence", "0.0", "-1"),
        ("confidence", "1.000000", "2"),
        ("confidence", "0.5", "٠.٥"),
        ("confidence", "0.5", " 0.5"),
        ("confidence", "0.5", 0.5),
        ("kind", "task", "Task"),
        ("visibility", "tenant", "world"),
        ("origin", "import", "robot"),
        ("valid_from", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05"),
        ("valid_from", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00"),
        ("valid_to", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-01:00"),
        ("valid_from", "0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ("valid_to", "9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z"),
        ("valid_from", "2016-12-31T23:59:59Z", "2016-12-31T23:59:60Z"),
        ("valid_from", "2016-12-31t23:59:59.123456789z", "2016-12-31T23:59:61Z"),
        ("valid_from", "2026-01-02 03:04:05+00:00", "2026-W01-5T03:04:05Z"),
        ("valid_from", "2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05+00:00:30"),
        ("valid_from", "2026-01-02T03:04:05+23:59", "2026-01-02T03:04:05+24:00"),
        ("valid_from", "2026-01-02T03:04:05Z", "2026-01-02"),
        ("review_by", "2026-02-28T00:00:00+14:00", "2026-02-30T00:00:00Z"),
        ("memory_id", "m", "m/n"),
    ],
)
def test_each_field_has_its_bound(gateway: Gateway, ledger_url: str, field: str, good: Any, bad: Any) -> None:
    """RM-04, RM-08, RC-24, AG-04: given the last value within a field's bound it is taken; the next one is named."""
    gateway.remember("a", **{field: good})
    before = last_position(ledger_url)

    with refused("VALIDATION_FAILED") as refusal:
        gateway.remember("a", **{field: bad})

    assert [fault["field"].partition(".")[0] for fault in refusal.details["fields"]] == [field]
    assert last_position(ledger_url) == before


def test_a_hundred_thousand_tags_are_one_fault(gateway: Gateway, ledger_url: str) -> None:
    """RM-08: given 100,000 tags, when they are to be kept or asked for, then one short refusal, and nothing stored."""
    before = last_position(ledger_url)
    tags = [f"tag {number}" for number in range(100_000)]
    for act in (
        lambda: gateway.remember("a", tags=tags),
        lambda: gateway.search("a", tags=tags),
        lambda: gateway.list_memories(tags=tags),
    ):
        with refused("VALIDATION_FAILED") as refusal:
            act()
        assert [fault["field"] for fault in refusal.details["fields"]] == ["tags"]
        assert len(refusal.error.message) < 300
    assert last_position(ledger_url) == before


def test_an_unknown_field_is_refused_by_its_name() -> None:
    """RC-39: given a body with a field that the request has not, when it is parsed, then VALIDATION_FAILED names it."""
    with refused("VALIDATION_FAILED") as refusal:
        requests.parse(requests.ListRequest, signal="up")
    assert refusal.details["fields"] == [{"field": "signal", "problem": "is not a field of this request"}]


def test_every_fault_of_a_request_is_named_at_once(gateway: Gateway) -> None:
    """Given a request with four faults, when it is refused, then all four fields are named."""
    gateway.remember("a")
    with refused("VALIDATION_FAILED") as refusal:
        gateway.remember("", kind="x", confidence="2", memory_id="/")

    assert {fault["field"] for fault in refusal.details["fields"]} == {"content", "kind", "confidence", "memory_id"}


def test_an_end_before_its_beginning_is_refused(gateway: Gateway) -> None:
    """Given a validity that ends before it begins, by zones too, when it is remembered, then valid_to is named."""
    gateway.remember("a", valid_from="2026-01-01T00:00:00Z", valid_to="2026-01-01T00:00:00Z")

    with refused("VALIDATION_FAILED") as refusal:
        gateway.remember("b", valid_from="2026-01-01T00:00:00Z", valid_to="2026-01-01T00:30:00+01:00")

    assert [fault["field"] for fault in refusal.details["fields"]] == ["valid_to"]


def test_k_has_its_bounds(gateway: Gateway) -> None:
    """Given a k outside 1 to 10,000, when a search is asked, then VALIDATION_FAILED names it."""
    gateway.remember("a")
    outside: tuple[Any, ...] = (0, -1, 10_001, "many")
    for k in outside:
        with refused("VALIDATION_FAILED") as refusal:
            gateway.search("a", k=k)
        assert [fault["field"] for fault in refusal.details["fields"]] == ["k"]

    assert len(gateway.search("a", k=10_000).hits) == 1


@pytest.mark.parametrize("act", REFERENCED)
def test_what_can_be_no_id_is_refused_not_crashed_on(filled: Gateway, ledger_url: str, act: str) -> None:
    """LM-36: given an id that is empty, of 129 characters, not Unicode or no text at all, then VALIDATION_FAILED."""
    before = last_position(ledger_url)

    for reference in ("", "x" * 129, "a\ud800", "a\x00", None, 7):
        with refused("VALIDATION_FAILED"):
            REFERENCED[act](filled, reference)

    assert last_position(ledger_url) == before


def test_a_string_is_not_a_list_of_letters(gateway: Gateway) -> None:
    """AG-08: given one string where a list of tags, sources or kinds belongs, then the field is named."""
    gateway.remember("a")
    string: Any = "fact"
    asked: dict[str, Callable[[], object]] = {
        "tags": lambda: gateway.remember("b", tags=string),
        "sources": lambda: gateway.remember("b", sources=string),
        "kinds": lambda: gateway.search("b", kinds=string),
    }
    for field, ask in asked.items():
        with refused("VALIDATION_FAILED") as refusal:
            ask()
        assert [fault["field"] for fault in refusal.details["fields"]] == [field]


def test_without_a_project_nothing_is_guessed(open_here: Here, ledger_url: str) -> None:
    """OH-43: given no project, when something is remembered, searched, or named by a caller's id, it is refused."""
    made = open_here().remember("a", memory_id="m")
    anyone = open_here(project=None)
    before = last_position(ledger_url)

    asked: tuple[Callable[[], object], ...] = (
        lambda: anyone.remember("b"), lambda: anyone.search("a"), lambda: anyone.show("m"),
    )  # fmt: skip
    for ask in asked:
        with refused("VALIDATION_FAILED") as refusal:
            ask()
        assert [fault["field"] for fault in refusal.details["fields"]] == ["project"]
    assert anyone.show(made.revision_id or "").content == "a"
    assert last_position(ledger_url) == before


def test_another_tenant_is_not_configured(open_here: Here, ledger_url: str) -> None:
    """RC-12: given a database with a ledger, when another tenant is asked for, then NOT_CONFIGURED, exit 3."""
    open_here().remember("a")
    before = last_position(ledger_url)

    with refused("NOT_CONFIGURED") as refusal:
        open_here(tenant="other")

    assert refusal.error.exit_code == 3
    assert last_position(ledger_url) == before
