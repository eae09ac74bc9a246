"""The read models and the index as wholes."""

from gateway.shapes.replies.base import Reply


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

    `counts` has every kind of difference, `differences` the first few. `pending` entries wait in the outbox, `parked`
    ones there for a person, and `skipped` ones were given up: they are no difference. The two digests do not depend on
    the order of entries, and are equal if nothing differs. `probed` entries were searched for by their own vectors;
    `unprobed` names those that did not come first.
    """

    ok: bool
    exit_code: int
    cursor: int
    position: int
    incarnation: int
    entries: int
    expected: int
    pending: int
    parked: int
    skipped: int
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
