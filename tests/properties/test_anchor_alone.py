"""The anchor by itself: it holds what it was given, in whatever order that came, and refuses what contradicts it."""

import os
import random
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from ledger import anchor_file, tree
from ledger.anchor import Anchor, Unusable
from ledger.digest import GENESIS
from tests.anchors import LEDGER, ORIGIN, assert_holds, file_of, link, links, opened

SIZE_MAX = 600
ALL = links(0, SIZE_MAX + 1)


def empty() -> Anchor:
    """Return an anchor of nothing."""
    return Anchor.in_memory(ledger=LEDGER, origin=ORIGIN)


def test_every_root_is_that_of_the_tree() -> None:
    """Sizes 0 to 600, over the edges of rows and subtrees: each root is RFC 6962's, when the anchor is longer, too."""
    anchor, grown, roots = empty(), tree.Frontier(), list[bytes]()
    for one in ALL[:SIZE_MAX]:
        roots.append(grown.root())
        assert anchor.root() == roots[-1]
        anchor.extend([one])
        grown.append(one.leaf)
    roots.append(grown.root())
    assert [anchor.root(size) for size in range(SIZE_MAX + 1)] == roots
    anchor.examine()


def test_an_empty_anchor_holds_nothing() -> None:
    """Its head is the genesis of the chain, and it has no leaves."""
    state = empty().state()
    assert (state.size, state.head, state.incarnation, state.trust) == (0, GENESIS, 1, "first_use")
    assert empty().leaves(0, 10) == b""


@pytest.mark.parametrize("size", [-1, 11])
def test_a_root_beyond_the_end_is_an_error(size: int) -> None:
    """Nothing is said about a tree that was not seen."""
    anchor = empty()
    anchor.extend(ALL[:10])
    with pytest.raises(ValueError, match="10 entries"):
        anchor.root(size)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 300)), max_size=12), st.integers(0, SIZE_MAX))
@settings(deadline=None, max_examples=60)
def test_overlapping_pages_in_any_order(pages: list[tuple[int, int]], last: int) -> None:
    """Pages that begin at or below the end, however they overlap, leave what one page would have left."""
    anchor, size = empty(), 0
    for back, count in pages:
        first = max(0, size - back)
        anchor.extend(ALL[first : first + count])
        size = min(max(size, first + count), len(ALL))
    assert_holds(anchor, ALL[:size])
    anchor.examine()
    assert anchor.root(min(last, size)) == tree.root([one.leaf for one in ALL[: min(last, size)]])


@given(st.integers(1, 520), st.data())
@settings(deadline=None, max_examples=60)
def test_another_entry_is_refused(size: int, data: st.DataObject) -> None:
    """An entry with another leaf than the one that is held is Unusable, and changes nothing."""
    anchor = empty()
    anchor.extend(ALL[:size])
    other = data.draw(st.integers(0, size - 1))
    first = data.draw(st.integers(0, other))
    page = [*ALL[first:other], link(other, "forged"), *ALL[other + 1 : size + 3]]
    with pytest.raises(Unusable, match="another entry"):
        anchor.extend(page)
    assert_holds(anchor, ALL[:size])


def test_the_last_hash_counts_too() -> None:
    """An entry with the same leaf and another link hash is not the entry that was held."""
    anchor = empty()
    anchor.extend(ALL[:5])
    with pytest.raises(Unusable, match="at position 4"):
        anchor.extend([structs.replace(ALL[4], hash=GENESIS), ALL[5]])


def test_a_gap_is_refused() -> None:
    """An anchor that ends below the first entry has lost something."""
    anchor = empty()
    anchor.extend(ALL[:5])
    with pytest.raises(Unusable, match="was longer before"):
        anchor.extend(ALL[6:8])
    assert_holds(anchor, ALL[:5])


def test_a_note_is_kept_once_for_a_size() -> None:
    """The last one is the one of the greatest size; another one of the same size is refused."""
    anchor = empty()
    assert anchor.note() is None
    anchor.keep_note(5, b"five")
    anchor.keep_note(9, b"nine")
    anchor.keep_note(5, b"five")
    assert anchor.note() == b"nine"
    with pytest.raises(Unusable, match="another checkpoint of size 9"):
        anchor.keep_note(9, b"another")
    assert anchor.note() == b"nine"


def test_ids_are_found_by_their_beginning() -> None:
    """Revisions give their lineage, streams themselves."""
    anchor = empty()
    anchor.extend(ALL[:10])
    assert anchor.beginning_with("rev_8") == {"rev_8": "mem_1"}
    assert anchor.beginning_with("mem_3") == {"mem_3": "mem_3"}
    assert anchor.beginning_with("x") == {}


# ---------------------------------------------------------------- the file

DAMAGE = {
    "zeros": lambda page: bytes(len(page)),
    "noise": lambda page: random.Random(len(page)).randbytes(len(page)),
    "a byte": lambda page: page[:-9] + bytes([page[-9] ^ 0x11]) + page[-8:],
    "a byte in the middle": lambda page: page[:2000] + bytes([page[2000] ^ 0x40]) + page[2001:],
    "the first cells": lambda page: page[:8] + bytes([page[8] ^ 1, *page[9:]]),
    "ones": lambda page: b"\xff" * len(page),
}
SIZE = 520
PAGE = 4096


@pytest.mark.parametrize("damage", DAMAGE)
def test_each_page_damaged_in_turn(tmp_path: Path, damage: str) -> None:
    """Whichever page is damaged, no answer is a wrong one: it is right, or missing, or the file is named as damaged.

    What is missing without a word is found by `examine`.
    """
    path = file_of(tmp_path, SIZE)
    whole = path.read_bytes()
    assert len(whole) % PAGE == 0
    for number in range(len(whole) // PAGE):
        page = whole[number * PAGE : (number + 1) * PAGE]
        changed = whole[: number * PAGE] + DAMAGE[damage](page) + whole[(number + 1) * PAGE :]
        path.write_bytes(changed)
        try:
            anchor = opened(path)
        except Unusable as fault:
            assert not fault.passing, f"page {number}: {fault}"
            continue
        try:
            if not _is_right(anchor):
                with pytest.raises(Unusable):
                    anchor.examine()
        finally:
            anchor.close()
            for rest in (f"{path}-wal", f"{path}-shm"):
                Path(rest).unlink(missing_ok=True)


def _is_right(anchor: Anchor) -> bool:
    """Fail on a wrong answer; return whether all answers are there."""
    expected = ALL[:SIZE]
    answers = 0
    for one in expected:
        for ask, right in (
            (lambda one=one: anchor.leaves(one.position, 1), one.leaf),
            (lambda one=one: anchor.known([], [one.request or ""])[1].get(one.request or ""), one.position),
            (lambda one=one: anchor.lineages(one.revisions), dict.fromkeys(one.revisions, one.stream)),
        ):
            answers += _ask(ask, right)
    for end in {one.stream: one for one in expected}.values():
        answers += _ask(lambda end=end: anchor.known([end.stream], [])[0].get(end.stream), end.end)
    answers += _ask(lambda: anchor.root(), tree.root([one.leaf for one in expected]))
    answers += _ask(lambda: anchor.state().head, expected[-1].hash)
    asked = 3 * SIZE + 7 + 2
    unasked = sum(one.request is None for one in expected)
    return answers == asked - unasked


def _ask(ask, right: object) -> int:
    try:
        found = ask()
    except Unusable:
        return 0
    if not found:
        return int(found == right and found is not None)
    assert found == right
    return 1


def test_a_whole_file_is_examined_without_a_finding(tmp_path: Path) -> None:
    """What the damaged ones are compared with."""
    anchor = opened(file_of(tmp_path, SIZE))
    assert _is_right(anchor)
    anchor.examine()
    anchor.close()


@pytest.mark.parametrize("length", [0, 1, 99, 100, 4095, 4096, 8192, -4096, -1])
def test_a_truncated_file_is_named(tmp_path: Path, length: int) -> None:
    """A file that ends early was damaged: it is made whole in one step."""
    path = file_of(tmp_path, SIZE)
    os.truncate(path, length if length >= 0 else path.stat().st_size + length)
    with pytest.raises(Unusable) as caught:
        anchor = opened(path)
        anchor.examine()
    assert not caught.value.passing


def test_another_ledger_s_and_another_format(tmp_path: Path) -> None:
    """A foreign file is named as such, by its ledger, its origin or its format."""
    path = file_of(tmp_path, 3)
    for ledger, origin in (("01JZ8Q0000000000000000000Z", ORIGIN), (LEDGER, "ledger.example.org/other")):
        with pytest.raises(Unusable, match="belongs to another ledger"):
            Anchor.open(path, ledger=ledger, origin=origin)

    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET format = 'corrigenda-anchor/2'")
    connection.close()
    with pytest.raises(Unusable, match="in no format that this version knows") as caught:
        opened(path)
    assert not caught.value.passing


def _folder(path: Path, _: Path) -> None:
    path.mkdir()


def _dangling(path: Path, _: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def _link(path: Path, other: Path) -> None:
    path.symlink_to(other)


def _pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("put", [_folder, _dangling, _link, _pipe])
def test_what_is_no_file_is_named(tmp_path: Path, put) -> None:
    """A folder, a pipe or a link in the anchor's place is not followed, not waited for and not replaced."""
    (tmp_path / "other").mkdir()
    other = file_of(tmp_path / "other", 3)
    path = tmp_path / f"{LEDGER}.sqlite"
    put(path, other)
    with pytest.raises(Unusable, match="is no file") as caught:
        opened(path)
    assert not caught.value.passing


def test_a_text_file_is_named(tmp_path: Path) -> None:
    """A file of another kind is no database."""
    path = tmp_path / f"{LEDGER}.sqlite"
    path.write_text("not an anchor\n" * 50)
    path.chmod(0o600)
    with pytest.raises(Unusable, match="not a database") as caught:
        opened(path)
    assert not caught.value.passing


def test_modes_do_not_follow_the_umask(tmp_path: Path) -> None:
    """Under umask 000 the file is 0600 in a folder of 0700, and so are the files that SQLite puts beside it."""
    before = os.umask(0)
    try:
        path = tmp_path / "anchor" / f"{LEDGER}.sqlite"
        anchor = opened(path)
        anchor.extend(ALL[:3])
    finally:
        os.umask(before)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {
        path.name: 0o600,
        f"{path.name}-wal": 0o600,
        f"{path.name}-shm": 0o600,
    }
    anchor.close()


def test_one_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    """Its mode is mended: what it holds are digests, and nobody could change them."""
    path = file_of(tmp_path, 3)
    path.chmod(0o644)
    anchor = opened(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert_holds(anchor, ALL[:3])
    anchor.close()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_one_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    """What it holds could be theirs, so it is named and left as it is."""
    path = file_of(tmp_path, 3)
    path.chmod(mode)
    with pytest.raises(Unusable, match=f"written by others .its mode is {mode:04o}") as caught:
        opened(path)
    assert not caught.value.passing
    assert path.stat().st_mode & 0o777 == mode


def test_a_log_whose_file_is_gone_is_not_taken_for_another_s(tmp_path: Path) -> None:
    """SQLite would play the log of the lost file into a new one. Put back, or moved away with its log, all is well."""
    path = file_of(tmp_path, 3)
    anchor = opened(path)
    anchor.extend(ALL[3:9])
    away = path.rename(tmp_path / "away")
    with pytest.raises(Unusable, match="is gone, and the log") as caught:
        opened(path)
    assert not caught.value.passing
    away.rename(path)
    again = opened(path)
    assert_holds(again, ALL[:9])
    again.close()
    anchor.close()


def test_two_hands_on_one_file(tmp_path: Path) -> None:
    """What one connection adds the other sees, and both may add the same entries."""
    path = file_of(tmp_path, 0)
    one, other = opened(path), opened(path)
    one.extend(ALL[:300])
    other.extend(ALL[:400])
    one.extend(ALL[290:400])
    assert_holds(one, ALL[:400])
    assert_holds(other, ALL[:400])
    one.close()
    other.close()


def test_a_closed_anchor_is_not_a_damaged_one(tmp_path: Path) -> None:
    """Whoever closed it is told that, and not that the ledger is broken."""
    anchor = opened(file_of(tmp_path, 3))
    anchor.close()
    with pytest.raises(Unusable) as caught:
        anchor.state()
    assert caught.value.passing


def test_a_transaction_that_an_interrupt_left_open_is_undone(tmp_path: Path) -> None:
    """Given a BEGIN that nobody ends, the next use begins anew, and no other process is locked out."""
    path = file_of(tmp_path, 3)
    anchor, other = opened(path), opened(path)
    vars(anchor)["_connection"].execute("BEGIN IMMEDIATE")
    anchor.extend(ALL[3:5])
    other.extend(ALL[3:6])
    assert_holds(anchor, ALL[:6])
    anchor.close()
    other.close()


def test_a_forked_child_leaves_it_alone(tmp_path: Path) -> None:
    """In a child, the parent's connection is refused and not closed: SQLite's locks are the process's."""
    anchor = opened(file_of(tmp_path, 3))
    child = os.fork()
    if child == 0:
        try:
            anchor.state()
        except Unusable as fault:
            anchor.close()
            os._exit(0 if fault.passing else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    anchor.extend(ALL[3:4])
    assert_holds(anchor, ALL[:4])
    anchor.close()


@pytest.mark.parametrize("moment", ["length(hashes)", "SELECT place, hashes"])
def test_one_that_grows_while_it_is_looked_at_is_not_damaged(tmp_path: Path, moment: str) -> None:
    """Whatever another process adds between two looks, what was there is there."""
    path = file_of(tmp_path, 5)
    mine, another = opened(path), opened(path)
    grown: list[bool] = []

    def grow(statement: str) -> None:
        if moment in statement and not grown:
            grown.append(True)
            another.extend(links(5, 9))

    mine._connection.set_trace_callback(grow)
    anchor_file.check(mine._connection, path, ledger=LEDGER, origin=ORIGIN)
    found = mine.leaves(3, 10)
    assert grown
    assert found == b"".join(one.leaf for one in links(3, 5 if len(found) == 64 else 9))
    mine.close()
    another.close()
