"""The shapes of every answer, the same on all surfaces (a surface only renders them).

Plain frozen structs: lists are tuples, and what does not apply is None. `document` gives the JSON form.
"""

from typing import Any

import msgspec

SCHEMA_VERSION = 1


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every answer."""


class EventRef(Reply, frozen=True, kw_only=True):
    """One event of a receipt."""

    seq: int
    type: str


class Receipt(Reply, frozen=True, kw_only=True):
    """What one write did. `position` is that of the append's last event; `trace_id` names the append.

    `state` and `trust` are what the write left the revision with; None where it moved none.
    """

    outcome: str
    replayed: bool
    position: int
    incarnation: int
    events: tuple[EventRef, ...]
    trace_id: str
    warnings: tuple[str, ...] = ()
    memory_id: str | None = None
    revision_id: str | None = None
    superseded: tuple[str, ...] | None = None
    correction_id: str | None = None
    invalidated: tuple[str, ...] | None = None
    successors: tuple[str, ...] | None = None  # all that were brought into being, where that is more than one
    state: str | None = None
    trust: str | None = None


class Impact(Reply, frozen=True, kw_only=True):
    """What a revocation would take with it: the records that would lose their trust, and the runs that used them."""

    revisions: tuple[str, ...]
    candidates: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()


class Pruned(Reply, frozen=True, kw_only=True):
    """What a pruning withdrew, or in a dry run would: revisions that held are retired, invalidated ones forgotten."""

    retired: tuple[str, ...]
    forgotten: tuple[str, ...]
    position: int
    incarnation: int


class Revision(Reply, frozen=True, kw_only=True):
    """One version of a memory as it stands at the position of the answer.

    `memory_id` is the caller's name where one was given. `content` is None once it has been withdrawn from view.
    `recorded_at` and `superseded_at` are the ledger's time, `valid_from` and `valid_to` the world's. `retired_by` is
    the correction that a retired learning contradicted, `evidence` the hashes of what it rests on: its own, and that
    with which others vouched for it.
    """

    memory_id: str
    revision_id: str
    version: int
    state: str
    trust: str
    kind: str
    content: str | None
    tags: tuple[str, ...]
    scope: dict[str, str]
    visibility: str
    subjects: tuple[str, ...]
    stream_version: int
    origin: str
    confidence: str | None
    valid_from: str | None
    valid_to: str | None
    review_by: str | None
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]
    recorded_at: str
    superseded_at: str | None
    position: int
    content_hash: str | None
    applies: dict[str, Any] | None  # Any: the caller's own conditions, as JSON
    institutional: dict[str, Any] | None  # Any: as above
    provenance: dict[str, Any]  # Any: sources and run, and in `explain` the successor
    evidence: tuple[str, ...]
    depends_on: tuple[str, ...]
    retired_by: str | None = None


class Hit(Revision, frozen=True, kw_only=True):
    """A neighbour that the ledger confirmed. `score` is the cosine similarity, −1 to 1; in an answer with the warning
    `full_text` it says how well the words agree, 0 to 1.

    In an answer of the past everything is as it was said then, but `state`, `trust`, `stream_version` and by what and
    when it was superseded: those are the present's.
    """

    rank: int
    score: float
    why: str


class Excluded(Reply, frozen=True, kw_only=True):
    """Something near that was not served, and which rule left it out."""

    memory_id: str
    revision_id: str
    score: float
    reason: str


class Search(Reply, frozen=True, kw_only=True):
    """What a search found. `empty_reason` is None if there are hits.

    `at_position` is where the ledger was read as it stood, if that was asked for; `excluded` are at most a hundred near
    ones that were left out, if it was asked why. `trace_id` names what was recorded of it, None where nothing could be.
    """

    hits: tuple[Hit, ...]
    warnings: tuple[str, ...]
    empty_reason: str | None
    trace_id: str | None
    position: int
    incarnation: int
    at_position: int | None = None
    excluded: tuple[Excluded, ...] | None = None


class TraceSummary(Reply, frozen=True, kw_only=True):
    """One retrieval in a line: who asked what, for which session, turn and run, and how many were chosen and left out.

    `kind` is dispatch where the answer went into a run, else search. `query` is None where it repeats a text that was
    forgotten since.
    """

    trace_id: str
    kind: str
    at: str
    actor: str
    session: str | None
    turn: int | None
    run: str | None
    query: str | None
    hits: int
    excluded: int
    empty_reason: str | None
    position: int


class TraceList(Reply, frozen=True, kw_only=True):
    """Traces, newest first. `next_cursor` goes on with the older ones; `warnings` name those that are not sound."""

    items: tuple[TraceSummary, ...]
    next_cursor: str | None
    truncated: bool
    warnings: tuple[str, ...]
    position: int
    incarnation: int


class TracedHit(Reply, frozen=True, kw_only=True):
    """A revision that a retrieval chose, at its rank, and why."""

    rank: int
    memory_id: str
    revision_id: str
    score: float
    why: str


class SearchTrace(Reply, frozen=True, kw_only=True):
    """What one retrieval saw, chose and left out; of texts only the question.

    `filters` is what was asked for beside it; `embedder` None where only words were compared. `position` is the
    ledger's at the time. `excluded` are the nearest of the `excluded_total` that were left out; `withheld` counts those
    of both that the actor does not see. An event that rests on the trace names its `digest`.
    """

    trace_id: str
    digest: str
    kind: str
    at: str
    actor: str
    project: str
    scope: dict[str, str]
    session: str | None
    turn: int | None
    run: str | None
    query: str | None
    k: int
    filters: dict[str, Any]  # Any: JSON, by the request's names
    valid_at: str
    at_position: int | None
    embedder: str | None
    hits: tuple[TracedHit, ...]
    excluded: tuple[Excluded, ...]
    excluded_total: int
    withheld: int
    warnings: tuple[str, ...]
    empty_reason: str | None
    position: int
    incarnation: int


class TraceVerdict(Reply, frozen=True, kw_only=True):
    """What one retrieval made of a revision: `outcome` is chosen, excluded or not_seen, and `reason` says why."""

    trace_id: str
    kind: str
    at: str
    position: int
    outcome: str
    rank: int | None
    score: float | None
    reason: str


class AuditEntry(Reply, frozen=True, kw_only=True):
    """One event of a lineage as an auditor reads it.

    `retired_by` is the correction for which it retired a learning, `similarity` how near the two are: a cosine.
    `evidence` are the hashes of what somebody vouched with.
    """

    seq: int
    type: str
    at: str
    actor: str
    trace_id: str
    reason: str | None
    moves: tuple[dict[str, str | None], ...]  # revision, from_state, to_state, from_trust, to_trust
    patch: dict[str, Any] | None = None  # Any: of a patch the revision, and what changed of its metadata, before, after
    retired_by: str | None = None
    similarity: str | None = None
    evidence: tuple[str, ...] = ()


class Explanation(Revision, frozen=True, kw_only=True):
    """A revision with the story of its lineage: `head` is None while the lineage has no head.

    `at_position` is the position of the past that it was asked for, None for the present. `in_trace` is what one
    retrieval made of it, if one was named.
    """

    head: str | None
    root: str
    audit: tuple[AuditEntry, ...]
    at_position: int | None = None
    in_trace: TraceVerdict | None = None


class Change(Reply, frozen=True, kw_only=True, omit_defaults=True):
    """One field before and after. Of a content, `diff` holds the hunks of a unified diff, if both sides may be read."""

    before: Any  # Any: the field's own type
    after: Any  # Any: as above
    diff: str | None = None


class MetadataChange(Reply, frozen=True, kw_only=True):
    """One event that mended a revision's metadata: where, when, by whom and why, and what it changed."""

    seq: int
    at: str
    actor: str
    reason: str | None
    patch: dict[str, Change]


class PatchedRevision(Revision, frozen=True, kw_only=True):
    """A revision, and what it changed when it was recorded, field by field, of the revision `compared_with`.

    That is the one of its own memory that it superseded or was held to replace, else one of another memory, else the
    version before. The first has none: both are None. `patched` is what was mended of its own metadata since.
    """

    compared_with: str | None
    patch: dict[str, Change] | None
    patched: tuple[MetadataChange, ...]


class RevisionRef(Reply, frozen=True, kw_only=True):
    """Which revision is compared, and where it stands."""

    memory_id: str
    revision_id: str
    version: int
    state: str
    trust: str
    recorded_at: str
    position: int


class RevisionDiff(Reply, frozen=True, kw_only=True):
    """What differs between two revisions, field by field; nothing if they say the same."""

    before: RevisionRef
    after: RevisionRef
    patch: dict[str, Change]


class MemoryThen(Reply, frozen=True, kw_only=True):
    """A memory at a position: its head, or None, and the revision that stood for it: the head, else the latest."""

    head: str | None
    revision_id: str
    version: int
    state: str
    trust: str
    content: str | None


class MemoryDiff(Reply, frozen=True, kw_only=True):
    """What happened to one memory between two positions. `before` is None if it was begun in between.

    `acts` are its events' words in order, the first of a new memory `begun`; `linked` and `unlinked` are the links with
    other memories that hold at the second position and not at the first, and the other way round.
    """

    memory_id: str
    correction_id: None = None
    acts: tuple[str, ...]
    before: MemoryThen | None
    after: MemoryThen
    patch: dict[str, Change]
    linked: tuple["LineageEdge", ...]
    unlinked: tuple["LineageEdge", ...]


class CorrectionThen(Reply, frozen=True, kw_only=True):
    """A correction at a position: its state, and what it says; its values are None where they repeat what is forgotten.

    `memory` is the revision that it is about, `superseded_by` the correction that took its place by then.
    """

    state: str
    superseded_by: str | None
    agent: str
    field: str | None
    entity_key: str | None
    original_value: str | None
    corrected_value: str | None
    memory: str | None


class CorrectionDiff(Reply, frozen=True, kw_only=True):
    """What happened to one correction between two positions. `before` is None if it was recorded in between.

    `acts` are of recorded, confirmed, superseded and revoked, in order. The fields are those of `MemoryDiff`, so that
    the lines of a list have one form; what a correction says never changes, so `patch` is empty, as are its links.
    """

    memory_id: None = None
    correction_id: str
    acts: tuple[str, ...]
    before: CorrectionThen | None
    after: CorrectionThen
    patch: dict[str, Change] = {}
    linked: tuple["LineageEdge", ...] = ()
    unlinked: tuple["LineageEdge", ...] = ()


class History(Reply, frozen=True, kw_only=True):
    """Every revision of one memory, in version order."""

    memory_id: str
    items: tuple[Revision, ...]
    position: int
    incarnation: int


class RevisionAct(Reply, frozen=True, kw_only=True):
    """What one event did to one revision. `from_state` is None if it brought it into being.

    `conflict_with` is what it was found to contradict, `expected_active` the head that it replaced when it won,
    `retired_by` the correction for which it was retired, `similarity` how near the two are: a cosine.
    """

    seq: int
    at: str
    action: str
    actor: str
    reason: str | None
    from_state: str | None
    to_state: str
    from_trust: str | None
    to_trust: str
    expected_active: str | None
    conflict_with: str | None
    retired_by: str | None = None
    similarity: str | None = None


class ListedRevision(Revision, frozen=True, kw_only=True):
    """A revision in the list of one memory, with what happened to it, oldest first."""

    audit: tuple[RevisionAct, ...]


class MemoryList(Reply, frozen=True, kw_only=True):
    """A page of memories as they stood at `position`, oldest first.

    `next_cursor` gives the next page as of the same position, None on the last one; `truncated` says that the page ends
    before its limit because its texts were too long.
    """

    items: tuple[Revision, ...]
    next_cursor: str | None
    truncated: bool
    position: int
    incarnation: int


class CorrectionList(Reply, frozen=True, kw_only=True):
    """A page of corrections as they stood at `position`, oldest first; else as `MemoryList`."""

    items: tuple["Correction", ...]
    next_cursor: str | None
    truncated: bool
    position: int
    incarnation: int


class Evidence(Reply, frozen=True, kw_only=True):
    """An object of evidence: `stored` says whether its bytes are kept here, else `uri` says where they lie.

    `size` is in bytes, 0 where they are not kept; `hash` is `b3:` and their BLAKE3 in hex. `added` is the position at
    which it was added, None if that was only tried.
    """

    hash: str
    size: int
    stored: bool
    media_type: str | None
    name: str | None
    uri: str | None
    added_at: str | None
    added: int | None
    position: int
    incarnation: int


class PolicySetting(Reply, frozen=True, kw_only=True):
    """One setting: `value` is a text or a list of names, `of` is project or tenant. `default` says it was not set."""

    name: str
    value: str | tuple[str, ...]
    default: bool
    of: str


class Policy(Reply, frozen=True, kw_only=True):
    """Every setting of a project and its tenant."""

    items: tuple[PolicySetting, ...]
    position: int
    incarnation: int

    @property
    def values(self) -> dict[str, str | tuple[str, ...]]:
        """Return the values by their settings' names."""
        return {item.name: item.value for item in self.items}


class LineageNode(Reply, frozen=True, kw_only=True):
    """A memory, a revision (of the memory `memory_id`) or a correction in a lineage graph."""

    id: str
    type: str
    state: str
    label: str
    version: int | None = None
    memory_id: str | None = None


class LineageEdge(Reply, frozen=True, kw_only=True):
    """`source` (`from` in JSON) supersedes, proposes to supersede, conflicts with or corrects `target` (`to`)."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    kind: str


class Lineage(Reply, frozen=True, kw_only=True):
    """The graph around one memory: links between memories, its revisions, and where merges and splits lead."""

    root: str
    nodes: tuple[LineageNode, ...]
    edges: tuple[LineageEdge, ...]
    position: int
    incarnation: int


class Correction(Reply, frozen=True, kw_only=True):
    """What an agent put out, what was right, and why, as it stands at the position of the answer.

    `corrected_value` is empty where the field should be empty. `memory` is the revision that it is about, if any.
    `state` is unconfirmed (an agent reported it), active, superseded or revoked.
    """

    correction_id: str
    state: str
    agent: str
    field: str | None
    entity_key: str | None
    original_value: str
    corrected_value: str
    reason: str | None
    original_input: str | None
    tags: tuple[str, ...]
    run: str | None
    session: str | None
    user: str | None
    visibility: str
    memory: str | None
    origin: str
    created_at: str
    superseded_by: str | None
    contradiction: str
    stream_version: int
    position: int


class ExplainedCorrection(Correction, frozen=True, kw_only=True):
    """A correction with the story of it: who recorded, confirmed, superseded or revoked it, when, and why.

    `at_position` is the position of the past that it was asked for, None for the present. `in_trace` is what one
    retrieval made of it, if one was named.
    """

    audit: tuple[AuditEntry, ...]
    at_position: int | None = None


class PatchedCorrection(Correction, frozen=True, kw_only=True):
    """A correction, and what it says otherwise than the one `compared_with`, which it took the place of, by field.

    The first of a chain has none: both are None.
    """

    compared_with: str | None
    patch: dict[str, Change] | None


class CorrectionHistory(Reply, frozen=True, kw_only=True):
    """The corrections that took each other's place, oldest first."""

    correction_id: str
    items: tuple[Correction, ...]
    position: int
    incarnation: int


class CorrectionHit(Correction, frozen=True, kw_only=True):
    """A correction that was found near, and that the ledger confirmed. `score` is the cosine, −1 to 1."""

    rank: int
    score: float
    why: str


class CorrectionSearch(Reply, frozen=True, kw_only=True):
    """What a search for corrections found. `empty_reason` is None if there are hits."""

    hits: tuple[CorrectionHit, ...]
    warnings: tuple[str, ...]
    empty_reason: str | None
    position: int
    incarnation: int


class Rendered(Reply, frozen=True, kw_only=True):
    """A block for a prompt, and what is in it; `truncated` says that something did not fit its budget.

    `text` is empty if nothing was found, or if it `failed`, which then is the error's code: a run goes on without it.
    """

    text: str
    correction_ids: tuple[str, ...]
    memory_ids: tuple[str, ...]
    truncated: bool
    warnings: tuple[str, ...]
    failed: str | None


class CorrectionStats(Reply, frozen=True, kw_only=True):
    """How many corrections there are, the most frequent first; what was not asked for is None.

    One without an entity key or a field is counted only in `total`. A period is YYYY-MM-DD, YYYY-MM or YYYY, in UTC.
    """

    total: int
    by_entity_key: dict[str, int]
    by_field: dict[str, int]
    by_agent: dict[str, int] | None = None
    by_period: dict[str, int] | None = None


class EvalCase(Reply, frozen=True, kw_only=True):
    """One regression case: given `input`, what an agent puts out should contain `expected`."""

    input: str
    expected: str
    field: str | None
    correction_id: str


class LogItem(Reply, frozen=True, kw_only=True):
    """One event of the ledger. `stream` is opaque; `hash` is the BLAKE3 link hash of its envelope, in hex."""

    seq: int
    type: str
    at: str
    actor: str
    stream: str
    stream_seq: int
    hash: str
    trace_id: str


class EventDetail(LogItem, frozen=True, kw_only=True):
    """One event with both its halves, and what links it: hashes in hex, under the names that FORMAT.md gives them.

    `leaf` is its hash in the Merkle tree; `payload_sha256` and `payload_len` are None where it has no payload. `erased`
    says that it had one, which was destroyed.
    """

    log: str
    op_index: int
    op_count: int
    prev_b3: str
    stream_prev_b3: str
    seal: str
    leaf: str
    payload_sha256: str | None
    payload_len: int | None
    facts: dict[str, Any]  # Any: the event type's own, as FORMAT.md gives them
    payload: dict[str, Any] | None  # Any: as above
    erased: bool = False


class Trace(Reply, frozen=True, kw_only=True):
    """What one command stored: its events, in order. `trace_id` is its receipt's."""

    trace_id: str
    at: str
    actor: str
    items: tuple[EventDetail, ...]
    position: int
    incarnation: int


class Recovery(Reply, frozen=True, kw_only=True):
    """What start-up recovery did. `ok` is False while something needs a person."""

    ok: bool
    replayed: int
    skipped: int
    parked: int
    repaired: int
    index: dict[str, str]
    claims: tuple[dict[str, str], ...]
    position: int
    incarnation: int


class Reembedding(Reply, frozen=True, kw_only=True):
    """An index that the configured embedder built in place of another's, up to `position`.

    `embedded` counts the texts whose vectors were not stored yet, `parked` those that the embedder fails on, which are
    left out; `signature_before` is None where there was no index.
    """

    signature: str
    signature_before: str | None
    items: int
    embedded: int
    parked: int
    position: int


class IndexPartition(Reply, frozen=True, kw_only=True):
    """A part of the index that is searched as one: its trust tier or `correction`, its namespace, how much it holds."""

    tier: str
    namespace: tuple[str, ...]
    items: int


class IndexStatus(Reply, frozen=True, kw_only=True):
    """The newest durable generation of the index, as it says itself, and how many effects lie above its cursor.

    `signature` is that of the embedder that built it, None where there is no generation; `embedder` and `engine` are
    what is configured.
    """

    engine: str
    embedder: str
    signature: str | None
    cursor: int
    lag: int
    items: int
    partitions: tuple[IndexPartition, ...]


class OutboxItem(Reply, frozen=True, kw_only=True):
    """What the event at `seq` asks of the index: to put or remove the revision or correction `id` of a stream.

    `state` is waiting, failing (tried again later) or parked (waits for a person). Of what failed, `attempts`, the last
    error's `code`, the time and the embedder's signature are known.
    """

    seq: int
    id: str
    stream: str
    effect: str
    state: str
    attempts: int
    code: str | None
    at: str | None
    embedder: str | None


class Outbox(Reply, frozen=True, kw_only=True):
    """What waits for the index, oldest first. `pending` counts what is carried by itself, `parked` what is not."""

    items: tuple[OutboxItem, ...]
    truncated: bool
    pending: int
    parked: int
    position: int
    incarnation: int


class OutboxRetry(Reply, frozen=True, kw_only=True):
    """What a retry did: the positions whose effects are settled now, and those that are parked again."""

    ok: bool
    settled: tuple[int, ...]
    parked: tuple[int, ...]
    position: int
    incarnation: int


class Check(Reply, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one check of a verification. `status` is ok, failed or skipped; `why` says what limits it."""

    status: str
    first_bad_position: int | None = None
    expected: str | None = None
    found: str | None = None
    why: str | None = None


class Verification(Reply, frozen=True, kw_only=True):
    """What one pass over everything that is stored found. `exit_code` is 0, or the lowest of 10 to 15 that applies."""

    ok: bool
    exit_code: int
    events: int
    size: int
    root: str | None
    head: str | None
    checks: dict[str, Check]
    unanchored_tail: int
    erased: int


class Export(Reply, frozen=True, kw_only=True):
    """A bundle that was handed out: where it lies, what it proves, and the event that records it.

    `payloads_withheld` is None where a bundle was there already. `size` and `root` are the checkpoint's; `bytes` is
    what the bundle takes on disk.
    """

    path: str
    kind: str
    profile: str
    events: int
    payloads_withheld: int | None
    origin: str
    size: int
    root: str
    bytes: int
    position: int
    incarnation: int
    trace_id: str
    replayed: bool
    warnings: tuple[str, ...]


class BundleVerification(Reply, frozen=True, kw_only=True):
    """What a bundle proves, in words (`says`) and figures. `exit_code` is 0, 14 (tampered) or 15 (not verifiable).

    `verdict` is verified (`with payloads withheld`, `with payloads erased with certificate`), tampered or unverifiable;
    `finding` is the first thing that is wrong: check, place, expected, found. `payloads` counts those given, withheld,
    erased, and events without one.
    """

    ok: bool
    exit_code: int
    verdict: str
    says: tuple[str, ...]
    profile: str | None
    origin: str | None
    size: int | None
    root: str | None
    key_id: str | None
    events: int
    streams: tuple[dict[str, str | int], ...]
    payloads: dict[str, int]
    finding: dict[str, str] | None


class Status(Reply, frozen=True, kw_only=True):
    """One screen about the ledger and what is derived from it."""

    ledger: dict[str, Any]  # Any: size, head, origin, tenant, state of the chain
    anchor: dict[str, Any]  # Any: what is known of it
    projections: dict[str, Any]  # Any: generation and projector version
    index: dict[str, Any]  # Any: engine, embedder, items, cursor
    outbox: dict[str, int]
    index_pending: int
    memories: dict[str, int]
    conflicts_open: int
    candidates: dict[str, int]
    traces: dict[str, Any] = {}  # Any: when the oldest one was made, and how many this home could not store


class ModelDifference(Reply, frozen=True, kw_only=True):
    """A table of the read models that differs, its first key that does, and the parts of that row on either side."""

    table: str
    key: str
    expected: tuple[str, ...]
    found: tuple[str, ...]


class ModelsCheck(Reply, frozen=True, kw_only=True):
    """Whether the live generation is what the events up to `position` make of it; `rows` counts by table.

    `cycles` are ids that supersede themselves through others: no act lets that happen, and no rebuild mends it.
    """

    ok: bool
    exit_code: int
    generation: int
    position: int
    rows: dict[str, int]
    differences: tuple[ModelDifference, ...]
    cycles: tuple[str, ...] = ()


class ModelsStatus(Reply, frozen=True, kw_only=True):
    """Which generation of the read models is live, and whether another one is being built.

    `version` is that of the projectors that wrote it, `expected_version` this program's. `lag` is 0 unless rows were
    lost: read models are written with the events.
    """

    generation: int
    version: int
    expected_version: int
    position: int
    lag: int
    rows: dict[str, int]
    rebuild: dict[str, int] | None


class Rebuild(Reply, frozen=True, kw_only=True):
    """What a rebuild of the read models did: generation `retired` gave way to `generation`.

    It began after position `began_at`, −1 unless an interrupted one went on. `rows` and `rows_before` count by table at
    the moment when both were compared; `differences` are what was wrong in the generation that was live, of the same
    version. `locked_ms` is how long no write could be stored.
    """

    ok: bool
    exit_code: int
    generation: int
    retired: int
    version: int
    version_before: int
    position: int
    began_at: int
    rows: dict[str, int]
    rows_before: dict[str, int]
    differences: tuple[ModelDifference, ...]
    locked_ms: int


class IndexDifference(Reply, frozen=True, kw_only=True):
    """One index entry that is not what the ledger says.

    `kind`: missing (it stands and is not held), stale (held, and it no longer stands, or stands elsewhere, or with
    another vector than the stored one), revoked (held, and withdrawn), foreign (the ledger knows no such thing),
    unstored (held, and its stored vector is missing or does not carry the ledger's seal).
    """

    kind: str
    item: str
    revision_id: str
    partition: str


class IndexCheck(Reply, frozen=True, kw_only=True):
    """Whether the index is what the ledger says (exit 13 if not), as far as the outbox had been carried (`cursor`).

    `counts` has every kind of difference, `differences` the first few. `pending` entries wait in the outbox and are no
    difference. The two digests do not depend on the order of entries, and are equal if nothing differs. `probed`
    entries were searched for by their own vectors; `unprobed` names those that did not come first.
    """

    ok: bool
    exit_code: int
    cursor: int
    position: int
    incarnation: int
    entries: int
    expected: int
    pending: int
    counts: dict[str, int]
    differences: tuple[IndexDifference, ...]
    partitions: int
    partitions_differing: int
    digest: str
    expected_digest: str
    probed: int
    unprobed: tuple[str, ...]


class IndexRebuild(Reply, frozen=True, kw_only=True):
    """An index that was built beside the live one, and swapped in.

    `embedded` texts had no stored vector; `carried` effects were waiting or came meanwhile. If not `kept`, another
    process was writing a generation, and this one's is kept when it ends.
    """

    entries: int
    entries_before: int
    embedded: int
    carried: int
    kept: bool
    position: int
    incarnation: int


class ImportItem(Reply, frozen=True, kw_only=True):
    """The outcome of one row: stored, unchanged or rejected. `row` counts from 1."""

    row: int
    outcome: str
    code: str | None = None
    message: str | None = None
    memory_id: str | None = None
    revision_id: str | None = None


class ImportReport(Reply, frozen=True, kw_only=True):
    """What an import did. `items` holds the rejected rows; the counts cover all of them, links included."""

    stored: int
    unchanged: int
    rejected: int
    items: tuple[ImportItem, ...]
    links: int
    unlinks: int
    waiting: int
    position: int
    incarnation: int


class Transfer(Reply, frozen=True, kw_only=True):
    """What an import of another ledger's events did, by lines: each is stored, unchanged, rejected or left out.

    Left out is what is about the other ledger alone; `unverified` of those are admissions, which do not hold here.
    `items` names the rejected lines, at most a thousand of them. `origin`, `size` and `root` are the source's;
    `verified` says whether a key has signed them.
    """

    stored: int
    unchanged: int
    rejected: int
    left_out: int
    unverified: int
    items: tuple[ImportItem, ...]
    kind: str
    origin: str
    size: int
    root: str
    verified: bool
    position: int
    incarnation: int


def document(reply: Reply) -> dict[str, Any]:  # Any: JSON
    """Return the JSON form of an answer: `schema_version` first; ids that do not apply are left out of receipts."""
    body = msgspec.to_builtins(reply)
    if isinstance(reply, Receipt | ImportItem):
        body = {key: value for key, value in body.items() if value is not None}
    return {"schema_version": SCHEMA_VERSION, **body}
