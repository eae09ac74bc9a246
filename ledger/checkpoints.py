"""A checkpoint held against the entries of a ledger, while they are read from the first to the last.

What it says is compared with what is there, never taken over: size and root are computed from the entries, and the key
is the one in event 0, which no file can bring along.
"""

from typing import NamedTuple

from ledger import notes
from ledger.notes import Checkpoint, NotANote
from ledger.tree import Frontier


class Disagreement(NamedTuple):
    """Where a checkpoint and a ledger differ: from which position on, if that can be told."""

    position: int | None
    expected: str
    found: str


class Watch:
    """One checkpoint during one pass: tell it of the tree whenever that has `size` leaves."""

    def __init__(self, note: bytes) -> None:
        self._note = note
        self._claim: Checkpoint | None = None
        self._root: bytes | None = None
        self._fault = ""
        try:
            self._claim = notes.parse_checkpoint(notes.parse_note(note).text)
        except NotANote as fault:
            self._fault = str(fault)

    @property
    def size(self) -> int:
        """Return the size that the checkpoint claims, not checked yet; −1 if it is none."""
        return -1 if self._claim is None else self._claim.size

    def reached(self, tree: Frontier) -> None:
        """Note the root of the tree that has the checkpoint's size."""
        self._root = tree.root()

    def disagreement(self, *, size: int, public_key: str | None) -> Disagreement | None:
        """Return what the checkpoint says that this ledger, of this size and with event 0's key, does not bear out."""
        if self._claim is None:
            return Disagreement(None, "a checkpoint", f"none: {self._fault}")
        if public_key is None:
            return Disagreement(0, "the public key that checks the checkpoint, in event 0", "none")
        try:
            claim = notes.open_checkpoint(self._note, notes.parse_verifier_key(public_key))
        except NotANote as fault:
            return Disagreement(None, "a checkpoint that this ledger's key signed", f"none: {fault}")
        if claim.size > size:
            return Disagreement(size, f"{claim.size} entries, as the checkpoint says", f"{size}")
        if self._root is None:
            return Disagreement(None, "every entry that the checkpoint covers", "less")
        if self._root != claim.root:
            expected = f"root {claim.root.hex()} of the first {claim.size} entries, as the checkpoint says"
            return Disagreement(None, expected, f"root {self._root.hex()}")
        return None
