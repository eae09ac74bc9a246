"""Ids as they are minted: 26 characters that only ever grow, whatever the clock does."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from ledger.clock import UlidMint

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def number(ulid: str) -> int:
    """Return the 128 bits that an id's characters say."""
    made = 0
    for character in ulid:
        made = made << 5 | ALPHABET.index(character)
    return made


def test_ids_of_one_millisecond_are_counted_up() -> None:
    """Given a clock that stands still, each id is the one before and one more, for longer than its low bits count."""
    mint = UlidMint(lambda: NOON)
    ids = [mint() for _ in range(40_000)]

    numbers = [number(one) for one in ids]
    assert numbers == [*range(numbers[0], numbers[0] + len(ids))]
    assert numbers[0] >> 80 == int(NOON.timestamp() * 1000)
    assert {len(one) for one in ids} == {26}
    assert ids == sorted(ids)


def test_a_clock_that_is_set_back_does_not_make_ids_smaller() -> None:
    """Given a clock that goes on, and then back by an hour, then ids begin anew, and are counted up."""
    moments: Iterator[datetime] = iter([NOON, NOON + timedelta(milliseconds=1), NOON - timedelta(hours=1)])
    mint = UlidMint(lambda: next(moments))
    first, second, third = number(mint()), number(mint()), number(mint())

    assert second >> 80 == (first >> 80) + 1
    assert third == second + 1
