"""The scorer of regression cases: yes if the output holds what is expected."""

import pytest

from corrigenda import contains


@pytest.mark.parametrize(
    ("output", "expected", "passes"),
    [
        ("charge code: DTHC", "DTHC", True),
        ("charge code: dthc", "DTHC", True),
        ("charge code: THC", "DTHC", False),
        ("STRASSE 7", "Straße", True),
        ("", "DTHC", False),
        ("", "", True),
        (" \n", "", True),
        ("THC", "", False),
    ],
)
def test_a_case_passes_if_the_output_contains_what_is_expected(output: str, expected: str, passes: bool) -> None:
    """AG-41: the case's own expected value counts, whatever the case of its letters; an empty one wants nothing."""
    assert contains(output, expected) is passes


def test_case_counts_if_it_is_asked_to() -> None:
    """AG-41: blind to case only by default."""
    assert not contains("dthc", "DTHC", case_sensitive=True)
    assert contains("code DTHC", "DTHC", case_sensitive=True)
