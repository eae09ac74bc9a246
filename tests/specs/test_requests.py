"""What is said of a request that cannot be taken: the field, and what is the matter with it, in words for people."""

from typing import Any

import pytest

from gateway.shapes import requests
from ledger.errors import InvalidInputError


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"field": "f" * 256}, "has more than 255 characters"),
        ({"memory": ""}, "has fewer than 1 characters"),
        ({"tags": ["t"] * 101}, "has more than 100 items"),
        ({"original_input": "x" * 8_001}, "is longer than 8000 characters"),
    ],
)
def test_a_length_is_told_in_what_is_counted(changes: dict[str, Any], problem: str) -> None:
    """AG-07: a text has characters, and a list has items; neither is said of the other."""
    with pytest.raises(InvalidInputError) as refusal:
        requests.parse(
            requests.RecordCorrectionRequest, **{"agent": "a", "original_value": "b", "corrected_value": "c", **changes}
        )
    assert refusal.value.details["fields"] == [{"field": next(iter(changes)), "problem": problem}]
