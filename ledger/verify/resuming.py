"""Beginning at a checkpoint: what has to hold before the entries below it need not be read again.

The checkpoint was signed with the key of event 0, over a ledger that was verified whole. The anchor has the same root
at its size, so the anchor's leaves below are those of that ledger. Every entry that the new ones join (the last one
below, and the one before in each stream) is read from the database and held against its leaf. Whatever is missing for
that, the ledger is read from its first entry.
"""

from collections.abc import Iterable, Mapping, Sequence

from ledger import codec, digest, notes, tree
from ledger.anchor import Anchor, Unusable
from ledger.chain import Envelope, StreamHead
from ledger.codec import NotCanonical
from ledger.digest import LedgerKeys
from ledger.governance import LedgerOpened
from ledger.notes import Checkpoint, NotANote
from ledger.store import Store
from ledger.tree import Frontier
from ledger.verify.aside import Part
from ledger.verify.beside import Beside
from ledger.verify.course import Start, append_of
from ledger.verify.entries import opens
from ledger.verify.report import Findings


class CannotResume(Exception):
    """Why a verification has to begin with the ledger. The message says it in a sentence's part."""


def start_at(note: bytes, store: Store, keys: LedgerKeys | None, anchor: Anchor | None) -> Start:
    """Return where a verification may begin that relies on a checkpoint, or raise CannotResume."""
    if anchor is None:
        raise CannotResume("there is no anchor that could be trusted")
    try:
        opened = _entry(store, anchor, 0, keys)
        if not isinstance(opened.facts, LedgerOpened) or not opens(opened, store.ledger):
            raise CannotResume("event 0 is not the opening of this ledger")
        claim = _claim(note, opened.facts.public_key)
        peaks = _peaks(anchor, claim)
        return _start(claim, peaks, opened.facts.public_key, store, _entry(store, anchor, claim.size - 1, keys))
    except Unusable as fault:
        raise CannotResume(f"the anchor {fault}") from fault


def _claim(note: bytes, public_key: str) -> Checkpoint:
    try:
        claim = notes.open_checkpoint(note, notes.parse_verifier_key(public_key))
    except NotANote as fault:
        raise CannotResume(f"it is no checkpoint that this ledger's key signed: {fault}") from fault
    if claim.size < 1:
        raise CannotResume("it is one of nothing")
    return claim


def _peaks(anchor: Anchor, claim: Checkpoint) -> list[bytes]:
    """Return the roots of the checkpoint's complete subtrees: the anchor's, whose root must be the signed one."""
    if claim.size > anchor.state().size:
        raise CannotResume("the anchor does not reach as far as it does")
    peaks = anchor.peaks(claim.size)
    if tree.joined(peaks) != claim.root:
        raise CannotResume("the anchor holds other entries than it was signed over")
    return peaks


def _entry(store: Store, anchor: Anchor, position: int, keys: LedgerKeys | None) -> Envelope:
    """Return the envelope at a position whose leaf the anchor holds and whose seal is the key's."""
    for stored in store.at([position]):
        if digest.leaf(stored.envelope) != anchor.leaves(position, 1):
            raise CannotResume(f"the entry at position {position} is not the one that the anchor holds")
        if keys is not None and not keys.is_sealed(digest.link(stored.envelope), stored.seal):
            raise CannotResume(f"the entry at position {position} has no seal of this ledger's key")
        try:
            return codec.scan_envelope(stored.envelope)
        except NotCanonical as fault:
            raise CannotResume(f"the entry at position {position} is {fault}") from fault
    raise CannotResume(f"there is no entry at position {position}")


def _start(claim: Checkpoint, peaks: Sequence[bytes], public_key: str, store: Store, last: Envelope) -> Start:
    (stored,) = store.at([claim.size - 1])
    start = Start(claim.size, digest.link(stored.envelope))
    start.append, start.append_left = append_of(last), last.op_count - last.op_index - 1
    start.at = last.at
    start.origin = last.log
    start.is_anchored = True
    start.public_key = public_key
    start.tree = Frontier(claim.size, peaks)
    return start


def check_beginnings(parts: Iterable[Sequence[Part]], store: Store, beside: Beside, findings: Findings) -> None:
    """Hold the first entry that was read of each stream against what the stream had before.

    Above the anchor that is the anchor's end of the stream. Below, the entry before is read and held against its leaf;
    that the stream has no other there is for the leaves of what was read to say.
    """
    try:
        for some in parts:
            if beside.anchor is not None:
                _check_some(some, store, beside.anchor, findings)
    except Unusable as fault:
        beside.lose(fault)


def _check_some(parts: Sequence[Part], store: Store, anchor: Anchor, findings: Findings) -> None:
    ends, _ = anchor.known((part.stream for part in parts), ())
    # What other processes have anchored since the reading began counts as below: the anchor's end lies behind it.
    above = [part for part in parts if part.stream not in ends or ends[part.stream].position < part.position]
    known = {part.stream for part in above}
    below = [part for part in parts if part.stream not in known and part.place]
    _check(above, ends, findings)
    _check(below, _before(below, store, anchor, findings), findings)


def _check(parts: Sequence[Part], ends: Mapping[str, StreamHead], findings: Findings) -> None:
    for part in parts:
        end = ends.get(part.stream)
        version = 0 if end is None else end.version
        if part.place != version:
            findings.bad("streams", part.position, f"entry {version} of the stream next", f"entry {part.place}")
        elif end is not None and part.link != end.hash.hex():
            findings.bad("streams", part.position, "an entry that the stream's next one links to", "another")


def _before(parts: Sequence[Part], store: Store, anchor: Anchor, findings: Findings) -> dict[str, StreamHead]:
    """Return the end of each stream before its part; an entry that is not the anchor's is a finding at its position."""
    found: dict[str, StreamHead] = {}
    for stored in store.in_streams([part.stream for part in parts], [(part.place or 0) - 1 for part in parts]):
        if digest.leaf(stored.envelope) != anchor.leaves(stored.seq, 1):
            findings.bad("anchor", stored.seq, "the entry whose leaf the anchor holds", "another")
            continue
        try:
            envelope = codec.scan_envelope(stored.envelope)
        except NotCanonical as fault:
            findings.bad("canonical", stored.seq, "an envelope in canonical form", str(fault))
            continue
        end = StreamHead(envelope.stream_seq + 1, stored.seq, digest.stream_link(stored.envelope))
        found[envelope.stream] = end
    return found
