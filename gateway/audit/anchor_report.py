"""What stands of a ledger's anchor, for whoever asks about it: it is looked at, never made, and nothing is decided.

The anchor is read before the ledger's head: only so does a head below it mean that something was lost.
"""

from pathlib import Path
from typing import Any

from gateway.audit import anchors
from ledger import digest
from ledger.anchor import Anchor, Unusable
from ledger.opening import anchor_path
from ledger.store import Store

MISSING = "the next use makes one of what the database holds then, and shows nothing of what was done before"
FIRST_USE = "it was made of what the database held when there was none, and shows nothing of what was done before"
Document = dict[str, Any]  # Any: JSON


def look(store: Store, folder: Path) -> Document:
    """Return `state`, `path`, `size`, `trust`, `unanchored_tail` and, where something is to be said, `why`.

    `state` is ok, behind (normal: caught up by the next use), ahead (the ledger has lost entries), missing, unusable
    (not to be trusted) or unanchored (it cannot be read or written now). What is not known is None.
    """
    path = anchor_path(folder, store.ledger)
    said: Document = {"state": "missing", "path": str(path), "size": None, "trust": None, "unanchored_tail": None}
    try:
        with anchors.found(store, folder) as anchor:
            if anchor is None:
                return {**said, "unanchored_tail": store.head().seq + 1, "why": MISSING}
            if isinstance(anchor, Unusable):
                raise anchor
            return {**said, **_state(store, anchor)}
    except Unusable as fault:
        state = "unanchored" if fault.passing else "unusable"
        return {**said, "state": state, "why": f"it {str(fault).removeprefix(f'at {path} ')}"}


def examine(store: Store, folder: Path) -> str:
    """Read the whole anchor and return what it is in a few words. Errors: Unusable."""
    path = anchor_path(folder, store.ledger)
    with anchors.found(store, folder) as anchor:
        if anchor is None:
            return f"none yet at {path}; {MISSING}"
        if isinstance(anchor, Unusable):
            raise Unusable(str(anchor).removeprefix(f"at {path} "), passing=anchor.passing)
        anchor.examine()
        found = _state(store, anchor)
    if found["state"] not in ("ok", "behind"):
        raise Unusable(str(found["why"]).removeprefix("it "), passing=found["state"] == "unanchored")
    return f"{path}, {found['size']} entries, trust: {found['trust']}"


def _state(store: Store, anchor: Anchor) -> Document:
    """Return how an anchor stands; what is wrong with it is said before that nothing is added to it now."""
    found = _compared(store, anchor)
    return {**found, **_unwritable(anchor)} if found["state"] in ("ok", "behind") else found


def _compared(store: Store, anchor: Anchor) -> Document:
    state = anchor.state()
    last = anchor.leaves(state.size - 1, 1) if state.size else b""
    size = store.head().seq + 1
    said: Document = {"size": state.size, "trust": state.trust, "unanchored_tail": max(0, size - state.size)}
    if state.size > size:
        why = f"it ends at {state.size} and the ledger at {size}: it has lost entries, or an old copy was put back"
        return {**said, "state": "ahead", "why": why}
    for stored in store.at([state.size - 1]):
        if digest.leaf(stored.envelope) != last:
            why = f"it holds another entry than the ledger at position {stored.seq}"
            return {**said, "state": "unusable", "why": why}
    why = {"why": FIRST_USE} if state.trust == "first_use" else {}
    return {**said, "state": "ok" if state.size == size else "behind", **why}


def _unwritable(anchor: Anchor) -> Document:
    try:
        anchor.try_writing()
    except Unusable as fault:
        return {"state": "unanchored", "why": f"it {fault}"}
    return {"state": "unanchored", "why": f"it {anchor.borrowed}"} if anchor.borrowed else {}
