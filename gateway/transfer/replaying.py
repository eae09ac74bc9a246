"""The events of another ledger, decided anew: each becomes the command that would make it, and is refused like one.

So nothing that a file claims about standings, positions or digests is believed; what comes out follows from what our
own aggregates know. Who vouched for a revision there has not vouched for it here: an admission is passed over.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from gateway.deciding.burying import Graveyard
from gateway.reading.graph import state_link, withdraw_link
from gateway.transfer.coherence import check_edges, check_ids
from gateway.transfer.commanding import cause_of, command_of, first_move, last_move, moved, reason_of
from gateway.transfer.lines import Told
from gateway.transfer.vetting import vet
from gateway.writing.page import AUTHN_IMPORT, Append
from ledger.corrections import (
    CORRECTION,
    DEFERRED,
    DONE,
    OFF,
    STANDING_STATES,
    Confirm,
    CorrectionConfirmed,
    CorrectionRecorded,
    CorrectionRevoked,
    CorrectionSuperseded,
    CorrectionText,
    Record,
    Replace,
    Withdraw,
    indexed_text,
)
from ledger.decider import Command
from ledger.digest import LedgerKeys
from ledger.errors import refuse
from ledger.evidence import EVIDENCE, AddEvidence, EvidenceAdded, EvidenceText
from ledger.ids import NAME_PREFIXES, kind_of
from ledger.memories import (
    Birth,
    Correct,
    Forget,
    LineageLinked,
    LineageUnlinked,
    MemoryForgotten,
    MemoryRemembered,
    MemoryRestored,
    Remember,
    Restore,
    RevisionAdmitted,
    RevisionCorrected,
    RevisionText,
)
from ledger.message import Payload, ScopeIds
from ledger.scope import SEGMENTS
from ledger.tombstones import TOMBSTONE, TombstoneLifted, TombstoneSet, check_not_buried
from ledger.verified import VerifiedLedger


class Ids(Struct, frozen=True):
    """What the ids of a file mean here: those to which a name was given, by the id that the name has here."""

    here: Mapping[str, str]

    def scope(self, scope: ScopeIds) -> ScopeIds:
        """Return a scope as it is meant here. Errors: INVALID_INPUT."""
        named = {name: self.one(name, one) for name in SEGMENTS if (one := getattr(scope, name)) is not None}
        return msgspec.structs.replace(scope, project=self.one("project", scope.project), **named)

    def one(self, kind: str, identifier: str) -> str:
        """Return one id of a kind as it is meant here. Errors: INVALID_INPUT (the file names nothing so)."""
        found = self.here.get(identifier) if kind_of(identifier) == NAME_PREFIXES[kind] else None
        if found is None:
            refuse(
                "INVALID_INPUT",
                "An event is about an id that no line before it gives a name to, or one of another kind, so nobody "
                "could find it here.",
            )
        return found


class Replaying:
    """Decides the events of foreign appends."""

    def __init__(self, ledger: VerifiedLedger, graveyard: Graveyard, ids: Ids) -> None:
        self._ledger = ledger
        self._keys: LedgerKeys = ledger.keys
        self._graveyard = graveyard
        self._ids = ids
        self._born: dict[str, str] = {}  # the memories of revisions that are decided and not stored yet

    def begin_page(self) -> None:
        """Begin a page: what was decided before it is stored."""
        self._born.clear()

    def replay(self, append: Append, events: Sequence[Told]) -> None:
        """Decide the events of one append, in order. A refusal is of all of them."""
        check_edges(events)
        for item in events:
            vet(item.facts, item.payload)
            check_ids(item)
            self._one(append, item)

    def _one(self, append: Append, item: Told) -> None:
        stream = item.line.stream
        match item.facts, item.payload:
            case (LineageLinked() | LineageUnlinked()) as facts, _:
                self._link(append, facts, item)
            case CorrectionRecorded() as facts, CorrectionText() as text:
                self._record(append, stream, facts, msgspec.structs.replace(text, recorded_at=item.line.recorded_at))
            case CorrectionSuperseded() as facts, _:
                content = append.of(CORRECTION, facts.successor).recorded
                if content is None:
                    refuse("INVALID_INPUT", "A correction ends in favour of one that is not recorded with it.")
                replace = Replace(content=content.content, successor=facts.successor, reason=reason_of(item.payload))
                append.decide_on(CORRECTION, stream, replace)
            case CorrectionConfirmed() as facts, _:
                _check_contradiction(facts.contradiction)
                command = Confirm(contradiction=facts.contradiction, reason=reason_of(item.payload))
                append.decide_on(CORRECTION, stream, command)
            case CorrectionRevoked(), _:
                append.decide_on(CORRECTION, stream, Withdraw(reason=reason_of(item.payload)))
            case EvidenceAdded() as facts, EvidenceText() as text:
                self._mention(append, facts, text, item)
            case (MemoryRemembered() | RevisionCorrected()) as facts, RevisionText() as text:
                self._bear(append, stream, facts, msgspec.structs.replace(text, recorded_at=item.line.recorded_at))
            case MemoryForgotten() as facts, _:
                revision = moved(facts, "forgotten")
                self._check_stored(append, stream, revision)
                append.decide(
                    stream, Forget(revision=revision, cause=cause_of(facts.cause), reason=reason_of(item.payload))
                )
                self._graveyard.bury(append, stream, revision)
            case MemoryRestored() as facts, _:
                self._restore(append, stream, first_move(facts.moves).revision, item.payload)
            case RevisionAdmitted() | TombstoneSet() | TombstoneLifted(), _:
                pass
            case facts, payload:
                append.decide(stream, command_of(facts, payload, head=append.state(stream).head))

    # ---------------------------------------------------------------- memories

    def _bear(self, append: Append, stream: str, facts: Birth, text: RevisionText) -> None:
        """Decide the event that brought a revision into being."""
        born, scope = last_move(facts.moves), self._ids.scope(facts.scope)
        if born.before is not None or facts.supports:
            refuse("INVALID_INPUT", "An event was to bring a revision into being, and does not.")
        if facts.visibility in SEGMENTS and getattr(scope, facts.visibility) is None:
            refuse("INVALID_INPUT", f"A revision is visible to one {facts.visibility} only, and its scope names none.")
        self._check_not_buried(append, scope.project, text)
        content = self._keys.content(scope.project, text.content)
        superseded = [edge for edge in facts.edges if edge.kind == "supersedes"]
        if isinstance(facts, MemoryRemembered):
            proposed = [edge.older for edge in facts.edges if edge.kind == "proposes"]
            command: Command = Remember(
                revision=born.revision, content=content, kind=facts.kind, origin=facts.origin, scope=scope,
                visibility=facts.visibility, text=text, predecessor=proposed[0] if proposed else None,
                held=born.after.state == "processing", supersedes=tuple(edge.older for edge in superseded),
            )  # fmt: skip
        elif len(superseded) == 1:
            command = Remember(
                revision=born.revision, content=content, kind=facts.kind, origin=facts.origin, scope=scope,
                visibility=facts.visibility, text=text, predecessor=superseded[0].older,
            )  # fmt: skip
        else:
            old = first_move(facts.moves).revision
            command = Correct(
                revision=old, successor=born.revision, content=content, origin=facts.origin, text=text, scope=scope,
                merged=tuple(edge.older for edge in superseded if edge.older != old),
                split=tuple(edge.newer for edge in superseded if edge.newer != born.revision),
            )  # fmt: skip
        if born.revision in append.state(stream).revisions or self._ledger.walk.lineages([born.revision]):
            refuse("INVALID_INPUT", "A revision was to come into being, and there is one with its id.")
        append.decide(stream, command)
        self._born[born.revision] = stream

    def _check_not_buried(self, append: Append, project: str, text: RevisionText) -> None:
        """Refuse a text that was forgotten here; what was forgotten there follows from the file itself."""
        for stream in self._graveyard.streams(project, text):
            last = self._ledger.walk.stream(stream)
            if last.version and self._ledger.at([last.position])[last.position].entry.envelope.authn != AUTHN_IMPORT:
                check_not_buried(append.of(TOMBSTONE, stream))

    def _restore(self, append: Append, stream: str, revision: str, payload: Payload | None) -> None:
        item = append.state(stream).revisions.get(revision)
        forgotten = item is not None and bool(item.withdrawals) and item.withdrawals[-1].act == "forget"
        append.decide(stream, Restore(revision=revision, reason=reason_of(payload)))
        if forgotten:
            self._check_stored(append, stream, revision)
            self._graveyard.dig_up(append, stream, revision)

    def _check_stored(self, append: Append, stream: str, revision: str) -> None:
        """Refuse to forget, or to dig up, what its own append brings into being: its text is not to be read yet."""
        item = append.state(stream).revisions.get(revision)
        stored = range(self._ledger.walk.head.size)
        if item is None or item.content_seq not in stored or item.meta_seq not in stored:
            refuse("INVALID_INPUT", "An event withdraws, or restores, a revision that was not there before it.")

    def _link(self, append: Append, facts: LineageLinked | LineageUnlinked, item: Told) -> None:
        """Decide a link in both its ends at once; the event of the older end is the other half of it."""
        edge = facts.edges[0]
        if item.line.stream == edge.newer:
            act = state_link if isinstance(facts, LineageLinked) else withdraw_link
            act(append, (edge.newer, edge.older), reason_of(item.payload))

    # ---------------------------------------------------------------- records

    def _record(self, append: Append, stream: str, facts: CorrectionRecorded, text: CorrectionText) -> None:
        scope, state = self._ids.scope(facts.scope), facts.standing.state
        _check_contradiction(facts.contradiction)
        if state not in STANDING_STATES:
            refuse("INVALID_INPUT", "A correction was to be recorded in a state that none begins in.")
        if facts.visibility in SEGMENTS and getattr(scope, facts.visibility) is None:
            refuse(
                "INVALID_INPUT", f"A correction is visible to one {facts.visibility} only, and its scope names none."
            )
        if facts.origin not in ("human", "agent", "llm_extracted", "import"):
            refuse("INVALID_INPUT", "A correction was to be recorded with an origin that there is not.")
        if facts.visibility not in ("agent", "user", "tenant", "global"):
            refuse("INVALID_INPUT", "A correction was to be recorded with a visibility that there is not.")
        command = Record(
            content=self._keys.content(scope.project, indexed_text(text)), contradiction=facts.contradiction,
            origin=facts.origin, revision=facts.revision, scope=scope, text=text, visibility=facts.visibility,
            state=state,
        )  # fmt: skip
        append.subjects = self._concerned(append, facts.revision)
        append.decide_on(CORRECTION, stream, command)

    def _concerned(self, append: Append, revision: str | None) -> tuple[str, ...]:
        """Return whom a correction concerns: those whom the revision does that it is about, if that is here."""
        if revision is None:
            return ()
        lineage = self._born.get(revision) or self._ledger.walk.lineages([revision]).get(revision)
        found = None if lineage is None else append.state(lineage).revisions.get(revision)
        return () if found is None else found.subjects

    def _mention(self, append: Append, facts: EvidenceAdded, text: EvidenceText, item: Told) -> None:
        """Decide that evidence is mentioned: its bytes are not in the file, and may be added later."""
        project = self._ids.one("project", item.line.project or "")
        command = AddEvidence(external=True, media_type=facts.media_type, size=0, text=text)
        append.decide_on(EVIDENCE, self._keys.evidence(project, text.hash), command)


def _check_contradiction(outcome: str) -> None:
    if outcome not in (DONE, OFF, DEFERRED):
        refuse("INVALID_INPUT", "A correction contradicts learnings in a way that there is not.")
