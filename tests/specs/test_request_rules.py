"""What a request may say: the rules of the door that need no ledger."""

from datetime import timedelta
from typing import Any

import pytest

from gateway.shapes.requests import AdmitRequest, PruneRequest, RememberRequest, Request, parse
from ledger.errors import CorrigendaError

HASH = "b3:" + "0a" * 32
LEARNED: dict[str, Any] = {
    "content": "Ana drinks tea", "kind": "learning", "origin": "llm_extracted", "user": "ana",
    "quote": "tea, not coffee", "conversation": "Ana said: I drink TEA,\n  not coffee, at work.",
}  # fmt: skip


def fault(model: type[Request], **fields: Any) -> str:
    """Return the only field that a request is refused for."""
    with pytest.raises(CorrigendaError) as caught:
        parse(model, **fields)
    assert caught.value.code == "VALIDATION_FAILED"
    (found,) = caught.value.details["fields"]
    return found["field"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"quote": None, "conversation": None}, "quote"),
        ({"quote": None}, "quote"),
        ({"conversation": None}, "conversation"),
        ({"quote": "tea not coffee"}, "quote"),
        ({"quote": "  "}, "quote"),
        ({"quote": "teas, not coffee"}, "quote"),
        ({"user": None}, "user"),
        ({"user": None, "visibility": "project"}, "visibility"),
        ({"visibility": "project"}, "visibility"),
        ({"conversation": "x" * 1_000_001}, "conversation"),
    ],
)
def test_an_extracted_learning_needs_user_and_quote(changes: dict[str, Any], field: str) -> None:
    """AG-45, AG-48, AG-55: no user, no quote, or one that was not said, is refused by its field."""
    assert fault(RememberRequest, **{**LEARNED, **changes}) == field


@pytest.mark.parametrize("quote", ["tea, not coffee", " Tea,   NOT\tcoffee ", "I DRINK TEA, NOT", "Ana said: I drink"])
def test_a_quote_counts_whatever_its_case_and_spaces(quote: str) -> None:
    """AG-45: case and white space make no difference, on either side."""
    assert parse(RememberRequest, **{**LEARNED, "quote": quote}).quote == quote


def test_other_texts_need_no_quote_but_a_true_one() -> None:
    """AG-45: an extracted fact and a person's learning stand without one; a quote that is given has to be one."""
    assert parse(RememberRequest, content="c", origin="llm_extracted").quote is None
    assert parse(RememberRequest, content="c", kind="learning", user="ana").shown_to == "user"
    assert fault(RememberRequest, content="c", quote="tea", conversation="coffee") == "quote"
    assert fault(RememberRequest, content="c", quote="tea") == "conversation"


def test_a_learning_is_its_users() -> None:
    """AG-55: a learning without any scope is refused: it would be nobody's."""
    assert fault(RememberRequest, content="c", kind="learning") == "user"


@pytest.mark.parametrize("name", ["trust", "state", "verifier", "reviewer", "author", "verified_at"])
def test_no_body_gives_itself_trust(name: str) -> None:
    """XC-10: whoever acts and how far something is trusted is no field of any request."""
    for model, fields in ((RememberRequest, {"content": "c"}), (AdmitRequest, {"reason": "r"})):
        assert fault(model, **fields, **{name: "verified"}) == name


@pytest.mark.parametrize("age", ["", "90", "d", "0d", "-1d", "90 d", "1.5d", "90D", "1000000d", "九d", 90, None])
def test_an_age_that_is_none(age: object) -> None:
    """AG-47: an age is a number of hours, days or weeks, and nothing else."""
    assert fault(PruneRequest, older_than=age) == "older_than"


@pytest.mark.parametrize(
    ("age", "expected"), [("90d", timedelta(90)), ("36h", timedelta(1, 43_200)), ("4w", timedelta(28))]
)
def test_an_age(age: str, expected: timedelta) -> None:
    """AG-47: hours, days and weeks."""
    assert parse(PruneRequest, older_than=age).older_than == expected


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"reason": "r", "evidence": ["b3:00"]}, "evidence.0"),
        ({"reason": "r", "evidence": [HASH.upper()]}, "evidence.0"),
        ({"reason": "r", "evidence": HASH}, "evidence"),
        ({"reason": "r", "evidence": [HASH] * 101}, "evidence"),
    ],
)
def test_an_admission_that_cannot_be_taken(fields: dict[str, Any], field: str) -> None:
    """An admission has a reason, and its evidence is a list of hashes."""
    assert fault(AdmitRequest, **fields) == field
