"""Takes over what another ledger tells: append by append, a page of them in one transaction, each page recorded.

An append keeps the id that it has there, so whoever imports again, however often and from however far an earlier run
came, takes each over once. A history is only continued where it ended: what went on otherwise here stays as it is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from gateway.deciding.burying import Graveyard
from gateway.reading.reader import Reader
from gateway.scope.names import Names
from gateway.shapes.replies.upkeep import Transfer
from gateway.transfer.coherence import check_links
from gateway.transfer.groups import Group, Known, groups, known, said
from gateway.transfer.lines import Told
from gateway.transfer.naming import NAMED_RECORDS, NOT_TAKEN_OVER, Naming
from gateway.transfer.outcomes import Outcomes
from gateway.transfer.reading import Bad, Source
from gateway.transfer.replaying import Ids, Replaying
from gateway.transfer.surveying import Survey, survey
from gateway.writing.page import Append, Page
from gateway.writing.writer import Writer
from ledger.codec import canonical
from ledger.corrections import CORRECTION
from ledger.errors import CorrigendaError, IntegrityError, UnavailableError, failure, refuse
from ledger.governance import LEDGER, NameAssigned, RecordImport, TakenOver
from ledger.ids import MEMORY, kind_of
from ledger.memories import MemoryForgotten, MemoryRestored
from ledger.sealing import Draft
from ledger.verified import VerifiedLedger
from projections.lineage import QUERIES

LINES_PER_PAGE = 300
Progress = Callable[[int, int], None]


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
        self._writer = writer
        self._ledger = ledger
        self._source = source
        self._actor = actor
        self._stops = on_error == "stop"
        self._root = names.root
        self._kept: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._stopped = False
        self._naming = Naming(ledger, names, self._kept, self._ended)
        self._outcomes = Outcomes(self._naming)
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
        row = self._ledger.store.head()
        return self._outcomes.report(self._source.origin, position=row.seq, incarnation=row.incarnation)

    # ---------------------------------------------------------------- pages

    def _pages(self) -> Iterator[list[Group]]:
        """Yield the appends of the file, some at a time.

        What is forgotten or restored is read where it is stored, so it comes in a later page than what it is about.
        """
        page: list[Group] = []
        touched: set[str] = set()
        size = 0
        for group in groups(self._tell_bad(self._source.lines())):
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
                self._outcomes.reject(item.number, "VALIDATION_FAILED", f"The line {item.why}.")
            else:
                yield item

    def _carry_out(self, appends: Sequence[Group], found: Survey) -> None:
        """Decide and store one page of appends, and record them before them."""
        self._replaying.begin_page()
        with self._writer.hold() as (held, page):
            here = self._known({group.op for group in appends})
            record = page.begin(actor=self._actor)
            record.decide_on(LEDGER, self._root, self._recording(0, ()))
            page.close(record)
            times: list[str] = []
            for group in appends:
                before = len(page.drafts)
                self._take(page, group, here, found)
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
        return {op: known([rest[one.seq + at] for at in range(one.op_count)]) for op, one in there.items()}

    # ---------------------------------------------------------------- one append

    def _take(self, page: Page, group: Group, here: dict[str, Known], found: Survey) -> None:
        """Take one append over, or count what becomes of it instead."""
        earlier = here.get(group.op)
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
            here[group.op] = Known({}, said(group.events))
        self._kept.update(stream for stream, _ in append.events)
        self._outcomes.count(group, "stored" if append.events else "unchanged")

    def _keep_names(self, page: Page, group: Group, found: Survey) -> None:
        """Keep the names that an append gave whose events were refused: those of other appends may be about them."""
        self._naming.given.clear()
        names = [item for item in group.names if _kind(item) not in NAMED_RECORDS]
        op = f"op_{page.mint()}"  # its key, too: of one append, names may be kept more than once
        append = page.take_over(op, request=self._request(f"names of {op}"), fingerprint=self._fingerprint(group.op))
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
        self._ids.one("actor", group.events[0].line.actor)
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
        told = said(group.events)
        if any(earlier.said.get(place, words) != words for place, words in told.items()):
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
            self._outcomes.count(group, "unchanged")

    def _refuse(self, group: Group, refusal: CorrigendaError) -> None:
        """Count an append that was refused: what it was about ends here, unless it changes nothing there."""
        self._outcomes.refuse(group, refusal)
        if not group.is_link:
            self._ended.update(group.streams)
        self._stopped = self._stopped or (self._stops and not refusal.details.get("goes_on"))

    def _request(self, word: str) -> str:
        return self._ledger.keys.request(["import"], word)

    def _fingerprint(self, op: str) -> str:
        return self._ledger.keys.fingerprint(canonical({"import": op}))


def _kind(item: Told) -> str:
    return item.facts.kind if isinstance(item.facts, NameAssigned) else ""


def _recorded(draft: Draft, record: RecordImport) -> Draft:
    """Return the draft of a page's record, with what it is to say now that the page is decided."""
    *names, (stream, event) = draft.events
    (made,) = LEDGER.decide(LEDGER.initial, record)
    return msgspec.structs.replace(
        draft, events=(*names, (stream, msgspec.structs.replace(made, position=event.position)))
    )
