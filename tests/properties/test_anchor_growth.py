"""However entries come into an anchor, its file is the same: alone, in pages, prepared or not, by one hand or two."""

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from ledger import anchor_file
from ledger.anchor import Anchor, Link, Unusable
from tests.anchors import assert_holds, links, opened

SIZE = 530  # over the edges of two rows of leaves, with the subtree that both complete
SEED = 7


def told(size: int) -> list[Link]:
    """Return links of which some bear no revision, some two, and some say that a payload was destroyed."""
    every = links(0, size)
    every[40] = structs.replace(every[40], revisions=("rev_40", "rev_40b"))
    every[50] = structs.replace(every[50], erased=(3, 40))
    every[51] = structs.replace(every[51], erased=(3, 41))
    return every


def one_by_one(path: Path, entries: Sequence[Link]) -> None:
    """Add each entry alone."""
    with closing(opened(path)) as anchor:
        for one in entries:
            anchor.extend([one])


def in_pages(path: Path, entries: Sequence[Link]) -> None:
    """Add groups of many sizes, some of them made ready before."""
    rolled, at = random.Random(SEED), 0
    with closing(opened(path)) as anchor:
        while at < len(entries):
            page = entries[at : at + rolled.choice([1, 2, 5, 40, 300])]
            if rolled.random() < 0.5:
                anchor.make_ready(page)
            anchor.extend(page)
            at += len(page)


def by_two(path: Path, entries: Sequence[Link]) -> None:
    """Add them by two processes' hands in turn, each of which has made ready what the other one adds."""
    with closing(opened(path)) as first, closing(opened(path)) as second:
        first.extend(entries[:1])
        for number, one in enumerate(entries[1:], start=1):
            hand, other = (first, second) if number % 2 else (second, first)
            other.make_ready([one])
            hand.make_ready([one])
            hand.extend([one])


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of all tables of an anchor's file, by table."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}")) for name in tables}  # noqa: S608 - our names


@pytest.mark.parametrize("way", [one_by_one, in_pages, by_two])
def test_each_way_leaves_the_same_file(tmp_path: Path, way: Callable[[Path, Sequence[Link]], None]) -> None:
    """Row for row it is what one page of everything leaves, and whole."""
    entries = told(SIZE)
    at_once, path = tmp_path / "at-once.sqlite", tmp_path / "way.sqlite"
    with closing(opened(at_once)) as anchor:
        anchor.extend(entries)
    way(path, entries)
    assert rows_of(path) == rows_of(at_once)
    with closing(opened(path)) as anchor:
        anchor.examine()
        assert_holds(anchor, entries)
        assert anchor.erasures(range(60)) == {3: 50, 40: 50, 41: 51}


def test_what_was_made_ready_is_not_what_is_added(tmp_path: Path) -> None:
    """Others come in its place, longer, shorter or other ones: those are held, and nothing of what was made ready."""
    entries = links(0, 60)
    others = [structs.replace(one, request=f"{one.position:064x}") for one in entries]
    with closing(opened(tmp_path / "anchor.sqlite")) as anchor:
        anchor.extend(entries[:10])
        for ready, added in [((10, 20), (10, 30)), ((30, 40), (30, 31)), ((31, 35), (31, 31)), ((40, 45), (31, 60))]:
            anchor.make_ready(others[slice(*ready)] if ready != (30, 40) else entries[30:40])
            anchor.extend(entries[slice(*added)])
        assert_holds(anchor, entries)
        anchor.examine()


def test_what_is_made_ready_and_never_added_is_not_there(tmp_path: Path) -> None:
    """Nothing is written by it, whatever closes the anchor then."""
    path = tmp_path / "anchor.sqlite"
    with closing(opened(path)) as anchor:
        anchor.extend(links(0, 10))
        anchor.make_ready(links(10, 20))
    with closing(opened(path)) as anchor:
        assert_holds(anchor, links(0, 10))


def test_rows_that_cannot_be_written_are_looked_at_again(tmp_path: Path) -> None:
    """What another hand has added meanwhile is held against what comes: the same is passed over, the rest is added."""
    path = tmp_path / "anchor.sqlite"
    with closing(opened(path)) as first, closing(opened(path)) as second:
        _follow(first, second)
        assert_holds(first, links(0, 30))


def _follow(first: Anchor, second: Anchor) -> None:
    first.extend(links(0, 10))
    second.extend(links(10, 20))
    first.make_ready(links(10, 30))
    first.extend(links(10, 30))


def test_a_first_write_that_found_no_room_costs_only_itself(tmp_path: Path) -> None:
    """Given a first write that was undone for want of room, the same one succeeds once there is some."""
    with closing(opened(tmp_path / "anchor")) as anchor:
        set_most_pages(anchor, 1)  # as many as there are: no more can be taken
        with pytest.raises(Unusable) as raised:
            anchor.extend(links(0, SIZE))
        assert raised.value.passing
        set_most_pages(anchor, 1_000_000)

        anchor.extend(links(0, SIZE))
        anchor.extend(links(SIZE, SIZE + 1))

        anchor.examine()
        assert_holds(anchor, links(0, SIZE + 1))


@pytest.mark.parametrize("more", [1, 20])
def test_what_is_added_after_an_interrupt_is_committed(tmp_path: Path, more: int) -> None:
    """Given a transaction that an interrupt left open where the end is known, what is added next is kept."""
    path = tmp_path / "anchor"
    with closing(opened(path)) as anchor, closing(opened(path)) as another:
        anchor.extend(links(0, 10))
        vars(anchor)["_connection"].execute("BEGIN")

        anchor.extend(links(10, 10 + more))

        assert_holds(another, links(0, 10 + more))


def test_one_that_is_locked_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a process that holds it for longer than we wait, then nobody waits twice; once it is free, all is added."""
    monkeypatch.setattr(anchor_file, "BUSY_S", 0.1)
    looked: list[object] = []
    with closing(opened(tmp_path / "anchor")) as anchor, closing(opened(tmp_path / "anchor")) as another:
        anchor.extend(links(0, 10))
        vars(another)["_connection"].execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(Anchor, "_extend", lambda *given: looked.append(given))
        with pytest.raises(Unusable, match="locked") as raised:
            anchor.extend(links(10, 20))
        assert (raised.value.passing, looked) == (True, [])
        monkeypatch.undo()
        vars(another)["_connection"].execute("ROLLBACK")

        anchor.extend(links(10, 20))

        assert_holds(anchor, links(0, 20))


def set_most_pages(anchor: Anchor, most: int) -> None:
    """Let a file grow to so many pages, or to what it has already."""
    vars(anchor)["_connection"].execute(f"PRAGMA max_page_count = {most}")
