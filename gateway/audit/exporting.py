"""Exports: the history of memories in a bundle that an outsider checks without us (docs/BUNDLE.md).

A bundle is written aside, then the export is recorded as an event, and only then it appears under the name that was
asked for: nothing is handed out of which the ledger does not know.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from gateway.audit import asides, checkpoints, signing
from gateway.reading.reader import Reader
from gateway.scope.names import Names
from gateway.scope.states import States
from ledger import notes
from ledger.bundle.writing import Contents, Exported, erased_of, fill, place
from ledger.chain import broken
from ledger.clock import Clock, stamp
from ledger.errors import failure, refuse
from ledger.governance import HandedOut, LedgerOpened, RecordExport
from ledger.keys import KeyFiles
from ledger.memories import LineageState, PayloadErased
from ledger.notes import Checkpoint
from ledger.rendering import render
from ledger.verified import Recorded, VerifiedLedger

ALL, NONE = "all", "none"
Progress = Callable[[int, int], None]
_ItemT = TypeVar("_ItemT")


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be exported: lineages, up to which position, with which payloads, for whom, and where to.

    `positions` name the events, where it is not the history of memories that is exported.
    """

    ids: tuple[str, ...]
    lineages: tuple[str, ...]
    kind: str = "supersession"
    positions: Sequence[int] | None = None
    out: Path
    complete: bool
    last: int
    size: int | None  # of the checkpoint, where it was recorded before; else that of all that the anchor holds
    payloads: str | frozenset[str]  # all, none, or the ids of revisions
    recipient: str | None


class Made(Struct, frozen=True, kw_only=True):
    """A bundle that lies aside, with what the ledger is to know of it."""

    folder: Path
    record: RecordExport
    report: dict[str, Any]  # Any: JSON

    @property
    def withheld(self) -> int:
        """Return how many payloads were left out."""
        return self.report["payloads_withheld"]


class Exporting:
    """Makes bundles of one ledger. The caller holds the lock and has caught up."""

    def __init__(
        self, ledger: VerifiedLedger, names: Names, states: States, reader: Reader, files: KeyFiles, clock: Clock
    ) -> None:
        self._ledger = ledger
        self._names = names
        self._states = states
        self._reader = reader
        self._files = files
        self._clock = clock

    def connected(self, lineages: Iterable[str]) -> tuple[str, ...]:
        """Return the lineages with all that their revisions superseded, or were superseded by, in other lineages."""
        found = dict.fromkeys(lineages)
        waiting = [*found]
        while waiting:
            state = self._states.lineage(waiting.pop())
            others = self._ledger.walk.lineages(_beyond(state)).values()
            fresh = [one for one in others if one not in found]
            found |= dict.fromkeys(fresh)
            waiting += fresh
        return tuple(sorted(found))

    @contextmanager
    def made(self, wanted: Wanted, progress: Progress | None = None) -> Generator[Made]:
        """Make a bundle aside of where it shall lie; it is gone again when the caller has not taken it from there.

        `progress` is told how many events were read, how many entries of a whole log were written, and how many events
        were proven; and of how many, each from 0 on.
        """
        with set_aside(wanted.out) as folder:
            yield self._make(folder, wanted, progress or _unwatched)

    def _make(self, folder: Path, wanted: Wanted, progress: Progress) -> Made:
        chosen = self._chosen(wanted)
        if not chosen:
            raise _nothing(wanted.last)
        opened = self.opened()
        note = self.checkpoint(max(chosen), wanted.size)
        key = checkpoints.signing_key(self._files, opened)
        checkpoint = notes.parse_checkpoint(notes.parse_note(note).text)
        read = _counted(self._whole(chosen), len(chosen), progress)
        exported = [self._exported(item, salt, body, wanted) for item, salt, body in read]
        report = self._report(wanted, exported, checkpoint, opened)
        if wanted.complete:
            self._render(folder, note, opened, progress)
        contents = Contents(
            exported,
            note,
            opened.origin,
            opened.public_key,
            report,
            self._proving(checkpoint.size, len(exported), progress),
        )
        fill(folder, contents, key)
        record = RecordExport(
            kind=wanted.kind, count=len(exported), origin=checkpoint.origin, size=checkpoint.size,
            root=checkpoint.root.hex(), handed=HandedOut(ids=wanted.ids, recipient=wanted.recipient),
        )  # fmt: skip
        return Made(folder=folder, record=record, report=report)

    def checkpoint(self, position: int, size: int | None) -> bytes:
        """Return a signed checkpoint over a position: of all that the anchor holds, or of a size again."""
        with signing.alone(self._files.signing):
            return checkpoints.covering(self._ledger.walk.anchor, self._files, self.opened(), position, size)

    def checkpoint_of(self, size: int) -> bytes:
        """Return a signed checkpoint over so many entries exactly: of a log that has grown meanwhile, over its past."""
        note = self.checkpoint(size - 1, None)
        found = notes.parse_checkpoint(notes.parse_note(note).text).size
        return note if found == size else self.checkpoint(size - 1, size)

    def inclusion(self, position: int, size: int) -> list[bytes]:
        """Return what proves an event to be in the log of a size."""
        return self._ledger.walk.anchor.inclusion(position, size)

    def _proving(self, size: int, total: int, progress: Progress) -> Callable[[int], list[bytes]]:
        """Return what proves an event to be in a log of a size, and counts those that it has proven."""
        done = count(1)

        def prove(position: int) -> list[bytes]:
            found = self.inclusion(position, size)
            progress(next(done), total)
            return found

        progress(0, total)
        return prove

    # ---------------------------------------------------------------- what goes in

    def _chosen(self, wanted: Wanted) -> set[int]:
        """Return the positions: the lineages' events, and those that gave names to what stands in them."""
        if wanted.positions is not None:
            return set(wanted.positions)
        found: set[int] = set()
        ids: set[str] = set()
        waiting = [*wanted.lineages]
        while waiting:
            stream = waiting.pop(0)
            for item in self._ledger.stream(stream):
                if item.entry.position <= wanted.last:
                    found.add(item.entry.position)
                    ids |= {stream, item.entry.envelope.actor, *_scope_ids(item)}
                    facts = item.entry.envelope.facts
                    if isinstance(facts, PayloadErased) and facts.erasure not in waiting:
                        waiting.append(facts.erasure)  # its certificate says what became of the payloads
        return found | {item.entry.position for item in self._names.assigned(ids).values()}

    def _whole(self, positions: Iterable[int]) -> Generator[tuple[Recorded, bytes | None, bytes | None]]:
        for item, stored in self._ledger.whole(positions):
            yield item, stored.salt, stored.body

    def _exported(self, item: Recorded, salt: bytes | None, body: bytes | None, wanted: Wanted) -> Exported:
        if self._is_withheld(item, wanted):
            return Exported(item.entry, None, None, None)
        return Exported(item.entry, item.payload, salt, body)

    def _is_withheld(self, item: Recorded, wanted: Wanted) -> bool:
        """Report whether the payload stays here: not asked for, not the actor's to see, or of what was forgotten."""
        if not self._reader.tells(item) or self._reader.repeats_forgotten(item):
            return True
        stream, born = item.entry.envelope.stream, _born(item)
        if not stream.startswith("mem_"):
            return wanted.payloads == NONE
        if born is not None and self._states.lineage(stream).revisions[born].values.state in ("forgotten", "erased"):
            return True
        if isinstance(wanted.payloads, str):
            return wanted.payloads == NONE
        return born not in wanted.payloads

    def opened(self) -> LedgerOpened:
        """Return what event 0 says of the ledger."""
        facts = self._ledger.at([0])[0].entry.envelope.facts
        if not isinstance(facts, LedgerOpened):
            raise broken(0, "chain", "the opening of a ledger", "another event")
        return facts

    def _render(self, folder: Path, note: bytes, opened: LedgerOpened, progress: Progress) -> None:
        """Write all entries of the log and the tree over them, as tiles."""
        anchor, store = self._ledger.walk.anchor, self._ledger.store

        def envelopes(first: int, count: int) -> Sequence[bytes]:
            return [stored.envelope for stored in store.after(first - 1, count)]

        key = notes.parse_verifier_key(opened.public_key)
        progress(0, 1)
        render(folder, note, key, leaves=anchor.leaves, envelopes=envelopes, progress=progress)

    def _report(
        self, wanted: Wanted, exported: Sequence[Exported], checkpoint: Checkpoint, opened: LedgerOpened
    ) -> dict[str, Any]:  # Any: JSON
        withheld = sum(1 for one in exported if one.salt is None and one.entry.envelope.payload_sha256 is not None)
        erased = len(erased_of(exported, opened.public_key))
        shown = wanted.lineages if wanted.positions is None else {one.entry.envelope.stream for one in exported}
        ends = self._ledger.walk.ends(shown)
        return {
            "kind": wanted.kind,
            "profile": "complete" if wanted.complete else "proofs",
            "origin": opened.origin,
            "size": checkpoint.size,
            "root": checkpoint.root.hex(),
            "made_at": stamp(self._clock()),
            "asked_for": list(wanted.ids),
            "as_of": wanted.last,
            "events": len(exported),
            "payloads_withheld": withheld - erased,
            "payloads_erased": erased,
            "streams": {stream: end.version for stream, end in ends.items()},
            "recipient": wanted.recipient,
        }


@contextmanager
def set_aside(out: Path) -> Generator[Path]:
    """Give an empty folder beside the place where a bundle shall lie; what is left there afterwards is removed.

    Errors: VALIDATION_FAILED (something is in that place), UNAVAILABLE (it cannot be written there).
    """
    try:
        asides.check_free(out)
        with asides.beside(out) as folder:
            folder.mkdir(mode=0o700)
            yield folder
    except OSError as error:
        refuse(
            "UNAVAILABLE",
            f"The bundle cannot be written at {out}: {error.strerror or error}. Mend that, and try again.",
        )


def measured(path: Path) -> int:
    """Return what a bundle takes on disk, in bytes."""
    files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
    return sum(one.stat().st_size for one in files)


def hand_out(made: Made, out: Path) -> int:
    """Put a recorded bundle where it was asked for, and return its size in bytes. Errors: VALIDATION_FAILED."""
    try:
        return place(made.folder, out)
    except FileExistsError:
        raise asides.taken(out) from None


def _nothing(last: int) -> Exception:
    """Return the refusal to hand out nothing: a bundle has an entry at least."""
    return failure(
        "MEMORY_NOT_FOUND",
        "There is nothing to be exported: none of it had been recorded at "
        f"{'that time' if last < 0 else f'position {last}'}. Ask for something else, or for a later time, or for none.",
    )


def _unwatched(_done: int, _total: int) -> None:
    """Tell nobody how far it is."""


def _counted(items: Iterable[_ItemT], total: int, progress: Progress) -> Iterator[_ItemT]:
    for done, item in enumerate(items, start=1):
        yield item
        progress(done, total)


def _born(item: Recorded) -> str | None:
    """Return the revision that an event brought into being."""
    moves = getattr(item.entry.envelope.facts, "moves", ())
    return next((move.revision for move in moves if move.before is None), None)


def _scope_ids(item: Recorded) -> set[str]:
    scope = getattr(item.entry.envelope.facts, "scope", None)
    if scope is None:
        return set()
    return {one for one in (scope.agent, scope.project, scope.session, scope.task_family, scope.user) if one}


def _beyond(state: LineageState) -> set[str]:
    """Return the revisions of other lineages that this one's supersede, or are superseded by."""
    named = {one for item in state.revisions.values() for one in (*item.supersedes, *item.superseded_by)}
    return named - state.revisions.keys()
