"""The Merkle tree over the entries, by which an outsider checks one of them, or a whole past, with a few hashes.

The tree is that of RFC 6962 §2.1, unchanged, so that programs which we did not write can check what we say. Here are
leaf hashes in and roots or proofs out: nothing is read, kept or signed. A size that a proof is checked against must
come from a signed checkpoint: one and the same proof is right for trees of many sizes.
"""

from collections.abc import Sequence

from ledger.digest import EMPTY_TREE, node

Proof = tuple[bytes, ...]


class NotProven(ValueError):
    """A proof does not show what it was given for. The message says how, in a few words."""


class Frontier:
    """A tree that only grows, as the roots of its complete subtrees: a hash for each bit of its size."""

    def __init__(self, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        """Begin with nothing, or with a tree of `size` leaves whose complete subtrees have these roots."""
        if len(peaks) != size.bit_count():
            raise ValueError("a tree has as many complete subtrees as its size has bits")
        self.size = size
        self._peaks = [*peaks]

    def append(self, leaf: bytes) -> None:
        """Add the hash of the next leaf."""
        self._join(leaf, 1)

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add the hashes of the next leaves, a complete subtree at a time: the quicker way for many."""
        first = 0
        while first < len(leaves):
            fits = 1 << ((len(leaves) - first).bit_length() - 1)
            width = min(fits, self.size & -self.size or fits)
            self._join(_complete(leaves[first : first + width]), width)
            first += width

    def _join(self, subtree: bytes, width: int) -> None:
        """Add a complete subtree of `width` leaves, of which the size so far is a multiple."""
        full = self.size // width
        while full & 1:
            subtree = node(self._peaks.pop(), subtree)
            full >>= 1
        self._peaks.append(subtree)
        self.size += width

    def root(self) -> bytes:
        """Return the root of the leaves so far; of none, the hash of nothing."""
        return joined(self._peaks)


def joined(peaks: Sequence[bytes]) -> bytes:
    """Return the root of a tree from the roots of its complete subtrees, largest first; of none, the hash of nothing.

    There is one for each bit of the tree's size.
    """
    if not peaks:
        return EMPTY_TREE
    *others, right = peaks
    for peak in reversed(others):
        right = node(peak, right)
    return right


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of a tree of these leaf hashes: MTH of RFC 6962 §2.1."""
    grown = Frontier()
    grown.extend(leaves)
    return grown.root()


def _complete(level: Sequence[bytes]) -> bytes:
    """Return the root of a tree whose number of leaves is a power of two."""
    while len(level) > 1:
        level = [*map(node, level[::2], level[1::2])]
    return level[0]


def inclusion(index: int, leaves: Sequence[bytes]) -> Proof:
    """Return the proof that the leaf at `index` is one of these, lowest hash first: PATH of RFC 6962 §2.1.1.

    An index that the tree does not have is an IndexError.
    """
    if not 0 <= index < len(leaves):
        raise IndexError(f"a tree of {len(leaves)} leaves has none at {index}")
    if len(leaves) == 1:
        return ()
    split = _split(len(leaves))
    if index < split:
        return (*inclusion(index, leaves[:split]), root(leaves[split:]))
    return (*inclusion(index - split, leaves[split:]), root(leaves[:split]))


def consistency(old: int, leaves: Sequence[bytes]) -> Proof:
    """Return the proof that the tree of the first `old` leaves is the beginning of theirs: RFC 6962 §2.1.2.

    A size from 1 to their number is required, else IndexError: a tree without leaves begins everything.
    """
    if not 1 <= old <= len(leaves):
        raise IndexError(f"a tree of {len(leaves)} leaves does not grow out of one of {old}")
    return _subproof(old, leaves, known=True)


def check_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], expected: bytes) -> None:
    """Check that a leaf hash stands at `index` in the tree of this size and root, or raise NotProven.

    The steps are those of RFC 9162 §2.1.3.2.
    """
    if not 0 <= index < size:
        raise NotProven("the index is not below the size")
    _check_widths(leaf, expected, *proof)
    place, last, made = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise NotProven("the proof has too many hashes")
        if place & 1 or place == last:
            made = node(sibling, made)
            while place & 1 == 0 and place:
                place, last = place >> 1, last >> 1
        else:
            made = node(made, sibling)
        place, last = place >> 1, last >> 1
    if last:
        raise NotProven("the proof has too few hashes")
    if made != expected:
        raise NotProven("the proof leads to another root")


def check_consistency(old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]) -> None:
    """Check that the tree of `new` leaves begins with the one of `old`, or raise NotProven.

    The steps are those of RFC 9162 §2.1.4.2. Both sizes are at least 1.
    """
    if not 1 <= old <= new:
        raise NotProven("the old size is not from 1 to the new one")
    _check_widths(old_root, new_root, *proof)
    if old == new:
        if proof or old_root != new_root:
            raise NotProven("trees of one size have two roots, or a proof that they need not")
        return
    if not proof:
        raise NotProven("the proof has too few hashes")
    hashes = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if _roots(old - 1, new - 1, hashes) != (old_root, new_root):
        raise NotProven("the proof leads to other roots")


def _roots(place: int, last: int, hashes: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return the old and the new root that a consistency proof leads to; `place` and `last` are the last indices."""
    while place & 1:
        place, last = place >> 1, last >> 1
    before = after = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            raise NotProven("the proof has too many hashes")
        if place & 1 or place == last:
            before, after = node(sibling, before), node(sibling, after)
            while place & 1 == 0 and place:
                place, last = place >> 1, last >> 1
        else:
            after = node(after, sibling)
        place, last = place >> 1, last >> 1
    if last:
        raise NotProven("the proof has too few hashes")
    return before, after


def _subproof(old: int, leaves: Sequence[bytes], *, known: bool) -> Proof:
    """SUBPROOF of RFC 6962 §2.1.2; `known` while the old tree is one of these subtrees, whose root is given."""
    if old == len(leaves):
        return () if known else (root(leaves),)
    split = _split(len(leaves))
    if old <= split:
        return (*_subproof(old, leaves[:split], known=known), root(leaves[split:]))
    return (*_subproof(old - split, leaves[split:], known=False), root(leaves[:split]))


def _split(size: int) -> int:
    """Return the largest power of two below `size`, which is at least 2."""
    return 1 << ((size - 1).bit_length() - 1)


def _check_widths(*hashes: bytes) -> None:
    if any(len(one) != len(EMPTY_TREE) for one in hashes):
        raise NotProven("a hash has not 32 bytes")
