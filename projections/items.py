"""What an index entry stands for, a memory's revision or a correction: where it belongs, and by what it is found.

Everything here is read from verified entries at the walk's head. Corrections have partitions of their own, so a search
for memories never looks at one, nor the other way round.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from ledger.codec import SCOPE_SCHEMA
from ledger.corrections import STANDING_STATES, CorrectionRecorded, CorrectionText, indexed_text
from ledger.ids import CORRECTION, MEMORY, kind_of
from ledger.memories import MemoryRemembered, RevisionCorrected, RevisionText
from ledger.message import Standing
from ledger.scope import namespace
from ledger.verified import Record, Recorded, VerifiedLedger, standing_of

CORRECTIONS = "correction"  # the tier of a partition of corrections: they have a state, and no trust


class Item(Struct, frozen=True):
    """What an index entry stands for: its stream, and the revision in it; a correction is its own stream.

    In the index it is one string.
    """

    lineage: str
    revision: str

    def __str__(self) -> str:
        return f"{self.lineage}/{self.revision}"

    @staticmethod
    def parse(text: str) -> "Item":
        """Return the item that an index entry names."""
        lineage, _, revision = text.partition("/")
        return Item(lineage, revision)


class Placed(Struct, frozen=True):
    """Where an item that stands belongs, and what it is found by: the text, and the keyed digest (hex) of it."""

    partition: str
    content: str
    text: str


def partition(tier: str, space: Sequence[str]) -> str:
    """Return the key of an index partition: schema version, trust tier (or `CORRECTIONS`) and namespace."""
    return msgspec.json.encode([SCOPE_SCHEMA, tier, *space]).decode()


def streams_of(ledger: VerifiedLedger, identifiers: Iterable[str]) -> dict[str, str]:
    """Return the stream of each of these revisions and corrections that there is, as the walk knows it."""
    wanted = set(identifiers)
    corrections = {one for one in wanted if kind_of(one) == CORRECTION}
    ends = ledger.walk.ends(corrections) if corrections else {}
    revisions = ledger.walk.lineages(wanted - corrections) if wanted - corrections else {}
    return revisions | {one: one for one, end in ends.items() if end.version}


def placed(ledger: VerifiedLedger, items: Iterable[Item]) -> dict[Item, Placed]:
    """Return where each of these items belongs; one that does not stand at present is left out."""
    wanted = set(items)
    corrections = {item for item in wanted if kind_of(item.lineage) == CORRECTION}
    own = {item for item in corrections if item.revision == item.lineage}
    return _revisions(ledger, wanted - corrections) | _corrections(ledger, own)


def standing(ledger: VerifiedLedger, streams: Iterable[str]) -> dict[Item, Placed]:
    """Return what stands in these streams, each memory's head and each correction, and where it belongs."""
    wanted = set(streams)
    corrections = {stream for stream in wanted if kind_of(stream) == CORRECTION}
    memories = wanted - corrections
    lasts: Mapping[str, Recorded] = ledger.last(memories) if memories else {}
    found = {lineage: standing_of(last.entry) for lineage, last in lasts.items()}
    heads = {Item(lineage, one.head): one for lineage, one in found.items() if one.head is not None}
    own = {item: one for item, one in heads.items() if _stands(one, item)}
    return _placed_heads(ledger, own, lasts) | _corrections(ledger, {Item(stream, stream) for stream in corrections})


def streams(ledger: VerifiedLedger) -> list[str]:
    """Return every stream in which an item may stand, as the walk knows them."""
    found = (ledger.walk.beginning_with(f"{kind}_") for kind in (MEMORY, CORRECTION))
    return sorted(stream for one in found for stream in one)


def _revisions(ledger: VerifiedLedger, items: set[Item]) -> dict[Item, Placed]:
    if not items:
        return {}
    lasts = ledger.last({item.lineage for item in items})
    standings = {lineage: standing_of(last.entry) for lineage, last in lasts.items()}
    heads = {item: standings[item.lineage] for item in items if _stands(standings.get(item.lineage), item)}
    return _placed_heads(ledger, heads, lasts)


def _placed_heads(
    ledger: VerifiedLedger, heads: Mapping[Item, Standing], lasts: Mapping[str, Recorded]
) -> dict[Item, Placed]:
    """Return where heads belong; `lasts` are their lineages' last events, which often hold their texts."""
    contents = {last.entry.position: last for last in lasts.values()}
    further = {standing.content_seq or 0 for standing in heads.values()} - contents.keys()
    contents |= ledger.at(further) if further else {}
    return {item: _revision(standing, contents[standing.content_seq or 0]) for item, standing in heads.items()}


def _stands(standing: Standing | None, item: Item) -> bool:
    return standing is not None and standing.head == item.revision and standing.floor != "revoked"


def _revision(standing: Standing, content: Recorded) -> Placed:
    facts, text = content.entry.envelope.facts, content.payload
    if not isinstance(facts, MemoryRemembered | RevisionCorrected) or not isinstance(text, RevisionText):
        raise TypeError("a standing names an event that holds no revision")
    space = namespace(facts.visibility, facts.scope)
    return Placed(partition(standing.trust or "unverified", space), facts.content, text.content)


def _corrections(ledger: VerifiedLedger, items: set[Item]) -> dict[Item, Placed]:
    records: Mapping[str, Record] = ledger.records(item.lineage for item in items) if items else {}
    return {
        item: _correction(records[item.lineage].first)
        for item in items
        if item.lineage in records
        and records[item.lineage].state in STANDING_STATES
        and records[item.lineage].first.payload is not None  # else it was erased: nothing is found by it
    }


def _correction(recorded: Recorded) -> Placed:
    facts, text = recorded.entry.envelope.facts, recorded.payload
    if not isinstance(facts, CorrectionRecorded) or not isinstance(text, CorrectionText):
        raise TypeError("a correction's stream begins with another event")
    return Placed(partition(CORRECTIONS, namespace(facts.visibility, facts.scope)), facts.content, indexed_text(text))
