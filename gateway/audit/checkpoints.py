"""Checkpoints made, read and compared, and the public keys behind them.

A checkpoint is signed only over a ledger that was verified whole in the same moment, by the key that event 0 names. The
private key lies in a file; nothing here prints one.
"""

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import digest, notes, tree
from ledger.anchor import Anchor, Unusable
from ledger.chain import broken
from ledger.codec import read_entry
from ledger.digest import LedgerKeys
from ledger.errors import CorrigendaError, failure
from ledger.governance import LedgerOpened
from ledger.keys import make_ledger_key, make_signing_key, read_ledger_key, read_signing_key, verifier_key
from ledger.notes import Checkpoint, NotANote, VerifierKey
from ledger.opening import KeyFiles
from ledger.rendering import render
from ledger.store import Store
from ledger.verify import CHECKPOINT_MISMATCH, Report, verify
from ledger.walk import Told, unfit

PAGE = 4_000
Document = dict[str, Any]  # Any: JSON
Progress = Callable[[int, int], None]


def sign(
    store: Store,
    files: KeyFiles,
    *,
    anchor: Anchor | Unusable | None = None,
    earlier: bytes | None = None,
    tiles: Path | None = None,
    progress: Progress | None = None,
) -> Document:
    """Verify the whole ledger and return a checkpoint of it: the note, and what it says.

    It is signed only if the ledger is its anchor's, and extends the last checkpoint that was signed here; with
    `earlier`, a checkpoint that was signed before, if it extends that one, too. The anchor keeps it. `tiles` names a
    directory that is made to show the log up to this checkpoint. Errors: LEDGER_UNVERIFIED (a key is missing or another
    ledger's), INTEGRITY_BROKEN (what was found; nothing is signed), and those of `render` for the directory.
    """
    sealing = read_ledger_key(files.ledger).for_ledger(store.ledger)
    opened = _sealed_opening(store, sealing)
    signing = signing_key(files, opened)
    report = verify(store, sealing, opened.origin, anchor=anchor, progress=progress, checkpoint=earlier)
    if not report.ok or report.root is None:
        raise _unfit(report)
    checkpoint = Checkpoint(opened.origin, report.size, bytes.fromhex(report.root))
    note = notes.sign_checkpoint(checkpoint, signing)
    if isinstance(anchor, Anchor):
        _keep(anchor, report.size, note)
    said = {**_said(checkpoint, opened.public_key), "note": note.decode()}
    return said if tiles is None else {**said, "tiles": _render(store, tiles, note, _key(opened))}


def covering(anchor: Anchor, files: KeyFiles, opened: LedgerOpened, position: int, at: int | None = None) -> bytes:
    """Return a checkpoint of all that the anchor holds, or of the size `at` again, an entry among it.

    It is signed over what this host has followed entry by entry, and only if that extends the last one. Errors:
    LEDGER_UNVERIFIED (no signing key, or another ledger's), INTEGRITY_BROKEN (the last one is not borne out; exit 11),
    UNAVAILABLE (the anchor does not hold the entry yet).
    """
    key = signing_key(files, opened)
    with Told(anchor):
        size, last = anchor.state().size, anchor.note()
        claim = None if last is None else _opened(last, opened, "the last checkpoint that was signed here")
        if claim is not None and (claim.size > size or anchor.root(claim.size) != claim.root):
            raise _mismatch("the last checkpoint that was signed here", "another tree", check="anchor")
        if at is not None and position < at <= size:
            return notes.sign_checkpoint(Checkpoint(opened.origin, at, anchor.root(at)), key)
        if last is not None and claim is not None and claim.size == size > position:
            return last
        if size <= position:
            raise failure(
                "UNAVAILABLE",
                f"A checkpoint over position {position} is needed, and the anchor holds {size} entries: it cannot be "
                "written now. Mend that (`corrigenda status` says what it is), and try again.",
            )
        note = notes.sign_checkpoint(Checkpoint(opened.origin, size, anchor.root(size)), key)
    _keep(anchor, size, note)
    return note


def signing_key(files: KeyFiles, opened: LedgerOpened) -> Ed25519PrivateKey:
    """Return the key that signs for a ledger: the one that its event 0 names, or LEDGER_UNVERIFIED."""
    key = read_signing_key(files.signing)
    if verifier_key(opened.origin, key) != opened.public_key:
        raise failure(
            "LEDGER_UNVERIFIED",
            f"The signing key at {files.signing} is another than the one that event 0 of this ledger names, so nobody "
            "could check what it signs. Give the key that was made with this ledger (CORRIGENDA_SIGNING_KEY_FILE).",
            file=str(files.signing),
        )
    return key


def _keep(anchor: Anchor, size: int, note: bytes) -> None:
    """Let the anchor keep a checkpoint; what cannot be kept now is kept the next time."""
    try:
        anchor.keep_note(size, note)
    except Unusable as fault:
        if not fault.passing:
            raise unfit(anchor, fault) from fault


def _render(store: Store, folder: Path, note: bytes, key: VerifierKey) -> Document:
    def envelopes(first: int, count: int) -> list[bytes]:
        return _envelopes(store, first, count)

    def leaves(first: int, count: int) -> bytes:
        return b"".join(map(digest.leaf, _envelopes(store, first, count)))

    done = render(folder, note, key, leaves=leaves, envelopes=envelopes)
    return {"directory": str(folder), "written": done.written, "kept": done.kept}


def show(store: Store, files: KeyFiles, note: bytes) -> Document:
    """Return what a checkpoint says, after its signature was checked with event 0's key.

    Whether the ledger bears it out is `verify`'s to say. Errors: VALIDATION_FAILED (no checkpoint at all),
    INTEGRITY_BROKEN (one that this ledger's key did not sign; exit 11), LEDGER_UNVERIFIED (no ledger key, so event 0's
    seal cannot be checked).
    """
    opened = _opening(store, files)
    return _said(_given(note, opened, "the checkpoint"), opened.public_key)


def consistency(store: Store, files: KeyFiles, old: bytes, new: bytes) -> Document:
    """Prove from the ledger's entries that the tree of `new` begins with that of `old`; the proof is in the answer.

    Both roots are those of the entries as they lie, so a ledger that was altered proves nothing. Errors: as `show`;
    INTEGRITY_BROKEN with exit 11 too if the ledger has no such proof.
    """
    opened = _opening(store, files)
    before, after = _given(old, opened, "the first checkpoint"), _given(new, opened, "the second checkpoint")
    if not 1 <= before.size <= after.size:
        raise _mismatch(f"a second checkpoint of at least {max(before.size, 1)} entries", f"one of {after.size}")
    leaves = _leaves(store, after.size)
    for checkpoint, which in ((before, "first"), (after, "second")):
        _hold(checkpoint, leaves, f"the {which} checkpoint")
    proof = tree.consistency(before.size, leaves)
    tree.check_consistency(before.size, before.root, after.size, after.root, proof)
    return {
        "ok": True,
        "old": _said(before, opened.public_key),
        "new": _said(after, opened.public_key),
        "proof": [base64.b64encode(one).decode() for one in proof],
    }


def public_key(store: Store, files: KeyFiles) -> Document:
    """Return the key that checks this ledger's checkpoints, from event 0, whose seal is checked. Errors: as `show`."""
    opened = _opening(store, files)
    return {"origin": opened.origin, "public_key": opened.public_key, "key_id": _key(opened).key_id.hex()}


def missing_keys(files: KeyFiles) -> list[Path]:
    """Return which key files are not there, after those that are have been read. Errors: LEDGER_UNVERIFIED."""
    missing: list[Path] = []
    for path, read in ((files.ledger, read_ledger_key), (files.signing, read_signing_key)):
        if os.path.lexists(path):
            read(path)
        else:
            missing.append(path)
    return missing


def make_keys(files: KeyFiles) -> Document:
    """Make the key files that are missing, and say which. Errors: UNAVAILABLE (one cannot be written)."""
    missing = missing_keys(files)
    make_ledger_key(files.ledger)
    make_signing_key(files.signing)
    paths = (("seal", files.ledger), ("signing", files.signing))
    return {
        "items": [{"purpose": purpose, "file": str(path), "made": path in missing} for purpose, path in paths],
        "next_cursor": None,
        "truncated": False,
    }


def list_keys(store: Store, files: KeyFiles) -> Document:
    """Return each of the ledger's keys: what it is for, its public part or id, its file, and if that is the one.

    It answers without usable files too: `held` is `yes`, `foreign` (another ledger's) or `no`, and `why` says what
    keeps a file from being used.
    """
    opened, event_hash, seal = _first(store)
    sealing = _held(lambda: read_ledger_key(files.ledger).for_ledger(store.ledger).is_sealed(event_hash, seal))
    signing = _held(lambda: verifier_key(opened.origin, read_signing_key(files.signing)) == opened.public_key)
    seal_key = {"purpose": "seal", "key_id": seal[:8].hex(), "public_key": None}
    signing_key = {"purpose": "signing", "key_id": _key(opened).key_id.hex(), "public_key": opened.public_key}
    return {
        "items": [
            {**seal_key, "since": 0, "file": str(files.ledger), **sealing},
            {**signing_key, "since": 0, "file": str(files.signing), **signing},
        ],
        "next_cursor": None,
        "truncated": False,
    }


def _held(is_ours: Callable[[], bool]) -> Document:
    try:
        return {"held": "yes" if is_ours() else "foreign", "why": None}
    except CorrigendaError as error:
        return {"held": "no", "why": error.message}


def _opening(store: Store, files: KeyFiles) -> LedgerOpened:
    return _sealed_opening(store, read_ledger_key(files.ledger).for_ledger(store.ledger))


def _sealed_opening(store: Store, sealing: LedgerKeys) -> LedgerOpened:
    """Return event 0 if the ledger key sealed it: its public key is only as good as that."""
    opened, event_hash, seal = _first(store)
    if not sealing.is_sealed(event_hash, seal):
        raise failure(
            "LEDGER_UNVERIFIED",
            "Event 0 of this ledger was expected to carry the seal of the ledger key, and it does not: the key is "
            "another ledger's, or event 0 is not what was written. `corrigenda verify` tells which.",
        )
    return opened


def _first(store: Store) -> tuple[LedgerOpened, bytes, bytes]:
    found = store.at([0])
    if found:
        entry = read_entry(found[0].envelope, found[0].seal, position=0)
        facts = entry.envelope.facts
        if isinstance(facts, LedgerOpened) and facts.origin == entry.envelope.log:
            _key(facts)
            return facts, entry.hash, entry.seal
    raise broken(0, "chain", "the opening of a ledger", "another event, or none")


def _key(opened: LedgerOpened) -> VerifierKey:
    try:
        key = notes.parse_verifier_key(opened.public_key)
    except NotANote as fault:
        raise broken(0, "chain", "a verifier key in the opening", str(fault)) from fault
    if key.name != opened.origin:
        raise broken(0, "chain", "a verifier key in the ledger's own name", "one in another")
    return key


def _given(note: bytes, opened: LedgerOpened, which: str) -> Checkpoint:
    """Return the checkpoint that a caller's bytes are. Bytes of another kind say nothing about the ledger."""
    try:
        notes.parse_checkpoint(notes.parse_note(note).text)
    except NotANote as fault:
        raise failure(
            "VALIDATION_FAILED",
            f"For {which} a signed note was expected, as `corrigenda checkpoint sign` prints it, and what was given is "
            f"none: {fault}. Give the file that was kept then, unchanged.",
        ) from fault
    return _opened(note, opened, which)


def _opened(note: bytes, opened: LedgerOpened, which: str) -> Checkpoint:
    try:
        return notes.open_checkpoint(note, _key(opened))
    except NotANote as fault:
        raise _mismatch(f"{which} to be a note that this ledger's key signed", f"that it is none: {fault}") from fault


def _hold(checkpoint: Checkpoint, leaves: list[bytes], which: str) -> None:
    """Refuse a checkpoint that the entries do not bear out: a proof alone need not touch the part that was altered."""
    if len(leaves) < checkpoint.size:
        raise _mismatch(f"{checkpoint.size} entries, as {which} says", f"{len(leaves)}", len(leaves))
    found = tree.root(leaves[: checkpoint.size])
    if found != checkpoint.root:
        expected = f"root {checkpoint.root.hex()} of the first {checkpoint.size} entries, as {which} says"
        raise _mismatch(expected, f"root {found.hex()}")


def _leaves(store: Store, size: int) -> list[bytes]:
    """Return the leaf hashes of at most `size` first entries; one that is missing among them breaks the chain."""
    return list(map(digest.leaf, _envelopes(store, 0, size)))


def _envelopes(store: Store, first: int, count: int) -> list[bytes]:
    """Return so many envelopes from a position on; one that is missing among them breaks the chain."""
    found: list[bytes] = []
    while len(found) < count and (page := store.after(first + len(found) - 1, min(PAGE, count - len(found)))):
        for stored in page:
            if stored.seq != first + len(found):
                raise broken(first + len(found), "chain", "an entry", "none")
            found.append(stored.envelope)
    return found


def _said(checkpoint: Checkpoint, key: str) -> Document:
    said = {"origin": checkpoint.origin, "size": checkpoint.size, "root": checkpoint.root.hex()}
    return {**said, "public_key": key}


def _unfit(report: Report) -> Exception:
    """Return why nothing is signed: the finding that decided the report's exit."""
    failed = {name: check for name, check in report.checks.items() if check.status == "failed"}
    sealed = {name: check for name, check in failed.items() if check.first_bad_position is not None}
    if report.exit_code == CHECKPOINT_MISMATCH:
        name = "checkpoints" if "checkpoints" in failed else "anchor"
        check = failed[name]
        return _mismatch(check.expected or "the same", check.found or "another", check.first_bad_position, check=name)
    if sealed:
        name, check = min(sealed.items(), key=lambda item: item[1].first_bad_position or 0)
        return broken(check.first_bad_position or 0, name, check.expected or "", check.found or "")
    return failure(
        "LEDGER_UNVERIFIED", "The ledger could not be verified whole, so nothing is signed. Run `corrigenda verify`."
    )


def _mismatch(expected: str, found: str, position: int | None = None, *, check: str = "checkpoints") -> Exception:
    return failure(
        "INTEGRITY_BROKEN",
        f"Ledger and {check.removesuffix('s')} were expected to agree on {expected}; found was {found}. One of the two "
        "is not what was written: compare with a checkpoint that was kept elsewhere, and run `corrigenda verify`.",
        position=position,
        check=check,
        expected=expected,
        found=found,
        exit_code=CHECKPOINT_MISMATCH,
    )
