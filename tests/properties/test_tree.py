"""The tree is RFC 6962's: known roots, and proofs that hold for what they prove and for nothing else."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import tree
from ledger.digest import leaf
from ledger.tree import Frontier, NotProven, Proof

SIZE_MAX = 64
LEAVES = [leaf(b"entry %d" % number) for number in range(SIZE_MAX)]
ROOTS = [tree.root(LEAVES[:size]) for size in range(SIZE_MAX + 1)]

# The eight entries by which implementations of RFC 6962 are compared since Certificate Transparency's first, and the
# roots of the trees of the first 0 to 8 of them.
KNOWN_ENTRIES = (
    *("", "00", "10", "2021", "3031", "40414243", "5051525354555657"),
    "606162636465666768696a6b6c6d6e6f",
)
KNOWN_ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)


def flipped(digest: bytes) -> bytes:
    """Return a hash with one bit changed."""
    return bytes([digest[0] ^ 1]) + digest[1:]


@pytest.mark.parametrize("size", range(len(KNOWN_ROOTS)))
def test_the_known_roots(size: int) -> None:
    """The roots of RFC 6962's public examples, sizes 0 to 8."""
    leaves = [leaf(bytes.fromhex(entry)) for entry in KNOWN_ENTRIES[:size]]
    assert tree.root(leaves).hex() == KNOWN_ROOTS[size]


def test_a_frontier_has_every_root_on_its_way() -> None:
    """A tree that grows leaf by leaf has, at each size, the root of the tree that splits as the RFC defines it."""
    grown = Frontier()
    for size in range(SIZE_MAX):
        assert (grown.size, grown.root()) == (size, defined_root(LEAVES[:size]))
        grown.append(LEAVES[size])


def defined_root(leaves: list[bytes]) -> bytes:
    """Return MTH as RFC 6962 §2.1 defines it, by splitting and not by growing."""
    from hashlib import sha256

    if not leaves:
        return sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    half = max(1 << bit for bit in range(8) if 1 << bit < len(leaves))
    return sha256(b"\x01" + defined_root(leaves[:half]) + defined_root(leaves[half:])).digest()


@pytest.mark.parametrize("size", range(1, SIZE_MAX + 1))
def test_every_inclusion_is_proven_and_every_change_refused(size: int) -> None:
    """Each leaf of each tree up to 64 has a proof; five changes of what is proven or of the proof are refused."""
    for index in range(size):
        proof = tree.inclusion(index, LEAVES[:size])
        assert len(proof) == proof_length(index, size)
        tree.check_inclusion(LEAVES[index], index, size, proof, ROOTS[size])
        for claim in wrong_inclusions(index, size, proof):
            with pytest.raises(NotProven):
                tree.check_inclusion(*claim)


def proof_length(index: int, size: int) -> int:
    """Return how many hashes an inclusion proof has, from the bits of index and size alone."""
    inner = (index ^ (size - 1)).bit_length()
    return inner + (index >> inner).bit_count()


def wrong_inclusions(index: int, size: int, proof: Proof) -> Iterator[tuple[bytes, int, int, Proof, bytes]]:
    """Yield five claims that are wrong in one thing each."""
    own, expected = LEAVES[index], ROOTS[size]
    yield flipped(own), index, size, proof, expected
    yield own, index, size, proof, flipped(expected)
    yield own, (index + 1) % size if size > 1 else 1, size, proof, expected
    yield own, index, size, (*proof, own), expected
    if proof:
        yield own, index, size, proof[:-1], expected
        for at, sibling in enumerate(proof):
            yield own, index, size, (*proof[:at], flipped(sibling), *proof[at + 1 :]), expected
    else:
        yield own, -1, size, proof, expected


@pytest.mark.parametrize("new", range(1, SIZE_MAX + 1))
def test_every_consistency_is_proven_and_every_change_refused(new: int) -> None:
    """Each tree up to 64 extends each smaller one; five changes of what is proven or of the proof are refused."""
    for old in range(1, new + 1):
        proof = tree.consistency(old, LEAVES[:new])
        tree.check_consistency(old, ROOTS[old], new, ROOTS[new], proof)
        for claim in wrong_consistencies(old, new, proof):
            with pytest.raises(NotProven):
                tree.check_consistency(*claim)


def wrong_consistencies(old: int, new: int, proof: Proof) -> Iterator[tuple[int, bytes, int, bytes, Proof]]:
    """Yield five claims that are wrong in one thing each."""
    before, after = ROOTS[old], ROOTS[new]
    yield old, flipped(before), new, after, proof
    yield old, before, new, flipped(after), proof
    yield old, before, new, after, (*proof, before)
    yield old - 1, before, new, after, proof
    if proof:
        yield old, before, new, after, proof[:-1]
        for at, sibling in enumerate(proof):
            yield old, before, new, after, (*proof[:at], flipped(sibling), *proof[at + 1 :])
    else:
        yield old + 1, before, new, after, proof


def test_one_proof_holds_for_many_sizes() -> None:
    """So the size must come from a signed checkpoint: leaf 0's proof in a tree of 55 holds for 32 sizes."""
    proof = tree.inclusion(0, LEAVES[:55])
    held = []
    for size in range(1, SIZE_MAX + 1):
        try:
            tree.check_inclusion(LEAVES[0], 0, size, proof, ROOTS[55])
        except NotProven:
            continue
        held.append(size)
    assert held == list(range(33, 65))


def test_the_empty_tree_begins_nothing() -> None:
    """A size of 0 is no beginning: every tree would extend it."""
    with pytest.raises(IndexError):
        tree.consistency(0, LEAVES[:4])
    with pytest.raises(NotProven):
        tree.check_consistency(0, ROOTS[0], 4, ROOTS[4], ())


def test_a_leaf_that_is_not_there_has_no_proof() -> None:
    """An index at or above the size, or below 0, is an error."""
    for index in (-1, 4):
        with pytest.raises(IndexError):
            tree.inclusion(index, LEAVES[:4])


@pytest.mark.parametrize("width", [0, 31, 33])
def test_a_hash_has_32_bytes(width: int) -> None:
    """A hash of another width is refused before anything is computed of it: an empty one would prove a tree of one."""
    odd = bytes(width)
    with pytest.raises(NotProven):
        tree.check_inclusion(odd, 0, 1, (), odd)
    with pytest.raises(NotProven):
        tree.check_consistency(1, odd, 1, odd, ())


@given(sizes=st.lists(st.integers(0, 40), max_size=6))
def test_a_tree_grown_by_pieces_is_the_one_grown_leaf_by_leaf(sizes: list[int]) -> None:
    """However many leaves come at once, and from wherever it was taken up again, the root is the same."""
    one_by_one, by_pieces = Frontier(), Frontier()
    for number, size in enumerate(sizes):
        leaves = [bytes([number, at]) * 16 for at in range(size)]
        for one in leaves:
            one_by_one.append(one)
        by_pieces.extend(leaves)
        assert (by_pieces.size, by_pieces.root()) == (one_by_one.size, one_by_one.root())
        by_pieces = Frontier(by_pieces.size, by_pieces._peaks)


def test_a_tree_has_as_many_peaks_as_its_size_has_bits() -> None:
    """Peaks of another tree are no place to go on from."""
    with pytest.raises(ValueError, match="complete subtrees"):
        Frontier(3, [bytes(32)])
