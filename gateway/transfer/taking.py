"""Takes over what another ledger tells: append by append, a page of them in one transaction, each page recorded.

An append keeps the id that it has there, so whoever imports again, however often and from however far an earlier run
came, takes each over once. A history is only continued where it ended: what went on otherwise here stays as it is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from gateway.deciding.burying import Graveyard
from gateway.names import Names
from gateway.page import Append, Page
from gateway.reading import Reader
from gateway.replies import ImportItem, Transfer
from gateway.transfer.lines import Told
from gateway.transfer.naming import NAMED_RECORDS, NOT_TAKEN_OVER, Naming
from gateway.transfer.reading import Bad, Source
from gateway.transfer.replaying import Ids, Replaying, check_links
from gateway.transfer.surveying import AGGREGATES, Survey, survey
from gateway.writing import Writer
from ledger.codec import canonical
from ledger.corrections import CORRECTION
from ledger.errors import CorrigendaError, IntegrityError, UnavailableError, failure, refuse
from ledger.governance import LEDGER, NameAssigned, RecordImport, TakenOver
from ledger.ids import MEMORY, kind_of
from ledger.memories import LineageLinked, LineageUnlinked, MemoryForgotten, MemoryRestored, RevisionAdmitted
from ledger.message import Payload
from ledger.sealing import Draft
from ledger.verified import Recorded, VerifiedLedger
from projections.lineage import QUERIES

LINES_PER_PAGE = 300
REPLAYED = (*AGGREGATES, "evd", "tomb")  # what is decided anew, or follows from what is
ITEMS_KEPT = 1_000
Progress = Callable[[int, int], None]


class Group(NamedTuple):
    """The lines of one append, with those between them that cannot be read."""

    op: str
    events: tuple[Told, ...]

    @property
    def names(self) -> list[Told]:
        """Return the lines that give names."""
        return [item for item in self.events if isinstance(item.facts, NameAssigned)]

    @property
    def replayed(self) -> list[Told]:
        """Return the lines that are decided anew, those that follow from others among them."""
        own = [item for item in self.events if kind_of(item.line.stream) in REPLAYED]
        return [item for item in own if not isinstance(item.facts, RevisionAdmitted)]

    @property
    def streams(self) -> list[str]:
        """Return the memories and corrections that the append changes."""
        return [item.line.stream for item in self.replayed if kind_of(item.line.stream) in AGGREGATES]


Said = Mapping[tuple[str, str], bytes]


class Known(NamedTuple):
    """An append that is here: how many events of it each stream has, and what they say, by stream and type."""

    streams: Mapping[str, int]
    said: Said


class Taking:
    """One run of an import. The caller holds the lock."""

    def __init__(
        self,
        writer: Writer,
        ledger: VerifiedLedger,
        names: Names,
        reader: Reader,
        source: Source,
        *,
        actor: str,
        on_error: str,
    ) -> None:
        if on_error not in ("stop", "skip"):
            refuse("VALIDATION_FAILED", "After a bad line an import does one of stop, skip. Give one of them.")
        self._writer = writer
        self._ledger = ledger
        self._source = source
        self._actor = actor
        self._stops = on_error == "stop"
        self._root = names.root
        self._kept: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._items: list[ImportItem] = []
        self._stopped = False
        self._naming = Naming(ledger, names, self._kept, self._ended)
        self._ids = Ids(self._naming.here)
        self._replaying = Replaying(ledger, Graveyard(ledger.keys, reader), self._ids)

    def run(self, progress: Progress | None = None) -> Transfer:
        """Look through the file, take over what it tells, and report.

        Errors: VALIDATION_FAILED (a line cannot be read, and the import is not to skip it: nothing was stored).
        """
        found = survey(self._source)
        if found.bad and self._stops:
            first = found.bad[0]
            refuse(
                "VALIDATION_FAILED",
                f"Line {first.number} of the file {first.why}. Nothing was stored: mend the line, or import what "
                "can be read (--on-error skip).",
                line=first.number,
                lines=[item.number for item in found.bad],
            )
        done = 0
        for page in self._pages():
            self._carry_out(page, found)
            done += sum(len(group.events) for group in page)
            if progress:
                progress(done, found.events)
            if self._stopped:
                break
        return self._report()

    def _report(self) -> Transfer:
        row, origin = self._ledger.store.head(), self._source.origin
        counts = {name: self._counts[name] for name in ("stored", "unchanged", "rejected", "left_out", "unverified")}
        return Transfer(
            **counts,
            items=tuple(self._items),
            kind=origin.kind,
            origin=origin.origin,
            size=origin.size,
            root=origin.root,
            verified=origin.verified,
            position=row.seq,
            incarnation=row.incarnation,
        )

    # ---------------------------------------------------------------- pages

    def _pages(self) -> Iterator[list[Group]]:
        """Yield the appends of the file, some at a time.

        What is forgotten or restored is read where it is stored, so it comes in a later page than what it is about.
        """
        page: list[Group] = []
        touched: set[str] = set()
        size = 0
        for group in _groups(self._tell_bad(self._source.lines())):
            reads = {
                item.line.stream for item in group.events if isinstance(item.facts, MemoryForgotten | MemoryRestored)
            }
            if page and (size >= LINES_PER_PAGE or reads & touched):
                yield page
                page, size, touched = [], 0, set[str]()
            page.append(group)
            size += len(group.events)
            touched.update(group.streams)
        if page:
            yield page

    def _tell_bad(self, lines: Iterable[Told | Bad]) -> Iterator[Told]:
        for item in lines:
            if isinstance(item, Bad):
                self._reject(item.number, "VALIDATION_FAILED", f"The line {item.why}.")
            else:
                yield item

    def _carry_out(self, groups: Sequence[Group], found: Survey) -> None:
        """Decide and store one page of appends, and record them before them."""
        with self._writer.hold() as (held, page):
            known = self._known({group.op for group in groups})
            record = page.begin(actor=self._actor)
            record.decide_on(LEDGER, self._root, self._recording(0, ()))
            page.close(record)
            times: list[str] = []
            for group in groups:
                before = len(page.drafts)
                self._take(page, group, known, found)
                for draft in page.drafts[before:]:
                    times += [group.events[0].line.recorded_at] * len(draft.events)
                if self._stopped:
                    break
            if times:
                page.drafts[0] = _recorded(page.drafts[0], self._recording(len(times), tuple(times)))
                held.store(page.drafts)

    def _recording(self, count: int, times: tuple[str, ...]) -> RecordImport:
        origin = self._source.origin
        return RecordImport(
            kind=origin.kind, count=count, origin=origin.origin, size=origin.size, root=origin.root,
            taken=TakenOver(recorded_at=times),
        )  # fmt: skip

    def _known(self, ops: set[str]) -> dict[str, Known]:
        """Return those of the appends that are here already, as their entries say."""
        ledger = self._ledger
        gen = ledger.head_row.gen if ledger.head_row else 0
        rows = ledger.store.query(QUERIES["find_appends_among"], {"gen": gen, "ops": sorted(ops)})
        places = {str(op): int(seq) for op, seq in rows if 0 <= int(seq) <= ledger.walk.position}
        firsts = ledger.at(places.values())
        envelopes = {op: firsts[seq].entry.envelope for op, seq in places.items()}
        there = {op: one for op, one in envelopes.items() if (one.op, one.op_index) == (op, 0)}
        rest = ledger.at(seq for one in there.values() for seq in range(one.seq, one.seq + one.op_count))
        return {op: _known([rest[one.seq + at] for at in range(one.op_count)]) for op, one in there.items()}

    # ---------------------------------------------------------------- one append

    def _take(self, page: Page, group: Group, known: dict[str, Known], found: Survey) -> None:
        """Take one append over, or count what becomes of it instead."""
        earlier = known.get(group.op)
        if earlier is not None:
            self._kept.update(earlier.streams)
            self._naming.take(page, None, group.names, found)
            self._compare(group, earlier)
            return
        append = page.take_over(group.op, request=self._request(group.op), fingerprint=self._fingerprint(group.op))
        try:
            self._naming.take(page, append, group.names, found)
            self._decide(append, group, found)
        except (IntegrityError, UnavailableError):
            raise
        except CorrigendaError as refusal:
            self._keep_names(page, group, found)
            self._refuse(group, refusal)
            return
        if append.events:
            append.actor = self._naming.here.get(group.events[0].line.actor, page.drafts[0].actor)
            page.close(append)
            known[group.op] = Known({}, _said(group.events))
        self._kept.update(stream for stream, _ in append.events)
        self._count(group, "stored" if append.events else "unchanged")

    def _keep_names(self, page: Page, group: Group, found: Survey) -> None:
        """Keep the names that an append gave whose events were refused: those of other appends may be about them."""
        self._naming.given.clear()
        names = [item for item in group.names if _kind(item) not in NAMED_RECORDS]
        append = page.take_over(
            f"op_{page.mint()}", request=self._request(f"names of {group.op}"), fingerprint=self._fingerprint(group.op)
        )
        self._naming.take(page, append, names, found)
        left = [item for item in group.names if _kind(item) in NAMED_RECORDS]
        self._naming.refused |= dict.fromkeys((item.number for item in left), NOT_TAKEN_OVER)
        if append.events:
            append.actor = self._naming.here.get(group.events[0].line.actor, page.drafts[0].actor)
            page.close(append)

    def _decide(self, append: Append, group: Group, found: Survey) -> None:
        self._check_whole(group)
        replayed = group.replayed
        if not replayed:
            return
        check_links(replayed)
        for stream in dict.fromkeys(group.streams):
            self._check_goes_on(append, stream, found)
        self._ids.one(group.events[0].line.actor)
        self._replaying.replay(append, replayed)

    def _check_whole(self, group: Group) -> None:
        first = group.events[0].line
        same = (first.actor, first.at, first.places)
        if any((item.line.actor, item.line.at, item.line.places) != same for item in group.events):
            refuse("INVALID_INPUT", "Lines of one append do not agree on who made it, when, or how long it is.")
        places = [item.line.place for item in group.events if item.line.place is not None]
        if self._source.origin.whole and places != list(range(first.places or 0)):
            refuse("INVALID_INPUT", "Lines of this append are missing, and it is taken over whole or not at all.")

    def _check_goes_on(self, append: Append, stream: str, found: Survey) -> None:
        """Refuse a history that is not whole in the file, or that ends otherwise here."""
        why = found.why.why(stream)
        if why is not None:
            refuse("INVALID_INPUT", f"This is not taken over: {why}.", goes_on=True)
        if stream in self._ended:
            refuse("INVALID_INPUT", "This goes on from a line that was not taken over.")
        state = append.state(stream) if kind_of(stream) == MEMORY else append.of(CORRECTION, stream)
        if state.version != self._kept[stream]:
            refuse(
                "STALE_REVISION",
                "What has this id in this ledger went on otherwise than in the file, so this cannot follow there. "
                "Compare the two histories, and mend by hand what is wrong.",
                expected=self._kept[stream],
                found=state.version,
            )

    def _compare(self, group: Group, earlier: Known) -> None:
        """Count an append that is here already; refuse one that says something else under the same key."""
        told = _said(group.events)
        if any(earlier.said.get(place, said) != said for place, said in told.items()):
            self._refuse(
                group,
                failure(
                    "IDEMPOTENCY_KEY_REUSED",
                    "An append with this key is here, and says something else; nothing of this one was stored. If the "
                    "file was changed, take back the change and make it here.",
                ),
            )
        elif told.keys() - earlier.said.keys():
            refusal = failure("INVALID_INPUT", "This append was taken over before, from a file that told only a part.")
            self._refuse(group, refusal)
        else:
            self._count(group, "unchanged")

    def _request(self, word: str) -> str:
        return self._ledger.keys.request(["import"], word)

    def _fingerprint(self, op: str) -> str:
        return self._ledger.keys.fingerprint(canonical({"import": op}))

    # ---------------------------------------------------------------- what became of the lines

    def _count(self, group: Group, outcome: str) -> None:
        """Count the lines of an append whose events have this outcome."""
        self._count_names(group)
        for item in group.events:
            if isinstance(item.facts, NameAssigned):
                continue
            if kind_of(item.line.stream) in REPLAYED and not isinstance(item.facts, RevisionAdmitted):
                self._counts[outcome] += 1
            else:
                self._leave_out(item)

    def _refuse(self, group: Group, refusal: CorrigendaError) -> None:
        """Count an append whose events were refused."""
        self._count_names(group)
        for item in group.events:
            if isinstance(item.facts, RevisionAdmitted):
                self._leave_out(item)
            elif not isinstance(item.facts, NameAssigned):
                self._reject(item.number, refusal.code, refusal.message)
        if not all(isinstance(item.facts, LineageLinked | LineageUnlinked) for item in group.replayed):
            self._ended.update(group.streams)
        self._stopped = self._stopped or (self._stops and not refusal.details.get("goes_on"))

    def _count_names(self, group: Group) -> None:
        for item in group.names:
            why = self._naming.refused.pop(item.number, None)
            if why is not None:
                self._reject(item.number, "INVALID_INPUT", why)
            else:
                self._counts["stored" if item.number in self._naming.given else "unchanged"] += 1
        self._naming.given.clear()

    def _leave_out(self, item: Told) -> None:
        self._counts["left_out"] += 1
        self._counts["unverified"] += isinstance(item.facts, RevisionAdmitted)

    def _reject(self, number: int, code: str, message: str) -> None:
        self._counts["rejected"] += 1
        if len(self._items) < ITEMS_KEPT:
            self._items.append(ImportItem(row=number, outcome="rejected", code=code, message=message))


def _groups(items: Iterable[Told]) -> Iterator[Group]:
    for op, events in groupby(items, key=lambda item: item.line.op):
        yield Group(op, tuple(events))


def _known(recorded: Sequence[Recorded]) -> Known:
    return Known(
        Counter(item.entry.envelope.stream for item in recorded),
        {
            (item.entry.envelope.stream, item.entry.envelope.type): _comparable(item.payload)
            for item in recorded
            if kind_of(item.entry.envelope.stream) in AGGREGATES
        },
    )


def _said(events: Iterable[Told]) -> Said:
    """Return what the events of memories and corrections say, those left out that are not taken over."""
    return {
        (item.line.stream, item.line.type): _comparable(item.payload)
        for item in events
        if kind_of(item.line.stream) in AGGREGATES and not isinstance(item.facts, RevisionAdmitted)
    }


def _comparable(payload: Payload | None) -> bytes:
    """Return what a payload says, but for when it was first recorded: that is said by whoever takes it over."""
    said: dict[str, Any] = {} if payload is None else msgspec.to_builtins(payload)  # Any: JSON
    return canonical({name: value for name, value in said.items() if name != "recorded_at"})


def _kind(item: Told) -> str:
    return item.facts.kind if isinstance(item.facts, NameAssigned) else ""


def _recorded(draft: Draft, record: RecordImport) -> Draft:
    """Return the draft of a page's record, with what it is to say now that the page is decided."""
    *names, (stream, event) = draft.events
    (said,) = LEDGER.decide(LEDGER.initial, record)
    return msgspec.structs.replace(
        draft, events=(*names, (stream, msgspec.structs.replace(said, position=event.position)))
    )
