"""What a verification remembers in buckets, on disk or not, is what it would find by holding everything in memory."""

from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.verify import aside
from ledger.verify.aside import Aside, Break, Part, Request

HASHES = [bytes([number]) * 32 for number in range(3)]

parts = st.lists(
    st.tuples(
        st.sampled_from(["mem_a", "mem_b", "name_c"]),
        st.none() | st.integers(0, 3),
        st.integers(1, 4),
        st.none() | st.sampled_from(HASHES),
        st.sampled_from(HASHES),
        st.booleans(),
    ),
    max_size=20,
)


@pytest.fixture(params=[1, 7, 40_000], ids=["all on disk", "some on disk", "none on disk"], autouse=True)
def held_max(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let buckets go to the disk after so many records."""
    with mock.patch.object(aside, "HELD_MAX", request.param):
        yield


def _made(drawn: list[tuple[str, int | None, int, bytes | None, bytes, bool]]) -> list[Part]:
    return [
        Part(stream, position, place, _named(place, link), version, hash_, position if suspect else None)
        for position, (stream, place, version, hash_, link, suspect) in enumerate(drawn)
    ]


def _named(place: int | None, link: bytes) -> str | None:
    return None if place == 0 and link == HASHES[0] else link.hex()


def _expected(found: list[Part], *, whole: bool) -> set[Break]:
    """Follow the parts one after the other, as a reader with all memory in the world would."""
    ends: dict[str, Part] = {}
    breaks: set[Break] = set()
    for part in found:
        before = ends.get(part.stream)
        version = 0 if before is None else before.version
        joins = part.place == version and (before is None or before.hash is None or before.hash.hex() == part.link)
        known = before is not None or whole
        if before is None and part.place == 0:
            joins, known = part.link is None, True
        if part.place is not None and known and not joins:
            breaks.add(Break(part.position, part.place, version, None if before is None else before.suspect))
        ends[part.stream] = part
    return breaks


@given(drawn=parts, whole=st.booleans())
def test_breaks_are_those_of_a_reader_that_remembers_everything(drawn: list, whole: bool) -> None:
    """Each part is held against the end of the stream's part before, wherever that was kept."""
    found = _made(drawn)
    with Aside() as kept:
        for part in found:
            kept.keep({part.stream: part}, [])
        assert set(kept.breaks(whole=whole)) == _expected(found, whole=whole)


@given(drawn=parts)
def test_beginnings_are_the_first_parts(drawn: list) -> None:
    """One for each stream, unless its first entry said nothing about its place."""
    found = _made(drawn)
    first: dict[str, Part] = {}
    for part in found:
        first.setdefault(part.stream, part)
    with Aside() as kept:
        for part in found:
            kept.keep({part.stream: part}, [])
        given_back = [part for some in kept.beginnings() for part in some]
    assert sorted(part.position for part in given_back) == sorted(
        part.position for part in first.values() if part.place is not None
    )


@given(requests=st.lists(st.sampled_from([bytes([number]) * 32 for number in range(12)]), max_size=20))
def test_the_first_repetition_is_found(requests: list[bytes]) -> None:
    """The lowest position whose request was there before."""
    repeated = [position for position, one in enumerate(requests) if one in requests[:position]]
    with Aside() as kept:
        for position, one in enumerate(requests):
            kept.keep({}, [Request(one, position)])
        assert kept.repeated() == min(repeated, default=None)
