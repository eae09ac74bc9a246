"""Which unverified, machine-made learnings a person's correction contradicts: the one step that likeness decides.

What may be contradicted comes from verified entries and stored vectors at the ledger's head, never from an index
replica. What a person said or vouched for is never among it. It looks and decides, and stores nothing but vectors.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from gateway.reading.sound import sound
from gateway.scope.names import Names
from gateway.writing.page import Append
from gateway.writing.policies import CONTRADICTION_THRESHOLD, INVALIDATE_CONTRADICTED, Policies
from ledger.corrections import (
    CORRECTION,
    DEFERRED,
    DONE,
    OFF,
    CorrectionConfirmed,
    CorrectionRecorded,
    CorrectionText,
    query_text,
)
from ledger.digest import public
from ledger.errors import IntegrityError, UnavailableError
from ledger.limits import CONTRADICTED_MAX, INDEX_WAIT_S
from ledger.memories import (
    Contradiction,
    Invalidate,
    MemoryRemembered,
    MemoryRestored,
    RevisionCorrected,
    RevisionText,
)
from ledger.message import ScopeIds
from ledger.scope import sees
from ledger.store import Row
from ledger.verified import Recorded, VerifiedLedger, standing_of
from projections.edges import CORRECTS
from projections.embedders import Embedder, Vectors
from projections.embedders.patience import at_most
from projections.lineage import QUERIES
from projections.vectors import StoredVectors

PAGE_ROWS = 1_000
EMBEDDED_MAX = 256  # texts without a vector that one check makes one for
_KEPT_MAX = 10_000
_MACHINES = ("llm_extracted", "agent")


class Learning(Struct, frozen=True, kw_only=True):
    """A standing, unverified, machine-made learning; `content` is the keyed digest of its text."""

    lineage: str
    revision: str
    content: str
    text: str
    scope: ScopeIds
    visibility: str


class Near(Struct, frozen=True, kw_only=True):
    """A learning that a correction contradicts; `similarity` is the cosine, a decimal of six places."""

    learning: Learning
    similarity: str


class Finding(Struct, frozen=True, kw_only=True):
    """What a check found, the nearest first, and whether it was made: `done`, `off` or `deferred`."""

    outcome: str
    near: tuple[Near, ...] = ()


class Cause(Struct, frozen=True, kw_only=True):
    """A correction that holds: from which position on, whether its check is off, how many learnings it has taken."""

    correction: str
    position: int
    off: bool
    taken: int
    scope: ScopeIds
    text: CorrectionText


class Contradictions:
    """Looks for contradicted learnings in one ledger. The caller holds the ledger's lock."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        names: Names,
        policies: Policies,
        load_embedder: Callable[[], Embedder | None],
    ) -> None:
        self._ledger = ledger
        self._names = names
        self._policies = policies
        self._load_embedder = load_embedder
        self._asked: tuple[str, Vectors] | None = None
        self._questions: dict[str, tuple[Cause, Vectors]] = {}

    # ---------------------------------------------------------------- before the append

    def look(self, append: Append, scope: ScopeIds, text: CorrectionText) -> Finding:
        """Return what a correction of that scope contradicts at the head; the append is held to the policy it read.

        Where it cannot be found out now, the check is deferred: it is made when the outbox is carried.
        """
        if not self._policies.within(append, INVALIDATE_CONTRADICTED, scope.project):
            return Finding(outcome=OFF)
        threshold = self._policies.within(append, CONTRADICTION_THRESHOLD, scope.project)
        self._ledger.catch_up()
        try:
            embedder = self._load_embedder()
            if embedder is None:
                return Finding(outcome=DEFERRED)
            with at_most(INDEX_WAIT_S):  # the writer waits for this
                near, whole = self._near(embedder, scope, self._question(embedder, text), threshold)
        except (UnavailableError, IntegrityError):
            return Finding(outcome=DEFERRED)
        return Finding(outcome=DONE if whole else DEFERRED, near=tuple(near[:CONTRADICTED_MAX]))

    def take(self, append: Append, correction: str, text: CorrectionText, near: Sequence[Near]) -> None:
        """Decide the invalidation of those learnings that are still what they were when they were found."""
        for one in near:
            learning = one.learning
            state = append.state(learning.lineage)
            head = None if state.head is None else state.revisions[state.head]
            if head is None or head.revision != learning.revision or head.values.trust != "unverified":
                continue
            why = Contradiction(
                correction_hash=public(query_text(text).encode()),
                learning_hash=public(learning.text.encode()),
                reason=None,
                similarity=one.similarity,
            )
            append.decide(
                learning.lineage, Invalidate(revision=learning.revision, correction=correction, contradiction=why)
            )

    # ---------------------------------------------------------------- as the effect of an outbox row

    def cause(self, correction: str) -> Cause | None:
        """Return a correction as what may still contradict something; None if it holds no more, or was erased."""
        active: Recorded | None = None
        history = self._ledger.stream(correction)
        for item in history:
            facts = item.entry.envelope.facts
            if isinstance(facts, CorrectionRecorded | CorrectionConfirmed) and facts.standing.state == "active":
                active = item
            elif not isinstance(facts, CorrectionRecorded):
                active = None
        recorded = history[0].entry.envelope.facts if history else None
        if active is None or not isinstance(recorded, CorrectionRecorded) or history[0].payload is None:
            return None
        return Cause(
            correction=correction,
            position=active.entry.position,
            off=getattr(active.entry.envelope.facts, "contradiction", OFF) == OFF,
            taken=self._taken(correction, recorded.revision),
            scope=recorded.scope,
            text=_correction_text(history[0]),
        )

    def cause_within(self, append: Append, correction: str) -> Cause | None:
        """Return the same for a decision: the append is stored only while the correction is as it was read."""
        return self.cause(correction) if append.of(CORRECTION, correction).state == "active" else None

    def of_correction(self, cause: Cause) -> tuple[list[Near], bool]:
        """Return what a correction contradicts that it has not taken, within its limit; nothing where it is off.

        And whether all was looked at: if not, so many more vectors are stored now, and to ask again gets further.
        """
        embedder = self._load_embedder()
        if embedder is None or cause.off or not self._policies.now(INVALIDATE_CONTRADICTED, cause.scope.project):
            return [], True
        threshold = self._policies.now(CONTRADICTION_THRESHOLD, cause.scope.project)
        near, whole = self._near(embedder, cause.scope, self._question(embedder, cause.text), threshold)
        fresh = [one for one in near if not self.is_excused(one.learning, cause)]
        return fresh[: max(CONTRADICTED_MAX - cause.taken, 0)], whole

    def of_learning(self, learning: Learning, position: int) -> list[tuple[Cause, Near]]:
        """Return the corrections that contradict a learning served from a position on, the nearest first.

        Only those that held before: one that came later has looked at it, or will when its own row is carried.
        """
        embedder = self._load_embedder()
        if embedder is None:
            return []
        vector = StoredVectors(self._ledger, embedder).of({learning.content: learning.text})[learning.content]
        found: list[tuple[Cause, Near]] = []
        for known, question in self._questions_around(embedder, learning):
            similarity = _similarity(vector, question)
            project = known.scope.project
            if float(similarity) < self._policies.now(CONTRADICTION_THRESHOLD, project):
                continue
            cause = self.cause(known.correction)  # it may have ended since it was kept
            if cause is None or cause.off or not self._policies.now(INVALIDATE_CONTRADICTED, project):
                continue
            if cause.position < position and not self.is_excused(learning, cause):
                found.append((cause, Near(learning=learning, similarity=similarity)))
        return sorted(found, key=lambda pair: -float(pair[1].similarity))

    def is_excused(self, learning: Learning, cause: Cause) -> bool:
        """Report whether a person restored the learning after the correction: then it is not taken again by that."""
        restored = [
            item.entry.position
            for item in self._ledger.stream(learning.lineage)
            if isinstance(item.entry.envelope.facts, MemoryRestored)
            and any(move.revision == learning.revision for move in item.entry.envelope.facts.moves)
        ]
        return bool(restored) and restored[-1] > cause.position

    # ---------------------------------------------------------------- what is near

    def _near(
        self, embedder: Embedder, reader: ScopeIds, question: Vectors, threshold: float
    ) -> tuple[list[Near], bool]:
        """Return the learnings at or above a threshold, nearest first, and whether all were looked at."""
        stored, near, left, after, whole = StoredVectors(self._ledger, embedder), list[Near](), EMBEDDED_MAX, -1, True
        while True:
            rows = self._rows("find_learnings", after=after, project=reader.project, agent=reader.agent,
                              person=reader.user, session=reader.session)  # fmt: skip
            learnings = [
                one
                for one in self.learnings([(revision, lineage) for revision, lineage, _ in rows]).values()
                if sees(reader, visibility=one.visibility, scope=one.scope)
            ]
            vectors, embedded = stored.at_most({one.content: one.text for one in learnings}, left)
            left -= embedded
            for one in learnings:
                if one.content not in vectors:
                    whole = False
                    continue
                similarity = _similarity(vectors[one.content], question)
                if float(similarity) >= threshold:
                    near.append(Near(learning=one, similarity=similarity))
            if len(rows) < PAGE_ROWS:
                return sorted(near, key=lambda one: (-float(one.similarity), one.learning.revision)), whole
            after = rows[-1][2]

    def learnings(self, items: Sequence[tuple[str, str]]) -> Mapping[str, Learning]:
        """Return those of some (revision, lineage) that are standing, unverified and machine-made, by revision."""
        walk = self._ledger.walk
        known = walk.lineages(revision for revision, _ in items)
        ours = [(revision, lineage) for revision, lineage in items if known.get(revision) == lineage]
        broken: list[str] = []  # what is broken is served to nobody, so it is left alone
        lasts = sound(self._ledger.last, {lineage for _, lineage in ours}, broken)
        heads: dict[str, int] = {}
        for revision, lineage in ours:
            standing = standing_of(lasts[lineage].entry) if lineage in lasts else None
            if standing is not None and (standing.head, standing.trust) == (revision, "unverified"):
                heads[revision] = standing.content_seq or 0
        had = {one.entry.position: one for one in lasts.values()}
        further = {*heads.values()} - had.keys()
        contents = {**had, **sound(self._ledger.at, further, broken)} if further else had
        found = {revision: self._learning(contents[seq]) for revision, seq in heads.items() if seq in contents}
        return {revision: one for revision, one in found.items() if one is not None and one.revision == revision}

    def _learning(self, content: Recorded) -> Learning | None:
        envelope, text = content.entry.envelope, content.payload
        facts = envelope.facts
        if not isinstance(facts, MemoryRemembered | RevisionCorrected) or not isinstance(text, RevisionText):
            return None
        if facts.kind != "learning" or not self._is_machine_made(facts.origin, envelope.actor):
            return None
        return Learning(
            lineage=envelope.stream,
            revision=facts.moves[-1].revision,
            content=facts.content,
            text=text.content,
            scope=facts.scope,
            visibility=facts.visibility,
        )

    def _is_machine_made(self, origin: str, actor: str) -> bool:
        return origin in _MACHINES or self._names.show(actor).startswith("agent:")

    def _questions_around(self, embedder: Embedder, learning: Learning) -> list[tuple[Cause, Vectors]]:
        """Return the corrections, as far as they are known to hold, whose reader sees a learning."""
        level = "tenant" if learning.visibility in ("global", "tenant") else learning.visibility
        scope, found, after = learning.scope, list[str](), -1
        while True:
            rows = self._rows("find_contradicting", after=after, level=level, project=scope.project, agent=scope.agent,
                              person=scope.user, session=scope.session)  # fmt: skip
            found += [correction for correction, _ in rows]
            if len(rows) < PAGE_ROWS:
                break
            after = rows[-1][1]
        self._keep_questions(embedder, found)
        around = [self._questions[correction] for correction in found if correction in self._questions]
        return [pair for pair in around if sees(pair[0].scope, visibility=learning.visibility, scope=learning.scope)]

    def _keep_questions(self, embedder: Embedder, corrections: Sequence[str]) -> None:
        """Remember what corrections ask, for the learnings to come: neither texts nor scopes ever change."""
        if len({*self._questions, *corrections}) > _KEPT_MAX:
            self._questions.clear()
        missing = [correction for correction in corrections if correction not in self._questions]
        known = self._ledger.walk.ends(missing)
        causes = [cause for one in missing if known[one].version and (cause := self._sound_cause(one)) is not None]
        texts = {self._digest(cause): query_text(cause.text) for cause in causes}
        vectors = StoredVectors(self._ledger, embedder).of(texts)
        self._questions |= {cause.correction: (cause, vectors[self._digest(cause)]) for cause in causes}

    def _sound_cause(self, correction: str) -> Cause | None:
        try:
            return self.cause(correction)
        except IntegrityError:
            return None  # it is served to nobody either

    def _digest(self, cause: Cause) -> str:
        return self._ledger.keys.content(cause.scope.project, query_text(cause.text))

    def _question(self, embedder: Embedder, text: CorrectionText) -> Vectors:
        """Return the vector of what a correction asks. It is not stored: the correction may never be."""
        asked = query_text(text)
        if self._asked is None or self._asked[0] != asked:
            self._asked = asked, embedder.embed([asked])[0]
        return self._asked[1]

    def _taken(self, correction: str, about: str | None) -> int:
        """Return how many learnings a correction has invalidated, as the read model has it."""
        store = self._ledger.store
        params = {"gen": store.head().gen, "kind": CORRECTS, "correction": correction}
        return sum(revision != about for revision, _ in store.query(QUERIES["find_touched"], params))

    def _rows(self, query: str, **params: object) -> list[Row]:
        store = self._ledger.store
        return store.query(
            QUERIES[query],
            {"gen": store.head().gen, "until": self._ledger.walk.position, "limit": PAGE_ROWS, **params},
        )


def _correction_text(item: Recorded) -> CorrectionText:
    if not isinstance(item.payload, CorrectionText):
        raise TypeError("a correction's stream begins with another event")
    return item.payload


def _similarity(one: Vectors, other: Vectors) -> str:
    """Return the cosine of two unit vectors as a decimal of six places: what is compared is what is recorded."""
    return f"{float(np.dot(one.astype(np.float64), other.astype(np.float64))):.6f}"
