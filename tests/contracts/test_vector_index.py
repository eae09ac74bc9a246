"""One suite for every VectorIndex, then what is particular to FAISS and to partitions."""

import random
import threading
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import UnavailableError
from projections.index import Neighbour, Vector, VectorIndex
from projections.index.exact import ExactIndex
from projections.index.faiss_index import FaissIndex
from projections.index.partitions import PartitionedIndex

Make = Callable[[int], VectorIndex]
KINDS: list[Make] = [ExactIndex, FaissIndex]


@pytest.fixture(params=KINDS, ids=["exact", "faiss"])
def make(request: pytest.FixtureRequest) -> Make:
    return request.param


def axis(n: int, dimension: int = 4) -> Vector:
    return np.eye(dimension, dtype=np.float32)[n]


def unit_rows(n: int, dimension: int = 16, seed: int = 7) -> Vector:
    rows = np.random.default_rng(seed).normal(size=(n, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def names(found: list[Neighbour]) -> list[str]:
    return [near.item for near in found]


def test_the_nearest_item_comes_first_with_its_inner_product(make: Make) -> None:
    """A search gives items best first, each scored by the inner product with the query."""
    index = make(4)
    index.put("east", axis(0))
    index.put("north", axis(1))
    index.put("between", np.array([0.6, 0.8, 0, 0], dtype=np.float32))
    found = index.search(axis(1), 3)
    assert names(found) == ["north", "between", "east"]
    assert [near.score for near in found] == pytest.approx([1.0, 0.8, 0.0])


def test_an_empty_index_finds_nothing(make: Make) -> None:
    """No item, no neighbour, whatever k."""
    assert make(4).search(axis(0), 5) == []


@pytest.mark.parametrize("k", [0, -1])
def test_a_k_below_one_finds_nothing(make: Make, k: int) -> None:
    """To ask for no neighbours is no error."""
    index = make(4)
    index.put("east", axis(0))
    assert index.search(axis(0), k) == []


def test_a_k_above_the_size_gives_every_item_once(make: Make) -> None:
    """Fewer items than asked for are all given, and none is made up."""
    index = make(4)
    for n in range(3):
        index.put(f"item-{n}", axis(n))
    assert sorted(names(index.search(axis(0), 10_000))) == ["item-0", "item-1", "item-2"]


def test_putting_an_item_again_replaces_its_vector(make: Make) -> None:
    """An item has one vector: the last."""
    index = make(4)
    index.put("item", axis(0))
    index.put("item", axis(1))
    assert len(index) == 1
    assert index.search(axis(1), 5) == [Neighbour("item", 1.0)]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_removed_item_is_never_found_again_and_the_others_stay(make: Make, position: int) -> None:
    """Removal takes out one item, be it the first row, the last or one between."""
    index = make(4)
    for n in range(3):
        index.put(f"item-{n}", axis(n))
    assert index.remove(f"item-{position}") is True
    for n in {0, 1, 2} - {position}:
        assert index.search(axis(n), 1) == [Neighbour(f"item-{n}", 1.0)]
    assert f"item-{position}" not in names(index.search(axis(position), 3))


def test_removing_what_is_not_there_is_reported_and_changes_nothing(make: Make) -> None:
    """A second removal is False."""
    index = make(4)
    index.put("item", axis(0))
    assert index.remove("other") is False
    assert [index.remove("item"), index.remove("item")] == [True, False]
    assert len(index) == 0


def test_an_index_emptied_can_be_filled_again(make: Make) -> None:
    """Nothing of what was removed shines through afterwards."""
    index = make(4)
    index.put("old", axis(0))
    index.remove("old")
    index.put("new", axis(1))
    assert index.search(axis(0), 5) == [Neighbour("new", 0.0)]


def test_size_membership_and_items_agree(make: Make) -> None:
    """What is held is held in every account of it."""
    index = make(4)
    index.put_many(["a", "b", "c"], np.stack([axis(0), axis(1), axis(2)]))
    index.remove("a")
    assert (len(index), sorted(index.items())) == (2, ["b", "c"])
    assert ("b" in index, "a" in index) == (True, False)


def test_many_at_once_are_as_one_by_one_and_the_last_of_equals_wins(make: Make) -> None:
    """A bulk put replaces what is held, adds what is not, and keeps the last row of an item named twice."""
    index = make(4)
    index.put("held", axis(0))
    index.put_many(["held", "twice", "twice"], np.stack([axis(1), axis(2), axis(3)]))
    assert index.search(axis(1), 1) == [Neighbour("held", 1.0)]
    assert index.search(axis(3), 1) == [Neighbour("twice", 1.0)]
    assert len(index) == 2


def test_nothing_at_once_changes_nothing(make: Make) -> None:
    """A bulk put of no items is no error."""
    index = make(4)
    index.put_many([], np.empty((0, 4), dtype=np.float32))
    assert len(index) == 0


def test_ties_are_settled_by_item_for_every_k(make: Make) -> None:
    """Of equal scores the lesser item comes first, also where k cuts through them."""
    index = make(4)
    items = [f"item-{n:02d}" for n in range(60)]
    for item in random.Random(3).sample(items, len(items)):
        index.put(item, axis(0))
    assert all(names(index.search(axis(0), k)) == items[:k] for k in (1, 2, 4, 17, 59, 60))


def test_only_allowed_items_are_found_even_when_they_are_rare_and_far(make: Make) -> None:
    """A filter that leaves one item in a thousand still gives that one."""
    index = make(16)
    rows = unit_rows(1_000)
    index.put_many([f"item-{n}" for n in range(1_000)], rows)
    farthest = int(np.argmin(rows @ rows[0]))
    found = index.search(rows[0], 5, allowed=lambda item: item == f"item-{farthest}")
    assert names(found) == [f"item-{farthest}"]


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        ([np.nan, 0, 0, 1], "non_finite"),
        ([np.inf, 0, 0, 1], "non_finite"),
        ([3e38, 3e38, 3e38, 3e38], "non_finite"),
        ([0, 0, 0, 0], "zero_norm"),
        ([1e-30, 0, 0, 0], "zero_norm"),
        ([1, 0, 0], "wrong_dimension"),
        ([1, 0, 0, 0, 0], "wrong_dimension"),
    ],
)
def test_a_vector_that_would_poison_an_index_is_refused_by_name(make: Make, vector: list[float], reason: str) -> None:
    """Non-finite, zero and foreign vectors are refused, held or asked for, and nothing is changed."""
    index = make(4)
    index.put("held", axis(0))
    bad = np.array(vector, dtype=np.float32)
    for act in (lambda: index.put("held", bad), lambda: index.put("new", bad), lambda: index.search(bad, 1)):
        with pytest.raises(UnavailableError) as refused:
            act()
        assert (refused.value.code, refused.value.details["reason"]) == ("INDEX_UNAVAILABLE", reason)
    assert index.search(axis(0), 5) == [Neighbour("held", 1.0)]


def test_one_bad_row_refuses_all_of_a_bulk_put(make: Make) -> None:
    """All or none: a good row beside a bad one is not held either."""
    index = make(4)
    with pytest.raises(UnavailableError):
        index.put_many(["good", "bad"], np.stack([axis(0), axis(1) * np.nan]))
    assert len(index) == 0


@pytest.mark.parametrize("shape", [(1, 4), (3, 4), (2, 3), (8,)])
def test_rows_that_do_not_fit_their_items_are_refused_by_name(make: Make, shape: tuple[int, ...]) -> None:
    """D43: as many rows as items, each of the index's dimension, or nothing is held."""
    index = make(4)
    with pytest.raises(UnavailableError) as refused:
        index.put_many(["a", "b"], np.ones(shape, dtype=np.float32))
    assert (refused.value.details["reason"], refused.value.details["expected"]) == ("wrong_dimension", [2, 4])
    assert len(index) == 0


def test_a_dump_is_a_copy_of_items_and_their_vectors(make: Make) -> None:
    """A dump says which vector is whose, and is not changed by what comes after it."""
    index = make(16)
    rows = unit_rows(20)
    index.put_many([f"item-{n}" for n in range(20)], rows)
    index.remove("item-0")
    items, vectors = index.dump()
    index.put("item-5", rows[0])
    index.remove("item-19")
    assert {item: vector.tobytes() for item, vector in zip(items, vectors, strict=True)} == {
        f"item-{n}": rows[n].tobytes() for n in range(1, 20)
    }


def test_the_caller_may_reuse_its_array(make: Make) -> None:
    """An index copies what it is given."""
    index = make(4)
    vector = axis(0).copy()
    index.put("item", vector)
    vector[:] = axis(1)
    assert index.search(axis(0), 1) == [Neighbour("item", 1.0)]


def test_vectors_that_are_not_of_unit_length_are_still_ranked_rightly(make: Make) -> None:
    """The order is that of the inner product, however long the vectors are."""
    index = make(16)
    rows = unit_rows(300) * np.linspace(0.1, 1e4, 300, dtype=np.float32)[:, np.newaxis]
    index.put_many([f"item-{n}" for n in range(300)], rows)
    products = rows.astype(np.float64) @ rows[7].astype(np.float64)
    expected = [f"item-{n}" for n in np.argsort(-products)[:10]]
    assert names(index.search(rows[7], 10)) == expected


# A few directions only, so that equal scores are common.
_ACTS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "remove", "search"]),
        st.integers(0, 25),
        st.lists(st.integers(-2, 2), min_size=3, max_size=3).filter(any),
    ),
    max_size=80,
)


@settings(max_examples=60, deadline=None)
@given(acts=_ACTS)
def test_faiss_answers_every_history_as_the_oracle_does(
    acts: list[tuple[str, int, list[int]]],
) -> None:
    """After any puts, replacements and removals FAISS gives the oracle's list, scores and ties included."""
    oracle, index = ExactIndex(3), FaissIndex(3)
    for act, n, direction in acts:
        vector = np.array(direction, dtype=np.float32) / np.float32(np.linalg.norm(direction))
        match act:
            case "put":
                oracle.put(f"item-{n}", vector)
                index.put(f"item-{n}", vector)
            case "remove":
                assert oracle.remove(f"item-{n}") == index.remove(f"item-{n}")
            case _:
                assert oracle.search(vector, n) == index.search(vector, n)
    assert sorted(oracle.items()) == sorted(index.items())


def test_faiss_and_the_oracle_agree_where_neighbours_are_crowded() -> None:
    """Rows that differ by less than single precision tells apart still come in the oracle's order."""
    rng = np.random.default_rng(11)
    rows = axis(0, 64) + rng.normal(scale=1e-4, size=(500, 64)).astype(np.float32)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    items = [f"item-{n:03d}" for n in range(500)]
    oracle, index = ExactIndex(64), FaissIndex(64)
    oracle.put_many(items, rows)
    index.put_many(items, rows)
    assert all(oracle.search(row, 10) == index.search(row, 10) for row in rows[:40])


def test_faiss_and_the_oracle_agree_after_many_changes_of_many_rows() -> None:
    """Where only some rows are fetched, too, each is known by what it holds now: new, replaced or moved into a gap."""
    chance, rows = random.Random(5), unit_rows(1_200, dimension=24)
    oracle, index = ExactIndex(24), FaissIndex(24)
    for number, row in enumerate(rows):
        item = f"item-{chance.randrange(400):03d}"
        if number % 4 == 3:
            assert oracle.remove(item) == index.remove(item)
        else:
            oracle.put(item, row)
            index.put(item, row)
    assert len(index) > 200
    assert all(oracle.search(row, 5) == index.search(row, 5) for row in rows[:100])


def test_rows_that_are_one_in_half_precision_are_still_told_apart() -> None:
    """The best five of a hundred rows that round to the same number in half precision are found, and no other ones."""
    rows = np.zeros((100, 2), dtype=np.float32)
    rows[:, 0] = 0.75 + 2e-6 * np.arange(6, 106)
    assert len(set(rows.astype(np.float16)[:, 0].tolist())) == 1
    index = FaissIndex(2)
    index.put_many([f"item-{n}" for n in range(100)], rows)
    assert names(index.search(axis(0, 2), 5)) == [f"item-{n}" for n in (99, 98, 97, 96, 95)]


def test_a_row_that_half_precision_cannot_hold_is_found() -> None:
    """A number beyond half precision, there infinite, does not keep the row from being the best."""
    index = FaissIndex(2)
    index.put_many([f"item-{n}" for n in range(100)], np.array([[0, 300 * n + 300] for n in range(100)]))
    index.put("beyond", np.array([1e5, 6e4], dtype=np.float32))
    assert names(index.search(np.array([-0.01, 1], dtype=np.float32), 5))[:2] == ["beyond", "item-99"]


def test_a_filter_is_asked_once_about_each_item_however_often_more_are_fetched() -> None:
    """What was found not to be allowed is not asked about again by the next look, which reaches farther."""
    rows, asked = unit_rows(2_000), list[str]()
    index = FaissIndex(16)
    index.put_many([f"item-{n}" for n in range(2_000)], rows)

    def allowed(item: str) -> bool:
        asked.append(item)
        return int(item.removeprefix("item-")) % 100 == 0

    assert len(index.search(rows[1], 5, allowed=allowed)) == 5
    assert len(asked) == len(set(asked)) > 100


def test_searches_among_mutations_never_give_a_wrong_hit(make: Make) -> None:
    """While one thread adds and removes, every searcher's every answer pairs an item with its own score.

    Without the lock this crashed the process or gave other items' scores within a second.
    """
    rows = unit_rows(400, dimension=32)
    index = make(32)
    index.put_many([str(n) for n in range(200)], rows[:200])
    stop = threading.Event()
    wrong: list[str] = []

    def search(seed: int) -> None:
        chance = random.Random(seed)
        while not stop.is_set():
            query = rows[chance.randrange(400)]
            found = index.search(query, 8)
            if len(found) != 8 or any(a.score < b.score for a, b in pairwise(found)):
                wrong.append("not eight in order")
            if any(abs(near.score - float(rows[int(near.item)] @ query)) > 1e-5 for near in found):
                wrong.append("an item with another's score")

    searchers = [threading.Thread(target=search, args=(seed,)) for seed in range(3)]
    for thread in searchers:
        thread.start()
    chance = random.Random(99)
    for _ in range(1_500):
        n = chance.randrange(200, 400)
        if not index.remove(str(n)):
            index.put(str(n), rows[n])
    stop.set()
    for thread in searchers:
        thread.join()
    assert wrong == []
    held = {int(item) for item in index.items()}
    assert all(index.search(rows[n], 1)[0].item == str(n) for n in held)


@pytest.fixture
def partitioned(make: Make) -> PartitionedIndex:
    return PartitionedIndex(4, make)


def test_a_search_looks_into_the_named_partitions_only_and_merges_them(partitioned: PartitionedIndex) -> None:
    """Neighbours of several partitions come as one list, best first; other partitions say nothing."""
    partitioned.put("a", "far", axis(1))
    partitioned.put("b", "near", axis(0))
    partitioned.put("c", "hidden", axis(0))
    assert names(partitioned.search(["a", "b", "nowhere"], axis(0), 5)) == ["near", "far"]
    assert names(partitioned.search(["a", "b"], axis(0), 1)) == ["near"]


def test_an_item_put_elsewhere_has_moved(partitioned: PartitionedIndex) -> None:
    """An item is in one partition: it leaves the old one when it is put into another."""
    partitioned.put("unverified", "item", axis(0))
    partitioned.put("verified", "item", axis(0))
    assert partitioned.search(["unverified"], axis(0), 5) == []
    assert partitioned.items() == {"item": "verified"}
    assert (len(partitioned), partitioned.partition_of("item")) == (1, "verified")


def test_a_refused_move_leaves_the_item_where_it_was(partitioned: PartitionedIndex) -> None:
    """A vector that is refused moves nothing, and makes no partition."""
    partitioned.put("a", "item", axis(0))
    with pytest.raises(UnavailableError):
        partitioned.put("b", "item", axis(0) * 0)
    assert names(partitioned.search(["a"], axis(0), 1)) == ["item"]
    assert list(partitioned.dump()) == ["a"]


def test_removal_needs_no_partition(partitioned: PartitionedIndex) -> None:
    """The index knows where an item is, and a partition goes with its last item."""
    partitioned.put("a", "item", axis(0))
    assert [partitioned.remove("item"), partitioned.remove("item")] == [True, False]
    assert ("item" in partitioned, partitioned.dump()) == (False, {})


def test_the_same_partition_named_twice_is_searched_once(partitioned: PartitionedIndex) -> None:
    """Naming a partition twice does not double its neighbours."""
    partitioned.put("a", "item", axis(0))
    assert names(partitioned.search(["a", "a"], axis(0), 5)) == ["item"]


def test_a_query_of_another_dimension_is_refused_even_where_nothing_is_held(
    partitioned: PartitionedIndex,
) -> None:
    """An empty answer must mean that nothing is near, never that the question was wrong."""
    with pytest.raises(UnavailableError):
        partitioned.search(["a"], np.ones(5, dtype=np.float32), 5)


def test_what_is_dumped_is_what_is_restored(make: Make) -> None:
    """A restored index answers as the dumped one did, and forgets what it held before."""
    first, second = PartitionedIndex(16, make), PartitionedIndex(16, make)
    rows = unit_rows(60)
    for n in range(60):
        first.put(f"part-{n % 4}", f"item-{n}", rows[n])
    second.put("part-0", "before", rows[0])
    second.restore(first.dump())
    assert second.items() == first.items()
    keys = ["part-0", "part-2", "part-3"]
    assert all(second.search(keys, row, 7) == first.search(keys, row, 7) for row in rows)


def test_contents_with_an_item_in_two_partitions_are_not_taken(partitioned: PartitionedIndex) -> None:
    """Contents that break the one rule of an index are refused, and what was held stays."""
    partitioned.put("a", "held", axis(0))
    row = axis(1)[np.newaxis]
    with pytest.raises(ValueError, match="one partition"):
        partitioned.restore({"a": (["item"], row), "b": (["item"], row)})
    assert partitioned.items() == {"held": "a"}
